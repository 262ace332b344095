/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenCL backend against a real driver: when memory goes, what outlives what, and markers on queues. */
#define _GNU_SOURCE /* system.h */
#include "backend_fixture.h"

#include "system.h"

/* ----------------------------------------------------------------- lifetimes */

/* Drivers drop their last reference on a thread of their own, a moment after the work. */
static void expect_unmapped(fixture *f, const void *p) {
    for (int i = 0; i < 2000 && system_is_mapped(p); i++) {
        onuma__os_sleep(1000000);
#if defined(_WIN32) /* where the driver does not tell, the pages go when something else is given back */
        onuma_segment other = segment_of(f, ONUMA_KIND_SHARED, 65536);
        f->ops->segment_destroy(f->backend, &other);
#else
        (void)f;
#endif
    }
    assert_false(system_is_mapped(p));
}

static void pages_go_with_the_last_view(void **state) {
    fixture *f = *state;
    onuma_segment segment = segment_of(f, ONUMA_KIND_SHARED, 1 << 20);
    char *base = segment.base;
    block b = block_at(f, &segment, 4096, 65536);
    cpu_fills(f, &b, 21);
    f->ops->view_retain(f->backend, b.view.handle);
    block_drop(f, &b);
    f->ops->segment_destroy(f->backend, &segment);
    assert_true(system_is_mapped(base));
    assert_int_equal(kernel_run(&f->kernels, KERNEL_CHECK, &b.view, 16384, 21), 0); /* the retained view is good */
    kernel_run(&f->kernels, KERNEL_FILL, &b.view, 16384, 22);
    f->ops->view_release(f->backend, b.view.handle);
    kernel_set_close(&f->kernels); /* Rusticl's kernels keep what was last bound to them */
    f->kernels.queue = NULL;
    expect_unmapped(f, base);

    segment = segment_of(f, ONUMA_KIND_SHARED, 1 << 20);
    base = segment.base;
    f->ops->segment_destroy(f->backend, &segment);
    expect_unmapped(f, base);
}

static void retained_views_outlive_the_runtime(void **state) {
    fixture *f = *state;
    onuma_segment segment = segment_of(f, ONUMA_KIND_DEVICE, 1 << 20);
    block b = block_at(f, &segment, 0, 65536);
    f->ops->view_retain(f->backend, b.view.handle);
    block_drop(f, &b);
    f->ops->segment_destroy(f->backend, &segment);
    onuma__registry_close(&f->registry);
    kernel_run(&f->kernels, KERNEL_FILL, &b.view, 16384, 31);
    assert_int_equal(kernel_run(&f->kernels, KERNEL_CHECK, &b.view, 16384, 31), 0);
    clReleaseMemObject((cl_mem)(uintptr_t)b.view.handle);
}

/* A leaked segment stays usable after its runtime. */
static void leaked_segments_stay_mapped(void **state) {
    fixture *f = *state;
    onuma_segment segment = segment_of(f, ONUMA_KIND_SHARED, 1 << 20);
    memset(segment.base, 0x5a, segment.size);
    onuma__registry_close(&f->registry);
    for (size_t i = 0; i < segment.size; i += 4096)
        assert_int_equal(((unsigned char *)segment.base)[i], 0x5a);
}

static void many_segments_come_and_go(void **state) {
    fixture *f = *state;
    const int rounds = on_stack("oclgrind") ? 20 : 200;
    for (int i = 0; i < rounds; i++) {
        onuma_segment segments[4];
        for (size_t k = 0; k < 4; k++)
            segments[k] = segment_of(f, (onuma_kind)(k % 3), (size_t)4096 << (size_t)(i % 8));
        ((char *)segments[0].base)[0] = 1; /* host */
        ((char *)segments[1].base)[segments[1].size - 1] = 1;
        for (size_t k = 0; k < 4; k++)
            f->ops->segment_destroy(f->backend, &segments[k]);
    }
}

static void impossible_sizes_are_refused(void **state) {
    fixture *f = *state;
    const size_t sizes[] = {0, SIZE_MAX, SIZE_MAX / 2, (size_t)1 << 50};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (onuma_kind kind = ONUMA_KIND_HOST; kind <= ONUMA_KIND_DEVICE; kind++) {
            onuma_segment segment = {.struct_size = sizeof segment};
            assert_int_equal(f->ops->segment_create(f->backend, kind, sizes[i], &segment), ONUMA_ERROR_OUT_OF_MEMORY);
            assert_true(strlen(onuma_last_error()) > 0);
            assert_null(segment.base);
        }
    onuma_segment segment = {.struct_size = sizeof segment};
    assert_int_equal(f->ops->segment_create(f->backend, 9, 4096, &segment), ONUMA_ERROR_NOT_SUPPORTED);
}

