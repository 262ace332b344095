/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of the public functions on a real stack: a runtime with the stack's device, kernels in its context, and
 * their queue wrapped. Programs see no more than this.
 */
#ifndef ONUMA_TESTS_API_FIXTURE_H
#define ONUMA_TESTS_API_FIXTURE_H

#include "../unit/api/api.h"
#include "kernel.h"

#include <time.h>

#define FOREVER ONUMA_TIMEOUT_INFINITE

typedef struct fixture {
    api_lines lines;
    onuma_runtime *rt;
    onuma_device *device;
    onuma_device_info info;
    onuma_pool *pool; /* of kind shared */
    kernel_set kernels;
    onuma_queue *queue; /* that of the kernels */
} fixture;

static inline const char *way(void) {
    return getenv("ONUMA_TEST_WAY");
}

static inline bool on_stack(const char *name) {
    return strcmp(getenv("ONUMA_TEST_STACK"), name) == 0;
}

/* The simulator checks every access, and takes its time. */
static inline bool slow(void) {
    return on_stack("oclgrind");
}

/* Whether shared memory is bound by pointer. */
static inline bool by_pointer(void) {
    return strcmp(way(), "import") != 0;
}

static inline onuma_via way_via(void) {
    return !by_pointer() ? ONUMA_VIA_HANDLE : strcmp(way(), "usm") == 0 ? ONUMA_VIA_USM : ONUMA_VIA_SVM;
}

/* Every byte of up to five pages, and of more as many as do not take long. */
static inline size_t step_for(size_t size) {
    const size_t items = slow() ? 2048 : 1 << 16;
    return size <= 5 * 4096 || size <= items ? 1 : (size / items) | 1;
}

static inline onuma_queue *wrap(const fixture *f, cl_command_queue native) {
    onuma_queue *queue;
    OK(onuma_queue_wrap(f->device, ONUMA_API_OPENCL, (uintptr_t)native, NULL, &queue));
    return queue;
}

static inline onuma_pool *pool_of(const fixture *f, onuma_kind kind) {
    onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
    onuma_pool *pool;
    desc.kind = kind;
    OK(onuma_pool_create(f->device, &desc, &pool));
    return pool;
}

static inline onuma_view view_of(const fixture *f, void *ptr) {
    onuma_view view = ONUMA_VIEW_INIT;
    OK(onuma_view_get(ptr, f->device, ONUMA_API_OPENCL, &view));
    return view;
}

static inline void *alloc(onuma_pool *pool, size_t size, onuma_queue *queue) {
    void *block;
    OK(onuma_alloc(pool, size, 0, queue, &block));
    assert_non_null(block);
    return block;
}

static inline int set_up(void **state) {
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->rt = api_runtime(NULL, &f->lines);
    f->device = api_device(f->rt);
    f->pool = pool_of(f, ONUMA_KIND_SHARED); /* which opens the device */
    f->info = (onuma_device_info)ONUMA_DEVICE_INFO_INIT;
    OK(onuma_device_get_info(f->device, &f->info));
    kernel_set_open(&f->kernels, f->info.native_context, f->info.native_device, 0);
    f->queue = wrap(f, f->kernels.queue);
    *state = f;
    return 0;
}

/* Nothing lives; all that queues used comes back; reserved is nothing. */
static inline void expect_empty(onuma_pool *pool) {
    onuma_pool_stats stats;
    for (int i = 0; i < 100; i++) {
        OK(onuma_pool_trim(pool, 0, NULL));
        stats = api_stats(pool);
        if (stats.reserved_bytes == 0) break;
    }
    assert_int_equal(stats.in_use_bytes, 0);
    assert_int_equal(stats.in_use_blocks, 0);
    assert_int_equal(stats.requested_bytes, 0);
    assert_int_equal(stats.pending_bytes, 0);
    assert_int_equal(stats.reserved_bytes, 0);
    assert_int_equal(stats.alloc_count, stats.free_count);
    assert_int_equal(stats.segment_alloc_count, stats.segment_free_count);
}

static inline int tear_down(void **state) {
    fixture *f = *state;
    expect_empty(f->pool);
    OK(onuma_pool_destroy(f->pool));
    OK(onuma_queue_release(f->queue));
    kernel_set_close(&f->kernels);
    onuma_runtime_destroy(f->rt);
    if (f->lines.count != 0) fail_msg("%zu lines, first: %s", (size_t)f->lines.count, f->lines.text[0]);
    free(f);
    return 0;
}

/* ------------------------------------------------- both sides, as programs do */

static inline void cpu_stamps(char *at, size_t size, cl_uint seed) {
    OK(onuma_host_acquire(at, size, ONUMA_ACCESS_WRITE, FOREVER));
    stamp_bytes(at, size, step_for(size), seed);
    OK(onuma_host_release(at, size, ONUMA_ACCESS_WRITE));
}

static inline size_t cpu_differs(char *at, size_t size, cl_uint seed) {
    OK(onuma_host_acquire(at, size, ONUMA_ACCESS_READ, FOREVER));
    const size_t wrong = stamp_differs(at, size, step_for(size), seed);
    OK(onuma_host_release(at, size, ONUMA_ACCESS_READ));
    return wrong;
}

/* Announced and submitted, not waited for. */
static inline void device_stamps(fixture *f, char *at, size_t size, cl_uint seed) {
    const onuma_view view = view_of(f, at);
    if (size == 0) return;
    OK(onuma_use(f->queue, at, ONUMA_ACCESS_WRITE));
    stamp_submit(&f->kernels, &view, size, step_for(size), seed, NULL);
    OK(onuma_submitted(f->queue, NULL));
}

static inline cl_int device_differs(fixture *f, char *at, size_t size, cl_uint seed) {
    const onuma_view view = view_of(f, at);
    if (size == 0) return 0;
    OK(onuma_use(f->queue, at, ONUMA_ACCESS_READ));
    differ_submit(&f->kernels, &view, size, step_for(size), seed, NULL);
    OK(onuma_submitted(f->queue, NULL));
    return kernel_wrong(&f->kernels);
}

/* ------------------------------------------------------------------- gates */

/* Oclgrind has no use for gates: its clFlush is clFinish, which never returns while one is closed. */
static inline bool has_gates(void) {
    return !on_stack("oclgrind");
}

/* All that is submitted to a queue from now on waits until we open the gate; NULL where there are none. */
static inline cl_event gate_close(const fixture *f, cl_command_queue native) {
    cl_int code;
    if (!has_gates()) return NULL;
    cl_event gate = clCreateUserEvent(f->kernels.context, &code);
    kernel_ok(code, "clCreateUserEvent");
    kernel_ok(clEnqueueBarrierWithWaitList(native, 1, &gate, NULL), "clEnqueueBarrierWithWaitList");
    return gate;
}

static inline void gate_open(cl_event gate) {
    if (gate == NULL) return;
    kernel_ok(clSetUserEventStatus(gate, CL_COMPLETE), "clSetUserEventStatus");
    clReleaseEvent(gate);
}

static inline void drain(fixture *f) {
    (void)kernel_wrong(&f->kernels);
}

/* A millisecond, for what ends by itself. */
static inline void nap(void) {
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

#endif
