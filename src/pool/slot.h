/* SPDX-License-Identifier: Apache-2.0 */
/* The bits of one slot (slab.h says what they mean), and the fast ways of an allocation and of a free. */
#ifndef ONUMA_POOL_SLOT_H
#define ONUMA_POOL_SLOT_H

#include "pool/slab.h"
#include "pool/stats.h"

static inline bool onuma__slot_bit(_Atomic uint64_t *words, size_t slot) {
    return (atomic_load_explicit(&words[slot / 64], memory_order_relaxed) >> (slot % 64) & 1) != 0;
}

static inline bool onuma__slot_free(const onuma__slab *slab, size_t slot) {
    return onuma__slot_bit(slab->free_words, slot);
}

static inline bool onuma__slot_dead(const onuma__slab *slab, size_t slot) {
    return (atomic_load_explicit(&slab->dead_words[slot / 32], memory_order_relaxed) >> (slot % 32) & 1) != 0;
}

/* Of an address in one of the slab's slots, or in the rest behind them. */
static inline size_t onuma__slot_of(const onuma__slab *slab, uintptr_t address) {
    const uint64_t offset = address - atomic_load_explicit(&slab->base, memory_order_relaxed);
    return (size_t)((offset * atomic_load_explicit(&slab->reciprocal, memory_order_relaxed)) >> 40);
}

/* Guarded, in a heap that is not shared: the block, which has this note, goes into the tray. false: there is no room. */
static ONUMA__INLINE bool onuma__tray_put(onuma__heap *heap, onuma__slab *slab, uintptr_t block,
                                          _Atomic uint16_t *place, uint32_t note) {
    onuma__tray *tray = slab->tray;
    const uint64_t state = atomic_load_explicit(&tray->state, memory_order_relaxed);
    const int64_t requested = (int64_t)tray->size - (note & ~ONUMA__NOTE_ALIGNED);
    if (ONUMA__UNLIKELY(onuma__tray_filled(state) >= tray->most)) return false;
    *onuma__tray_item_at(tray, onuma__tray_filled(state)) = (onuma__tray_item){block, place};
    atomic_store_explicit(place, ONUMA__NOTE_NONE, memory_order_relaxed);
    atomic_store_explicit(&slab->recycled, true, memory_order_relaxed);
    atomic_store_explicit(&tray->state, state + ONUMA__TRAY_ITEM, memory_order_relaxed);
    onuma__heap_add(&heap->requested, -requested);
    return true;
}

/* Guarded: a block out of the tray, for `requested` bytes. false: it is empty. */
static ONUMA__INLINE bool onuma__tray_take(onuma__heap *heap, onuma__tray *tray, size_t requested, void **out) {
    const uint64_t state = atomic_load_explicit(&tray->state, memory_order_relaxed);
    if (ONUMA__UNLIKELY(onuma__tray_filled(state) == 0)) return false;
    const onuma__tray_item *item = onuma__tray_item_at(tray, onuma__tray_filled(state) - ONUMA__TRAY_ITEM);
    *out = (void *)item->block; // NOLINT: an address
    atomic_store_explicit(item->note, (uint16_t)(tray->size - requested), memory_order_relaxed);
    atomic_store_explicit(&tray->state, state + ONUMA__TRAY_TAKEN - ONUMA__TRAY_ITEM, memory_order_relaxed);
    onuma__heap_add(&heap->requested, (int64_t)requested);
    return true;
}

/* slab.c, guarded. The slot is handed out: others' exchanges may succeed again from here on, so all that they read is
 * set before. */
void onuma__slab_revive(onuma__slab *slab, size_t slot) ONUMA__COLD;
/* The last free slot went. */
void onuma__slab_filled(onuma__heap *heap, onuma__slab *slab) ONUMA__COLD;
/* A full slab has a free slot again; the last used slot of one has come free (it may be gone afterwards). */
void onuma__slab_reopen(onuma__heap *heap, onuma__slab *slab) ONUMA__COLD;
void onuma__slab_emptied(onuma__heap *heap, onuma__slab *slab);

/* Guarded: `count` slots of one word of free bits become free. The slab may be gone afterwards. */
static inline void onuma__slab_put_back(onuma__heap *heap, onuma__slab *slab, size_t word, uint64_t bits,
                                        uint32_t count) {
    const uint64_t old = atomic_load_explicit(&slab->free_words[word], memory_order_relaxed);
    atomic_store_explicit(&slab->free_words[word], old | bits, memory_order_relaxed);
    if (ONUMA__UNLIKELY(slab->summary == 0)) onuma__slab_reopen(heap, slab);
    slab->summary |= (uint64_t)1 << word;
    atomic_store_explicit(&slab->recycled, true, memory_order_relaxed);
    slab->used -= count;
    if (slab->used == 0) onuma__slab_emptied(heap, slab);
}

/* Guarded: a slot of this class, counted. NULL: no slab has one; then drain, or make a slab. */
static inline void *onuma__slab_alloc(onuma__heap *heap, unsigned class_index, size_t requested) {
    onuma__slab *slab = heap->open[class_index];
    if (ONUMA__UNLIKELY(slab == NULL)) return NULL;
    const unsigned w = (unsigned)__builtin_ctzll(slab->summary);
    const uint64_t word = atomic_load_explicit(&slab->free_words[w], memory_order_relaxed);
    const size_t slot = w * 64u + (unsigned)__builtin_ctzll(word);
    const uint64_t left = word & (word - 1);
    const uint32_t size = atomic_load_explicit(&slab->slot_size, memory_order_relaxed);
    /* Looked at while the slot is free, when nobody changes it: afterwards it may be the new block's own free. */
    const bool dead = onuma__slot_dead(slab, slot);
    atomic_store_explicit(&slab->notes[slot], (uint16_t)(size - requested), memory_order_relaxed);
    atomic_store_explicit(&slab->free_words[w], left, memory_order_relaxed);
    if (ONUMA__UNLIKELY(dead)) onuma__slab_revive(slab, slot);
    if (slab->used++ == 0) heap->empty_bytes -= slab->bytes;
    if (ONUMA__UNLIKELY(left == 0)) {
        slab->summary &= slab->summary - 1;
        if (slab->summary == 0) onuma__slab_filled(heap, slab);
    }
    onuma__heap_count(heap, size, (int64_t)requested, 1, 0);
    return (void *)(atomic_load_explicit(&slab->base, memory_order_relaxed) + slot * size); // NOLINT: an address
}

#endif
