/* SPDX-License-Identifier: Apache-2.0 */
/* The program's own contexts and queues, through the public functions: counted devices, busy while used. */
#include "../unit/api/api.h"

#include <CL/cl.h>
#include <time.h>

typedef struct fixture {
    cl_platform_id platform;
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    onuma_runtime *rt;
} fixture;

static int set_up(void **state) {
    static fixture f;
    cl_int error;
    assert_int_equal(clGetPlatformIDs(1, &f.platform, NULL), CL_SUCCESS);
    assert_int_equal(clGetDeviceIDs(f.platform, CL_DEVICE_TYPE_ALL, 1, &f.device, NULL), CL_SUCCESS);
    f.context = clCreateContext(NULL, 1, &f.device, NULL, NULL, &error);
    assert_int_equal(error, CL_SUCCESS);
    f.queue = clCreateCommandQueue(f.context, f.device, 0, &error);
    assert_int_equal(error, CL_SUCCESS);
    OK(onuma_runtime_create(NULL, &f.rt));
    *state = &f;
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    onuma_runtime_destroy(f->rt);
    clReleaseCommandQueue(f->queue);
    clReleaseContext(f->context);
    return 0;
}

static uint64_t number(void *handle) {
    return (uint64_t)(uintptr_t)handle;
}

static void one_context_is_one_counted_device(void **state) {
    fixture *f = *state;
    onuma_device *from_queue, *adopted;
    onuma_native_device native = ONUMA_NATIVE_DEVICE_INIT;
    native.context = number(f->context);
    native.device = number(f->device);
    OK(onuma_device_from_queue(f->rt, ONUMA_API_OPENCL, number(f->queue), &from_queue));
    OK(onuma_device_adopt(f->rt, ONUMA_API_OPENCL, &native, &adopted));
    assert_ptr_equal(adopted, from_queue);
    onuma_device_info info = ONUMA_DEVICE_INFO_INIT;
    OK(onuma_device_get_info(adopted, &info));
    assert_true(info.native_context == native.context);

    OK(onuma_device_release(adopted));
    onuma_pool *pool = api_pool(from_queue, 0); /* one reference is left */
    onuma_queue *queue;
    void *block;
    OK(onuma_queue_wrap(from_queue, ONUMA_API_OPENCL, number(f->queue), NULL, &queue));
    OK(onuma_alloc(pool, 10000, 0, queue, &block));
    FAILS(BUSY, "pools, queues and imports", onuma_device_release(from_queue));
    OK(onuma_device_get_info(from_queue, &info)); /* nothing has changed */
    api_fill(block, 10000, 3);
    api_check(block, 10000, 3);
    OK(onuma_free(block, queue));
    clFinish(f->queue);
    OK(onuma_queue_release(queue));
    OK(onuma_pool_destroy(pool));
    /* The queue's last marker may still have to be looked at. */
    onuma_result r;
    for (unsigned tries = 0; (r = onuma_device_release(from_queue)) == ONUMA_ERROR_BUSY && tries < 1000; tries++) {
        struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL);
    }
    OK(r);
    FAILS(INVALID_ARGUMENT, "not a live device", onuma_device_release(from_queue));
    OK(onuma_device_from_queue(f->rt, ONUMA_API_OPENCL, number(f->queue), &adopted));
    assert_ptr_not_equal(adopted, from_queue);
    OK(onuma_device_release(adopted));
}

static void what_is_no_context_is_refused(void **state) {
    fixture *f = *state;
    onuma_device *none;
    onuma_native_device native = ONUMA_NATIVE_DEVICE_INIT;
    assert_int_not_equal(onuma_device_adopt(f->rt, ONUMA_API_OPENCL, &native, &none), ONUMA_OK);
    assert_null(none);
    assert_int_not_equal(onuma_device_from_queue(f->rt, ONUMA_API_OPENCL, 0, &none), ONUMA_OK);
    assert_null(none);
}

/* A runtime takes what its program forgot with it, and keeps what still lives. */
static void runtime_ends_over_adopted_devices(void **state) {
    fixture *f = *state;
    api_lines lines;
    memset(&lines, 0, sizeof lines);
    onuma_runtime_desc desc = ONUMA_RUNTIME_DESC_INIT;
    desc.log = api_collect;
    desc.log_user = &lines;
    onuma_runtime *rt;
    onuma_device *device;
    void *block;
    OK(onuma_runtime_create(&desc, &rt));
    OK(onuma_device_from_queue(rt, ONUMA_API_OPENCL, number(f->queue), &device));
    OK(onuma_alloc(api_pool(device, 0), 100, 0, NULL, &block));
    onuma_runtime_destroy(rt);
    assert_int_equal(api_count_lines(&lines, "leak: pool \"test\": 1 block, 100 bytes"), 1);
    FAILS(INVALID_ARGUMENT, "not a live device", onuma_device_release(device));
    OK(onuma_free(block, NULL));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(one_context_is_one_counted_device),
        TEST(what_is_no_context_is_refused),
        TEST(runtime_ends_over_adopted_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
