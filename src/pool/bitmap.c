/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/bitmap.h"

#include <stdlib.h>

onuma_result onuma__bitmap_init(onuma__bitmap *map, size_t bits) {
    size_t sizes[ONUMA__BITMAP_LEVELS], total = 0;
    unsigned levels = 0;
    size_t count = bits;
    do {
        count = count / 64 + (count % 64 != 0);
        sizes[levels++] = count;
        total += count;
    } while (count > 1 && levels < ONUMA__BITMAP_LEVELS);
    uint64_t *words = calloc(total != 0 ? total : 1, sizeof *words);
    if (words == NULL) return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "out of memory for a bitmap of %zu bits", bits);
    *map = (onuma__bitmap){.bits = bits, .levels = levels};
    for (unsigned level = 0; level < levels; level++) {
        map->words[level] = words;
        words += sizes[level];
    }
    return ONUMA_OK;
}

void onuma__bitmap_finish(onuma__bitmap *map) {
    free(map->words[0]);
    *map = (onuma__bitmap){0};
}

void onuma__bitmap_set(onuma__bitmap *map, size_t bit) {
    for (unsigned level = 0; level < map->levels; level++) {
        uint64_t *word = &map->words[level][bit / 64];
        const bool was_zero = *word == 0;
        *word |= (uint64_t)1 << (bit % 64);
        if (!was_zero) return;
        bit /= 64;
    }
}

void onuma__bitmap_clear(onuma__bitmap *map, size_t bit) {
    for (unsigned level = 0; level < map->levels; level++) {
        uint64_t *word = &map->words[level][bit / 64];
        *word &= ~((uint64_t)1 << (bit % 64));
        if (*word != 0) return;
        bit /= 64;
    }
}

bool onuma__bitmap_test(const onuma__bitmap *map, size_t bit) {
    return onuma__bits_test(map->words[0], bit);
}

static size_t highest(uint64_t word) {
    return 63u - (size_t)__builtin_clzll(word);
}

size_t onuma__bitmap_previous(const onuma__bitmap *map, size_t bit) {
    /* Up: at each level look at this bit's own word, up to and including the bit. */
    unsigned level = 0;
    for (;; level++) {
        if (level == map->levels) return SIZE_MAX;
        const uint64_t upto = map->words[level][bit / 64] & (~(uint64_t)0 >> (63 - bit % 64));
        if (upto != 0) {
            bit = bit / 64 * 64 + highest(upto);
            break;
        }
        if (bit / 64 == 0) return SIZE_MAX;
        bit = bit / 64 - 1;
    }
    /* Down: the highest bit of each word below. */
    while (level-- > 0)
        bit = bit * 64 + highest(map->words[level][bit]);
    return bit;
}

/* The bits of word `word` that lie in [from, to). */
static uint64_t mask_of(size_t word, size_t from, size_t to) {
    uint64_t mask = ~(uint64_t)0;
    if (word == from / 64) mask &= ~(uint64_t)0 << (from % 64);
    if (word == to / 64) mask &= to % 64 != 0 ? ~(uint64_t)0 >> (64 - to % 64) : 0;
    return mask;
}

void onuma__bits_assign(uint64_t *words, size_t from, size_t to, bool value) {
    for (size_t word = from / 64; word * 64 < to; word++) {
        if (value)
            words[word] |= mask_of(word, from, to);
        else
            words[word] &= ~mask_of(word, from, to);
    }
}

size_t onuma__bits_count(const uint64_t *words, size_t from, size_t to) {
    size_t count = 0;
    for (size_t word = from / 64; word * 64 < to; word++)
        count += (size_t)__builtin_popcountll(words[word] & mask_of(word, from, to));
    return count;
}

size_t onuma__bits_find(const uint64_t *words, size_t from, size_t to, bool value) {
    for (size_t word = from / 64; word * 64 < to; word++) {
        const uint64_t hits = (value ? words[word] : ~words[word]) & mask_of(word, from, to);
        if (hits != 0) return word * 64 + (size_t)__builtin_ctzll(hits);
    }
    return to;
}
