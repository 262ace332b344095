/* SPDX-License-Identifier: Apache-2.0 */
/* Engines: their making and their end, and the ways of an allocation and of a free. */
#include "pool/engine.h"

#include "pool/directory.h"
#include "pool/fork.h"
#include "pool/grow.h"
#include "pool/node.h"
#include "pool/segment.h"
#include "pool/slab.h"
#include "pool/stable.h"
#include "pool/stats.h"

#include <stddef.h>
#include <stdlib.h>

#define MIB ((size_t)1 << 20)
#define RANGE_BYTES (65536 * MIB)                      /* addresses cost nothing, and one range leaves no seams */
#define ABSURD ((size_t)1 << (sizeof(size_t) * 8 - 4)) /* no system has as much; keeps sums from overflowing */

static onuma__stable engines = {.item = (sizeof(onuma__engine) + 63) / 64 * 64,
                                .link = offsetof(onuma__engine, spare_link)};

/* ---------------------------------------------------------- making, ending */

/* Sizes of segments and what goes into them: facts of many traces, see docs/allocator.md. */
static void choose_sizes(onuma__engine *engine, const onuma__engine_desc *desc) {
    onuma__sort_sizes *sorts = engine->sorts;
    sorts[ONUMA__SORT_SMALL] = (onuma__sort_sizes){.block = MIB / 4, .segment = 4 * MIB};
    sorts[ONUMA__SORT_MEDIUM] = (onuma__sort_sizes){.block = 4 * MIB, .segment = 64 * MIB};
    sorts[ONUMA__SORT_OWN] = (onuma__sort_sizes){.block = SIZE_MAX, .segment = 0};
    if (desc->segment_bytes != 0) {
        /* The user's size serves both sorts that share, so there is only one. */
        size_t segment;
        if (!onuma__align_up(desc->segment_bytes, ONUMA__PAGE, &segment)) segment = ABSURD;
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
    _Atomic uint64_t *const counters[] = {&engine->totals.allocs, &engine->totals.frees, &engine->segment_allocs,
                                          &engine->segment_frees, &engine->commits,      &engine->decommits};
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
    engine->range_bytes = RANGE_BYTES;
    if (desc->segment_bytes != 0 && !onuma__align_up(desc->segment_bytes, ONUMA__PAGE, &engine->range_bytes))
        engine->range_bytes = RANGE_BYTES;
    choose_sizes(engine, desc);
    onuma__classes_init(&engine->classes, desc->alignment);
    engine->segments = engine->last_segment = NULL;
    for (unsigned i = 0; i < ONUMA__TAG_BUCKETS; i++)
        engine->tags[i] = NULL;
    engine->zero = (onuma__tag_state){0};
    engine->epoch = 1;
    engine->node_count = engine->slab_bytes = engine->tag_count = engine->segment_metadata = 0;
    for (unsigned sort = 0; sort < ONUMA__SORTS; sort++)
        engine->growing[sort] = false;
    atomic_store_explicit(&engine->misaligned, false, memory_order_relaxed);
    atomic_store_explicit(&engine->unsettled, false, memory_order_relaxed);
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
    while (engine->segments != NULL) {
        onuma__segment *segment = engine->segments;
        onuma__os_lock_acquire(&engine->lock);
        for (onuma__node *node = segment->first; node != NULL; node = node->after)
            if (node->state == ONUMA__NODE_SLAB) onuma__slab_forget(engine, node->slab);
        onuma__node_forget(engine, segment);
        onuma__segment_unlink(engine, segment);
        onuma__os_lock_release(&engine->lock);
        const onuma__span span = segment->span;
        const size_t committed = segment->committed_pages * ONUMA__PAGE;
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
    unsigned class_index; /* classes.count: large */
} request;

/* Bytes of a large block; `size` is not absurd. */
static size_t large_bytes(const onuma__engine *engine, size_t size) {
    return ((size != 0 ? size : 1) + engine->unit - 1) & ~(engine->unit - 1);
}

static onuma_result understand(const onuma__engine *engine, size_t size, size_t align, request *q) {
    q->class_index = engine->classes.count;
    if (align == 0) align = engine->alignment;
    if (!onuma__is_power_of_two(align))
        return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "alignment %zu: must be 0 or a power of two", align);
    if (align < engine->alignment) align = engine->alignment;
    if (align <= ONUMA__UNIT) q->class_index = onuma__class_aligned(&engine->classes, size != 0 ? size : 1, align);
    q->align = align > engine->unit ? align : engine->unit;
    if (size > ABSURD || q->align > ABSURD)
        return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "%zu bytes aligned to %zu: no system has as much", size, align);
    return ONUMA_OK;
}

