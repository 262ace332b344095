/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Free stretches by size, and the choice among them. Each is in its list by the node
 * that stands for it (stretch.h).
 *
 * A two-level segregated fit: lists by size, 32 to each doubling (one for each
 * size below 32 units), with bitmaps of the lists that are not empty. Finding a
 * list that surely fits takes a few instructions however many nodes are free.
 *
 * The textbook rounds the request up to the next list, whose first node fits
 * for certain. That wastes the nodes in the request's own list, and was measured to
 * need 9 % more memory than best fit; so the own list is looked through first,
 * as far as PROBES nodes, and the best of them is taken.
 *
 * All under the engine's lock.
 */
#ifndef ONUMA_POOL_INDEX_H
#define ONUMA_POOL_INDEX_H

#include "pool/engine.h"

void onuma__index_insert(onuma__index *index, onuma__node *node);
void onuma__index_remove(onuma__index *index, onuma__node *node);
/* A search: what is wanted, and the best candidate so far. Several indexes may be searched in turn. */
typedef struct onuma__fit {
    size_t size, align;
    onuma__tag tag;     /* in the index of tag 0: leave out what touches free memory of this tag */
    bool committed;     /* only memory that needs no new pages */
    size_t most_broken; /* of a segment that is wholly free and a block's own, at most so much may be left over */
    onuma__node *node;  /* stands for the stretch; NULL: nothing yet */
    uintptr_t base;     /* of the piece to take */
    size_t new_pages;
} onuma__fit;

/* Better: what breaks up no wholly free segment, then fewer new pages, then a tighter stretch, then an older segment,
 * then the lower address. */
void onuma__fit_search(onuma__fit *fit, const onuma__index *index);

/* Lists in order of size: for walking an index. `list` from 0; the next that is not empty, or UINT32_MAX. */
uint32_t onuma__index_next_list(const onuma__index *index, uint32_t list);
/* The same downwards: the last list before `list` that is not empty. */
uint32_t onuma__index_previous_list(const onuma__index *index, uint32_t list);
uint32_t onuma__index_list_of(size_t size);

#endif