/* -------------------------------------------------------------------- queues */

static void wait_for(const fixture *f, onuma_backend_marker *marker) {
    bool passed = false;
    while (!passed) {
        ok(f->ops->marker_poll(marker, &passed));
        onuma__os_yield();
    }
}

static bool poll(const fixture *f, onuma_backend_marker *marker) {
    bool passed = false;
    ok(f->ops->marker_poll(marker, &passed));
    return passed;
}

static void markers_pass_after_the_work(void **state) {
    fixture *f = *state;
    const cl_command_queue_properties orders[] = {0, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE};
    onuma_segment segment = segment_of(f, ONUMA_KIND_SHARED, 1 << 20);
    block b = block_at(f, &segment, first_offset(f, &segment), scaled(1 << 19));
    for (size_t i = 0; i < 2; i++) {
        if (i == 1 && on_stack("rusticl")) break; /* it has none */
        cl_int code;
        cl_command_queue native = clCreateCommandQueue(f->kernels.context, f->kernels.device, orders[i], &code);
        kernel_ok(code, "clCreateCommandQueue");
        onuma_queue_order order = ONUMA_QUEUE_DETECT;
        onuma_backend_queue *queue;
        ok(f->ops->queue_open(f->backend, (uintptr_t)native, &order, &queue));
        assert_int_equal(order, i == 0 ? ONUMA_QUEUE_IN_ORDER : ONUMA_QUEUE_UNORDERED);

        /* A gate that only we open: the marker behind it cannot have passed. */
        cl_event gate = clCreateUserEvent(f->kernels.context, &code);
        kernel_ok(code, "clCreateUserEvent");
        kernel_set own = f->kernels;
        own.queue = native;
        kernel_ok(clEnqueueBarrierWithWaitList(native, 1, &gate, NULL), "clEnqueueBarrierWithWaitList");
        cl_event work;
        kernel_submit(&own, KERNEL_FILL, &b.view, b.size / 4, (cl_uint)(40 + i), &work);
        onuma_backend_marker *recorded, *wrapped;
        ok(f->ops->marker_record(queue, &recorded));
        onuma_native_event event = ONUMA_NATIVE_EVENT_INIT;
        event.api = ONUMA_API_OPENCL;
        event.handle = (uintptr_t)work;
        ok(f->ops->marker_wrap(queue, &event, &wrapped));
        clReleaseEvent(work);      /* the marker has its own reference */
        if (!on_stack("oclgrind")) /* runs queues when they are flushed, gates or not */
            for (int k = 0; k < 20; k++)
                assert_false(poll(f, recorded) || poll(f, wrapped));
        f->ops->queue_close(queue); /* markers outlive their queue */
        clReleaseCommandQueue(native);
        kernel_ok(clSetUserEventStatus(gate, CL_COMPLETE), "clSetUserEventStatus");
        wait_for(f, recorded);
        wait_for(f, wrapped);
        assert_int_equal(cpu_finds_wrong(f, &b, (cl_uint)(40 + i)), 0);
        f->ops->marker_destroy(recorded);
        f->ops->marker_destroy(wrapped);
        clReleaseEvent(gate);
    }
    block_drop(f, &b);
    f->ops->segment_destroy(f->backend, &segment);
}

static void one_queue_waits_for_another(void **state) {
    fixture *f = *state;
    onuma_segment segment = segment_of(f, ONUMA_KIND_SHARED, 1 << 20);
    block b = block_at(f, &segment, first_offset(f, &segment), scaled(1 << 18));
    kernel_set second = f->kernels;
    cl_int code;
    second.queue = clCreateCommandQueue(f->kernels.context, f->kernels.device, 0, &code);
    kernel_ok(code, "clCreateCommandQueue");
    onuma_queue_order order = ONUMA_QUEUE_DETECT;
    onuma_backend_queue *first_queue, *second_queue;
    ok(f->ops->queue_open(f->backend, (uintptr_t)f->kernels.queue, &order, &first_queue));
    ok(f->ops->queue_open(f->backend, (uintptr_t)second.queue, &order, &second_queue));
    for (cl_uint seed = 60; seed < 70; seed++) {
        onuma_backend_marker *marker;
        kernel_submit(&f->kernels, KERNEL_FILL, &b.view, b.size / 4, seed, NULL); /* not flushed by us */
        ok(f->ops->marker_record(first_queue, &marker));
        ok(f->ops->queue_wait_marker(second_queue, marker));
        f->ops->marker_destroy(marker);
        assert_int_equal(kernel_run(&second, KERNEL_CHECK, &b.view, b.size / 4, seed), 0);
    }
    f->ops->queue_close(first_queue);
    f->ops->queue_close(second_queue);
    clReleaseCommandQueue(second.queue);
    block_drop(f, &b);
    f->ops->segment_destroy(f->backend, &segment);
}

