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

/* slab.c, guarded: slots (of one word of free bits) become free. The slab may be gone afterwards. */
void onuma__slab_put_back(onuma__heap *heap, onuma__slab *slab, size_t word, uint64_t bits);

#endif
