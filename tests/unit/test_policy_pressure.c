/* SPDX-License-Identifier: Apache-2.0 */
/* What pools do under pressure, told by the tests; and sleeping until woken. */
#include "api/api.h"

#include <pthread.h>

#include "os/private.h"
#include "policy/private.h"

#define MIB ((size_t)1 << 20)
#define SECOND UINT64_C(1000000000)

typedef struct fixture {
    onuma_runtime *rt;
    onuma_pool *pool;
    void *live, *more;
    unsigned asked;
} fixture;

static uint64_t now = SECOND; /* grows from test to test, since what answers is the process's */

static void handle(void *user, onuma_runtime *rt) {
    fixture *f = user;
    assert_ptr_equal(rt, f->rt);
    f->asked++;
}

/* A pool with 32 MiB in use, 96 MiB that are idle, and some MiB in this thread's cache. */
static void open_fixture(fixture *f, const char *settings) {
    void *blocks[3], *small[64];
    onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
    desc.source = ONUMA_SOURCE_SEGMENTS;
    *f = (fixture){.rt = api_runtime(settings, NULL)};
    OK(onuma_runtime_set_pressure_handler(f->rt, handle, f));
    OK(onuma_pool_create(api_host(f->rt), &desc, &f->pool));
    OK(onuma_alloc(f->pool, 32 * MIB, 0, NULL, &f->live));
    for (size_t i = 0; i < 3; i++)
        OK(onuma_alloc(f->pool, 32 * MIB, 0, NULL, &blocks[i]));
    for (size_t i = 0; i < 64; i++)
        OK(onuma_alloc(f->pool, 100000, 0, NULL, &small[i]));
    for (size_t i = 0; i < 64; i++)
        OK(onuma_free(small[i], NULL));
    for (size_t i = 0; i < 3; i++)
        OK(onuma_free(blocks[i], NULL));
    now += 60 * SECOND;
}

static void close_fixture(fixture *f) {
    OK(onuma_free(f->live, NULL));
    OK(onuma_pool_destroy(f->pool));
    onuma_runtime_destroy(f->rt);
}

static size_t reserved(const fixture *f) {
    return (size_t)api_stats(f->pool).reserved_bytes;
}

static void press(onuma__os_pressure how) {
    now += SECOND;
    onuma__pressure_answer(how, now);
}

static void each_sign_does_more(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f, "pressure:on,decay.half_life:0");
    assert_true(reserved(&f) >= 134 * MIB);
    press(ONUMA__OS_QUIET);
    assert_true(reserved(&f) >= 134 * MIB);
    press(ONUMA__OS_PRESSED);
    assert_true(reserved(&f) < 64 * MIB && reserved(&f) > 34 * MIB); /* caches stay */
    press(ONUMA__OS_PRESSED);
    assert_int_equal(reserved(&f), 32 * MIB);
    assert_int_equal(f.asked, 0);
    press(ONUMA__OS_PRESSED);
    press(ONUMA__OS_PRESSED);
    assert_int_equal(f.asked, 2);
    now += 60 * SECOND;
    press(ONUMA__OS_PRESSED); /* anew */
    assert_int_equal(f.asked, 2);
    close_fixture(&f);
}

static void starving_does_all_at_once(void **state) {
    (void)state;
    fixture f;
    onuma_pool *second;
    open_fixture(&f, "pressure:on");
    OK(onuma_pool_create(api_host(f.rt), NULL, &second));
    press(ONUMA__OS_STARVED);
    assert_int_equal(reserved(&f), 32 * MIB);
    assert_int_equal(f.asked, 1); /* once for a runtime */
    OK(onuma_runtime_set_pressure_handler(f.rt, NULL, NULL));
    press(ONUMA__OS_STARVED);
    assert_int_equal(f.asked, 1);
    FAILS(INVALID_ARGUMENT, "onuma_runtime_set_pressure_handler", onuma_runtime_set_pressure_handler(NULL, NULL, NULL));
    OK(onuma_pool_destroy(second));
    close_fixture(&f);
}

static void who_does_not_listen_keeps_all(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f, "pressure:off");
    const size_t before = reserved(&f);
    press(ONUMA__OS_STARVED);
    assert_int_equal(reserved(&f), before);
    assert_int_equal(f.asked, 0);
    close_fixture(&f);
}

static void end_pool(void *user, onuma_runtime *rt) {
    fixture *f = user;
    (void)rt;
    OK(onuma_free(f->live, NULL));
    OK(onuma_pool_destroy(f->pool));
    f->asked++;
}

static void a_handler_may_destroy_pools(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f, "pressure:on");
    OK(onuma_runtime_set_pressure_handler(f.rt, end_pool, &f));
    press(ONUMA__OS_STARVED);
    assert_int_equal(f.asked, 1);
    press(ONUMA__OS_STARVED);
    assert_int_equal(f.asked, 1);
    onuma_runtime_destroy(f.rt);
}

/* ------------------------------------------------------------------ sleeping */

static void *sleep_long(void *argument) {
    (void)onuma__os_watch_sleep(argument, UINT64_MAX);
    return NULL;
}

static void whoever_sleeps_is_woken(void **state) {
    (void)state;
    onuma__os_watch *watch;
    const char *why;
    pthread_t thread;
    assert_int_equal(onuma__os_watch_create(false, &watch, &why), ONUMA_OK);
    assert_null(why);
    onuma__os_watch_wake(watch); /* the next sleep */
    (void)onuma__os_watch_sleep(watch, UINT64_MAX);
    assert_int_equal(pthread_create(&thread, NULL, sleep_long, watch), 0);
    onuma__os_watch_wake(watch);
    pthread_join(thread, NULL);
    assert_int_equal(onuma__os_watch_sleep(watch, 1000000), ONUMA__OS_QUIET);
    onuma__os_watch_destroy(watch);
    onuma__os_watch_destroy(NULL);
}

#if defined(__linux__)
static void limits_that_were_reached_are_counted(void **state) {
    (void)state;
    assert_int_equal(onuma__os_count_events("\nlow 5\nhigh 7\nmax 3\noom 2\noom_kill 1\noom_group_kill 9\n"), 6);
    assert_int_equal(onuma__os_count_events("\nlow 5\nmax x\n"), 0);
    assert_int_equal(onuma__os_count_events(""), 0);
    onuma__os_watch *watch;
    const char *why;
    assert_int_equal(onuma__os_watch_create_under("/nowhere", true, &watch, &why), ONUMA_OK);
    assert_non_null(strstr(why, "PSI"));
    onuma__os_watch_destroy(watch);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_sign_does_more),
        cmocka_unit_test(starving_does_all_at_once),
        cmocka_unit_test(who_does_not_listen_keeps_all),
        cmocka_unit_test(a_handler_may_destroy_pools),
        cmocka_unit_test(whoever_sleeps_is_woken),
#if defined(__linux__)
        cmocka_unit_test(limits_that_were_reached_are_counted),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
