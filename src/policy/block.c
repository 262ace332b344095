/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks: allocated through the ladder, zeroed and moved by the CPU with the
 * accesses announced that this takes, tracked if the pool tracks.
 *
 * Where the CPU writes a block before its queue may (zeroing, moving), the block
 * is allocated as the CPU's own, under tag 0, and bound to the queue afterwards.
 * Allocated under the queue's tag it could be memory that work already on the
 * queue still uses: fine for later work of that queue, not for the CPU now.
 */
#include "policy/private.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

/* How long a moving realloc waits for the work that uses the block. Nothing here may wait for ever: the work may hang
 * on something that this very thread was going to do next. */
#define MOVE_WAIT UINT64_C(10000000000)

/* Pools with call sites that live, so that freeing costs nothing more where there are none. Relaxed: whoever frees a
 * block of such a pool got its pointer after the pool was counted. */
static _Atomic uint32_t tracking_pools;

void onuma__tracking_changed(bool more) {
    if (more)
        atomic_fetch_add_explicit(&tracking_pools, 1, memory_order_relaxed);
    else
        atomic_fetch_sub_explicit(&tracking_pools, 1, memory_order_relaxed);
}

/* -------------------------------------------------------------- allocating */

static void track(const onuma__pool *pool, const void *block, void *caller) {
    const onuma__site site = {onuma__os_now(), caller, onuma__os_thread_get()->number};
    onuma__sites_add(pool->sites, block, &site);
}

ONUMA__COLD static void ask_queues(onuma__pool *pool) {
    if (atomic_exchange_explicit(pool->due, false, memory_order_relaxed)) (void)onuma__sync_poll(pool->owner.engine);
}

onuma_result onuma__pool_alloc(onuma__pool *pool, size_t size, size_t align, onuma__queue *queue, void *caller,
                               void **out) {
    onuma__tag tag = queue != NULL ? queue->tag : 0;
    /* First, since it can fail and an allocation is not to be taken back. */
    onuma_result r = queue != NULL ? onuma__sync_note(pool->owner.engine, queue) : ONUMA_OK;
    if (ONUMA__LIKELY(r == ONUMA_OK)) r = onuma__engine_alloc(pool->owner.engine, size, align, tag, out);
    if (ONUMA__UNLIKELY(r == ONUMA__MISS)) r = onuma__ladder_climb(pool, size, align, tag, out);
    onuma__upkeep_count(); /* after it, so that what the pool holds is not given back just before */
    if (ONUMA__UNLIKELY(r != ONUMA_OK)) {
        *out = NULL;
        atomic_fetch_add_explicit(&pool->alloc_failure_count, 1, memory_order_relaxed);
        return r;
    }
    if (queue != NULL && ONUMA__UNLIKELY(atomic_load_explicit(pool->due, memory_order_relaxed))) ask_queues(pool);
    if (ONUMA__UNLIKELY(pool->sites != NULL))
        track(pool, *out, caller);
    else
        onuma__engine_remember(pool->owner.engine, pool->owner.handle, tag);
    return ONUMA_OK;
}

onuma_result onuma__pool_free(void *ptr, onuma__queue *queue) {
    onuma__upkeep_count();
    if (ONUMA__LIKELY(atomic_load_explicit(&tracking_pools, memory_order_relaxed) == 0))
        return onuma__sync_free(ptr, queue);

    /* The site goes before the block does: afterwards the address may already be another's. */
    onuma__block block;
    onuma__site site;
    bool known = onuma__engine_find(ptr, &block) == ONUMA_OK && block.engine != NULL;
    onuma__sites *sites = known ? ((const onuma__pool *)block.owner)->sites : NULL;
    known = sites != NULL && onuma__sites_find(sites, ptr, &site);
    if (known) onuma__sites_remove(sites, ptr);
    onuma_result r = onuma__sync_free(ptr, queue);
    if (known && r != ONUMA_OK) onuma__sites_add(sites, ptr, &site);
    return r;
}

/* ---------------------------------------------------- the CPU's own access */

/* Whether the CPU can read and write the pool's blocks. */
static onuma_result check_reachable(const onuma__pool *pool, const char *wish) {
    if (pool->simulate)
        return onuma__fail(ONUMA_ERROR_NOT_SUPPORTED, "pool \"%s\" is simulated: there is no memory to %s", pool->name,
                           wish);
    if (pool->owner.kind == ONUMA_KIND_DEVICE)
        return onuma__fail(ONUMA_ERROR_NOT_SUPPORTED,
                           "pool \"%s\": the CPU cannot reach device memory to %s it; do that on the device",
                           pool->name, wish);
    return ONUMA_OK;
}

/* Around the first writes to a block that has just been allocated, where they take anything at all. */
static onuma_result begin_filling(void *block, size_t size, bool *held) {
    *held = !onuma__sync_is_plain(block);
    return *held ? onuma__sync_host_acquire(block, size, ONUMA_ACCESS_WRITE, MOVE_WAIT) : ONUMA_OK;
}

