/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heaps: the slabs that one thread owns in one engine for one tag, and the
 * large blocks that it keeps (front.h). They are the thread's cache; there is no other. Beside them it may have an
 * arena (arena.h), which has a lock.
 *
 * Only the owner touches a heap's lists and its slabs' free bitmaps, without
 * lock or atomic read-modify-write, so it must be kept out when another thread
 * wants what it caches (trim, a full pool, statistics). That is the guard:
 *
 *   owner   busy = 1; light barrier; TAKEN? -> busy = 0, wait, again; ... work ...; busy = 0 (release)
 *   taker   TAKEN; barrier_all; busy? -> not idle: leave it alone; ... work ...; not TAKEN (release)
 *
 * The barrier_all (membarrier, FlushProcessWriteBuffers) puts a full fence into
 * every other thread at that point, so of the owner's store and load one side
 * always sees the other's, though the owner pays for a compiler barrier only.
 * Takers exclude each other by the engine's heaps_lock. TAKEN is a bit of the heap's gate, beside others that
 * keep the owner from its shortest ways (quick.h): so one look at one word answers them all.
 *
 * Heaps outlive their threads. When a thread exits, its wholly empty slabs go
 * back, and the heap stays in the engine without an owner: blocks in it may
 * still be freed, which sets bits in its slabs as for any other thread's. The
 * next thread that needs a heap of the same tag takes it over whole. So a slab has the
 * same heap from its making to its end.
 */
#ifndef ONUMA_POOL_HEAP_H
#define ONUMA_POOL_HEAP_H

#include "pool/arena.h"
#include "pool/engine.h"
#include "pool/front.h"
#include "pool/tray.h"

/* Bits of a heap's gate. */
enum {
    ONUMA__GATE_TAKEN = 1,  /* a taker is at work or waits to be */
    ONUMA__GATE_SHARED = 2, /* `shared` is set */
    ONUMA__GATE_FENCED = 4, /* the system has no barrier for all threads, so the owner needs a fence: constant */
    ONUMA__GATE_HOLDS = 8,  /* of an unordered queue: every free is held; constant */
    ONUMA__GATE_QUEUE = 16  /* the heap's tag is not 0; constant */
};

struct onuma__heap {
    /* Read by anyone, seldom written: a line of its own. Constant while the engine lives; `id` is cleared under the
     * lifetime lock when it dies. */
    _Alignas(64) _Atomic uint64_t id; /* the engine's */
    onuma__engine *engine;
    onuma__tag tag;
    unsigned class_shift; /* the engine's, like these two */
    size_t unit, front_bytes;

    /* The owner's: NULL while there is none. Written by the owner-to-be and by the owner as it exits, under heaps_lock;
     * relaxed, for a thread only asks whether it is itself. */
    _Atomic(onuma__os_thread *) thread;
    _Atomic(const void *) key; /* onuma__engine_remember's; relaxed */
    _Atomic uint32_t gate;     /* ONUMA__GATE_*. Written under heaps_lock; release, for what was done before */
    /* Others free into its slabs. Set once, by onuma__heap_share, under the guard: release, for those others. */
    _Atomic bool shared;

    /* The owner's line. */
    _Alignas(64) _Atomic uint32_t busy; /* owner writes */
    int64_t flush_at;
    /* Counts not yet in the engine's totals: written by the owner (relaxed), see stats.h. */
    _Atomic int64_t bytes, requested, allocs, frees;

    /* The guarded part: the owner's while busy, else a taker's. */
    size_t empty_bytes; /* of slabs with no slot in use */
    _Alignas(64) onuma__tray trays[ONUMA__CLASSES_MAX];
    onuma__slab *open[ONUMA__CLASSES_MAX]; /* slabs with free slots; allocation is from the first */
    onuma__slab *full;
    onuma__front front;

    /* Its own lock's. */
    onuma__arena arena;

    /* Slabs of this heap in which others have freed: pushed by anyone, taken whole. Release/acquire. */
    _Alignas(64) _Atomic(onuma__slab *) remote;

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

/* The calling thread's heap if it has one; else NULL. */
static inline onuma__heap *onuma__heap_find(const onuma__engine *engine, onuma__tag tag) {
    const onuma__heap_table *table = onuma__os_thread_get()->heaps;
    const uint64_t id = atomic_load_explicit(&engine->id, memory_order_relaxed);
    if (table == NULL) return NULL;
    for (size_t i = onuma__heap_hash(id, tag) & table->mask; table->slots[i].id != 0; i = (i + 1) & table->mask)
        if (table->slots[i].id == id && table->slots[i].tag == tag) return table->slots[i].heap;
    return NULL;
}

static inline onuma__heap *onuma__heap_get(onuma__engine *engine, onuma__tag tag) {
    onuma__heap *heap = onuma__heap_find(engine, tag);
    return ONUMA__LIKELY(heap != NULL) ? heap : onuma__heap_get_slow(engine, tag);
}

void onuma__heap_wait(onuma__heap *heap);

/* The owner's way in and out. */
static inline void onuma__heap_enter(onuma__heap *heap) {
    atomic_store_explicit(&heap->busy, 1, memory_order_relaxed);
    onuma__os_light_barrier();
    /* acquire: what the last taker did is visible */
    if (ONUMA__UNLIKELY((atomic_load_explicit(&heap->gate, memory_order_acquire) & ONUMA__GATE_TAKEN) != 0))
        onuma__heap_wait(heap);
}

static inline void onuma__heap_leave(onuma__heap *heap) {
    atomic_store_explicit(&heap->busy, 0, memory_order_release);
}

/* In, unless a bit of `closed` is set in the gate; ONUMA__GATE_FENCED is among them, so that no fence is needed. */
static inline bool onuma__heap_enter_quick(onuma__heap *heap, uint32_t closed) {
    atomic_store_explicit(&heap->busy, 1, memory_order_relaxed);
    onuma__os_promised_barrier();
    if (ONUMA__LIKELY((atomic_load_explicit(&heap->gate, memory_order_acquire) & closed) == 0)) return true;
    onuma__heap_leave(heap);
    return false;
}

/*
 * Call fn for each heap of the engine that is idle or has no owner, under its
 * guard; for the caller's own too. Waits a little for busy ones, then leaves
 * them out. Returns whether any call returned true.
 */
bool onuma__heaps_visit(onuma__engine *engine, bool (*fn)(onuma__heap *heap));

/* Make it shared, and wait for the owner to be out: from now on whoever frees into its slabs has to win an exchange
 * (slab.h). Once in the life of a heap. */
void onuma__heap_share(onuma__heap *heap) ONUMA__COLD;

/* Around fork(), in the child: the heaps of threads that it does not have. Under all the engine's locks. */
void onuma__heaps_in_child(onuma__engine *engine);

/* Before the first heap of the process: hear of threads that exit. */
void onuma__heaps_start(void);

/* Around fork(): hold the lock that is called lifetime. */
void onuma__heaps_lock(void);
void onuma__heaps_unlock(void);

/* What arenas have is gone, of a dying engine, so that its segments may go. */
void onuma__heaps_forget_chunks(onuma__engine *engine);

/* All heaps of a dying engine back to the process, without their slabs (which are gone). */
void onuma__heaps_finish(onuma__engine *engine);

#endif
