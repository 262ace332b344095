/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain OpenCL for the layers' own tests: no library in between. A `raw_memory` is memory that CPU and device share,
 * as a buffer over pages of the test, a part of one, SVM, or Intel's USM, which has no maps; kernels are those of tests/stack/kernel.h.
 */
#ifndef ONUMA_TESTS_LAYER_RAW_H
#define ONUMA_TESTS_LAYER_RAW_H

#include "control.h"
#include "kernel.h"

#include <stdbool.h>

typedef struct raw {
    cl_platform_id platform;
    clSharedMemAllocINTEL_fn usm_allocate;
    clMemFreeINTEL_fn usm_release;
    kernel_set k;
} raw;

typedef struct raw_memory {
    const raw *of;
    cl_mem buffer; /* NULL: SVM or USM */
    bool usm;
    unsigned char *host;
    size_t size;
    void *pages; /* freed with it; NULL: not its own */
} raw_memory;

static inline void raw_open(raw *r) {
    cl_device_id device;
    cl_int code;
    kernel_ok(clGetPlatformIDs(1, &r->platform, NULL), "clGetPlatformIDs");
    kernel_ok(clGetDeviceIDs(r->platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
    void *allocate = clGetExtensionFunctionAddressForPlatform(r->platform, "clSharedMemAllocINTEL");
    void *release = clGetExtensionFunctionAddressForPlatform(r->platform, "clMemFreeINTEL");
    memcpy(&r->usm_allocate, &allocate, sizeof allocate);
    memcpy(&r->usm_release, &release, sizeof release);
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    kernel_ok(code, "clCreateContext");
    kernel_set_open(&r->k, (uintptr_t)context, (uintptr_t)device, 0);
}

static inline void raw_close(raw *r) {
    kernel_set_close(&r->k);
    clReleaseContext(r->k.context);
}

/* At `misalign` bytes from the start of a page. */
static inline raw_memory raw_import(const raw *r, size_t size, size_t misalign) {
    raw_memory m = {.of = r, .size = size};
    cl_int code;
    m.pages = aligned_alloc(4096, (misalign + size + 4095) / 4096 * 4096);
    assert_non_null(m.pages);
    m.host = (unsigned char *)m.pages + misalign;
    memset(m.host, 0, size);
    m.buffer = clCreateBuffer(r->k.context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, size, m.host, &code);
    kernel_ok(code, "clCreateBuffer");
    return m;
}

static inline raw_memory raw_part(const raw_memory *whole, size_t origin, size_t size) {
    const cl_buffer_region region = {origin, size};
    raw_memory m = {.of = whole->of, .host = whole->host + origin, .size = size};
    cl_int code;
    m.buffer = clCreateSubBuffer(whole->buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    kernel_ok(code, "clCreateSubBuffer");
    return m;
}

static inline raw_memory raw_svm(const raw *r, size_t size, cl_svm_mem_flags grain) {
    raw_memory m = {.of = r, .size = size};
    m.host = clSVMAlloc(r->k.context, CL_MEM_READ_WRITE | grain, size, 0);
    assert_non_null(m.host);
    return m;
}

static inline raw_memory raw_usm(const raw *r, size_t size) {
    raw_memory m = {.of = r, .usm = true, .size = size};
    cl_int code;
    assert_non_null(r->usm_allocate);
    m.host = r->usm_allocate(r->k.context, r->k.device, NULL, size, 0, &code);
    kernel_ok(code, "clSharedMemAllocINTEL");
    return m;
}

static inline void raw_free(raw_memory *m) {
    if (m->buffer)
        clReleaseMemObject(m->buffer);
    else if (m->usm)
        kernel_ok(m->of->usm_release(m->of->k.context, m->host), "clMemFreeINTEL");
    else
        clSVMFree(m->of->k.context, m->host);
    free(m->pages);
}

static inline onuma_view raw_view(const raw_memory *m) {
    onuma_view view = ONUMA_VIEW_INIT;
    view.via = m->buffer ? ONUMA_VIA_HANDLE : m->usm ? ONUMA_VIA_USM : ONUMA_VIA_SVM;
    view.handle = (uintptr_t)m->buffer;
    view.pointer = (uintptr_t)m->host;
    view.size = m->size;
    return view;
}

/* The device writes all of it, to the end. */
static inline void raw_device_write(raw *r, const raw_memory *m, cl_uint seed) {
    const onuma_view view = raw_view(m);
    cl_event event;
    stamp_submit(&r->k, &view, m->size, 1, seed, &event);
    kernel_ok(clWaitForEvents(1, &event), "clWaitForEvents");
    clReleaseEvent(event);
    stamps_forget(&r->k);
}

/* How many bytes the device finds wrong. */
static inline size_t raw_device_wrong(raw *r, const raw_memory *m, cl_uint seed) {
    const onuma_view view = raw_view(m);
    differ_submit(&r->k, &view, m->size, 1, seed, NULL);
    const size_t wrong = (size_t)kernel_wrong(&r->k);
    stamps_forget(&r->k);
    return wrong;
}

static inline void raw_cpu_write(const raw_memory *m, cl_uint seed) {
    stamp_bytes(m->host, m->size, 1, seed);
}

static inline size_t raw_cpu_wrong(const raw_memory *m, cl_uint seed) {
    return stamp_differs(m->host, m->size, 1, seed);
}

static inline void raw_map(const raw_memory *m, cl_map_flags flags) {
    cl_int code;
    cl_event event;
    void *mapped = m->host;
    if (m->usm) return;
    if (m->buffer)
        mapped = clEnqueueMapBuffer(m->of->k.queue, m->buffer, CL_FALSE, flags, 0, m->size, 0, NULL, &event, &code);
    else
        code = clEnqueueSVMMap(m->of->k.queue, CL_FALSE, flags, m->host, m->size, 0, NULL, &event);
    kernel_ok(code, "mapping");
    assert_ptr_equal(mapped, m->host);
    kernel_ok(clWaitForEvents(1, &event), "clWaitForEvents");
    clReleaseEvent(event);
}

static inline void raw_unmap(const raw_memory *m) {
    cl_event event;
    if (m->usm) return;
    kernel_ok(m->buffer ? clEnqueueUnmapMemObject(m->of->k.queue, m->buffer, m->host, 0, NULL, &event)
                        : clEnqueueSVMUnmap(m->of->k.queue, m->host, 0, NULL, &event),
              "unmapping");
    kernel_ok(clWaitForEvents(1, &event), "clWaitForEvents");
    clReleaseEvent(event);
}

/* Whether what one side writes is there for the other with no map in between. Seeds other than 1 to 4 are free. */
static inline bool raw_is_shared(raw *r, const raw_memory *m) {
    raw_device_write(r, m, 1);
    const bool seen = raw_cpu_wrong(m, 1) == 0;
    raw_cpu_write(m, 2);
    return raw_device_wrong(r, m, 2) == 0 && seen;
}

/* What OpenCL promises to those that map and unmap, whatever the driver does beneath. */
static inline void raw_check_maps(raw *r, const raw_memory *m) {
    raw_device_write(r, m, 1);
    raw_map(m, CL_MAP_READ);
    assert_int_equal(raw_cpu_wrong(m, 1), 0);
    raw_unmap(m);
    raw_map(m, CL_MAP_READ | CL_MAP_WRITE);
    raw_cpu_write(m, 2);
    raw_unmap(m);
    assert_int_equal(raw_device_wrong(r, m, 2), 0);
    raw_map(m, CL_MAP_WRITE);
    assert_int_equal(raw_cpu_wrong(m, 2), 0);
    m->host[m->size - 1] ^= 0xff;
    raw_unmap(m);
    assert_int_equal(raw_device_wrong(r, m, 2), 1);
}

/* That neither side's writes reach the other before a map or an unmap, and none at all through a map for reading. */
static inline void raw_check_private(raw *r, const raw_memory *m) {
    raw_map(m, CL_MAP_WRITE);
    raw_cpu_write(m, 1);
    raw_unmap(m);
    raw_device_write(r, m, 2);
    assert_int_equal(raw_cpu_wrong(m, 1), 0);
    raw_cpu_write(m, 3);
    assert_int_equal(raw_device_wrong(r, m, 2), 0);
    raw_map(m, CL_MAP_READ);
    assert_int_equal(raw_cpu_wrong(m, 2), 0);
    raw_cpu_write(m, 4);
    raw_unmap(m);
    assert_int_equal(raw_device_wrong(r, m, 2), 0);
}

static inline bool raw_way_is(const char *way) {
    const char *name = getenv("ONUMA_TEST_WAY");
    return name && strcmp(name, way) == 0;
}

/* As the way of this run has it. */
static inline raw_memory raw_shared(const raw *r, size_t size) {
    if (raw_way_is("usm")) return raw_usm(r, size);
    if (raw_way_is("svm_fine")) return raw_svm(r, size, CL_MEM_SVM_FINE_GRAIN_BUFFER);
    if (raw_way_is("svm_coarse")) return raw_svm(r, size, 0);
    return raw_import(r, size, 0);
}

/* The one of a test program, open while its tests run. */
static raw r;

static inline int raw_set_up(void **state) {
    (void)state;
    raw_open(&r);
    return 0;
}

static inline int raw_tear_down(void **state) {
    (void)state;
    raw_close(&r);
    return 0;
}

#endif
