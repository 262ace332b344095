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
    cl_kernel fill, check;
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
    "}\n";

static inline void kernel_ok(cl_int code, const char *what) {
    if (code != CL_SUCCESS) fail_msg("%s: OpenCL error %d", what, (int)code);
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
    k->fill = clCreateKernel(k->program, "fill", &code);
    kernel_ok(code, "clCreateKernel");
    k->check = clCreateKernel(k->program, "check", &code);
    kernel_ok(code, "clCreateKernel");
    k->wrong = clCreateBuffer(k->context, CL_MEM_READ_WRITE, sizeof(cl_int), NULL, &code);
    kernel_ok(code, "clCreateBuffer");
    cl_platform_id platform;
    kernel_ok(clGetDeviceInfo(k->device, CL_DEVICE_PLATFORM, sizeof(cl_platform_id), &platform, NULL),
              "clGetDeviceInfo");
    void *set_usm = clGetExtensionFunctionAddressForPlatform(platform, "clSetKernelArgMemPointerINTEL");
    memcpy(&k->set_usm, &set_usm, sizeof set_usm);
}

static inline void kernel_set_close(kernel_set *k) {
    clReleaseMemObject(k->wrong);
    clReleaseKernel(k->check);
    clReleaseKernel(k->fill);
    clReleaseProgram(k->program);
    clReleaseCommandQueue(k->queue);
}

/* Bind a view as argument `index`. *first becomes the word at which it begins, to be passed beside it. */
static inline void kernel_bind(kernel_set *k, cl_kernel kernel, cl_uint index, const onuma_view *view, cl_uint *first) {
    *first = 0;
    if (view->via == ONUMA_VIA_HANDLE) {
        cl_mem memory = (cl_mem)(uintptr_t)view->handle;
        kernel_ok(clSetKernelArg(kernel, index, sizeof memory, &memory), "clSetKernelArg");
        assert_int_equal(view->offset % sizeof(cl_uint), 0);
        *first = (cl_uint)(view->offset / sizeof(cl_uint));
    } else if (view->via == ONUMA_VIA_SVM) {
        kernel_ok(clSetKernelArgSVMPointer(kernel, index, (void *)(uintptr_t)view->pointer),
                  "clSetKernelArgSVMPointer");
    } else {
        assert_int_equal(view->via, ONUMA_VIA_USM);
        assert_non_null(k->set_usm);
        kernel_ok(k->set_usm(kernel, index, (void *)(uintptr_t)view->pointer), "clSetKernelArgMemPointerINTEL");
    }
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
