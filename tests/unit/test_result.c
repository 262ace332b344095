/* SPDX-License-Identifier: Apache-2.0 */
/* Results, the detail of a failure, the version, and checked arithmetic. */
#include "support.h"

#include "base/checked.h"
#include "base/result.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static void results_have_names_and_texts(void **state) {
    (void)state;
    assert_string_equal(onuma_result_name(ONUMA_OK), "ONUMA_OK");
    assert_string_equal(onuma_result_name(ONUMA_ERROR_LIMIT), "ONUMA_ERROR_LIMIT");
    assert_string_equal(onuma_result_name(ONUMA_ERROR_INTERNAL), "ONUMA_ERROR_INTERNAL");
    assert_string_equal(onuma_result_text(ONUMA_ERROR_BUSY), "something is still in use");
    for (onuma_result r = 0; r <= ONUMA_ERROR_INTERNAL; r++) {
        assert_string_not_equal(onuma_result_name(r), "ONUMA_ERROR_UNKNOWN");
        for (onuma_result other = 0; other < r; other++)
            assert_string_not_equal(onuma_result_text(r), onuma_result_text(other));
    }
}

static void other_numbers_are_unknown(void **state) {
    (void)state;
    const onuma_result numbers[] = {-1, ONUMA_ERROR_INTERNAL + 1, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        assert_string_equal(onuma_result_name(numbers[i]), "ONUMA_ERROR_UNKNOWN");
        assert_true(strlen(onuma_result_text(numbers[i])) > 0);
    }
}

static void version_is_the_headers(void **state) {
    (void)state;
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", ONUMA_VERSION_MAJOR, ONUMA_VERSION_MINOR, ONUMA_VERSION_PATCH);
    assert_string_equal(onuma_version(), text);
}

static void *fail_elsewhere(void *argument) {
    (void)argument;
    const char *fresh = onuma_last_error();
    if (strcmp(fresh, "") != 0) return "a new thread has a detail before anything failed";
    onuma__fail(ONUMA_ERROR_IO, "the other thread's");
    return strcmp(onuma_last_error(), "the other thread's") == 0 ? NULL : "the detail was not kept";
}

static void detail_is_the_threads_and_stays(void **state) {
    (void)state;
    assert_int_equal(onuma__fail(ONUMA_ERROR_LIMIT, "%d bytes; raise %s", 7, "it"), ONUMA_ERROR_LIMIT);
    const char *text = onuma_last_error();
    assert_string_equal(text, "7 bytes; raise it");
    onuma_result_text(ONUMA_OK);

    pthread_t thread;
    void *complaint = NULL;
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, NULL), 0);
    assert_int_equal(pthread_join(thread, &complaint), 0);
    if (complaint) fail_msg("%s", (const char *)complaint);

    assert_ptr_equal(onuma_last_error(), text);
    assert_string_equal(text, "7 bytes; raise it");
    onuma__fail(ONUMA_ERROR_BUSY, "next");
    assert_string_equal(onuma_last_error(), "next");
}

static void detail_may_quote_the_detail(void **state) {
    (void)state;
    onuma__fail(ONUMA_ERROR_IO, "inner");
    onuma__fail(ONUMA_ERROR_IO, "outer (%s), again (%s)", onuma_last_error(), onuma_last_error());
    assert_string_equal(onuma_last_error(), "outer (inner), again (inner)");
}

static void long_detail_is_cut_and_says_so(void **state) {
    (void)state;
    char text[2 * ONUMA__DETAIL_BYTES];
    memset(text, 'x', sizeof text);
    text[ONUMA__DETAIL_BYTES - 1] = '\0';
    onuma__fail(ONUMA_ERROR_IO, "%s", text);
    assert_string_equal(onuma_last_error(), text);

    text[ONUMA__DETAIL_BYTES - 1] = 'x';
    text[ONUMA__DETAIL_BYTES] = '\0';
    onuma__fail(ONUMA_ERROR_IO, "%s", text);
    assert_int_equal(strlen(onuma_last_error()), ONUMA__DETAIL_BYTES - 1);
    assert_string_equal(onuma_last_error() + ONUMA__DETAIL_BYTES - 5, "x...");
}

static void sums_and_products_do_not_wrap(void **state) {
    (void)state;
    size_t value = 5;
    assert_true(onuma__add(SIZE_MAX - 1, 1, &value));
    assert_true(value == SIZE_MAX);
    value = 5;
    assert_false(onuma__add(SIZE_MAX, 1, &value));
    assert_int_equal(value, 5);
    assert_true(onuma__multiply(SIZE_MAX / 2, 2, &value));
    assert_true(value == SIZE_MAX - 1);
    assert_true(onuma__multiply(SIZE_MAX, 0, &value));
    assert_int_equal(value, 0);
    value = 5;
    assert_false(onuma__multiply(SIZE_MAX / 2 + 1, 2, &value));
    assert_int_equal(value, 5);
}

static void alignment_rounds(void **state) {
    (void)state;
    size_t value = 5;
    assert_true(onuma__align_up(0, 64, &value));
    assert_int_equal(value, 0);
    assert_true(onuma__align_up(1, 64, &value));
    assert_int_equal(value, 64);
    assert_true(onuma__align_up(64, 64, &value));
    assert_int_equal(value, 64);
    assert_false(onuma__align_up(SIZE_MAX - 62, 64, &value));
    assert_int_equal(value, 64);
    assert_int_equal(onuma__align_down(127, 64), 64);
    assert_true(onuma__is_power_of_two(1));
    assert_true(onuma__is_power_of_two(SIZE_MAX / 2 + 1));
    assert_false(onuma__is_power_of_two(0));
    assert_false(onuma__is_power_of_two(96));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_have_names_and_texts),  cmocka_unit_test(other_numbers_are_unknown),
        cmocka_unit_test(version_is_the_headers),        cmocka_unit_test(detail_is_the_threads_and_stays),
        cmocka_unit_test(detail_may_quote_the_detail),   cmocka_unit_test(long_detail_is_cut_and_says_so),
        cmocka_unit_test(sums_and_products_do_not_wrap), cmocka_unit_test(alignment_rounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
