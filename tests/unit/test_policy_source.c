/* SPDX-License-Identifier: Apache-2.0 */
/* The source between engine and driver, over a driver that refuses, gives too much, or lies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "policy/private.h"

/* What the driver does next, and what was asked of it. */
static struct {
    onuma_result result;
    size_t surplus, missing;
    bool no_base;
    unsigned creates, destroys, commits;
} driver;

static onuma_result create(onuma_backend_device *device, onuma_kind kind, size_t size, onuma_segment *out) {
    (void)device;
    driver.creates++;
    if (driver.result != ONUMA_OK) return onuma__fail(driver.result, "the driver says no (-4)");
    *out = (onuma_segment){.struct_size = sizeof *out, .size = size + driver.surplus - driver.missing, .kind = kind};
    if (!driver.no_base) out->base = (void *)(uintptr_t)0x7f0000000000;
    return ONUMA_OK;
}

static void destroy(onuma_backend_device *device, onuma_segment *segment) {
    (void)device;
    (void)segment;
    driver.destroys++;
}

static onuma_result change(onuma_backend_device *device, onuma_segment *segment, size_t offset, size_t size) {
    (void)device;
    (void)segment;
    (void)offset;
    (void)size;
    driver.commits++;
    return driver.result == ONUMA_OK ? ONUMA_OK : onuma__fail(driver.result, "the driver says no (-4)");
}

static const onuma_backend ops = {
    .name = "fake",
    .api = ONUMA_API_OPENCL,
    .segment_create = create,
    .segment_destroy = destroy,
    .segment_reserve = create,
    .segment_commit = change,
    .segment_decommit = change,
};
static onuma__device device;
static onuma__pool pool;
static onuma__span span;

static int set_up(void **state) {
    (void)state;
    memset(&driver, 0, sizeof driver);
    device = (onuma__device){.ops = &ops, .id = "fake:0", .info.max_segment = 1 << 20};
    pool = (onuma__pool){.owner.device = &device, .name = "p"};
    pool.limit = 3 << 20;
    return 0;
}

static void assert_counts(size_t reserved, size_t peak) {
    assert_int_equal(pool.admitted, reserved);
    assert_int_equal(pool.reserved, reserved);
    assert_int_equal(pool.reserved_peak, peak);
}

static void segments_are_counted_whole(void **state) {
    (void)state;
    onuma__source source = onuma__backend_source(&pool, false);
    assert_null(source.reserve);
    driver.surplus = 100;
    assert_int_equal(source.acquire(&pool, 1000, &span), ONUMA_OK);
    assert_int_equal(span.size, 1100);
    assert_counts(1100, 1100);
    assert_int_equal(onuma__backend_segment(&span)->size, 1100);
    source.release(&pool, &span, 0);
    assert_counts(0, 1100);
    assert_int_equal(driver.destroys, 1);
}

static void refusals_count_nothing(void **state) {
    (void)state;
    onuma__source source = onuma__backend_source(&pool, false);
    driver.result = ONUMA_ERROR_OUT_OF_MEMORY;
    assert_int_equal(source.acquire(&pool, 1000, &span), ONUMA_ERROR_OUT_OF_MEMORY);
    assert_string_equal(onuma_last_error(), "the driver says no (-4)");
    assert_counts(0, 0);
    assert_false(device.lost);
    driver.result = ONUMA_ERROR_DEVICE_LOST;
    assert_int_equal(source.acquire(&pool, 1000, &span), ONUMA_ERROR_DEVICE_LOST);
    assert_true(device.lost);
    assert_int_equal(driver.destroys, 0);
    assert_counts(0, 0);
}

static void the_limit_is_asked_before_the_driver(void **state) {
    (void)state;
    onuma__source source = onuma__backend_source(&pool, false);
    pool.limit = 1500;
    assert_int_equal(source.acquire(&pool, 1000, &span), ONUMA_OK);
    onuma__span second;
    assert_int_equal(source.acquire(&pool, 501, &second), ONUMA_ERROR_LIMIT);
    assert_non_null(strstr(onuma_last_error(), "pool \"p\": 501 bytes more than the 1000 reserved"));
    assert_int_equal(driver.creates, 1);
    driver.surplus = 1; /* what the driver adds passes the limit: given back */
    assert_int_equal(source.acquire(&pool, 500, &second), ONUMA_ERROR_LIMIT);
    assert_int_equal(driver.destroys, 1);
    assert_counts(1000, 1000);
    assert_int_equal(source.acquire(&pool, SIZE_MAX, &second), ONUMA_ERROR_LIMIT);
    source.release(&pool, &span, 0);
    assert_counts(0, 1000);
}

