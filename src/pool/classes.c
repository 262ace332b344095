/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/classes.h"

#include "pool/pagemap.h"

/*
 * How long a slab of this class is: 64 KiB for classes up to 8 KiB, then eight
 * slots; and of the lengths from five eighths of that on, the one with the
 * smallest part lost at the end.
 */
static size_t slab_bytes(size_t slot) {
    const size_t most = slot * 8 > 64 * 1024 ? slot * 8 : 64 * 1024;
    size_t best = 0, best_lost = 0;
    for (size_t bytes = most & ~(ONUMA__UNIT - 1); bytes >= most / 8 * 5; bytes -= ONUMA__UNIT) {
        size_t slots = bytes / slot;
        if (slots > ONUMA__SLAB_SLOTS_MAX) slots = ONUMA__SLAB_SLOTS_MAX;
        const size_t lost = bytes - slots * slot;
        /* lost / bytes < best_lost / best, without dividing */
        if (best == 0 || lost * best < best_lost * bytes) {
            best = bytes;
            best_lost = lost;
        }
    }
    return best;
}

uint8_t onuma__class_of_units[ONUMA__CLASS_UNITS];

/* The same for every shift: the classes are so many units. */
static void fill_table(void) {
    const onuma__classes in_units = {0};
    unsigned index = 0;
    for (size_t units = 1; units <= ONUMA__CLASS_UNITS; units++) {
        if (units > onuma__class_size(&in_units, index)) index++;
        onuma__class_of_units[units - 1] = (uint8_t)index;
    }
}

void onuma__classes_init(onuma__classes *classes, size_t alignment) {
    static onuma__os_once once;
    onuma__os_once_run(&once, fill_table);
    *classes = (onuma__classes){.shift = (unsigned)__builtin_ctzll(alignment)};
    if (alignment > ONUMA__UNIT) return;
    while (classes->count < ONUMA__CLASSES_MAX && onuma__class_size(classes, classes->count) <= ONUMA__SMALL_MAX) {
        classes->slab_bytes[classes->count] = (uint32_t)slab_bytes(onuma__class_size(classes, classes->count));
        classes->count++;
    }
}

unsigned onuma__class_aligned(const onuma__classes *classes, size_t size, size_t align) {
    if (size > ONUMA__SMALL_MAX) return classes->count;
    unsigned index = onuma__class_of(classes->shift, size);
    while (index < classes->count && onuma__class_size(classes, index) % align != 0)
        index++;
    return index;
}
