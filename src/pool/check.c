/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every invariant of every structure, for tests. The equations that hold when
 * nobody is at work:
 *
 *   nodes tile their segment; neighbours that are free are not of one tag
 *   every stretch (stretch.h) is in the list of its size in the index of its tag, and nothing else is in an index
 *   live nodes have their start bit and page map entry, slabs an entry on each page
 *   reserved = committed pages (range) or spans (segments)
 *   chunks tile likewise with blocks that are taken and units that are not
 *   in use   = live large blocks + live slots
 *   pending  = held blocks + held slots + free memory of tags other than 0 + what fronts keep of them
 */
#include "pool/arena.h"
#include "pool/index.h"
#include "pool/large.h"
#include "pool/node.h"
#include "pool/segment.h"
#include "pool/slot.h"
#include "pool/stats.h"
#include "pool/stretch.h"

/* Names the invariant that is broken and where. */
#define HOLDS(condition, where)                                                                                        \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            return onuma__fail(ONUMA_ERROR_INTERNAL, "%s:%d: broken: %s (%p)", __FILE__, __LINE__, #condition,         \
                               (const void *)(where));                                                                 \
    } while (0)

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        const onuma_result r_ = (call);                                                                                \
        if (r_ != ONUMA_OK) return r_;                                                                                 \
    } while (0)

typedef struct tally {
    uint64_t reserved, in_use, requested, blocks, pending;
    size_t kept; /* by fronts */
    size_t in_trays, chunks;
    size_t stranded;
    size_t nodes, free_nodes, indexed, users; /* free_nodes: of tags other than 0 */
} tally;

/* ------------------------------------------------------------------- slabs */

static onuma_result check_slots(const onuma__slab *slab, uint32_t *unfree, tally *t) {
    const uint32_t slots = atomic_load(&slab->slots), size = atomic_load(&slab->slot_size);
    for (size_t slot = 0; slot < slots; slot++) {
        const bool is_free = onuma__slot_free(slab, slot), dead = onuma__slot_dead(slab, slot);
        const bool held = onuma__slot_bit(slab->held_words, slot);
        HOLDS(!held || (dead && !is_free), slab);
        if (is_free) continue;
        ++*unfree;
        if (held) t->pending += size;
        const uint16_t note = atomic_load(&slab->notes[slot]);
        t->stranded += held && note == ONUMA__NOTE_NONE;
        if (dead) continue;
        if (note == ONUMA__NOTE_NONE) {
            t->in_trays++;
            continue;
        }
        t->in_use += size;
        t->requested += size - (note & ~ONUMA__NOTE_ALIGNED);
        t->blocks++;
    }
    return ONUMA_OK;
}

static uint32_t count_attention(const onuma__slab *slab) {
    uint32_t count = 0;
    for (size_t w = 0; w * 64 < slab->capacity; w++)
        count += (uint32_t)__builtin_popcountll(atomic_load(&slab->special_words[w])) +
                 (uint32_t)__builtin_popcountll(atomic_load(&slab->held_words[w]));
    return count;
}

static onuma_result check_slab(const onuma__node *node, tally *t) {
    const onuma__slab *slab = node->slab;
    HOLDS(slab != NULL && slab->node == node, node);
    HOLDS(atomic_load(&slab->base) == node->base && atomic_load(&slab->tag) == node->tag, slab);
    HOLDS(atomic_load(&slab->segment) == node->segment, slab);
    const uint32_t slots = atomic_load(&slab->slots), size = atomic_load(&slab->slot_size);
    HOLDS(slots > 0 && slots <= slab->capacity && (size_t)slots * size <= node->size, slab);
    for (size_t at = 0; at < node->size; at += ONUMA__UNIT)
        HOLDS(onuma__pagemap_get(node->base + at) == ((onuma__entry)slab | ONUMA__ENTRY_SLAB), slab);
    uint32_t unfree = 0;
    TRY(check_slots(slab, &unfree, t));
    HOLDS(slab->used == unfree, slab);
    for (size_t w = 0; w * 64 < slab->capacity; w++)
        HOLDS((slab->summary >> w & 1) == (atomic_load(&slab->free_words[w]) != 0), slab);
    for (size_t w = 0; w < slab->capacity / 32; w++)
        HOLDS(atomic_load(&slab->dead_words[w]) >> 32 == atomic_load(&slab->generation), slab);
    HOLDS(atomic_load(&slab->queued) >> 1 == atomic_load(&slab->generation), slab);
    HOLDS(atomic_load(&slab->attention) == count_attention(slab), slab);
    return ONUMA_OK;
}

