/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A benchmark is worth what it can find: an allocator that is slow loses in it, and one that hands out memory twice, or
 * not aligned, or not at all is refused before anything is timed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/alloc/measure.h"
#include "bench/alloc/sequence.h"
#include "bench/alloc/verify.h"

/*
 * The clock that together.c is compiled with here: it goes on by itself only as it is read, so that nothing depends on how
 * fast the machine is.
 */
enum { READING = 1000, SLOW = 100000 }; /* ns */
static _Atomic uint64_t passed;         /* relaxed: the gates of those who are timed order it */

uint64_t test_now(void);
uint64_t test_now(void) {
    return atomic_fetch_add_explicit(&passed, READING, memory_order_relaxed);
}

static inline void *take(void *heap, size_t size) {
    (void)heap;
    atomic_fetch_add_explicit(&passed, SLOW, memory_order_relaxed);
    return malloc(size);
}

static inline bool give(void *heap, void *block) {
    (void)heap;
    free(block);
    return true;
}

#include "bench/alloc/loops.h"

static bool open_nothing(const void *own, void **heap) {
    static int nothing;
    (void)own;
    *heap = &nothing;
    return true;
}

static bool open_fails(const void *own, void **heap) {
    (void)own, (void)heap;
    return false;
}

static void close_nothing(void *heap) {
    (void)heap;
}

static bench_allocator allocator_named(const char *name) {
    return (bench_allocator){.name = name,
                             .version = "",
                             .is_peer = true,
                             .open = open_nothing,
                             .close = close_nothing,
                             .take = take_one,
                             .give = give_one,
                             .loops = &loops};
}

static const bench_test *test_named(const char *name) {
    static bench_test tests[BENCH_MOST_TESTS];
    size_t count = bench_tests(2, 1, tests);
    for (size_t i = 0; i < count; i++)
        if (strcmp(tests[i].name, name) == 0) return &tests[i];
    fail_msg("there is no test %s", name);
    return NULL;
}

/* --------------------------------------------------------------- it can lose */

static void slow_loses(void **state) {
    (void)state;
    const bench_allocator allocators[] = {bench_opennuma(), allocator_named("slow")};
    const bench_plan plan = {.repeat = 3, .duration = READING};
    static const char *const names[] = {"lifo-64", "prodcons-1K"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        bench_outcome outcome;
        assert_true(bench_measure(&plan, test_named(names[i]), allocators, 2, &outcome));
        assert_string_equal(outcome.results[1].allocator->name, "slow");
        /* Of the readings, two for each thread, no more than these few fall to one of 16 units or more. */
        assert_true(outcome.results[0].wall.max <= READING);
        assert_true(outcome.results[1].wall.min >= SLOW - READING);
        assert_true(outcome.results[1].wall.max <= SLOW + READING);
    }
}

/* ------------------------------------------------------- it finds what is wrong */

static _Alignas(64) char memory[1 << 20];
static size_t used;

static void *same_each_time(void *heap, size_t size) {
    (void)heap;
    return size <= sizeof memory ? memory : NULL;
}

/* 16 bytes of each block belong to the next one too. */
static void *overlapping(void *heap, size_t size) {
    (void)heap;
    size_t step = (size + 15) / 16 * 16 - 16;
    if (used + step + 16 > sizeof memory) used = 0;
    void *block = memory + used;
    used += step;
    return block;
}

static void *unaligned(void *heap, size_t size) {
    (void)heap;
    return (char *)malloc(size + 8) + 8; /* which is never given back: it must be refused at once */
}

static void *none(void *heap, size_t size) {
    (void)heap, (void)size;
    return NULL;
}

static bool keep(void *heap, void *block) {
    (void)heap, (void)block;
    return true;
}

static bool refuse(void *heap, void *block) {
    (void)heap;
    free(block);
    return false;
}

static void check_refused(void *(*bad_take)(void *, size_t), bool (*bad_give)(void *, void *), const char *saying) {
    bench_allocator bad = allocator_named("bad");
    bad.take = bad_take;
    bad.give = bad_give;
    char wrong[200] = "";
    assert_false(bench_verify(test_named("lifo-1K"), &bad, NULL, wrong, sizeof wrong));
    assert_non_null(strstr(wrong, saying));
}

static void wrong_blocks_are_found(void **state) {
    (void)state;
    check_refused(same_each_time, keep, "handed out twice");
    check_refused(overlapping, keep, "");
    check_refused(none, keep, "allocation failed");
    check_refused(take_one, refuse, "a free failed");
}

static void *leaked; /* so that no leak is reported for what unaligned() cannot free */

static void *unaligned_once(void *heap, size_t size) {
    void *block = unaligned(heap, size);
    if (!leaked) leaked = (char *)block - 8;
    return block;
}

static void unaligned_blocks_are_found(void **state) {
    (void)state;
    check_refused(unaligned_once, keep, "not aligned");
    free(leaked);
}

static void a_heap_that_cannot_be_made_is_told(void **state) {
    (void)state;
    bench_allocator bad = allocator_named("bad");
    bad.open = open_fails;
    const bench_plan plan = {.repeat = 1, .duration = 1000};
    bench_outcome outcome;
    assert_false(bench_measure(&plan, test_named("lifo-64"), &bad, 1, &outcome));
}

/* ---------------------------------------------------------------- sequences */

static void sequences_are_the_same_and_in_range(void **state) {
    (void)state;
    enum { COUNT = 10000, SLOTS = 1000 };
    bench_random one = {7}, other = {7};
    bench_step *a = bench_draw_steps(&one, COUNT, SLOTS, BENCH_LEAST, BENCH_MOST);
    bench_step *b = bench_draw_steps(&other, COUNT, SLOTS, BENCH_LEAST, BENCH_MOST);
    assert_memory_equal(a, b, COUNT * sizeof *a);
    size_t small = 0;
    for (size_t i = 0; i < COUNT; i++) {
        assert_in_range(a[i].size, BENCH_LEAST, BENCH_MOST);
        assert_in_range(a[i].slot, 0, SLOTS - 1);
        small += a[i].size < 8192; /* half of the powers of two between */
    }
    assert_in_range(small, COUNT * 45 / 100, COUNT * 55 / 100);
    free(a);
    free(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slow_loses),
        cmocka_unit_test(wrong_blocks_are_found),
        cmocka_unit_test(unaligned_blocks_are_found),
        cmocka_unit_test(a_heap_that_cannot_be_made_is_told),
        cmocka_unit_test(sequences_are_the_same_and_in_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
