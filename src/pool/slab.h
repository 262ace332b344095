/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slabs: runs of equal slots for small blocks, described out of band.
 *
 * What a slot is, is told by three bits:
 *
 *   free     the owner's bitmap: plain stores by the heap's owner (or a taker), relaxed loads by anyone
 *   remote   freed by someone else, or dead for another reason: set by compare-exchange, by anyone
 *   held     dead, but not to be reused before onuma__engine_release
 *
 *   live = neither free nor remote; remote bits become free ones when the heap
 *   drains them, except those that are held.
 *
 * That nobody frees a slot twice: two others cannot, for one compare-exchange
 * wins, and the owner looks at both bits before it frees. But the owner uses no
 * atomic operation, so another thread may set the remote bit between its test
 * and its store: then both are told OK, and the slot is free *and* remote. The
 * drain finds that out, masks the bit and takes back what was counted for it; and the
 * owner, when it allocates a slot, looks for a remote bit first. So such a race of two
 * frees is harmless: the slot is freed once, and never handed out twice.
 * (The other thread cannot find out by looking at the free bit after its exchange: a
 * drain may have taken its bit in by then.)
 *
 * Remote bits lie 32 to a word beside the slab's generation. When a slab is
 * retired the generation in every word is raised, each by an exchange that
 * fails if a bit has been set: a thread that comes late with a stale idea of
 * the slab fails its exchange, rather than free a slot of the descriptor's next life.
 * The word that tells whether the slab is on its heap's list has the generation too,
 * for the thread that was held up between setting its bit (since drained) and listing the slab.
 *
 * A descriptor serves slabs of at most its capacity for ever, so that its
 * arrays have the same place and length for a stale reader too.
 */
#ifndef ONUMA_POOL_SLAB_H
#define ONUMA_POOL_SLAB_H

#include "pool/heap.h"

struct onuma__slab {
    /* Constant for ever, once set. */
    uint32_t capacity; /* slots the arrays have room for */

    /* Constant from making to retiring; read by anyone (acquire), so that what a generation check approves is consistent. */
    _Atomic uint32_t generation;
    _Atomic uint32_t slots; /* 0 while dead */
    _Atomic uint32_t slot_size;
    _Atomic onuma__tag tag;
    _Atomic uint64_t reciprocal; /* 2^40 / slot_size, rounded up */
    _Atomic uintptr_t base;
    _Atomic(onuma__heap *) heap; /* NULL while dead */
    _Atomic(onuma__segment *) segment;
    onuma__node *node;
    uint32_t class_index;
    uint32_t bytes; /* of the node */

    /* The guarded part (heap.h). */
    uint32_t used;                /* slots not free: live, or remote and not drained, or held */
    uint64_t summary;             /* bit: that word of free bits is not zero */
    onuma__slab *previous, *next; /* in a list of the heap: open[class] if used < slots, else full */

    /* Anyone's. */
    _Atomic uint64_t queued;    /* generation << 1 | whether it is on its heap's remote list */
    _Atomic uint32_t attention; /* slots that are special or held: the fast path of free wants 0 */
    _Atomic(onuma__slab *) remote_next;

    /* Arrays, within the descriptor. */
    _Atomic uint64_t *free_words;    /* 64 slots each */
    _Atomic uint64_t *remote_words;  /* generation << 32 | 32 slots */
    _Atomic uint64_t *special_words; /* side records exist */
    _Atomic uint64_t *held_words;
    _Atomic uint16_t *waste; /* slot size less what was requested; the slot's user's, relaxed */
};

/* ------------------------------------------------ under the heap's guard, or by its owner while busy */

/* A slot of this class, counted. NULL: no slab has one; then drain, or make a slab. */
void *onuma__slab_alloc(onuma__heap *heap, unsigned class_index, size_t requested);

/* Take in what others have freed. Slabs that come to be empty stay within the heap's bound. */
void onuma__slab_drain(onuma__heap *heap);

/* Slabs with no slot in use go back to the ranges. Returns whether any did. */
bool onuma__slab_retire_empty(onuma__heap *heap);

/* Make a slab of a taken node and put it at the front of its class. Under the engine's lock too. OUT_OF_MEMORY. */
onuma_result onuma__slab_make(onuma__heap *heap, onuma__node *node, unsigned class_index);

/* ------------------------------------------------------------------ anyone */

/* As onuma__engine_free, for an address whose page belongs to this slab. */
onuma_result onuma__slab_free(onuma__slab *slab, uintptr_t address, onuma__tag tag, onuma__engine **engine);
void onuma__slab_release(onuma__slab *slab, uintptr_t address);
onuma_result onuma__slab_resize(onuma__slab *slab, uintptr_t address, size_t size);
onuma_result onuma__slab_set_special(onuma__slab *slab, uintptr_t address, bool special);
/* The block that holds the address, if it is live; with `held`, if it is held. */
onuma_result onuma__slab_find(onuma__slab *slab, uintptr_t address, bool held, onuma__block *out);
/* Every live block; false if fn wanted to stop. Everyone at rest. */
bool onuma__slab_walk(onuma__slab *slab, bool (*fn)(void *user, const onuma__block *block), void *user);

/* A slab of a dying engine: its descriptor goes back, its memory is the caller's. */
void onuma__slab_forget(onuma__engine *engine, onuma__slab *slab);

/* Bytes of a descriptor. */
size_t onuma__slab_metadata(const onuma__slab *slab);

static inline onuma__slab *onuma__entry_slab(onuma__entry entry) {
    return (onuma__slab *)(entry & ~(onuma__entry)ONUMA__ENTRY_SORT);
}

#endif
