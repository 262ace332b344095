/* SPDX-License-Identifier: Apache-2.0 */
/* Slots as anyone sees them: frees from any thread, holds, look-ups. */
#include "pool/slot.h"

#include "pool/large.h"
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

/* The fence: bits and waste are read relaxed, and must have been read before the generation is. Pairs with the release of
 * raise_generation, which comes before all that the descriptor's next life writes. */
static bool still(const onuma__slab *slab, const view *v) {
    onuma__os_read_fence();
    return atomic_load_explicit(&slab->generation, memory_order_acquire) == v->generation;
}

static bool is_base(const view *v, uintptr_t address) {
    return v->base + v->slot * v->size == address;
}

static uint32_t note_of(const onuma__slab *slab, size_t slot) {
    return atomic_load_explicit(&slab->notes[slot], memory_order_relaxed);
}

static bool is_live(const onuma__slab *slab, const view *v) {
    return !onuma__slot_free(slab, v->slot) && !onuma__slot_dead(slab, v->slot) &&
           note_of(slab, v->slot) != ONUMA__NOTE_NONE;
}

/* By a slot's size and its note. */
static int64_t requested(uint32_t size, uint32_t note) {
    return (int64_t)size - (note & ~ONUMA__NOTE_ALIGNED);
}

/* Into the caller's own heap of that tag. */
static void count(const view *v, int64_t bytes, int64_t requested, int64_t frees) {
    onuma__heap *own = onuma__heap_get(v->heap->engine, v->tag);
    if (own != NULL)
        onuma__heap_count(own, bytes, requested, 0, frees);
    else
        onuma__count(v->heap->engine, bytes, requested, 0, frees);
}

static bool is_own(const onuma__heap *heap) {
    return atomic_load_explicit(&heap->thread, memory_order_relaxed) == onuma__os_thread_get();
}

/* ------------------------------------------------------------------- frees */

