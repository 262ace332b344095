/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frees of one slot at once, in every order of their steps: the owner's, those of others, held ones, and meanwhile the
 * owner allocates, drains and gives the slab back, or another thread takes its cache. Of a block, exactly one free
 * succeeds, the others are told DOUBLE_FREE; it is handed out again once; and all counts are right in the end.
 *
 * The engine's own sources run here, with each atomic operation a step of the scheduler in schedule.h. Planted faults
 * show that it finds what it is there to find.
 */
#include "pool_support.h"
#include "schedule.h"

#include "pool/heap.h"
#include "pool/slab.h"

#include <stdio.h>
#include <string.h>

#define SIZE ((size_t)8192) /* a slab has eight slots */
enum { SLOTS = 8, MOST = 64, OWNER = 0 };

static const schedule_scenario *explored;

/* One run. Threads write their own members only. */
static struct {
    pool *pool;
    void *block;             /* freed by several */
    void *others[SLOTS - 1]; /* the rest of its slab: live */
    onuma_result freed[SCHEDULE_THREADS];
    void *again[SCHEDULE_THREADS]; /* allocated meanwhile; NULL: missed */
    onuma_result given;            /* of freeing others[0] */
} run;

/* ------------------------------------------------------------------- before */

static void *must_take(size_t size) {
    void *block = NULL;
    onuma_result r = onuma__engine_alloc(run.pool->engine, size, 0, 0, &block);
    if (r == ONUMA__MISS && (r = onuma__engine_grow(run.pool->engine, size, 0, 0, &block)) == ONUMA_OK && block == NULL)
        r = onuma__engine_alloc(run.pool->engine, size, 0, 0, &block);
    if (r != ONUMA_OK) fail_msg("allocating %zu bytes: %d", size, r);
    return block;
}

static onuma_result quiet_free(void *block, onuma__tag tag) {
    onuma__engine *engine;
    return onuma__engine_free(block, tag, &engine);
}

/* Of empty slabs that a thread keeps, in the pools made next. */
static size_t cache_bytes = (size_t)4 << 20;

/* The owner has a full slab; each of the others has a heap, so that none is made while they race. */
static void begin(void) {
    onuma__engine *unused;
    memset(&run, 0, sizeof run);
    run.pool = new_pool(ONUMA_SOURCE_SEGMENTS);
    run.pool->desc.cache_bytes = cache_bytes;
    run.pool->desc.alignment = 4096; /* few classes: each is looked at when a cache is taken */
    open_pool(run.pool);
    for (size_t i = 1; i < explored->threads; i++) {
        schedule_become(i);
        (void)onuma__engine_free(must_take(16), 0, &unused);
    }
    schedule_become(OWNER);
    run.block = must_take(SIZE);
    for (size_t i = 0; i < SLOTS - 1; i++)
        run.others[i] = must_take(SIZE);
    schedule_become(SCHEDULE_THREADS);
}

/* The same, and the heap is shared already. */
static void begin_shared(void) {
    begin();
    schedule_become(1);
    (void)quiet_free(run.others[1], 0);
    schedule_become(OWNER);
    run.others[1] = must_take(SIZE);
    schedule_become(SCHEDULE_THREADS);
}

/* The block is alone in its slab, which goes back to the pool with it. */
static void begin_alone(void) {
    cache_bytes = 0;
    begin();
    cache_bytes = (size_t)4 << 20;
    schedule_become(OWNER);
    for (size_t i = 0; i < SLOTS - 1; i++) {
        (void)quiet_free(run.others[i], 0);
        run.others[i] = NULL;
    }
    schedule_become(SCHEDULE_THREADS);
}

/* ------------------------------------------------------------------- threads */

static size_t self(void) {
    return (size_t)schedule_thread()->number - 1;
}

static void frees(void) {
    run.freed[self()] = quiet_free(run.block, 0);
}

static void frees_and_allocates(void) {
    frees();
    if (onuma__engine_alloc(run.pool->engine, SIZE, 0, 0, &run.again[self()]) != ONUMA_OK) run.again[self()] = NULL;
}

static void allocates(void) {
    if (onuma__engine_alloc(run.pool->engine, SIZE, 0, 0, &run.again[self()]) != ONUMA_OK) run.again[self()] = NULL;
    run.freed[self()] = ONUMA_ERROR_DOUBLE_FREE;
}

/* Held, and given back at once. */
static void holds(void) {
    run.freed[self()] = quiet_free(run.block, ONUMA__TAG_HOLD);
    if (run.freed[self()] == ONUMA__HELD) onuma__engine_release(run.pool->engine, run.block);
}

static void frees_another_too(void) {
    frees();
    run.given = quiet_free(run.others[0], 0);
    run.others[0] = NULL;
}

static void rests(void) {
    run.freed[self()] = ONUMA_ERROR_DOUBLE_FREE;
}

static void takes_caches(void) {
    (void)onuma__engine_take_caches(run.pool->engine);
    run.freed[self()] = ONUMA_ERROR_DOUBLE_FREE;
}

/* --------------------------------------------------------------------- after */

static char wrong[512];
#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            snprintf(wrong, sizeof wrong, "line %d: %s (freed: %d %d %d %d; %s)", __LINE__, #condition, run.freed[0],  \
                     run.freed[1], run.freed[2], run.freed[3], onuma_last_error());                                    \
            return wrong;                                                                                              \
        }                                                                                                              \
    } while (0)

