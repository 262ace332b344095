/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/alloc/malloc.h"

#include <stdio.h>
#include <stdlib.h>

#include "output.h"
#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#include <limits.h>
#include <malloc.h>
#endif

static inline void *take(void *heap, size_t size) {
    return ((const bench_malloc *)heap)->allocate(size);
}

static inline bool give(void *heap, void *block) {
    ((const bench_malloc *)heap)->release(block);
    return true;
}

#include "bench/alloc/loops.h"

/* They have but one heap; what is opened is only the way to it. */
static bool open_functions(const void *own, void **out) {
    bench_malloc *functions = cli_allocate(sizeof *functions);
    *functions = *(const bench_malloc *)own;
    *out = functions;
    return true;
}

bench_allocator bench_malloc_allocator(const char *name, const char *version, const bench_malloc *functions) {
    return (bench_allocator){
        .name = name,
        .version = version,
        .is_peer = true,
        .own = functions,
        .open = open_functions,
        .close = free,
        .take = take_one,
        .give = give_one,
        .loops = &loops,
    };
}

#if defined(__GLIBC__)
/* As the others it keeps what it has, up to the largest blocks that it may take from its heap at all: 32 MiB. */
bench_allocator bench_libc(void) {
    static const bench_malloc functions = {malloc, free};
    static char version[64];
    (void)mallopt(M_MMAP_THRESHOLD, 32 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, INT_MAX);
    snprintf(version, sizeof version, "%s, no trimming", gnu_get_libc_version());
    return bench_malloc_allocator("glibc", version, &functions);
}
#else
bench_allocator bench_libc(void) {
    static const bench_malloc functions = {malloc, free};
    return bench_malloc_allocator("libc", "the system's C library", &functions);
}
#endif
