/* SPDX-License-Identifier: Apache-2.0 */
/* The table of handles: what is live is found, all else is refused, under threads too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "api/handle.h"

static int objects[4];

/* Let go of a reference, and of the handle with the last one. */
static void *drop(onuma__handle_type type, void *handle) {
    bool last;
    void *object = onuma__handle_drop(type, handle, &last);
    if (last) onuma__handle_remove(handle);
    return object;
}

static void finds_only_what_lives(void **state) {
    (void)state;
    void *pool = onuma__handle_put(ONUMA__HANDLE_POOL, &objects[0], &objects[3]);
    assert_non_null(pool);
    assert_ptr_equal(onuma__handle_get(ONUMA__HANDLE_POOL, pool), &objects[0]);
    assert_ptr_equal(onuma__handle_owner(pool), &objects[3]);
    assert_null(onuma__handle_get(ONUMA__HANDLE_QUEUE, pool));
    assert_null(onuma__handle_get(ONUMA__HANDLE_POOL, NULL));
    assert_null(onuma__handle_get(ONUMA__HANDLE_POOL, objects));
    assert_null(onuma__handle_get(ONUMA__HANDLE_POOL, (void *)UINTPTR_MAX));
    for (unsigned bit = 0; bit < 64; bit++)
        assert_null(onuma__handle_get(ONUMA__HANDLE_POOL, (void *)((uintptr_t)pool ^ (uintptr_t)1 << bit)));
    assert_ptr_equal(drop(ONUMA__HANDLE_POOL, pool), &objects[0]);
    assert_null(onuma__handle_get(ONUMA__HANDLE_POOL, pool));
    assert_null(onuma__handle_owner(pool));
    assert_null(drop(ONUMA__HANDLE_POOL, pool));
    assert_false(onuma__handle_retain(pool));
}

static void never_repeats(void **state) {
    (void)state;
    void *first = onuma__handle_put(ONUMA__HANDLE_POOL, &objects[0], NULL);
    drop(ONUMA__HANDLE_POOL, first);
    for (int i = 0; i < 10000; i++) {
        void *next = onuma__handle_put(ONUMA__HANDLE_POOL, &objects[1], NULL);
        assert_ptr_not_equal(next, first);
        assert_null(onuma__handle_get(ONUMA__HANDLE_POOL, first));
        drop(ONUMA__HANDLE_POOL, next);
    }
}

static void counts_references(void **state) {
    (void)state;
    void *queue = onuma__handle_put(ONUMA__HANDLE_QUEUE, &objects[0], NULL);
    assert_true(onuma__handle_retain(queue));
    assert_ptr_equal(drop(ONUMA__HANDLE_QUEUE, queue), &objects[0]);
    assert_ptr_equal(onuma__handle_get(ONUMA__HANDLE_QUEUE, queue), &objects[0]);
    assert_ptr_equal(drop(ONUMA__HANDLE_QUEUE, queue), &objects[0]);
    assert_null(onuma__handle_get(ONUMA__HANDLE_QUEUE, queue));
}

static void the_last_one_destroys(void **state) {
    (void)state;
    bool last;
    void *pool = onuma__handle_put(ONUMA__HANDLE_POOL, &objects[0], NULL);
    assert_null(onuma__handle_drop(ONUMA__HANDLE_DEVICE, pool, &last));
    assert_ptr_equal(onuma__handle_drop(ONUMA__HANDLE_POOL, pool, &last), &objects[0]);
    assert_true(last);
    assert_null(onuma__handle_drop(ONUMA__HANDLE_POOL, pool, &last));
    assert_false(last);
    assert_false(onuma__handle_retain(pool));
    assert_ptr_equal(onuma__handle_get(ONUMA__HANDLE_POOL, pool), &objects[0]);
    onuma__handle_unclaim(pool);
    assert_true(onuma__handle_retain(pool));
    assert_ptr_equal(drop(ONUMA__HANDLE_POOL, pool), &objects[0]);
    assert_ptr_equal(drop(ONUMA__HANDLE_POOL, pool), &objects[0]);
    assert_null(onuma__handle_get(ONUMA__HANDLE_POOL, pool));
}

