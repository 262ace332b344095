/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/alloc/measure.h"

#include <stdlib.h>

#include "bench/alloc/thread.h"
#include "bench/alloc/verify.h"
#include "output.h"

/* One that takes part: an allocator with its heap, or the loop that shares nothing. */
typedef struct part {
    bench_subject subject; /* allocator NULL: the loop */
    uint64_t count;        /* units in one measurement */
    bench_time *samples;   /* one each round */
} part;

typedef struct round_robin {
    const bench_plan *plan;
    const bench_test *test;
    part parts[BENCH_MOST_ALLOCATORS + 2]; /* the null allocator and the loop besides */
    size_t count;
    void *drawn;
    bench_team *team;
} round_robin;

static bool measure_once(const part *p, uint64_t count, bench_time *out) {
    const bench_test *test = p->subject.test;
    const bench_allocator *allocator = p->subject.allocator;
    *out = (bench_time){0};
    if (allocator ? test->family->measure(&p->subject, count, out) : bench_compute(p->subject.team, count, out))
        return true;
    cli_error("%s: %s: an allocation or a free failed", test->name, allocator ? allocator->name : "the loop");
    return false;
}

/* How many units take as long as a measurement is to. The tries warm the allocator up, too. */
static bool calibrate(part *p, uint64_t duration) {
    enum { FEWEST = 16 };
    uint64_t count = FEWEST;
    for (;;) {
        bench_time time;
        if (!measure_once(p, count, &time)) return false;
        double took = time.wall * (double)count, wanted = (double)duration;
        if (took * 4 >= wanted) {
            if (took < wanted) count = (uint64_t)((double)count * wanted / took);
            break;
        }
        count *= 4;
    }
    p->count = count;
    return true;
}

static bool run_rounds(round_robin *r) {
    for (size_t i = 0; i < r->count; i++)
        if (!calibrate(&r->parts[i], r->plan->duration)) return false;
    for (unsigned round = 0; round < r->plan->repeat; round++)
        for (size_t i = 0; i < r->count; i++) {
            part *p = &r->parts[(i + round) % r->count];
            if (!measure_once(p, p->count, &p->samples[round])) return false;
        }
    return true;
}

/* ------------------------------------------------------------------ figures */

static bench_result result_of(const part *p, unsigned rounds) {
    bench_result result = {.allocator = p->subject.allocator};
    double *numbers = cli_allocate(rounds * sizeof *numbers);
    for (unsigned i = 0; i < rounds; i++)
        numbers[i] = p->samples[i].wall;
    result.wall = bench_figures_of(numbers, rounds);
    for (unsigned i = 0; i < rounds; i++)
        numbers[i] = p->samples[i].cpu;
    result.cpu = bench_figures_of(numbers, rounds);
    free(numbers);
    return result;
}

static bench_figures less(bench_figures figures, double by) {
    return (bench_figures){figures.median - by, figures.min - by, figures.max - by};
}

/*
 * Others' work on the machine shows as time by the clock that was no CPU time of ours. Several threads do not tell: they
 * may have waited for one another, and the slowest is timed.
 */
static double busy_of(const bench_outcome *out) {
    if (out->test.threads > 1) return 0;
    double ratios[BENCH_MOST_ALLOCATORS + 1];
    size_t count = 0;
    for (size_t i = 0; i < out->count; i++)
        if (out->results[i].cpu.median > 0) ratios[count++] = out->results[i].wall.median / out->results[i].cpu.median;
    return count ? bench_figures_of(ratios, count).median : 0;
}

static void conclude(const round_robin *r, bench_outcome *out) {
    *out = (bench_outcome){.test = *r->test};
    const bench_result *null = NULL;
    for (size_t i = 0; i < r->count; i++) {
        bench_result result = result_of(&r->parts[i], r->plan->repeat);
        if (!result.allocator) {
            out->compute = result;
            continue;
        }
        out->results[out->count] = result;
        if (result.allocator == &bench_null) null = &out->results[out->count];
        out->count++;
    }
    out->busy = busy_of(out);
    for (size_t i = 0; null && i < out->count; i++) {
        bench_result *result = &out->results[i];
        if (result == null) continue;
        result->wall = less(result->wall, null->wall.median);
        result->cpu = less(result->cpu, null->cpu.median);
    }
}

/* -------------------------------------------------------------------- parts */

static bool open_part(round_robin *r, const bench_allocator *allocator) {
    part *p = &r->parts[r->count++];
    p->samples = cli_allocate(r->plan->repeat * sizeof *p->samples);
    p->subject = (bench_subject){.test = r->test, .allocator = allocator, .drawn = r->drawn, .team = r->team};
    if (!allocator) return true;
    if (!allocator->open(allocator->own, &p->subject.heap)) {
        p->subject.heap = NULL;
        cli_error("%s: %s cannot make a heap", r->test->name, allocator->name);
        return false;
    }
    char wrong[200];
    if (allocator == &bench_null || bench_verify(r->test, allocator, p->subject.heap, wrong, sizeof wrong)) return true;
    cli_error("%s: %s: %s", r->test->name, allocator->name, wrong);
    return false;
}

static bool open_parts(round_robin *r, const bench_allocator *allocators, size_t count) {
    const bench_family *family = r->test->family;
    for (size_t i = 0; i < count; i++)
        if ((!family->suits || family->suits(&allocators[i])) && !open_part(r, &allocators[i])) return false;
    if (family->less_null && !open_part(r, &bench_null)) return false;
    return !family->scales || open_part(r, NULL);
}

static void close_parts(round_robin *r) {
    for (size_t i = 0; i < r->count; i++) {
        const bench_subject *s = &r->parts[i].subject;
        if (s->heap) s->allocator->close(s->heap);
        free(r->parts[i].samples);
    }
}

bool bench_measure(const bench_plan *plan, const bench_test *test, const bench_allocator *allocators, size_t count,
                   bench_outcome *out) {
    round_robin r = {.plan = plan, .test = test};
    r.team = bench_team_start(test->threads);
    if (!r.team) {
        cli_error("%s: %u threads cannot be started", test->name, test->threads);
        return false;
    }
    if (test->family->draw) r.drawn = test->family->draw(test);
    bool ok = open_parts(&r, allocators, count) && run_rounds(&r);
    if (ok) conclude(&r, out);
    close_parts(&r);
    bench_team_end(r.team);
    if (r.drawn) test->family->drop(r.drawn);
    return ok;
}
