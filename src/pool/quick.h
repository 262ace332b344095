/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shortest ways of an allocation and of a free, inline in the public
 * functions: of blocks that a thread takes from the heap that served it last and
 * gives back to it. Whatever else there is (another pool, an empty tray, a taker at
 * work, a pointer that is no block's) they answer with false, as if nobody had asked,
 * and longer ways see to it, which end in the same functions.
 *
 * They need no more of a pool's handle than that it is the one with which the heap
 * was remembered: the heap loses that key before the handle dies. That the
 * heap is the calling thread's goes with it: a thread that gives a heap up forgets
 * it, and the key of an engine that died never comes back.
 *
 * Every check of the longer ways is made here too. In order, for a free: the page
 * belongs to a slab; the slab is this heap's, looked at once the heap is entered, when nobody
 * else can retire it; none of its slots has side records or is held; the address is a slot's, by
 * a multiplication; somebody has the block, by its note (tray.h). The gate
 * tells that the notes are the owner's alone.
 */
#ifndef ONUMA_POOL_QUICK_H
#define ONUMA_POOL_QUICK_H

#include "pool/keep.h"
#include "pool/node.h"
#include "pool/slot.h"

/* `tag`: 0 as a constant, or a queue's. */
static ONUMA__INLINE bool onuma__quick_alloc(const void *key, size_t size, onuma__tag tag, void **out) {
    const onuma__os_thread *thread = onuma__os_thread_peek();
    onuma__heap *heap = thread->heap;
    if (ONUMA__UNLIKELY(thread->key != key || atomic_load_explicit(&heap->key, memory_order_relaxed) != key ||
                        (tag != 0 && heap->tag != tag) || size - 1 >= ONUMA__SMALL_MAX))
        return false;
    const uint32_t closed = ONUMA__GATE_TAKEN | ONUMA__GATE_FENCED | (tag == 0 ? ONUMA__GATE_QUEUE : 0);
    if (ONUMA__UNLIKELY(!onuma__heap_enter_quick(heap, closed))) return false;
    onuma__tray *tray = &heap->trays[onuma__class_of(heap->class_shift, size)];
    const bool done = onuma__tray_take(heap, tray, size, out);
    onuma__heap_leave(heap);
    return ONUMA__LIKELY(done);
}

/* Of a large block, of the bin that its size has, where the first node fits. */
static ONUMA__INLINE bool onuma__quick_alloc_large(const void *key, size_t size, onuma__tag tag, void **out) {
    const onuma__os_thread *thread = onuma__os_thread_peek();
    onuma__heap *heap = thread->heap;
    if (ONUMA__UNLIKELY(thread->key != key || atomic_load_explicit(&heap->key, memory_order_relaxed) != key ||
                        (tag != 0 && heap->tag != tag) || size - 1 >= heap->front_bytes))
        return false;
    const uint32_t closed = ONUMA__GATE_TAKEN | ONUMA__GATE_FENCED | (tag == 0 ? ONUMA__GATE_QUEUE : 0);
    if (ONUMA__UNLIKELY(!onuma__heap_enter_quick(heap, closed))) return false;
    const size_t bytes = (size + heap->unit - 1) & ~(heap->unit - 1);
    const unsigned index = onuma__front_bin_of(bytes);
    const onuma__front_bin *bin = &heap->front.bins[index];
    const bool fits = bin->size == bytes || (bin->size > bytes && index != ONUMA__FRONT_LARGER);
    if (ONUMA__LIKELY(fits)) {
        const uintptr_t base = bin->base;
        onuma__front_hand_out(heap, onuma__front_pop(&heap->front, index), base, size);
        *out = (void *)base; // NOLINT: an address
    }
    onuma__heap_leave(heap);
    return ONUMA__LIKELY(fits);
}

/* Of a large block, by its page map entry: kept if it may be. The claim is what tells that it lives, and takes it. */
static ONUMA__INLINE bool onuma__quick_free_large(onuma__heap *heap, onuma__entry entry, uintptr_t address) {
    onuma__node *node = onuma__entry_node(entry);
    uintptr_t claim = address;
    if (ONUMA__UNLIKELY(atomic_load_explicit(&node->engine, memory_order_relaxed) != heap->engine ||
                        !onuma__heap_enter_quick(heap, ONUMA__GATE_TAKEN | ONUMA__GATE_FENCED | ONUMA__GATE_HOLDS)))
        return false;
    bool kept = false;
    if (ONUMA__LIKELY(atomic_compare_exchange_strong_explicit(&node->claim, &claim, 0, memory_order_acq_rel,
                                                              memory_order_relaxed))) {
        const size_t held = (size_t)atomic_load_explicit(&heap->front.bytes, memory_order_relaxed);
        kept = ONUMA__LIKELY(node->tag == heap->tag && node->align_shift == heap->class_shift &&
                             atomic_load_explicit(&node->engine, memory_order_relaxed) == heap->engine &&
                             held + node->size <= heap->front_bytes);
        if (kept)
            onuma__front_push(heap, node);
        else /* Not for this front, or not without sending others back: as if nobody had asked. */
            atomic_store_explicit(&node->claim, address, memory_order_release);
    }
    onuma__heap_leave(heap);
    return kept;
}

static ONUMA__INLINE bool onuma__quick_free(void *ptr, onuma__tag tag) {
    const uintptr_t address = (uintptr_t)ptr;
    const onuma__os_thread *thread = onuma__os_thread_peek();
    onuma__heap *heap = thread->heap;
    if (ONUMA__UNLIKELY(heap == NULL || atomic_load_explicit(&heap->key, memory_order_relaxed) != thread->key ||
                        (tag != 0 && tag != heap->tag)))
        return false;
    const onuma__entry entry = onuma__pagemap_get(address);
    if (ONUMA__UNLIKELY((entry & ONUMA__ENTRY_SORT) != ONUMA__ENTRY_SLAB))
        return (entry & ONUMA__ENTRY_SORT) == ONUMA__ENTRY_NODE && onuma__quick_free_large(heap, entry, address);
    onuma__slab *slab = onuma__entry_slab(entry);
    if (ONUMA__UNLIKELY(!onuma__heap_enter_quick(heap, ~(uint32_t)ONUMA__GATE_QUEUE))) return false;
    /* acquire: what was noted of a slot before its slab needed no attention any more */
    if (ONUMA__UNLIKELY(atomic_load_explicit(&slab->heap, memory_order_relaxed) != heap ||
                        atomic_load_explicit(&slab->attention, memory_order_acquire) != 0))
        goto not_so;
    const uint64_t offset = address - atomic_load_explicit(&slab->base, memory_order_relaxed);
    const size_t slot = (size_t)((offset * atomic_load_explicit(&slab->reciprocal, memory_order_relaxed)) >> 40);
    onuma__tray *tray = slab->tray;
    _Atomic uint16_t *place = &slab->notes[slot];
    const uint32_t note = atomic_load_explicit(place, memory_order_relaxed);
    if (ONUMA__UNLIKELY(slot * tray->size != offset || note == ONUMA__NOTE_NONE ||
                        !onuma__tray_put(heap, slab, address, place, note)))
        goto not_so;
    onuma__heap_leave(heap);
    return true;

not_so:
    onuma__heap_leave(heap);
    return false;
}

#endif
