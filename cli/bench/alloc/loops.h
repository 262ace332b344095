/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timed loops. Included by each allocator's file after it has defined
 *
 *     static inline void *take(void *heap, size_t size);   NULL: it failed
 *     static inline bool give(void *heap, void *block);
 *     static inline bool find(void *heap, void *pointer);  and BENCH_CAN_FIND, if it can tell what a pointer lies in
 *
 * and gives it `loops`. A table of function pointers around take and give would be shorter, and would add to each call of
 * an allocator what the fastest ones take themselves.
 */
#ifndef CLI_BENCH_ALLOC_LOOPS_H
#define CLI_BENCH_ALLOC_LOOPS_H

#include "bench/alloc/allocator.h"
#include "bench/alloc/touch.h"

static bool lifo_pairs(void *heap, size_t size, uint64_t count, bool touch) {
    for (uint64_t i = 0; i < count; i++) {
        void *block = take(heap, size);
        if (!block) return false;
        if (touch) bench_touch(block, size);
        if (!give(heap, block)) return false;
    }
    return true;
}

static bool lifo_loop(void *heap, size_t size, size_t depth, uint64_t count, bool touch) {
    if (depth == 1) return lifo_pairs(heap, size, count, touch);
    void *blocks[BENCH_DEEPEST];
    for (uint64_t i = 0; i < count; i += depth) {
        for (size_t d = 0; d < depth; d++) {
            blocks[d] = take(heap, size);
            if (!blocks[d]) return false;
            if (touch) bench_touch(blocks[d], size);
        }
        for (size_t d = depth; d-- > 0;)
            if (!give(heap, blocks[d])) return false;
    }
    return true;
}

static bool replace_loop(void *heap, const bench_step *steps, size_t mask, uint64_t count, void **slots, bool touch) {
    for (uint64_t i = 0; i < count; i++) {
        const bench_step step = steps[i & mask];
        if (!give(heap, slots[step.slot])) return false;
        void *block = take(heap, step.size);
        slots[step.slot] = block;
        if (!block) return false;
        if (touch) bench_touch(block, step.size);
    }
    return true;
}

static bool take_batch_loop(void *heap, const uint32_t *sizes, size_t count, void **blocks, bool touch) {
    for (size_t i = 0; i < count; i++) {
        blocks[i] = take(heap, sizes[i]);
        if (!blocks[i]) return false;
        if (touch) bench_touch(blocks[i], sizes[i]);
    }
    return true;
}

static bool give_batch_loop(void *heap, void *const *blocks, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!give(heap, blocks[i])) return false;
    return true;
}

#if defined(BENCH_CAN_FIND)
static bool find_loop(void *heap, void *const *pointers, size_t mask, uint64_t count) {
    for (uint64_t i = 0; i < count; i++)
        if (!find(heap, pointers[i & mask])) return false;
    return true;
}
#endif

static const bench_loops loops = {
    .lifo = lifo_loop,
    .replace = replace_loop,
    .take_batch = take_batch_loop,
    .give_batch = give_batch_loop,
#if defined(BENCH_CAN_FIND)
    .find = find_loop,
#endif
};

/* The calls one at a time. */
static void *take_one(void *heap, size_t size) {
    return take(heap, size);
}

static bool give_one(void *heap, void *block) {
    return give(heap, block);
}

#endif
