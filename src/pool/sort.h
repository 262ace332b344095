/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorts: in segments mode, which blocks share segments, and how large those
 * are. A range has one sort.
 *
 *   small   short-lived and long-lived ones mixed, thousands to a segment: kept apart, or one of them would keep each
 *           large segment from ever going back
 *   medium  a few to a few dozen to a segment
 *   own     a segment to measure, which can go back, or serve the same size again, as soon as the block is freed
 *
 * Where the borders lie depends on the pool. A segment that is not full at the peak costs up to its size, and each
 * block of its own costs a call, so both are measured by what the pool holds: a medium segment is a thirty-second of
 * it (so that growing from 8 MiB to 8 GiB takes some 220 calls), and what is less than a ninety-sixth of it shares.
 * With fixed borders (4 and 64 MiB) a pool of 340 MiB held 22 % too much, and one of 3 GiB made a call for every
 * block of half a percent.
 */
#ifndef ONUMA_POOL_SORT_H
#define ONUMA_POOL_SORT_H

#include "pool/engine.h"

/* The larger of a size and a share of what the pool holds, within what the source gives at once. */
static inline size_t onuma__sort_scale(const onuma__engine *engine, size_t least, unsigned share, size_t most) {
    if (share == 0) return least;
    const size_t part = (size_t)atomic_load_explicit(&engine->reserved.now, memory_order_relaxed) / share;
    const size_t scaled = part > least ? part : least;
    return scaled < most ? scaled : most;
}

/* The usual size of a sort's segments; 0 for those to measure. */
static inline size_t onuma__sort_segment(const onuma__engine *engine, unsigned sort) {
    const onuma__sort_sizes *sizes = &engine->sorts[sort];
    const size_t most = engine->max_segment != 0 ? engine->max_segment : SIZE_MAX;
    return onuma__align_down(onuma__sort_scale(engine, sizes->segment, sizes->segment_share, most), ONUMA__PAGE);
}

/* What sort of segment serves a block of `size` bytes. It may be another a moment later; any sort serves any block. */
static inline unsigned onuma__sort_of(const onuma__engine *engine, size_t size) {
    if (engine->range || size <= engine->sorts[ONUMA__SORT_SMALL].block) return ONUMA__SORT_SMALL;
    const onuma__sort_sizes *medium = &engine->sorts[ONUMA__SORT_MEDIUM];
    const size_t most = engine->max_segment != 0 ? engine->max_segment / 4 : SIZE_MAX;
    return size <= onuma__sort_scale(engine, medium->block, medium->block_share, most) ? ONUMA__SORT_MEDIUM
                                                                                       : ONUMA__SORT_OWN;
}

#endif
