/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The demo on each stack and way to share: everything holds, and each
 * deliberate fault turns red what it must.
 *
 * Why a fault is seen even where the device is the CPU and memory coherent:
 *   view     a view inside a block is bound as the block's start: the wrong bytes change
 *   copy     kernels get a copy, as drivers silently make: nothing arrives
 *   acquire  the CPU reads while a gate holds the kernel back, so no timing can hide it
 *   release  the library itself refuses the kernel, because the CPU still has the block
 *   kernel   another result
 */
#include "demo/demo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *device_id(void) {
    const char *stack = getenv("ONUMA_TEST_STACK");
    return stack && strcmp(stack, "none") ? "opencl:0" : "host";
}

static demo *run(const char *fault, bool checks_only) {
    demo *d = calloc(1, sizeof *d);
    assert_non_null(d);
    d->device_id = device_id();
    d->fault = demo_fault_find(fault);
    d->load = &demo_load_test;
    d->checks_only = checks_only;
    assert_non_null(d->fault);
    if (demo_run(d) != ONUMA_OK) fail_msg("%s", onuma_last_error());
    assert_int_equal(d->check_count, DEMO_CHECKS);
    return d;
}

static const demo_check *find_check(const demo *d, const char *name) {
    for (size_t i = 0; i < d->check_count; i++)
        if (!strcmp(d->checks[i].name, name)) return &d->checks[i];
    fail_msg("there is no check %s", name);
    return NULL;
}

static void assert_red(const demo *d, const char *name) {
    if (find_check(d, name)->ok) fail_msg("%s did not notice: %s", name, find_check(d, name)->detail);
}

static void assert_green(const demo *d, const char *name) {
    if (!find_check(d, name)->ok) fail_msg("%s: %s", name, find_check(d, name)->detail);
}

static void everything_holds(void **state) {
    (void)state;
    demo *d = run(NULL, false);
    for (size_t i = 0; i < d->check_count; i++)
        assert_green(d, d->checks[i].name);
    assert_string_equal(d->table_error, "");
    assert_int_equal(d->transfer_count, 4); /* 4 KiB to 256 KiB */
    assert_int_equal(d->workload_count, 5);
    for (size_t i = 0; i < d->workload_count; i++)
        if (!d->workloads[i].ok) fail_msg("%s: largest error %g", d->workloads[i].name, d->workloads[i].max_error);
    assert_int_equal(d->workloads[0].images, 1);
    assert_true(demo_all_held(d));
    /* The way that the test is for is the way that was used. */
    const char *way = getenv("ONUMA_TEST_WAY");
    if (way && strcmp(device_id(), "host")) assert_string_equal(d->info.shared_via, way);
    free(d);
}

static void a_broken_view_is_seen(void **state) {
    (void)state;
    demo *d = run("view", true);
    assert_green(d, "operate"); /* whose views are of whole blocks */
    assert_red(d, "alias");
    assert_red(d, "shared_access");
    assert_green(d, "release");
    assert_false(demo_all_held(d));
    free(d);
}

static void a_copy_is_seen(void **state) {
    (void)state;
    demo *d = run("copy", false);
    assert_red(d, "operate");
    assert_red(d, "alias");
    assert_red(d, "shared_access");
    assert_string_not_equal(d->table_error, "");
    assert_false(demo_all_held(d));
    free(d);
}

static void a_missing_acquire_is_seen(void **state) {
    (void)state;
    demo *d = run("acquire", true);
    /* A simulator has no gate, but runs nothing before somebody waits: the other checks see old values. */
    assert_red(d, d->info.simulator ? "alias" : "shared_access");
    assert_false(demo_all_held(d));
    free(d);
}

static void a_missing_release_is_seen(void **state) {
    (void)state;
    demo *d = run("release", true);
    assert_red(d, "operate");
    assert_red(d, "alias");
    assert_red(d, "shared_access");
    assert_false(demo_all_held(d));
    free(d);
}

static void a_missing_order_is_seen(void **state) {
    (void)state;
    demo *d = run("order", true);
    if (d->info.simulator) /* which has one queue */
        assert_green(d, "shared_access");
    else
        assert_red(d, "shared_access");
    free(d);
}

static void a_wrong_kernel_is_seen(void **state) {
    (void)state;
    demo *d = run("kernel", false);
    assert_red(d, "operate");
    assert_green(d, "alias");
    assert_true(d->workloads[0].ok);  /* cnn adds no vectors */
    assert_false(d->workloads[1].ok); /* transformer does */
    assert_false(demo_all_held(d));
    free(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_holds),
        cmocka_unit_test(a_broken_view_is_seen),
        cmocka_unit_test(a_copy_is_seen),
        cmocka_unit_test(a_missing_acquire_is_seen),
        cmocka_unit_test(a_missing_release_is_seen),
        cmocka_unit_test(a_missing_order_is_seen),
        cmocka_unit_test(a_wrong_kernel_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
