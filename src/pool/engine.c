/* SPDX-License-Identifier: Apache-2.0 */
/* Engines: their making and their end, and the ways of an allocation and of a free. */
#include "pool/engine.h"

#include "pool/directory.h"
#include "pool/fork.h"
#include "pool/grow.h"
#include "pool/large.h"
#include "pool/node.h"
#include "pool/segment.h"
#include "pool/slot.h"
#include "pool/stable.h"
#include "pool/stats.h"

#include <stddef.h>
#include <stdlib.h>

#define MIB ((size_t)1 << 20)
#define CHUNK_BYTES (2 * MIB)
#define RANGE_BYTES (65536 * MIB) /* addresses cost nothing, and one range leaves no seams */

static onuma__stable engines = {.item = (sizeof(onuma__engine) + 63) / 64 * 64,
                                .link = offsetof(onuma__engine, spare_link)};

/* ---------------------------------------------------------- making, ending */

/* Sizes of segments and what goes into them: facts of many traces, see docs/allocator.md. */
static void choose_sizes(onuma__engine *engine, const onuma__engine_desc *desc) {
    onuma__sort_sizes *sorts = engine->sorts;
    sorts[ONUMA__SORT_SMALL] = (onuma__sort_sizes){.block = MIB / 4, .segment = 4 * MIB};
    sorts[ONUMA__SORT_MEDIUM] =
        (onuma__sort_sizes){.block = 2 * MIB, .segment = 8 * MIB, .block_share = 96, .segment_share = 32};
    sorts[ONUMA__SORT_OWN] = (onuma__sort_sizes){.block = SIZE_MAX, .segment = 0};
    if (desc->segment_bytes != 0) {
        /* The user's size serves both sorts that share, so there is only one. */
        size_t segment;
        if (!onuma__align_up(desc->segment_bytes, ONUMA__PAGE, &segment)) segment = ONUMA__ABSURD;
        const size_t block = onuma__align_down(segment / 16, engine->unit);
        sorts[ONUMA__SORT_SMALL] = sorts[ONUMA__SORT_MEDIUM] = (onuma__sort_sizes){.block = block, .segment = segment};
    }
    if (desc->max_segment == 0) return;
    const size_t most = onuma__align_down(desc->max_segment, ONUMA__PAGE);
    for (unsigned sort = 0; sort < ONUMA__SORT_OWN; sort++) {
        if (sorts[sort].segment > most) sorts[sort].segment = most;
        if (sorts[sort].block > most / 4) sorts[sort].block = onuma__align_down(most / 4, engine->unit);
    }
}

static void clear_gauge(onuma__gauge *gauge) {
    atomic_store_explicit(&gauge->now, 0, memory_order_relaxed);
    atomic_store_explicit(&gauge->peak, 0, memory_order_relaxed);
}

static void clear_statistics(onuma__engine *engine) {
    onuma__gauge *const gauges[] = {&engine->totals.in_use, &engine->totals.requested, &engine->totals.blocks,
                                    &engine->reserved,      &engine->pending,          &engine->metadata,
                                    &engine->cached};
    for (size_t i = 0; i < sizeof gauges / sizeof gauges[0]; i++)
        clear_gauge(gauges[i]);
    _Atomic uint64_t *const counters[] = {&engine->totals.allocs,       &engine->totals.frees, &engine->segment_allocs,
                                          &engine->segment_frees,       &engine->commits,      &engine->decommits,
                                          &engine->totals.in_use_lately};
    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++)
        atomic_store_explicit(counters[i], 0, memory_order_relaxed);
}

