/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prodcons: one thread allocates, another frees. Blocks are handed over in batches through a ring, which costs time of its
 * own: that of the same run with an allocator that does nothing is subtracted from all others.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "bench/alloc/sequence.h"
#include "bench/alloc/thread.h"
#include "bench/alloc/together.h"
#include "output.h"

enum { BATCH = 64, SIZES = 1 << 14, RING = 8, CACHE_LINE = 64 };

static void *draw(const bench_test *test) {
    uint32_t *sizes = cli_allocate(SIZES * sizeof *sizes);
    bench_random random = {.state = 1};
    for (size_t i = 0; i < SIZES; i++)
        sizes[i] = bench_draw_size(&random, test->least, test->most);
    return sizes;
}

/* Each counter has a line of its own, which its one writer releases and the other thread acquires. */
typedef struct ring {
    void *batches[RING][BATCH]; /* batch i, written before `produced` passes i, read before `consumed` does */
    _Alignas(CACHE_LINE) atomic_ullong produced;
    _Alignas(CACHE_LINE) atomic_ullong consumed;
    _Alignas(CACHE_LINE) atomic_bool broken; /* relaxed: whoever waits only has to see it at some time */
    const bench_subject *subject;
} ring;

/* Until the other thread's counter is at least `wanted`; false: it will never be. */
static bool wait_for(ring *r, atomic_ullong *counter, unsigned long long wanted) {
    for (unsigned tried = 0; atomic_load_explicit(counter, memory_order_acquire) < wanted; tried++) {
        if (atomic_load_explicit(&r->broken, memory_order_relaxed)) return false;
        bench_wait(tried);
    }
    return true;
}

static bool produce(ring *r, unsigned long long batches) {
    const bench_subject *s = r->subject;
    const uint32_t *sizes = s->drawn;
    for (unsigned long long i = 0; i < batches; i++) {
        if (i >= RING && !wait_for(r, &r->consumed, i - RING + 1)) return false;
        if (!s->allocator->loops->take_batch(s->heap, sizes + i * BATCH % SIZES, BATCH, r->batches[i % RING],
                                             s->test->touch))
            return false;
        atomic_store_explicit(&r->produced, i + 1, memory_order_release);
    }
    return true;
}

static bool consume(ring *r, unsigned long long batches) {
    const bench_subject *s = r->subject;
    for (unsigned long long i = 0; i < batches; i++) {
        if (!wait_for(r, &r->produced, i + 1)) return false;
        if (!s->allocator->loops->give_batch(s->heap, r->batches[i % RING], BATCH)) return false;
        atomic_store_explicit(&r->consumed, i + 1, memory_order_release);
    }
    return true;
}

static bool work(void *argument, unsigned index, uint64_t count) {
    ring *r = argument;
    bool ok = (index == 0 ? produce : consume)(r, count / BATCH);
    if (!ok) atomic_store_explicit(&r->broken, true, memory_order_relaxed);
    return ok;
}

static bool measure(const bench_subject *subject, uint64_t count, bench_time *out) {
    static const bench_work handing_over = {.work = work};
    static ring r; /* too large for a stack, and aligned; one run at a time */
    r.subject = subject;
    atomic_store_explicit(&r.produced, 0, memory_order_relaxed); /* threads are started later */
    atomic_store_explicit(&r.consumed, 0, memory_order_relaxed);
    atomic_store_explicit(&r.broken, false, memory_order_relaxed);
    count += BATCH - 1;
    return bench_together(&handing_over, &r, subject->team, count - count % BATCH, out);
}

const bench_family bench_handover = {.measure = measure, .draw = draw, .drop = free, .less_null = true, .across = true};
