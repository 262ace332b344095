/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_fault_script host|opencl|level_zero [--full|--sampled] [--only=PATTERN] [--plan=SITE:NTH:TIMES:MANNER:WHICH:RESULT]
 *
 * The script once for each call that can fail and each way to fail, until a run meets no fault. Without --full each
 * call fails with one result, another one for each n, and what fails for good does so at some n alone. With --sampled,
 * where each run takes long, so does everything.
 */
#include "script.h"

#if defined(ONUMA_FAULT_LEVEL_ZERO)
#include "between.h"
#endif

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const native_calls *native = &native_host;
static bool full, sampled;
static uint64_t runs;
static fault_plan current;
static bool running; /* `current` is in force */

static void run(const fault_plan *plan) {
    static script s;
    runs++;
    if (plan != NULL) current = *plan;
    running = plan != NULL;
    script_run(&s, native, plan);
    running = false;
}

/* Which fault it was, when a test fails or the program dies. */
static void tell_plan(void) {
    if (!running) return;
    fprintf(stderr, "again: --plan=%s:%llu:%llu:%d:%u:%d\n", fault_site_name(current.site),
            (unsigned long long)current.nth, (unsigned long long)current.times, (int)current.manner, current.which,
            (int)current.result);
    running = false;
}

static int tell_and_forget(void **state) {
    (void)state;
    tell_plan();
    fault_arm(NULL);
    return 0;
}

/* Further apart the further on, where a run for each would take too long. */
static uint64_t next(uint64_t n, uint64_t dense) {
    if (sampled && n > 4) return n + 1 + n / 2;
    return full || n < dense ? n + 1 : n + 1 + n / 8;
}

/* Every n, until nothing fires any more. */
static void sweep(fault_plan plan, uint64_t dense) {
    static const onuma_result results[] = {ONUMA_ERROR_OUT_OF_MEMORY, ONUMA_ERROR_INTERNAL, ONUMA_ERROR_NOT_SUPPORTED,
                                           ONUMA_ERROR_DEVICE_LOST};
    const size_t ways = plan.result != ONUMA_OK ? 1 : sizeof results / sizeof *results;
    const onuma_result only = plan.result;
    for (uint64_t n = 1;; n = next(n, dense)) {
        bool met = false;
        for (size_t i = 0; i < (full ? ways : 1); i++) {
            plan.nth = n;
            plan.result = only != ONUMA_OK ? only : results[(n + i) % ways];
            run(&plan);
            met |= fault_fired_last() != 0;
        }
        if (!met) return;
    }
}

static void without_a_fault(void **state) {
    (void)state;
    for (int i = 0; i < 20; i++)
        run(NULL);
}

/* Each call of the driver fails once. */
static void driver_fails(void **state) {
    (void)state;
    for (fault_site site = 0; site < FAULT_driver; site++)
        sweep((fault_plan){.site = site, .times = 1}, UINT64_MAX);
}

/* ... and some times in a row, and then works. (A marker whose polls fail thrice counts as lost.) */
static void driver_fails_for_a_while(void **state) {
    (void)state;
    for (fault_site site = 0; site < FAULT_driver; site++)
        sweep((fault_plan){.site = site, .times = site == FAULT_marker_poll ? 2 : 3, .result = ONUMA_ERROR_INTERNAL},
              8);
}

static void device_is_lost_for_good(void **state) {
    (void)state;
    sweep((fault_plan){.site = FAULT_driver, .times = UINT64_MAX, .result = ONUMA_ERROR_DEVICE_LOST}, 16);
}

static void driver_fails_for_good(void **state) {
    (void)state;
    sweep((fault_plan){.site = FAULT_driver, .times = UINT64_MAX, .result = ONUMA_ERROR_INTERNAL}, 16);
}

static void driver_gives_bad_segments(void **state) {
    (void)state;
    static const fault_site sites[] = {FAULT_segment_create, FAULT_segment_reserve, FAULT_import_host};
    static const fault_manner manners[] = {FAULT_SHORT, FAULT_UNALIGNED, FAULT_NOWHERE,
                                           FAULT_WRAPS, FAULT_OVERLAPS,  FAULT_SURPLUS};
    for (size_t s = 0; s < sizeof sites / sizeof *sites; s++)
        for (size_t m = 0; m < sizeof manners / sizeof *manners; m++)
            sweep((fault_plan){.site = sites[s], .times = 1, .manner = manners[m], .result = ONUMA_ERROR_INTERNAL},
                  UINT64_MAX);
}

