/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences of sizes and slots, drawn before anything is timed. The same seed gives the same one on every machine. */
#ifndef CLI_BENCH_ALLOC_SEQUENCE_H
#define CLI_BENCH_ALLOC_SEQUENCE_H

#include <stddef.h>
#include <stdint.h>

#include "bench/alloc/allocator.h"

typedef struct bench_random {
    uint64_t state; /* the seed at first */
} bench_random;

uint64_t bench_draw(bench_random *random);

/* From least to most, each power of two in between as likely as any other. */
uint32_t bench_draw_size(bench_random *random, uint32_t least, uint32_t most);

/* `count` replacements in `slots` slots. For the caller to free. */
bench_step *bench_draw_steps(bench_random *random, size_t count, uint32_t slots, uint32_t least, uint32_t most);

#endif
