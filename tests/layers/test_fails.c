/* SPDX-License-Identifier: Apache-2.0 */
/* That the layer `fails` lets exactly the call fail that it is told to, and counts what is held. */
#include "fails.h"
#include "raw.h"

static const fails_table *fails;

static int set_up(void **state) {
    (void)raw_set_up(state);
    fails = layer_symbol("layer_fails");
    return fails ? 0 : -1;
}
static int tear_down(void **state) {
    (void)state;
    fails->arm(NULL, 0, 0, false);
    raw_close(&r);
    const fails_live live = fails->live();
    return live.contexts == 0 && live.queues == 0 && live.buffers == 0 ? 0 : -1;
}

static cl_int flush(void) {
    return clFlush(r.k.queue);
}

static void the_nth_fails(void **state) {
    (void)state;
    fails->arm("clFlush", 3, CL_INVALID_VALUE, false);
    for (int i = 1; i < 6; i++) {
        cl_uint number;
        kernel_ok(clGetPlatformIDs(0, NULL, &number), "clGetPlatformIDs"); /* does not count */
        assert_int_equal(flush(), i == 3 ? CL_INVALID_VALUE : CL_SUCCESS);
    }
    assert_int_equal(fails->calls(), 5);
    assert_string_equal(fails->failed(), "clFlush");
    fails->arm(NULL, 2, CL_OUT_OF_RESOURCES, true);
    assert_null(fails->failed());
    assert_int_equal(flush(), CL_SUCCESS);
    assert_int_equal(flush(), CL_OUT_OF_RESOURCES);
    cl_int code = CL_SUCCESS;
    assert_null(clCreateBuffer(r.k.context, CL_MEM_READ_WRITE, 100, NULL, &code));
    assert_int_equal(code, CL_OUT_OF_RESOURCES);
    assert_string_equal(fails->failed(), "clCreateBuffer");
    fails->spare(true);
    assert_int_equal(flush(), CL_SUCCESS);
    fails->spare(false);
    fails->arm(NULL, 0, 0, false);
    assert_int_equal(flush(), CL_SUCCESS);
}

static void what_is_held_is_counted(void **state) {
    (void)state;
    cl_int code;
    fails->arm(NULL, 0, 0, false);
    const fails_live before = fails->live();
    cl_mem buffer = clCreateBuffer(r.k.context, CL_MEM_READ_WRITE, 4096, NULL, &code);
    kernel_ok(code, "clCreateBuffer");
    kernel_ok(clRetainMemObject(buffer), "clRetainMemObject");
    cl_event event;
    kernel_ok(clEnqueueMarkerWithWaitList(r.k.queue, 0, NULL, &event), "clEnqueueMarkerWithWaitList");
    kernel_ok(clEnqueueBarrierWithWaitList(r.k.queue, 0, NULL, NULL), "clEnqueueBarrierWithWaitList");
    assert_int_equal(fails->live().buffers, before.buffers + 2);
    assert_int_equal(fails->live().events, before.events + 1);
    /* A release that is refused lets go all the same. */
    fails->arm("clReleaseMemObject", 1, CL_OUT_OF_HOST_MEMORY, false);
    assert_int_equal(clReleaseMemObject(buffer), CL_OUT_OF_HOST_MEMORY);
    assert_int_equal(clReleaseMemObject(buffer), CL_SUCCESS);
    kernel_ok(clWaitForEvents(1, &event), "clWaitForEvents");
    kernel_ok(clReleaseEvent(event), "clReleaseEvent");
    const fails_live after = fails->live();
    assert_memory_equal(&before, &after, sizeof before);
}

static void an_event_fails_late(void **state) {
    (void)state;
    cl_event good, bad;
    cl_int status;
    fails->arm_event(2, -9999);
    kernel_ok(clEnqueueMarkerWithWaitList(r.k.queue, 0, NULL, &good), "clEnqueueMarkerWithWaitList");
    kernel_ok(clEnqueueMarkerWithWaitList(r.k.queue, 0, NULL, &bad), "clEnqueueMarkerWithWaitList");
    kernel_ok(clWaitForEvents(1, &good), "clWaitForEvents");
    assert_int_equal(clWaitForEvents(1, &bad), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    kernel_ok(clGetEventInfo(good, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL), "clGetEventInfo");
    assert_int_equal(status, CL_COMPLETE);
    kernel_ok(clGetEventInfo(bad, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL), "clGetEventInfo");
    assert_int_equal(status, -9999);
    clReleaseEvent(good);
    clReleaseEvent(bad);
}

static void answers_are_off(void **state) {
    (void)state;
    size_t size = 0;
    cl_uint number = 0;
    fails->arm(NULL, 0, 0, false);
    kernel_ok(clGetDeviceInfo(r.k.device, CL_DEVICE_NAME, 0, NULL, &size), "clGetDeviceInfo");
    const size_t right = size;
    fails->arm_lie("clGetDeviceInfo", 1, -1);
    kernel_ok(clGetDeviceInfo(r.k.device, CL_DEVICE_NAME, 0, NULL, &size), "clGetDeviceInfo");
    assert_int_equal(size, right - 1);
    fails->arm_lie("clGetPlatformIDs", 1, 2);
    kernel_ok(clGetPlatformIDs(0, NULL, &number), "clGetPlatformIDs");
    assert_int_equal(number, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nth_fails),
        cmocka_unit_test(what_is_held_is_counted),
        cmocka_unit_test(an_event_fails_late),
        cmocka_unit_test(answers_are_off),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
