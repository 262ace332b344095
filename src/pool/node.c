/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Free memory belongs to a tag: 0, which serves everyone, or a queue's, which
 * serves that queue only until the engine hears that the queue has passed the
 * epoch of the free. Neighbours of one tag are coalesced at once.
 *
 * Free memory of tag t and of tag 0 that lie side by side stay two nodes. To
 * make them one of tag t would let a small free on a queue take the whole rest
 * of a range away from all others; to make them one of tag 0 would break the
 * rule. Only when an allocation under t finds nothing else are such neighbours
 * joined (join_for), and then only if together they are large enough.
 */
#include "pool/node.h"

#include "pool/index.h"
#include "pool/segment.h"
#include "pool/stable.h"
#include "pool/stats.h"

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
    node->requested = 0;
    node->slab = NULL;
    node->epoch = 0;
    node->tag = 0;
    node->state = ONUMA__NODE_TAKEN;
    node->special = false;
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

/* ------------------------------------------------------- into and out of the indexes */

static onuma__index *index_for(onuma__engine *engine, const onuma__node *node) {
    return onuma__tag_get(engine, node->tag, false)->indexes[node->segment->sort];
}

static void make_free(onuma__engine *engine, onuma__node *node) {
    node->state = ONUMA__NODE_FREE;
    onuma__index_insert(index_for(engine, node), node);
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
    onuma__index_remove(index_for(engine, node), node);
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

static bool is_free_of(const onuma__node *node, onuma__tag tag) {
    return node != NULL && node->state == ONUMA__NODE_FREE && node->tag == tag;
}

/* A taken node becomes free memory of its tag and epoch, one with its neighbours of that tag. */
static void settle(onuma__engine *engine, onuma__node *node) {
    onuma__node *after = node->after, *before = node->before;
    if (is_free_of(after, node->tag)) {
        make_taken(engine, after);
        absorb(engine, node, after);
    }
    if (is_free_of(before, node->tag)) {
        make_taken(engine, before);
        absorb(engine, before, node);
        node = before;
    }
    make_free(engine, node);
}

/* ----------------------------------------------------------------- taking */

/*
 * For tag t: a free node of t that with its free neighbours of tag 0 is large enough becomes one node of t
 * with them. The neighbour is not given to t when the allocation then fails after all only for its
 * alignment: so the sum must fit whatever the alignment.
 */
static bool join_for(onuma__engine *engine, onuma__tag_state *state, size_t size, size_t align, bool committed,
                     unsigned sort) {
    size_t need;
    if (!onuma__add(size, align - engine->unit, &need)) return false;
    for (onuma__node *node = state->earliest; node != NULL; node = node->later) {
        if (node->segment->sort != sort) continue;
        onuma__node *before = is_free_of(node->before, 0) ? node->before : NULL;
        onuma__node *after = is_free_of(node->after, 0) ? node->after : NULL;
        if (before == NULL && after == NULL) continue;
        const onuma__node *first = before != NULL ? before : node;
        size_t sum = node->size + (before != NULL ? before->size : 0) + (after != NULL ? after->size : 0);
        if (sum < need) continue;
        if (committed && onuma__segment_new_pages(node->segment, first->base, need) != 0) continue;
        /* Take no more of the neighbours than is needed: the one before whole, of the one after a part. */
        make_taken(engine, node);
        if (before != NULL) {
            make_taken(engine, before);
            before->tag = node->tag;
            absorb(engine, before, node);
            node = before;
        }
        if (after != NULL && node->size < need) {
            make_taken(engine, after);
            if (after->size > need - node->size) make_free(engine, cut(engine, after, need - node->size));
            absorb(engine, node, after);
        }
        make_free(engine, node);
        return true;
    }
    return false;
}

/* Cut the piece that was chosen out of its node. Two descriptors are in stock. */
static onuma__node *carve(onuma__engine *engine, const onuma__fit *fit, onuma__tag tag) {
    onuma__node *node = fit->node;
    make_taken(engine, node);
    if (fit->base != node->base) {
        onuma__node *rest = cut(engine, node, fit->base - node->base);
        make_free(engine, node);
        node = rest;
    }
    if (fit->size != node->size) make_free(engine, cut(engine, node, fit->size));
    node->tag = tag; /* its epoch still tells where it came from: 0 if it was free for all */
    node->requested = 0;
    node->special = false;
    onuma__tag_get(engine, tag, false)->users++;
    onuma__segment_raise(engine, node->segment, node->base + node->size);
    return node;
}

onuma_result onuma__node_take(onuma__engine *engine, size_t size, size_t align, onuma__tag tag, bool committed,
                              onuma__node **out) {
    const unsigned sort = onuma__sort_of(engine, size);
    onuma__tag_state *state = onuma__tag_get(engine, tag, true);
    if (state == NULL) return ONUMA_ERROR_OUT_OF_MEMORY;
    onuma_result r = stock(engine, 3);
    if (r == ONUMA_OK) {
        onuma__fit fit = {.size = size, .align = align, .committed = committed};
        onuma__fit_search(&fit, state->indexes[sort]);
        if (tag != 0) {
            if (fit.node == NULL || fit.new_pages != 0) onuma__fit_search(&fit, engine->zero.indexes[sort]);
            if (fit.node == NULL && join_for(engine, state, size, align, committed, sort))
                onuma__fit_search(&fit, state->indexes[sort]);
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
    node->requested = 0;
    node->special = false;
    node->slab = NULL;
    /* What comes back of an unordered queue's memory was held until markers had passed. */
    if (forall || (node->tag & ONUMA__TAG_UNORDERED) != 0) node->tag = 0;
    node->epoch = node->tag != 0 ? engine->epoch : 0;
    settle(engine, node);
    onuma__note_cached(engine);
    state->users--;
    onuma__tag_drop(engine, state);
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
    make_taken(engine, after);
    if (after->size > more) make_free(engine, cut(engine, after, more));
    const uint64_t epoch = node->epoch;
    absorb(engine, node, after);
    node->epoch = epoch;
    onuma__segment_raise(engine, node->segment, node->base + node->size);
    return ONUMA_OK;
}

/* --------------------------------------------------------------- segments */

onuma_result onuma__node_found(onuma__engine *engine, onuma__segment *segment) {
    const onuma_result r = stock(engine, 1);
    if (r != ONUMA_OK) return r;
    segment->first = draw(engine, segment, segment->base, segment->size);
    make_free(engine, segment->first);
    return ONUMA_OK;
}

void onuma__node_forget(onuma__engine *engine, onuma__segment *segment) {
    for (onuma__node *node = segment->first, *after; node != NULL; node = after) {
        after = node->after;
        if (node->state == ONUMA__NODE_FREE) make_taken(engine, node);
        if (node->state == ONUMA__NODE_LIVE || node->state == ONUMA__NODE_HELD) onuma__node_withdraw(node);
        discard(engine, node);
    }
    segment->first = NULL;
}

bool onuma__node_pass(onuma__engine *engine, onuma__tag_state *state, uint64_t epoch) {
    bool any = false;
    while (state->earliest != NULL && state->earliest->epoch <= epoch) {
        onuma__node *node = state->earliest;
        make_taken(engine, node);
        node->tag = 0;
        node->epoch = 0;
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
    node->requested = requested;
    onuma__bitmap_set(&node->segment->starts, unit_of(node));
    onuma__pagemap_set(node->base, (onuma__entry)node | ONUMA__ENTRY_NODE);
}

void onuma__node_withdraw(onuma__node *node) {
    node->state = ONUMA__NODE_TAKEN;
    onuma__bitmap_clear(&node->segment->starts, unit_of(node));
    onuma__pagemap_set(node->base, 0);
}

onuma__node *onuma__node_holding(onuma__segment *segment, uintptr_t address) {
    if (address < segment->base || address - segment->base >= segment->size) return NULL;
    const size_t unit = onuma__bitmap_previous(&segment->starts, (address - segment->base) >> ONUMA__UNIT_SHIFT);
    if (unit == SIZE_MAX) return NULL;
    const onuma__entry entry = onuma__pagemap_get(segment->base + (unit << ONUMA__UNIT_SHIFT));
    if ((entry & ONUMA__ENTRY_SORT) != ONUMA__ENTRY_NODE) return NULL;
    onuma__node *node = (onuma__node *)(entry & ~(onuma__entry)ONUMA__ENTRY_SORT);
    return address - node->base < node->size ? node : NULL;
}