static onuma_result check_desc(const onuma__engine_desc *desc) {
    if (!onuma__is_power_of_two(desc->alignment) || desc->alignment < 16)
        return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "alignment %zu: must be a power of two, at least 16",
                           desc->alignment);
    const bool can_range = desc->source.reserve != NULL && desc->source.commit != NULL && desc->source.decommit != NULL;
    if (desc->mode == ONUMA_SOURCE_RANGE && !can_range)
        return onuma__fail(ONUMA_ERROR_NOT_SUPPORTED,
                           "this device cannot reserve addresses apart from memory; use segments");
    if (desc->mode != ONUMA_SOURCE_RANGE && (desc->mode != ONUMA_SOURCE_SEGMENTS || desc->source.acquire == NULL))
        return onuma__fail(ONUMA_ERROR_NOT_SUPPORTED, "source %u: must be range or segments, and the device have it",
                           desc->mode);
    return ONUMA_OK;
}

onuma_result onuma__engine_create(const onuma__engine_desc *desc, onuma__engine **out) {
    static _Atomic uint64_t last_id;
    *out = NULL;
    onuma_result r = check_desc(desc);
    if (r != ONUMA_OK) return r;
    onuma__heaps_start();
    onuma__fork_start();
    onuma__engine *engine = onuma__stable_take(&engines);
    if (engine == NULL) return ONUMA_ERROR_OUT_OF_MEMORY;
    engine->source = desc->source;
    engine->owner = desc->owner;
    engine->alignment = desc->alignment;
    engine->unit = desc->alignment > ONUMA__UNIT ? desc->alignment : ONUMA__UNIT;
    engine->max_segment = desc->max_segment;
    engine->cache_bytes = desc->cache_bytes;
    engine->range = desc->mode == ONUMA_SOURCE_RANGE;
    engine->exact_peaks = desc->exact_peaks;
    engine->front_bytes = desc->exact_peaks ? 0 : desc->cache_bytes;
    engine->page = desc->source.page > ONUMA__PAGE ? desc->source.page : ONUMA__PAGE;
    engine->chunk_bytes = desc->chunk_bytes != 0 ? desc->chunk_bytes : CHUNK_BYTES;
    engine->range_bytes = RANGE_BYTES;
    if (desc->source.longest_range != 0 && desc->source.longest_range < RANGE_BYTES)
        engine->range_bytes = onuma__align_down(desc->source.longest_range, engine->page);
    if (desc->segment_bytes != 0 && !onuma__align_up(desc->segment_bytes, engine->page, &engine->range_bytes))
        engine->range_bytes = RANGE_BYTES;
    choose_sizes(engine, desc);
    onuma__classes_init(&engine->classes, desc->alignment);
    engine->segments = engine->last_segment = NULL;
    engine->segment_number = 0;
    for (unsigned i = 0; i < ONUMA__TAG_BUCKETS; i++)
        engine->tags[i] = NULL;
    engine->zero = (onuma__tag_state){0};
    engine->epoch = 1;
    engine->stranded = engine->freed_unnoted = engine->alert = engine->discarded_pages = 0;
    engine->node_count = engine->slab_bytes = engine->tag_count = engine->segment_metadata = 0;
    for (unsigned sort = 0; sort < ONUMA__SORTS; sort++)
        engine->growing[sort] = false;
    atomic_store_explicit(&engine->arena_bytes, 0, memory_order_relaxed);
    atomic_store_explicit(&engine->misaligned, false, memory_order_relaxed);
    atomic_store_explicit(&engine->tolerated, 0, memory_order_relaxed);
    atomic_store_explicit(&engine->due, false, memory_order_relaxed);
    clear_statistics(engine);
    for (unsigned sort = 0; sort < (engine->range ? 1u : (unsigned)ONUMA__SORTS); sort++) {
        engine->zero.indexes[sort] = calloc(1, sizeof(onuma__index));
        if (engine->zero.indexes[sort] == NULL) {
            r = onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "out of memory for a pool's index");
            goto give_back;
        }
    }
    atomic_store_explicit(&engine->id, atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1,
                          memory_order_release);
    onuma__fork_enter(engine);
    *out = engine;
    return ONUMA_OK;

give_back:
    for (unsigned sort = 0; sort < ONUMA__SORTS; sort++)
        free(engine->zero.indexes[sort]);
    onuma__stable_give(&engines, engine);
    return r;
}

