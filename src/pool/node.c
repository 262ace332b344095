/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Free memory belongs to a tag: 0, which serves everyone, or a queue's, which
 * serves that queue only until the engine hears that the queue has passed the
 * epoch of the free. Neighbours of one tag are coalesced at once.
 *
 * Free memory of tag t and of tag 0 that lie side by side stay two nodes. To
 * make them one of tag t would let a small free on a queue take the whole rest
 * of a range away from all others; to make them one of tag 0 would break the
 * rule. An allocation under t sees them as one stretch (stretch.h), and what it
 * takes may be cut from several nodes.
 */
#include "pool/node.h"

#include "pool/index.h"
#include "pool/ration.h"
#include "pool/segment.h"
#include "pool/sort.h"
#include "pool/stable.h"
#include "pool/stats.h"
#include "pool/stretch.h"

#include <stddef.h>

static onuma__stable nodes = {.item = (sizeof(onuma__node) + 63) / 64 * 64, .link = offsetof(onuma__node, next)};

/* ------------------------------------------------------------ descriptors */

/* At least `count` descriptors at hand, so that what follows cannot fail half-way. */
static onuma_result stock(onuma__engine *engine, size_t count) {
    while (engine->spare_count < count) {
        onuma__node *node = onuma__stable_take(&nodes);
        if (node == NULL) return ONUMA_ERROR_OUT_OF_MEMORY;
        node->next = engine->spare;
        engine->spare = node;
        engine->spare_count++;
    }
    return ONUMA_OK;
}

static onuma__node *draw(onuma__engine *engine, onuma__segment *segment, uintptr_t base, size_t size) {
    onuma__node *node = engine->spare;
    engine->spare = node->next;
    engine->spare_count--;
    engine->node_count++;
    node->segment = segment;
    node->base = base;
    node->size = size;
    node->before = node->after = node->previous = node->next = node->earlier = node->later = NULL;
    atomic_store_explicit(&node->requested, 0, memory_order_relaxed);
    node->slab = NULL;
    node->epoch = 0;
    node->tag = 0;
    node->state = ONUMA__NODE_TAKEN;
    node->special = node->stranded = node->indexed = false;
    atomic_store_explicit(&node->recycled, false, memory_order_relaxed);
    atomic_store_explicit(&node->engine, engine, memory_order_release);
    return node;
}

static void discard(onuma__engine *engine, onuma__node *node) {
    node->state = ONUMA__NODE_DEAD;
    atomic_store_explicit(&node->engine, NULL, memory_order_release);
    node->next = engine->spare;
    engine->spare = node;
    engine->spare_count++;
    engine->node_count--;
}

void onuma__node_finish(onuma__engine *engine) {
    while (engine->spare != NULL) {
        onuma__node *node = engine->spare;
        engine->spare = node->next;
        onuma__stable_give(&nodes, node);
    }
    engine->spare_count = 0;
}

/* ------------------------------------------------------------- free and not free */

/*
 * These two, and what they are used in, change nodes whose stretches have been forgotten, and leave noting what has come
 * of them to whoever began.
 */
static void make_free(onuma__engine *engine, onuma__node *node) {
    node->state = ONUMA__NODE_FREE;
    if (node->tag == 0) return;
    onuma__tag_state *state = onuma__tag_get(engine, node->tag, false);
    state->users++;
    /* Epochs only grow, but the rest of a node that was split keeps its own: so look for its place from the end. */
    onuma__node *place = state->latest;
    while (place != NULL && place->epoch > node->epoch)
        place = place->earlier;
    node->earlier = place;
    node->later = place != NULL ? place->later : state->earliest;
    *(node->later != NULL ? &node->later->earlier : &state->latest) = node;
    *(place != NULL ? &place->later : &state->earliest) = node;
    onuma__gauge_add(&engine->pending, (int64_t)node->size);
}

