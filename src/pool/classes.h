/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Size classes of small blocks: multiples of the pool's alignment, eight to a
 * doubling, so that at most one ninth of a block of nine or more alignments is waste.
 */
#ifndef ONUMA_POOL_CLASSES_H
#define ONUMA_POOL_CLASSES_H

#include "base/result.h"

#define ONUMA__SMALL_MAX ((size_t)32 * 1024)
#define ONUMA__CLASSES_MAX 72 /* for an alignment of 16: 8 + 8 for each doubling from 256 to 32K */
#define ONUMA__SLAB_SLOTS_MAX 4096
#define ONUMA__SLAB_BYTES_MAX ((size_t)256 * 1024)

typedef struct onuma__classes {
    unsigned shift; /* alignment = 1 << shift */
    unsigned count; /* 0: the alignment is too large for slabs */
    uint32_t slab_bytes[ONUMA__CLASSES_MAX];
} onuma__classes;

void onuma__classes_init(onuma__classes *classes, size_t alignment);

/* The class of each number of units, less one; filled before the first heap. */
#define ONUMA__CLASS_UNITS (ONUMA__SMALL_MAX / 16)
extern ONUMA__HIDDEN uint8_t onuma__class_of_units[ONUMA__CLASS_UNITS];

/* The smallest class that holds `size` (1 to SMALL_MAX). */
static inline unsigned onuma__class_of(unsigned shift, size_t size) {
    return onuma__class_of_units[(size - 1) >> shift];
}

static inline size_t onuma__class_size(const onuma__classes *classes, unsigned index) {
    if (index < 8) return (size_t)(index + 1) << classes->shift;
    const unsigned group = (index - 8) / 8;
    return (size_t)((index - 8) % 8 + 9) << (group + classes->shift);
}

/* The smallest class that holds `size` and whose slots are all aligned to `align` (at most the unit); `count` if none. */
unsigned onuma__class_aligned(const onuma__classes *classes, size_t size, size_t align);

#endif
