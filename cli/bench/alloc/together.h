/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that are timed while all of them work: each makes ready, then all begin at once, and none tears down before the
 * last has finished.
 */
#ifndef CLI_BENCH_ALLOC_TOGETHER_H
#define CLI_BENCH_ALLOC_TOGETHER_H

#include "bench/alloc/test.h"
#include "bench/alloc/thread.h"

typedef struct bench_work {
    bool (*prepare)(void *argument, unsigned index); /* NULL: nothing */
    bool (*work)(void *argument, unsigned index,
                 uint64_t count);                   /* what is timed; called only where all are prepared */
    void (*finish)(void *argument, unsigned index); /* NULL: nothing; always called */
} bench_work;

/*
 * On all threads of the team. Times for each of the `count` units of a thread: by the clock from the first
 * thread's begin to the last one's end, of CPU the mean of the threads. false: one's function gave false.
 */
bool bench_together(const bench_work *work, void *argument, bench_team *team, uint64_t count, bench_time *out);

#endif
