/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bitmaps with summaries: a set bit in one level says that the word below it is
 * not zero, so the nearest set bit at or before a place is found by looking at
 * two words per level, however far away it is. Not thread-safe.
 */
#ifndef ONUMA_POOL_BITMAP_H
#define ONUMA_POOL_BITMAP_H

#include "base/result.h"

#define ONUMA__BITMAP_LEVELS 6 /* 64^6 bits: more than an address space of pages */

typedef struct onuma__bitmap {
    size_t bits;
    unsigned levels;
    uint64_t *words[ONUMA__BITMAP_LEVELS]; /* [0] the bits themselves; one allocation, which words[0] owns */
} onuma__bitmap;

/* All clear. OUT_OF_MEMORY. */
onuma_result onuma__bitmap_init(onuma__bitmap *map, size_t bits);
void onuma__bitmap_finish(onuma__bitmap *map);
void onuma__bitmap_set(onuma__bitmap *map, size_t bit);
void onuma__bitmap_clear(onuma__bitmap *map, size_t bit);
bool onuma__bitmap_test(const onuma__bitmap *map, size_t bit);
/* The last set bit at or before `bit`; SIZE_MAX if there is none. */
size_t onuma__bitmap_previous(const onuma__bitmap *map, size_t bit);

/* Plain arrays of words: set or clear, and count the set bits, of [from, to). */
void onuma__bits_assign(uint64_t *words, size_t from, size_t to, bool value);
size_t onuma__bits_count(const uint64_t *words, size_t from, size_t to);
/* The first bit of [from, to) that has this value; `to` if none. */
size_t onuma__bits_find(const uint64_t *words, size_t from, size_t to, bool value);

static inline bool onuma__bits_test(const uint64_t *words, size_t bit) {
    return (words[bit / 64] >> (bit % 64) & 1) != 0;
}

#endif
