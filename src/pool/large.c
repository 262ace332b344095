/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/large.h"

#include "pool/arena.h"
#include "pool/grow.h"
#include "pool/keep.h"
#include "pool/node.h"
#include "pool/slab.h"

static int64_t requested_of(const onuma__node *node) {
    return (int64_t)atomic_load_explicit(&node->requested, memory_order_relaxed);
}

/* The calling thread's heap whose front serves that tag; NULL if there is none. */
static onuma__heap *front_heap(onuma__engine *engine, onuma__tag tag) {
    if (engine->front_bytes == 0 || (tag & ONUMA__TAG_UNORDERED) != 0) return NULL;
    return onuma__heap_get(engine, tag);
}

/* --------------------------------------------------------------- allocating */

/* A taken node becomes a block. Under the lock. */
static void *begin(onuma__engine *engine, onuma__node *node, size_t requested, size_t align, bool strict) {
    node->align_shift = strict ? (uint8_t)__builtin_ctzll(align) : (uint8_t)engine->classes.shift;
    onuma__node_publish(node, requested);
    onuma__count(engine, (int64_t)node->size, (int64_t)requested, 1, 0);
    return (void *)node->base; // NOLINT: an address
}

/* From the front: the node's bytes never left the engine's totals. */
static void *reuse(onuma__heap *heap, size_t bytes, size_t requested) {
    onuma__heap_enter(heap);
    onuma__node *node = onuma__front_take(heap, bytes);
    if (ONUMA__LIKELY(node != NULL)) onuma__front_hand_out(heap, node, node->base, requested);
    onuma__heap_leave(heap);
    return node != NULL ? (void *)node->base : NULL; // NOLINT: an address
}

bool onuma__large_alloc_again(onuma__heap *heap, size_t size, void **out) {
    const onuma__engine *engine = heap->engine;
    if (size == 0 || size > engine->front_bytes || (heap->tag & ONUMA__TAG_UNORDERED) != 0) return false;
    const size_t bytes = onuma__large_bytes(engine, size);
    void *block = reuse(heap, bytes, size);
    if (block == NULL) block = onuma__arena_alloc(heap, bytes, size);
    if (block != NULL) *out = block;
    return block != NULL;
}

/* `heap`: the thread's, or NULL. */
static onuma_result take(onuma__engine *engine, onuma__heap *heap, size_t size, size_t align, bool strict,
                         onuma__tag tag, void **out) {
    onuma__node *node;
    if (!onuma__os_lock_try(&engine->lock)) {
        if (heap != NULL) onuma__arena_met(heap);
        onuma__os_lock_acquire(&engine->lock);
    }
    const onuma_result r =
        onuma__node_take(engine, onuma__large_bytes(engine, size), align, tag, ONUMA__TAKE_READY, &node);
    if (r == ONUMA_OK) *out = begin(engine, node, size, align, strict);
    onuma__os_lock_release(&engine->lock);
    return r;
}

/* What the thread caches goes back. Returns whether anything did. */
static bool give_own(onuma__heap *heap, bool all) {
    onuma__heap_enter(heap);
    if (all) {
        onuma__slab_drain(heap);
        (void)onuma__trays_flush(heap);
    }
    bool any = onuma__front_flush(heap, all ? 0 : ONUMA__FRONT_LARGER);
    if (all) any |= onuma__slab_retire_empty(heap);
    onuma__heap_leave(heap);
    return any | (all && onuma__arena_retire_empty(&heap->arena));
}

/* From what the thread has for itself; for its arena it may get a chunk more, if there is one. */
static void *take_own(onuma__heap *heap, size_t bytes, size_t requested) {
    void *block = reuse(heap, bytes, requested);
    if (block == NULL) block = onuma__arena_alloc(heap, bytes, requested);
    if (block != NULL) return block;
    const size_t chunk = onuma__arena_wants(heap, bytes);
    return chunk != 0 && onuma__arena_extend(heap, chunk) ? onuma__arena_alloc(heap, bytes, requested) : NULL;
}

onuma_result onuma__large_alloc(onuma__engine *engine, size_t size, size_t align, bool strict, onuma__tag tag,
                                void **out) {
    onuma__heap *heap = front_heap(engine, tag);
    const size_t bytes = onuma__large_bytes(engine, size);
    *out = heap != NULL && !strict ? take_own(heap, bytes, size) : NULL;
    if (*out != NULL) return ONUMA_OK;
    if (heap != NULL && bytes > (size_t)1 << 20) (void)give_own(heap, false);
    const onuma_result r = take(engine, heap, size, align, strict, tag, out);
    if (r == ONUMA_OK && heap != NULL) onuma__arena_refused(heap);
    if (r != ONUMA__MISS || heap == NULL || !give_own(heap, true)) return r;
    return take(engine, heap, size, align, strict, tag, out);
}

