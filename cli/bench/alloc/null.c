/* SPDX-License-Identifier: Apache-2.0 */
/* An allocator that does nothing: every block is the same memory. What a test takes with it is the test's own time. */
#include <stdlib.h>

#include "bench/alloc/test.h"
#include "output.h"

/* Calls, as an allocator's would be. */
static __attribute__((noinline)) void *allocate(void *heap, size_t size) {
    __asm__ volatile("" : : "r"(size));
    return heap;
}

static __attribute__((noinline)) void release(void *block) {
    __asm__ volatile("" : : "r"(block));
}

static inline void *take(void *heap, size_t size) {
    return allocate(heap, size);
}

static inline bool give(void *heap, void *block) {
    (void)heap;
    release(block);
    return true;
}

#include "bench/alloc/loops.h"

static bool open_memory(const void *own, void **heap) {
    (void)own;
    *heap = cli_allocate(BENCH_MOST);
    return true;
}

const bench_allocator bench_null = {
    .name = "null",
    .version = "every block is the same memory",
    .open = open_memory,
    .close = free,
    .take = take_one,
    .give = give_one,
    .loops = &loops,
};