static void make_taken(onuma__engine *engine, onuma__node *node) {
    node->state = ONUMA__NODE_TAKEN;
    if (node->tag == 0) return;
    onuma__tag_state *state = onuma__tag_get(engine, node->tag, false);
    state->users--;
    *(node->later != NULL ? &node->later->earlier : &state->latest) = node->earlier;
    *(node->earlier != NULL ? &node->earlier->later : &state->earliest) = node->later;
    node->earlier = node->later = NULL;
    onuma__gauge_add(&engine->pending, -(int64_t)node->size);
}

/* `second`, which follows `first`, becomes part of it. Neither is in an index. */
static void absorb(onuma__engine *engine, onuma__node *first, onuma__node *second) {
    first->size += second->size;
    first->after = second->after;
    if (second->after != NULL) second->after->before = first;
    if (second->epoch > first->epoch) first->epoch = second->epoch;
    discard(engine, second);
}

/* Cut a node that is not in an index after `size` bytes. The second part is TAKEN too. A descriptor is in stock. */
static onuma__node *cut(onuma__engine *engine, onuma__node *node, size_t size) {
    onuma__node *rest = draw(engine, node->segment, node->base + size, node->size - size);
    rest->tag = node->tag;
    rest->epoch = node->epoch;
    rest->before = node;
    rest->after = node->after;
    if (rest->after != NULL) rest->after->before = rest;
    node->after = rest;
    node->size = size;
    return rest;
}

/* A taken node becomes free memory of its tag and epoch, one with its neighbours of that tag. */
static void settle(onuma__engine *engine, onuma__node *node) {
    onuma__node *after = node->after, *before = node->before;
    onuma__stretch_forget_near(engine, node);
    if (onuma__node_is_free_of(after, node->tag)) {
        onuma__stretch_forget_near(engine, after);
        make_taken(engine, after);
        absorb(engine, node, after);
    }
    if (onuma__node_is_free_of(before, node->tag)) {
        onuma__stretch_forget_near(engine, before);
        make_taken(engine, before);
        absorb(engine, before, node);
        node = before;
    }
    make_free(engine, node);
    onuma__stretch_note_near(engine, node);
}

/* ----------------------------------------------------------------- taking */

/* Lengthen a taken node to `size` out of the free nodes that follow it. */
static void gather(onuma__engine *engine, onuma__node *node, size_t size) {
    while (node->size < size) {
        onuma__node *next = node->after;
        const size_t more = size - node->size;
        onuma__stretch_forget_near(engine, next);
        make_taken(engine, next);
        if (next->size > more) make_free(engine, cut(engine, next, more));
        absorb(engine, node, next);
    }
}

/* Note what is left of the free memory that a taken node was cut from. */
static void note_rests(onuma__engine *engine, onuma__node *node) {
    onuma__stretch_note_near(engine, node);
    if (onuma__node_is_free(node->before)) onuma__stretch_note_near(engine, node->before);
    if (onuma__node_is_free(node->after)) onuma__stretch_note_near(engine, node->after);
}

/* Cut the piece that was chosen out of its stretch. Two descriptors are in stock. */
static onuma__node *carve(onuma__engine *engine, const onuma__fit *fit, onuma__tag tag) {
    onuma__node *node = fit->node;
    while (node->base > fit->base)
        node = node->before;
    while (node->base + node->size <= fit->base)
        node = node->after;
    onuma__stretch_forget_near(engine, node);
    make_taken(engine, node);
    if (fit->base != node->base) {
        onuma__node *rest = cut(engine, node, fit->base - node->base);
        make_free(engine, node);
        node = rest;
    }
    if (node->size > fit->size) make_free(engine, cut(engine, node, fit->size));
    gather(engine, node, fit->size);
    note_rests(engine, node);
    node->tag = tag; /* its epoch still tells where it came from: 0 if it was free for all */
    atomic_store_explicit(&node->recycled, node->epoch != 0, memory_order_relaxed);
    atomic_store_explicit(&node->requested, 0, memory_order_relaxed);
    node->special = false;
    onuma__tag_get(engine, tag, false)->users++;
    onuma__segment_note_taken(engine, node);
    return node;
}

