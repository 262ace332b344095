/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/heap.h"

#include "pool/slab.h"
#include "pool/stable.h"
#include "pool/stats.h"

#include <stddef.h>
#include <stdlib.h>

#define BUSY_TRIES 200 /* yields given to a thread that is in its heap before it is left out */
#define TABLE_LEAST 16
#define NO_ENGINE UINT64_MAX /* no id of one; 0 ends the search in a table */

static onuma__stable heaps = {.item = (sizeof(onuma__heap) + 63) / 64 * 64, .link = offsetof(onuma__heap, spare_link)};

/* See engine.h: held while a thread exits or an engine gives up its heaps, so that neither finds the other half gone. */
static onuma__os_lock lifetime;

void onuma__heaps_lock(void) {
    onuma__os_lock_acquire(&lifetime);
}

void onuma__heaps_unlock(void) {
    onuma__os_lock_release(&lifetime);
}

void onuma__heap_wait(onuma__heap *heap) {
    do {
        atomic_store_explicit(&heap->busy, 0, memory_order_release);
        while ((atomic_load_explicit(&heap->gate, memory_order_acquire) & ONUMA__GATE_TAKEN) != 0)
            onuma__os_yield();
        atomic_store_explicit(&heap->busy, 1, memory_order_relaxed);
        onuma__os_light_barrier();
    } while ((atomic_load_explicit(&heap->gate, memory_order_acquire) & ONUMA__GATE_TAKEN) != 0);
}

/* Under heaps_lock. */
static void link_heap(onuma__engine *engine, onuma__heap *heap) {
    heap->previous = NULL;
    heap->next = engine->heaps;
    if (engine->heaps != NULL) engine->heaps->previous = heap;
    engine->heaps = heap;
    atomic_fetch_add_explicit(&engine->heap_count, 1, memory_order_relaxed);
}

static void unlink_heap(onuma__engine *engine, onuma__heap *heap) {
    if (heap->previous != NULL)
        heap->previous->next = heap->next;
    else
        engine->heaps = heap->next;
    if (heap->next != NULL) heap->next->previous = heap->previous;
    atomic_fetch_sub_explicit(&engine->heap_count, 1, memory_order_relaxed);
}

/* ------------------------------------------------------------ giving a heap back */

/* No slab and no chunk leads to the heap, so when its thread lets go of it nobody will find it again. */
static bool is_bare(onuma__heap *heap) {
    if (!onuma__arena_shed(heap->engine, &heap->arena) || heap->full != NULL ||
        atomic_load_explicit(&heap->remote, memory_order_relaxed) != NULL)
        return false;
    for (unsigned c = 0; c < ONUMA__CLASSES_MAX; c++)
        if (heap->open[c] != NULL) return false;
    return true;
}

/*
 * Under lifetime, by the owner: empty slabs go back, and the heap too if no other is left. If the thread exits, a
 * heap that remains is without an owner. Returns whether the heap is gone.
 */
static bool hand_back(onuma__heap *heap, bool exits) {
    onuma__engine *engine = heap->engine;
    onuma__os_lock_acquire(&engine->heaps_lock);
    onuma__front_flush(heap, 0);
    onuma__trays_flush(heap);
    onuma__slab_drain(heap);
    onuma__slab_retire_empty(heap);
    (void)onuma__arena_retire_empty(&heap->arena);
    onuma__heap_flush(heap);
    onuma__heap_flush_trays(heap);
    /* The shortest ways know it no more: it will be another's. */
    onuma__os_thread *thread = atomic_load_explicit(&heap->thread, memory_order_relaxed);
    if (thread->heap == heap) {
        thread->heap = NULL;
        thread->key = NULL;
    }
    const bool bare = is_bare(heap);
    if (exits || bare) atomic_store_explicit(&heap->thread, NULL, memory_order_relaxed);
    if (bare) {
        unlink_heap(engine, heap);
        atomic_store_explicit(&heap->key, NULL, memory_order_relaxed);
        atomic_store_explicit(&heap->id, 0, memory_order_relaxed);
        onuma__stable_give(&heaps, heap);
    }
    onuma__os_lock_release(&engine->heaps_lock);
    return bare;
}

