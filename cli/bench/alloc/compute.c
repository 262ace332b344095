/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop that shares nothing: arithmetic and a small table, each thread its own. How much slower it gets with more
 * threads is what the machine itself costs (clocks that fall, processors that share a core, others' work), and what an
 * allocator's scaling is held against.
 */
#include "bench/alloc/sequence.h"
#include "bench/alloc/together.h"

enum { TABLE = 512 };

static bool work(void *argument, unsigned index, uint64_t count) {
    (void)argument;
    uint64_t table[TABLE] = {0};
    bench_random random = {.state = index};
    for (uint64_t i = 0; i < count; i++) {
        uint64_t drawn = bench_draw(&random);
        table[drawn % TABLE] += drawn;
    }
    volatile uint64_t kept = table[count % TABLE]; /* so that all of it has to be computed */
    (void)kept;
    return true;
}

bool bench_compute(bench_team *team, uint64_t count, bench_time *out) {
    static const bench_work loop = {.work = work};
    return bench_together(&loop, NULL, team, count, out);
}
