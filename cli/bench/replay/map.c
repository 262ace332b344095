/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of a map and a mutex is C++, so it is a library of its own beside the command, which needs none of C++'s. */
#if !defined(_WIN32)
#define _POSIX_C_SOURCE 200809L
#endif
#include <stdlib.h>
#include <string.h>

#include "../../../bench/map_pool.h"
#include "bench/replay/contest.h"

static const map_pool_table *functions;

#if defined(_WIN32)
bool contest_map_load(void) {
    return false;
}
#else
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

bool contest_map_load(void) {
    char path[4096 + sizeof "/map_pool.so"];
    ssize_t length = readlink("/proc/self/exe", path, 4095);
    if (length <= 0) return false;
    path[length] = '\0';
    char *slash = strrchr(path, '/');
    if (!slash) return false;
    strcpy(slash, "/map_pool.so");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library) functions = dlsym(library, "map_pool_functions");
    return functions != NULL;
}
#endif

/* Blocks that a later queue still uses come back at their r, as there. */
static bool operate(map_pool *pool, const trace *t, void **blocks, const trace_op *op) {
    const trace_block *block = &t->blocks[op->block];
    switch ((trace_op_kind)op->kind) {
    case TRACE_ALLOC:
        blocks[op->block] = functions->allocate(pool, (size_t)block->size, op->stream);
        return blocks[op->block] != NULL;
    case TRACE_FREE:
        if (block->release) return true;
        break;
    case TRACE_RELEASE:
        break;
    }
    functions->release(pool, blocks[op->block]);
    return true;
}

bool contest_map(const trace *t, contest_clock *now, contest_figures *out) {
    map_pool *pool = functions->create();
    void **blocks = cli_allocate(t->block_count * sizeof *blocks);
    bool ok = pool != NULL;
    const uint64_t from = now();
    for (size_t i = 0; i < t->op_count && ok; i++)
        ok = operate(pool, t, blocks, &t->ops[i]);
    const uint64_t spent = now() - from;
    free(blocks);
    if (!ok) {
        cli_error("bench replay: out of memory for the pool of a map");
        return false;
    }
    map_pool_figures figures;
    functions->read(pool, &figures);
    functions->destroy(pool);
    *out = (contest_figures){.peak_reserved = figures.reserved_peak,
                             .metadata_peak = figures.metadata_peak,
                             .calls = figures.segments,
                             .ns = (double)spent / (double)t->op_count};
    return true;
}
