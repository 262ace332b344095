/* SPDX-License-Identifier: Apache-2.0 */
/* Pools: their making and end, limits, statistics, trimming, and what happens when memory is short. */
#include "api.h"

#include <pthread.h>
#include <time.h>

typedef struct fixture {
    onuma_runtime *rt;
    onuma_device *device;
} fixture;

static int set_up(void **state) {
    static fixture f;
    f.rt = api_runtime(NULL, NULL);
    f.device = api_device(f.rt);
    *state = &f;
    return 0;
}

static int tear_down(void **state) {
    onuma_runtime_destroy(((fixture *)*state)->rt);
    return 0;
}

/* ------------------------------------------------------------------ making */

static void every_source_serves(void **state) {
    fixture *f = *state;
    for (onuma_source source = ONUMA_SOURCE_AUTO; source <= ONUMA_SOURCE_SEGMENTS; source++)
        for (int simulate = 0; simulate < 2; simulate++) {
            onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
            onuma_pool *pool;
            desc.source = source;
            desc.simulate = simulate != 0;
            onuma_result r = onuma_pool_create(f->device, &desc, &pool);
            if (r == ONUMA_ERROR_NOT_SUPPORTED && source == ONUMA_SOURCE_RANGE && !simulate) {
                assert_non_null(strstr(onuma_last_error(), "ONUMA_SOURCE_SEGMENTS"));
                continue;
            }
            OK(r);
            void *blocks[64];
            for (size_t i = 0; i < 64; i++) {
                OK(onuma_alloc(pool, 1 + i * 5000, 0, NULL, &blocks[i]));
                if (!simulate) api_fill(blocks[i], 1 + i * 5000, (unsigned char)i);
            }
            for (size_t i = 0; i < 64; i++) {
                if (!simulate) api_check(blocks[i], 1 + i * 5000, (unsigned char)i);
                OK(onuma_free(blocks[i], NULL));
            }
            OK(onuma_pool_trim(pool, 0, NULL));
            assert_int_equal(api_stats(pool).reserved_bytes, 0);
            OK(onuma_pool_destroy(pool));
        }
}

static void simulation_needs_no_memory(void **state) {
    fixture *f = *state;
    onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
    onuma_pool *pool;
    void *blocks[100], *none;
    desc.simulate = true;
    OK(onuma_pool_create(f->device, &desc, &pool));
    for (size_t i = 0; i < 100; i++)
        OK(onuma_alloc(pool, (size_t)10 << 30, 0, NULL, &blocks[i]));
    assert_true(api_stats(pool).reserved_bytes >= (uint64_t)1000 << 30);
    FAILS(NOT_SUPPORTED, "simulated", onuma_alloc_zeroed(pool, 10, 0, NULL, &none));
    for (size_t i = 0; i < 100; i++)
        OK(onuma_free(blocks[i], NULL));
    OK(onuma_pool_destroy(pool));
}

static void aligns_every_block(void **state) {
    fixture *f = *state;
    onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
    onuma_pool *pool;
    desc.alignment = 8192;
    OK(onuma_pool_create(f->device, &desc, &pool));
    void *blocks[20];
    for (size_t i = 0; i < 20; i++) {
        OK(onuma_alloc(pool, i * 100, 0, NULL, &blocks[i]));
        assert_int_equal((uintptr_t)blocks[i] % 8192, 0);
    }
    for (size_t i = 0; i < 20; i++)
        OK(onuma_free(blocks[i], NULL));
    OK(onuma_pool_destroy(pool));
}

/* --------------------------------------------------------------- destroying */

static void busy_while_blocks_live(void **state) {
    fixture *f = *state;
    onuma_pool *pool = api_pool(f->device, 0);
    void *block, *another;
    OK(onuma_alloc(pool, 1000, 0, NULL, &block));
    FAILS(BUSY, "pool \"test\": 1 blocks", onuma_pool_destroy(pool));
    OK(onuma_alloc(pool, 1000, 0, NULL, &another)); /* nothing has changed */
    OK(onuma_free(another, NULL));
    OK(onuma_free(block, NULL));
    OK(onuma_pool_destroy(pool));
    FAILS(INVALID_ARGUMENT, "not a live pool", onuma_pool_destroy(pool));
    OK(onuma_pool_destroy(NULL));
    OK(onuma_pool_destroy_forced(NULL, 0));
}

