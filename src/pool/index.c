/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/index.h"

#include "pool/segment.h"
#include "pool/stretch.h"

#define PROBES 16       /* nodes looked at in one list */
#define PROBES_TOTAL 96 /* in one search, before the lists that fit for certain */
#define PROBES_OWN 1024 /* in the request's own list when nothing larger is free */
#define NONE UINT32_MAX

/* A segment counts as broken up if more is left of it than an eighth, and this. */
#define BROKEN 8
#define BROKEN_LEAST ((size_t)1 << 20)

static unsigned highest(uint64_t x) {
    return 63u - (unsigned)__builtin_clzll(x);
}

/* Lists are numbered level * 32 + sub; larger numbers hold larger nodes. */
uint32_t onuma__index_list_of(size_t size) {
    const uint64_t units = size >> ONUMA__UNIT_SHIFT;
    if (units < ONUMA__INDEX_SUBS) return (uint32_t)units;
    const unsigned top = highest(units);
    const unsigned level = top - ONUMA__INDEX_SUB_BITS + 1;
    const uint32_t sub = (uint32_t)(units >> (top - ONUMA__INDEX_SUB_BITS)) & (ONUMA__INDEX_SUBS - 1);
    return level * ONUMA__INDEX_SUBS + sub;
}

/* The first list all of whose nodes are at least this large. */
static uint32_t list_for_certain(size_t size) {
    const uint64_t units = size >> ONUMA__UNIT_SHIFT;
    const uint32_t list = onuma__index_list_of(size);
    if (units < ONUMA__INDEX_SUBS) return list;
    const unsigned low_bits = highest(units) - ONUMA__INDEX_SUB_BITS;
    return (units & (((uint64_t)1 << low_bits) - 1)) != 0 ? list + 1 : list;
}

uint32_t onuma__index_next_list(const onuma__index *index, uint32_t list) {
    uint32_t level = list / ONUMA__INDEX_SUBS;
    if (level >= ONUMA__INDEX_LEVELS) return NONE;
    const uint32_t subs = index->subs[level] & (UINT32_MAX << (list % ONUMA__INDEX_SUBS));
    if (subs != 0) return level * ONUMA__INDEX_SUBS + (uint32_t)__builtin_ctz(subs);
    const uint64_t levels = index->levels & (~(uint64_t)0 << level << 1);
    if (levels == 0) return NONE;
    level = (uint32_t)__builtin_ctzll(levels);
    return level * ONUMA__INDEX_SUBS + (uint32_t)__builtin_ctz(index->subs[level]);
}

uint32_t onuma__index_previous_list(const onuma__index *index, uint32_t list) {
    uint32_t level = list / ONUMA__INDEX_SUBS;
    if (level < ONUMA__INDEX_LEVELS) {
        const uint32_t subs = index->subs[level] & (((uint32_t)1 << (list % ONUMA__INDEX_SUBS)) - 1);
        if (subs != 0) return level * ONUMA__INDEX_SUBS + highest(subs);
    } else {
        level = ONUMA__INDEX_LEVELS;
    }
    const uint64_t levels = index->levels & (((uint64_t)1 << level) - 1);
    if (levels == 0) return NONE;
    level = highest(levels);
    return level * ONUMA__INDEX_SUBS + highest(index->subs[level]);
}

void onuma__index_insert(onuma__index *index, onuma__node *node) {
    const uint32_t list = onuma__index_list_of(node->stretch_size);
    const uint32_t level = list / ONUMA__INDEX_SUBS, sub = list % ONUMA__INDEX_SUBS;
    onuma__node **head = &index->lists[level][sub];
    node->previous = NULL;
    node->next = *head;
    if (*head != NULL) (*head)->previous = node;
    *head = node;
    index->subs[level] |= (uint32_t)1 << sub;
    index->levels |= (uint64_t)1 << level;
}

void onuma__index_remove(onuma__index *index, onuma__node *node) {
    if (node->next != NULL) node->next->previous = node->previous;
    if (node->previous != NULL) {
        node->previous->next = node->next;
    } else {
        const uint32_t list = onuma__index_list_of(node->stretch_size);
        const uint32_t level = list / ONUMA__INDEX_SUBS, sub = list % ONUMA__INDEX_SUBS;
        index->lists[level][sub] = node->next;
        if (node->next == NULL) {
            index->subs[level] &= ~((uint32_t)1 << sub);
            if (index->subs[level] == 0) index->levels &= ~((uint64_t)1 << level);
        }
    }
    node->previous = node->next = NULL;
}

