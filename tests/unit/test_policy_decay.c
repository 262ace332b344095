/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that goes back by itself. The clock of all but the thread's own tests is the tests'. */
#include "policy_decay.h"

#include <pthread.h>

#include "policy/private.h"
#include "pool/engine.h"

#define STEP (UINT64_C(1) << 30) /* ns between two steps, with the half-life below */
#define SETTINGS "decay.half_life:17179869184ns,decay.floor:0"
#define HALF_LIFE 16u /* steps */

static void pass(fixture *f, unsigned steps) {
    for (unsigned i = 0; i < steps; i++) {
        f->now += STEP;
        (void)onuma__decay_round(f->now);
    }
}

/* ---------------------------------------------------------------- the curve */

static void goes_back_by_halves_and_then_all(void **state) {
    (void)state;
    for (onuma_source source = ONUMA_SOURCE_RANGE; source <= ONUMA_SOURCE_SEGMENTS; source++) {
        fixture f;
        void *blocks[16];
        open_fixture(&f, SETTINGS, source);
        fill(&f, 512 * MIB, blocks);
        pass(&f, 1);
        const size_t peak = reserved(&f);
        assert_true(peak >= 512 * MIB);
        empty(blocks, 16);
        pass(&f, 1); /* it was in use since the last */
        assert_int_equal(reserved(&f), peak);
        pass(&f, HALF_LIFE / 2);
        assert_true(reserved(&f) >= peak - 32 * MIB); /* what was beyond half a half-life ago */
        pass(&f, HALF_LIFE);
        assert_true(reserved(&f) <= peak / 2 + 32 * MIB && reserved(&f) >= peak / 2 - 32 * MIB);
        pass(&f, 3 * HALF_LIFE - HALF_LIFE - HALF_LIFE / 2 - 1);
        assert_int_equal(reserved(&f), 0);
        close_fixture(&f);
    }
}

static void what_is_in_use_stays(void **state) {
    (void)state;
    fixture f;
    void *blocks[16];
    open_fixture(&f, SETTINGS, ONUMA_SOURCE_RANGE);
    fill(&f, 512 * MIB, blocks);
    empty(blocks, 12);
    pass(&f, 4 * HALF_LIFE);
    assert_true(reserved(&f) >= 128 * MIB && reserved(&f) < 129 * MIB);
    empty(blocks + 12, 4);
    close_fixture(&f);
}

static void a_need_that_comes_and_goes_within_a_step_keeps_its_memory(void **state) {
    (void)state;
    fixture f;
    void *blocks[16];
    open_fixture(&f, SETTINGS, ONUMA_SOURCE_RANGE);
    for (unsigned i = 0; i < 4 * HALF_LIFE; i++) {
        fill(&f, 512 * MIB, blocks);
        empty(blocks, 16);
        pass(&f, 1);
        assert_true(reserved(&f) >= 512 * MIB);
    }
    assert_true(api_stats(f.handle).decommit_count <= 1); /* what was committed beyond the need */
    close_fixture(&f);
}

static void a_floor_stays(void **state) {
    (void)state;
    fixture f;
    void *blocks[16];
    open_fixture(&f, "decay.half_life:17179869184ns,decay.floor:40m", ONUMA_SOURCE_RANGE);
    fill(&f, 512 * MIB, blocks);
    empty(blocks, 16);
    pass(&f, 5 * HALF_LIFE);
    assert_int_equal(reserved(&f), 40 * MIB);
    close_fixture(&f);
}

static void half_life_0_and_simulated_pools_keep_all(void **state) {
    (void)state;
    fixture f;
    void *blocks[16];
    open_fixture(&f, "decay.half_life:0", ONUMA_SOURCE_RANGE);
    fill(&f, 512 * MIB, blocks);
    empty(blocks, 16);
    pass(&f, 5 * HALF_LIFE);
    assert_true(reserved(&f) >= 512 * MIB);
    close_fixture(&f);

    onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
    desc.simulate = true;
    f.rt = api_runtime(SETTINGS, NULL);
    OK(onuma_pool_create(api_host(f.rt), &desc, &f.handle));
    OK(onuma_alloc(f.handle, 100 * MIB, 0, NULL, &blocks[0]));
    OK(onuma_free(blocks[0], NULL));
    f.now = onuma__os_now();
    pass(&f, 5 * HALF_LIFE);
    assert_true(reserved(&f) >= 100 * MIB);
    close_fixture(&f);
}

/* One step that comes late is worth as many as were left out. */
static void late_steps_count_as_all(void **state) {
    (void)state;
    fixture f;
    void *blocks[16];
    open_fixture(&f, SETTINGS, ONUMA_SOURCE_RANGE);
    fill(&f, 512 * MIB, blocks);
    empty(blocks, 16);
    pass(&f, 1);
    f.now += 1000000 * STEP;
    pass(&f, 1);
    assert_int_equal(reserved(&f), 0);
    close_fixture(&f);
}

static void go_round(onuma__visit *visit, void *user) {
    (void)visit;
    *(uint64_t *)user = onuma__decay_round(onuma__os_now());
}