/* Under the lock. */
static void *begin_large(onuma__engine *engine, onuma__node *node, size_t requested) {
    onuma__node_publish(node, requested);
    onuma__count(engine, (int64_t)node->size, (int64_t)requested, 1, 0);
    return (void *)node->base; // NOLINT: an address
}

static onuma_result alloc_large(onuma__engine *engine, size_t size, size_t align, onuma__tag tag, void **out) {
    onuma__node *node;
    onuma__os_lock_acquire(&engine->lock);
    const onuma_result r = onuma__node_take(engine, large_bytes(engine, size), align, tag, true, &node);
    if (r == ONUMA_OK) *out = begin_large(engine, node, size);
    onuma__os_lock_release(&engine->lock);
    return r;
}

/* The owner, busy, when no slab of the class has a slot: what others freed, else a new slab from what is free. */
ONUMA__COLD static onuma_result refill(onuma__heap *heap, unsigned class_index, size_t size, void **out) {
    onuma__engine *engine = heap->engine;
    onuma__slab_drain(heap);
    *out = onuma__slab_alloc(heap, class_index, size);
    if (*out != NULL) return ONUMA_OK;
    onuma_result r;
    do {
        onuma__node *node;
        onuma__os_lock_acquire(&engine->lock);
        r = onuma__node_take(engine, engine->classes.slab_bytes[class_index], engine->unit, heap->tag, true, &node);
        if (r == ONUMA_OK) {
            r = onuma__slab_make(heap, node, class_index);
            if (r != ONUMA_OK) onuma__node_give(engine, node, node->epoch == 0);
        }
        onuma__os_lock_release(&engine->lock);
    } while (r == ONUMA__MISS && onuma__slab_retire_empty(heap));
    if (r == ONUMA_OK) *out = onuma__slab_alloc(heap, class_index, size);
    return r;
}

static inline onuma_result alloc_small(onuma__heap *heap, unsigned class_index, size_t size, void **out) {
    onuma_result r = ONUMA_OK;
    onuma__heap_enter(heap);
    *out = onuma__slab_alloc(heap, class_index, size);
    if (ONUMA__UNLIKELY(*out == NULL)) r = refill(heap, class_index, size, out);
    onuma__heap_leave(heap);
    return r;
}

/* Requests that need understanding: large, aligned, or wrong. */
ONUMA__COLD static onuma_result alloc_other(onuma__engine *engine, size_t size, size_t align, onuma__tag tag,
                                            void **out) {
    request q;
    *out = NULL;
    const onuma_result r = understand(engine, size, align, &q);
    if (r != ONUMA_OK) return r;
    onuma__heap *heap = q.class_index < engine->classes.count ? onuma__heap_get(engine, tag) : NULL;
    return heap != NULL ? alloc_small(heap, q.class_index, size, out) : alloc_large(engine, size, q.align, tag, out);
}

onuma_result onuma__engine_alloc(onuma__engine *engine, size_t size, size_t align, onuma__tag tag, void **out) {
    if (ONUMA__LIKELY(size <= ONUMA__SMALL_MAX && align <= engine->alignment && (align & (align - 1)) == 0 &&
                      engine->classes.count != 0)) {
        onuma__heap *heap = onuma__heap_get(engine, tag);
        if (ONUMA__LIKELY(heap != NULL))
            return alloc_small(heap, onuma__class_of(&engine->classes, size + (size == 0)), size, out);
    }
    return alloc_other(engine, size, align, tag, out);
}

