/* SPDX-License-Identifier: Apache-2.0 */
/* Slots as anyone sees them: frees from any thread, holds, look-ups. */
#include "pool/slot.h"

#include "pool/node.h"
#include "pool/stats.h"

/* A slab as it was at one generation. Only once the generation has been checked again is it known to be consistent. */
typedef struct view {
    uint32_t generation;
    uint32_t size;
    onuma__heap *heap;
    uintptr_t base;
    onuma__tag tag;
    size_t slot; /* that holds the address */
} view;

/* false: no slot of this slab holds the address. */
static inline bool look(const onuma__slab *slab, uintptr_t address, view *v) {
    v->generation = atomic_load_explicit(&slab->generation, memory_order_acquire);
    const uint32_t slots = atomic_load_explicit(&slab->slots, memory_order_acquire);
    v->size = atomic_load_explicit(&slab->slot_size, memory_order_acquire);
    v->base = atomic_load_explicit(&slab->base, memory_order_acquire);
    v->heap = atomic_load_explicit(&slab->heap, memory_order_acquire);
    v->tag = atomic_load_explicit(&slab->tag, memory_order_acquire);
    const uint64_t reciprocal = atomic_load_explicit(&slab->reciprocal, memory_order_acquire);
    const uint64_t offset = address - v->base;
    if (v->heap == NULL || offset >= ONUMA__SLAB_BYTES_MAX + ONUMA__UNIT) return false;
    v->slot = (size_t)((offset * reciprocal) >> 40);
    return v->slot < slots && v->slot < slab->capacity;
}

static bool still(const onuma__slab *slab, const view *v) {
    return atomic_load_explicit(&slab->generation, memory_order_acquire) == v->generation;
}

static bool is_base(const view *v, uintptr_t address) {
    return v->base + v->slot * v->size == address;
}

static bool is_live(const onuma__slab *slab, const view *v) {
    return !onuma__slot_free(slab, v->slot) && !onuma__slot_remote(slab, v->slot);
}

static int64_t requested_of(const onuma__slab *slab, uint32_t size, size_t slot) {
    return (int64_t)size - atomic_load_explicit(&slab->waste[slot], memory_order_relaxed);
}

/* Into the caller's own heap of that tag. */
static void count(const view *v, int64_t bytes, int64_t requested, int64_t frees) {
    onuma__heap *own = onuma__heap_get(v->heap->engine, v->tag);
    if (own != NULL)
        onuma__heap_count(own, bytes, requested, 0, frees);
    else
        onuma__count(v->heap->engine, bytes, requested, 0, frees);
}

/* ------------------------------------------------------------------- frees */

/* The one moment at which a slot dies by another's hand. */
static onuma_result claim(onuma__slab *slab, const view *v) {
    _Atomic uint64_t *word = &slab->remote_words[v->slot / 32];
    const uint64_t bit = (uint64_t)1 << (v->slot % 32);
    uint64_t seen = atomic_load_explicit(word, memory_order_relaxed);
    do {
        if (seen >> 32 != v->generation) return ONUMA_ERROR_INVALID_POINTER;
        if ((seen & bit) != 0) return ONUMA_ERROR_DOUBLE_FREE;
        /* seq_cst: before the look at `queued` */
    } while (!atomic_compare_exchange_weak(word, &seen, seen | bit));
    return ONUMA_OK;
}

/* Tell the heap that the slab has bits to drain. If the slab has been retired meanwhile, it had them drained. */
static void enqueue(onuma__slab *slab, const view *v) {
    uint64_t unlisted = (uint64_t)v->generation << 1;
    if (atomic_load(&slab->queued) != unlisted ||
        !atomic_compare_exchange_strong(&slab->queued, &unlisted, unlisted | 1))
        return;
    onuma__slab *head = atomic_load_explicit(&v->heap->remote, memory_order_relaxed);
    do {
        atomic_store_explicit(&slab->remote_next, head, memory_order_relaxed);
    } while (!atomic_compare_exchange_weak_explicit(&v->heap->remote, &head, slab, memory_order_release,
                                                    memory_order_relaxed));
}

static void set_bit(onuma__slab *slab, _Atomic uint64_t *words, size_t slot) {
    const uint64_t bit = (uint64_t)1 << (slot % 64);
    if ((atomic_fetch_or(&words[slot / 64], bit) & bit) == 0) atomic_fetch_add(&slab->attention, 1);
}