static void forced_destruction_ends_blocks(void **state) {
    fixture *f = *state;
    onuma_pool *pool = api_pool(f->device, 0);
    void *small, *large, *none;
    OK(onuma_alloc(pool, 100, 0, NULL, &small));
    OK(onuma_alloc(pool, 8 << 20, 0, NULL, &large));
    OK(onuma_pool_destroy_forced(pool, 0));
    FAILS(INVALID_POINTER, "", onuma_free(small, NULL));
    FAILS(INVALID_POINTER, "", onuma_free(large, NULL));
    FAILS(INVALID_ARGUMENT, "not a live pool", onuma_alloc(pool, 1, 0, NULL, &none));
    FAILS(INVALID_ARGUMENT, "not a live pool", onuma_pool_destroy_forced(pool, 0));
}

/* A queue may still use the memory: it stays mapped, and only the names are gone. */
static void forced_destruction_keeps_what_is_in_use(void **state) {
    fixture *f = *state;
    static onuma_host_timeline timeline; /* outlives the test: the quarantine may look at it */
    onuma_device *host = api_host(f->rt);
    onuma_pool *pool = api_pool(host, 0);
    onuma_queue *queue;
    char *in_use, *live;
    OK(onuma_queue_wrap(host, ONUMA_API_HOST, (uint64_t)(uintptr_t)&timeline, NULL, &queue));
    OK(onuma_alloc(pool, 1000, 0, queue, (void **)&in_use));
    OK(onuma_alloc(pool, 1000, 0, queue, (void **)&live));
    memset(in_use, 1, 1000);
    timeline.submitted = 1;
    OK(onuma_free(in_use, queue));
    FAILS(BUSY, "bytes live", onuma_pool_destroy(pool));
    OK(onuma_pool_destroy_forced(pool, 1000000));
    in_use[999] = 2; /* the work that still runs */
    assert_int_equal(in_use[0], 1);
    onuma_result r = onuma_free(live, NULL);
    assert_true(r == ONUMA_ERROR_DOUBLE_FREE || r == ONUMA_ERROR_INVALID_POINTER);
    timeline.completed = 1;
    OK(onuma_queue_release(queue));
}

static void busy_while_frees_wait(void **state) {
    fixture *f = *state;
    static onuma_host_timeline timeline;
    onuma_device *host = api_host(f->rt);
    onuma_pool *pool = api_pool(host, 0);
    onuma_queue *queue;
    void *block;
    timeline.submitted = timeline.completed = 0;
    OK(onuma_queue_wrap(host, ONUMA_API_HOST, (uint64_t)(uintptr_t)&timeline, NULL, &queue));
    OK(onuma_alloc(pool, 1 << 20, 0, NULL, &block));
    timeline.submitted = 1;
    OK(onuma_free(block, queue));
    assert_int_equal(api_stats(pool).in_use_blocks, 0);
    assert_true(api_stats(pool).pending_bytes >= 1 << 20);
    FAILS(BUSY, "queues still use", onuma_pool_destroy(pool));
    timeline.completed = 1;
    OK(onuma_pool_destroy(pool));
    OK(onuma_queue_release(queue));
}

/* --------------------------------------------------------------- statistics */

static void check_identities(const onuma_pool_stats *s) {
#define ONUMA_X(name, unit, text) assert_true(s->name <= s->name##_peak);
    ONUMA_POOL_GAUGES(ONUMA_X)
#undef ONUMA_X
    assert_int_equal(s->in_use_blocks, s->alloc_count - s->free_count);
    assert_true(s->requested_bytes <= s->in_use_bytes);
    assert_true(s->in_use_bytes + s->cached_bytes + s->pending_bytes <= s->reserved_bytes);
}

