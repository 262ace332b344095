/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rand: every thread holds SLOTS blocks of random sizes, and again and again frees one that is drawn at random and puts a
 * new one in its place. The heap is one for all threads.
 */
#include <stdlib.h>

#include "bench/alloc/sequence.h"
#include "bench/alloc/together.h"
#include "output.h"

enum { SLOTS = 1000, STEPS = 1 << 15, WARM_UP = 1000 };

typedef struct drawn {
    unsigned threads;
    bench_step *steps[]; /* one sequence for each thread */
} drawn;

static void *draw(const bench_test *test) {
    drawn *d = cli_allocate(sizeof *d + test->threads * sizeof *d->steps);
    d->threads = test->threads;
    for (unsigned i = 0; i < test->threads; i++) {
        bench_random random = {.state = i};
        d->steps[i] = bench_draw_steps(&random, STEPS, SLOTS, test->least, test->most);
    }
    return d;
}

static void drop(void *sequence) {
    drawn *d = sequence;
    for (unsigned i = 0; i < d->threads; i++)
        free(d->steps[i]);
    free(d);
}

typedef struct run {
    const bench_subject *subject;
    void *(*slots)[SLOTS]; /* by thread */
} run;

static bool replace(const run *r, unsigned index, uint64_t count) {
    const bench_subject *s = r->subject;
    return s->allocator->loops->replace(s->heap, ((drawn *)s->drawn)->steps[index], STEPS - 1, count, r->slots[index],
                                        s->test->touch);
}

static bool prepare(void *argument, unsigned index) {
    const run *r = argument;
    const bench_subject *s = r->subject;
    void **slots = r->slots[index];
    for (size_t i = 0; i < SLOTS; i++)
        slots[i] = NULL;
    for (size_t i = 0; i < SLOTS; i++) {
        slots[i] = s->allocator->take(s->heap, ((drawn *)s->drawn)->steps[index][i].size);
        if (!slots[i]) return false;
    }
    return replace(r, index, WARM_UP);
}

static bool work(void *argument, unsigned index, uint64_t count) {
    return replace(argument, index, count);
}

static void finish(void *argument, unsigned index) {
    const run *r = argument;
    const bench_subject *s = r->subject;
    for (size_t i = 0; i < SLOTS; i++)
        if (r->slots[index][i]) (void)s->allocator->give(s->heap, r->slots[index][i]);
}

static bool measure(const bench_subject *subject, uint64_t count, bench_time *out) {
    static const bench_work replacing = {prepare, work, finish};
    run r = {.subject = subject, .slots = cli_allocate(subject->test->threads * sizeof *r.slots)};
    bool ok = bench_together(&replacing, &r, subject->team, count, out);
    free(r.slots);
    return ok;
}

const bench_family bench_replace = {.measure = measure, .draw = draw, .drop = drop, .scales = true};