onuma_result onuma__large_grow(onuma__engine *engine, size_t size, size_t align, bool strict, onuma__tag tag,
                               void **out) {
    onuma__heap *heap = strict ? NULL : front_heap(engine, tag);
    const size_t bytes = onuma__large_bytes(engine, size), chunk = heap != NULL ? onuma__arena_wants(heap, bytes) : 0;
    onuma__node *node;
    if (chunk != 0) {
        /* Pages that would go back for it would soon be missed, and touched anew. */
        if (onuma__grow_has_room(engine, chunk) && onuma__grow_node(engine, chunk, align, tag, &node) == ONUMA_OK &&
            onuma__arena_add(heap, node) == ONUMA_OK && (*out = onuma__arena_alloc(heap, bytes, size)) != NULL)
            return ONUMA_OK;
        onuma__arena_refused(heap);
    }
    const onuma_result r = onuma__grow_node(engine, bytes, align, tag, &node);
    if (r != ONUMA_OK) return r;
    onuma__os_lock_acquire(&engine->lock);
    *out = begin(engine, node, size, align, strict);
    onuma__os_lock_release(&engine->lock);
    return ONUMA_OK;
}

/* ------------------------------------------------------------------ freeing */

static bool is_block_at(const onuma__node *node, uintptr_t address, const onuma__engine *engine) {
    return atomic_load_explicit(&node->engine, memory_order_relaxed) == engine && node->base == address &&
           (node->state == ONUMA__NODE_LIVE || node->state == ONUMA__NODE_HELD);
}

/* The block (dead or not) at this very address, the lock taken that guards it; NULL (and no lock) if there is none. */
static onuma__node *lock_block(onuma__entry entry, uintptr_t address, onuma__os_lock **lock) {
    onuma__node *node = onuma__entry_node(entry);
    onuma__engine *engine = onuma__node_lock(node, lock);
    if (engine == NULL) return NULL;
    if (is_block_at(node, address, engine)) return node;
    onuma__os_lock_release(*lock);
    return NULL;
}

/* Under the lock: its memory is free. Of a chunk it stays counted. */
static void give_back(onuma__engine *engine, onuma__node *node, bool for_all) {
    onuma__arena *arena = onuma__node_arena(node);
    if (arena != NULL) {
        onuma__count(engine, (int64_t)node->size, 0, 0, 0);
        onuma__arena_give(arena, node);
        return;
    }
    onuma__node_withdraw(node);
    onuma__node_give(engine, node, for_all);
}

/* A block that nobody else can claim any more dies. Under the lock. */
static onuma_result end(onuma__engine *engine, onuma__node *node, onuma__tag tag) {
    onuma__count(engine, -(int64_t)node->size, -requested_of(node), 0, 1);
    if (node->special || onuma__tag_holds(node->tag, tag)) {
        node->state = ONUMA__NODE_HELD;
        onuma__gauge_add(&engine->pending, (int64_t)node->size);
        return ONUMA__HELD;
    }
    give_back(engine, node, false);
    return ONUMA_OK;
}

/* Into the front of a heap of the calling thread; false if it is not to be kept there. */
static bool keep(onuma__heap *heap, onuma__node *node) {
    onuma__heap_enter(heap);
    const bool kept = onuma__front_put(heap, node);
    onuma__heap_leave(heap);
    return kept;
}

/* Blocks with side records, and errors. */
ONUMA__COLD static onuma_result free_locked(onuma__entry entry, uintptr_t address, onuma__tag tag,
                                            onuma__engine **out) {
    onuma__os_lock *lock;
    onuma__node *node = lock_block(entry, address, &lock);
    if (node == NULL) return ONUMA_ERROR_INVALID_POINTER;
    onuma__engine *engine = atomic_load_explicit(&node->engine, memory_order_relaxed);
    /* Side records come and go under the lock; the claim itself may go at any moment. */
    const uintptr_t claim = atomic_exchange_explicit(&node->claim, 0, memory_order_acq_rel);
    const onuma_result r = claim != 0 ? end(engine, node, tag) : ONUMA_ERROR_DOUBLE_FREE;
    *out = engine;
    onuma__os_lock_release(lock);
    return r;
}

bool onuma__large_free_own(onuma__entry entry, uintptr_t address, onuma__tag tag) {
    onuma__node *node = onuma__entry_node(entry);
    onuma__heap *heap = onuma__os_thread_get()->heap;
    /* The heap is the thread's own as long as it has a key: it was remembered by this thread, and gets another owner only
     * after it lost the key. */
    if (heap == NULL || onuma__os_thread_get()->key == NULL ||
        atomic_load_explicit(&heap->key, memory_order_relaxed) != onuma__os_thread_get()->key)
        return false;
    const onuma__engine *engine = atomic_load_explicit(&node->engine, memory_order_relaxed);
    if (engine == NULL || engine != heap->engine || engine->front_bytes == 0 || onuma__tag_holds(heap->tag, tag))
        return false;
    uintptr_t claim = address;
    if (!atomic_compare_exchange_strong_explicit(&node->claim, &claim, 0, memory_order_acq_rel, memory_order_relaxed))
        return false;
    const bool kept = ONUMA__LIKELY(node->tag == heap->tag &&
                                    atomic_load_explicit(&node->engine, memory_order_relaxed) == heap->engine) &&
                      keep(heap, node);
    /* Not for this front: as if nobody had asked. */
    if (!kept) atomic_store_explicit(&node->claim, address, memory_order_release);
    return kept;
}

