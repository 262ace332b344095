/* SPDX-License-Identifier: Apache-2.0 */
/* That the layer `delays` shows each side's writes to the other only after a map or an unmap. */
#include "raw.h"

static void check_delayed(raw_memory m) {
    raw_check_private(&r, &m);
    raw_check_maps(&r, &m);
    raw_free(&m);
}

static void imports_are_delayed(void **state) {
    (void)state;
    layer_set("");
    check_delayed(raw_import(&r, 10001, 0));
}

static void coarse_svm_is_delayed(void **state) {
    (void)state;
    layer_set("");
    check_delayed(raw_svm(&r, 10001, 0));
}

/* Said to be fine-grained, used with maps it computes right, and without wrong. */
static void fine_svm_is_delayed_if_asked(void **state) {
    (void)state;
    layer_set("");
    raw_memory m = raw_svm(&r, 10001, CL_MEM_SVM_FINE_GRAIN_BUFFER);
    assert_true(raw_is_shared(&r, &m));
    raw_free(&m);
    layer_set("fine:1,from:4096");
    m = raw_svm(&r, 10001, CL_MEM_SVM_FINE_GRAIN_BUFFER);
    assert_false(raw_is_shared(&r, &m));
    raw_free(&m);
    m = raw_svm(&r, 4000, CL_MEM_SVM_FINE_GRAIN_BUFFER);
    assert_true(raw_is_shared(&r, &m));
    raw_free(&m);
    check_delayed(raw_svm(&r, 10001, CL_MEM_SVM_FINE_GRAIN_BUFFER));
}

/* A line of the cache goes as a whole: the CPU's neighbouring bytes, which it may not know to be old, go with it. */
static void whole_lines_move(void **state) {
    (void)state;
    layer_set("granule:256");
    raw_memory whole = raw_import(&r, 4096, 0);
    raw_memory one = raw_part(&whole, 0, 128), other = raw_part(&whole, 128, 128), far = raw_part(&whole, 256, 128);
    raw_map(&whole, CL_MAP_WRITE);
    raw_cpu_write(&one, 1);
    raw_cpu_write(&other, 2);
    raw_cpu_write(&far, 3);
    raw_unmap(&whole);
    raw_device_write(&r, &other, 4);
    raw_device_write(&r, &far, 5);
    raw_map(&one, CL_MAP_WRITE);
    raw_cpu_write(&other, 6);
    raw_unmap(&one);
    assert_int_equal(raw_device_wrong(&r, &other, 6), 0);
    assert_int_equal(raw_device_wrong(&r, &far, 5), 0);
    clReleaseMemObject(one.buffer);
    clReleaseMemObject(other.buffer);
    clReleaseMemObject(far.buffer);
    raw_free(&whole);
}

static bool usm_is_shared(size_t size) {
    raw_memory m = raw_usm(&r, size);
    const bool shared = raw_is_shared(&r, &m);
    raw_free(&m);
    return shared;
}

static void usm_is_cut_if_asked(void **state) {
    (void)state;
    layer_set("");
    assert_true(usm_is_shared(10001));
    layer_set("usm:1,below:8192");
    assert_true(usm_is_shared(10001));
    assert_false(usm_is_shared(8000));
    raw_memory m = raw_usm(&r, 8000);
    raw_device_write(&r, &m, 1);
    raw_cpu_write(&m, 2);
    assert_int_equal(raw_device_wrong(&r, &m, 1), 0);
    raw_free(&m);
}

#define RUN(tests) cmocka_run_group_tests(tests, raw_set_up, raw_tear_down)
int main(void) {
    const struct CMUnitTest imports[] = {cmocka_unit_test(imports_are_delayed), cmocka_unit_test(whole_lines_move)};
    const struct CMUnitTest coarse[] = {cmocka_unit_test(coarse_svm_is_delayed)};
    const struct CMUnitTest fine[] = {cmocka_unit_test(fine_svm_is_delayed_if_asked)};
    const struct CMUnitTest usm[] = {cmocka_unit_test(usm_is_cut_if_asked)};
    if (raw_way_is("svm_coarse")) return RUN(coarse);
    if (raw_way_is("svm_fine")) return RUN(fine);
    return raw_way_is("usm") ? RUN(usm) : RUN(imports);
}
