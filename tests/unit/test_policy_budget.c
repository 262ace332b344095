/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of a runtime, soft limits, and what counts as free. */
#include "api/api.h"

#include <pthread.h>

#include "api/handle.h"
#include "api/runtime.h"
#include "policy/private.h"

#define MIB ((size_t)1 << 20)

static onuma_pool *pool_of(onuma_runtime *rt, onuma_source source) {
    onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
    onuma_pool *pool;
    desc.source = source;
    OK(onuma_pool_create(api_host(rt), &desc, &pool));
    return pool;
}

/* Blocks of 32 MiB, which no cache keeps as it is set up by default. */
static void fill(onuma_pool *pool, size_t count, void **blocks) {
    for (size_t i = 0; i < count; i++)
        OK(onuma_alloc(pool, 32 * MIB, 0, NULL, &blocks[i]));
}

static void empty(size_t count, void **blocks) {
    for (size_t i = 0; i < count; i++)
        OK(onuma_free(blocks[i], NULL));
}

static size_t admitted(const onuma_runtime *rt) {
    return onuma__get_runtime(rt)->budget.admitted;
}

static void a_pool_gives_way_to_another(void **state) {
    (void)state;
    for (onuma_source source = ONUMA_SOURCE_RANGE; source <= ONUMA_SOURCE_SEGMENTS; source++) {
        onuma_runtime *rt = api_runtime("limit.hard:100m", NULL);
        onuma_pool *a = pool_of(rt, source), *b = pool_of(rt, source);
        void *blocks[4], *more, *none;
        fill(a, 3, blocks);
        FAILS(LIMIT, "the runtime's limit of 104857600", onuma_alloc(b, 32 * MIB, 0, NULL, &none));
        FAILS(LIMIT, "larger than the limit", onuma_alloc(b, 101 * MIB, 0, NULL, &none));
        empty(3, blocks);
        assert_true(api_stats(a).reserved_bytes >= 96 * MIB);
        OK(onuma_alloc(b, 80 * MIB, 0, NULL, &more));
        assert_true(api_stats(b).oom_retry_count == 1 && api_stats(a).reserved_bytes <= 20 * MIB);
        assert_int_equal(admitted(rt), api_stats(a).reserved_bytes + api_stats(b).reserved_bytes);
        FAILS(LIMIT, "the runtime's limit", onuma_alloc(a, 32 * MIB, 0, NULL, &none));
        OK(onuma_runtime_set_limits(rt, 200 * MIB, 0));
        fill(a, 3, blocks);
        empty(3, blocks);
        OK(onuma_free(more, NULL));
        OK(onuma_pool_destroy(a));
        OK(onuma_pool_destroy(b));
        assert_int_equal(admitted(rt), 0);
        onuma_runtime_destroy(rt);
    }
}

static void runtimes_have_limits_of_their_own(void **state) {
    (void)state;
    onuma_runtime *one = api_runtime("limit.hard:40m", NULL), *other = api_runtime(NULL, NULL);
    onuma_pool *a = pool_of(one, ONUMA_SOURCE_AUTO), *b = pool_of(other, ONUMA_SOURCE_AUTO);
    void *blocks[4], *none;
    fill(b, 4, blocks);
    OK(onuma_alloc(a, 32 * MIB, 0, NULL, &none));
    OK(onuma_free(none, NULL));
    empty(4, blocks);
    assert_true(api_stats(b).reserved_bytes >= 128 * MIB);
    FAILS(INVALID_ARGUMENT, "onuma_runtime_set_limits", onuma_runtime_set_limits(NULL, 0, 0));
    onuma_runtime_destroy(one);
    onuma_runtime_destroy(other);
}

/* ------------------------------------------------------------- many threads */

typedef struct load {
    onuma_pool *pools[3];
    unsigned seed;
    _Atomic bool *over;
} load;

static void *allocate_at_random(void *argument) {
    load *l = argument;
    void *blocks[16] = {0};
    for (unsigned i = 0; i < 20000; i++) {
        l->seed = l->seed * 1664525u + 1013904223u;
        void **block = &blocks[l->seed >> 8 & 15];
        if (*block != NULL) OK(onuma_free(*block, NULL));
        *block = NULL;
        const size_t size = (size_t)1 << (6 + (l->seed >> 12) % 16);
        const onuma_result r = onuma_alloc(l->pools[(l->seed >> 20) % 3], size, 0, NULL, block);
        if (r != ONUMA_OK && r != ONUMA_ERROR_LIMIT) fail_msg("%s", onuma_last_error());
    }
    empty(16, blocks);
    return NULL;
}

static void *watch_the_budget(void *argument) {
    const onuma_runtime *rt = ((void **)argument)[0];
    _Atomic bool *over = ((void **)argument)[1];
    while (!*over && admitted(rt) <= 48 * MIB)
        onuma__os_yield();
    *over = true;
    return NULL;
}

