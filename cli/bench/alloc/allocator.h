/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the bench knows of an allocator. Its timed loops are compiled for it alone (loops.h), so that nothing but its own
 * calls stands in them; take and give are the same calls one at a time, for what is not timed.
 */
#ifndef CLI_BENCH_ALLOC_ALLOCATOR_H
#define CLI_BENCH_ALLOC_ALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Every block is asked to have it, as malloc's have. */
enum { BENCH_ALIGNMENT = 16 };

/* One replacement: what is in the slot is freed, and a block of that size put there. */
typedef struct bench_step {
    uint32_t slot, size;
} bench_step;

/* All false: a call failed. `mask` is the length of the sequence, a power of two, less one: it begins anew at its end. */
typedef struct bench_loops {
    bool (*lifo)(void *heap, size_t size, size_t depth, uint64_t count, bool touch);
    bool (*replace)(void *heap, const bench_step *steps, size_t mask, uint64_t count, void **slots, bool touch);
    bool (*take_batch)(void *heap, const uint32_t *sizes, size_t count, void **blocks, bool touch);
    bool (*give_batch)(void *heap, void *const *blocks, size_t count);
    bool (*find)(void *heap, void *const *pointers, size_t mask, uint64_t count); /* NULL: it cannot */
} bench_loops;

typedef struct bench_allocator {
    const char *name;
    const char *version; /* and its settings, where they are not the defaults */
    bool is_peer;        /* counts where the best peer is looked for */
    const void *own;     /* what open needs, the allocator's own */
    bool (*open)(const void *own, void **heap);
    void (*close)(void *heap);
    void *(*take)(void *heap, size_t size); /* NULL: it failed */
    bool (*give)(void *heap, void *block);
    const bench_loops *loops;
} bench_allocator;

/* Those that are there without a peer's library. */
bench_allocator bench_opennuma(void);
bench_allocator bench_libc(void);        /* "glibc", or "libc" where it is another */
extern const bench_allocator bench_null; /* every block is the same memory: what a test takes without an allocator */

#endif
