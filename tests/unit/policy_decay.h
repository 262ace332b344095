/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of decay share: a runtime with one pool on the host, blocks that no cache keeps, and the library's own thread. */
#ifndef ONUMA_TESTS_POLICY_DECAY_H
#define ONUMA_TESTS_POLICY_DECAY_H

#include "api/api.h"

#include "api/handle.h"
#include "policy/policy.h"

#define MIB ((size_t)1 << 20)

typedef struct fixture {
    onuma_runtime *rt;
    onuma_pool *handle;
    onuma__pool *pool;
    uint64_t now;
} fixture;

static inline void open_fixture(fixture *f, const char *settings, onuma_source source) {
    onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
    desc.source = source;
    f->rt = api_runtime(settings, NULL);
    OK(onuma_pool_create(api_host(f->rt), &desc, &f->handle));
    f->pool = onuma__handle_get(ONUMA__HANDLE_POOL, f->handle);
    f->now = onuma__os_now(); /* less than a step later than the pool's first */
}

static inline void close_fixture(fixture *f) {
    OK(onuma_pool_destroy(f->handle));
    onuma_runtime_destroy(f->rt);
}

static inline size_t reserved(const fixture *f) {
    return (size_t)api_stats(f->handle).reserved_bytes;
}

/* So many bytes in blocks that no cache keeps, and back. */
static inline void fill(fixture *f, size_t bytes, void **blocks) {
    for (size_t i = 0; i < bytes / (32 * MIB); i++) {
        OK(onuma_alloc(f->handle, 32 * MIB, 0, NULL, &blocks[i]));
        memset(blocks[i], 1, 4096);
    }
}

static inline void empty(void **blocks, size_t count) {
    for (size_t i = 0; i < count; i++)
        OK(onuma_free(blocks[i], NULL));
}

/* Of runtimes whose memory decays by the thread. */
#define THREAD_SETTINGS "decay.half_life:16ms,decay.floor:0,decay.thread:on"

/* Asking for statistics lets nothing decay. */
static inline void wait_until_empty(const fixture *f) {
    while (reserved(f) != 0)
        onuma__os_sleep(1000000);
}

#endif
