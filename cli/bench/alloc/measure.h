/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A test on all allocators in turn, round by round, each round beginning with another, so that what disturbs the machine
 * for a while disturbs all alike.
 */
#ifndef CLI_BENCH_ALLOC_MEASURE_H
#define CLI_BENCH_ALLOC_MEASURE_H

#include "bench/alloc/test.h"
#include "bench/measured.h"

enum { BENCH_MOST_ALLOCATORS = 12 };

typedef struct bench_result {
    const bench_allocator *allocator;
    bench_figures wall, cpu;
} bench_result;

typedef struct bench_outcome {
    bench_test test;
    size_t count;
    bench_result results[BENCH_MOST_ALLOCATORS + 1]; /* in the order of the allocators, those that the family suits */
    bench_result compute;                            /* the loop that shares nothing; figures 0 where it did not run */
    double busy; /* how many times more than their CPU time things took by the clock; 0: not known */
} bench_outcome;

typedef struct bench_plan {
    unsigned repeat;
    uint64_t duration; /* ns that one measurement is to take */
} bench_plan;

/*
 * The null allocator joins by itself in tests that subtract its time; the others' figures are what is left then.
 * false: an allocator failed or broke a rule, and that was reported.
 */
bool bench_measure(const bench_plan *plan, const bench_test *test, const bench_allocator *allocators, size_t count,
                   bench_outcome *out);

#endif
