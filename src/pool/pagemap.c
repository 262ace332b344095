/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/pagemap.h"

_Atomic(onuma__map_mid *) onuma__map_root[(size_t)1 << ONUMA__MAP_ROOT_BITS];
onuma__map_mid onuma__map_low;

#define LEAF_SPAN ((uint64_t)1 << ONUMA__MAP_LEAF_SHIFT)

/* NULL: none of those addresses was ever prepared. */
static onuma__map_mid *mid_of(uint64_t address) {
    const size_t root = (size_t)(address >> ONUMA__MAP_MID_SHIFT);
    return root == 0 ? &onuma__map_low : atomic_load_explicit(&onuma__map_root[root], memory_order_acquire);
}

static size_t mid_index(uint64_t address) {
    return (address >> ONUMA__MAP_LEAF_SHIFT) & (((size_t)1 << ONUMA__MAP_MID_BITS) - 1);
}

static size_t leaf_index(uint64_t address) {
    return (address >> ONUMA__UNIT_SHIFT) & (((size_t)1 << ONUMA__MAP_LEAF_BITS) - 1);
}

/* Threads may race to map the same table: one wins the exchange, the others give theirs back. */
static onuma_result prepare_leaf(uint64_t address) {
    onuma__map_mid *mid = mid_of(address);
    if (mid == NULL) {
        _Atomic(onuma__map_mid *) *slot = &onuma__map_root[address >> ONUMA__MAP_MID_SHIFT];
        onuma__map_mid *made = onuma__os_map(sizeof *made, 0);
        if (made == NULL) return ONUMA_ERROR_OUT_OF_MEMORY;
        if (atomic_compare_exchange_strong_explicit(slot, &mid, made, memory_order_acq_rel, memory_order_acquire))
            mid = made;
        else
            onuma__os_release(made, sizeof *made);
    }
    _Atomic(onuma__map_leaf *) *leaf_slot = &mid->leaves[mid_index(address)];
    onuma__map_leaf *leaf = atomic_load_explicit(leaf_slot, memory_order_acquire);
    if (leaf == NULL) {
        onuma__map_leaf *made = onuma__os_map(sizeof *made, 0);
        if (made == NULL) return ONUMA_ERROR_OUT_OF_MEMORY;
        if (!atomic_compare_exchange_strong_explicit(leaf_slot, &leaf, made, memory_order_acq_rel,
                                                     memory_order_acquire))
            onuma__os_release(made, sizeof *made);
    }
    return ONUMA_OK;
}

onuma_result onuma__pagemap_prepare(uint64_t base, size_t size) {
    if (size == 0) return ONUMA_OK;
    const uint64_t last = base + (size - 1);
    for (uint64_t at = base & ~(LEAF_SPAN - 1);; at += LEAF_SPAN) {
        const onuma_result r = prepare_leaf(at);
        if (r != ONUMA_OK) return r;
        if (last - at < LEAF_SPAN) return ONUMA_OK;
    }
}

void onuma__pagemap_set(uint64_t address, onuma__entry entry) {
    onuma__map_mid *mid = mid_of(address);
    onuma__map_leaf *leaf = atomic_load_explicit(&mid->leaves[mid_index(address)], memory_order_acquire);
    atomic_store_explicit(&leaf->entries[leaf_index(address)], entry, memory_order_release);
}

void onuma__pagemap_fill(uint64_t base, size_t size, onuma__entry entry) {
    for (size_t at = 0; at < size; at += ONUMA__UNIT)
        onuma__pagemap_set(base + at, entry);
}
