/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random operations on several threads, each with a queue of its own, on pools that all share.
 *
 *     test_gpu_model DEVICE [SECONDS] [SEED]
 *
 * Each block is known by the pattern that every byte of it must have. A thread allocates for its queue or for none, lets CPU
 * and kernels write and compare (in device memory kernels alone), frees with or without the queue, at once after
 * launching too, and hands some blocks to whoever takes them. At the end everything is freed and has come back.
 */
#define _GNU_SOURCE /* clock_gettime */
#include "device.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { THREADS = 8, BLOCKS = 24, MARKET = 32 };

typedef struct block {
    unsigned char *base; /* NULL: none */
    size_t size;
    uint32_t seed;
    bool shared; /* else of the device */
} block;

typedef struct model {
    onuma_device *device;
    onuma_pool *pools[2]; /* device, shared */
    pthread_mutex_t lock; /* guards the market */
    block market[MARKET];
    double seconds;
    uint64_t seed;
    _Atomic uint64_t operations, checks;
} model;

typedef struct worker {
    model *m;
    runner run;
    uint64_t random;
    uint32_t *wrong;
    block blocks[BLOCKS];
} worker;

static uint64_t draw(worker *w, uint64_t below) {
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return (w->random >> 11) % below;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ------------------------------------------------------------------- accesses */

static void cpu(worker *w, block *b) {
    RUN(&w->run, runner_acquire(&w->run, b->base, b->size, ONUMA_ACCESS_READ_WRITE));
    for (size_t i = 0; i < b->size; i++) {
        if (b->base[i] != kernel_pattern((uint32_t)i, b->seed))
            DIE("the CPU sees byte %zu of %zu at %p wrong", i, b->size, (void *)b->base);
        b->base[i] = kernel_pattern((uint32_t)i, b->seed + 1);
    }
    b->seed++;
    RUN(&w->run, runner_release(&w->run, b->base, b->size, ONUMA_ACCESS_READ_WRITE));
}

/* A kernel compares every byte with one pattern, and writes the next. */
static void turn(worker *w, block *b) {
    RUN(&w->run, runner_launch(&w->run, KERNEL_turn, kernel_turn_items(b->size, 1),
                               ARGUMENTS(BLOCK(b->base), BLOCK(w->wrong), NUMBER(b->size), NUMBER(1), NUMBER(b->seed),
                                         NUMBER(b->seed + 1))));
    b->seed++;
}

/* What turns have found since the last time; the first of a new block finds anything, and is not counted. */
static uint32_t found(worker *w) {
    RUN(&w->run, runner_acquire(&w->run, w->wrong, sizeof *w->wrong, ONUMA_ACCESS_READ_WRITE));
    const uint32_t wrong = *w->wrong;
    *w->wrong = 0;
    RUN(&w->run, runner_release(&w->run, w->wrong, sizeof *w->wrong, ONUMA_ACCESS_READ_WRITE));
    return wrong;
}

static void expect_nothing(worker *w) {
    const uint32_t wrong = found(w);
    if (wrong != 0) DIE("kernels see %u bytes wrong (seed %llu)", (unsigned)wrong, (unsigned long long)w->m->seed);
    atomic_fetch_add_explicit(&w->m->checks, 1, memory_order_relaxed);
}

/* ------------------------------------------------------------------ operations */

static void give_back(worker *w, block *b) {
    if (b->base == NULL) return;
    OK(onuma_free(b->base, draw(w, 2) ? w->run.queue : NULL));
    b->base = NULL;
}

static void take(worker *w, block *b) {
    b->shared = draw(w, 2);
    b->size = 1 + (size_t)(draw(w, 4) ? draw(w, 3000) : draw(w, 300000));
    b->seed = (uint32_t)draw(w, 1000) * 1000;
    b->base = block_of(w->m->pools[b->shared], b->size, draw(w, 3) ? w->run.queue : NULL);
    if (b->shared && draw(w, 2)) {
        RUN(&w->run, runner_acquire(&w->run, b->base, b->size, ONUMA_ACCESS_WRITE));
        for (size_t i = 0; i < b->size; i++)
            b->base[i] = kernel_pattern((uint32_t)i, b->seed);
        RUN(&w->run, runner_release(&w->run, b->base, b->size, ONUMA_ACCESS_WRITE));
    } else {
        expect_nothing(w);
        turn(w, b);
        (void)found(w);
    }
}

/* Who gets it has another queue, so the work on it must have ended. */
static void trade(worker *w, block *b) {
    RUN(&w->run, runner_finish(&w->run));
    block *at = &w->m->market[draw(w, MARKET)];
    pthread_mutex_lock(&w->m->lock);
    const block other = *at;
    *at = *b;
    pthread_mutex_unlock(&w->m->lock);
    *b = other;
}

static void step(worker *w) {
    block *b = &w->blocks[draw(w, BLOCKS)];
    atomic_fetch_add_explicit(&w->m->operations, 1, memory_order_relaxed);
    if (b->base == NULL) {
        take(w, b);
        return;
    }
    switch (draw(w, 8)) {
    case 0:
    case 1:
        turn(w, b);
        give_back(w, b);
        break; /* while the kernel is under way */
    case 2:
        give_back(w, b);
        break;
    case 3:
        trade(w, b);
        break;
    case 4:
        if (b->shared) cpu(w, b);
        break;
    default:
        turn(w, b);
    }
    if (draw(w, 16) == 0) expect_nothing(w);
    if (draw(w, 500) == 0) OK(onuma_pool_trim(w->m->pools[draw(w, 2)], 0, NULL));
}

static void *work(void *argument) {
    worker *w = argument;
    const double end = now() + w->m->seconds;
    w->wrong = block_of(w->m->pools[1], sizeof *w->wrong, NULL);
    (void)found(w);
    while (now() < end)
        step(w);
    expect_nothing(w);
    for (size_t i = 0; i < BLOCKS; i++)
        give_back(w, &w->blocks[i]);
    OK(onuma_free(w->wrong, w->run.queue));
    return NULL;
}

int main(int argc, char **argv) {
    static model m = {.lock = PTHREAD_MUTEX_INITIALIZER};
    static worker workers[THREADS];
    const char *id = argc > 1 ? argv[1] : "host";
    m.seconds = argc > 2 ? strtod(argv[2], NULL) : 1.5;
    m.seed = argc > 3 ? strtoull(argv[3], NULL, 0) : (uint64_t)time(NULL);
    onuma_runtime *rt;
    onuma_device_info info = ONUMA_DEVICE_INFO_INIT;
    m.device = find_device(&rt, id);
    OK(onuma_device_get_info(m.device, &info));
    const bool device_memory = (info.kinds & 1u << ONUMA_KIND_DEVICE) != 0;
    m.pools[0] = pool_of(m.device, device_memory ? ONUMA_KIND_DEVICE : ONUMA_KIND_HOST);
    m.pools[1] = pool_of(m.device, ONUMA_KIND_SHARED);
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        worker *w = &workers[i];
        *w = (worker){.m = &m, .random = m.seed * 2654435761u + i * 40503u + 1};
        RUN(&w->run, i == 0 ? runner_open(&w->run, m.device, demo_fault_find(NULL))
                            : runner_open_beside(&w->run, &workers[0].run, false));
    }
    for (size_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0) DIE("no thread");
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < MARKET; i++)
        if (m.market[i].base != NULL) OK(onuma_free(m.market[i].base, NULL));
    for (size_t i = THREADS; i-- > 0;)
        runner_close(&workers[i].run);
    end_pool(m.pools[0]);
    end_pool(m.pools[1]);
    onuma_runtime_destroy(rt);
    printf("model on %s: %llu operations and %llu looks at kernels' findings by %d threads, each with a queue; seed "
           "%llu\n",
           id, (unsigned long long)m.operations, (unsigned long long)m.checks, THREADS, (unsigned long long)m.seed);
    return 0;
}
