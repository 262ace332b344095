/* SPDX-License-Identifier: Apache-2.0 */
/* Memory with several mappings, large pages, and waiting on a word: on every system. */
#define _GNU_SOURCE
#include "support.h"

#include "os/private.h"

#include <stdatomic.h>
#include <string.h>

#include "system.h"

static size_t granule;

static int setup(void **state) {
    (void)state;
    granule = onuma__os_abilities_get()->reserve_granule;
    return 0;
}

/* ---------------------------------------------------- several mappings */

static void mappings_are_the_same_pages(void **state) {
    (void)state;
    onuma__os_shared shared = {0};
    assert_int_equal(onuma__os_shared_create(4 * granule, &shared), ONUMA_OK);
    assert_int_equal(shared.size, 4 * granule);
    unsigned char *first = onuma__os_shared_map(&shared, 0, 4 * granule);
    unsigned char *second = onuma__os_shared_map(&shared, 0, 4 * granule);
    unsigned char *part = onuma__os_shared_map(&shared, 2 * granule, granule);
    assert_true(first && second && part && first != second);
    for (size_t i = 0; i < 4 * granule; i++)
        assert_int_equal(first[i], 0);
    for (size_t i = 0; i < 4 * granule; i += 97)
        first[i] = (unsigned char)(i % 251 + 1);
    for (size_t i = 0; i < 4 * granule; i += 97)
        assert_int_equal(second[i], i % 251 + 1);
    part[granule - 1] = 77;
    assert_int_equal(first[3 * granule - 1], 77);
    assert_int_equal(memcmp(part, second + 2 * granule, granule), 0);

    /* Neither closing nor unmapping another touches what is still mapped. */
    onuma__os_shared_close(&shared);
    assert_int_equal(shared.size, 0);
    onuma__os_shared_close(&shared);
    onuma__os_shared_unmap(first, 4 * granule);
    assert_false(onuma__os_can_read(first));
    second[3 * granule - 1] = 78;
    assert_int_equal(part[granule - 1], 78);
    onuma__os_shared_unmap(second, 4 * granule);
    onuma__os_shared_unmap(part, granule);
    assert_false(onuma__os_can_read(part));
}

/* A handle is given back: the system gives the lowest free one, so that it would not come back otherwise. */
static void many_leave_nothing_behind(void **state) {
    (void)state;
    intptr_t last = 0;
    for (int i = 0; i < 200; i++) {
        onuma__os_shared shared = {0};
        assert_int_equal(onuma__os_shared_create(granule, &shared), ONUMA_OK);
        char *p = onuma__os_shared_map(&shared, 0, granule);
        assert_non_null(p);
        *p = 1;
        onuma__os_shared_unmap(p, granule);
        if (i > 1) assert_int_equal(shared.handle, last);
        last = shared.handle;
        onuma__os_shared_close(&shared);
    }
}

static void what_is_no_window_is_refused(void **state) {
    (void)state;
    onuma__os_shared shared = {0};
    assert_int_equal(onuma__os_shared_create(0, &shared), ONUMA_ERROR_INTERNAL);
    assert_int_equal(onuma__os_shared_create(granule + 1, &shared), ONUMA_ERROR_INTERNAL);
    assert_int_equal(onuma__os_shared_create(((size_t)1 << 63) + granule, &shared), ONUMA_ERROR_OUT_OF_MEMORY);
    assert_true(strlen(onuma_last_error()) > 0);
    assert_int_equal(shared.size, 0);
    assert_null(onuma__os_shared_map(&shared, 0, granule));
    assert_int_equal(onuma__os_shared_create(2 * granule, &shared), ONUMA_OK);
    const struct {
        size_t offset, size;
    } bad[] = {{0, 0},
               {0, granule - 1},
               {1, granule},
               {0, 3 * granule},
               {granule, 2 * granule},
               {2 * granule, granule},
               {SIZE_MAX - granule + 1, granule},
               {granule, SIZE_MAX - granule + 1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_null(onuma__os_shared_map(&shared, bad[i].offset, bad[i].size));
        assert_non_null(strstr(onuma_last_error(), "whole granules"));
    }
    onuma__os_shared_close(&shared);
}

/* ---------------------------------------------------------- large pages */

static void large_pages_come_or_a_reason_does(void **state) {
    (void)state;
    const char *why = NULL;
    const size_t large = onuma__os_large_page_size(&why);
    assert_non_null(why);
    print_message("large pages of %zu bytes%s%s\n", large, large ? "" : ": ", why);
    if (large == 0) {
        assert_true(strlen(why) > 0);
        assert_null(onuma__os_map_large((size_t)2 << 20));
        assert_non_null(strstr(onuma_last_error(), why));
        return;
    }
    assert_true(large > onuma__os_abilities_get()->page_size);
    assert_null(onuma__os_map_large(large / 2));
    assert_non_null(strstr(onuma_last_error(), "whole"));
    assert_null(onuma__os_map_large(0));
    unsigned char *p = onuma__os_map_large(2 * large);
    if (p == NULL) { /* none left, which a machine that has run for long may say */
        assert_true(strlen(onuma_last_error()) > 0);
        return;
    }
    assert_int_equal((uintptr_t)p % large, 0);
    for (size_t i = 0; i < 2 * large; i += 4096)
        assert_int_equal(p[i]++, 0);
    onuma__os_release(p, 2 * large);
    assert_false(onuma__os_can_read(p));
}

/* ------------------------------------------------------ waiting on a word */

enum { WAITERS = 4, ROUNDS = 50 };

static _Atomic uint32_t word;
static _Atomic uint32_t awake;

static void wait_for_changes(void *argument) {
    (void)argument;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        while (atomic_load(&word) == round)
            onuma__os_word_wait(&word, round);
        atomic_fetch_add(&awake, 1);
    }
}

/* Nobody sleeps through a change: each round ends only when all have seen it. Without waking, this never ends. */
static void all_waiters_wake(void **state) {
    (void)state;
    onuma__os_worker *workers[WAITERS];
    for (size_t i = 0; i < WAITERS; i++)
        assert_int_equal(onuma__os_worker_start(wait_for_changes, NULL, &workers[i]), ONUMA_OK);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        if (round % 10 == 0) onuma__os_sleep(5000000); /* asleep for certain, now and then */
        atomic_store(&word, round + 1);
        if (round % 2 == 0) {
            onuma__os_word_wake_all(&word);
        } else {
            for (size_t i = 0; i < WAITERS; i++)
                onuma__os_word_wake(&word);
        }
        while (atomic_load(&awake) != (round + 1) * WAITERS)
            onuma__os_yield();
    }
    for (size_t i = 0; i < WAITERS; i++)
        onuma__os_worker_join(workers[i]);
}

static void a_changed_word_is_not_waited_for(void **state) {
    (void)state;
    atomic_store(&word, 7);
    onuma__os_word_wait(&word, 8);
    onuma__os_word_wake(&word); /* nobody is there */
    onuma__os_word_wake_all(&word);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mappings_are_the_same_pages),
        cmocka_unit_test(many_leave_nothing_behind),
        cmocka_unit_test(what_is_no_window_is_refused),
        cmocka_unit_test(large_pages_come_or_a_reason_does),
        cmocka_unit_test(all_waiters_wake),
        cmocka_unit_test(a_changed_word_is_not_waited_for),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
