/* SPDX-License-Identifier: Apache-2.0 */
/* That the layer `corrupts` gets exactly one byte wrong, where and when it is told to. */
#include "raw.h"

/* The one place where the bytes of the seed are not; -1: none; -2: several. */
static long wrong_place(const raw_memory *m, cl_uint seed) {
    long place = -1;
    for (size_t i = 0; i < m->size; i++)
        if (m->host[i] != stamp_byte(seed, i)) place = place == -1 ? (long)i : -2;
    return place;
}

static long after_kernel(const char *settings, size_t size) {
    layer_set("");
    raw_memory m = raw_shared(&r, size);
    layer_set(settings);
    raw_device_write(&r, &m, 5);
    const long place = wrong_place(&m, 5);
    layer_set("");
    raw_free(&m);
    return place;
}

static void bytes_are_chosen(void **state) {
    (void)state;
    const size_t size = 3 * 4096 + 5;
    assert_int_equal(after_kernel("", size), -1);
    assert_int_equal(after_kernel("when:kernel_out,at:first", size), 0);
    assert_int_equal(after_kernel("when:kernel_out,at:last", size), size - 1);
    assert_int_equal(after_kernel("when:kernel_out,at:odd", size), size / 2 | 1);
    assert_int_equal(after_kernel("when:kernel_out,at:777", size), 777);
    assert_int_equal(after_kernel("when:kernel_out,at:99999", size), size - 1);
    assert_int_equal(after_kernel("when:kernel_out,at:last", 1), 0);
    assert_int_equal(after_kernel("when:kernel_out,from:8192", 4096), -1);
    assert_int_equal(after_kernel("when:kernel_out,below:8192", 4096), 0);
    assert_int_equal(after_kernel("when:kernel_in,at:first", size), -1); /* the kernel wrote it */
}

static void a_page_has_a_last_byte(void **state) {
    (void)state;
    layer_set("when:kernel_out,at:page");
    raw_memory m = raw_shared(&r, 10000);
    raw_device_write(&r, &m, 5);
    const long place = wrong_place(&m, 5);
    assert_int_equal(((uintptr_t)m.host + (size_t)place) % 4096, 4095);
    raw_free(&m);
}

/* What the device reads is wrong, what the CPU reads is not, and the other way round. */
static void one_direction_only(void **state) {
    (void)state;
    layer_set("when:kernel_in,at:odd");
    raw_memory m = raw_shared(&r, 5000);
    raw_map(&m, CL_MAP_WRITE);
    raw_cpu_write(&m, 6);
    raw_unmap(&m);
    assert_int_equal(raw_device_wrong(&r, &m, 6), 1);
    assert_int_equal(wrong_place(&m, 6), -1);
    layer_set("when:kernel_out,at:odd");
    assert_int_equal(raw_device_wrong(&r, &m, 6), 0);
    assert_int_equal(wrong_place(&m, 6), 5000 / 2 | 1);
    raw_free(&m);
}

static void maps_corrupt(void **state) {
    (void)state;
    layer_set("");
    raw_memory m = raw_shared(&r, 5000);
    raw_device_write(&r, &m, 7);
    layer_set("when:map,at:last");
    raw_map(&m, CL_MAP_READ);
    assert_int_equal(wrong_place(&m, 7), 4999);
    raw_unmap(&m);
    layer_set("when:unmap,at:first");
    raw_map(&m, CL_MAP_WRITE);
    raw_cpu_write(&m, 8);
    assert_int_equal(wrong_place(&m, 8), -1);
    raw_unmap(&m);
    layer_set("");
    assert_int_equal(raw_device_wrong(&r, &m, 8), 1);
    raw_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_chosen),
        cmocka_unit_test(a_page_has_a_last_byte),
        cmocka_unit_test(one_direction_only),
    };
    const struct CMUnitTest mapped[] = {cmocka_unit_test(maps_corrupt)};
    int failed = cmocka_run_group_tests(tests, raw_set_up, raw_tear_down);
    if (!raw_way_is("usm")) failed += cmocka_run_group_tests(mapped, raw_set_up, raw_tear_down);
    return failed;
}