static void statistics_add_up(void **state) {
    fixture *f = *state;
    onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
    onuma_pool *pool;
    desc.source = ONUMA_SOURCE_SEGMENTS; /* a range keeps its addresses, and so its one segment */
    OK(onuma_pool_create(f->device, &desc, &pool));
    void *blocks[200] = {0};
    uint64_t requested = 0;
    for (unsigned step = 0; step < 2000; step++) {
        size_t i = (step * 2654435761u >> 8) % 200;
        size_t size = (i * i * 37) % 100000;
        if (blocks[i] == NULL) {
            OK(onuma_alloc(pool, size, 0, NULL, &blocks[i]));
            requested += size;
        } else {
            OK(onuma_free(blocks[i], NULL));
            blocks[i] = NULL;
            requested -= size;
        }
        onuma_pool_stats s = api_stats(pool);
        check_identities(&s);
        assert_int_equal(s.requested_bytes, requested);
    }
    for (size_t i = 0; i < 200; i++)
        OK(onuma_free(blocks[i], NULL));
    onuma_pool_stats full = api_stats(pool);
    assert_int_equal(full.in_use_bytes, 0);
    assert_true(full.in_use_bytes_peak != 0 && full.reserved_bytes != 0);

    size_t released = 0;
    OK(onuma_pool_trim(pool, 0, &released));
    onuma_pool_stats s = api_stats(pool);
    assert_int_equal(released, full.reserved_bytes);
    assert_int_equal(s.reserved_bytes, 0);
    assert_int_equal(s.cached_bytes, 0);
    assert_int_equal(s.segment_alloc_count, s.segment_free_count);
    OK(onuma_pool_reset_peak(pool));
    s = api_stats(pool);
    assert_int_equal(s.in_use_bytes_peak, 0);
    assert_int_equal(s.reserved_bytes_peak, 0);
    OK(onuma_pool_destroy(pool));
}

static void counts_failures(void **state) {
    fixture *f = *state;
    onuma_pool *pool = api_pool(f->device, 1 << 20);
    void *block;
    assert_int_not_equal(onuma_alloc(pool, 2 << 20, 0, NULL, &block), ONUMA_OK);
    assert_int_equal(api_stats(pool).alloc_failure_count, 1);
    assert_int_equal(api_stats(pool).alloc_count, 0);
    OK(onuma_pool_destroy(pool));
}

/* ------------------------------------------------------------------- limits */

static void limit_is_kept_and_named(void **state) {
    fixture *f = *state;
    onuma_pool *pool = api_pool(f->device, 8 << 20);
    void *blocks[64];
    size_t n = 0;
    onuma_result r = ONUMA_OK;
    while (n < 64 && (r = onuma_alloc(pool, 1 << 20, 0, NULL, &blocks[n])) == ONUMA_OK)
        n++;
    assert_int_equal(r, ONUMA_ERROR_LIMIT);
    assert_non_null(strstr(onuma_last_error(), "pool \"test\""));
    assert_non_null(strstr(onuma_last_error(), "1048576"));
    assert_non_null(strstr(onuma_last_error(), "limit 8388608"));
    assert_non_null(strstr(onuma_last_error(), "onuma_pool_set_limit"));
    assert_true(n >= 6 && n <= 8);
    assert_true(api_stats(pool).reserved_bytes <= 8 << 20);
    OK(onuma_pool_set_limit(pool, 16 << 20));
    OK(onuma_alloc(pool, 1 << 20, 0, NULL, &blocks[n]));
    n++;
    OK(onuma_pool_set_limit(pool, 1)); /* below what is there: only growth is refused */
    OK(onuma_free(blocks[--n], NULL));
    OK(onuma_alloc(pool, 1 << 20, 0, NULL, &blocks[n]));
    n++;
    while (n > 0)
        OK(onuma_free(blocks[--n], NULL));
    OK(onuma_pool_destroy(pool));
}

/* Memory of one size is given up for another: empty segments go when the limit is met. */
static void limit_is_shared_among_sizes(void **state) {
    fixture *f = *state;
    onuma_pool *pool = api_pool(f->device, 32 << 20);
    void *blocks[400];
    for (unsigned round = 0; round < 3; round++) {
        for (size_t i = 0; i < 400; i++)
            OK(onuma_alloc(pool, 60000, 0, NULL, &blocks[i]));
        for (size_t i = 0; i < 400; i++)
            OK(onuma_free(blocks[i], NULL));
        OK(onuma_alloc(pool, 24 << 20, 0, NULL, &blocks[0]));
        OK(onuma_free(blocks[0], NULL));
    }
    assert_true(api_stats(pool).reserved_bytes_peak <= 32 << 20);
    OK(onuma_pool_destroy(pool));
}

