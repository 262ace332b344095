/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that measure: each on a processor of its own where there are enough, with a clock of its own. */
#ifndef CLI_BENCH_ALLOC_THREAD_H
#define CLI_BENCH_ALLOC_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { BENCH_MOST_THREADS = 512 };

typedef void bench_body(void *argument, unsigned index);

/*
 * A team of threads that lives as long as a test: what an allocator keeps for a thread is there in the next round, as it
 * is in a program. NULL: they cannot be started.
 */
typedef struct bench_team bench_team;

bench_team *bench_team_start(unsigned count);

/* body(argument, 0) to body(argument, count - 1), each in its thread; returns when all have. */
void bench_team_run(bench_team *team, bench_body *body, void *argument);

unsigned bench_team_size(const bench_team *team);

void bench_team_end(bench_team *team); /* NULL ok */

/*
 * Wait a little for another thread; `tried` counts from 0 how often it was waited. First by spinning, then asleep: the
 * other one may need this very processor. Not by yielding, for where many do so nobody else gets anywhere.
 */
void bench_wait(unsigned tried);

/* All of `count` threads come to the gate, then all go on. Zero-filled but for count; may be used again at once. */
typedef struct bench_gate {
    unsigned count;
    atomic_uint arrived, round; /* acquire and release: who goes on sees what the others did before they came */
} bench_gate;

void bench_gate_pass(bench_gate *gate);

/* ------------------------------------------------ the system's: thread_posix.c, thread_windows.c */

/* Processors that this process may use. */
unsigned bench_processors(void);

/* Bind the calling thread to the i-th of them, if the system can; beyond the last it begins anew. */
void bench_bind(unsigned i);

/* CPU time of the calling thread, in nanoseconds. */
uint64_t bench_thread_time(void);

typedef struct bench_thread bench_thread;

bench_thread *bench_thread_start(void (*run)(void *argument), void *argument); /* NULL: it cannot be started */
void bench_thread_join(bench_thread *thread);

#endif