/* --------------------------------------------------------- a thread's table */

static void table_put(onuma__heap_table *table, const onuma__heap_slot *slot) {
    size_t i = onuma__heap_hash(slot->id, slot->tag) & table->mask;
    while (table->slots[i].id != 0)
        i = (i + 1) & table->mask;
    table->slots[i] = *slot;
    table->count++;
}

static bool is_current(const onuma__heap_slot *slot) {
    return slot->id != 0 && atomic_load_explicit(&slot->heap->id, memory_order_relaxed) == slot->id;
}

/*
 * Queues come and go: a heap that has nothing for its queue any more is not kept for the life of the thread. The slot of
 * one that is gone must not count as current again: the heap may be another thread's at once, of the same engine.
 */
static void prune(onuma__heap_table *table) {
    for (size_t i = 0; i <= table->mask; i++) {
        onuma__heap_slot *slot = &table->slots[i];
        onuma__os_lock_acquire(&lifetime);
        if (is_current(slot) && slot->tag != 0 && hand_back(slot->heap, false)) slot->id = NO_ENGINE;
        onuma__os_lock_release(&lifetime);
    }
}

/* The thread's table with room for one more; heaps of dead engines are dropped from it. NULL when memory is out. */
static onuma__heap_table *table_with_room(onuma__os_thread *thread) {
    onuma__heap_table *old = thread->heaps;
    if (old != NULL && (old->count + 1) * 2 <= old->mask + 1) return old;
    size_t live = 0;
    if (old != NULL) prune(old);
    for (size_t i = 0; old != NULL && i <= old->mask; i++)
        live += is_current(&old->slots[i]);
    size_t slots = TABLE_LEAST;
    while (slots < (live + 1) * 3)
        slots *= 2;
    onuma__heap_table *table = calloc(1, sizeof *table + slots * sizeof table->slots[0]);
    if (table == NULL) return NULL;
    table->mask = slots - 1;
    for (size_t i = 0; old != NULL && i <= old->mask; i++)
        if (is_current(&old->slots[i])) table_put(table, &old->slots[i]);
    thread->heaps = table;
    free(old);
    return table;
}

/* ------------------------------------------------------------ getting a heap */

static void reset(onuma__heap *heap, onuma__engine *engine, onuma__tag tag) {
    heap->engine = engine;
    heap->tag = tag;
    heap->class_shift = engine->classes.shift;
    heap->unit = engine->unit;
    heap->front_bytes = engine->front_bytes;
    uint32_t gate = tag != 0 ? ONUMA__GATE_QUEUE : 0;
    if ((tag & ONUMA__TAG_UNORDERED) != 0) gate |= ONUMA__GATE_HOLDS;
    if (!onuma__os_abilities_get()->asymmetric_barrier) gate |= ONUMA__GATE_FENCED;
    atomic_store_explicit(&heap->gate, gate, memory_order_relaxed);
    atomic_store_explicit(&heap->shared, false, memory_order_relaxed);
    atomic_store_explicit(&heap->busy, 0, memory_order_relaxed);
    onuma__trays_reset(heap);
    for (unsigned c = 0; c < ONUMA__CLASSES_MAX; c++)
        heap->open[c] = NULL;
    heap->full = NULL;
    heap->empty_bytes = 0;
    heap->front = (onuma__front){0};
    onuma__arena_reset(&heap->arena, engine->front_bytes);
    atomic_store_explicit(&heap->key, NULL, memory_order_relaxed);
    atomic_store_explicit(&heap->remote, NULL, memory_order_relaxed);
    atomic_store_explicit(&heap->id, atomic_load_explicit(&engine->id, memory_order_relaxed), memory_order_relaxed);
}