static onuma_result check_front(const onuma__heap *heap, size_t *kept) {
    const onuma__front *front = &heap->front;
    size_t bytes = 0;
    for (unsigned index = 0; index < ONUMA__FRONT_BINS; index++) {
        const onuma__front_bin *bin = &front->bins[index];
        HOLDS((bin->first != NULL) == (bin->size != 0), heap);
        HOLDS(bin->first == NULL || (bin->base == bin->first->base && bin->size == bin->first->size), heap);
        for (const onuma__node *node = bin->first; node != NULL; node = node->next) {
            HOLDS(onuma__front_bin_of(node->size) == index, node);
            HOLDS(node->state == ONUMA__NODE_LIVE && node->tag == heap->tag && !onuma__node_claimable(node), node);
            bytes += node->size;
            ++*kept;
        }
    }
    HOLDS((size_t)atomic_load(&front->bytes) == bytes && bytes <= heap->engine->front_bytes, heap);
    return ONUMA_OK;
}

static onuma_result check_trays(const onuma__heap *heap, size_t *kept) {
    for (unsigned c = 0; c < heap->engine->classes.count; c++) {
        const onuma__tray *tray = &heap->trays[c];
        const unsigned count = onuma__tray_count(tray);
        HOLDS(count * ONUMA__TRAY_ITEM <= tray->most, heap);
        for (unsigned i = 0; i < count; i++) {
            const onuma__tray_item *item = &tray->items[i];
            const onuma__entry entry = onuma__pagemap_get(item->block);
            HOLDS((entry & ONUMA__ENTRY_SORT) == ONUMA__ENTRY_SLAB, heap);
            const onuma__slab *slab = onuma__entry_slab(entry);
            const size_t slot = onuma__slot_of(slab, item->block);
            HOLDS(atomic_load(&slab->heap) == heap && slab->class_index == c, slab);
            HOLDS(atomic_load(&slab->base) + slot * tray->size == item->block, slab);
            HOLDS(item->note == &slab->notes[slot] && atomic_load(item->note) == ONUMA__NOTE_NONE, slab);
            HOLDS(!onuma__slot_free(slab, slot) && !onuma__slot_dead(slab, slot), slab);
        }
        *kept += count;
    }
    return ONUMA_OK;
}

static onuma_result check_heap(const onuma__heap *heap, size_t *slabs) {
    size_t empty = 0;
    for (unsigned c = 0; c <= ONUMA__CLASSES_MAX; c++) {
        const onuma__slab *previous = NULL;
        for (const onuma__slab *slab = c < ONUMA__CLASSES_MAX ? heap->open[c] : heap->full; slab != NULL;
             previous = slab, slab = slab->next) {
            const bool full = slab->used == atomic_load(&slab->slots);
            HOLDS(slab->previous == previous && atomic_load(&slab->heap) == heap, slab);
            HOLDS(full == (c == ONUMA__CLASSES_MAX) && (full || slab->class_index == c), slab);
            if (slab->used == 0) empty += slab->node->size;
            ++*slabs;
        }
    }
    HOLDS(heap->empty_bytes == empty && empty <= heap->engine->cache_bytes + ONUMA__SLAB_BYTES_MAX, heap);
    HOLDS(atomic_load(&heap->busy) == 0 && (atomic_load(&heap->gate) & ONUMA__GATE_TAKEN) == 0, heap);
    return ONUMA_OK;
}