static void it_is_never_passed(void **state) {
    (void)state;
    onuma_runtime *rt = api_runtime("limit.hard:48m,pool.cache:4m", NULL);
    load loads[4];
    pthread_t threads[4], watcher;
    _Atomic bool over = false;
    void *watched[] = {rt, &over};
    onuma_pool *pools[3] = {pool_of(rt, ONUMA_SOURCE_RANGE), pool_of(rt, ONUMA_SOURCE_SEGMENTS),
                            pool_of(rt, ONUMA_SOURCE_RANGE)};
    assert_int_equal(pthread_create(&watcher, NULL, watch_the_budget, watched), 0);
    for (unsigned i = 0; i < 4; i++) {
        loads[i] = (load){{pools[0], pools[1], pools[2]}, i, &over};
        assert_int_equal(pthread_create(&threads[i], NULL, allocate_at_random, &loads[i]), 0);
    }
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_false(over);
    over = true;
    pthread_join(watcher, NULL);
    for (unsigned i = 0; i < 3; i++) {
        assert_true(api_stats(pools[i]).reserved_bytes_peak <= 48 * MIB);
        OK(onuma_pool_trim(pools[i], 0, NULL));
    }
    assert_int_equal(admitted(rt), 0);
    onuma_runtime_destroy(rt);
}

/* --------------------------------------------------------------- soft limits */

static void beyond_a_soft_limit_nothing_is_kept(void **state) {
    (void)state;
    for (int of_all = 0; of_all < 2; of_all++) {
        onuma_runtime *rt = api_runtime("pool.cache:64m", NULL);
        onuma_pool *pool = pool_of(rt, ONUMA_SOURCE_SEGMENTS);
        void *blocks[5], *large;
        if (of_all)
            OK(onuma_runtime_set_limits(rt, 0, 100 * MIB));
        else
            OK(onuma_pool_set_soft_limit(pool, 100 * MIB));
        fill(pool, 5, blocks); /* it may grow beyond */
        empty(5, blocks);
        assert_true(api_stats(pool).reserved_bytes >= 160 * MIB);
        OK(onuma_alloc(pool, 40 * MIB, 0, NULL, &large)); /* none of the free segments can serve that */
        assert_true(api_stats(pool).reserved_bytes <= 41 * MIB);
        assert_int_equal(api_stats(pool).oom_retry_count, 0);
        OK(onuma_free(large, NULL));
        FAILS(INVALID_ARGUMENT, "onuma_pool_set_soft_limit", onuma_pool_set_soft_limit(NULL, 0));
        onuma_runtime_destroy(rt);
    }
}

static void decay_does_not_wait_there(void **state) {
    (void)state;
    onuma_runtime *rt = api_runtime("decay.half_life:16s,decay.floor:0", NULL);
    onuma_pool *pool = pool_of(rt, ONUMA_SOURCE_RANGE);
    void *blocks[5];
    OK(onuma_pool_set_soft_limit(pool, 100 * MIB));
    fill(pool, 5, blocks);
    empty(4, blocks);
    (void)onuma__decay_round(onuma__os_now() + UINT64_C(2000000000));
    assert_true(api_stats(pool).reserved_bytes <= 33 * MIB);
    empty(1, blocks + 4);
    onuma_runtime_destroy(rt);
}

/* -------------------------------------------------------------- memory info */

static void what_pools_have_free_counts_as_free(void **state) {
    (void)state;
    onuma_runtime *rt = api_runtime(NULL, NULL);
    const onuma__device *host = onuma__handle_get(ONUMA__HANDLE_DEVICE, api_host(rt));
    onuma_pool *pool = pool_of(rt, ONUMA_SOURCE_SEGMENTS);
    onuma_pool_desc simulated = ONUMA_POOL_DESC_INIT;
    onuma_pool *none;
    void *blocks[2], *block;
    simulated.simulate = true;
    OK(onuma_pool_create(api_host(rt), &simulated, &none));
    OK(onuma_alloc(none, 64 * MIB, 0, NULL, &block));
    OK(onuma_free(block, NULL));
    assert_int_equal(onuma__pools_cached(host), 0);
    fill(pool, 2, blocks);
    assert_int_equal(onuma__pools_cached(host), 0);
    empty(1, blocks);
    assert_int_equal(onuma__pools_cached(host), 32 * MIB);
    empty(1, blocks + 1);
    assert_int_equal(onuma__pools_cached(host), 64 * MIB);
    onuma_device_info info = ONUMA_DEVICE_INFO_INIT;
    OK(onuma_device_get_info(api_host(rt), &info));
    assert_true(info.memory_free >= 64 * MIB && info.memory_free <= info.memory_total);
    onuma_runtime_destroy(rt);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_gives_way_to_another), cmocka_unit_test(runtimes_have_limits_of_their_own),
        cmocka_unit_test(it_is_never_passed),          cmocka_unit_test(beyond_a_soft_limit_nothing_is_kept),
        cmocka_unit_test(decay_does_not_wait_there),   cmocka_unit_test(what_pools_have_free_counts_as_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