static bool clear_bit(onuma__slab *slab, _Atomic uint64_t *words, size_t slot) {
    const uint64_t bit = (uint64_t)1 << (slot % 64);
    if ((atomic_fetch_and(&words[slot / 64], ~bit) & bit) == 0) return false;
    atomic_fetch_sub(&slab->attention, 1);
    return true;
}

void onuma__slot_uncount(onuma__engine *engine, onuma__slab *slab, size_t slot) {
    const uint32_t size = atomic_load_explicit(&slab->slot_size, memory_order_relaxed);
    if (clear_bit(slab, slab->held_words, slot)) onuma__gauge_add(&engine->pending, -(int64_t)size);
    onuma__count(engine, size, requested_of(slab, size, slot), 0, -1);
}

/*
 * The slot was claimed and counted, and shows as free. Either a drain has already taken the claim in, or the owner
 * freed it at the same moment: then the drain will take the count back, which whoever reads statistics brings about.
 */
static void suspect(const view *v) {
    atomic_store_explicit(&v->heap->engine->unsettled, true, memory_order_relaxed);
}

/* The engine's lock keeps holders apart, and the slab from being retired. */
static onuma_result hold(onuma__slab *slab, const view *v) {
    onuma__engine *engine = v->heap->engine;
    const int64_t size = v->size, requested = requested_of(slab, v->size, v->slot);
    onuma_result r = ONUMA_ERROR_INVALID_POINTER;
    bool claimed = false;
    onuma__os_lock_acquire(&engine->lock);
    if (still(slab, v)) r = onuma__slot_remote(slab, v->slot) ? ONUMA_ERROR_DOUBLE_FREE : ONUMA__HELD;
    if (r == ONUMA__HELD) {
        set_bit(slab, slab->held_words, v->slot);
        r = claim(slab, v);
        if (r != ONUMA_OK) {
            clear_bit(slab, slab->held_words, v->slot);
            enqueue(slab, v); /* a drain may just have passed over the other's bit */
        } else if (onuma__slot_free(slab, v->slot)) {
            /* No drain has been at it, for it was held: the owner freed it at the same moment. */
            clear_bit(slab, slab->held_words, v->slot);
            enqueue(slab, v);
            suspect(v);
            claimed = true;
            r = ONUMA_ERROR_DOUBLE_FREE;
        } else {
            onuma__gauge_add(&engine->pending, size);
            r = ONUMA__HELD;
            claimed = true;
        }
    }
    onuma__os_lock_release(&engine->lock);
    if (claimed) count(v, -size, -requested, 1);
    return r;
}

static onuma_result free_shared(onuma__slab *slab, uintptr_t address, onuma__tag tag, onuma__engine **engine) {
    view v;
    if (!look(slab, address, &v) || !is_base(&v, address)) return ONUMA_ERROR_INVALID_POINTER;
    if (onuma__slot_free(slab, v.slot)) return ONUMA_ERROR_DOUBLE_FREE;
    *engine = v.heap->engine;
    if (onuma__tag_holds(v.tag, tag) || onuma__slot_bit(slab->special_words, v.slot)) return hold(slab, &v);
    const int64_t requested = requested_of(slab, v.size, v.slot);
    const onuma_result r = claim(slab, &v);
    if (r != ONUMA_OK) return r;
    count(&v, -(int64_t)v.size, -requested, 1);
    if (ONUMA__UNLIKELY(onuma__slot_free(slab, v.slot))) suspect(&v);
    enqueue(slab, &v);
    return ONUMA_OK;
}

/* The owner, busy. ONUMA__MISS: not a case for the fast way. */
static onuma_result free_own(onuma__heap *heap, onuma__slab *slab, uintptr_t address, onuma__tag tag) {
    view v;
    if (!look(slab, address, &v)) return ONUMA_ERROR_INVALID_POINTER;
    if (ONUMA__UNLIKELY(v.heap != heap || onuma__tag_holds(v.tag, tag) ||
                        atomic_load_explicit(&slab->attention, memory_order_relaxed) != 0))
        return ONUMA__MISS;
    if (ONUMA__UNLIKELY(!is_base(&v, address))) return ONUMA_ERROR_INVALID_POINTER;
    if (ONUMA__UNLIKELY(!is_live(slab, &v))) return ONUMA_ERROR_DOUBLE_FREE;
    onuma__heap_count(heap, -(int64_t)v.size, -requested_of(slab, v.size, v.slot), 0, 1);
    onuma__slab_put_back(heap, slab, v.slot / 64, (uint64_t)1 << (v.slot % 64), 1);
    return ONUMA_OK;
}

