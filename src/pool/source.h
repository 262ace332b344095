/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a pool engine gets its memory: the one door between the engine and the
 * world below it. A source can be a driver, plain memory, or addresses with
 * nothing behind them; the engine never touches what it hands out.
 *
 * The engine calls a source with none of its locks held, from any thread.
 */
#ifndef ONUMA_POOL_SOURCE_H
#define ONUMA_POOL_SOURCE_H

#include "base/result.h"

typedef struct onuma__span {
    void *base;
    size_t size;
    void *own; /* the source's */
} onuma__span;

typedef struct onuma__source {
    void *self;
    /* Memory of at least `size` bytes. OUT_OF_MEMORY, LIMIT, DEVICE_LOST go to the user as they are. */
    onuma_result (*acquire)(void *self, size_t size, onuma__span *out);
    /* Addresses of `size` bytes with no memory; NULL if this source only has segments. */
    onuma_result (*reserve)(void *self, size_t size, onuma__span *out);
    onuma_result (*commit)(void *self, const onuma__span *span, size_t offset, size_t size);
    onuma_result (*decommit)(void *self, const onuma__span *span, size_t offset, size_t size);
    /* What committed pages hold is wanted no more; they stay committed. NULL: this source has nothing of the kind. */
    onuma_result (*discard)(void *self, const onuma__span *span, size_t offset, size_t size);
    /* Give back a span of either sort. For ranges `committed` is what of it is still committed. */
    void (*release)(void *self, const onuma__span *span, size_t committed);
    /* The most that is reserved at once, unless a block needs more. 0: as much as the engine likes. */
    size_t longest_range;
    /* Ranges are committed and decommitted by multiples of this, a power of two. 0: of ONUMA__PAGE. */
    size_t page;
} onuma__source;

#endif