/* Two that go round at once must not both think that there is nothing more to do. */
static void who_finds_a_pool_visited_comes_back(void **state) {
    (void)state;
    fixture f;
    uint64_t next = 0;
    open_fixture(&f, SETTINGS, ONUMA_SOURCE_RANGE);
    assert_true(onuma__pools_visit(go_round, &next));
    assert_true(next <= onuma__os_now() + STEP);
    assert_true(onuma__decay_round(onuma__os_now()) != UINT64_MAX);
    close_fixture(&f);
}

/* ------------------------------------------------------------------ discard */

static void contents_go_before_the_pages(void **state) {
    (void)state;
    fixture f;
    void *blocks[16], *again;
    open_fixture(&f, SETTINGS, ONUMA_SOURCE_RANGE);
    fill(&f, 512 * MIB, blocks);
    pass(&f, 1);
    empty(blocks, 16);
    const size_t peak = reserved(&f);
    pass(&f, 5);
    assert_int_equal(reserved(&f), peak);
    const size_t discarded = f.pool->owner.engine->discarded_pages;
    assert_true(discarded > 0 && discarded < peak / ONUMA__PAGE);
    /* Taken again they hold what they are given, without a call. */
    const uint64_t calls = api_stats(f.handle).commit_count;
    OK(onuma_alloc(f.handle, 512 * MIB, 0, NULL, &again));
    assert_int_equal(f.pool->owner.engine->discarded_pages, 0);
    assert_int_equal(api_stats(f.handle).commit_count, calls);
    for (size_t i = 0; i < 512 * MIB; i += ONUMA__PAGE)
        ((unsigned char *)again)[i] = 7;
    pass(&f, 2 * HALF_LIFE);
    for (size_t i = 0; i < 512 * MIB; i += ONUMA__PAGE)
        assert_int_equal(((unsigned char *)again)[i], 7);
    assert_int_equal(onuma__engine_check(f.pool->owner.engine), ONUMA_OK);
    OK(onuma_free(again, NULL));
    pass(&f, 4 * HALF_LIFE);
    assert_int_equal(reserved(&f), 0);
    assert_int_equal(f.pool->owner.engine->discarded_pages, 0);
    close_fixture(&f);
}

/* ------------------------------------------------- caches, queues, deleters */

typedef struct idler {
    fixture *f;
    _Atomic int phase; /* 1: it idles, 2: it may end */
} idler;

static void *cache_and_idle(void *argument) {
    idler *i = argument;
    void *blocks[200];
    for (size_t n = 0; n < 200; n++)
        OK(onuma_alloc(i->f->handle, n % 2 ? 100 : 60000, 0, NULL, &blocks[n]));
    for (size_t n = 0; n < 200; n++)
        OK(onuma_free(blocks[n], NULL));
    i->phase = 1;
    while (i->phase != 2)
        onuma__os_sleep(100000);
    return NULL;
}

static void idle_caches_are_taken(void **state) {
    (void)state;
    fixture f;
    pthread_t thread;
    open_fixture(&f, SETTINGS, ONUMA_SOURCE_RANGE);
    idler i = {.f = &f};
    assert_int_equal(pthread_create(&thread, NULL, cache_and_idle, &i), 0);
    while (i.phase != 1)
        onuma__os_sleep(100000);
    assert_true(reserved(&f) > 5 * MIB);
    pass(&f, 3 * HALF_LIFE);
    assert_int_equal(reserved(&f), 0);
    i.phase = 2;
    pthread_join(thread, NULL);
    close_fixture(&f);
}

static void what_queues_use_stays_until_they_have_passed(void **state) {
    (void)state;
    fixture f;
    onuma_host_timeline line = {.submitted = 1, .completed = 0};
    onuma_queue *queue;
    void *block;
    open_fixture(&f, SETTINGS, ONUMA_SOURCE_SEGMENTS);
    OK(onuma_queue_wrap(api_host(f.rt), ONUMA_API_HOST, (uint64_t)(uintptr_t)&line, NULL, &queue));
    OK(onuma_alloc(f.handle, 64 * MIB, 0, queue, &block));
    OK(onuma_free(block, queue));
    pass(&f, 4 * HALF_LIFE);
    assert_true(reserved(&f) >= 64 * MIB);
    line.completed = 1;
    pass(&f, 3 * HALF_LIFE);
    assert_int_equal(reserved(&f), 0);
    OK(onuma_queue_release(queue));
    close_fixture(&f);
}

static void destroy_pool(void *user, void *ptr) {
    (void)ptr;
    OK(onuma_pool_destroy(user));
}