onuma_result onuma__slab_free(onuma__slab *slab, uintptr_t address, onuma__tag tag, onuma__engine **engine) {
    onuma__heap *heap = atomic_load_explicit(&slab->heap, memory_order_acquire);
    if (heap == NULL) return ONUMA_ERROR_INVALID_POINTER;
    if (atomic_load_explicit(&heap->thread, memory_order_relaxed) == onuma__os_thread_get()) {
        onuma__heap_enter(heap);
        const onuma_result r = free_own(heap, slab, address, tag);
        onuma__heap_leave(heap);
        if (ONUMA__LIKELY(r != ONUMA__MISS)) {
            *engine = heap->engine;
            return r;
        }
    }
    return free_shared(slab, address, tag, engine);
}

void onuma__slab_release(onuma__slab *slab, uintptr_t address) {
    view v;
    if (!look(slab, address, &v) || !is_base(&v, address)) return;
    onuma__engine *engine = v.heap->engine;
    onuma__os_lock_acquire(&engine->lock);
    const bool held = still(slab, &v) && onuma__slot_remote(slab, v.slot) && clear_bit(slab, slab->held_words, v.slot);
    if (held) {
        clear_bit(slab, slab->special_words, v.slot);
        onuma__gauge_add(&engine->pending, -(int64_t)v.size);
        enqueue(slab, &v);
    }
    onuma__os_lock_release(&engine->lock);
}

/* ------------------------------------------------------- live blocks in place */

onuma_result onuma__slab_resize(onuma__slab *slab, uintptr_t address, size_t size) {
    view v;
    if (!look(slab, address, &v) || !is_base(&v, address) || !is_live(slab, &v) || !still(slab, &v))
        return ONUMA_ERROR_INVALID_POINTER;
    if (size > v.size) return ONUMA__MISS;
    const int64_t before = requested_of(slab, v.size, v.slot);
    atomic_store_explicit(&slab->waste[v.slot], (uint16_t)(v.size - size), memory_order_relaxed);
    count(&v, 0, (int64_t)size - before, 0);
    return ONUMA_OK;
}

onuma_result onuma__slab_set_special(onuma__slab *slab, uintptr_t address, bool special) {
    view v;
    if (!look(slab, address, &v) || !is_base(&v, address) || !is_live(slab, &v) || !still(slab, &v))
        return ONUMA_ERROR_INVALID_POINTER;
    if (special)
        set_bit(slab, slab->special_words, v.slot);
    else
        clear_bit(slab, slab->special_words, v.slot);
    return ONUMA_OK;
}

static void describe(onuma__slab *slab, const view *v, onuma__block *out) {
    const onuma__segment *segment = atomic_load_explicit(&slab->segment, memory_order_acquire);
    const uintptr_t base = v->base + v->slot * v->size;
    *out = (onuma__block){.base = (void *)base, // NOLINT: an address
                          .size = v->size,
                          .requested = (size_t)requested_of(slab, v->size, v->slot),
                          .engine = v->heap->engine,
                          .owner = v->heap->engine->owner,
                          .span = &segment->span,
                          .offset = base - (uintptr_t)segment->span.base,
                          .tag = v->tag,
                          .special = onuma__slot_bit(slab->special_words, v->slot)};
}

onuma_result onuma__slab_find(onuma__slab *slab, uintptr_t address, bool held, onuma__block *out) {
    view v;
    if (!look(slab, address, &v)) return ONUMA_ERROR_INVALID_POINTER;
    if (held) {
        if (!is_base(&v, address) || !onuma__slot_remote(slab, v.slot) || !onuma__slot_bit(slab->held_words, v.slot))
            return ONUMA_ERROR_INVALID_POINTER;
    } else if (!is_live(slab, &v)) {
        return ONUMA_ERROR_INVALID_POINTER;
    }
    describe(slab, &v, out);
    return still(slab, &v) ? ONUMA_OK : ONUMA_ERROR_INVALID_POINTER;
}

bool onuma__slab_walk(onuma__slab *slab, bool (*fn)(void *user, const onuma__block *block), void *user) {
    const uintptr_t base = atomic_load_explicit(&slab->base, memory_order_relaxed);
    const uint32_t slots = atomic_load_explicit(&slab->slots, memory_order_relaxed);
    const uint32_t size = atomic_load_explicit(&slab->slot_size, memory_order_relaxed);
    for (size_t slot = 0; slot < slots; slot++) {
        view v;
        if (!look(slab, base + slot * size, &v) || !is_live(slab, &v)) continue;
        onuma__block block;
        describe(slab, &v, &block);
        if (!fn(user, &block)) return false;
    }
    return true;
}
