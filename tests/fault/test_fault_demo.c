/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_fault_demo DEVICE [--full]
 *
 * The demo, with less work, while one call of the driver or of the system fails. It says what went wrong, or went on
 * without: it shows no wrong value, and all that it took goes back. Calls that fail lie further apart the further on.
 */
#include "demo/demo.h"
#include "fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *device;
static bool full;
static uint64_t runs, failures;
static fault_plan current;

/* What the demo says of values that are not what they must be. */
static const char *const wrong_values[] = {"is wrong",     "lost what was",        "did not reach",
                                           "does not see", "vector_add of",        "statistics say",
                                           "still read",   "tells something else", "overlap"};

static void check_text(const char *what, const char *text) {
    if (text[0] == '\0') fail_msg("%s fails without a word", what);
    for (size_t i = 0; i < sizeof wrong_values / sizeof *wrong_values; i++)
        if (strstr(text, wrong_values[i]) != NULL) fail_msg("%s: %s", what, text);
}

/* Of a demo that does not hold: the first thing that says why. */
static const char *why(const demo *d) {
    for (size_t i = 0; i < d->check_count; i++)
        if (!d->checks[i].ok) return d->checks[i].detail;
    return d->table_error[0] != '\0' ? d->table_error : "a row of the tables";
}

static void check_results(const demo *d) {
    for (size_t i = 0; i < d->check_count; i++)
        if (!d->checks[i].ok) check_text(d->checks[i].name, d->checks[i].detail);
    if (d->table_error[0] != '\0') check_text("the tables", d->table_error);
    const bool ended_early = d->table_error[0] != '\0';
    for (size_t i = 0; i < d->workload_count; i++) {
        const demo_workload *row = &d->workloads[i];
        const bool last = i + 1 == d->workload_count;
        if (row->max_error > row->allowed_error) fail_msg("%s is wrong by %g", row->name, row->max_error);
        if (!row->ok && !(ended_early && last)) fail_msg("%s does not hold, and nobody says why", row->name);
    }
    for (size_t i = 0; i < d->transfer_count; i++)
        if (!d->transfers[i].ok && !(ended_early && i + 1 == d->transfer_count))
            fail_msg("a transfer of %zu bytes does not hold, and nobody says why", d->transfers[i].bytes);
}

static void check_books(const fault_books *before) {
    const fault_books after = fault_books_now();
    const char *violation = fault_violation();
    if (violation != NULL) fail_msg("%s", violation);
    /* What a lost device had may stay in quarantine. */
    if (fault_fired_last() != 0 && (current.result == ONUMA_ERROR_DEVICE_LOST || current.times == UINT64_MAX)) return;
#define X(name)                                                                                                        \
    if (strcmp(#name, "blocks") != 0 && after.name != before->name)                                                    \
        fail_msg("%lld more %s than before", (long long)(after.name - before->name), #name);
    FAULT_BOOKS(X)
#undef X
}

/* Whether the fault was met. */
static bool run(const fault_plan *plan) {
    const fault_books before = fault_books_now();
    demo *d = calloc(1, sizeof *d);
    assert_non_null(d);
    d->device_id = device;
    d->fault = demo_fault_find(NULL);
    d->load = &demo_load_test;
    runs++;
    if (plan != NULL) current = *plan;
    fault_arm(plan);
    const onuma_result r = demo_run(d);
    const bool met = fault_fired() != 0;
    fault_arm(NULL);
    if (r != ONUMA_OK) {
        if (!met || onuma_last_error()[0] == '\0')
            fail_msg("the demo gives %s: %s", onuma_result_name(r), onuma_last_error());
    } else {
        check_results(d);
        if (!met && !demo_all_held(d)) fail_msg("the demo does not hold, though nothing failed: %s", why(d));
    }
    if (getenv("ONUMA_FAULT_VERBOSE") != NULL)
        for (size_t i = 0; i < d->check_count; i++)
            fprintf(stderr, "%s:%llu %s: %s\n", fault_site_name(current.site), (unsigned long long)current.nth,
                    d->checks[i].name, d->checks[i].detail);
    failures += r != ONUMA_OK || !demo_all_held(d);
    check_books(&before);
    fault_driver_forget();
    free(d);
    return met;
}

static int tell(void **state) {
    (void)state;
    if (fault_fired() + fault_fired_last() != 0)
        fprintf(stderr, "last: call %llu of %s, %llu times, %s\n", (unsigned long long)current.nth,
                fault_site_name(current.site), (unsigned long long)current.times, onuma_result_name(current.result));
    fault_arm(NULL);
    return 0;
}

static const char *only_site;

static void sweep(fault_plan plan) {
    if (only_site != NULL && strcmp(only_site, fault_site_name(plan.site)) != 0) return;
    const uint64_t dense = full ? 64 : 2;
    for (plan.nth = 1; run(&plan); plan.nth += plan.nth < dense ? 1 : full ? plan.nth / 8 + 1 : 3 * plan.nth)
        continue;
}

static void nothing_fails(void **state) {
    (void)state;
    run(NULL);
}

static void driver_fails(void **state) {
    (void)state;
    static const onuma_result results[] = {ONUMA_ERROR_OUT_OF_MEMORY, ONUMA_ERROR_INTERNAL, ONUMA_ERROR_DEVICE_LOST};
    for (fault_site site = 0; site < FAULT_driver; site++)
        for (size_t i = 0; i < (full ? 3 : 1); i++)
            sweep((fault_plan){.site = site, .times = 1, .result = results[full ? i : site % 3]});
}

static void device_is_lost_for_good(void **state) {
    (void)state;
    sweep((fault_plan){.site = FAULT_driver, .times = UINT64_MAX, .result = ONUMA_ERROR_DEVICE_LOST});
}

static void system_fails(void **state) {
    (void)state;
    for (fault_site site = FAULT_driver + 1; site < FAULT_SITES; site++)
        sweep((fault_plan){.site = site, .times = 1, .result = ONUMA_ERROR_OUT_OF_MEMORY});
}

int main(int argc, char **argv) {
    device = argc > 1 ? argv[1] : "host";
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--full") == 0) full = true;
        if (strncmp(argv[i], "--site=", 7) == 0) only_site = argv[i] + 7;
        if (strncmp(argv[i], "--only=", 7) == 0) cmocka_set_test_filter(argv[i] + 7);
    }
    fault_start();
    fault_shorten_sleep(200000); /* real drivers need their time, but not all that the library would give them */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(nothing_fails, tell),
        cmocka_unit_test_teardown(driver_fails, tell),
        cmocka_unit_test_teardown(device_is_lost_for_good, tell),
        cmocka_unit_test_teardown(system_fails, tell),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    printf("%llu runs, of which %llu told of a failure\n", (unsigned long long)runs, (unsigned long long)failures);
    return failed;
}
