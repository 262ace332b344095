/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page map: from any address to the descriptor of the block or slab there.
 *
 * One for the process, immortal, covering all 64 bits of address (device
 * pointers above the canonical half exist). Three levels, of which the lower
 * two are mapped when memory there is first used and stay for ever, so that a
 * look-up needs no lock and cannot fault, whatever the pointer:
 *
 *     63        48 47         29 28        12 11      0
 *     | root: 16 |   mid: 19   |  leaf: 17  |  page   |
 *
 * Nearly all addresses are below 2^48. The mid table for those is a variable, so
 * that their way has two loads.
 *
 * A large block has an entry on the page where it starts and nowhere else; a
 * slab has one on each of its pages, and so has a chunk (arena.h) where no block starts. So making a large block costs one store
 * however large it is. Pointers into the middle of large blocks are found
 * through the directory and the segment's bitmap of starts instead.
 *
 * Entries are written under the lock of the engine that has the memory, with
 * release, and read with acquire, which makes the descriptor behind readable.
 */
#ifndef ONUMA_POOL_PAGEMAP_H
#define ONUMA_POOL_PAGEMAP_H

#include "os/os.h"

#include <stdatomic.h>

#define ONUMA__UNIT_SHIFT 12
#define ONUMA__UNIT ((size_t)1 << ONUMA__UNIT_SHIFT)

#define ONUMA__MAP_ROOT_BITS 16
#define ONUMA__MAP_MID_BITS 19
#define ONUMA__MAP_LEAF_BITS 17

/* 0: nothing; else the descriptor's address, with its sort in the low bits. */
typedef uintptr_t onuma__entry;
enum { ONUMA__ENTRY_SLAB = 1, ONUMA__ENTRY_NODE = 2, ONUMA__ENTRY_CHUNK = 3, ONUMA__ENTRY_SORT = 3 };

typedef struct onuma__map_leaf {
    _Atomic onuma__entry entries[(size_t)1 << ONUMA__MAP_LEAF_BITS];
} onuma__map_leaf;

typedef struct onuma__map_mid {
    _Atomic(onuma__map_leaf *) leaves[(size_t)1 << ONUMA__MAP_MID_BITS];
} onuma__map_mid;

extern ONUMA__HIDDEN _Atomic(onuma__map_mid *) onuma__map_root[(size_t)1 << ONUMA__MAP_ROOT_BITS]; /* [0] is unused */
extern ONUMA__HIDDEN onuma__map_mid onuma__map_low;

#define ONUMA__MAP_LEAF_SHIFT (ONUMA__MAP_LEAF_BITS + ONUMA__UNIT_SHIFT)
#define ONUMA__MAP_MID_SHIFT (ONUMA__MAP_MID_BITS + ONUMA__MAP_LEAF_SHIFT)

static inline onuma__entry onuma__pagemap_get(uint64_t address) {
    onuma__map_mid *mid = &onuma__map_low;
    size_t m = address >> ONUMA__MAP_LEAF_SHIFT;
    if (ONUMA__UNLIKELY(address >> ONUMA__MAP_MID_SHIFT != 0)) {
        mid = atomic_load_explicit(&onuma__map_root[address >> ONUMA__MAP_MID_SHIFT], memory_order_acquire);
        if (mid == NULL) return 0;
        m &= ((size_t)1 << ONUMA__MAP_MID_BITS) - 1;
    }
    onuma__map_leaf *leaf = atomic_load_explicit(&mid->leaves[m], memory_order_acquire);
    if (ONUMA__UNLIKELY(leaf == NULL)) return 0;
    const size_t l = (address >> ONUMA__UNIT_SHIFT) & (((size_t)1 << ONUMA__MAP_LEAF_BITS) - 1);
    return atomic_load_explicit(&leaf->entries[l], memory_order_acquire);
}

/* Make sure that entries for these addresses can be set. OUT_OF_MEMORY. */
onuma_result onuma__pagemap_prepare(uint64_t base, size_t size);

/* Set one entry, or that of every page. The addresses are prepared. */
void onuma__pagemap_set(uint64_t address, onuma__entry entry);
void onuma__pagemap_fill(uint64_t base, size_t size, onuma__entry entry);

#endif
