/* SPDX-License-Identifier: Apache-2.0 */
/* Allocators that are a malloc and a free: the C library's, mimalloc, jemalloc. */
#ifndef CLI_BENCH_ALLOC_MALLOC_H
#define CLI_BENCH_ALLOC_MALLOC_H

#include "bench/alloc/allocator.h"

typedef struct bench_malloc {
    void *(*allocate)(size_t size);
    void (*release)(void *block);
} bench_malloc;

/* `functions` must outlive it. */
bench_allocator bench_malloc_allocator(const char *name, const char *version, const bench_malloc *functions);

#endif