static onuma_result end_filling(void *block, size_t size, bool held) {
    return held ? onuma__sync_host_release(block, size, ONUMA_ACCESS_WRITE) : ONUMA_OK;
}

static onuma_result zero(void *block, size_t size) {
    bool held;
    if (size == 0) return ONUMA_OK;
    onuma_result r = begin_filling(block, size, &held);
    if (r != ONUMA_OK) return r;
    memset(block, 0, size);
    return end_filling(block, size, held);
}

static onuma_result copy(void *to, void *from, size_t size) {
    if (size == 0) return ONUMA_OK;
    onuma_result r = onuma__sync_host_acquire(from, size, ONUMA_ACCESS_READ, MOVE_WAIT);
    if (r != ONUMA_OK) return r;
    bool held;
    r = begin_filling(to, size, &held);
    if (r == ONUMA_OK) {
        memcpy(to, from, size);
        r = end_filling(to, size, held);
    }
    onuma_result released = onuma__sync_host_release(from, size, ONUMA_ACCESS_READ);
    return r != ONUMA_OK ? r : released;
}

/* A block that the CPU fills before the queue gets it. `from` NULL: with zeroes. */
static onuma_result alloc_filled(onuma__pool *pool, size_t size, size_t align, onuma__queue *queue, void *caller,
                                 void *from, size_t from_size, void **out) {
    void *block;
    onuma_result r = onuma__pool_alloc(pool, size, align, NULL, caller, &block);
    if (r != ONUMA_OK) return r;
    if (!pool->simulate) r = from != NULL ? copy(block, from, from_size) : zero(block, size);
    if (r == ONUMA_OK && queue != NULL) r = onuma__sync_bind(queue, block);
    if (r == ONUMA_OK)
        *out = block;
    else
        (void)onuma__pool_free(block, NULL);
    return r;
}

onuma_result onuma__pool_alloc_zeroed(onuma__pool *pool, size_t size, size_t align, onuma__queue *queue, void *caller,
                                      void **out) {
    onuma_result r = check_reachable(pool, "zero");
    return r != ONUMA_OK ? r : alloc_filled(pool, size, align, queue, caller, NULL, 0, out);
}

/* ---------------------------------------------------------------- resizing */

/* The pool's block that begins at `ptr`. */
static onuma_result find_pool_block(void *ptr, onuma__block *block) {
    onuma_result r = onuma__engine_find(ptr, block);
    if (r != ONUMA_OK) return r;
    if (block->base != ptr)
        return onuma__fail(ONUMA_ERROR_INVALID_POINTER, "realloc: %p lies inside the block at %p; pass its start", ptr,
                           block->base);
    if (block->engine == NULL)
        return onuma__fail(ONUMA_ERROR_NOT_SUPPORTED,
                           "realloc: %p is imported memory, which is the program's to resize", ptr);
    return ONUMA_OK;
}

/*
 * What growing adds may be memory that the block's own queue still uses: no other queue may have that, so for another
 * the block moves. (Of a block that was allocated for a queue the engine cuts nothing off.)
 */
static onuma_result resize_in_place(const onuma__block *block, size_t size, const onuma__queue *queue) {
    if (size > block->size && block->tag != 0 && queue != NULL && queue->tag != block->tag) return ONUMA__MISS;
    return onuma__engine_resize(block->base, size);
}

static onuma_result move(onuma__pool *pool, const onuma__block *block, size_t size, onuma__queue *queue, void *caller,
                         void **out) {
    onuma_result r = pool->simulate ? ONUMA_OK : check_reachable(pool, "move");
    if (r != ONUMA_OK) return r;
    void *moved;
    size_t kept = block->size < size ? block->size : size;
    r = alloc_filled(pool, size, block->align, queue, caller, block->base, kept, &moved);
    if (r != ONUMA_OK) return r;
    r = onuma__pool_free(block->base, queue);
    if (r != ONUMA_OK) {
        (void)onuma__pool_free(moved, NULL);
        return r;
    }
    *out = moved;
    return ONUMA_OK;
}

onuma_result onuma__pool_realloc(void *ptr, size_t size, onuma__queue *queue, void *caller, void **out) {
    onuma__block block;
    onuma_result r = find_pool_block(ptr, &block);
    if (r == ONUMA_OK && queue != NULL) r = onuma__sync_check_queue(queue, block.owner);
    if (r != ONUMA_OK) return r;
    /* What binding takes is got first: a size that was changed cannot always be taken back. */
    onuma__binding binding = {0};
    if (queue != NULL && queue->tag != block.tag) r = onuma__sync_bind_prepare(queue, ptr, &binding);
    if (r == ONUMA_OK) r = resize_in_place(&block, size, queue);
    if (r == ONUMA_OK) r = onuma__sync_bind_finish(&binding, ptr);
    onuma__sync_bind_cancel(&binding);
    if (r == ONUMA__MISS) return move(block.owner, &block, size, queue, caller, out);
    if (r == ONUMA_OK) *out = ptr;
    return r;
}
