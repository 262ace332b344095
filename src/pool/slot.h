/* SPDX-License-Identifier: Apache-2.0 */
/* The bits of one slot; see slab.h for what they mean. For slab.c and slot.c. */
#ifndef ONUMA_POOL_SLOT_H
#define ONUMA_POOL_SLOT_H

#include "pool/slab.h"

static inline bool onuma__slot_bit(_Atomic uint64_t *words, size_t slot) {
    return (atomic_load_explicit(&words[slot / 64], memory_order_relaxed) >> (slot % 64) & 1) != 0;
}

static inline bool onuma__slot_free(const onuma__slab *slab, size_t slot) {
    return onuma__slot_bit(slab->free_words, slot);
}

static inline bool onuma__slot_remote(const onuma__slab *slab, size_t slot) {
    return (atomic_load_explicit(&slab->remote_words[slot / 32], memory_order_relaxed) >> (slot % 32) & 1) != 0;
}

/* A remote bit was set on a slot that was free: what was counted for it is taken back, with its hold if it has one. */
void onuma__slot_uncount(onuma__engine *engine, onuma__slab *slab, size_t slot);

/* slab.c, guarded: a full slab has a free slot again; the last used slot of one has come free (it may be gone afterwards). */
void onuma__slab_reopen(onuma__heap *heap, onuma__slab *slab);
void onuma__slab_emptied(onuma__heap *heap, onuma__slab *slab);

/* Guarded: `count` slots of one word of free bits become free. The slab may be gone afterwards. */
static inline void onuma__slab_put_back(onuma__heap *heap, onuma__slab *slab, size_t word, uint64_t bits,
                                        uint32_t count) {
    const uint64_t old = atomic_load_explicit(&slab->free_words[word], memory_order_relaxed);
    atomic_store_explicit(&slab->free_words[word], old | bits, memory_order_relaxed);
    if (ONUMA__UNLIKELY(slab->summary == 0)) onuma__slab_reopen(heap, slab);
    slab->summary |= (uint64_t)1 << word;
    slab->used -= count;
    if (slab->used == 0) onuma__slab_emptied(heap, slab);
}

#endif
