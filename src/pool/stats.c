/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/stats.h"

#include "pool/segment.h"
#include "pool/slab.h"

static uint64_t now_of(const onuma__gauge *gauge) {
    return atomic_load_explicit(&gauge->now, memory_order_relaxed);
}

void onuma__count(onuma__engine *engine, int64_t bytes, int64_t requested, int64_t allocs, int64_t frees) {
    onuma__totals *totals = &engine->totals;
    if (bytes != 0) onuma__gauge_add(&totals->in_use, bytes);
    if (bytes > 0) {
        const uint64_t now = now_of(&totals->in_use);
        if ((int64_t)now > 0) onuma__peak_raise(&totals->in_use_lately, now);
    }
    if (requested != 0) onuma__gauge_add(&totals->requested, requested);
    if (allocs != frees) onuma__gauge_add(&totals->blocks, allocs - frees);
    if (allocs != 0) atomic_fetch_add_explicit(&totals->allocs, (uint64_t)allocs, memory_order_relaxed);
    if (frees != 0) atomic_fetch_add_explicit(&totals->frees, (uint64_t)frees, memory_order_relaxed);
}

static int64_t take(_Atomic int64_t *counter) {
    const int64_t value = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, 0, memory_order_relaxed);
    return value;
}

void onuma__heap_flush(onuma__heap *heap) {
    const int64_t allocs = take(&heap->allocs), frees = take(&heap->frees);
    onuma__count(heap->engine, take(&heap->bytes), take(&heap->requested), allocs, frees);
}

void onuma__heap_flush_trays(onuma__heap *heap) {
    for (unsigned c = 0; c < heap->engine->classes.count; c++) {
        _Atomic uint64_t *state = &heap->trays[c].state;
        const uint64_t seen = atomic_load_explicit(state, memory_order_relaxed);
        const int64_t taken = (int64_t)(seen / ONUMA__TRAY_TAKEN);
        atomic_store_explicit(state, onuma__tray_filled(seen), memory_order_relaxed);
        if (taken != 0) onuma__count(heap->engine, 0, 0, taken, taken);
    }
}

/* What heaps have counted and not yet moved to the totals, less what the totals have and fronts keep. */
typedef struct uncounted {
    int64_t bytes, requested, allocs, frees;
    int64_t pending; /* kept of queues' tags */
} uncounted;

/* Blocks in trays are dead, though counted as allocated and not as freed. */
static void add_trays(const onuma__heap *heap, uncounted *sum) {
    for (unsigned c = 0; c < heap->engine->classes.count; c++) {
        const onuma__tray *tray = &heap->trays[c];
        const uint64_t state = atomic_load_explicit(&tray->state, memory_order_relaxed);
        const int64_t taken = (int64_t)(state / ONUMA__TRAY_TAKEN);
        const int64_t count = onuma__tray_filled(state) / (int64_t)ONUMA__TRAY_ITEM;
        sum->allocs += taken;
        sum->frees += taken + count;
        sum->bytes -= count * tray->size;
    }
}

static uncounted sum_heaps(onuma__engine *engine) {
    uncounted sum = {0};
    onuma__os_lock_acquire(&engine->heaps_lock);
    for (onuma__heap *heap = engine->heaps; heap != NULL; heap = heap->next) {
        const int64_t kept = atomic_load_explicit(&heap->front.bytes, memory_order_relaxed);
        if (heap->tag != 0) sum.pending += kept;
        sum.bytes += atomic_load_explicit(&heap->bytes, memory_order_relaxed) - kept;
        sum.bytes -= atomic_load_explicit(&heap->arena.free_bytes, memory_order_relaxed);
        sum.requested += atomic_load_explicit(&heap->requested, memory_order_relaxed);
        sum.allocs += atomic_load_explicit(&heap->allocs, memory_order_relaxed);
        sum.frees += atomic_load_explicit(&heap->frees, memory_order_relaxed);
        add_trays(heap, &sum);
    }
    onuma__os_lock_release(&engine->heaps_lock);
    return sum;
}

/* A gauge's present value and its peak, which that value may raise. */
static void read_gauge(onuma__gauge *gauge, int64_t uncounted_part, uint64_t *now, uint64_t *peak) {
    const int64_t value = (int64_t)now_of(gauge) + uncounted_part;
    *now = value > 0 ? (uint64_t)value : 0;
    onuma__peak_raise(&gauge->peak, *now);
    *peak = atomic_load_explicit(&gauge->peak, memory_order_relaxed);
}

static void set_gauge(onuma__gauge *gauge, uint64_t now) {
    atomic_store_explicit(&gauge->now, now, memory_order_relaxed);
    onuma__peak_raise(&gauge->peak, now);
}

