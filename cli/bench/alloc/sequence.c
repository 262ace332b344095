/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/alloc/sequence.h"

#include <math.h>

#include "output.h"

/* SplitMix64: any seed will do, neighbouring ones too. */
uint64_t bench_draw(bench_random *random) {
    uint64_t z = random->state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

uint32_t bench_draw_size(bench_random *random, uint32_t least, uint32_t most) {
    double unit = (double)(bench_draw(random) >> 11) / 9007199254740992.0; /* 2^53: [0, 1) */
    double size = exp2(log2(least) + unit * (log2(most) - log2(least)));
    return size < most ? (uint32_t)size : most;
}

bench_step *bench_draw_steps(bench_random *random, size_t count, uint32_t slots, uint32_t least, uint32_t most) {
    bench_step *steps = cli_allocate(count * sizeof *steps);
    for (size_t i = 0; i < count; i++)
        steps[i] =
            (bench_step){.slot = (uint32_t)(bench_draw(random) % slots), .size = bench_draw_size(random, least, most)};
    return steps;
}