/* A thread may miss 64 KiB of a peak in all: its heaps in one engine share that. Only the thread reads flush_at. */
static void share_uncounted(const onuma__heap_table *table, const onuma__engine *engine, uint64_t id) {
    int64_t count = 0;
    for (size_t i = 0; i <= table->mask; i++)
        count += table->slots[i].id == id;
    for (size_t i = 0; i <= table->mask; i++)
        if (table->slots[i].id == id)
            table->slots[i].heap->flush_at = engine->exact_peaks ? 0 : ONUMA__UNCOUNTED_MAX / count;
}

onuma__heap *onuma__heap_get_slow(onuma__engine *engine, onuma__tag tag) {
    onuma__os_thread *thread = onuma__os_thread_get();
    if (thread->number == 0) return NULL; /* the state that threads share when memory is out */
    onuma__heap_table *table = table_with_room(thread);
    if (table == NULL) return NULL;
    onuma__os_lock_acquire(&engine->heaps_lock);
    onuma__heap *heap = engine->heaps;
    while (heap != NULL && (heap->tag != tag || atomic_load_explicit(&heap->thread, memory_order_relaxed) != NULL))
        heap = heap->next;
    if (heap == NULL) {
        heap = onuma__stable_take(&heaps);
        if (heap != NULL) {
            reset(heap, engine, tag);
            link_heap(engine, heap);
        }
    }
    if (heap != NULL) atomic_store_explicit(&heap->thread, thread, memory_order_relaxed);
    onuma__os_lock_release(&engine->heaps_lock);
    if (heap == NULL) return NULL;
    const uint64_t id = atomic_load_explicit(&engine->id, memory_order_relaxed);
    table_put(table, &(onuma__heap_slot){.id = id, .tag = tag, .heap = heap});
    share_uncounted(table, engine, id);
    return heap;
}

/* ------------------------------------------------------ visitors and endings
 *
 * That the barrier on all threads is refused changes nothing: then owners enter with a full fence of their own
 * (onuma__os_light_barrier, and never by the quick way), and the taker has passed one in asking. Of `busy` and `gate` one
 * of the two sees the other's. The tests *_without_membarrier run so.
 */

static bool wait_until_idle(onuma__heap *heap) {
    for (unsigned tries = 0; tries < BUSY_TRIES; tries++) {
        if (atomic_load_explicit(&heap->busy, memory_order_seq_cst) == 0) return true;
        onuma__os_yield();
    }
    return false;
}

bool onuma__heaps_visit(onuma__engine *engine, bool (*fn)(onuma__heap *heap)) {
    bool any = false;
    onuma__os_lock_acquire(&engine->heaps_lock);
    /* seq_cst, and so a full fence on its own where the system has no barrier for all threads */
    for (onuma__heap *heap = engine->heaps; heap != NULL; heap = heap->next)
        atomic_fetch_or_explicit(&heap->gate, ONUMA__GATE_TAKEN, memory_order_seq_cst);
    (void)onuma__os_barrier_all(); /* see the head of the section */
    for (onuma__heap *heap = engine->heaps; heap != NULL; heap = heap->next) {
        if (wait_until_idle(heap)) any |= fn(heap);
        atomic_fetch_and_explicit(&heap->gate, ~(uint32_t)ONUMA__GATE_TAKEN, memory_order_release);
    }
    onuma__os_lock_release(&engine->heaps_lock);
    return any;
}

void onuma__engine_forget_keys(onuma__engine *engine) {
    onuma__os_lock_acquire(&engine->heaps_lock);
    for (onuma__heap *heap = engine->heaps; heap != NULL; heap = heap->next)
        atomic_store_explicit(&heap->key, NULL, memory_order_relaxed);
    onuma__os_lock_release(&engine->heaps_lock);
}

static void set_shared(onuma__heap *heap) {
    atomic_fetch_or_explicit(&heap->gate, ONUMA__GATE_SHARED, memory_order_relaxed);
    atomic_store_explicit(&heap->shared, true, memory_order_release);
}