void onuma__note_metadata(onuma__engine *engine) {
    const size_t index = (engine->range ? 1 : ONUMA__SORTS) * sizeof(onuma__index);
    set_gauge(&engine->metadata,
              sizeof *engine + atomic_load_explicit(&engine->heap_count, memory_order_relaxed) * sizeof(onuma__heap) +
                  engine->node_count * sizeof(onuma__node) + engine->slab_bytes + engine->segment_metadata +
                  engine->tag_count * sizeof(onuma__tag_state) + (engine->tag_count + 1) * index +
                  atomic_load_explicit(&engine->arena_bytes, memory_order_relaxed));
}

void onuma__note_cached(onuma__engine *engine) {
    const uint64_t reserved = now_of(&engine->reserved);
    const uint64_t used = now_of(&engine->totals.in_use) + now_of(&engine->pending);
    set_gauge(&engine->cached, reserved > used ? reserved - used : 0);
}

void onuma__engine_get_stats(onuma__engine *engine, onuma_pool_stats *out) {
    const uncounted sum = sum_heaps(engine);
    onuma__os_lock_acquire(&engine->lock);
    onuma__note_metadata(engine);
    onuma__os_lock_release(&engine->lock);
    onuma__totals *totals = &engine->totals;
    read_gauge(&totals->in_use, sum.bytes, &out->in_use_bytes, &out->in_use_bytes_peak);
    read_gauge(&totals->requested, sum.requested, &out->requested_bytes, &out->requested_bytes_peak);
    read_gauge(&totals->blocks, sum.allocs - sum.frees, &out->in_use_blocks, &out->in_use_blocks_peak);
    read_gauge(&engine->reserved, 0, &out->reserved_bytes, &out->reserved_bytes_peak);
    read_gauge(&engine->pending, sum.pending, &out->pending_bytes, &out->pending_bytes_peak);
    read_gauge(&engine->metadata, 0, &out->metadata_bytes, &out->metadata_bytes_peak);
    const uint64_t used = out->in_use_bytes + out->pending_bytes;
    set_gauge(&engine->cached, out->reserved_bytes > used ? out->reserved_bytes - used : 0);
    read_gauge(&engine->cached, 0, &out->cached_bytes, &out->cached_bytes_peak);
    out->alloc_count = atomic_load_explicit(&totals->allocs, memory_order_relaxed) + (uint64_t)sum.allocs;
    out->free_count = atomic_load_explicit(&totals->frees, memory_order_relaxed) + (uint64_t)sum.frees;
    out->segment_alloc_count = atomic_load_explicit(&engine->segment_allocs, memory_order_relaxed);
    out->segment_free_count = atomic_load_explicit(&engine->segment_frees, memory_order_relaxed);
    out->commit_count = atomic_load_explicit(&engine->commits, memory_order_relaxed);
    out->decommit_count = atomic_load_explicit(&engine->decommits, memory_order_relaxed);
    out->oom_retry_count = 0;
    out->alloc_failure_count = 0;
}

uint64_t onuma__engine_peak_lately(onuma__engine *engine) {
    const uint64_t now = now_of(&engine->totals.in_use);
    const uint64_t lately =
        atomic_exchange_explicit(&engine->totals.in_use_lately, (int64_t)now > 0 ? now : 0, memory_order_relaxed);
    /* Of what lies in caches as much was there before, or was in use: taken off as it is now. */
    onuma_pool_stats stats = ONUMA_POOL_STATS_INIT;
    onuma__engine_get_stats(engine, &stats);
    const uint64_t cached = now > stats.in_use_bytes ? now - stats.in_use_bytes : 0;
    const uint64_t peak = lately > cached ? lately - cached : 0;
    return peak > stats.in_use_bytes ? peak : stats.in_use_bytes;
}

void onuma__engine_reset_peak(onuma__engine *engine) {
    onuma_pool_stats now = ONUMA_POOL_STATS_INIT;
    onuma__engine_get_stats(engine, &now);
    atomic_store_explicit(&engine->totals.in_use.peak, now.in_use_bytes, memory_order_relaxed);
    atomic_store_explicit(&engine->totals.requested.peak, now.requested_bytes, memory_order_relaxed);
    atomic_store_explicit(&engine->totals.blocks.peak, now.in_use_blocks, memory_order_relaxed);
    atomic_store_explicit(&engine->reserved.peak, now.reserved_bytes, memory_order_relaxed);
    atomic_store_explicit(&engine->pending.peak, now.pending_bytes, memory_order_relaxed);
    atomic_store_explicit(&engine->metadata.peak, now.metadata_bytes, memory_order_relaxed);
    atomic_store_explicit(&engine->cached.peak, now.cached_bytes, memory_order_relaxed);
}
