/* SPDX-License-Identifier: Apache-2.0 */
/* This library: a pool of host memory whose blocks have malloc's alignment. Nothing is switched off. */
#include <stdlib.h>

#include "bench/alloc/allocator.h"
#include "opennuma/opennuma.h"
#include "output.h"

typedef struct opennuma_heap {
    onuma_pool *pool;
    onuma_runtime *runtime;
} opennuma_heap;

static inline void *take(void *heap, size_t size) {
    void *block;
    return onuma_alloc(((opennuma_heap *)heap)->pool, size, 0, NULL, &block) == ONUMA_OK ? block : NULL;
}

static inline bool give(void *heap, void *block) {
    (void)heap;
    return onuma_free(block, NULL) == ONUMA_OK;
}

#define BENCH_CAN_FIND
static inline bool find(void *heap, void *pointer) {
    onuma_block_info info = ONUMA_BLOCK_INFO_INIT;
    return onuma_block_get_info(pointer, &info) == ONUMA_OK && info.pool == ((opennuma_heap *)heap)->pool;
}

#include "bench/alloc/loops.h"

static bool open_pool(const void *own, void **out) {
    (void)own;
    opennuma_heap *heap = cli_allocate(sizeof *heap);
    onuma_runtime_desc runtime_desc = ONUMA_RUNTIME_DESC_INIT;
    runtime_desc.config = "backends:host"; /* drivers would bring threads of their own */
    if (onuma_runtime_create(&runtime_desc, &heap->runtime) == ONUMA_OK) {
        onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
        desc.kind = ONUMA_KIND_HOST;
        desc.alignment = BENCH_ALIGNMENT;
        desc.name = "bench";
        onuma_device *device;
        if (onuma_device_find(heap->runtime, "host", &device) == ONUMA_OK &&
            onuma_pool_create(device, &desc, &heap->pool) == ONUMA_OK) {
            *out = heap;
            return true;
        }
        onuma_runtime_destroy(heap->runtime);
    }
    free(heap);
    return false;
}

static void close_pool(void *opened) {
    opennuma_heap *heap = opened;
    (void)onuma_pool_destroy_forced(heap->pool, ONUMA_TIMEOUT_INFINITE);
    onuma_runtime_destroy(heap->runtime);
    free(heap);
}

bench_allocator bench_opennuma(void) {
    return (bench_allocator){
        .name = "opennuma",
        .version = onuma_version(),
        .open = open_pool,
        .close = close_pool,
        .take = take_one,
        .give = give_one,
        .loops = &loops,
    };
}
