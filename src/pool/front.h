/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The front: large blocks that a thread has freed and keeps for its next
 * allocations, beside its slabs. Taking one costs no lock.
 *
 * A kept block stays what it was in every structure that others see: its node
 * is LIVE, its start is marked, its page map entry stands. Only its claim
 * (large.h) is zero, so that it is dead to the user: a second free fails to
 * claim it. What the engine has counted of it stays counted; the front's bytes
 * are taken off again when someone reads the statistics. So keeping and reusing a
 * block costs its owner no shared atomic but the one of the claim.
 *
 * Blocks up to a mebibyte lie in bins by size, eight to a doubling, and serve requests
 * that leave at most a fifth of them unused. Larger ones serve their exact size only:
 * and before one of those is looked for elsewhere, the larger ones that are kept go back,
 * so that they coalesce. All go back when the pool would have to grow, when the front's
 * bound in bytes is passed, when the tag's epoch is closed, when the thread exits, and
 * when the ladder or a trim takes caches.
 *
 * A front is part of a heap and under its guard (heap.h).
 */
#ifndef ONUMA_POOL_FRONT_H
#define ONUMA_POOL_FRONT_H

#include "pool/engine.h"

#define ONUMA__FRONT_BINS 50 /* 0 to 48: up to a mebibyte; the last: larger */
#define ONUMA__FRONT_LARGER (ONUMA__FRONT_BINS - 1)

/* A list of nodes, linked by `next`. Base and size of the first lie beside it, so that handing it out does not wait for
 * the look-up of the free that brought it. */
typedef struct onuma__front_bin {
    onuma__node *first;
    uintptr_t base;
    size_t size; /* 0: empty */
} onuma__front_bin;

typedef struct onuma__front {
    _Atomic int64_t bytes; /* of the blocks kept: relaxed, read for statistics */
    onuma__front_bin bins[ONUMA__FRONT_BINS];
} onuma__front;

/* The bin of each number of units up to 256; filled before the first heap. */
#define ONUMA__FRONT_UNITS 257
extern ONUMA__HIDDEN uint8_t onuma__front_bins[ONUMA__FRONT_UNITS];
void onuma__front_start(void);

static inline unsigned onuma__front_bin_of(size_t size) {
    const size_t units = size >> ONUMA__UNIT_SHIFT;
    return ONUMA__LIKELY(units < ONUMA__FRONT_UNITS) ? onuma__front_bins[units] : ONUMA__FRONT_LARGER;
}

/* A kept block of at least `size` bytes (whole units), no longer kept and still not claimable; NULL if none goes. */
onuma__node *onuma__front_take(onuma__heap *heap, size_t size);

/* Keep a block that the caller has claimed; false if it is not to be kept. May send others back. */
bool onuma__front_put(onuma__heap *heap, onuma__node *node);

/* Send back what is kept in the bins from `first` on. Returns whether anything was. Takes the locks of what guards them. */
bool onuma__front_flush(onuma__heap *heap, unsigned first);

#endif