/* Where a block of each sort is looked for, in this order: before a pool grows it uses what it has. The segments of small
 * blocks are theirs alone. */
static const uint8_t places[ONUMA__SORTS][ONUMA__SORTS] = {
    [ONUMA__SORT_SMALL] = {ONUMA__SORT_SMALL, ONUMA__SORT_MEDIUM, ONUMA__SORT_OWN},
    [ONUMA__SORT_MEDIUM] = {ONUMA__SORT_MEDIUM, ONUMA__SORT_OWN, ONUMA__SORTS},
    [ONUMA__SORT_OWN] = {ONUMA__SORT_OWN, ONUMA__SORT_MEDIUM, ONUMA__SORTS},
};

onuma_result onuma__node_take(onuma__engine *engine, size_t size, size_t align, onuma__tag tag, onuma__take what,
                              onuma__node **out) {
    const unsigned sort = onuma__sort_of(engine, size);
    onuma__tag_state *state = onuma__tag_get(engine, tag, true);
    if (state == NULL) return ONUMA_ERROR_OUT_OF_MEMORY;
    onuma_result r = stock(engine, 3);
    if (r == ONUMA_OK) {
        onuma__fit fit = {.size = size, .align = align, .tag = tag, .committed = what == ONUMA__TAKE_READY};
        fit.most_broken = what == ONUMA__TAKE_ANY ? SIZE_MAX : onuma__ration_broken(engine);
        for (unsigned i = 0; i < ONUMA__SORTS && fit.node == NULL; i++) {
            const unsigned where = places[sort][i];
            if (where == ONUMA__SORTS || state->indexes[where] == NULL) break;
            onuma__fit_search(&fit, state->indexes[where]);
            if (tag != 0) onuma__fit_search(&fit, engine->zero.indexes[where]);
        }
        if (fit.node != NULL)
            *out = carve(engine, &fit, tag);
        else
            r = ONUMA__MISS;
    }
    if (r != ONUMA_OK) onuma__tag_drop(engine, state);
    return r;
}

void onuma__node_give(onuma__engine *engine, onuma__node *node, bool forall) {
    onuma__tag_state *state = onuma__tag_get(engine, node->tag, false);
    atomic_store_explicit(&node->requested, 0, memory_order_relaxed);
    node->special = false;
    node->slab = NULL;
    /* What comes back of an unordered queue's memory was held until markers had passed. */
    if (forall || (node->tag & ONUMA__TAG_UNORDERED) != 0) node->tag = 0;
    node->epoch = node->tag != 0 ? engine->epoch : 0;
    if (node->tag != 0) onuma__tag_freed(engine, node->size);
    settle(engine, node);
    onuma__note_cached(engine);
    state->users--;
    onuma__tag_drop(engine, state);
}

/* A node cut from memory of a queue and of all tells of the queue only. What has no pages was never the queue's, and as
 * its own would count as pending beyond all that is reserved. */
void onuma__node_return(onuma__engine *engine, onuma__node *node) {
    while (node->epoch != 0) {
        bool committed;
        const size_t run = onuma__segment_run(node->segment, node->base, node->size, &committed);
        if (run == node->size || stock(engine, 1) != ONUMA_OK) {
            onuma__node_give(engine, node, !committed && run == node->size);
            return;
        }
        onuma__node *rest = cut(engine, node, run);
        onuma__tag_get(engine, rest->tag, false)->users++;
        onuma__node_give(engine, node, !committed);
        node = rest;
    }
    onuma__node_give(engine, node, true);
}

/* --------------------------------------------------------------- in place */

onuma_result onuma__node_shrink(onuma__engine *engine, onuma__node *node, size_t size) {
    if (size == node->size) return ONUMA_OK;
    if (stock(engine, 1) != ONUMA_OK) return ONUMA__MISS;
    onuma__node *rest = cut(engine, node, size);
    rest->epoch = rest->tag != 0 ? engine->epoch : 0;
    settle(engine, rest);
    return ONUMA_OK;
}

