/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes: taking stretches of memory out of segments and putting them back.
 * All under the engine's lock.
 */
#ifndef ONUMA_POOL_NODE_H
#define ONUMA_POOL_NODE_H

#include "pool/engine.h"
#include "pool/pagemap.h"

/* Of an entry of the sort ONUMA__ENTRY_NODE. */
static inline onuma__node *onuma__entry_node(onuma__entry entry) {
    return (onuma__node *)(entry & ~(onuma__entry)ONUMA__ENTRY_SORT);
}

/* What an allocation may take. */
typedef enum {
    ONUMA__TAKE_READY,   /* committed pages only, and as SPARING */
    ONUMA__TAKE_SPARING, /* not what is better kept whole: see ration.h */
    ONUMA__TAKE_ANY
} onuma__take;

/*
 * Take `size` bytes (a multiple of the unit) for an allocation under `tag`: the
 * node is TAKEN, of that tag. ONUMA__MISS if nothing fits that may be taken.
 * OUT_OF_MEMORY (no room for metadata).
 */
onuma_result onuma__node_take(onuma__engine *engine, size_t size, size_t align, onuma__tag tag, onuma__take what,
                              onuma__node **out);

/* Put a node that is not free back, as freed under its own tag (`forall`, and if the tag is an unordered queue's: as
 * free for everyone), and coalesce. */
void onuma__node_give(onuma__engine *engine, onuma__node *node, bool forall);

/* Put a taken node back that could not be committed: not a free, what was free for all still is. Range mode. */
void onuma__node_return(onuma__engine *engine, onuma__node *node);

/* Give the end of a node back so that `size` bytes (a multiple of the unit) remain. MISS if metadata is out. */
onuma_result onuma__node_shrink(onuma__engine *engine, onuma__node *node, size_t size);
/* Lengthen a node to `size` bytes out of a free, committed neighbour; ONUMA__MISS if there is none. */
onuma_result onuma__node_extend(onuma__engine *engine, onuma__node *node, size_t size);

/* All of a new segment's memory as one free node of tag 0. OUT_OF_MEMORY. */
onuma_result onuma__node_found(onuma__engine *engine, onuma__segment *segment);
/* Forget the nodes of a segment. */
void onuma__node_forget(onuma__engine *engine, onuma__segment *segment);

/* Everything of a tag that was freed up to `epoch` becomes free as just freed under `to`, which is known; 0: for all.
 * Returns whether anything did. */
bool onuma__node_pass(onuma__engine *engine, onuma__tag_state *state, uint64_t epoch, onuma__tag to);

/* The node of a segment whose large block holds this address; NULL if none does. */
onuma__node *onuma__node_holding(onuma__segment *segment, uintptr_t address);

/* The block that a node is. */
void onuma__node_describe(const onuma__node *node, onuma__block *out);

/* A node becomes a large block; and no longer is one. */
void onuma__node_publish(onuma__node *node, size_t requested);
void onuma__node_withdraw(onuma__node *node);

/* Spare descriptors back to the process. */
void onuma__node_finish(onuma__engine *engine);

#endif
