/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tests. A family is a way to use an allocator, a file each; a test is a family with sizes, threads and touching.
 * Where nothing else is said, the unit is an allocation and its free, as one thread sees it.
 */
#ifndef CLI_BENCH_ALLOC_TEST_H
#define CLI_BENCH_ALLOC_TEST_H

#include "bench/alloc/allocator.h"

/* Sizes of the tests with random ones. */
enum { BENCH_LEAST = 64, BENCH_MOST = 1 << 20 };

typedef struct bench_test bench_test;

/* Nanoseconds for each unit: by the clock, and of the threads' CPU time (0 where the system's is too coarse). */
typedef struct bench_time {
    double wall, cpu;
} bench_time;

/* What is measured: an allocator, with a heap of its own, in a test. */
typedef struct bench_subject {
    const bench_test *test;
    const bench_allocator *allocator;
    void *heap;
    const void *drawn;       /* what the family drew for the test; NULL if it draws nothing */
    struct bench_team *team; /* as many threads as the test has */
} bench_subject;

typedef struct bench_family {
    /* Run `count` units, or a few more, in each thread. Reports nothing; false: the allocator failed. */
    bool (*measure)(const bench_subject *subject, uint64_t count, bench_time *out);
    bool (*suits)(const bench_allocator *allocator); /* NULL: every one */
    void *(*draw)(const bench_test *test);           /* the sequences, once for all allocators and rounds; NULL: none */
    void (*drop)(void *drawn);
    bool less_null; /* the time that the null allocator takes is subtracted from the others' */
    bool across;    /* blocks are freed by another thread than allocated them */
    bool scales;    /* beside it runs a loop that shares nothing (bench_compute) */
    bool finds;     /* pointers are looked up */
} bench_family;

extern const bench_family bench_lifo, bench_replace, bench_handover, bench_lookup;

struct bench_test {
    char name[40];
    const bench_family *family;
    uint32_t least, most; /* sizes; equal where they are not random */
    unsigned threads;
    size_t depth; /* of lifo: blocks held at once */
    bool touch;
};

/* All tests, up to so many threads. Returns how many; at most BENCH_MOST_TESTS are written. */
enum { BENCH_MOST_TESTS = 64 };
size_t bench_tests(unsigned threads, size_t depth, bench_test *out);

/* The loop that shares nothing: the time of one step of it, on all threads of the team at once. */
bool bench_compute(struct bench_team *team, uint64_t count, bench_time *out);

#endif