void onuma__engine_destroy(onuma__engine *engine) {
    if (engine == NULL) return;
    onuma__fork_leave(engine);
    onuma__heaps_forget_chunks(engine);
    while (engine->segments != NULL) {
        onuma__segment *segment = engine->segments;
        onuma__os_lock_acquire(&engine->lock);
        for (onuma__node *node = segment->first; node != NULL; node = node->after)
            if (node->state == ONUMA__NODE_SLAB) onuma__slab_forget(engine, node->slab);
        onuma__node_forget(engine, segment);
        onuma__segment_unlink(engine, segment);
        onuma__os_lock_release(&engine->lock);
        const onuma__span span = segment->span;
        const size_t committed = segment->committed_pages * segment->page;
        onuma__segment_destroy(segment);
        engine->source.release(engine->source.self, &span, committed);
    }
    onuma__heaps_finish(engine);
    onuma__os_lock_acquire(&engine->lock);
    onuma__tags_finish(engine);
    onuma__node_finish(engine);
    atomic_store_explicit(&engine->id, 0, memory_order_relaxed);
    onuma__os_lock_release(&engine->lock);
    onuma__stable_give(&engines, engine);
}

/* --------------------------------------------------------------- allocating */

/* What a request comes to: a class of small blocks, or a large block of some alignment. */
typedef struct request {
    size_t align;         /* a large block's */
    bool strict;          /* more than the pool's was asked for */
    unsigned class_index; /* classes.count: large */
} request;

static onuma_result understand(const onuma__engine *engine, size_t size, size_t align, request *q) {
    q->class_index = engine->classes.count;
    if (align == 0) align = engine->alignment;
    if (!onuma__is_power_of_two(align))
        return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "alignment %zu: must be 0 or a power of two", align);
    if (align < engine->alignment) align = engine->alignment;
    q->strict = align > engine->alignment;
    if (align <= ONUMA__UNIT) q->class_index = onuma__class_aligned(&engine->classes, size != 0 ? size : 1, align);
    q->align = align > engine->unit ? align : engine->unit;
    if (size > ONUMA__ABSURD || q->align > ONUMA__ABSURD)
        return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "%zu bytes aligned to %zu: no system has as much", size, align);
    return ONUMA_OK;
}

/* The owner, busy, when no slab of the class has a slot: what others freed, else a new slab from what is free. */
ONUMA__COLD static onuma_result refill(onuma__heap *heap, unsigned class_index, size_t size, void **out) {
    onuma__engine *engine = heap->engine;
    onuma__slab_drain(heap);
    *out = onuma__slab_alloc(heap, class_index, size);
    if (*out != NULL) return ONUMA_OK;
    onuma_result r;
    bool flushed = false;
    do {
        onuma__node *node;
        onuma__os_lock_acquire(&engine->lock);
        r = onuma__node_take(engine, engine->classes.slab_bytes[class_index], engine->unit, heap->tag,
                             ONUMA__TAKE_READY, &node);
        if (r == ONUMA_OK) {
            r = onuma__slab_make(heap, node, class_index);
            if (r != ONUMA_OK) onuma__node_give(engine, node, node->epoch == 0);
        }
        onuma__os_lock_release(&engine->lock);
        if (r == ONUMA__MISS && !flushed) flushed = onuma__trays_flush(heap);
    } while (r == ONUMA__MISS && onuma__slab_retire_empty(heap));
    if (r == ONUMA_OK) *out = onuma__slab_alloc(heap, class_index, size);
    return r;
}

static inline void *alloc_at_hand(onuma__heap *heap, unsigned class_index, size_t size) {
    void *block;
    return onuma__tray_take(heap, &heap->trays[class_index], size, &block) ? block
                                                                           : onuma__slab_alloc(heap, class_index, size);
}

static inline onuma_result alloc_small(onuma__heap *heap, unsigned class_index, size_t size, void **out) {
    onuma_result r = ONUMA_OK;
    onuma__heap_enter(heap);
    *out = alloc_at_hand(heap, class_index, size);
    if (ONUMA__UNLIKELY(*out == NULL)) r = refill(heap, class_index, size, out);
    onuma__heap_leave(heap);
    return r;
}