static const char *check_run(const schedule_scenario *scenario) {
    size_t freed = 0, handed_out = 1, live = 0;
    for (size_t i = 0; i < scenario->threads; i++) {
        const bool ok = run.freed[i] == ONUMA_OK || run.freed[i] == ONUMA__HELD;
        /* INVALID_POINTER: the slab had gone back to the pool. */
        EXPECT(ok || run.freed[i] == ONUMA_ERROR_DOUBLE_FREE || run.freed[i] == ONUMA_ERROR_INVALID_POINTER);
        freed += ok;
        if (run.again[i] == NULL) continue;
        if (run.again[i] == run.block)
            handed_out++;
        else
            live++;
    }
    /* Freed as often as it was handed out, or it lives. It was freed before it was handed out again. */
    EXPECT(freed >= 1 && freed <= handed_out && handed_out <= freed + 1);
    live += handed_out - freed;
    for (size_t i = 0; i < SLOTS - 1; i++)
        live += run.others[i] != NULL;
    EXPECT(run.given == ONUMA_OK);
    onuma_pool_stats stats = ONUMA_POOL_STATS_INIT;
    onuma__engine_get_stats(run.pool->engine, &stats);
    EXPECT(stats.in_use_blocks == live && stats.in_use_bytes == live * SIZE && stats.requested_bytes == live * SIZE);
    onuma__engine_take_caches(run.pool->engine);
    EXPECT(onuma__engine_check(run.pool->engine) == ONUMA_OK);
    onuma__block found;
    EXPECT((onuma__engine_find(run.block, &found) == ONUMA_OK) == (handed_out > freed));

    /* Whatever is handed out from here on is nobody else's. */
    void *more[SLOTS + 4];
    schedule_become(OWNER);
    for (size_t i = 0; i < SLOTS + 4; i++) {
        more[i] = must_take(SIZE);
        EXPECT(handed_out == freed || more[i] != run.block);
        for (size_t j = 0; j < i; j++)
            EXPECT(more[i] != more[j]);
        for (size_t j = 0; j < SLOTS - 1; j++)
            EXPECT(more[i] != run.others[j]);
        for (size_t j = 0; j < scenario->threads; j++)
            EXPECT(more[i] != run.again[j] || (more[i] == run.block && handed_out == freed));
    }
    for (size_t i = 0; i < SLOTS + 4; i++)
        EXPECT(quiet_free(more[i], 0) == ONUMA_OK);
    return NULL;
}

static const char *end(void) {
    const char *result = check_run(explored);
    schedule_become(SCHEDULE_THREADS);
    close_pool(run.pool);
    free(run.pool);
    for (size_t i = 0; i < SCHEDULE_THREADS; i++)
        schedule_exit(i);
    return result;
}

static const schedule_scenario scenarios[] = {
    {"the owner and another", 2, begin, {frees, frees}, end},
    {"the owner and another, shared before", 2, begin_shared, {frees, frees}, end},
    {"the owner, which allocates again, and another", 2, begin, {frees_and_allocates, frees}, end},
    {"the same, shared before", 2, begin_shared, {frees_and_allocates, frees}, end},
    {"two others, and the owner allocates", 3, begin_shared, {allocates, frees, frees}, end},
    {"the owner and two others", 3, begin_shared, {frees, frees, frees}, end},
    {"the owner and one that holds", 2, begin, {frees, holds}, end},
    {"the owner, which holds, and another", 2, begin_shared, {holds, frees}, end},
    {"two that hold", 2, begin_shared, {holds, holds}, end},
    {"one that holds, and the owner allocates", 2, begin_shared, {allocates, holds}, end},
    {"the owner frees its neighbour too", 2, begin, {frees_another_too, frees}, end},
    {"the owner, and one takes the cache", 2, begin, {frees, takes_caches}, end},
    {"another, and one takes the cache", 3, begin_shared, {rests, frees, takes_caches}, end},
    {"the owner gives the slab back", 2, begin_alone, {frees, frees}, end},
};
enum { SCENARIOS = sizeof scenarios / sizeof scenarios[0] };

/* --------------------------------------------------------------------- tests */

static void every_order_ends_well(void **state) {
    (void)state;
    size_t sum = 0;
    for (size_t i = 0; i < SCENARIOS; i++) {
        size_t runs;
        explored = &scenarios[i];
        const char *result = schedule_explore(explored, (schedule_faults){0}, &runs);
        print_message("%s: %zu orders\n", explored->name, runs);
        if (result != NULL) fail_msg("%s: %s", explored->name, result);
        assert_true(runs > 1);
        sum += runs;
    }
    print_message("%zu orders in all\n", sum);
}

/* Whether a scenario goes wrong with the fault planted. */
static void is_caught(schedule_faults faults) {
    size_t runs, caught = 0;
    for (size_t i = 0; i < SCENARIOS; i++) {
        explored = &scenarios[i];
        if (schedule_explore(explored, faults, &runs) != NULL) caught++;
    }
    print_message("caught by %zu of %d scenarios\n", caught, SCENARIOS);
    assert_true(caught > 0);
}

/* Two that compare before either stores both win. */
static void torn_exchanges_are_caught(void **state) {
    (void)state;
    is_caught((schedule_faults){.torn = "word"});
}

/* Whoever shares a heap does not see that the owner is inside, between its look at the bits and its store. */
static void sharing_without_waiting_is_caught(void **state) {
    (void)state;
    is_caught((schedule_faults){.blind = "&heap->busy"});
}

/* The owner goes on as if nobody else freed into its slabs. */
static void an_owner_that_does_not_know_is_caught(void **state) {
    (void)state;
    is_caught((schedule_faults){.blind = "&heap->shared"});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order_ends_well),
        cmocka_unit_test(torn_exchanges_are_caught),
        cmocka_unit_test(sharing_without_waiting_is_caught),
        cmocka_unit_test(an_owner_that_does_not_know_is_caught),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
