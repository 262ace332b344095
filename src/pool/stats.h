/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counting.
 *
 * Small blocks are counted in the heap of the thread that allocates or frees
 * them: plain additions by one thread, read by others (so: relaxed atomics).
 * When a heap's uncounted bytes reach its share of 64 KiB they are moved to the
 * engine's totals, where the peaks are kept. So totals plus heaps are exact
 * when nobody is at work, and a peak is missed by at most 64 KiB for each
 * thread. With exact_peaks the share is zero and every call moves its bytes.
 *
 * Large blocks, reserved and pending bytes go to the totals at once. What a front keeps (front.h) and a chunk has free
 * (arena.h) is not taken off them, so a peak of bytes in use may be too high by what there was of that at that moment.
 */
#ifndef ONUMA_POOL_STATS_H
#define ONUMA_POOL_STATS_H

#include "pool/heap.h"

#define ONUMA__UNCOUNTED_MAX 65536

static inline void onuma__peak_raise(_Atomic uint64_t *peak, uint64_t now) {
    uint64_t seen = atomic_load_explicit(peak, memory_order_relaxed);
    while (seen < now &&
           !atomic_compare_exchange_weak_explicit(peak, &seen, now, memory_order_relaxed, memory_order_relaxed)) {
    }
}

/* Totals may dip below zero for a moment (a block allocated by one heap, counted out by another); never for a peak. */
static inline void onuma__gauge_add(onuma__gauge *gauge, int64_t change) {
    const uint64_t now =
        atomic_fetch_add_explicit(&gauge->now, (uint64_t)change, memory_order_relaxed) + (uint64_t)change;
    if (change > 0 && (int64_t)now > 0) onuma__peak_raise(&gauge->peak, now);
}

/* Straight to the totals. */
void onuma__count(onuma__engine *engine, int64_t bytes, int64_t requested, int64_t allocs, int64_t frees);

/* Through the heap, which is the calling thread's. */
static inline void onuma__heap_add(_Atomic int64_t *counter, int64_t change) {
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + change, memory_order_relaxed);
}

/* Under the engine's lock: take a reading of what is computed rather than counted, for its peak. */
void onuma__note_metadata(onuma__engine *engine);
void onuma__note_cached(onuma__engine *engine);

void onuma__heap_flush(onuma__heap *heap);
/* The owner, as it gives the heap up: what its trays have counted goes to the totals too. */
void onuma__heap_flush_trays(onuma__heap *heap);

static inline void onuma__heap_count(onuma__heap *heap, int64_t bytes, int64_t requested, int64_t allocs,
                                     int64_t frees) {
    onuma__heap_add(&heap->requested, requested);
    if (allocs != 0) onuma__heap_add(&heap->allocs, allocs);
    if (frees != 0) onuma__heap_add(&heap->frees, frees);
    const int64_t now = atomic_load_explicit(&heap->bytes, memory_order_relaxed) + bytes;
    atomic_store_explicit(&heap->bytes, now, memory_order_relaxed);
    if (ONUMA__UNLIKELY(now >= heap->flush_at || now <= -heap->flush_at)) onuma__heap_flush(heap);
}

#endif
