/* SPDX-License-Identifier: Apache-2.0 */
/* That the layer `idles` skips what it is told to, lets what is to hang wait, and ends it when it is let go. */
#include "raw.h"

#include <time.h>

#define SIZE 4096u

static void let_go(void) {
    void (*end)(void);
    void *symbol = layer_symbol("layer_let_go");
    assert_non_null(symbol);
    memcpy(&end, &symbol, sizeof symbol);
    end();
}

static cl_int status_of(cl_event event) {
    cl_int status = CL_QUEUED;
    kernel_ok(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL), "clGetEventInfo");
    return status;
}

/* It is not done however often one looks; and is, once it is let go. */
static void expect_hang(cl_event event) {
    clFlush(r.k.queue);
    for (int i = 0; i < 20; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        assert_true(status_of(event) > CL_COMPLETE);
    }
    let_go();
    kernel_ok(clWaitForEvents(1, &event), "clWaitForEvents");
    clReleaseEvent(event);
}

static void kernels_are_skipped(void **state) {
    (void)state;
    raw_memory m = raw_shared(&r, SIZE);
    layer_set("");
    raw_device_write(&r, &m, 1);
    layer_set("kernel:skip");
    raw_device_write(&r, &m, 2); /* it waits, and all is well */
    layer_set("");
    raw_map(&m, CL_MAP_READ);
    assert_int_equal(raw_cpu_wrong(&m, 1), 0);
    raw_unmap(&m);
    raw_free(&m);
}

static void kernels_hang(void **state) {
    (void)state;
    raw_memory m = raw_shared(&r, SIZE);
    const onuma_view view = raw_view(&m);
    cl_event event;
    let_go(); /* and counts anew */
    layer_set("kernel:hang,after:1");
    raw_device_write(&r, &m, 1);
    stamp_submit(&r.k, &view, SIZE, 1, 2, &event);
    expect_hang(event);
    layer_set("");
    stamps_forget(&r.k);
    raw_free(&m);
}

static void maps_hang(void **state) {
    (void)state;
    raw_memory m = raw_shared(&r, SIZE);
    cl_event event;
    cl_int code = CL_SUCCESS;
    if (!m.usm) {
        layer_set("map:hang");
        if (m.buffer)
            clEnqueueMapBuffer(r.k.queue, m.buffer, CL_FALSE, CL_MAP_READ, 0, SIZE, 0, NULL, &event, &code);
        else
            code = clEnqueueSVMMap(r.k.queue, CL_FALSE, CL_MAP_READ, m.host, SIZE, 0, NULL, &event);
        kernel_ok(code, "mapping");
        expect_hang(event);
        layer_set("unmap:hang");
        kernel_ok(m.buffer ? clEnqueueUnmapMemObject(r.k.queue, m.buffer, m.host, 0, NULL, &event)
                           : clEnqueueSVMUnmap(r.k.queue, m.host, 0, NULL, &event),
                  "unmapping");
        expect_hang(event);
    }
    layer_set("");
    raw_free(&m);
}

static void copies_hang(void **state) {
    (void)state;
    static unsigned char bytes[SIZE];
    cl_int code;
    cl_event event;
    cl_mem buffer = clCreateBuffer(r.k.context, CL_MEM_READ_WRITE, SIZE, NULL, &code);
    kernel_ok(code, "clCreateBuffer");
    layer_set("copy:hang");
    kernel_ok(clEnqueueWriteBuffer(r.k.queue, buffer, CL_FALSE, 0, SIZE, bytes, 0, NULL, &event), "writing");
    expect_hang(event);
    kernel_ok(clEnqueueReadBuffer(r.k.queue, buffer, CL_FALSE, 0, SIZE, bytes, 0, NULL, &event), "reading");
    expect_hang(event);
    layer_set("");
    clReleaseMemObject(buffer);
}

static void the_compiler_is_gone(void **state) {
    (void)state;
    cl_bool there = CL_FALSE;
    layer_set("compiler:fails");
    assert_int_equal(clBuildProgram(r.k.program, 1, &r.k.device, "", NULL, NULL), CL_BUILD_PROGRAM_FAILURE);
    layer_set("");
    kernel_ok(clGetDeviceInfo(r.k.device, CL_DEVICE_COMPILER_AVAILABLE, sizeof there, &there, NULL), "clGetDeviceInfo");
    assert_int_equal(there, CL_TRUE);
    layer_set("compiler:none");
    kernel_ok(clGetDeviceInfo(r.k.device, CL_DEVICE_COMPILER_AVAILABLE, sizeof there, &there, NULL), "clGetDeviceInfo");
    assert_int_equal(there, CL_FALSE);
    layer_set("");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_are_skipped), cmocka_unit_test(kernels_hang),         cmocka_unit_test(maps_hang),
        cmocka_unit_test(copies_hang),         cmocka_unit_test(the_compiler_is_gone),
    };
    return cmocka_run_group_tests(tests, raw_set_up, raw_tear_down);
}
