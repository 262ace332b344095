/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels for tests of real stacks, bound as a program would bind them. Written against the OpenCL loader that the
 * test links, in a context that the library or the test made.
 *
 *     kernel_set k;
 *     kernel_set_open(&k, context, device, 0);
 *     kernel_run(&k, KERNEL_FILL, view, words, seed);    word i of the view becomes pattern(seed, i)
 *     kernel_run(&k, KERNEL_CHECK, view, words, seed);   returns how many words are not
 *     kernel_set_close(&k);
 *
 * Words are for tests at the backend's level. For blocks of any size at any place there are stamps, on bytes:
 *
 *     stamp_submit(&k, view, size, step, seed, NULL);    byte i of the view becomes stamp_byte(seed, i), where
 *                                                        i is a multiple of step or the last one
 *     differ_submit(&k, view, size, step, seed, NULL);   counts those that are not
 *     kernel_wrong(&k);                                  waits, and returns how many since the last call
 */
#ifndef ONUMA_TESTS_KERNEL_H
#define ONUMA_TESTS_KERNEL_H

#include "opennuma/opennuma.h"

#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct kernel_set {
    cl_context context;
    cl_device_id device;
    cl_command_queue queue;
    cl_program program;
    cl_kernel fill, check, stamp, differ;
    cl_mem wrong; /* one counter */
    clSetKernelArgMemPointerINTEL_fn set_usm;
} kernel_set;

typedef enum kernel_which { KERNEL_FILL, KERNEL_CHECK } kernel_which;

#define KERNEL_PATTERN(seed, i) ((seed) ^ ((cl_uint)(i)*2654435761u))

static const char kernel_source[] =
    "kernel void fill(global uint *to, uint first, uint seed) {\n"
    "    uint i = get_global_id(0);\n"
    "    to[first + i] = seed ^ (i * 2654435761u);\n"
    "}\n"
    "kernel void check(global const uint *from, uint first, uint seed, global int *wrong) {\n"
    "    uint i = get_global_id(0);\n"
    "    if (from[first + i] != (seed ^ (i * 2654435761u))) atomic_inc(wrong);\n"
    "}\n"
    "uchar pattern(uint seed, ulong i) { return seed ? (uchar)(seed ^ ((uint)i * 2654435761u >> 24)) : 0; }\n"
    "kernel void stamp(global uchar *to, ulong first, ulong last, ulong step, uint seed) {\n"
    "    ulong i = (ulong)get_global_id(0) * step;\n"
    "    if (i >= last + step) return;\n"
    "    i = min(i, last);\n"
    "    to[first + i] = pattern(seed, i);\n"
    "}\n"
    "kernel void differ(global const uchar *from, ulong first, ulong last, ulong step, uint seed, global int *wrong) "
    "{\n"
    "    ulong i = (ulong)get_global_id(0) * step;\n"
    "    if (i >= last + step) return;\n"
    "    i = min(i, last);\n"
    "    if (from[first + i] != pattern(seed, i)) atomic_inc(wrong);\n"
    "}\n";

/* Of seeds 1 to 255 no two agree in any byte; seed 0 stands for zeroes. */
static inline unsigned char stamp_byte(cl_uint seed, size_t i) {
    return seed != 0 ? (unsigned char)(seed ^ ((cl_uint)i * 2654435761u >> 24)) : 0;
}

static inline void kernel_ok(cl_int code, const char *what) {
    if (code != CL_SUCCESS) fail_msg("%s: OpenCL error %d", what, (int)code);
}

static inline cl_kernel kernel_named(const kernel_set *k, const char *name) {
    cl_int code;
    cl_kernel kernel = clCreateKernel(k->program, name, &code);
    kernel_ok(code, name);
    return kernel;
}

/* Kernels and counter of its own for a set that has program and queue. */
static inline void kernel_set_fill(kernel_set *k) {
    const cl_int zero = 0;
    cl_int code;
    k->fill = kernel_named(k, "fill");
    k->check = kernel_named(k, "check");
    k->stamp = kernel_named(k, "stamp");
    k->differ = kernel_named(k, "differ");
    k->wrong = clCreateBuffer(k->context, CL_MEM_READ_WRITE, sizeof(cl_int), NULL, &code);
    kernel_ok(code, "clCreateBuffer");
    kernel_ok(clEnqueueWriteBuffer(k->queue, k->wrong, CL_TRUE, 0, sizeof zero, &zero, 0, NULL, NULL),
              "clEnqueueWriteBuffer");
}