/* The one moment at which a slot of a shared heap dies. */
static onuma_result claim(onuma__slab *slab, const view *v) {
    _Atomic uint64_t *word = &slab->dead_words[v->slot / 32];
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

/* The engine's lock keeps holders apart, and the slab from being retired. */
static onuma_result hold(onuma__slab *slab, const view *v) {
    onuma__engine *engine = v->heap->engine;
    const int64_t size = v->size;
    const uint32_t note = note_of(slab, v->slot);
    onuma_result r = ONUMA_ERROR_INVALID_POINTER;
    onuma__os_lock_acquire(&engine->lock);
    if (still(slab, v))
        r = onuma__slot_dead(slab, v->slot) || note == ONUMA__NOTE_NONE ? ONUMA_ERROR_DOUBLE_FREE : ONUMA__HELD;
    if (r == ONUMA__HELD) {
        set_bit(slab, slab->held_words, v->slot);
        r = claim(slab, v);
        if (r == ONUMA_OK) {
            onuma__gauge_add(&engine->pending, size);
            r = ONUMA__HELD;
        } else {
            clear_bit(slab, slab->held_words, v->slot);
            enqueue(slab, v); /* a drain may just have passed over the other's bit */
        }
    }
    onuma__os_lock_release(&engine->lock);
    if (r == ONUMA__HELD) count(v, -size, -requested(v->size, note), 1);
    return r;
}

static onuma_result free_shared(onuma__slab *slab, uintptr_t address, onuma__tag tag, onuma__engine **engine) {
    view v;
    if (!look(slab, address, &v) || !is_base(&v, address)) return ONUMA_ERROR_INVALID_POINTER;
    /* acquire: what the owner freed while the heap was its own shows as free */
    if (ONUMA__UNLIKELY(!atomic_load_explicit(&v.heap->shared, memory_order_acquire)) && !is_own(v.heap))
        onuma__heap_share(v.heap);
    const uint32_t note = note_of(slab, v.slot); /* once: if the block comes to be another's, so may its note */
    if (onuma__slot_free(slab, v.slot) || note == ONUMA__NOTE_NONE) return ONUMA_ERROR_DOUBLE_FREE;
    *engine = v.heap->engine;
    if (onuma__tag_holds(v.tag, tag) || onuma__slot_bit(slab->special_words, v.slot)) return hold(slab, &v);
    const onuma_result r = claim(slab, &v);
    if (r != ONUMA_OK) return r;
    /* For its own next look, which may be at the note alone. Only the owner hands slots out, so nobody has it by now. */
    if (is_own(v.heap)) atomic_store_explicit(&slab->notes[v.slot], ONUMA__NOTE_NONE, memory_order_relaxed);
    count(&v, -(int64_t)v.size, -requested(v.size, note), 1);
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
    /* relaxed: it changes under the heap's guard only */
    if (ONUMA__UNLIKELY(atomic_load_explicit(&heap->shared, memory_order_relaxed))) {
        const onuma_result r = claim(slab, &v);
        if (r != ONUMA_OK) return r;
    } else if (onuma__tray_put(heap, slab, address, &slab->notes[v.slot], note_of(slab, v.slot))) {
        return ONUMA_OK;
    }
    onuma__heap_count(heap, -(int64_t)v.size, -requested(v.size, note_of(slab, v.slot)), 0, 1);
    atomic_store_explicit(&slab->notes[v.slot], ONUMA__NOTE_NONE, memory_order_relaxed);
    onuma__slab_put_back(heap, slab, v.slot / 64, (uint64_t)1 << (v.slot % 64), 1);
    return ONUMA_OK;
}

bool onuma__engine_free_own(void *ptr, onuma__tag tag) {
    const uintptr_t address = (uintptr_t)ptr;
    const onuma__entry entry = onuma__pagemap_get(address);
    if (ONUMA__UNLIKELY((entry & ONUMA__ENTRY_SORT) != ONUMA__ENTRY_SLAB))
        return (entry & ONUMA__ENTRY_SORT) == ONUMA__ENTRY_NODE && onuma__large_free_own(entry, address, tag);
    onuma__slab *slab = onuma__entry_slab(entry);
    onuma__heap *heap = atomic_load_explicit(&slab->heap, memory_order_acquire);
    if (ONUMA__UNLIKELY(heap == NULL || !is_own(heap) ||
                        atomic_load_explicit(&heap->key, memory_order_relaxed) == NULL))
        return false;
    onuma__heap_enter(heap);
    const onuma_result r = free_own(heap, slab, address, tag);
    onuma__heap_leave(heap);
    return ONUMA__LIKELY(r == ONUMA_OK);
}

onuma_result onuma__slab_free(onuma__slab *slab, uintptr_t address, onuma__tag tag, onuma__engine **engine) {
    onuma__heap *heap = atomic_load_explicit(&slab->heap, memory_order_acquire);
    if (heap == NULL) return ONUMA_ERROR_INVALID_POINTER;
    if (is_own(heap)) {
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
    const bool held = still(slab, &v) && onuma__slot_dead(slab, v.slot) && onuma__slot_bit(slab->held_words, v.slot);
    if (held) {
        /* First: an owner whose slab needs no attention any more looks at the note alone. */
        atomic_store_explicit(&slab->notes[v.slot], ONUMA__NOTE_NONE, memory_order_relaxed);
        clear_bit(slab, slab->special_words, v.slot);
        clear_bit(slab, slab->held_words, v.slot);
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
    /* So much waste would not go in beside the flag, and is better given back. */
    if (size > v.size || v.size - size >= ONUMA__NOTE_ALIGNED - 1) return ONUMA__MISS;
    uint16_t note = atomic_load_explicit(&slab->notes[v.slot], memory_order_relaxed), changed;
    do {
        /* Freed meanwhile, against the rules: the exchange sees to it that it stays so. */
        if (note == ONUMA__NOTE_NONE) return ONUMA_ERROR_INVALID_POINTER;
        changed = (uint16_t)((v.size - size) | (note & ONUMA__NOTE_ALIGNED));
    } while (!atomic_compare_exchange_weak_explicit(&slab->notes[v.slot], &note, changed, memory_order_relaxed,
                                                    memory_order_relaxed));
    count(&v, 0, (int64_t)(note & ~ONUMA__NOTE_ALIGNED) - (int64_t)(v.size - size), 0);
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

void onuma__slab_set_aligned(onuma__slab *slab, uintptr_t address) {
    view v;
    if (look(slab, address, &v))
        atomic_fetch_or_explicit(&slab->notes[v.slot], (uint16_t)ONUMA__NOTE_ALIGNED, memory_order_relaxed);
}

/* At least what was asked for. */
static size_t alignment_of(const onuma__slab *slab, const view *v) {
    if ((atomic_load_explicit(&slab->notes[v->slot], memory_order_relaxed) & ONUMA__NOTE_ALIGNED) == 0)
        return v->heap->engine->alignment;
    const size_t natural = v->size & (0u - v->size);
    return natural < ONUMA__UNIT ? natural : ONUMA__UNIT;
}

static void describe(onuma__slab *slab, const view *v, onuma__block *out) {
    const onuma__segment *segment = atomic_load_explicit(&slab->segment, memory_order_acquire);
    const uintptr_t base = v->base + v->slot * v->size;
    *out = (onuma__block){.base = (void *)base, // NOLINT: an address
                          .size = v->size,
                          .requested = (size_t)requested(v->size, note_of(slab, v->slot)),
                          .engine = v->heap->engine,
                          .owner = v->heap->engine->owner,
                          .span = &segment->span,
                          .offset = base - (uintptr_t)segment->span.base,
                          .align = alignment_of(slab, v),
                          .tag = v->tag,
                          .special = onuma__slot_bit(slab->special_words, v->slot),
                          .recycled = atomic_load_explicit(&slab->recycled, memory_order_relaxed)};
}

onuma_result onuma__slab_find(onuma__slab *slab, uintptr_t address, bool held, onuma__block *out) {
    view v;
    if (!look(slab, address, &v)) return ONUMA_ERROR_INVALID_POINTER;
    if (held) {
        if (!is_base(&v, address) || !onuma__slot_dead(slab, v.slot) || !onuma__slot_bit(slab->held_words, v.slot))
            return ONUMA_ERROR_INVALID_POINTER;
    } else if (!is_live(slab, &v)) {
        return ONUMA_ERROR_INVALID_POINTER;
    }
    describe(slab, &v, out);
    return still(slab, &v) ? ONUMA_OK : ONUMA_ERROR_INVALID_POINTER;
}

/* Frees find it dead before they look at its note, and whoever resizes a block that is being freed takes it for freed. */
void onuma__slab_strand(onuma__slab *slab, uintptr_t address) {
    view v;
    if (look(slab, address, &v)) atomic_store_explicit(&slab->notes[v.slot], ONUMA__NOTE_NONE, memory_order_relaxed);
}

size_t onuma__slab_take_stranded(onuma__slab *slab, onuma__block *out, size_t room) {
    const uintptr_t base = atomic_load_explicit(&slab->base, memory_order_relaxed);
    const uint32_t slots = atomic_load_explicit(&slab->slots, memory_order_relaxed);
    const uint32_t size = atomic_load_explicit(&slab->slot_size, memory_order_relaxed);
    size_t taken = 0;
    for (size_t slot = 0; slot < slots && taken < room; slot++) {
        view v;
        if (!onuma__slot_bit(slab->held_words, slot) || note_of(slab, slot) != ONUMA__NOTE_NONE ||
            !look(slab, base + slot * size, &v))
            continue;
        atomic_store_explicit(&slab->notes[slot], 0, memory_order_relaxed); /* of its request nobody asks any more */
        describe(slab, &v, &out[taken++]);
    }
    return taken;
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