/* ------------------------------------------------------------------ arenas */

static void tally_block(const onuma__node *node, tally *t);

/* A block in a chunk: of this arena, and its units are taken. */
static onuma_result check_piece(const onuma__chunk *chunk, const onuma__node *node, tally *t) {
    const size_t from = (node->base - chunk->base) >> ONUMA__UNIT_SHIFT;
    const size_t to = from + (node->size >> ONUMA__UNIT_SHIFT);
    HOLDS(node->size != 0 && to <= chunk->units && onuma__bits_find(chunk->taken, from, to, false) == to, node);
    HOLDS(onuma__node_arena(node) == atomic_load(&chunk->arena) && node->chunk == chunk, node);
    HOLDS(atomic_load(&node->engine) == atomic_load(&chunk->node->engine) && node->tag == 0, node);
    HOLDS(node->segment == chunk->node->segment, node);
    HOLDS(node->state == ONUMA__NODE_LIVE || node->state == ONUMA__NODE_HELD, node);
    HOLDS(onuma__bits_find(chunk->starts, from + 1, to, true) == to, node);
    HOLDS(!onuma__node_claimable(node) || atomic_load(&node->claim) == onuma__claim_of(node->base, node->special),
          node);
    for (size_t unit = from + 1; unit < to; unit++)
        HOLDS(onuma__pagemap_get(chunk->base + unit * ONUMA__UNIT) == ((onuma__entry)chunk | ONUMA__ENTRY_CHUNK), node);
    tally_block(node, t);
    return ONUMA_OK;
}

static onuma_result check_chunk(const onuma__node *whole, tally *t) {
    const onuma__chunk *chunk = whole->chunk;
    HOLDS(chunk != NULL && chunk->node == whole && chunk->base == whole->base, whole);
    HOLDS((size_t)chunk->units << ONUMA__UNIT_SHIFT == whole->size && whole->tag == 0, whole);
    size_t taken = 0;
    for (const onuma__node *node = NULL; (node = onuma__chunk_next(chunk, node)) != NULL;) {
        TRY(check_piece(chunk, node, t));
        taken += node->size >> ONUMA__UNIT_SHIFT;
    }
    HOLDS(onuma__bits_count(chunk->taken, 0, chunk->units) == taken && chunk->free_units == chunk->units - taken,
          whole);
    t->chunks++;
    return ONUMA_OK;
}

static onuma_result check_arena(const onuma__arena *arena, size_t *chunks) {
    size_t bytes = 0, empty = 0;
    for (unsigned i = 0; i < arena->count; i++) {
        const onuma__chunk *chunk = arena->chunks[i];
        HOLDS(atomic_load(&chunk->arena) == arena && chunk->index == i, chunk);
        for (size_t at = 0; (at = onuma__bits_find(chunk->taken, at, chunk->units, false)) < chunk->units;) {
            const size_t end = onuma__bits_find(chunk->taken, at, chunk->units, true);
            HOLDS(end - at <= arena->longest[i], chunk);
            at = end;
        }
        bytes += (size_t)chunk->free_units << ONUMA__UNIT_SHIFT;
        empty += chunk->free_units == chunk->units;
    }
    HOLDS((size_t)atomic_load(&arena->free_bytes) == bytes && arena->empty == empty, arena);
    HOLDS(empty == 0 || bytes <= arena->bound, arena);
    *chunks += arena->count;
    return ONUMA_OK;
}

/* ---------------------------------------------------------------- segments */

/* The stretch that a free node is part of is in its index. */
static onuma_result check_stretch(onuma__engine *engine, onuma__node *node) {
    uintptr_t base;
    size_t size;
    const onuma__node *head = onuma__stretch_of(node, &base, &size);
    HOLDS(head->indexed && head->stretch_base == base && head->stretch_size == size, node);
    const onuma__index *index = onuma__tag_get(engine, node->tag, false)->indexes[node->segment->sort];
    const uint32_t list = onuma__index_list_of(size);
    const onuma__node *at = index->lists[list / ONUMA__INDEX_SUBS][list % ONUMA__INDEX_SUBS];
    while (at != NULL && at != head)
        at = at->next;
    HOLDS(at == head, node);
    return ONUMA_OK;
}

