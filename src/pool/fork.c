/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork(): every lock of the layer is taken before, in the order of engine.h, so
 * that the child finds no structure half changed and no lock held by a thread
 * that it does not have.
 *
 * What such threads were doing between two locks is ended in the child: nobody
 * is growing any more, and pages that were moving count as not committed. Nodes
 * and spans that they had in hand stay with them for good. Their heaps wait for
 * a new owner, like those of threads that have exited; but one that was in use
 * may be half changed and counts as busy for ever: it never gets an owner, its
 * slabs are never taken, and visitors leave it out after a while. No heap is
 * left guarded, since a visitor holds heaps_lock.
 */
#include "pool/fork.h"

#include <string.h>

#include "pool/directory.h"
#include "pool/heap.h"
#include "pool/stable.h"

static onuma__os_lock list_lock; /* guards the list */
static onuma__engine *engines;

static void before(void) {
    onuma__os_lock_acquire(&list_lock);
    onuma__heaps_lock();
    for (onuma__engine *engine = engines; engine != NULL; engine = engine->later)
        onuma__os_lock_acquire(&engine->heaps_lock);
    for (onuma__engine *engine = engines; engine != NULL; engine = engine->later)
        for (onuma__heap *heap = engine->heaps; heap != NULL; heap = heap->next)
            onuma__os_lock_acquire(&heap->arena.lock);
    for (onuma__engine *engine = engines; engine != NULL; engine = engine->later)
        onuma__os_lock_acquire(&engine->lock);
    onuma__directory_lock();
    onuma__stable_lock();
}

static void after(void) {
    onuma__stable_unlock();
    onuma__directory_unlock();
    for (onuma__engine *engine = engines; engine != NULL; engine = engine->later) {
        onuma__os_lock_release(&engine->lock);
        for (onuma__heap *heap = engine->heaps; heap != NULL; heap = heap->next)
            onuma__os_lock_release(&heap->arena.lock);
        onuma__os_lock_release(&engine->heaps_lock);
    }
    onuma__heaps_unlock();
    onuma__os_lock_release(&list_lock);
}

static void child(void) {
    for (onuma__engine *engine = engines; engine != NULL; engine = engine->later) {
        for (unsigned sort = 0; sort < ONUMA__SORTS; sort++)
            engine->growing[sort] = false;
        onuma__heaps_in_child(engine);
        for (onuma__segment *segment = engine->segments; segment != NULL; segment = segment->next)
            if (segment->moving != NULL) memset(segment->moving, 0, (segment->pages / 64 + 1) * sizeof(uint64_t));
    }
    after();
}

static void watch(void) {
    onuma__os_at_fork(0, before, after, child);
}

void onuma__fork_start(void) {
    static onuma__os_once once;
    onuma__os_once_run(&once, watch);
}

void onuma__fork_enter(onuma__engine *engine) {
    onuma__os_lock_acquire(&list_lock);
    engine->earlier = NULL;
    engine->later = engines;
    if (engines != NULL) engines->earlier = engine;
    engines = engine;
    onuma__os_lock_release(&list_lock);
}

void onuma__fork_leave(onuma__engine *engine) {
    onuma__os_lock_acquire(&list_lock);
    if (engine->earlier != NULL)
        engine->earlier->later = engine->later;
    else
        engines = engine->later;
    if (engine->later != NULL) engine->later->earlier = engine->earlier;
    onuma__os_lock_release(&list_lock);
}
