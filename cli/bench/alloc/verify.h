/* SPDX-License-Identifier: Apache-2.0 */
/* Before a test is timed: does the allocator do what the test takes for granted? */
#ifndef CLI_BENCH_ALLOC_VERIFY_H
#define CLI_BENCH_ALLOC_VERIFY_H

#include "bench/alloc/test.h"

/*
 * The test's sizes, allocated, filled, kept beside others, looked at again and freed, by as many threads as the test has
 * (up to four), and by another thread than allocated them where the test does so: blocks are aligned, may be written,
 * do not overlap. false: one is not so, and `wrong` says which.
 */
bool bench_verify(const bench_test *test, const bench_allocator *allocator, void *heap, char *wrong, size_t size);

#endif
