/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the fuzz targets share: a check that ends the process, which is how
 * libFuzzer learns of a finding, and a reader that makes choices of bytes.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* FUZZ_CHECK(what must hold, format, ...) */
#define FUZZ_CHECK(condition, ...)                                                                                     \
    do {                                                                                                               \
        if (condition) break;                                                                                          \
        fprintf(stderr, "%s:%d: not (%s): ", __FILE__, __LINE__, #condition);                                          \
        fprintf(stderr, __VA_ARGS__);                                                                                  \
        fputc('\n', stderr);                                                                                           \
        abort();                                                                                                       \
    } while (0)

/* Called where an input was accepted and gone through to the end. scripts/fuzz.sh wants to see it of the kept inputs:
 * a target that refuses all that it is given finds nothing. */
static inline void fuzz_reached_the_end(void) {
    static bool told;
    if (!told) fputs("fuzz: reached the end\n", stderr);
    told = true;
}

/* A copy of exactly `size` bytes, so that AddressSanitizer sees every step beyond them. Freed by the caller. */
static inline void *fuzz_copy(const void *data, size_t size) {
    void *copy = malloc(size != 0 ? size : 1);
    FUZZ_CHECK(copy != NULL, "no memory for the input");
    if (size != 0) memcpy(copy, data, size);
    return copy;
}

typedef struct fuzz_bytes {
    const uint8_t *next;
    size_t left;
} fuzz_bytes;

/* The next byte; 0 once there are none. */
static inline uint8_t fuzz_byte(fuzz_bytes *from) {
    if (from->left == 0) return 0;
    from->left--;
    return *from->next++;
}

static inline uint64_t fuzz_number(fuzz_bytes *from, size_t bytes) {
    uint64_t number = 0;
    for (size_t i = 0; i < bytes; i++)
        number = number << 8 | fuzz_byte(from);
    return number;
}

#endif
