/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trays: small blocks that a thread has freed and has at hand for its next
 * allocations, a stack of them for each size class, in front of the slabs.
 *
 * A slab finds a slot by its bits, and a block's slot by a look-up: each
 * allocation would wait for the look-up of the free before it. A tray keeps the
 * address, so the one thing that an allocation waits for is the address itself;
 * what has to be checked and noted goes on beside it.
 *
 * To the slab, a slot in a tray is in use: it is not free, and was counted as
 * allocated. What tells everybody else that the block is dead is its *note*
 * (slab.h), the word of the slab that says how much of the slot was asked for:
 * ONUMA__NOTE_NONE while nobody has the block. So handing out is one store of
 * the new note, and freeing one look at it and one store. Nothing of that is
 * atomic, so blocks come into trays only as long as nobody else frees into the
 * heap's slabs (heap.h, slab.h): then the owner is alone with the notes. In a
 * heap that came to be shared what lies in its trays is handed out, or goes back.
 *
 * Counting (stats.h): a block in a tray is still counted as in use, and taken off
 * when someone reads; a count of what was taken out of each gives both allocations
 * and frees.
 */
#ifndef ONUMA_POOL_TRAY_H
#define ONUMA_POOL_TRAY_H

#include "pool/engine.h"

#define ONUMA__TRAY_MOST 15
#define ONUMA__TRAY_BYTES ((size_t)64 * 1024) /* at most in one tray */

typedef struct onuma__tray_item {
    uintptr_t block;
    _Atomic uint16_t *note;
} onuma__tray_item;

/*
 * Header and first items share a cache line. Under the heap's guard, and in part read for statistics (relaxed): so
 * `state` is one word, of which one addition changes both parts. The low byte says how many bytes of items there are,
 * which is what the shortest ways index by; the rest how many items were ever taken out and not yet counted elsewhere.
 */
typedef struct onuma__tray {
    _Atomic uint64_t state;
    uint32_t size; /* of the class */
    uint32_t most; /* bytes of items; 0: this engine has no trays */
    onuma__tray_item items[ONUMA__TRAY_MOST];
} onuma__tray;
_Static_assert(sizeof(onuma__tray) == 256, "a tray is found by a shift, its items by a byte");

#define ONUMA__TRAY_ITEM sizeof(onuma__tray_item)
#define ONUMA__TRAY_TAKEN ((uint64_t)256) /* one, in `state` */

static inline uint32_t onuma__tray_filled(uint64_t state) {
    return (uint8_t)state;
}

/* How many blocks lie in it. */
static inline uint32_t onuma__tray_count(const onuma__tray *tray) {
    return onuma__tray_filled(atomic_load_explicit(&tray->state, memory_order_relaxed)) / (uint32_t)ONUMA__TRAY_ITEM;
}

/* The item that comes after that many bytes of others. */
static inline onuma__tray_item *onuma__tray_item_at(onuma__tray *tray, size_t filled) {
    return (onuma__tray_item *)(void *)((unsigned char *)tray->items + filled);
}

/* Empty, for a heap that begins. */
void onuma__trays_reset(onuma__heap *heap);

/* Guarded: what lies in trays goes back to the slabs. Returns whether anything did. */
bool onuma__trays_flush(onuma__heap *heap);

#endif
