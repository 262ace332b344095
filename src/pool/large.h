/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large blocks: a node each.
 *
 * Whoever frees one has to claim it: `claim` of its node is the block's address
 * while it lives and zero once it is freed, kept or not there, and one exchange
 * takes it. So two threads that free a block at once cannot both succeed, a
 * late pointer to a node that is another block by now fails, and an owner who
 * keeps what it freed (front.h) needs no lock. The claim of a
 * block with side records is the complement of its address, which no pointer into it equals: so every free of it takes
 * the lock.
 */
#ifndef ONUMA_POOL_LARGE_H
#define ONUMA_POOL_LARGE_H

#include "pool/engine.h"

/* A block's claim while it lives. */
static inline uintptr_t onuma__claim_of(uintptr_t base, bool special) {
    return special ? ~base : base;
}

/* Bytes of a large block; `size` is not absurd. */
static inline size_t onuma__large_bytes(const onuma__engine *engine, size_t size) {
    return ((size != 0 ? size : 1) + engine->unit - 1) & ~(engine->unit - 1);
}

/* Acquire: with it goes what the block's maker wrote. */
static inline bool onuma__node_claimable(const onuma__node *node) {
    return atomic_load_explicit(&node->claim, memory_order_acquire) != 0;
}

/* `align`: at least the unit; `strict`: more than the pool's was asked for. MISS. */
onuma_result onuma__large_alloc(onuma__engine *engine, size_t size, size_t align, bool strict, onuma__tag tag,
                                void **out);
/* The same from new memory: as onuma__engine_grow. */
onuma_result onuma__large_grow(onuma__engine *engine, size_t size, size_t align, bool strict, onuma__tag tag,
                               void **out);
/* From the front or the arena of this heap, the calling thread's; false if they have none, or the size is 0. */
bool onuma__large_alloc_again(onuma__heap *heap, size_t size, void **out);
/* Into the front of the heap that last served the calling thread; false, and nothing happened, if it is not for that. */
bool onuma__large_free_own(onuma__entry entry, uintptr_t address, onuma__tag tag);

/* As onuma__engine_free, for an address with this entry in the page map. */
onuma_result onuma__large_free(onuma__entry entry, uintptr_t address, onuma__tag tag, onuma__engine **out);
void onuma__large_release(onuma__engine *engine, onuma__entry entry, uintptr_t address, bool for_all);
onuma_result onuma__large_resize(onuma__entry entry, uintptr_t address, size_t size);
onuma_result onuma__large_set_special(onuma__entry entry, uintptr_t address, bool special);

#endif