enum { LIMIT = 24 << 20 };
typedef struct worker {
    onuma_pool *pool;
    unsigned seed;
    unsigned refused, wrong;
} worker;

static void *allocate_against_limit(void *argument) {
    worker *w = argument;
    void *blocks[32] = {0};
    for (unsigned step = 0; step < 1000; step++) {
        w->seed = w->seed * 1664525 + 1013904223;
        size_t i = w->seed >> 27;
        if (blocks[i] != NULL) {
            if (onuma_free(blocks[i], NULL) != ONUMA_OK) w->wrong++;
            blocks[i] = NULL;
            continue;
        }
        onuma_result r = onuma_alloc(w->pool, (w->seed >> 10) % 2000000, 0, NULL, &blocks[i]);
        if (r == ONUMA_ERROR_LIMIT)
            w->refused++;
        else if (r != ONUMA_OK)
            w->wrong++;
        onuma_pool_stats s = ONUMA_POOL_STATS_INIT;
        if (onuma_pool_get_stats(w->pool, &s) != ONUMA_OK || s.reserved_bytes > LIMIT) w->wrong++;
    }
    for (size_t i = 0; i < 32; i++)
        if (onuma_free(blocks[i], NULL) != ONUMA_OK) w->wrong++;
    return NULL;
}

static void threads_never_pass_the_limit(void **state) {
    fixture *f = *state;
    onuma_pool *pool = api_pool(f->device, LIMIT);
    pthread_t threads[4];
    worker workers[4];
    unsigned refused = 0;
    for (unsigned i = 0; i < 4; i++) {
        workers[i] = (worker){.pool = pool, .seed = i + 1};
        assert_int_equal(pthread_create(&threads[i], NULL, allocate_against_limit, &workers[i]), 0);
    }
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(workers[i].wrong, 0);
        refused += workers[i].refused;
    }
    assert_true(refused != 0); /* the limit was in the way */
    onuma_pool_stats s = api_stats(pool);
    check_identities(&s);
    assert_true(s.reserved_bytes_peak <= LIMIT);
    assert_int_equal(s.in_use_blocks, 0);
    OK(onuma_pool_trim(pool, 0, NULL));
    assert_int_equal(api_stats(pool).reserved_bytes, 0);
    OK(onuma_pool_destroy(pool));
}

/* ------------------------------------------------------------------ handler */

typedef struct hoard {
    onuma_pool *pool;
    void *block;
    unsigned calls, nested_failures;
    size_t asked;
    bool again;
} hoard;

static bool give_up_hoard(void *user, onuma_pool *pool, size_t size) {
    hoard *h = user;
    h->calls++;
    h->asked = size;
    if (pool != h->pool) return false;
    /* The library may be called from here; a failing allocation does not ask us again. */
    void *nested;
    if (onuma_alloc(pool, 64 << 20, 0, NULL, &nested) == ONUMA_ERROR_LIMIT) h->nested_failures++;
    if (h->block != NULL && onuma_free(h->block, NULL) == ONUMA_OK) {
        h->block = NULL;
        return true;
    }
    return h->again;
}

static void handler_makes_room(void **state) {
    fixture *f = *state;
    onuma_pool *pool = api_pool(f->device, 16 << 20);
    hoard h = {.pool = pool};
    void *block;
    OK(onuma_pool_set_oom_handler(pool, give_up_hoard, &h));
    OK(onuma_alloc(pool, 12 << 20, 0, NULL, &h.block));
    OK(onuma_alloc(pool, 10 << 20, 0, NULL, &block));
    assert_int_equal(h.calls, 1);
    assert_int_equal(h.nested_failures, 1);
    assert_int_equal(h.asked, 10 << 20);
    assert_int_equal(api_stats(pool).oom_retry_count, 1);

    void *none;
    FAILS(LIMIT, "limit", onuma_alloc(pool, 10 << 20, 0, NULL, &none)); /* nothing to give: says no */
    assert_int_equal(h.calls, 2);
    h.again = true; /* always says yes, and never helps: asked a bounded number of times */
    FAILS(LIMIT, "limit", onuma_alloc(pool, 10 << 20, 0, NULL, &none));
    assert_int_equal(h.calls, 2 + 16);
    OK(onuma_pool_set_oom_handler(pool, NULL, NULL));
    FAILS(LIMIT, "limit", onuma_alloc(pool, 10 << 20, 0, NULL, &none));
    assert_int_equal(h.calls, 2 + 16);
    OK(onuma_free(block, NULL));
    OK(onuma_pool_destroy(pool));
}

