/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/trim.h"

#include "pool/node.h"
#include "pool/segment.h"
#include "pool/slab.h"
#include "pool/stats.h"

static bool is_empty(const onuma__segment *segment) {
    const onuma__node *node = segment->first;
    return node->state == ONUMA__NODE_FREE && node->tag == 0 && node->size == segment->size;
}

/* Give back the oldest wholly free segment of at most so many bytes. How many it had; 0: there is none. Called without
 * the lock. */
static size_t release_one(onuma__engine *engine, size_t most) {
    onuma__os_lock_acquire(&engine->lock);
    onuma__segment *segment = engine->segments;
    while (segment != NULL && (segment->span.size > most || !is_empty(segment)))
        segment = segment->next;
    if (segment != NULL) {
        onuma__node_forget(engine, segment);
        onuma__segment_unlink(engine, segment);
    }
    onuma__os_lock_release(&engine->lock);
    if (segment == NULL) return 0;
    const onuma__span span = segment->span;
    onuma__segment_destroy(segment);
    engine->source.release(engine->source.self, &span, 0);
    onuma__gauge_add(&engine->reserved, -(int64_t)span.size);
    atomic_fetch_add_explicit(&engine->segment_frees, 1, memory_order_relaxed);
    return span.size;
}

static uint64_t reserved(const onuma__engine *engine) {
    return atomic_load_explicit(&engine->reserved.now, memory_order_relaxed);
}

void onuma__trim_before_growth(onuma__engine *engine, size_t more) {
    const uint64_t peak = atomic_load_explicit(&engine->totals.in_use.peak, memory_order_relaxed);
    const uint64_t now = atomic_load_explicit(&engine->totals.in_use.now, memory_order_relaxed) + more;
    const uint64_t live = peak > now ? peak : now;
    while (reserved(engine) + more > live + live / 32 && release_one(engine, SIZE_MAX) != 0) {
    }
}

/* What is free for all, until at most `keep` bytes are reserved. `exactly`: of segments none that would leave less. */
static size_t give_back(onuma__engine *engine, size_t keep, bool exactly) {
    size_t given = 0;
    for (uint64_t held; (held = reserved(engine)) > keep;) {
        const size_t excess = (size_t)(held - keep);
        const size_t bytes =
            engine->range ? onuma__segment_reclaim(engine, excess) : release_one(engine, exactly ? excess : SIZE_MAX);
        if (bytes == 0) break;
        given += bytes;
    }
    return given;
}

size_t onuma__engine_trim(onuma__engine *engine, size_t keep) {
    if (reserved(engine) > keep) onuma__engine_take_caches(engine);
    return give_back(engine, keep, false);
}

size_t onuma__engine_shrink(onuma__engine *engine, size_t keep_filled, size_t keep) {
    const size_t given = give_back(engine, keep, true);
    if (engine->range) (void)onuma__segment_discard(engine, keep_filled);
    return given;
}

static bool take_cache(onuma__heap *heap) {
    onuma__slab_drain(heap);
    bool any = onuma__front_flush(heap, 0);
    (void)onuma__trays_flush(heap);
    any |= onuma__arena_retire_empty(&heap->arena);
    return onuma__slab_retire_empty(heap) || any;
}

bool onuma__engine_take_caches(onuma__engine *engine) {
    return onuma__heaps_visit(engine, take_cache);
}
