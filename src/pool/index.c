/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/index.h"

#include "pool/segment.h"

#define PROBES 16       /* nodes looked at in one list */
#define PROBES_TOTAL 96 /* in one search, before the lists that fit for certain */
#define PROBES_OWN 1024 /* in the request's own list when nothing larger is free */
#define NONE UINT32_MAX

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
    const uint32_t list = onuma__index_list_of(node->size);
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
        const uint32_t list = onuma__index_list_of(node->size);
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

onuma__node *onuma__index_largest(const onuma__index *index) {
    const uint32_t list = onuma__index_previous_list(index, ONUMA__INDEX_LEVELS * ONUMA__INDEX_SUBS);
    return list == NONE ? NULL : list_head(index, list);
}

static void consider(onuma__fit *fit, onuma__node *node) {
    size_t base, end;
    if (!onuma__align_up(node->base, fit->align, &base) || !onuma__add(base, fit->size, &end)) return;
    if (end > node->base + node->size) return;
    const size_t new_pages = onuma__segment_new_pages(node->segment, base, fit->size);
    if (fit->committed && new_pages != 0) return;
    if (fit->node != NULL) {
        if (new_pages != fit->new_pages) {
            if (new_pages > fit->new_pages) return;
        } else if (node->size != fit->node->size) {
            if (node->size > fit->node->size) return;
        } else if (base > fit->base) {
            return;
        }
    }
    fit->node = node;
    fit->base = base;
    fit->new_pages = new_pages;
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
        if (fit->node != NULL && fit->new_pages == 0) return;
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
