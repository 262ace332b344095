/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stretches: what one allocation may take in one piece.
 *
 * Free memory of different tags that lies side by side stays in nodes of its
 * own, for each serves others at another time. An allocation under tag t may
 * yet use memory of t and of tag 0 together, and must see it so: if it took a
 * larger piece elsewhere because each of the parts alone is too small, a pool
 * would grow for nothing (a quarter of its size, on traces of real programs).
 *
 *     | busy |  0  |  t  |  0  |  u  | busy |
 *            '--- of t --------'
 *                        '- of u ----'
 *
 * A stretch of t is a longest row of neighbouring free nodes of t and of 0 with
 * at least one of t. Its lowest node of t stands for it in the index of t, by
 * the size of the whole. A node of tag 0 is a stretch of tag 0 by itself; those
 * that touch memory of t are seen from t as part of the longer one.
 *
 * Sizes need no sums, since a stretch has no gaps. Finding the ends takes a
 * walk over its nodes: few, because neighbours of one tag are one node and what
 * waits for a queue comes to be of tag 0 whenever the queue is heard of.
 *
 * All under the engine's lock.
 */
#ifndef ONUMA_POOL_STRETCH_H
#define ONUMA_POOL_STRETCH_H

#include "pool/engine.h"

static inline bool onuma__node_is_free(const onuma__node *node) {
    return node != NULL && node->state == ONUMA__NODE_FREE;
}

static inline bool onuma__node_is_free_of(const onuma__node *node, onuma__tag tag) {
    return onuma__node_is_free(node) && node->tag == tag;
}

/* Before and after a change to `node`, free or not: out of the index, and back into it, go all stretches that it is part
 * of, or that would be others with it. What the change cuts off the node is noted by itself. */
void onuma__stretch_forget_near(onuma__engine *engine, onuma__node *node);
void onuma__stretch_note_near(onuma__engine *engine, onuma__node *node);

/* The node that stands for the stretch of a free node, and where it reaches from and to. For tests too. */
onuma__node *onuma__stretch_of(onuma__node *node, uintptr_t *base, size_t *size);

#endif
