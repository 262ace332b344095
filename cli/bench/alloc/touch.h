/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_BENCH_ALLOC_TOUCH_H
#define CLI_BENCH_ALLOC_TOUCH_H

#include <stddef.h>

enum { BENCH_PAGE = 4096, BENCH_DEEPEST = 256 };

/* Write a byte into every page of a block, its first included. */
static inline void bench_touch(void *block, size_t size) {
    volatile char *bytes = block;
    for (size_t at = 0; at < size; at += BENCH_PAGE)
        bytes[at] = 1;
}

#endif
