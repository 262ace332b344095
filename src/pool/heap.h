/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heaps: the slabs that one thread owns in one engine for one tag. They are
 * the thread's cache; there is no other.
 *
 * Only the owner touches a heap's lists and its slabs' free bitmaps, without
 * lock or atomic read-modify-write, so it must be kept out when another thread
 * wants what it caches (trim, a full pool, statistics). That is the guard:
 *
 *   owner   busy = 1; light barrier; guard? -> busy = 0, wait, again; ... work ...; busy = 0 (release)
 *   taker   guard = 1; barrier_all; busy? -> not idle: leave it alone; ... work ...; guard = 0 (release)
 *
 * The barrier_all (membarrier, FlushProcessWriteBuffers) puts a full fence into
 * every other thread at that point, so of the owner's store and load one side
 * always sees the other's, though the owner pays for a compiler barrier only.
 * Takers exclude each other by the engine's heaps_lock.
 *
 * Heaps outlive their threads. When a thread exits, its wholly empty slabs go
 * back, and the heap stays in the engine without an owner: blocks in it may
 * still be freed, which sets bits in its slabs as for any other thread's. The
 * next thread that needs a heap of the same tag takes it over whole. So a slab has the
 * same heap from its making to its end.
 */
#ifndef ONUMA_POOL_HEAP_H
#define ONUMA_POOL_HEAP_H

#include "pool/engine.h"

struct onuma__heap {
    /* Constant while the engine lives; `id` is cleared under the lifetime lock when it dies. */
    _Atomic uint64_t id; /* the engine's */
    onuma__engine *engine;
    onuma__tag tag;

    /* The owner's: NULL while there is none. Written by the owner-to-be and by the owner as it exits, under heaps_lock;
     * relaxed, for a thread only asks whether it is itself. */
    _Atomic(onuma__os_thread *) thread;
    _Atomic uint32_t busy;  /* owner writes */
    _Atomic uint32_t guard; /* taker writes */

    /* Counts not yet in the engine's totals: written by the owner (relaxed), see stats.h. */
    _Atomic int64_t bytes, requested, allocs, frees;
    int64_t flush_at;

    /* The guarded part: the owner's while busy, else a taker's. */
    onuma__slab *open[ONUMA__CLASSES_MAX]; /* slabs with free slots; allocation is from the first */
    onuma__slab *full;
    size_t empty_bytes; /* of slabs with no slot in use */

    /* Slabs of this heap in which others have freed: pushed by anyone, taken whole. Release/acquire. */
    _Atomic(onuma__slab *) remote;

    onuma__heap *previous, *next; /* in the engine's list, under heaps_lock */
    void *spare_link;             /* of stable.c while unused */
};

/* The calling thread's heap; made or taken over if need be. NULL (and a detail) when that is impossible. */
onuma__heap *onuma__heap_get_slow(onuma__engine *engine, onuma__tag tag);

/* The thread's table of its heaps: open addressing, keyed by engine and tag. Only its thread touches it. */
typedef struct onuma__heap_slot {
    uint64_t id; /* the engine's; 0: empty */
    onuma__tag tag;
    onuma__heap *heap;
} onuma__heap_slot;

typedef struct onuma__heap_table {
    size_t mask, count;
    onuma__heap_slot slots[];
} onuma__heap_table;

static inline size_t onuma__heap_hash(uint64_t id, onuma__tag tag) {
    return (size_t)(id + (uint64_t)tag * 31);
}

static inline onuma__heap *onuma__heap_get(onuma__engine *engine, onuma__tag tag) {
    const onuma__heap_table *table = onuma__os_thread_get()->heaps;
    if (ONUMA__LIKELY(table != NULL)) {
        const uint64_t id = atomic_load_explicit(&engine->id, memory_order_relaxed);
        for (size_t i = onuma__heap_hash(id, tag) & table->mask; table->slots[i].id != 0; i = (i + 1) & table->mask)
            if (table->slots[i].id == id && table->slots[i].tag == tag) return table->slots[i].heap;
    }
    return onuma__heap_get_slow(engine, tag);
}

void onuma__heap_wait(onuma__heap *heap);

/* The owner's way in and out. */
static inline void onuma__heap_enter(onuma__heap *heap) {
    atomic_store_explicit(&heap->busy, 1, memory_order_relaxed);
    onuma__os_light_barrier();
    /* acquire: what the last taker did is visible */
    if (ONUMA__UNLIKELY(atomic_load_explicit(&heap->guard, memory_order_acquire) != 0)) onuma__heap_wait(heap);
}

static inline void onuma__heap_leave(onuma__heap *heap) {
    atomic_store_explicit(&heap->busy, 0, memory_order_release);
}

/*
 * Call fn for each heap of the engine that is idle or has no owner, under its
 * guard; for the caller's own too. Waits a little for busy ones, then leaves
 * them out. Returns whether any call returned true.
 */
bool onuma__heaps_visit(onuma__engine *engine, bool (*fn)(onuma__heap *heap));

/* Before the first heap of the process: hear of threads that exit. */
void onuma__heaps_start(void);

/* Around fork(): hold the lock that is called lifetime. */
void onuma__heaps_lock(void);
void onuma__heaps_unlock(void);

/* All heaps of a dying engine back to the process, without their slabs (which are gone). */
void onuma__heaps_finish(onuma__engine *engine);

#endif
