/* SPDX-License-Identifier: Apache-2.0 */
/* Into a front and out of it: what the shortest ways of large blocks share with the longer ones. All guarded. */
#ifndef ONUMA_POOL_KEEP_H
#define ONUMA_POOL_KEEP_H

#include "pool/heap.h"
#include "pool/stats.h"

/* The first node of a bin that is not empty. */
static ONUMA__INLINE onuma__node *onuma__front_pop(onuma__front *front, unsigned index) {
    onuma__front_bin *bin = &front->bins[index];
    onuma__node *node = bin->first, *next = node->next;
    onuma__heap_add(&front->bytes, -(int64_t)bin->size);
    bin->first = next;
    bin->size = 0;
    if (ONUMA__UNLIKELY(next != NULL)) {
        bin->base = next->base;
        bin->size = next->size;
    }
    return node;
}

/* Keep a block, which has been claimed and fits, and count its free. */
static ONUMA__INLINE void onuma__front_push(onuma__heap *heap, onuma__node *node) {
    onuma__front *front = &heap->front;
    const size_t size = node->size;
    onuma__front_bin *bin = &front->bins[onuma__front_bin_of(size)];
    atomic_store_explicit(&node->recycled, true, memory_order_relaxed);
    node->next = bin->first;
    *bin = (onuma__front_bin){node, node->base, size};
    onuma__heap_add(&front->bytes, (int64_t)size);
    onuma__heap_add(&heap->requested, -(int64_t)atomic_load_explicit(&node->requested, memory_order_relaxed));
    onuma__heap_add(&heap->frees, 1);
}

/* Hand a block out that was kept, and count it. */
static ONUMA__INLINE void onuma__front_hand_out(onuma__heap *heap, onuma__node *node, uintptr_t base,
                                                size_t requested) {
    onuma__heap_add(&heap->requested, (int64_t)requested);
    onuma__heap_add(&heap->allocs, 1);
    atomic_store_explicit(&node->requested, requested, memory_order_relaxed);
    /* Release: whoever claims it sees all of it. */
    atomic_store_explicit(&node->claim, base, memory_order_release);
}

#endif
