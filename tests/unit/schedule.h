/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scheduler that runs a few threads in every order there is.
 *
 * Threads are fibers. One runs until it is about to do something that others may notice, announces it and waits to
 * be chosen. schedule_explore runs a scenario again and again, each time with the first choice changed that has an
 * alternative left, until none is.
 *
 * Two orders that differ only in steps that have nothing to do with each other are the same to everybody, so of such a
 * class one is enough. Two means see to that, and both leave no class out:
 *
 *   - Steps at places in the code that never meet another thread's (one of both writing) are no choices at all. Which
 *     places these are is found while running: if one turns out to meet another after all, all begins anew.
 *   - Sleep sets (Godefroid): after a thread was chosen at some point, its alternatives need not choose it again before
 *     a step has come that has to do with the one it is about to do.
 */
#ifndef ONUMA_TESTS_SCHEDULE_H
#define ONUMA_TESTS_SCHEDULE_H

#include "os/os.h"

#define SCHEDULE_THREADS 4

typedef struct schedule_scenario {
    const char *name;
    size_t threads;
    void (*begin)(void); /* with no scheduling; see schedule_become */
    void (*const thread[SCHEDULE_THREADS])(void);
    const char *(*end)(void); /* with no scheduling: NULL, or what went wrong */
} schedule_scenario;

/* Faults to plant; zero: none. */
typedef struct schedule_faults {
    const char *torn;  /* compare-exchanges of this expression compare in one step and store in the next */
    const char *blind; /* loads of this expression read 0 */
} schedule_faults;

/* NULL if all orders end well; else what went wrong in the first that does not. *runs: how many were tried. */
const char *schedule_explore(const schedule_scenario *scenario, schedule_faults faults, size_t *runs);

/* Outside of the threads: speak as one of them (its thread state) from now on. */
void schedule_become(size_t thread);
/* As one of them exits, for its thread state. */
void schedule_exit(size_t thread);

/* What the hooks call. */
void schedule_step(const char *place, int line, const volatile void *address, bool writes);
void schedule_lock(onuma__os_lock *lock);
void schedule_unlock(onuma__os_lock *lock);
void schedule_yield(void);
bool schedule_barrier(void); /* true: all threads are one */
onuma__os_thread *schedule_thread(void);
void schedule_on_thread_exit(void (*fn)(onuma__os_thread *));
bool schedule_is_blind(const char *expression);
bool schedule_tears(const char *expression);

#endif