/* Live, kept by a front, or held. */
static void tally_block(const onuma__node *node, tally *t) {
    if (node->state == ONUMA__NODE_HELD) {
        t->pending += node->size;
        t->stranded += node->stranded;
    } else if (!onuma__node_claimable(node)) {
        t->kept++;
        if (node->tag != 0) t->pending += node->size;
    } else {
        t->in_use += node->size;
        t->requested += atomic_load(&node->requested);
        t->blocks++;
    }
}

static onuma_result check_node(onuma__engine *engine, onuma__node *node, tally *t) {
    const onuma__segment *segment = node->segment;
    const bool large = node->state == ONUMA__NODE_LIVE || node->state == ONUMA__NODE_HELD;
    HOLDS(atomic_load(&node->engine) == engine && onuma__node_arena(node) == NULL, node);
    HOLDS(node->size != 0 && node->size % engine->unit == 0 && node->base % engine->unit == 0, node);
    HOLDS(onuma__bitmap_test(&segment->starts, (node->base - segment->base) >> ONUMA__UNIT_SHIFT) == large, node);
    HOLDS(node->state == ONUMA__NODE_FREE || !node->indexed, node);
    t->nodes++;
    switch ((onuma__node_state)node->state) {
    case ONUMA__NODE_FREE:
        TRY(check_stretch(engine, node));
        t->indexed += node->indexed;
        HOLDS(node->after == NULL || node->after->state != ONUMA__NODE_FREE || node->after->tag != node->tag, node);
        t->free_nodes += node->tag != 0;
        t->users += node->tag != 0;
        if (node->tag != 0) t->pending += node->size;
        return ONUMA_OK;
    case ONUMA__NODE_LIVE:
        HOLDS(!onuma__node_claimable(node) || atomic_load(&node->claim) == onuma__claim_of(node->base, node->special),
              node);
        tally_block(node, t);
        break;
    case ONUMA__NODE_HELD:
        tally_block(node, t);
        break;
    case ONUMA__NODE_CHUNK:
        TRY(check_chunk(node, t));
        break;
    case ONUMA__NODE_SLAB:
        TRY(check_slab(node, t));
        break;
    case ONUMA__NODE_DEAD:
    case ONUMA__NODE_TAKEN:
        HOLDS(node->state != ONUMA__NODE_DEAD && node->state != ONUMA__NODE_TAKEN, node);
    }
    t->users += node->tag != 0;
    if (large) HOLDS(onuma__pagemap_get(node->base) == ((onuma__entry)node | ONUMA__ENTRY_NODE), node);
    HOLDS(onuma__segment_new_pages(segment, node->base, node->size) == 0, node);
    HOLDS(node->base + node->size <= segment->high, node);
    return ONUMA_OK;
}

static onuma_result check_segment(onuma__engine *engine, const onuma__segment *segment, tally *t) {
    HOLDS(atomic_load(&segment->engine) == engine, segment);
    uintptr_t at = segment->base;
    const onuma__node *before = NULL;
    for (onuma__node *node = segment->first; node != NULL; before = node, node = node->after) {
        HOLDS(node->segment == segment && node->base == at && node->before == before, node);
        TRY(check_node(engine, node, t));
        at += node->size;
    }
    HOLDS(at == segment->base + segment->size, segment);
    if (!engine->range) {
        t->reserved += segment->span.size;
        return ONUMA_OK;
    }
    HOLDS(onuma__bits_count(segment->committed, 0, segment->pages) == segment->committed_pages, segment);
    HOLDS(onuma__bits_count(segment->moving, 0, segment->pages) == 0, segment);
    t->reserved += segment->committed_pages * segment->page;
    return ONUMA_OK;
}