static void shares_one_handle(void **state) {
    (void)state;
    _Atomic(void *) field = NULL;
    void *first = onuma__handle_share(ONUMA__HANDLE_QUEUE, &objects[0], NULL, &field);
    assert_non_null(first);
    assert_ptr_equal(field, first);
    assert_ptr_equal(onuma__handle_share(ONUMA__HANDLE_QUEUE, &objects[0], NULL, &field), first);
    drop(ONUMA__HANDLE_QUEUE, first);
    drop(ONUMA__HANDLE_QUEUE, first);
    assert_null(onuma__handle_get(ONUMA__HANDLE_QUEUE, first));
    void *second = onuma__handle_share(ONUMA__HANDLE_QUEUE, &objects[0], NULL, &field);
    assert_ptr_not_equal(second, first);
    drop(ONUMA__HANDLE_QUEUE, second);
}

static void takes_what_one_owner_has(void **state) {
    (void)state;
    int mine, other;
    void *handles[2000];
    for (size_t i = 0; i < 2000; i++) { /* more than a chunk */
        handles[i] = onuma__handle_put(ONUMA__HANDLE_POOL, &objects[i % 2], i % 2 ? &mine : &other);
        assert_non_null(handles[i]);
    }
    size_t taken = 0, cursor = 0;
    for (void *object; (object = onuma__handle_take_next(ONUMA__HANDLE_POOL, &mine, &cursor)) != NULL; taken++)
        assert_ptr_equal(object, &objects[1]);
    assert_int_equal(taken, 1000);
    for (size_t i = 0; i < 2000; i++) {
        assert_int_equal(onuma__handle_get(ONUMA__HANDLE_POOL, handles[i]) != NULL, i % 2 == 0);
        drop(ONUMA__HANDLE_POOL, handles[i]);
    }
}

static void refusals_name_value_and_parameter(void **state) {
    (void)state;
    assert_int_equal(onuma__handle_refuse(ONUMA__HANDLE_POOL, (void *)(uintptr_t)0x1234, "onuma_alloc", "p"),
                     ONUMA_ERROR_INVALID_ARGUMENT);
    char expected[64]; /* addresses look different from system to system */
    snprintf(expected, sizeof expected, "onuma_alloc: p (%p) is not a live pool", (void *)(uintptr_t)0x1234);
    assert_non_null(strstr(onuma_last_error(), expected));
    (void)onuma__handle_refuse(ONUMA__HANDLE_QUEUE, NULL, "onuma_use", "q");
    assert_string_equal(onuma_last_error(), "onuma_use: q is NULL; a queue is wanted");
}

/* Threads make, look up and drop handles; the object tells whose it is, so a mix-up is seen. */
static void *churn(void *argument) {
    int *mine = argument;
    for (int i = 0; i < 20000; i++) {
        void *handle = onuma__handle_put(ONUMA__HANDLE_DEVICE, mine, mine);
        if (onuma__handle_get(ONUMA__HANDLE_DEVICE, handle) != mine) ++*mine;
        if (drop(ONUMA__HANDLE_DEVICE, handle) != mine) ++*mine;
        if (onuma__handle_get(ONUMA__HANDLE_DEVICE, handle) != NULL) ++*mine;
    }
    return NULL;
}

static void threads_do_not_mix(void **state) {
    (void)state;
    pthread_t threads[4];
    int wrong[4] = {0};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, &wrong[i]), 0);
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(wrong[i], 0);
    }
}

static void *shared_handle;
static _Atomic int winners;
static void *destroy(void *argument) {
    (void)argument;
    if (drop(ONUMA__HANDLE_POOL, shared_handle) != NULL) winners++;
    return NULL;
}

static void one_of_two_destroys(void **state) {
    (void)state;
    for (int round = 0; round < 200; round++) {
        pthread_t threads[2];
        winners = 0;
        shared_handle = onuma__handle_put(ONUMA__HANDLE_POOL, &objects[0], NULL);
        for (size_t i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, destroy, NULL), 0);
        for (size_t i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        assert_int_equal(winners, 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_only_what_lives),
        cmocka_unit_test(never_repeats),
        cmocka_unit_test(counts_references),
        cmocka_unit_test(the_last_one_destroys),
        cmocka_unit_test(shares_one_handle),
        cmocka_unit_test(takes_what_one_owner_has),
        cmocka_unit_test(refusals_name_value_and_parameter),
        cmocka_unit_test(threads_do_not_mix),
        cmocka_unit_test(one_of_two_destroys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