static inline void kernel_set_open(kernel_set *k, uint64_t context, uint64_t device,
                                   cl_command_queue_properties properties) {
    cl_int code;
    memset(k, 0, sizeof *k);
    k->context = (cl_context)(uintptr_t)context;
    k->device = (cl_device_id)(uintptr_t)device;
    k->queue = clCreateCommandQueue(k->context, k->device, properties, &code);
    kernel_ok(code, "clCreateCommandQueue");
    const char *source = kernel_source;
    k->program = clCreateProgramWithSource(k->context, 1, &source, NULL, &code);
    kernel_ok(code, "clCreateProgramWithSource");
    kernel_ok(clBuildProgram(k->program, 1, &k->device, "", NULL, NULL), "clBuildProgram");
    cl_platform_id platform;
    kernel_ok(clGetDeviceInfo(k->device, CL_DEVICE_PLATFORM, sizeof(cl_platform_id), &platform, NULL),
              "clGetDeviceInfo");
    void *set_usm = clGetExtensionFunctionAddressForPlatform(platform, "clSetKernelArgMemPointerINTEL");
    memcpy(&k->set_usm, &set_usm, sizeof set_usm);
    kernel_set_fill(k);
}

/* The same program on a queue of its own, with kernels of its own: arguments cannot be set from two threads. */
static inline void kernel_set_open_beside(kernel_set *k, const kernel_set *other) {
    cl_int code;
    *k = *other;
    kernel_ok(clRetainProgram(k->program), "clRetainProgram");
    k->queue = clCreateCommandQueue(k->context, k->device, 0, &code);
    kernel_ok(code, "clCreateCommandQueue");
    kernel_set_fill(k);
}

static inline void kernel_set_close(kernel_set *k) {
    clReleaseMemObject(k->wrong);
    clReleaseKernel(k->differ);
    clReleaseKernel(k->stamp);
    clReleaseKernel(k->check);
    clReleaseKernel(k->fill);
    clReleaseProgram(k->program);
    clReleaseCommandQueue(k->queue);
}

/* Bind a view's memory as argument `index`. *offset becomes the byte at which it begins, to be passed beside it. */
static inline void kernel_bind_bytes(kernel_set *k, cl_kernel kernel, cl_uint index, const onuma_view *view,
                                     size_t *offset) {
    *offset = 0;
    if (view->via == ONUMA_VIA_HANDLE) {
        cl_mem memory = (cl_mem)(uintptr_t)view->handle;
        kernel_ok(clSetKernelArg(kernel, index, sizeof memory, &memory), "clSetKernelArg");
        *offset = view->offset;
    } else if (view->via == ONUMA_VIA_SVM) {
        kernel_ok(clSetKernelArgSVMPointer(kernel, index, (void *)(uintptr_t)view->pointer),
                  "clSetKernelArgSVMPointer");
    } else {
        assert_int_equal(view->via, ONUMA_VIA_USM);
        assert_non_null(k->set_usm);
        kernel_ok(k->set_usm(kernel, index, (void *)(uintptr_t)view->pointer), "clSetKernelArgMemPointerINTEL");
    }
}

/* The same, in words. */
static inline void kernel_bind(kernel_set *k, cl_kernel kernel, cl_uint index, const onuma_view *view, cl_uint *first) {
    size_t offset;
    kernel_bind_bytes(k, kernel, index, view, &offset);
    assert_int_equal(offset % sizeof(cl_uint), 0);
    *first = (cl_uint)(offset / sizeof(cl_uint));
}

/* Enqueue only; *event (NULL ok) is the caller's to release. */
static inline void kernel_submit(kernel_set *k, kernel_which which, const onuma_view *view, size_t words, cl_uint seed,
                                 cl_event *event) {
    cl_kernel kernel = which == KERNEL_FILL ? k->fill : k->check;
    cl_uint first;
    kernel_bind(k, kernel, 0, view, &first);
    kernel_ok(clSetKernelArg(kernel, 1, sizeof first, &first), "clSetKernelArg");
    kernel_ok(clSetKernelArg(kernel, 2, sizeof seed, &seed), "clSetKernelArg");
    if (which == KERNEL_CHECK) kernel_ok(clSetKernelArg(kernel, 3, sizeof k->wrong, &k->wrong), "clSetKernelArg");
    kernel_ok(clEnqueueNDRangeKernel(k->queue, kernel, 1, NULL, &words, NULL, 0, NULL, event),
              "clEnqueueNDRangeKernel");
}

/* Run to the end. For KERNEL_CHECK: how many words are wrong. */
static inline cl_int kernel_run(kernel_set *k, kernel_which which, const onuma_view *view, size_t words, cl_uint seed) {
    cl_int wrong = 0;
    cl_event event;
    if (which == KERNEL_CHECK)
        kernel_ok(clEnqueueWriteBuffer(k->queue, k->wrong, CL_TRUE, 0, sizeof wrong, &wrong, 0, NULL, NULL),
                  "clEnqueueWriteBuffer");
    kernel_submit(k, which, view, words, seed, &event);
    kernel_ok(clWaitForEvents(1, &event), "clWaitForEvents");
    clReleaseEvent(event);
    if (which == KERNEL_CHECK)
        kernel_ok(clEnqueueReadBuffer(k->queue, k->wrong, CL_TRUE, 0, sizeof wrong, &wrong, 0, NULL, NULL),
                  "clEnqueueReadBuffer");
    return wrong;
}