static void the_drivers_largest_is_not_asked_for_more(void **state) {
    (void)state;
    onuma__source source = onuma__backend_source(&pool, false);
    assert_int_equal(source.acquire(&pool, (1 << 20) + 1, &span), ONUMA_ERROR_OUT_OF_MEMORY);
    assert_non_null(strstr(onuma_last_error(), "1048577 bytes"));
    assert_non_null(strstr(onuma_last_error(), "allows 1048576"));
    assert_int_equal(driver.creates, 0);
    assert_counts(0, 0);
}

static void lies_are_found(void **state) {
    (void)state;
    onuma__source source = onuma__backend_source(&pool, false);
    driver.missing = 1;
    assert_int_equal(source.acquire(&pool, 1000, &span), ONUMA_ERROR_INTERNAL);
    driver.missing = 0;
    driver.no_base = true;
    assert_int_equal(source.acquire(&pool, 1000, &span), ONUMA_ERROR_INTERNAL);
    driver.no_base = false;
    driver.surplus = SIZE_MAX / 2;
    assert_int_equal(source.acquire(&pool, 1000, &span), ONUMA_ERROR_LIMIT);
    assert_int_equal(driver.creates, driver.destroys);
    assert_counts(0, 0);
}

static void ranges_count_what_is_committed(void **state) {
    (void)state;
    onuma__source source = onuma__backend_source(&pool, true);
    device.info.max_segment = 0;
    assert_int_equal(source.reserve(&pool, (size_t)1 << 40, &span), ONUMA_OK);
    assert_counts(0, 0);
    assert_int_equal(source.commit(&pool, &span, 0, 2 << 20), ONUMA_OK);
    assert_counts(2 << 20, 2 << 20);
    assert_int_equal(source.commit(&pool, &span, 2 << 20, 2 << 20), ONUMA_ERROR_LIMIT);
    driver.result = ONUMA_ERROR_OUT_OF_MEMORY;
    assert_int_equal(source.commit(&pool, &span, 2 << 20, 1 << 20), ONUMA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(source.decommit(&pool, &span, 0, 1 << 20), ONUMA_ERROR_OUT_OF_MEMORY);
    assert_counts(2 << 20, 2 << 20);
    driver.result = ONUMA_OK;
    assert_int_equal(source.decommit(&pool, &span, 0, 1 << 20), ONUMA_OK);
    assert_counts(1 << 20, 2 << 20);
    source.release(&pool, &span, 1 << 20);
    assert_counts(0, 2 << 20);
}

static void simulated_bytes_count_alike(void **state) {
    (void)state;
    onuma__source source = onuma__simulated_source(&pool);
    pool.limit = 3 << 20;
    assert_int_equal(source.acquire(&pool, 4 << 20, &span), ONUMA_ERROR_LIMIT);
    assert_counts(0, 0);
    assert_int_equal(source.acquire(&pool, 1 << 20, &span), ONUMA_OK);
    assert_counts(1 << 20, 1 << 20);
    onuma__span range;
    assert_int_equal(source.reserve(&pool, (size_t)1 << 36, &range), ONUMA_OK);
    assert_int_equal(source.commit(&pool, &range, 0, 2 << 20), ONUMA_OK);
    assert_int_equal(source.commit(&pool, &range, 2 << 20, 1 << 20), ONUMA_ERROR_LIMIT);
    assert_counts(3 << 20, 3 << 20);
    assert_int_equal(source.decommit(&pool, &range, 0, 1 << 20), ONUMA_OK);
    source.release(&pool, &range, 1 << 20);
    source.release(&pool, &span, 0);
    assert_counts(0, 3 << 20);
    assert_null(onuma__simulated_segment(&span));
    assert_int_equal(driver.creates + driver.commits, 0);
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(segments_are_counted_whole),
        TEST(refusals_count_nothing),
        TEST(the_limit_is_asked_before_the_driver),
        TEST(the_drivers_largest_is_not_asked_for_more),
        TEST(lies_are_found),
        TEST(ranges_count_what_is_committed),
        TEST(simulated_bytes_count_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
