/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/alloc/thread.h"

#include <stdlib.h>

#include "clock.h"
#include "output.h"

void bench_wait(unsigned tried) {
    enum { SPINS = 2000 }; /* some 50 microseconds */
    static const uint64_t nap = 20000;
    if (tried >= SPINS) {
        cli_sleep(nap);
        return;
    }
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

void bench_gate_pass(bench_gate *gate) {
    unsigned round = atomic_load_explicit(&gate->round, memory_order_acquire);
    if (atomic_fetch_add_explicit(&gate->arrived, 1, memory_order_acq_rel) + 1 == gate->count) {
        atomic_store_explicit(&gate->arrived, 0, memory_order_relaxed); /* nobody comes again before the next line */
        atomic_store_explicit(&gate->round, round + 1, memory_order_release);
        return;
    }
    for (unsigned tried = 0; atomic_load_explicit(&gate->round, memory_order_acquire) == round; tried++)
        bench_wait(tried);
}

/* --------------------------------------------------------------------- teams */

typedef struct member {
    bench_team *team;
    unsigned index;
    bench_thread *thread;
} member;

struct bench_team {
    unsigned count;
    bench_body *body; /* NULL: end. Written before `order` grows, read after */
    void *argument;
    atomic_uint order; /* how many orders were given; release and acquire */
    atomic_uint done;  /* members that have carried out the last one; likewise */
    member members[];
};

/*
 * Between two orders everybody sleeps: whoever looked all the time would take from the others' processors, and waking up
 * late costs nothing, since threads that are timed wait for one another at a gate.
 */
static const uint64_t look_every = 300000; /* ns */

static void serve(void *argument) {
    const member *self = argument;
    bench_team *team = self->team;
    bench_bind(self->index);
    for (unsigned known = 0;; known++) {
        while (atomic_load_explicit(&team->order, memory_order_acquire) == known)
            cli_sleep(look_every);
        if (!team->body) return;
        team->body(team->argument, self->index);
        atomic_fetch_add_explicit(&team->done, 1, memory_order_release);
    }
}

static void give_order(bench_team *team, bench_body *body, void *argument) {
    team->body = body;
    team->argument = argument;
    atomic_store_explicit(&team->done, 0, memory_order_relaxed); /* nobody counts before the next line */
    atomic_fetch_add_explicit(&team->order, 1, memory_order_release);
}

bench_team *bench_team_start(unsigned count) {
    bench_team *team = cli_allocate(sizeof *team + count * sizeof *team->members);
    *team = (bench_team){0};
    for (; team->count < count; team->count++) {
        member *m = &team->members[team->count];
        *m = (member){.team = team, .index = team->count};
        m->thread = bench_thread_start(serve, m);
        if (m->thread) continue;
        bench_team_end(team);
        return NULL;
    }
    return team;
}

void bench_team_run(bench_team *team, bench_body *body, void *argument) {
    give_order(team, body, argument);
    while (atomic_load_explicit(&team->done, memory_order_acquire) < team->count)
        cli_sleep(look_every);
}

unsigned bench_team_size(const bench_team *team) {
    return team->count;
}

void bench_team_end(bench_team *team) {
    if (!team) return;
    give_order(team, NULL, NULL);
    for (unsigned i = 0; i < team->count; i++)
        bench_thread_join(team->members[i].thread);
    free(team);
}