static onuma__node *list_head(const onuma__index *index, uint32_t list) {
    return index->lists[list / ONUMA__INDEX_SUBS][list % ONUMA__INDEX_SUBS];
}

/* What is left over of a segment of a block's own that is wholly free until the piece is taken; else 0. */
static size_t broken(const onuma__fit *fit, const onuma__node *node) {
    const onuma__segment *segment = node->segment;
    if (segment->sort != ONUMA__SORT_OWN || node->stretch_size != segment->size) return 0;
    return segment->size - fit->size;
}

/* Whether a segment would be broken up that could have gone back whole, or have served a block of its size: which costs
 * nothing as long as something else fits, though worse. */
static bool breaks(const onuma__fit *fit, const onuma__node *node) {
    const size_t left = broken(fit, node);
    return left > BROKEN_LEAST && left > node->segment->size / BROKEN;
}

/* Whether the piece at `base` is better than the best so far. */
static bool is_better(const onuma__fit *fit, const onuma__node *node, uintptr_t base, size_t new_pages) {
    if (fit->node == NULL) return true;
    if (breaks(fit, node) != breaks(fit, fit->node)) return breaks(fit, fit->node);
    if (new_pages != fit->new_pages) return new_pages < fit->new_pages;
    if (node->stretch_size != fit->node->stretch_size) return node->stretch_size < fit->node->stretch_size;
    if (node->segment != fit->node->segment) return node->segment->number < fit->node->segment->number;
    return base < fit->base;
}

static void consider_at(onuma__fit *fit, onuma__node *node, uintptr_t base) {
    const size_t new_pages = onuma__segment_new_pages(node->segment, base, fit->size);
    if ((fit->committed && new_pages != 0) || !is_better(fit, node, base, new_pages)) return;
    fit->node = node;
    fit->base = base;
    fit->new_pages = new_pages;
}

/* Both ends of a stretch: in a range one may have pages where the other has none. The far end of what was never used
 * is left alone, though a block that starts on a page may need one page less there. */
static void consider(onuma__fit *fit, onuma__node *node) {
    size_t base, end;
    if (fit->tag != 0 && node->tag == 0 &&
        (onuma__node_is_free_of(node->before, fit->tag) || onuma__node_is_free_of(node->after, fit->tag)))
        return;
    if (!onuma__align_up(node->stretch_base, fit->align, &base) || !onuma__add(base, fit->size, &end)) return;
    const size_t limit = node->stretch_base + node->stretch_size;
    if (end > limit || broken(fit, node) > fit->most_broken) return;
    consider_at(fit, node, base);
    if (fit->new_pages != 0 && node->segment->committed != NULL &&
        onuma__segment_new_pages(node->segment, limit - 1, 1) == 0)
        consider_at(fit, node, onuma__align_down(limit - fit->size, fit->align));
}

/* Look at up to `most` nodes of a list; how many it were. */
static unsigned probe(onuma__fit *fit, const onuma__index *index, uint32_t list, unsigned most) {
    unsigned seen = 0;
    for (onuma__node *node = list_head(index, list); node != NULL && seen < most; node = node->next, seen++)
        consider(fit, node);
    return seen;
}

void onuma__fit_search(onuma__fit *fit, const onuma__index *index) {
    const uint32_t own = onuma__index_list_of(fit->size);
    unsigned seen = 0;
    uint32_t list = onuma__index_next_list(index, own);
    for (; list != NONE && seen < PROBES_TOTAL; list = onuma__index_next_list(index, list + 1)) {
        seen += probe(fit, index, list, PROBES);
        if (fit->node != NULL && fit->new_pages == 0 && !breaks(fit, fit->node)) return;
    }
    if (fit->node != NULL) return;
    /* Aligned requests may have met only nodes that are large enough but lie badly: go where any fits. */
    size_t certain;
    if (list != NONE && onuma__add(fit->size, fit->align, &certain)) {
        list = list_for_certain(certain);
        for (seen = 0; seen < PROBES_TOTAL; list++) {
            list = onuma__index_next_list(index, list);
            if (list == NONE) break;
            seen += probe(fit, index, list, PROBES);
            if (fit->node != NULL) return;
        }
    }
    if (onuma__index_next_list(index, own) == own) probe(fit, index, own, PROBES_OWN);
}