/* Freed, but a queue is busy with it: the allocation waits for the queue rather than fail. */
static void *complete_soon(void *argument) {
    onuma_host_timeline *timeline = argument;
    struct timespec pause = {0, 20000000};
    nanosleep(&pause, NULL);
    timeline->completed = 1;
    return NULL;
}

static void waits_for_a_queue_that_helps(void **state) {
    fixture *f = *state;
    static onuma_host_timeline timeline;
    onuma_device *host = api_host(f->rt);
    onuma_pool *pool = api_pool(host, 16 << 20);
    onuma_queue *queue;
    void *block, *none;
    pthread_t thread;
    OK(onuma_queue_wrap(host, ONUMA_API_HOST, (uint64_t)(uintptr_t)&timeline, NULL, &queue));
    OK(onuma_alloc(pool, 12 << 20, 0, NULL, &block));
    timeline.submitted = 1;
    OK(onuma_free(block, queue));
    FAILS(LIMIT, "limit", onuma_alloc(pool, 17 << 20, 0, NULL, &none)); /* could not fit even then: does not wait */
    assert_int_equal(timeline.completed, 0);
    assert_int_equal(pthread_create(&thread, NULL, complete_soon, &timeline), 0);
    OK(onuma_alloc(pool, 12 << 20, 0, NULL, &block));
    pthread_join(thread, NULL);
    assert_int_equal(api_stats(pool).oom_retry_count, 1);
    OK(onuma_free(block, NULL));
    OK(onuma_queue_release(queue));
    OK(onuma_pool_destroy(pool));
}

/* What is free stays for requests that it can serve. */
static void hopeless_requests_cost_the_pool_nothing(void **state) {
    fixture *f = *state;
    onuma_pool *pool = api_pool(f->device, 0);
    const size_t hopeless[] = {(size_t)1 << 46, (size_t)1 << 50};
    void *block, *none;
    OK(onuma_alloc(pool, 3 << 20, 0, NULL, &block));
    OK(onuma_free(block, NULL));
    const onuma_pool_stats before = api_stats(pool);
    assert_true(before.reserved_bytes >= 3 << 20);
    for (size_t i = 0; i < sizeof hopeless / sizeof hopeless[0]; i++)
        FAILS(OUT_OF_MEMORY, "no room", onuma_alloc(pool, hopeless[i], 0, NULL, &none));
    /* More than the pool holds: a limit is one of bytes held, and what is held may serve any request. */
    OK(onuma_pool_set_limit(pool, (size_t)before.reserved_bytes));
    FAILS(LIMIT, "limit", onuma_alloc(pool, (size_t)before.reserved_bytes + (1 << 20), 0, NULL, &none));
    const onuma_pool_stats after = api_stats(pool);
    assert_int_equal(after.reserved_bytes, before.reserved_bytes);
    assert_int_equal(after.segment_free_count + after.decommit_count,
                     before.segment_free_count + before.decommit_count);
    OK(onuma_pool_destroy(pool));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(every_source_serves),
        TEST(simulation_needs_no_memory),
        TEST(aligns_every_block),
        TEST(busy_while_blocks_live),
        TEST(forced_destruction_ends_blocks),
        TEST(forced_destruction_keeps_what_is_in_use),
        TEST(busy_while_frees_wait),
        TEST(statistics_add_up),
        TEST(counts_failures),
        TEST(limit_is_kept_and_named),
        TEST(limit_is_shared_among_sizes),
        TEST(threads_never_pass_the_limit),
        TEST(handler_makes_room),
        TEST(waits_for_a_queue_that_helps),
        TEST(hopeless_requests_cost_the_pool_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