/* ------------------------------------------------------------------ stamps */

static inline void stamp_arguments(kernel_set *k, cl_kernel kernel, const onuma_view *view, size_t size, size_t step,
                                   cl_uint seed) {
    size_t offset;
    kernel_bind_bytes(k, kernel, 0, view, &offset);
    const cl_ulong numbers[] = {offset, size - 1, step};
    for (cl_uint i = 0; i < 3; i++)
        kernel_ok(clSetKernelArg(kernel, i + 1, sizeof numbers[i], &numbers[i]), "clSetKernelArg");
    kernel_ok(clSetKernelArg(kernel, 4, sizeof seed, &seed), "clSetKernelArg");
}

/* How many multiples of step there are, and one for a last byte that is none. */
static inline size_t stamp_items(size_t size, size_t step) {
    return (size - 1 + step - 1) / step + 1;
}

/* In groups of one size, whatever the number: PoCL compiles a kernel anew for each size of group. */
static inline void stamp_enqueue(kernel_set *k, cl_kernel kernel, size_t size, size_t step, cl_event *event) {
    const size_t group = 64, items = (stamp_items(size, step) + group - 1) / group * group;
    kernel_ok(clEnqueueNDRangeKernel(k->queue, kernel, 1, NULL, &items, &group, 0, NULL, event),
              "clEnqueueNDRangeKernel");
}

static inline void stamp_submit(kernel_set *k, const onuma_view *view, size_t size, size_t step, cl_uint seed,
                                cl_event *event) {
    stamp_arguments(k, k->stamp, view, size, step, seed);
    stamp_enqueue(k, k->stamp, size, step, event);
}

static inline void differ_submit(kernel_set *k, const onuma_view *view, size_t size, size_t step, cl_uint seed,
                                 cl_event *event) {
    stamp_arguments(k, k->differ, view, size, step, seed);
    kernel_ok(clSetKernelArg(k->differ, 5, sizeof k->wrong, &k->wrong), "clSetKernelArg");
    stamp_enqueue(k, k->differ, size, step, event);
}

/* Lets go of what was bound last, which Rusticl's kernels hold on to. */
static inline void stamps_forget(kernel_set *k) {
    kernel_ok(clSetKernelArg(k->stamp, 0, sizeof k->wrong, &k->wrong), "clSetKernelArg");
    kernel_ok(clSetKernelArg(k->differ, 0, sizeof k->wrong, &k->wrong), "clSetKernelArg");
}

/* How many bytes differed since the last call. Waits for the queue, on events: Rusticl's clFinish may be early. */
static inline cl_int kernel_wrong(kernel_set *k) {
    const cl_int zero = 0;
    cl_int wrong = 0;
    cl_event event;
    kernel_ok(clEnqueueReadBuffer(k->queue, k->wrong, CL_FALSE, 0, sizeof wrong, &wrong, 0, NULL, &event),
              "clEnqueueReadBuffer");
    kernel_ok(clWaitForEvents(1, &event), "clWaitForEvents");
    clReleaseEvent(event);
    kernel_ok(clEnqueueWriteBuffer(k->queue, k->wrong, CL_FALSE, 0, sizeof zero, &zero, 0, NULL, &event),
              "clEnqueueWriteBuffer");
    kernel_ok(clWaitForEvents(1, &event), "clWaitForEvents");
    clReleaseEvent(event);
    return wrong;
}

/* The same by the CPU. */
static inline size_t stamp_at(size_t size, size_t step, size_t item) {
    return item * step < size ? item * step : size - 1;
}

static inline void stamp_bytes(void *to, size_t size, size_t step, cl_uint seed) {
    for (size_t item = 0; size != 0 && item < stamp_items(size, step); item++) {
        const size_t i = stamp_at(size, step, item);
        ((unsigned char *)to)[i] = stamp_byte(seed, i);
    }
}

static inline size_t stamp_differs(const void *from, size_t size, size_t step, cl_uint seed) {
    size_t wrong = 0;
    for (size_t item = 0; size != 0 && item < stamp_items(size, step); item++) {
        const size_t i = stamp_at(size, step, item);
        wrong += ((const unsigned char *)from)[i] != stamp_byte(seed, i);
    }
    return wrong;
}

/* ------------------------------------------------------------------- words */

static inline void pattern_fill(void *to, size_t words, cl_uint seed) {
    for (size_t i = 0; i < words; i++)
        ((cl_uint *)to)[i] = KERNEL_PATTERN(seed, i);
}

static inline size_t pattern_wrong(const void *from, size_t words, cl_uint seed) {
    size_t wrong = 0;
    for (size_t i = 0; i < words; i++)
        wrong += ((const cl_uint *)from)[i] != KERNEL_PATTERN(seed, i);
    return wrong;
}

#endif
