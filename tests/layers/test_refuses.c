/* SPDX-License-Identifier: Apache-2.0 */
/* That the layer `refuses` gives what fits and refuses the rest, with the code it was told. */
#include "raw.h"

static cl_int refusal_of(size_t size) {
    cl_int code;
    cl_mem buffer = clCreateBuffer(r.k.context, CL_MEM_READ_WRITE, size, NULL, &code);
    assert_int_equal(buffer == NULL, code != CL_SUCCESS);
    if (buffer) clReleaseMemObject(buffer);
    return code;
}

static void sizes_are_refused(void **state) {
    (void)state;
    layer_set("above:65536");
    assert_int_equal(refusal_of(65536), CL_SUCCESS);
    assert_int_equal(refusal_of(65537), CL_MEM_OBJECT_ALLOCATION_FAILURE);
    layer_set("above:65536,says:size");
    assert_int_equal(refusal_of(65537), CL_INVALID_BUFFER_SIZE);
    layer_set("above:65536,says:resources");
    assert_int_equal(refusal_of(65537), CL_OUT_OF_RESOURCES);
    layer_set("");
    assert_int_equal(refusal_of(65537), CL_SUCCESS);
}

static void svm_is_refused(void **state) {
    (void)state;
    layer_set("above:65536");
    assert_null(clSVMAlloc(r.k.context, CL_MEM_READ_WRITE, 65537, 0));
    raw_memory m = raw_svm(&r, 65536, 0);
    raw_check_maps(&r, &m);
    raw_free(&m);
}

static void usm_is_refused(void **state) {
    (void)state;
    cl_int code = CL_SUCCESS;
    layer_set("above:65536");
    assert_null(r.usm_allocate(r.k.context, r.k.device, NULL, 65537, 0, &code));
    assert_int_equal(code, CL_MEM_OBJECT_ALLOCATION_FAILURE);
    raw_memory m = raw_usm(&r, 65536);
    assert_true(raw_is_shared(&r, &m));
    raw_free(&m);
}

static void the_total_is_bounded(void **state) {
    (void)state;
    layer_set("");
    cl_mem buffers[3];
    cl_int code;
    char settings[64];
    snprintf(settings, sizeof settings, "total:%d", 100000 + (int)sizeof(cl_int)); /* the kernels' counter lives */
    layer_set(settings);
    for (int i = 0; i < 3; i++) {
        buffers[i] = clCreateBuffer(r.k.context, CL_MEM_READ_WRITE, 40000, NULL, &code);
        assert_int_equal(code, i < 2 ? CL_SUCCESS : CL_MEM_OBJECT_ALLOCATION_FAILURE);
    }
    assert_int_equal(refusal_of(20000), CL_SUCCESS);
    assert_int_equal(refusal_of(20001), CL_MEM_OBJECT_ALLOCATION_FAILURE);
    clReleaseMemObject(buffers[0]);
    assert_int_equal(refusal_of(60000), CL_SUCCESS);
    clReleaseMemObject(buffers[1]);
}

#define RUN(tests) cmocka_run_group_tests(tests, raw_set_up, raw_tear_down)
int main(void) {
    const struct CMUnitTest buffers[] = {cmocka_unit_test(sizes_are_refused), cmocka_unit_test(the_total_is_bounded)};
    const struct CMUnitTest svm[] = {cmocka_unit_test(svm_is_refused)};
    const struct CMUnitTest usm[] = {cmocka_unit_test(usm_is_refused)};
    if (raw_way_is("import")) return RUN(buffers);
    return raw_way_is("usm") ? RUN(usm) : RUN(svm);
}