onuma_result onuma__node_extend(onuma__engine *engine, onuma__node *node, size_t size) {
    onuma__node *after = node->after;
    if (after == NULL || after->state != ONUMA__NODE_FREE || (after->tag != 0 && after->tag != node->tag))
        return ONUMA__MISS;
    const size_t more = size - node->size;
    if (after->size < more || onuma__segment_new_pages(node->segment, after->base, more) != 0) return ONUMA__MISS;
    if (stock(engine, 1) != ONUMA_OK) return ONUMA__MISS;
    const uint64_t epoch = node->epoch;
    gather(engine, node, size);
    note_rests(engine, node);
    if (node->epoch != epoch) atomic_store_explicit(&node->recycled, true, memory_order_relaxed);
    node->epoch = epoch;
    onuma__segment_note_taken(engine, node);
    return ONUMA_OK;
}

/* --------------------------------------------------------------- segments */

onuma_result onuma__node_found(onuma__engine *engine, onuma__segment *segment) {
    const onuma_result r = stock(engine, 1);
    if (r != ONUMA_OK) return r;
    segment->first = draw(engine, segment, segment->base, segment->size);
    make_free(engine, segment->first);
    onuma__stretch_note_near(engine, segment->first);
    return ONUMA_OK;
}

void onuma__node_forget(onuma__engine *engine, onuma__segment *segment) {
    for (onuma__node *node = segment->first, *after; node != NULL; node = after) {
        after = node->after;
        if (node->state == ONUMA__NODE_FREE) {
            onuma__stretch_forget_near(engine, node);
            make_taken(engine, node);
        }
        if (node->state == ONUMA__NODE_LIVE || node->state == ONUMA__NODE_HELD) onuma__node_withdraw(node);
        discard(engine, node);
    }
    segment->first = NULL;
}

bool onuma__node_pass(onuma__engine *engine, onuma__tag_state *state, uint64_t epoch, onuma__tag to) {
    bool any = false;
    while (state->earliest != NULL && state->earliest->epoch <= epoch) {
        onuma__node *node = state->earliest;
        onuma__stretch_forget_near(engine, node);
        make_taken(engine, node);
        node->tag = to;
        node->epoch = to != 0 ? engine->epoch : 0;
        settle(engine, node);
        any = true;
    }
    return any;
}

/* ----------------------------------------------------------------- blocks */

static size_t unit_of(const onuma__node *node) {
    return (node->base - node->segment->base) >> ONUMA__UNIT_SHIFT;
}

void onuma__node_publish(onuma__node *node, size_t requested) {
    node->state = ONUMA__NODE_LIVE;
    atomic_store_explicit(&node->requested, requested, memory_order_relaxed);
    onuma__bitmap_set(&node->segment->starts, unit_of(node));
    /* Release: whoever claims it sees all of it. */
    atomic_store_explicit(&node->claim, node->base, memory_order_release);
    onuma__pagemap_set(node->base, (onuma__entry)node | ONUMA__ENTRY_NODE);
}

void onuma__node_withdraw(onuma__node *node) {
    node->state = ONUMA__NODE_TAKEN;
    atomic_store_explicit(&node->claim, 0, memory_order_relaxed);
    onuma__bitmap_clear(&node->segment->starts, unit_of(node));
    onuma__pagemap_set(node->base, 0);
}

onuma__node *onuma__node_holding(onuma__segment *segment, uintptr_t address) {
    if (address < segment->base || address - segment->base >= segment->size) return NULL;
    const size_t unit = onuma__bitmap_previous(&segment->starts, (address - segment->base) >> ONUMA__UNIT_SHIFT);
    if (unit == SIZE_MAX) return NULL;
    const onuma__entry entry = onuma__pagemap_get(segment->base + (unit << ONUMA__UNIT_SHIFT));
    if ((entry & ONUMA__ENTRY_SORT) != ONUMA__ENTRY_NODE) return NULL;
    onuma__node *node = onuma__entry_node(entry);
    return address - node->base < node->size ? node : NULL;
}
