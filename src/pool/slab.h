/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slabs: runs of equal slots for small blocks, described out of band.
 *
 * What a slot is, is told by three bits:
 *
 *   free   in the owner's bitmap: plain stores by the heap's owner (or a taker), relaxed loads by anyone
 *   dead   freed: set by compare-exchange, by anyone; cleared when the slot is handed out again
 *   held   dead, but not to be reused before onuma__engine_release
 *
 *   live = neither free nor dead, and not in a tray of the heap (tray.h); dead
 *   slots become free too when the heap drains them, except those that are held.
 *
 * That nobody frees a slot twice: two frees at once must agree on one of them,
 * which takes an atomic operation or a fence. An owner into whose slabs nobody
 * else frees would pay for that in vain, so a heap begins as its owner's alone:
 * the owner looks at the slot's note and sets the free bit, or puts the block in a
 * tray, by plain loads and stores.
 * Whoever else wants to free first makes the heap *shared* (onuma__heap_share),
 * which waits until the owner is not inside. From then on every free, the
 * owner's too, must win the exchange that sets the dead bit:
 *
 *   - Others look at the free bit and the note only once the heap is shared. So
 *     what they find not free, and with a note, is live or dead, and only the
 *     winner of an exchange changes that.
 *   - The dead bit stays until the slot is handed out, also while the slot is
 *     free, and then the free bit goes first. So whoever comes late with an
 *     exchange loses it, or frees the block that has come to live there.
 *
 * tests/unit/test_pool_schedules.c goes through all orders of these steps.
 *
 * Dead bits lie 32 to a word beside the slab's generation. When a slab is
 * retired the generation in every word is raised: a thread that comes late with
 * a stale idea of the slab fails its exchange, rather than free a slot of the
 * descriptor's next life. The word that tells whether the slab is on its heap's
 * list has the generation too, for the thread that was held up between setting
 * its bit (since drained) and listing the slab.
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
    onuma__tray *tray; /* of its class, in its heap */
    uint32_t class_index;
    uint32_t bytes; /* of the node */

    /* The guarded part (heap.h). */
    uint32_t used;                /* slots not free: live, or dead and not drained, or held */
    uint64_t summary;             /* bit: that word of free bits is not zero */
    onuma__slab *previous, *next; /* in a list of the heap: open[class] if used < slots, else full */

    /* Anyone's. */
    _Atomic uint64_t queued; /* generation << 1 | whether it is on its heap's remote list */
    _Atomic bool recycled;   /* as in onuma__block, of every slot: some came from such memory, or was freed. Relaxed */
    _Atomic uint32_t attention; /* slots that are special or held: the fast path of free wants 0 */
    _Atomic(onuma__slab *) remote_next;

    /* Arrays, within the descriptor; those that pointers lead to lie behind the notes. */
    _Atomic uint64_t *free_words;    /* 64 slots each */
    _Atomic uint64_t *dead_words;    /* generation << 32 | 32 slots */
    _Atomic uint64_t *special_words; /* side records exist */
    _Atomic uint64_t *held_words;
    _Atomic uint16_t notes[]; /* one more than there are slots, for the rest at the end: ONUMA__NOTE_*; relaxed */
};

/*
 * A slot's note: its size less what was requested, and a flag: that a stricter alignment than the pool's was asked for
 * (the slot size is a multiple of it). Or NONE: nobody has the slot's block. Slots that are free, or in a tray, have no
 * note, and those that were held, from their release on; those that another thread freed, and held ones, keep theirs.
 * A held slot without a note is stranded: see strand.c.
 */
#define ONUMA__NOTE_ALIGNED 0x8000u
#define ONUMA__NOTE_NONE 0xffffu

/* ------------------------------------------------ under the heap's guard, or by its owner while busy */

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
/* The block was allocated with a stricter alignment than the pool's. */
void onuma__slab_set_aligned(onuma__slab *slab, uintptr_t address);
/* The block that holds the address, if it is live; with `held`, if it is held. */
onuma_result onuma__slab_find(onuma__slab *slab, uintptr_t address, bool held, onuma__block *out);
/* Of held slots, under the engine's lock: as onuma__engine_strand and onuma__engine_take_stranded. */
void onuma__slab_strand(onuma__slab *slab, uintptr_t address);
size_t onuma__slab_take_stranded(onuma__slab *slab, onuma__block *out, size_t room);
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
