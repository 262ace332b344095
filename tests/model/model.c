/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_model [--threads N] [--ops N] [--seed N] [--mode range|segments] [--self-check]
 *
 * Without options: a short run in both modes, on one thread and on four. A run
 * on one thread that fails is shrunk and printed. --self-check: every engine
 * of broken.c must be found out.
 */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHIFT 4000 /* operations of a thread's life; then a look at the whole */

/* ------------------------------------------------------------------ threads */

/* Everyone waits for everyone; the last one looks at the whole while the others rest. */
typedef struct crew {
    model *m;
    size_t operations; /* of each thread in one shift */
    bool last_shift;
    _Atomic unsigned arrived, round;
} crew;

typedef struct member {
    crew *crew;
    worker *worker;
} member;

static void meet(crew *c) {
    const unsigned round = atomic_load(&c->round);
    if (atomic_fetch_add(&c->arrived, 1) + 1 != c->m->threads) {
        while (atomic_load(&c->round) == round)
            onuma__os_yield();
        return;
    }
    model *m = c->m;
    for (unsigned i = 0; i < m->threads; i++)
        worker_receive_all(&m->workers[i]);
    if (!atomic_load(&m->failed)) reference_compare(m);
    atomic_store(&c->arrived, 0);
    atomic_store(&c->round, round + 1);
}

static void work(void *argument) {
    const member *own = argument;
    worker *w = own->worker;
    crew *c = own->crew;
    for (size_t i = 0; i < c->operations && !atomic_load(&c->m->failed); i++) {
        const operation o = operation_draw(&w->random);
        operation_run(w, &o);
    }
    if (c->last_shift) worker_finish(w);
    meet(c);
}

/* New threads, which take over the blocks of the last ones; those exit. */
static void run_shift(crew *c) {
    member members[MODEL_THREADS];
    onuma__os_worker *started[MODEL_THREADS];
    for (unsigned i = 0; i < c->m->threads; i++) {
        members[i] = (member){.crew = c, .worker = &c->m->workers[i]};
        if (onuma__os_worker_start(work, &members[i], &started[i]) != ONUMA_OK) {
            fprintf(stderr, "cannot start thread %u: %s\n", i, onuma__thread_text());
            exit(2);
        }
    }
    for (unsigned i = 0; i < c->m->threads; i++)
        onuma__os_worker_join(started[i]);
    if (!atomic_load(&c->m->failed)) reference_compare(c->m);
}

static bool run_threads(onuma_source mode, unsigned threads, size_t operations, uint64_t seed) {
    model *m = calloc(1, sizeof *m);
    if (model_open(m, &sound_engine, mode, threads, seed)) {
        crew c = {.m = m};
        for (size_t done = 0; done < operations && !atomic_load(&m->failed); done += c.operations) {
            c.operations = operations - done < SHIFT ? operations - done : SHIFT;
            c.last_shift = done + c.operations == operations;
            run_shift(&c);
        }
        /* What was still on its way when its receiver had finished. */
        for (unsigned i = 0; i < threads && !atomic_load(&m->failed); i++)
            worker_finish(&m->workers[i]);
    }
    model_close(m);
    const bool sound = !atomic_load(&m->failed);
    if (!sound) printf("  %s\n", m->failure);
    free(m);
    return sound;
}

/* --------------------------------------------------------------- one thread */

static operation *draw_many(uint64_t seed, size_t count) {
    operation *operations = malloc(count * sizeof *operations);
    uint64_t random = seed;
    for (size_t i = 0; i < count; i++)
        operations[i] = operation_draw(&random);
    return operations;
}

static bool run_alone(const engine_calls *calls, onuma_source mode, size_t count, uint64_t seed, size_t *shrunk) {
    operation *operations = draw_many(seed, count);
    const bool sound = replay(calls, mode, operations, count, NULL);
    if (!sound) {
        const size_t left = shrink(calls, mode, operations, count);
        if (shrunk != NULL) *shrunk = left;
    }
    free(operations);
    return sound;
}

/* ------------------------------------------------------------------ running */

static bool run(onuma_source mode, unsigned threads, size_t operations, uint64_t seed) {
    printf("model: %s, %u threads, %zu operations each, seed %llu\n", mode == ONUMA_SOURCE_RANGE ? "range" : "segments",
           threads, operations, (unsigned long long)seed);
    return threads == 1 ? run_alone(&sound_engine, mode, operations, seed, NULL)
                        : run_threads(mode, threads, operations, seed);
}

static bool self_check(uint64_t seed) {
    bool all = true;
    for (const engine_calls *broken = broken_engines; broken->name != NULL; broken++) {
        size_t left = SIZE_MAX;
        printf("an engine that %s:\n", broken->name);
        const bool unnoticed = run_alone(broken, ONUMA_SOURCE_RANGE, 1000, seed, &left);
        if (unnoticed) printf("  WAS NOT FOUND OUT\n");
        if (!unnoticed && left > 100) printf("  WAS NOT SHRUNK\n");
        all &= !unnoticed && left <= 100;
    }
    return all;
}

typedef struct options {
    unsigned threads; /* 0: one and four */
    size_t operations;
    uint64_t seed;
    onuma_source mode; /* AUTO: both */
    bool self_check;
} options;

static void parse(int argc, char **argv, options *o) {
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--self-check") == 0) {
            o->self_check = true;
            continue;
        }
        if (strcmp(argv[i], "--threads") == 0) {
            o->threads = (unsigned)strtoul(value, NULL, 10);
        } else if (strcmp(argv[i], "--ops") == 0) {
            o->operations = strtoul(value, NULL, 10);
        } else if (strcmp(argv[i], "--seed") == 0) {
            o->seed = strtoull(value, NULL, 10);
            if (strcmp(value, "new") == 0) o->seed = onuma__os_now();
        } else if (strcmp(argv[i], "--mode") == 0) {
            o->mode = strcmp(value, "range") == 0 ? ONUMA_SOURCE_RANGE : ONUMA_SOURCE_SEGMENTS;
        } else {
            fprintf(stderr, "%s: unknown option %s\n", argv[0], argv[i]);
            exit(2);
        }
        i++;
    }
    if (o->threads > MODEL_THREADS) o->threads = MODEL_THREADS;
}

int main(int argc, char **argv) {
    options o = {.operations = 12000, .seed = 20251130};
    parse(argc, argv, &o);
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* so that the seed is told even if a run crashes */
    if (o.self_check) return self_check(o.seed) ? 0 : 1;
    bool sound = true;
    for (onuma_source mode = ONUMA_SOURCE_RANGE; mode <= ONUMA_SOURCE_SEGMENTS; mode++) {
        if (o.mode != ONUMA_SOURCE_AUTO && o.mode != mode) continue;
        if (o.threads != 4) sound &= run(mode, o.threads != 0 ? o.threads : 1, o.operations, o.seed);
        if (o.threads == 0 || o.threads == 4) sound &= run(mode, 4, o.operations, o.seed + 1);
    }
    return sound ? 0 : 1;
}
