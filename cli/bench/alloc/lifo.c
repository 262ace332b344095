/* SPDX-License-Identifier: Apache-2.0 */
/* lifo: blocks of one size; the last allocated is the first freed. One at a time, unless depth says more. */
#include "bench/alloc/together.h"

static bool work(void *argument, unsigned index, uint64_t count) {
    (void)index;
    const bench_subject *s = argument;
    return s->allocator->loops->lifo(s->heap, s->test->most, s->test->depth, count, s->test->touch);
}

static bool measure(const bench_subject *subject, uint64_t count, bench_time *out) {
    static const bench_work lifo = {.work = work};
    bench_subject s = *subject;
    count += s.test->depth - 1;
    return bench_together(&lifo, &s, s.team, count - count % s.test->depth, out);
}

const bench_family bench_lifo = {.measure = measure};