static void failed_work_is_an_error_and_bad_handles_are_refused(void **state) {
    fixture *f = *state;
    cl_int code;
    onuma_queue_order order = ONUMA_QUEUE_IN_ORDER;
    onuma_backend_queue *queue = NULL;
    assert_int_equal(f->ops->queue_open(f->backend, 0, &order, &queue), ONUMA_ERROR_INVALID_ARGUMENT);

    /* A queue of another context could not use this device's memory. */
    cl_context foreign = clCreateContext(NULL, 1, &f->kernels.device, NULL, NULL, &code);
    kernel_ok(code, "clCreateContext");
    cl_command_queue foreign_queue = clCreateCommandQueue(foreign, f->kernels.device, 0, &code);
    kernel_ok(code, "clCreateCommandQueue");
    assert_int_equal(f->ops->queue_open(f->backend, (uintptr_t)foreign_queue, &order, &queue),
                     ONUMA_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(onuma_last_error(), "onuma_device_from_queue"));
    assert_null(queue);
    clReleaseCommandQueue(foreign_queue);
    clReleaseContext(foreign);

    ok(f->ops->queue_open(f->backend, (uintptr_t)f->kernels.queue, &order, &queue));
    onuma_native_event event = ONUMA_NATIVE_EVENT_INIT;
    onuma_backend_marker *marker = NULL;
    event.api = ONUMA_API_OPENCL;
    assert_int_equal(f->ops->marker_wrap(queue, &event, &marker), ONUMA_ERROR_INVALID_ARGUMENT);
    cl_event user = clCreateUserEvent(f->kernels.context, &code);
    kernel_ok(code, "clCreateUserEvent");
    event.handle = (uintptr_t)user;
    event.api = ONUMA_API_HOST;
    assert_int_equal(f->ops->marker_wrap(queue, &event, &marker), ONUMA_ERROR_INVALID_ARGUMENT);
    assert_null(marker);
    event.api = ONUMA_API_OPENCL;
    ok(f->ops->marker_wrap(queue, &event, &marker));
    assert_false(poll(f, marker));
    kernel_ok(clSetUserEventStatus(user, CL_OUT_OF_RESOURCES), "clSetUserEventStatus");
    bool passed = false;
    assert_int_equal(f->ops->marker_poll(marker, &passed), ONUMA_ERROR_INTERNAL);
    assert_non_null(strstr(onuma_last_error(), "CL_OUT_OF_RESOURCES"));
    assert_false(passed);
    f->ops->marker_destroy(marker);
    clReleaseEvent(user);

    user = clCreateUserEvent(f->kernels.context, &code);
    event.handle = (uintptr_t)user;
    ok(f->ops->marker_wrap(queue, &event, &marker));
    kernel_ok(clSetUserEventStatus(user, CL_DEVICE_NOT_AVAILABLE), "clSetUserEventStatus");
    assert_int_equal(f->ops->marker_poll(marker, &passed), ONUMA_ERROR_DEVICE_LOST);
    f->ops->marker_destroy(marker);
    clReleaseEvent(user);
    f->ops->queue_close(queue);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OPENED(retained_views_outlive_the_runtime),
        OPENED(leaked_segments_stay_mapped),
        OPENED(many_segments_come_and_go),
        OPENED(impossible_sizes_are_refused),
        OPENED(markers_pass_after_the_work),
        OPENED(one_queue_waits_for_another),
        OPENED(failed_work_is_an_error_and_bad_handles_are_refused),
    };
    const struct CMUnitTest pages[] = {OPENED(pages_go_with_the_last_view)};
    int failed = cmocka_run_group_tests_name("lifetimes and queues", tests, NULL, NULL);
    if (strcmp(way(), "import") == 0) /* else the memory is the driver's */
        failed += cmocka_run_group_tests_name("pages", pages, NULL, NULL);
    return failed;
}
