/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests that run on whatever device they are told, with the demo's kernels as the device's work: in CI on devices
 * without a GPU, by scripts/gpu.sh on one. They print what they did and end with status 1 at the first thing that does
 * not hold.
 */
#ifndef ONUMA_TESTS_GPU_DEVICE_H
#define ONUMA_TESTS_GPU_DEVICE_H

#include "demo/runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

#define DIE(...)                                                                                                       \
    do {                                                                                                               \
        fprintf(stderr, "FAILED: " __VA_ARGS__);                                                                       \
        fputc('\n', stderr);                                                                                           \
        exit(1);                                                                                                       \
    } while (0)

/* The call succeeds; else the program ends with the library's own words. */
#define OK(call)                                                                                                       \
    do {                                                                                                               \
        const onuma_result ok_ = (call);                                                                               \
        if (ok_ != ONUMA_OK) DIE("%s: %s: %s", #call, onuma_result_name(ok_), onuma_last_error());                     \
    } while (0)

/* The same for a runner's functions. */
#define RUN(r, call)                                                                                                   \
    do {                                                                                                               \
        if (!(call)) DIE("%s: %s", #call, (r)->error);                                                                 \
    } while (0)

static inline onuma_device *find_device(onuma_runtime **rt, const char *id) {
    onuma_device *device;
    OK(onuma_runtime_create(NULL, rt));
    OK(onuma_device_find(*rt, id, &device));
    return device;
}

static inline onuma_pool *pool_of(onuma_device *device, onuma_kind kind) {
    onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
    onuma_pool *pool;
    desc.kind = kind;
    OK(onuma_pool_create(device, &desc, &pool));
    return pool;
}

static inline void *block_of(onuma_pool *pool, size_t size, onuma_queue *queue) {
    void *block;
    OK(onuma_alloc(pool, size, 0, queue, &block));
    return block;
}

static inline onuma_pool_stats stats_of(onuma_pool *pool) {
    onuma_pool_stats stats = ONUMA_POOL_STATS_INIT;
    OK(onuma_pool_get_stats(pool, &stats));
    return stats;
}

/* Nothing is left of it. */
static inline void end_pool(onuma_pool *pool) {
    OK(onuma_pool_trim(pool, 0, NULL));
    const onuma_pool_stats stats = stats_of(pool);
    if (stats.in_use_blocks != 0 || stats.reserved_bytes != 0)
        DIE("%llu blocks live and %llu bytes stay reserved", (unsigned long long)stats.in_use_blocks,
            (unsigned long long)stats.reserved_bytes);
    OK(onuma_pool_destroy(pool));
}

static inline uint64_t memory_free(onuma_device *device) {
    onuma_device_info info = ONUMA_DEVICE_INFO_INIT;
    OK(onuma_device_get_info(device, &info));
    return info.memory_free;
}

#endif