onuma_result onuma__large_free(onuma__entry entry, uintptr_t address, onuma__tag tag, onuma__engine **out) {
    onuma__node *node = onuma__entry_node(entry);
    uintptr_t claim = address;
    /* Acquire: what its maker wrote. Release: what this thread did with the block comes before its reuse. */
    if (ONUMA__UNLIKELY(!atomic_compare_exchange_strong_explicit(&node->claim, &claim, 0, memory_order_acq_rel,
                                                                 memory_order_relaxed)))
        return free_locked(entry, address, tag, out);
    onuma__engine *engine = atomic_load_explicit(&node->engine, memory_order_relaxed);
    *out = engine;
    onuma__heap *heap = onuma__tag_holds(node->tag, tag) ? NULL : front_heap(engine, node->tag);
    if (ONUMA__LIKELY(heap != NULL && keep(heap, node))) return ONUMA_OK;
    onuma__os_lock *lock = onuma__arena_lock_or(onuma__node_arena(node), engine);
    onuma__os_lock_acquire(lock);
    const onuma_result r = end(engine, node, tag);
    onuma__os_lock_release(lock);
    return r;
}

void onuma__large_release(onuma__engine *engine, onuma__entry entry, uintptr_t address, bool for_all) {
    onuma__os_lock *lock;
    onuma__node *node = lock_block(entry, address, &lock);
    if (node == NULL) return;
    if (node->state == ONUMA__NODE_HELD && atomic_load_explicit(&node->engine, memory_order_relaxed) == engine) {
        onuma__gauge_add(&engine->pending, -(int64_t)node->size);
        give_back(engine, node, for_all);
    }
    onuma__os_lock_release(lock);
}

/* ------------------------------------------------------- live blocks in place */

/* Claimed, so that no free without the lock can come between. */
static onuma_result resize_claimed(onuma__engine *engine, onuma__node *node, size_t size) {
    const size_t bytes = onuma__large_bytes(engine, size), before = node->size;
    onuma__arena *arena = onuma__node_arena(node);
    onuma_result r = ONUMA_OK;
    if (arena != NULL && !node->special)
        r = onuma__arena_resize(arena, node, bytes);
    else if (bytes > before) /* A special block keeps its memory: views and announced uses are of exactly that. */
        r = node->special ? ONUMA__MISS : onuma__node_extend(engine, node, bytes);
    else if (!node->special && node->tag == 0)
        r = onuma__node_shrink(engine, node, bytes); /* else the queue may still use what would serve others at once */
    if (r != ONUMA_OK) return r;
    const int64_t more = arena == NULL ? (int64_t)node->size - (int64_t)before : 0; /* of a chunk all is counted */
    onuma__count(engine, more, (int64_t)size - requested_of(node), 0, 0);
    atomic_store_explicit(&node->requested, size, memory_order_relaxed);
    return ONUMA_OK;
}

onuma_result onuma__large_resize(onuma__entry entry, uintptr_t address, size_t size) {
    onuma__os_lock *lock;
    onuma__node *node = lock_block(entry, address, &lock);
    if (node == NULL) return ONUMA_ERROR_INVALID_POINTER;
    onuma__engine *engine = atomic_load_explicit(&node->engine, memory_order_relaxed);
    const uintptr_t claim = atomic_exchange_explicit(&node->claim, 0, memory_order_acq_rel);
    onuma_result r = ONUMA_ERROR_INVALID_POINTER;
    if (claim != 0) {
        r = size > ONUMA__ABSURD ? ONUMA__MISS : resize_claimed(engine, node, size);
        atomic_store_explicit(&node->claim, claim, memory_order_release);
    }
    onuma__os_lock_release(lock);
    return r;
}

onuma_result onuma__large_set_special(onuma__entry entry, uintptr_t address, bool special) {
    onuma__os_lock *lock;
    onuma__node *node = lock_block(entry, address, &lock);
    if (node == NULL) return ONUMA_ERROR_INVALID_POINTER;
    uintptr_t claim = onuma__claim_of(address, node->special);
    const bool claimed = atomic_compare_exchange_strong_explicit(
        &node->claim, &claim, onuma__claim_of(address, special), memory_order_acq_rel, memory_order_relaxed);
    if (claimed) node->special = special;
    onuma__os_lock_release(lock);
    return claimed ? ONUMA_OK : ONUMA_ERROR_INVALID_POINTER;
}
