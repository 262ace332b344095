/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/alloc/together.h"

#include <stdlib.h>

#include "bench/alloc/thread.h"
#include "clock.h"
#include "output.h"

typedef struct span {
    uint64_t begin, end, cpu; /* ns */
    bool prepared, ok;
} span;

typedef struct together {
    const bench_work *work;
    void *argument;
    uint64_t count;
    unsigned threads;
    bench_gate gate;
    atomic_bool failed; /* relaxed: the gate orders it */
    span *spans;        /* each its thread's */
} together;

static void run(void *argument, unsigned index) {
    together *t = argument;
    span *s = &t->spans[index];
    if (t->work->prepare && !t->work->prepare(t->argument, index))
        atomic_store_explicit(&t->failed, true, memory_order_relaxed);
    bench_gate_pass(&t->gate);
    bool go = !atomic_load_explicit(&t->failed, memory_order_relaxed);
    if (go) {
        uint64_t cpu = bench_thread_time();
        s->begin = cli_now();
        s->ok = t->work->work(t->argument, index, t->count);
        s->end = cli_now();
        s->cpu = bench_thread_time() - cpu;
    }
    bench_gate_pass(&t->gate);
    if (t->work->finish) t->work->finish(t->argument, index);
}

static bool add_up(const together *t, bench_time *out) {
    uint64_t begin = t->spans[0].begin, end = t->spans[0].end, cpu = 0;
    bool ok = true;
    for (unsigned i = 0; i < t->threads; i++) {
        const span *s = &t->spans[i];
        ok = ok && s->ok;
        begin = s->begin < begin ? s->begin : begin;
        end = s->end > end ? s->end : end;
        cpu += s->cpu;
    }
    out->wall = (double)(end - begin) / (double)t->count;
    out->cpu = (double)cpu / t->threads / (double)t->count;
    return ok;
}

bool bench_together(const bench_work *work, void *argument, bench_team *team, uint64_t count, bench_time *out) {
    const unsigned threads = bench_team_size(team);
    together t = {.work = work, .argument = argument, .count = count, .threads = threads, .gate.count = threads};
    t.spans = cli_allocate(threads * sizeof *t.spans);
    for (unsigned i = 0; i < threads; i++)
        t.spans[i] = (span){0};
    bench_team_run(team, run, &t);
    bool ok = add_up(&t, out);
    free(t.spans);
    return ok;
}
