/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "bench/alloc/thread.h"
#include "output.h"

#if defined(__linux__)
unsigned bench_processors(void) {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
    return (unsigned)CPU_COUNT(&allowed);
}

/* Threads are bound one by one and never the first thread of the process, so that what it may use stays as it was. */
void bench_bind(unsigned i) {
    cpu_set_t allowed, chosen;
    if (sched_getaffinity(getpid(), sizeof allowed, &allowed) != 0) return;
    unsigned left = i % (unsigned)CPU_COUNT(&allowed);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed) || left-- > 0) continue;
        CPU_ZERO(&chosen);
        CPU_SET(cpu, &chosen);
        (void)pthread_setaffinity_np(pthread_self(), sizeof chosen, &chosen);
        return;
    }
}
#else
unsigned bench_processors(void) {
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? (unsigned)count : 1;
}

void bench_bind(unsigned i) {
    (void)i;
}
#endif

uint64_t bench_thread_time(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct bench_thread {
    pthread_t id;
    void (*run)(void *argument);
    void *argument;
};

static void *enter(void *started) {
    const bench_thread *thread = started;
    thread->run(thread->argument);
    return NULL;
}

bench_thread *bench_thread_start(void (*run)(void *argument), void *argument) {
    bench_thread *thread = cli_allocate(sizeof *thread);
    thread->run = run;
    thread->argument = argument;
    if (pthread_create(&thread->id, NULL, enter, thread) == 0) return thread;
    free(thread);
    return NULL;
}

void bench_thread_join(bench_thread *thread) {
    (void)pthread_join(thread->id, NULL);
    free(thread);
}