/* A small block that was just allocated: what a move of it has to keep. */
static void remember_alignment(const request *q, const void *block) {
    if (q->strict && block != NULL)
        onuma__slab_set_aligned(onuma__entry_slab(onuma__pagemap_get((uintptr_t)block)), (uintptr_t)block);
}

/* Requests that need understanding: large, aligned, or wrong. */
ONUMA__COLD static onuma_result alloc_other(onuma__engine *engine, size_t size, size_t align, onuma__tag tag,
                                            void **out) {
    request q;
    *out = NULL;
    const onuma_result r = understand(engine, size, align, &q);
    if (r != ONUMA_OK) return r;
    onuma__heap *heap = q.class_index < engine->classes.count ? onuma__heap_get(engine, tag) : NULL;
    if (heap == NULL) return onuma__large_alloc(engine, size, q.align, q.strict, tag, out);
    const onuma_result allocated = alloc_small(heap, q.class_index, size, out);
    if (allocated == ONUMA_OK) remember_alignment(&q, *out);
    return allocated;
}

bool onuma__engine_alloc_again(const void *key, size_t size, onuma__tag tag, void **out) {
    const onuma__os_thread *thread = onuma__os_thread_get();
    onuma__heap *heap = thread->heap;
    /* The heap may be another engine's by now, or nobody's: then it has not that key. Relaxed: its own thread wrote it,
     * and who clears it does so before the key means nothing. */
    if (ONUMA__UNLIKELY(thread->key != key || heap->tag != tag ||
                        atomic_load_explicit(&heap->key, memory_order_relaxed) != key))
        return false;
    if (size - 1 >= ONUMA__SMALL_MAX) return onuma__large_alloc_again(heap, size, out);
    onuma__heap_enter(heap);
    void *block = alloc_at_hand(heap, onuma__class_of(heap->class_shift, size), size);
    onuma__heap_leave(heap);
    *out = block;
    return ONUMA__LIKELY(block != NULL);
}

void onuma__engine_remember(onuma__engine *engine, const void *key, onuma__tag tag) {
    onuma__os_thread *thread = onuma__os_thread_get();
    onuma__heap *heap = engine->classes.count != 0 ? onuma__heap_find(engine, tag) : NULL;
    if (heap == NULL) return;
    atomic_store_explicit(&heap->key, key, memory_order_relaxed);
    thread->heap = heap;
    thread->key = key;
}

onuma_result onuma__engine_alloc(onuma__engine *engine, size_t size, size_t align, onuma__tag tag, void **out) {
    if (ONUMA__LIKELY(size <= ONUMA__SMALL_MAX && align <= engine->alignment && (align & (align - 1)) == 0 &&
                      engine->classes.count != 0)) {
        onuma__heap *heap = onuma__heap_get(engine, tag);
        if (ONUMA__LIKELY(heap != NULL))
            return alloc_small(heap, onuma__class_of(engine->classes.shift, size + (size == 0)), size, out);
    }
    if (ONUMA__LIKELY(size > ONUMA__SMALL_MAX && size <= ONUMA__ABSURD && align <= engine->alignment &&
                      (align & (align - 1)) == 0))
        return onuma__large_alloc(engine, size, engine->unit, false, tag, out);
    return alloc_other(engine, size, align, tag, out);
}

onuma_result onuma__engine_grow(onuma__engine *engine, size_t size, size_t align, onuma__tag tag, void **out) {
    request q;
    *out = NULL;
    onuma_result r = understand(engine, size, align, &q);
    if (r != ONUMA_OK) return r;
    onuma__heap *heap = q.class_index < engine->classes.count ? onuma__heap_get(engine, tag) : NULL;
    if (heap == NULL) return onuma__large_grow(engine, size, q.align, q.strict, tag, out);
    onuma__node *node;
    r = onuma__grow_node(engine, engine->classes.slab_bytes[q.class_index], engine->unit, tag, &node);
    if (r != ONUMA_OK) return r;
    onuma__heap_enter(heap);
    onuma__os_lock_acquire(&engine->lock);
    r = onuma__slab_make(heap, node, q.class_index);
    if (r != ONUMA_OK) onuma__node_give(engine, node, node->epoch == 0);
    onuma__os_lock_release(&engine->lock);
    if (r == ONUMA_OK) *out = onuma__slab_alloc(heap, q.class_index, size);
    onuma__heap_leave(heap);
    if (r == ONUMA_OK) remember_alignment(&q, *out);
    return r;
}