void onuma__heap_share(onuma__heap *heap) {
    onuma__engine *engine = heap->engine;
    bool done = false;
    /* Between two looks at a busy owner the lock is free: the owner may be waiting for it, or fork() may. */
    while (!done) {
        onuma__os_lock_acquire(&engine->heaps_lock);
        /* A heap that is no longer the engine's has none of its slabs left: whoever asks has a pointer to nothing. */
        const uint64_t id = atomic_load_explicit(&heap->id, memory_order_relaxed);
        done = id == 0 || id != atomic_load_explicit(&engine->id, memory_order_relaxed) ||
               atomic_load_explicit(&heap->shared, memory_order_relaxed);
        if (!done) {
            atomic_fetch_or_explicit(&heap->gate, ONUMA__GATE_TAKEN, memory_order_seq_cst);
            (void)onuma__os_barrier_all(); /* see the head of the section */
            done = wait_until_idle(heap);
            if (done) set_shared(heap);
            atomic_fetch_and_explicit(&heap->gate, ~(uint32_t)ONUMA__GATE_TAKEN, memory_order_release);
        }
        onuma__os_lock_release(&engine->heaps_lock);
    }
}

void onuma__heaps_in_child(onuma__engine *engine) {
    /* Never the calling thread's, whatever thread gets the address of one that is gone. */
    static onuma__os_thread nobody;
    const onuma__os_thread *self = onuma__os_thread_get();
    for (onuma__heap *heap = engine->heaps; heap != NULL; heap = heap->next) {
        /* Whether its pool may be used here is asked on the long way. */
        atomic_store_explicit(&heap->key, NULL, memory_order_relaxed);
        if (atomic_load_explicit(&heap->thread, memory_order_relaxed) == self) continue;
        const bool whole = atomic_load_explicit(&heap->busy, memory_order_relaxed) == 0;
        atomic_store_explicit(&heap->thread, whole ? NULL : &nobody, memory_order_relaxed);
        /* Nobody is inside who does not know it. */
        set_shared(heap);
    }
}

static void thread_exits(onuma__os_thread *thread) {
    onuma__heap_table *table = thread->heaps;
    if (table == NULL) return;
    for (size_t i = 0; i <= table->mask; i++) {
        onuma__os_lock_acquire(&lifetime);
        if (is_current(&table->slots[i])) hand_back(table->slots[i].heap, true);
        onuma__os_lock_release(&lifetime);
    }
    thread->heaps = NULL;
    free(table);
}

static void set_hook(void) {
    onuma__front_start();
    onuma__os_on_thread_exit(thread_exits);
}

void onuma__heaps_start(void) {
    static onuma__os_once once;
    onuma__os_once_run(&once, set_hook);
}

void onuma__heaps_forget_chunks(onuma__engine *engine) {
    onuma__os_lock_acquire(&engine->heaps_lock);
    for (onuma__heap *heap = engine->heaps; heap != NULL; heap = heap->next)
        onuma__arena_forget(engine, &heap->arena);
    onuma__os_lock_release(&engine->heaps_lock);
}

void onuma__heaps_finish(onuma__engine *engine) {
    onuma__os_lock_acquire(&lifetime);
    onuma__os_lock_acquire(&engine->heaps_lock);
    while (engine->heaps != NULL) {
        onuma__heap *heap = engine->heaps;
        unlink_heap(engine, heap);
        (void)onuma__arena_shed(engine, &heap->arena);
        atomic_store_explicit(&heap->id, 0, memory_order_relaxed);
        atomic_store_explicit(&heap->key, NULL, memory_order_relaxed);
        atomic_store_explicit(&heap->thread, NULL, memory_order_relaxed);
        atomic_store_explicit(&heap->bytes, 0, memory_order_relaxed);
        atomic_store_explicit(&heap->requested, 0, memory_order_relaxed);
        atomic_store_explicit(&heap->allocs, 0, memory_order_relaxed);
        atomic_store_explicit(&heap->frees, 0, memory_order_relaxed);
        onuma__stable_give(&heaps, heap);
    }
    onuma__os_lock_release(&engine->heaps_lock);
    onuma__os_lock_release(&lifetime);
}