/* Steps ask queues how far they are, which may end an import, whose deleter may do anything. */
static void a_deleter_may_end_the_pool_that_decays(void **state) {
    (void)state;
    const size_t granule = onuma__os_abilities_get()->reserve_granule;
    void *memory = onuma__os_map(granule, 0);
    fixture f;
    onuma_host_timeline line = {.submitted = 1, .completed = 0};
    onuma_import_desc desc = ONUMA_IMPORT_DESC_INIT;
    onuma_queue *queue;
    void *import;
    open_fixture(&f, SETTINGS, ONUMA_SOURCE_RANGE);
    OK(onuma_queue_wrap(api_host(f.rt), ONUMA_API_HOST, (uint64_t)(uintptr_t)&line, NULL, &queue));
    desc.deleter = destroy_pool;
    desc.user = f.handle;
    OK(onuma_import(api_host(f.rt), memory, granule, &desc, &import));
    OK(onuma_free(import, queue));
    line.completed = 1;
    pass(&f, 1);
    onuma_pool_stats stats = ONUMA_POOL_STATS_INIT;
    FAILS(INVALID_ARGUMENT, "not a live pool", onuma_pool_get_stats(f.handle, &stats));
    pass(&f, 1);
    OK(onuma_queue_release(queue));
    onuma_runtime_destroy(f.rt);
    onuma__os_release(memory, granule);
}

/* -------------------------------------------------- without being asked to */

static void calls_of_the_program_are_enough(void **state) {
    (void)state;
    fixture f;
    void *blocks[16], *block;
    open_fixture(&f, "decay.half_life:16ms,decay.floor:0", ONUMA_SOURCE_RANGE);
    fill(&f, 512 * MIB, blocks);
    empty(blocks, 16);
    while (reserved(&f) > 64 * MIB) {
        OK(onuma_alloc(f.handle, 32 * MIB, 0, NULL, &block));
        OK(onuma_free(block, NULL));
    }
    close_fixture(&f);
}

static void the_thread_is_enough(void **state) {
    (void)state;
    for (onuma_source source = ONUMA_SOURCE_RANGE; source <= ONUMA_SOURCE_SEGMENTS; source++) {
        fixture f;
        void *blocks[16];
        open_fixture(&f, THREAD_SETTINGS, source);
        for (int round = 0; round < 2; round++) {
            fill(&f, 512 * MIB, blocks);
            empty(blocks, 16);
            wait_until_empty(&f);
        }
        close_fixture(&f);
    }
}

static void the_thread_comes_and_goes_with_its_pools(void **state) {
    (void)state;
    for (int i = 0; i < 200; i++) {
        fixture f, g;
        void *block;
        open_fixture(&f, THREAD_SETTINGS, ONUMA_SOURCE_RANGE);
        if (i % 3 == 0) {
            open_fixture(&g, THREAD_SETTINGS, ONUMA_SOURCE_SEGMENTS);
            OK(onuma_alloc(g.handle, MIB, 0, NULL, &block));
            OK(onuma_free(block, NULL));
            close_fixture(&g);
        }
        if (i % 2 == 0) onuma__os_sleep(1000000);
        close_fixture(&f);
    }
}

static void *go_round_until(void *over) {
    while (!*(_Atomic bool *)over)
        (void)onuma__decay_round(onuma__os_now());
    return NULL;
}

/* Whatever another thread, for which a step is always due, has in hand at that moment. */
static void a_trim_leaves_nothing_beside_decay(void **state) {
    (void)state;
    for (onuma_source source = ONUMA_SOURCE_RANGE; source <= ONUMA_SOURCE_SEGMENTS; source++) {
        fixture f;
        void *blocks[8];
        pthread_t thread;
        _Atomic bool over = false;
        open_fixture(&f, "decay.half_life:16ns,decay.floor:0", source);
        assert_int_equal(pthread_create(&thread, NULL, go_round_until, &over), 0);
        for (int i = 0; i < 1000; i++) {
            for (size_t n = 0; n < 8; n++)
                OK(onuma_alloc(f.handle, (n + 1) * 300000, 0, NULL, &blocks[n]));
            for (size_t n = 0; n < 8; n++)
                OK(onuma_free(blocks[n], NULL));
            OK(onuma_pool_trim(f.handle, 0, NULL));
            assert_int_equal(reserved(&f), 0);
        }
        over = true;
        pthread_join(thread, NULL);
        close_fixture(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goes_back_by_halves_and_then_all),
        cmocka_unit_test(what_is_in_use_stays),
        cmocka_unit_test(a_need_that_comes_and_goes_within_a_step_keeps_its_memory),
        cmocka_unit_test(a_floor_stays),
        cmocka_unit_test(half_life_0_and_simulated_pools_keep_all),
        cmocka_unit_test(late_steps_count_as_all),
        cmocka_unit_test(who_finds_a_pool_visited_comes_back),
        cmocka_unit_test(contents_go_before_the_pages),
        cmocka_unit_test(idle_caches_are_taken),
        cmocka_unit_test(what_queues_use_stays_until_they_have_passed),
        cmocka_unit_test(a_deleter_may_end_the_pool_that_decays),
        cmocka_unit_test(calls_of_the_program_are_enough),
        cmocka_unit_test(the_thread_is_enough),
        cmocka_unit_test(the_thread_comes_and_goes_with_its_pools),
        cmocka_unit_test(a_trim_leaves_nothing_beside_decay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
