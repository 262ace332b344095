/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/pattern.h"

#include <string.h>

/* Far apart for neighbouring numbers, and odd steps, so that every word of every block is its own. */
static const uint64_t number_step = 0xD1342543DE82EF95u, word_step = 0x9E3779B97F4A7C15u;

enum { WORD = sizeof(uint64_t), CHUNK = 512 }; /* words compared before looking whether one differed */

static uint64_t word_at(uint64_t number, size_t index) {
    return (number + 1) * number_step + index * word_step;
}

void pattern_fill(void *block, size_t size, uint64_t number) {
    unsigned char *bytes = block;
    size_t words = size / WORD;
    for (size_t i = 0; i < words; i++) {
        uint64_t word = word_at(number, i);
        memcpy(bytes + i * WORD, &word, WORD);
    }
    if (size % WORD == 0) return; /* nothing left, and of a block of 0 bytes not even an address */
    uint64_t last = word_at(number, words);
    memcpy(bytes + words * WORD, &last, size % WORD);
}

/* Whether words [from, to) are right: no branch inside, so that the compiler can use vectors. */
static bool chunk_holds(const unsigned char *bytes, size_t from, size_t to, uint64_t number) {
    uint64_t difference = 0;
    for (size_t i = from; i < to; i++) {
        uint64_t word;
        memcpy(&word, bytes + i * WORD, WORD);
        difference |= word ^ word_at(number, i);
    }
    return difference == 0;
}

bool pattern_check(const void *block, size_t size, uint64_t number, size_t *at) {
    const unsigned char *bytes = block;
    size_t words = size / WORD;
    for (size_t from = 0; from < words; from += CHUNK) {
        size_t to = words - from < CHUNK ? words : from + CHUNK;
        if (chunk_holds(bytes, from, to, number)) continue;
        while (chunk_holds(bytes, from, from + 1, number))
            from++;
        *at = from * WORD;
        return false;
    }
    if (size % WORD == 0) return true;
    uint64_t last = word_at(number, words);
    *at = words * WORD;
    return memcmp(bytes + words * WORD, &last, size % WORD) == 0;
}
