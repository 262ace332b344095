/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/segment.h"

#include "pool/directory.h"
#include "pool/index.h"
#include "pool/stable.h"
#include "pool/stats.h"
#include "pool/stretch.h"

#include <stddef.h>
#include <stdlib.h>

static onuma__stable segments = {.item = (sizeof(onuma__segment) + 63) / 64 * 64,
                                 .link = offsetof(onuma__segment, next)};

size_t onuma__segment_usable(const onuma__engine *engine, const onuma__span *span, uintptr_t *base) {
    size_t from;
    const size_t start = (uintptr_t)span->base;
    if (!onuma__align_up(start, engine->unit, &from)) return 0;
    size_t end = start + span->size;
    if (end < start) return 0;
    /* In a range the last page must be whole: commitment is by whole pages from the span's start. */
    if (engine->range) end = start + onuma__align_down(span->size, engine->page);
    end = onuma__align_down(end, engine->unit);
    *base = from;
    return end > from ? end - from : 0;
}

onuma_result onuma__segment_create(onuma__engine *engine, const onuma__span *span, unsigned sort,
                                   onuma__segment **out) {
    onuma__segment *segment = onuma__stable_take(&segments);
    if (segment == NULL) return ONUMA_ERROR_OUT_OF_MEMORY;
    segment->span = *span;
    segment->size = onuma__segment_usable(engine, span, &segment->base);
    segment->sort = (uint8_t)sort;
    segment->previous = segment->next = NULL;
    segment->first = NULL;
    segment->high = segment->base;
    segment->committed = segment->moving = segment->discarded = NULL;
    segment->page = segment->pages = segment->committed_pages = segment->committed_end = 0;
    onuma_result r = onuma__bitmap_init(&segment->starts, segment->size >> ONUMA__UNIT_SHIFT);
    if (r != ONUMA_OK) goto give_back;
    if (engine->range) {
        segment->page = engine->page;
        segment->pages = span->size / segment->page;
        const size_t words = segment->pages / 64 + 1;
        uint64_t *maps = calloc(words * 3, sizeof *maps);
        if (maps == NULL) {
            r = onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "out of memory for the page states of a range of %zu bytes",
                            span->size);
            goto finish_starts;
        }
        segment->committed = maps;
        segment->moving = maps + words;
        segment->discarded = maps + 2 * words;
    } else {
        /* A range's page map is prepared as its memory is first taken. */
        r = onuma__pagemap_prepare(segment->base, segment->size);
        if (r != ONUMA_OK) goto finish_starts;
    }
    r = onuma__directory_add(segment);
    if (r != ONUMA_OK) goto free_maps;
    atomic_store_explicit(&segment->engine, engine, memory_order_release);
    *out = segment;
    return ONUMA_OK;

free_maps:
    free(segment->committed);
    segment->committed = segment->moving = segment->discarded = NULL;
finish_starts:
    onuma__bitmap_finish(&segment->starts);
give_back:
    onuma__stable_give(&segments, segment);
    return r;
}

void onuma__segment_destroy(onuma__segment *segment) {
    atomic_store_explicit(&segment->engine, NULL, memory_order_release);
    onuma__directory_remove(segment);
    onuma__bitmap_finish(&segment->starts);
    free(segment->committed);
    segment->committed = segment->moving = segment->discarded = NULL;
    onuma__stable_give(&segments, segment);
}

void onuma__segment_link(onuma__engine *engine, onuma__segment *segment) {
    segment->number = ++engine->segment_number;
    segment->next = NULL;
    segment->previous = engine->last_segment;
    if (engine->last_segment != NULL)
        engine->last_segment->next = segment;
    else
        engine->segments = segment;
    engine->last_segment = segment;
    engine->segment_metadata += onuma__segment_metadata(segment);
}

void onuma__segment_unlink(onuma__engine *engine, onuma__segment *segment) {
    if (segment->previous != NULL)
        segment->previous->next = segment->next;
    else
        engine->segments = segment->next;
    if (segment->next != NULL)
        segment->next->previous = segment->previous;
    else
        engine->last_segment = segment->previous;
    segment->previous = segment->next = NULL;
    engine->segment_metadata -= onuma__segment_metadata(segment);
}

size_t onuma__segment_metadata(const onuma__segment *segment) {
    const size_t units = (segment->high - segment->base) >> ONUMA__UNIT_SHIFT;
    const size_t starts = units / 8 + units / 512;
    const size_t maps = segment->committed != NULL ? 3 * (units * ONUMA__UNIT / segment->page / 8) : 0;
    return sizeof *segment + starts + maps + units * sizeof(onuma__entry);
}

static void forget_discarded(onuma__engine *engine, onuma__segment *segment, size_t from, size_t to) {
    const size_t count = onuma__bits_count(segment->discarded, from, to);
    if (count == 0) return;
    onuma__bits_assign(segment->discarded, from, to, false);
    engine->discarded_pages -= count;
}

