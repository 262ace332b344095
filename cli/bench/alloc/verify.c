/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every block carries a mark at its start, in each of its pages and at its end, which no other block has. The marks are
 * looked at before the block is freed: who got the same memory meanwhile has overwritten them. Now and then the blocks
 * that a thread holds are sorted by address besides, which finds an overlap that no mark lies in.
 */
#include "bench/alloc/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/alloc/sequence.h"
#include "bench/alloc/thread.h"
#include "bench/alloc/touch.h"
#include "output.h"

enum { MOST_THREADS = 4, MOST_SLOTS = 256, MOST_BYTES = 32 << 20, ROUNDS = 4 };

typedef struct held {
    char *block; /* NULL: the slot is empty */
    uint32_t size;
    uint64_t mark;
} held;

typedef struct check {
    const bench_test *test;
    const bench_allocator *allocator;
    void *heap;
    uint32_t slots;
    bench_gate gate;
    struct share {
        held held[MOST_SLOTS];
        char wrong[160];
    } shares[MOST_THREADS]; /* each its thread's; after a gate also the next thread's where blocks are freed across */
} check;

static bool fail(struct share *s, const char *what, uint32_t size) {
    if (!s->wrong[0]) snprintf(s->wrong, sizeof s->wrong, "%s (size %lu)", what, (unsigned long)size);
    return false;
}

/* A mark is 8 bytes, or the whole block where that is smaller. */
static size_t mark_bytes(const held *h) {
    return h->size < sizeof h->mark ? h->size : sizeof h->mark;
}

static void write_marks(const held *h) {
    size_t bytes = mark_bytes(h);
    for (size_t at = 0; at + bytes <= h->size; at += BENCH_PAGE)
        memcpy(h->block + at, &h->mark, bytes);
    memcpy(h->block + h->size - bytes, &h->mark, bytes);
}

static bool marks_stand(const held *h) {
    size_t bytes = mark_bytes(h);
    /* The last mark may lie over the one before it, with the same bytes only if it lies exactly there. */
    for (size_t at = 0; at + 2 * bytes <= h->size; at += BENCH_PAGE)
        if (memcmp(h->block + at, &h->mark, bytes) != 0) return false;
    return memcmp(h->block + h->size - bytes, &h->mark, bytes) == 0;
}

static bool put(const check *c, struct share *s, held *h, uint32_t size, uint64_t mark) {
    *h = (held){.block = c->allocator->take(c->heap, size), .size = size, .mark = mark};
    if (!h->block) return fail(s, "an allocation failed", size);
    if ((uintptr_t)h->block % BENCH_ALIGNMENT != 0) return fail(s, "a block is not aligned to 16", size);
    write_marks(h);
    if (c->test->family->finds && !c->allocator->loops->find(c->heap, (void *const[]){h->block}, 0, 1))
        return fail(s, "a block's pointer is not found", size);
    return true;
}

static bool drop(const check *c, struct share *s, held *h) {
    if (!h->block) return true;
    if (!marks_stand(h)) return fail(s, "a block's bytes changed while it was held: it was handed out twice", h->size);
    void *block = h->block;
    h->block = NULL;
    return c->allocator->give(c->heap, block) || fail(s, "a free failed", h->size);
}

static int compare_address(const void *a, const void *b) {
    uintptr_t x = (uintptr_t)((const held *)a)->block, y = (uintptr_t)((const held *)b)->block;
    return (x > y) - (x < y);
}

static bool apart(const check *c, struct share *s) {
    held sorted[MOST_SLOTS];
    memcpy(sorted, s->held, c->slots * sizeof *sorted);
    qsort(sorted, c->slots, sizeof *sorted, compare_address);
    for (uint32_t i = 0; i + 1 < c->slots; i++)
        if (sorted[i].block && (uintptr_t)sorted[i].block + sorted[i].size > (uintptr_t)sorted[i + 1].block)
            return fail(s, "two blocks overlap", sorted[i].size);
    return true;
}

static void run(void *argument, unsigned index) {
    check *c = argument;
    struct share *s = &c->shares[index];
    bench_random random = {.state = index + 1};
    uint64_t mark = (uint64_t)(index + 1) << 32;
    const uint32_t slots = c->slots;
    bool ok = slots > 0;
    for (uint32_t step = 0; ok && step < slots * ROUNDS; step++) {
        held *h = &s->held[bench_draw(&random) % slots];
        ok = drop(c, s, h) && put(c, s, h, bench_draw_size(&random, c->test->least, c->test->most), ++mark);
        if (ok && step % slots == slots - 1) ok = apart(c, s);
    }
    bench_gate_pass(&c->gate);
    if (c->test->family->across) s = &c->shares[(index + 1) % c->gate.count];
    for (uint32_t i = 0; i < c->slots; i++)
        (void)drop(c, s, &s->held[i]);
}

static unsigned threads_of(const bench_test *test) {
    return test->threads < MOST_THREADS ? test->threads : MOST_THREADS;
}

bool bench_verify(const bench_test *test, const bench_allocator *allocator, void *heap, char *wrong, size_t size) {
    check *c = cli_allocate(sizeof *c);
    *c = (check){.test = test, .allocator = allocator, .heap = heap, .gate.count = threads_of(test)};
    uint32_t fit = (uint32_t)MOST_BYTES / test->most;
    c->slots = fit < 2 ? 2 : fit < MOST_SLOTS ? fit : MOST_SLOTS;
    bench_team *team = bench_team_start(c->gate.count);
    bool ok = team != NULL;
    if (ok)
        bench_team_run(team, run, c);
    else
        snprintf(wrong, size, "%s", "threads cannot be started");
    bench_team_end(team);
    for (unsigned i = 0; ok && i < c->gate.count; i++)
        if (c->shares[i].wrong[0]) {
            snprintf(wrong, size, "%s", c->shares[i].wrong);
            ok = false;
        }
    free(c);
    return ok;
}