/* -------------------------------------------------------------------- tags */

static onuma_result check_index(const onuma__index *index, onuma__tag tag, tally *t) {
    for (uint32_t list = 0; list < ONUMA__INDEX_LEVELS * ONUMA__INDEX_SUBS; list++) {
        const uint32_t level = list / ONUMA__INDEX_SUBS, sub = list % ONUMA__INDEX_SUBS;
        const onuma__node *node = index->lists[level][sub], *previous = NULL;
        HOLDS((index->subs[level] >> sub & 1) == (node != NULL), index);
        HOLDS((index->levels >> level & 1) == (index->subs[level] != 0), index);
        for (; node != NULL; previous = node, node = node->next) {
            HOLDS(node->state == ONUMA__NODE_FREE && node->tag == tag && node->previous == previous, node);
            HOLDS(node->indexed && onuma__index_list_of(node->stretch_size) == list, node);
            t->indexed++;
        }
    }
    return ONUMA_OK;
}

static onuma_result check_tag(const onuma__tag_state *state, tally *t) {
    tally own = {0};
    for (unsigned sort = 0; sort < ONUMA__SORTS; sort++)
        if (state->indexes[sort] != NULL) TRY(check_index(state->indexes[sort], state->tag, &own));
    t->indexed += own.indexed;
    if (state->tag == 0) return ONUMA_OK;
    t->users += state->users;
    HOLDS(state->users != 0, state);
    size_t listed = 0;
    const onuma__node *earlier = NULL;
    for (const onuma__node *node = state->earliest; node != NULL; earlier = node, node = node->later, listed++) {
        HOLDS(node->earlier == earlier && (earlier == NULL || earlier->epoch <= node->epoch), node);
        HOLDS(node->epoch != 0, node);
    }
    HOLDS(state->latest == earlier, state);
    t->free_nodes += listed;
    return ONUMA_OK;
}

onuma_result onuma__engine_check(onuma__engine *engine) {
    tally t = {0}, indexed = {0};
    for (const onuma__segment *segment = engine->segments; segment != NULL; segment = segment->next)
        TRY(check_segment(engine, segment, &t));
    TRY(check_tag(&engine->zero, &indexed));
    for (unsigned i = 0; i < ONUMA__TAG_BUCKETS; i++)
        for (const onuma__tag_state *state = engine->tags[i]; state != NULL; state = state->next)
            TRY(check_tag(state, &indexed));
    HOLDS(indexed.free_nodes == t.free_nodes && indexed.indexed == t.indexed && indexed.users == t.users, engine);
    HOLDS(engine->node_count == t.nodes, engine);
    size_t listed = 0, slabs = 0, kept = 0, in_trays = 0, chunks = 0;
    for (const onuma__heap *heap = engine->heaps; heap != NULL; heap = heap->next) {
        TRY(check_heap(heap, &listed));
        TRY(check_front(heap, &kept));
        TRY(check_trays(heap, &in_trays));
        TRY(check_arena(&heap->arena, &chunks));
    }
    HOLDS(kept == t.kept && in_trays == t.in_trays && chunks == t.chunks, engine);
    for (const onuma__segment *segment = engine->segments; segment != NULL; segment = segment->next)
        for (const onuma__node *node = segment->first; node != NULL; node = node->after)
            slabs += node->state == ONUMA__NODE_SLAB;
    HOLDS(slabs == listed, engine);
    onuma_pool_stats stats = ONUMA_POOL_STATS_INIT;
    onuma__engine_get_stats(engine, &stats);
    HOLDS(stats.reserved_bytes == t.reserved, engine);
    HOLDS(stats.in_use_bytes == t.in_use && stats.requested_bytes == t.requested, engine);
    HOLDS(stats.in_use_blocks == t.blocks && stats.alloc_count - stats.free_count == t.blocks, engine);
    HOLDS(stats.pending_bytes == t.pending && engine->stranded == t.stranded, engine);
    return ONUMA_OK;
}