void onuma__segment_note_taken(onuma__engine *engine, const onuma__node *node) {
    onuma__segment *segment = node->segment;
    const uintptr_t end = node->base + node->size;
    if (engine->discarded_pages != 0) {
        const uintptr_t start = (uintptr_t)segment->span.base;
        forget_discarded(engine, segment, (node->base - start) / segment->page, (end - start - 1) / segment->page + 1);
    }
    if (end <= segment->high) return;
    engine->segment_metadata -= onuma__segment_metadata(segment);
    segment->high = end;
    engine->segment_metadata += onuma__segment_metadata(segment);
    onuma__note_metadata(engine);
}

/* ------------------------------------------------------------- commitment */

size_t onuma__segment_run(const onuma__segment *segment, uintptr_t base, size_t size, bool *committed) {
    const size_t offset = base - (uintptr_t)segment->span.base;
    const size_t first = offset / segment->page, to = (offset + size - 1) / segment->page + 1;
    *committed = onuma__bits_test(segment->committed, first);
    const size_t end = onuma__bits_find(segment->committed, first, to, !*committed);
    return end == to ? size : end * segment->page - offset;
}

/* Under the lock: the next stretch from `from` on that is neither committed nor moving. false: none before `to`. */
static bool next_missing(const onuma__segment *segment, size_t *from, size_t to, size_t *end) {
    size_t at = *from;
    for (;;) {
        at = onuma__bits_find(segment->committed, at, to, false);
        if (at == to) return false;
        if (!onuma__bits_test(segment->moving, at)) break;
        at++;
    }
    size_t stop = onuma__bits_find(segment->committed, at, to, true);
    stop = onuma__bits_find(segment->moving, at, stop, true);
    *from = at;
    *end = stop;
    return true;
}

/* Called and returns with the lock held. */
static onuma_result commit_run(onuma__engine *engine, onuma__segment *segment, size_t from, size_t to) {
    onuma__bits_assign(segment->moving, from, to, true);
    onuma__os_lock_release(&engine->lock);
    const size_t bytes = (to - from) * segment->page;
    const onuma_result r = engine->source.commit(engine->source.self, &segment->span, from * segment->page, bytes);
    onuma__os_lock_acquire(&engine->lock);
    onuma__bits_assign(segment->moving, from, to, false);
    if (r != ONUMA_OK) return r;
    onuma__bits_assign(segment->committed, from, to, true);
    segment->committed_pages += to - from;
    if (to > segment->committed_end) segment->committed_end = to;
    onuma__gauge_add(&engine->reserved, (int64_t)bytes);
    atomic_fetch_add_explicit(&engine->commits, 1, memory_order_relaxed);
    return ONUMA_OK;
}

/* Under the lock: where a stretch that ends with the node may end instead. */
static size_t end_beyond(const onuma__node *node, size_t end, size_t beyond) {
    const onuma__segment *segment = node->segment;
    if (!onuma__node_is_free(node->after)) return end;
    if (beyond > node->after->size) beyond = node->after->size;
    const size_t offset = node->after->base - (uintptr_t)segment->span.base;
    const size_t limit = (offset + beyond) / segment->page;
    if (limit <= end) return end;
    const size_t committed = onuma__bits_find(segment->committed, end, limit, true);
    return onuma__bits_find(segment->moving, end, committed, true);
}

/* As commit_run; more than the node needs only if the source has it. */
static onuma_result commit_last(onuma__engine *engine, const onuma__node *node, size_t from, size_t end,
                                size_t beyond) {
    const size_t further = end_beyond(node, end, beyond);
    const onuma_result r = commit_run(engine, node->segment, from, further);
    return r == ONUMA_OK || further == end ? r : commit_run(engine, node->segment, from, end);
}

onuma_result onuma__segment_commit(onuma__engine *engine, onuma__node *node, size_t beyond) {
    onuma__segment *segment = node->segment;
    const size_t offset = node->base - (uintptr_t)segment->span.base;
    const size_t first = offset / segment->page, to = (offset + node->size - 1) / segment->page + 1;
    for (;;) {
        /* One's own pages first, then those of others: so two threads never wait for each other. */
        size_t from = first, end;
        while (next_missing(segment, &from, to, &end)) {
            const onuma_result r =
                end == to ? commit_last(engine, node, from, end, beyond) : commit_run(engine, segment, from, end);
            if (r != ONUMA_OK) return r;
            from = end;
        }
        if (onuma__bits_find(segment->committed, first, to, false) == to) return ONUMA_OK;
        onuma__os_lock_release(&engine->lock);
        onuma__os_yield();
        onuma__os_lock_acquire(&engine->lock);
    }
}

/* What is done with free pages: given back, or kept with what stands in them given up. */
typedef enum { RETURN, DISCARD } fate;

