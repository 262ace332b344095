/* SPDX-License-Identifier: Apache-2.0 */
/* A device to try the rules on: a thread that does work in the order in which it is handed in, and takes its time. */
#ifndef TOY_H
#define TOY_H

#include <opennuma/opennuma.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef void toy_work(int *numbers, size_t count);

typedef struct toy {
    onuma_host_timeline timeline; /* what the library looks at */
    onuma_queue *queue;
    pthread_t thread;
    struct {
        toy_work *work;
        int *numbers;
        size_t count;
    } jobs[256];
} toy;

static inline void must(onuma_result result) {
    if (result == ONUMA_OK) return;
    fprintf(stderr, "%s: %s\n", onuma_result_name(result), onuma_last_error());
    exit(1);
}

static inline void *toy_serve(void *argument) {
    toy *t = argument;
    const struct timespec moment = {.tv_nsec = 2000000};
    for (uint64_t done = 0;; done++) {
        while (atomic_load(&t->timeline.submitted) == done)
            nanosleep(&moment, NULL);
        if (!t->jobs[done % 256].work) return NULL;
        nanosleep(&moment, NULL);
        t->jobs[done % 256].work(t->jobs[done % 256].numbers, t->jobs[done % 256].count);
        atomic_store(&t->timeline.completed, done + 1);
    }
}

/* The queue of the host device; work that is handed in runs behind what was before. */
static inline void toy_start(toy *t, onuma_device *host) {
    must(onuma_queue_wrap(host, ONUMA_API_HOST, (uint64_t)(uintptr_t)&t->timeline, NULL, &t->queue));
    if (pthread_create(&t->thread, NULL, toy_serve, t) != 0) exit(1);
}

static inline void toy_launch(toy *t, toy_work *work, int *numbers, size_t count) {
    const uint64_t number = atomic_load(&t->timeline.submitted);
    t->jobs[number % 256].work = work;
    t->jobs[number % 256].numbers = numbers;
    t->jobs[number % 256].count = count;
    atomic_store(&t->timeline.submitted, number + 1);
}

static inline void toy_stop(toy *t) {
    must(onuma_queue_release(t->queue));
    toy_launch(t, NULL, NULL, 0);
    pthread_join(t->thread, NULL);
}

static inline onuma_pool *toy_pool(onuma_runtime **runtime, onuma_device **host) {
    onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
    onuma_pool *pool;
    must(onuma_runtime_create(NULL, runtime));
    must(onuma_device_find(*runtime, "host", host));
    must(onuma_pool_create(*host, &desc, &pool));
    return pool;
}

#endif
