/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lookup: which block (or pool) does a pointer belong to? Among LIVE blocks, whose pointers come in an order drawn at
 * random. Only for allocators that can tell: a malloc cannot.
 */
#include <stdlib.h>

#include "bench/alloc/sequence.h"
#include "bench/alloc/together.h"
#include "output.h"

enum { LIVE = 100000, ASKED = 1 << 17 };

typedef struct drawn {
    uint32_t sizes[LIVE];
    uint32_t order[ASKED];
} drawn;

static void *draw(const bench_test *test) {
    drawn *d = cli_allocate(sizeof *d);
    bench_random random = {.state = 1};
    for (size_t i = 0; i < LIVE; i++)
        d->sizes[i] = bench_draw_size(&random, test->least, test->most);
    for (size_t i = 0; i < ASKED; i++)
        d->order[i] = (uint32_t)(bench_draw(&random) % LIVE);
    return d;
}

typedef struct run {
    const bench_subject *subject;
    void **blocks; /* LIVE of them */
    void **asked;  /* pointers in the order drawn */
} run;

static bool prepare(void *argument, unsigned index) {
    (void)index;
    const run *r = argument;
    const bench_subject *s = r->subject;
    const drawn *d = s->drawn;
    for (size_t i = 0; i < LIVE; i++)
        r->blocks[i] = NULL;
    for (size_t i = 0; i < LIVE; i++) {
        r->blocks[i] = s->allocator->take(s->heap, d->sizes[i]);
        if (!r->blocks[i]) return false;
    }
    for (size_t i = 0; i < ASKED; i++)
        r->asked[i] = r->blocks[d->order[i]];
    return true;
}

static bool work(void *argument, unsigned index, uint64_t count) {
    (void)index;
    const run *r = argument;
    return r->subject->allocator->loops->find(r->subject->heap, r->asked, ASKED - 1, count);
}

static void finish(void *argument, unsigned index) {
    (void)index;
    const run *r = argument;
    for (size_t i = 0; i < LIVE; i++)
        if (r->blocks[i]) (void)r->subject->allocator->give(r->subject->heap, r->blocks[i]);
}

static bool measure(const bench_subject *subject, uint64_t count, bench_time *out) {
    static const bench_work finding = {prepare, work, finish};
    run r = {subject, cli_allocate(LIVE * sizeof *r.blocks), cli_allocate(ASKED * sizeof *r.asked)};
    bool ok = bench_together(&finding, &r, subject->team, count, out);
    free(r.blocks);
    free(r.asked);
    return ok;
}

static bool can_find(const bench_allocator *allocator) {
    return allocator->loops->find != NULL;
}

const bench_family bench_lookup = {.measure = measure, .suits = can_find, .draw = draw, .drop = free, .finds = true};