onuma_result onuma__engine_grow(onuma__engine *engine, size_t size, size_t align, onuma__tag tag, void **out) {
    request q;
    *out = NULL;
    onuma_result r = understand(engine, size, align, &q);
    if (r != ONUMA_OK) return r;
    onuma__heap *heap = q.class_index < engine->classes.count ? onuma__heap_get(engine, tag) : NULL;
    const size_t bytes = heap != NULL ? engine->classes.slab_bytes[q.class_index] : large_bytes(engine, size);
    onuma__node *node;
    r = onuma__grow_node(engine, bytes, q.align, tag, &node);
    if (r != ONUMA_OK) return r;
    if (heap == NULL) {
        onuma__os_lock_acquire(&engine->lock);
        *out = begin_large(engine, node, size);
        onuma__os_lock_release(&engine->lock);
        return ONUMA_OK;
    }
    onuma__heap_enter(heap);
    onuma__os_lock_acquire(&engine->lock);
    r = onuma__slab_make(heap, node, q.class_index);
    if (r != ONUMA_OK) onuma__node_give(engine, node, node->epoch == 0);
    onuma__os_lock_release(&engine->lock);
    if (r == ONUMA_OK) *out = onuma__slab_alloc(heap, q.class_index, size);
    onuma__heap_leave(heap);
    return r;
}

/* ------------------------------------------------------------------ freeing */

static bool is_block_at(const onuma__node *node, uintptr_t address, const onuma__engine *engine) {
    return atomic_load_explicit(&node->engine, memory_order_relaxed) == engine && node->base == address &&
           (node->state == ONUMA__NODE_LIVE || node->state == ONUMA__NODE_HELD);
}

/* The large block at this very address, its engine's lock taken; NULL (and no lock) if there is none. */
static onuma__node *lock_large(onuma__entry entry, uintptr_t address) {
    onuma__node *node = (onuma__node *)(entry & ~(onuma__entry)ONUMA__ENTRY_SORT);
    onuma__engine *engine = atomic_load_explicit(&node->engine, memory_order_acquire);
    if (engine == NULL) return NULL;
    onuma__os_lock_acquire(&engine->lock);
    if (is_block_at(node, address, engine)) return node;
    onuma__os_lock_release(&engine->lock);
    return NULL;
}

static void unlock_large(const onuma__node *node) {
    onuma__os_lock_release(&atomic_load_explicit(&node->engine, memory_order_relaxed)->lock);
}

static onuma_result free_large(onuma__entry entry, uintptr_t address, onuma__tag tag, onuma__engine **out) {
    onuma__node *node = lock_large(entry, address);
    if (node == NULL) return ONUMA_ERROR_INVALID_POINTER;
    onuma__engine *engine = atomic_load_explicit(&node->engine, memory_order_relaxed);
    onuma_result r = ONUMA_OK;
    *out = engine;
    if (node->state == ONUMA__NODE_HELD) {
        r = ONUMA_ERROR_DOUBLE_FREE;
    } else {
        onuma__count(engine, -(int64_t)node->size, -(int64_t)node->requested, 0, 1);
        if (node->special || onuma__tag_holds(node->tag, tag)) {
            node->state = ONUMA__NODE_HELD;
            onuma__gauge_add(&engine->pending, (int64_t)node->size);
            r = ONUMA__HELD;
        } else {
            onuma__node_withdraw(node);
            onuma__node_give(engine, node, false);
        }
    }
    onuma__os_lock_release(&engine->lock);
    return r;
}