/* Under the lock: the first stretch of [from, to) that is committed, and for DISCARD not discarded yet. */
static bool next_committed(const onuma__segment *segment, fate what, size_t from, size_t to, size_t *at, size_t *end) {
    for (;; from = *end) {
        *at = onuma__bits_find(segment->committed, from, to, true);
        if (*at == to) return false;
        *end = onuma__bits_find(segment->committed, *at, to, false);
        if (what == RETURN) return true;
        *at = onuma__bits_find(segment->discarded, *at, *end, false);
        if (*at == *end) continue;
        *end = onuma__bits_find(segment->discarded, *at, *end, true);
        return true;
    }
}

/*
 * Under the lock: such a stretch wholly inside a node, marked as moving, so that nobody takes it meanwhile; at most
 * `most` pages, from the high end.
 */
static bool mark_run(const onuma__node *node, fate what, size_t most, size_t *from, size_t *to) {
    onuma__segment *segment = node->segment;
    const size_t offset = node->base - (uintptr_t)segment->span.base;
    /* What was trimmed off the span's ends is nobody's: it goes with the first and the last node. */
    const size_t low = node->before == NULL ? 0 : (offset + segment->page - 1) / segment->page;
    size_t high = node->after == NULL ? segment->pages : (offset + node->size) / segment->page;
    if (high > segment->committed_end) high = segment->committed_end;
    size_t at, end;
    if (low >= high || !next_committed(segment, what, low, high, &at, &end)) return false;
    if (end - at > most) at = end - most;
    onuma__bits_assign(segment->committed, at, end, false);
    onuma__bits_assign(segment->moving, at, end, true);
    segment->committed_pages -= end - at;
    *from = at;
    *to = end;
    return true;
}

/* Under the lock: some such stretch, in the largest free nodes first. */
static onuma__segment *find_run(onuma__engine *engine, fate what, size_t most, size_t *from, size_t *to) {
    const onuma__index *index = engine->zero.indexes[ONUMA__SORT_SMALL];
    for (uint32_t list = ONUMA__INDEX_LEVELS * ONUMA__INDEX_SUBS;
         (list = onuma__index_previous_list(index, list)) != UINT32_MAX;) {
        onuma__node *node = index->lists[list / ONUMA__INDEX_SUBS][list % ONUMA__INDEX_SUBS];
        for (; node != NULL; node = node->next)
            if (mark_run(node, what, most, from, to)) return node->segment;
    }
    return NULL;
}

/* Without the lock: the source's part. */
static onuma_result carry_out(const onuma__engine *engine, const onuma__segment *segment, fate what, size_t from,
                              size_t to) {
    const onuma__source *source = &engine->source;
    return (what == RETURN ? source->decommit : source->discard)(source->self, &segment->span, from * segment->page,
                                                                 (to - from) * segment->page);
}

/* Under the lock, which is let go of meanwhile: find a stretch and give it its fate. Bytes; 0: there is none, or the source refused. */
static size_t dispose(onuma__engine *engine, fate what, size_t bytes) {
    size_t from, to;
    onuma__segment *segment = find_run(engine, what, (bytes + engine->page - 1) / engine->page, &from, &to);
    if (segment == NULL) return 0;
    onuma__os_lock_release(&engine->lock);
    const onuma_result r = carry_out(engine, segment, what, from, to);
    onuma__os_lock_acquire(&engine->lock);
    onuma__bits_assign(segment->moving, from, to, false);
    if (what == RETURN && r == ONUMA_OK) {
        forget_discarded(engine, segment, from, to);
        return (to - from) * segment->page;
    }
    onuma__bits_assign(segment->committed, from, to, true);
    segment->committed_pages += to - from;
    if (r != ONUMA_OK) return 0;
    onuma__bits_assign(segment->discarded, from, to, true);
    engine->discarded_pages += to - from;
    return (to - from) * segment->page;
}

size_t onuma__segment_reclaim(onuma__engine *engine, size_t bytes) {
    size_t given = 0, run = 1;
    onuma__os_lock_acquire(&engine->lock);
    while (given < bytes && (run = dispose(engine, RETURN, bytes - given)) != 0) {
        given += run;
        onuma__gauge_add(&engine->reserved, -(int64_t)run);
        atomic_fetch_add_explicit(&engine->decommits, 1, memory_order_relaxed);
    }
    onuma__os_lock_release(&engine->lock);
    return given;
}

size_t onuma__segment_discard(onuma__engine *engine, size_t keep) {
    size_t given = 0, run = 1;
    if (engine->source.discard == NULL) return 0;
    onuma__os_lock_acquire(&engine->lock);
    while (run != 0) {
        const size_t reserved = (size_t)atomic_load_explicit(&engine->reserved.now, memory_order_relaxed);
        const size_t kept = keep + engine->discarded_pages * engine->page;
        if (reserved <= kept) break;
        run = dispose(engine, DISCARD, reserved - kept);
        given += run;
    }
    onuma__os_lock_release(&engine->lock);
    return given;
}
