/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segments: spans of the source, and in range mode which of their pages are
 * committed.
 *
 * A page's state is changed under the engine's lock, but the source is called
 * without it: the thread that wants a change marks the page `moving`, lets go
 * of the lock, calls, and sets the outcome. Whoever needs a page that moves
 * waits for it by yielding (onuma__segment_settle), with no lock held.
 */
#ifndef ONUMA_POOL_SEGMENT_H
#define ONUMA_POOL_SEGMENT_H

#include "pool/engine.h"

/* Make a segment of a span and put it into the directory: no memory of it is free yet. Without the lock. */
onuma_result onuma__segment_create(onuma__engine *engine, const onuma__span *span, unsigned sort, onuma__segment **out);
/* Take it out of the directory and forget it. Not linked any more. Without the lock. */
void onuma__segment_destroy(onuma__segment *segment);

/* Under the lock. */
void onuma__segment_link(onuma__engine *engine, onuma__segment *segment);
void onuma__segment_unlink(onuma__engine *engine, onuma__segment *segment);

/* Bytes usable of a span: what remains when it is trimmed to whole units. */
size_t onuma__segment_usable(const onuma__engine *engine, const onuma__span *span, uintptr_t *base);

/* Under the lock: pages in [base, base+size) that are not committed (moving ones are not); 0 in segments mode. */
static inline size_t onuma__segment_new_pages(const onuma__segment *segment, uintptr_t base, size_t size) {
    if (segment->committed == NULL) return 0;
    const size_t offset = base - (uintptr_t)segment->span.base;
    const size_t from = offset / segment->page, to = (offset + size - 1) / segment->page + 1;
    return to - from - onuma__bits_count(segment->committed, from, to);
}

/* Range mode, under the lock: how many of the `size` bytes from `base` on lie on pages that are like the first, and whether
 * those are committed. */
size_t onuma__segment_run(const onuma__segment *segment, uintptr_t base, size_t size, bool *committed);

/*
 * Commit every page of a taken node, waiting for those that other threads move; and if its end is among them, in the
 * same call pages that follow, up to `beyond` bytes, as far as they are free. Called and returns with the lock
 * held, and lets go of it in between. The source's result; on failure pages committed so far stay so.
 */
onuma_result onuma__segment_commit(onuma__engine *engine, onuma__node *node, size_t beyond);

/*
 * Decommit committed pages that lie wholly within free memory of tag 0, the largest stretches first, until `bytes` are given back.
 * Called without the lock. Returns how many were.
 */
size_t onuma__segment_reclaim(onuma__engine *engine, size_t bytes);

/*
 * The same pages, but kept: the contents of as many are discarded that at most `keep` bytes are reserved and not
 * discarded. Called without the lock. Returns how many bytes were.
 */
size_t onuma__segment_discard(onuma__engine *engine, size_t keep);

/* Bytes of metadata that serve a segment, its share of the page map included. Under the lock. */
size_t onuma__segment_metadata(const onuma__segment *segment);
/* A node has been taken: its pages hold something again, and all memory up to its end counts as touched. Under the lock. */
void onuma__segment_note_taken(onuma__engine *engine, const onuma__node *node);

#endif