/* ------------------------------------------------------------------ freeing */

onuma_result onuma__engine_free(void *ptr, onuma__tag tag, onuma__engine **engine) {
    const uintptr_t address = (uintptr_t)ptr;
    const onuma__entry entry = onuma__pagemap_get(address);
    onuma_result r;
    *engine = NULL;
    if (ONUMA__LIKELY((entry & ONUMA__ENTRY_SORT) == ONUMA__ENTRY_SLAB))
        r = onuma__slab_free(onuma__entry_slab(entry), address, tag, engine);
    else if ((entry & ONUMA__ENTRY_SORT) == ONUMA__ENTRY_NODE)
        r = onuma__large_free(entry, address, tag, engine);
    else
        r = onuma__import_hold(address);
    if (ONUMA__LIKELY(r == ONUMA_OK || r == ONUMA__HELD)) return r;
    *engine = NULL;
    if (r == ONUMA_ERROR_DOUBLE_FREE) return onuma__fail(r, "%p: the block is already free", ptr);
    return onuma__fail(r, "%p: no live block starts there; free the pointer that the allocation gave", ptr);
}

static void release(onuma__engine *engine, void *ptr, bool for_all) {
    const uintptr_t address = (uintptr_t)ptr;
    const onuma__entry entry = onuma__pagemap_get(address);
    if ((entry & ONUMA__ENTRY_SORT) == ONUMA__ENTRY_SLAB) {
        onuma__slab_release(onuma__entry_slab(entry), address);
        return;
    }
    if ((entry & ONUMA__ENTRY_SORT) == ONUMA__ENTRY_NODE) onuma__large_release(engine, entry, address, for_all);
}

void onuma__engine_release(onuma__engine *engine, void *ptr) {
    release(engine, ptr, true);
}

void onuma__engine_release_own(onuma__engine *engine, void *ptr) {
    release(engine, ptr, false);
}

/* ------------------------------------------------------- live blocks in place */

static onuma_result check_found(onuma_result r, const void *base) {
    return r != ONUMA_ERROR_INVALID_POINTER ? r : onuma__fail(r, "%p: no live block of a pool starts there", base);
}

onuma_result onuma__engine_resize(void *base, size_t size) {
    const uintptr_t address = (uintptr_t)base;
    const onuma__entry entry = onuma__pagemap_get(address);
    onuma_result r = ONUMA_ERROR_INVALID_POINTER;
    if ((entry & ONUMA__ENTRY_SORT) == ONUMA__ENTRY_SLAB)
        r = onuma__slab_resize(onuma__entry_slab(entry), address, size);
    else if ((entry & ONUMA__ENTRY_SORT) == ONUMA__ENTRY_NODE)
        r = onuma__large_resize(entry, address, size);
    return check_found(r, base);
}

onuma_result onuma__engine_set_special(void *base, bool special) {
    const uintptr_t address = (uintptr_t)base;
    const onuma__entry entry = onuma__pagemap_get(address);
    onuma_result r = ONUMA_ERROR_INVALID_POINTER;
    if ((entry & ONUMA__ENTRY_SORT) == ONUMA__ENTRY_SLAB)
        r = onuma__slab_set_special(onuma__entry_slab(entry), address, special);
    else if ((entry & ONUMA__ENTRY_SORT) == ONUMA__ENTRY_NODE)
        r = onuma__large_set_special(entry, address, special);
    else if (onuma__directory_find(address).is_import)
        return ONUMA_OK; /* frees of an import are held anyway */
    return check_found(r, base);
}