onuma_result onuma__engine_free(void *ptr, onuma__tag tag, onuma__engine **engine) {
    const uintptr_t address = (uintptr_t)ptr;
    const onuma__entry entry = onuma__pagemap_get(address);
    onuma_result r;
    *engine = NULL;
    if (ONUMA__LIKELY((entry & ONUMA__ENTRY_SORT) == ONUMA__ENTRY_SLAB))
        r = onuma__slab_free(onuma__entry_slab(entry), address, tag, engine);
    else if ((entry & ONUMA__ENTRY_SORT) == ONUMA__ENTRY_NODE)
        r = free_large(entry, address, tag, engine);
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
    if ((entry & ONUMA__ENTRY_SORT) != ONUMA__ENTRY_NODE) return;
    onuma__node *node = lock_large(entry, address);
    if (node == NULL) return;
    if (node->state == ONUMA__NODE_HELD && atomic_load_explicit(&node->engine, memory_order_relaxed) == engine) {
        onuma__gauge_add(&engine->pending, -(int64_t)node->size);
        onuma__node_withdraw(node);
        onuma__node_give(engine, node, for_all);
        onuma__os_lock_release(&engine->lock);
        return;
    }
    unlock_large(node);
}

void onuma__engine_release(onuma__engine *engine, void *ptr) {
    release(engine, ptr, true);
}

void onuma__engine_release_own(onuma__engine *engine, void *ptr) {
    release(engine, ptr, false);
}

/* ------------------------------------------------------- live blocks in place */

static onuma_result resize_large(onuma__node *node, size_t size) {
    onuma__engine *engine = atomic_load_explicit(&node->engine, memory_order_relaxed);
    if (node->state != ONUMA__NODE_LIVE) return ONUMA_ERROR_INVALID_POINTER;
    if (size > ABSURD) return ONUMA__MISS;
    const size_t bytes = large_bytes(engine, size), before = node->size;
    onuma_result r = ONUMA_OK;
    if (bytes > before) /* A special block keeps its memory: views and announced uses are of exactly that. */
        r = node->special ? ONUMA__MISS : onuma__node_extend(engine, node, bytes);
    else if (!node->special && (node->tag & ONUMA__TAG_UNORDERED) == 0)
        r = onuma__node_shrink(engine, node, bytes); /* else the end could not be held until markers have passed */
    if (r != ONUMA_OK) return r;
    onuma__count(engine, (int64_t)node->size - (int64_t)before, (int64_t)size - (int64_t)node->requested, 0, 0);
    node->requested = size;
    return ONUMA_OK;
}

static onuma_result change(void *base, onuma_result (*small)(onuma__slab *, uintptr_t, size_t),
                           onuma_result (*large)(onuma__node *, size_t), size_t value) {
    const uintptr_t address = (uintptr_t)base;
    const onuma__entry entry = onuma__pagemap_get(address);
    onuma_result r = ONUMA_ERROR_INVALID_POINTER;
    if ((entry & ONUMA__ENTRY_SORT) == ONUMA__ENTRY_SLAB) {
        r = small(onuma__entry_slab(entry), address, value);
    } else if ((entry & ONUMA__ENTRY_SORT) == ONUMA__ENTRY_NODE) {
        onuma__node *node = lock_large(entry, address);
        if (node != NULL) {
            r = large(node, value);
            unlock_large(node);
        }
    }
    if (r == ONUMA_ERROR_INVALID_POINTER) return onuma__fail(r, "%p: no live block of a pool starts there", base);
    return r;
}

onuma_result onuma__engine_resize(void *base, size_t size) {
    return change(base, onuma__slab_resize, resize_large, size);
}

static onuma_result special_small(onuma__slab *slab, uintptr_t address, size_t special) {
    return onuma__slab_set_special(slab, address, special != 0);
}

static onuma_result special_large(onuma__node *node, size_t special) {
    if (node->state != ONUMA__NODE_LIVE) return ONUMA_ERROR_INVALID_POINTER;
    node->special = special != 0;
    return ONUMA_OK;
}

onuma_result onuma__engine_set_special(void *base, bool special) {
    /* Frees of an import are held anyway. */
    if (onuma__pagemap_get((uintptr_t)base) == 0 && onuma__directory_find((uintptr_t)base).is_import) return ONUMA_OK;
    return change(base, special_small, special_large, special);
}