static void driver_lies_about_devices(void **state) {
    (void)state;
    static const fault_site sites[] = {FAULT_device_query, FAULT_device_info};
    fault_plan plan = {.nth = 1, .manner = FAULT_ABSURD, .result = ONUMA_ERROR_INTERNAL};
    for (size_t s = 0; s < sizeof sites / sizeof *sites; s++)
        for (plan.which = 0; plan.which < FAULT_ABSURDITIES; plan.which++) {
            plan.site = sites[s];
            /* What can be believed leaves a device that can do little: those calls fail without another fault. */
            plan.times = plan.which < FAULT_BELIEVED ? UINT64_MAX : 1;
            run(&plan);
        }
    plan.site = FAULT_describe;
    plan.times = 1;
    for (plan.nth = 1; plan.nth <= 3; plan.nth++) /* of each backend */
        run(&plan);
    plan.nth = 1;
    plan.site = FAULT_device_count;
    plan.manner = FAULT_MORE;
    for (plan.which = 0; plan.which < 20; plan.which++)
        run(&plan);
}

static void markers_are_late(void **state) {
    (void)state;
    const fault_plan plan = {
        .site = FAULT_marker_poll, .times = 5, .manner = FAULT_NOT_YET, .result = ONUMA_ERROR_INTERNAL};
    sweep(plan, UINT64_MAX);
}

static void system_fails(void **state) {
    (void)state;
    for (fault_site site = FAULT_driver + 1; site < FAULT_SITES; site++)
        if (site != FAULT_memory)
            sweep((fault_plan){.site = site, .times = 1, .result = ONUMA_ERROR_OUT_OF_MEMORY}, 100);
}

/* Waits end, what has passed is taken back, and nothing is taken back early. */
static void clock_jumps(void **state) {
    (void)state;
    static const fault_manner manners[] = {FAULT_FORWARD, FAULT_BACKWARD};
    for (size_t i = 0; i < sizeof manners / sizeof *manners; i++)
        sweep((fault_plan){.site = FAULT_os_clock, .times = 1, .manner = manners[i], .result = ONUMA_ERROR_TIMEOUT},
              100);
}

static void memory_is_out_once(void **state) {
    (void)state;
    sweep((fault_plan){.site = FAULT_memory, .times = 1, .result = ONUMA_ERROR_OUT_OF_MEMORY}, UINT64_MAX);
}

static void memory_is_out_for_good(void **state) {
    (void)state;
    sweep((fault_plan){.site = FAULT_memory, .times = UINT64_MAX, .result = ONUMA_ERROR_OUT_OF_MEMORY}, 16);
}

static fault_plan chosen;

static bool choose(const char *text) {
    char name[32];
    unsigned long long nth, times;
    int manner, result;
    if (sscanf(text, "%31[^:]:%llu:%llu:%d:%u:%d", name, &nth, &times, &manner, &chosen.which, &result) != 6)
        return false;
    chosen.nth = nth;
    chosen.times = times;
    chosen.manner = (fault_manner)manner;
    chosen.result = result;
    for (chosen.site = 0; chosen.site < FAULT_SITES; chosen.site++)
        if (strcmp(fault_site_name(chosen.site), name) == 0) return true;
    return false;
}

static void the_chosen_one(void **state) {
    (void)state;
    run(NULL);
    run(&chosen);
    run(NULL);
}

int main(int argc, char **argv) {
    bool one = false;
#if defined(ONUMA_FAULT_OPENCL)
    if (argc > 1 && strcmp(argv[1], "opencl") == 0) native = &native_opencl;
#endif
#if defined(ONUMA_FAULT_LEVEL_ZERO)
    if (argc > 1 && strcmp(argv[1], "level_zero") == 0) {
        native = &native_level_zero;
        between_stand_in(true, BETWEEN_SYSMAN_NONE, 0); /* queues that tell their context */
    }
#endif
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--plan=", 7) == 0 && !(one = choose(argv[i] + 7))) return 2;
        if (strcmp(argv[i], "--full") == 0) full = true;
        if (strcmp(argv[i], "--sampled") == 0) sampled = true;
        if (strncmp(argv[i], "--only=", 7) == 0) cmocka_set_test_filter(argv[i] + 7);
    }
    fault_start();
    fault_shorten_sleep(native->api == ONUMA_API_HOST ? 0 : 200000); /* real drivers need their time */
    atexit(tell_plan);
#define TEST(name) cmocka_unit_test_teardown(name, tell_and_forget)
    const struct CMUnitTest tests[] = {
        TEST(without_a_fault),
        TEST(driver_fails),
        TEST(driver_fails_for_a_while),
        TEST(device_is_lost_for_good),
        TEST(driver_fails_for_good),
        TEST(driver_gives_bad_segments),
        TEST(driver_lies_about_devices),
        TEST(markers_are_late),
        TEST(system_fails),
        TEST(clock_jumps),
        TEST(memory_is_out_once),
        TEST(memory_is_out_for_good),
    };
    const struct CMUnitTest single[] = {TEST(the_chosen_one)};
    const int failed = one ? cmocka_run_group_tests(single, NULL, NULL) : cmocka_run_group_tests(tests, NULL, NULL);
    printf("%llu runs\n", (unsigned long long)runs);
    return failed;
}
