/* SPDX-License-Identifier: Apache-2.0 */
/* That the layer `copies` copies, when it should, and so that a program that maps and unmaps computes right. */
#include "raw.h"

static bool shared_at(size_t size, size_t misalign) {
    raw_memory m = raw_import(&r, size, misalign);
    const bool shared = raw_is_shared(&r, &m);
    raw_check_maps(&r, &m);
    raw_free(&m);
    return shared;
}

static void import_is_a_copy(void **state) {
    (void)state;
    layer_set("");
    raw_memory m = raw_import(&r, 3 * 4096 + 77, 0);
    raw_check_private(&r, &m);
    raw_check_maps(&r, &m);
    raw_free(&m);
}

static void parts_are_copied_with_their_whole(void **state) {
    (void)state;
    layer_set("");
    raw_memory whole = raw_import(&r, 1 << 16, 0);
    raw_memory one = raw_part(&whole, 4096, 5000), other = raw_part(&whole, 16384, 100);
    raw_check_private(&r, &one);
    raw_check_maps(&r, &other);
    raw_check_maps(&r, &one);
    assert_int_equal(raw_device_wrong(&r, &other, 2), 1); /* as left: the neighbour's maps move nothing of it */
    clReleaseMemObject(whole.buffer);                     /* the parts keep it */
    raw_check_maps(&r, &other);
    clReleaseMemObject(one.buffer);
    clReleaseMemObject(other.buffer);
    free(whole.pages);
}

static void initial_bytes_are_there(void **state) {
    (void)state;
    layer_set("");
    raw_memory m = raw_import(&r, 5000, 0);
    clReleaseMemObject(m.buffer);
    raw_cpu_write(&m, 9);
    cl_int code;
    m.buffer = clCreateBuffer(r.k.context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, m.size, m.host, &code);
    kernel_ok(code, "clCreateBuffer");
    assert_int_equal(raw_device_wrong(&r, &m, 9), 0);
    raw_free(&m);
}

static void it_looks_like_an_import(void **state) {
    (void)state;
    layer_set("");
    raw_memory m = raw_import(&r, 5000, 0);
    void *host = NULL;
    cl_mem_flags flags = 0;
    cl_uint maps = 7;
    raw_map(&m, CL_MAP_READ);
    kernel_ok(clGetMemObjectInfo(m.buffer, CL_MEM_HOST_PTR, sizeof(void *), &host, NULL), "clGetMemObjectInfo");
    kernel_ok(clGetMemObjectInfo(m.buffer, CL_MEM_FLAGS, sizeof flags, &flags, NULL), "clGetMemObjectInfo");
    kernel_ok(clGetMemObjectInfo(m.buffer, CL_MEM_MAP_COUNT, sizeof maps, &maps, NULL), "clGetMemObjectInfo");
    raw_unmap(&m);
    assert_ptr_equal(host, m.host);
    assert_true(flags == (CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR));
    assert_int_equal(maps, 1);
    assert_int_not_equal(clEnqueueUnmapMemObject(r.k.queue, m.buffer, m.host, 0, NULL, NULL), CL_SUCCESS);
    raw_free(&m);
}

/* What is not concerned is as the driver does it: shared, on drivers that share. */
static void only_some_are_copied(void **state) {
    (void)state;
    layer_set("from:65536");
    assert_true(shared_at(65535 / 128 * 128, 0));
    assert_false(shared_at(65536, 0));
    layer_set("below:8192");
    assert_false(shared_at(8191, 0));
    assert_true(shared_at(8192, 0));
    layer_set("misaligned:4096");
    assert_true(shared_at(8192, 0));
    assert_false(shared_at(8192, 256));
    layer_set("from:4096,below:8192,misaligned:512");
    assert_true(shared_at(4096, 512));
    assert_false(shared_at(4096, 256));
}

static void coarse_svm_is_copied_if_asked(void **state) {
    (void)state;
    layer_set("");
    raw_memory m = raw_svm(&r, 10000, 0);
    assert_true(raw_is_shared(&r, &m));
    raw_free(&m);
    layer_set("svm:1");
    m = raw_svm(&r, 10000, 0);
    raw_check_private(&r, &m);
    raw_check_maps(&r, &m);
    raw_free(&m);
}

int main(void) {
    const struct CMUnitTest imports[] = {
        cmocka_unit_test(import_is_a_copy),        cmocka_unit_test(parts_are_copied_with_their_whole),
        cmocka_unit_test(initial_bytes_are_there), cmocka_unit_test(it_looks_like_an_import),
        cmocka_unit_test(only_some_are_copied),
    };
    const struct CMUnitTest coarse[] = {cmocka_unit_test(coarse_svm_is_copied_if_asked)};
    return raw_way_is("svm_coarse") ? cmocka_run_group_tests(coarse, raw_set_up, raw_tear_down)
                                    : cmocka_run_group_tests(imports, raw_set_up, raw_tear_down);
}
