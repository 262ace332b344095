/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic on sizes that cannot overflow unnoticed. */
#ifndef ONUMA_BASE_CHECKED_H
#define ONUMA_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool onuma__is_power_of_two(size_t x) {
    return x != 0 && (x & (x - 1)) == 0;
}

/* *sum = a + b; false (and *sum untouched) if that overflows. */
static inline bool onuma__add(size_t a, size_t b, size_t *sum) {
    if (a > SIZE_MAX - b) return false;
    *sum = a + b;
    return true;
}

static inline bool onuma__multiply(size_t a, size_t b, size_t *product) {
    if (b != 0 && a > SIZE_MAX / b) return false;
    *product = a * b;
    return true;
}

/* *up = x rounded up to a multiple of the power of two `align`; false on overflow. */
static inline bool onuma__align_up(size_t x, size_t align, size_t *up) {
    if (!onuma__add(x, align - 1, &x)) return false;
    *up = x & ~(align - 1);
    return true;
}

static inline size_t onuma__align_down(size_t x, size_t align) {
    return x & ~(align - 1);
}

#endif
