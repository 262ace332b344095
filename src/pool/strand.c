/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Held blocks that the layer above has no memory to remember. A free must not fail for want of memory and no block may
 * be lost by it, so the engine marks such a block where it is described anyway, and hands all of them back when the
 * layer above has memory again. To find them it goes through everything: that is slow, and as rare as running out.
 */
#include "pool/arena.h"
#include "pool/heap.h"
#include "pool/large.h"
#include "pool/node.h"
#include "pool/slab.h"

void onuma__engine_strand(onuma__engine *engine, void *base) {
    const onuma__entry entry = onuma__pagemap_get((uintptr_t)base);
    onuma__os_lock_acquire(&engine->lock);
    if ((entry & ONUMA__ENTRY_SORT) == ONUMA__ENTRY_SLAB)
        onuma__slab_strand(onuma__entry_slab(entry), (uintptr_t)base);
    else
        onuma__entry_node(entry)->stranded = true;
    engine->stranded++;
    onuma__os_lock_release(&engine->lock);
}

/* Under the lock. */
static size_t take(onuma__node *node, onuma__block *out, size_t room) {
    if (node->state == ONUMA__NODE_SLAB) return onuma__slab_take_stranded(node->slab, out, room);
    if (node->state != ONUMA__NODE_HELD || !node->stranded) return 0;
    node->stranded = false;
    onuma__node_describe(node, out);
    return 1;
}

/* Blocks in chunks. What guards those comes before the engine's lock. */
static size_t take_from_arenas(onuma__engine *engine, onuma__block *out, size_t room) {
    size_t taken = 0;
    onuma__os_lock_acquire(&engine->heaps_lock);
    for (onuma__heap *heap = engine->heaps; heap != NULL && taken < room; heap = heap->next) {
        onuma__arena *arena = &heap->arena;
        onuma__os_lock_acquire(&arena->lock);
        onuma__os_lock_acquire(&engine->lock);
        const size_t before = taken;
        for (unsigned i = 0; i < arena->count; i++)
            for (onuma__node *node = onuma__chunk_next(arena->chunks[i], NULL); node != NULL && taken < room;
                 node = onuma__chunk_next(arena->chunks[i], node))
                taken += take(node, out + taken, room - taken);
        engine->stranded -= taken - before;
        onuma__os_lock_release(&engine->lock);
        onuma__os_lock_release(&arena->lock);
    }
    onuma__os_lock_release(&engine->heaps_lock);
    return taken;
}

size_t onuma__engine_take_stranded(onuma__engine *engine, onuma__block *out, size_t room) {
    size_t taken = 0;
    onuma__os_lock_acquire(&engine->lock);
    if (room > engine->stranded) room = engine->stranded;
    for (onuma__segment *segment = engine->segments; segment != NULL && taken < room; segment = segment->next)
        for (onuma__node *node = segment->first; node != NULL && taken < room; node = node->after)
            taken += take(node, out + taken, room - taken);
    engine->stranded -= taken;
    onuma__os_lock_release(&engine->lock);
    return taken < room ? taken + take_from_arenas(engine, out + taken, room - taken) : taken;
}
