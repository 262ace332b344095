/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels through OpenCL, in the context that the library opened, on a queue of the demo's own. */
#include "demo/files.h"
#include "demo/runner.h"
#include "opencl/loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef cl_int(CL_API_CALL *set_usm_argument)(cl_kernel kernel, cl_uint index, const void *pointer);

typedef struct opencl_queue {
    const cli_opencl *cl;
    set_usm_argument set_usm; /* NULL where the driver has no such memory */
    cl_context context;
    cl_command_queue queue;
    cl_program program;
    cl_kernel kernels[KERNEL_COUNT];
    cl_event last; /* of the latest kernel; NULL if none */
    cl_event gate; /* NULL while it is open */
} opencl_queue;

static bool check(runner *r, cl_int code, const char *what) {
    if (code == CL_SUCCESS) return true;
    return runner_fail(r, "%s: %s (%d)", what, cli_opencl_error_name(code), (int)code);
}

static void find_usm(opencl_queue *q, cl_device_id device) {
    cl_platform_id platform = NULL;
    if (q->cl->clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL) != CL_SUCCESS) return;
    void *found = q->cl->clGetExtensionFunctionAddressForPlatform(platform, "clSetKernelArgMemPointerINTEL");
    memcpy(&q->set_usm, &found, sizeof found); /* ISO C has no conversion to function pointers */
}

static bool build_program(runner *r, opencl_queue *q, cl_device_id device) {
    cl_int code;
    const char *source = (const char *)demo_file_kernels;
    q->program = q->cl->clCreateProgramWithSource(q->context, 1, &source, &demo_file_kernels_size, &code);
    if (!check(r, code, "clCreateProgramWithSource")) return false;
    code = q->cl->clBuildProgram(q->program, 1, &device, "-cl-std=CL1.2", NULL, NULL);
    if (code != CL_SUCCESS) {
        char log[256] = "";
        q->cl->clGetProgramBuildInfo(q->program, device, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
        return runner_fail(r, "clBuildProgram: %s (%d): %s", cli_opencl_error_name(code), (int)code, log);
    }
    return true;
}

/* Kernels of its own, since arguments are theirs; of the program of the queue beside it, if there is one. */
static bool create_kernels(runner *r, opencl_queue *q, cl_device_id device, const runner *beside) {
    if (!beside && !build_program(r, q, device)) return false;
    cl_program program = beside ? ((const opencl_queue *)beside->own)->program : q->program;
    cl_int code;
    for (int i = 0; i < KERNEL_COUNT; i++) {
        const char *name = kernel_get((kernel_id)i)->name;
        q->kernels[i] = q->cl->clCreateKernel(program, name, &code);
        if (code != CL_SUCCESS)
            return runner_fail(r, "clCreateKernel(%s): %s (%d)", name, cli_opencl_error_name(code), (int)code);
    }
    return true;
}

static void opencl_close(runner *r) {
    opencl_queue *q = r->own;
    if (q->last) q->cl->clReleaseEvent(q->last);
    for (int i = 0; i < KERNEL_COUNT; i++)
        if (q->kernels[i]) q->cl->clReleaseKernel(q->kernels[i]);
    if (q->program) q->cl->clReleaseProgram(q->program);
    if (q->queue) q->cl->clReleaseCommandQueue(q->queue);
    free(q);
}

/* Some drivers refuse queues that may overtake, others do not say that theirs never do. */
static cl_command_queue create_queue(runner *r, opencl_queue *q, cl_device_id device, cl_int *code) {
    cl_command_queue queue = NULL;
    if (r->unordered)
        queue = q->cl->clCreateCommandQueue(q->context, device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, code);
    if (queue) return queue;
    r->unordered = false;
    return q->cl->clCreateCommandQueue(q->context, device, 0, code);
}

static bool opencl_open(runner *r, const runner *beside) {
    const char *why = "";
    const cli_opencl *cl = cli_opencl_load(&why);
    if (!cl) return runner_fail(r, "OpenCL cannot be loaded: %s", why);
    cl_int code;
    cl_device_id device = (cl_device_id)(uintptr_t)r->info.native_device;
    opencl_queue *q = cli_allocate(sizeof *q);
    *q = (opencl_queue){.cl = cl, .context = (cl_context)(uintptr_t)r->info.native_context};
    r->own = q;
    find_usm(q, device);
    q->queue = create_queue(r, q, device, &code);
    if (!check(r, code, "clCreateCommandQueue") || !create_kernels(r, q, device, beside)) {
        opencl_close(r);
        return false;
    }
    r->native_queue = (uint64_t)(uintptr_t)q->queue;
    return true;
}

/* ---------------------------------------------------------------- launching */

static cl_int set_view(opencl_queue *q, cl_kernel kernel, cl_uint index, const onuma_view *view) {
    const void *pointer = (const void *)(uintptr_t)view->pointer;
    cl_mem handle = (cl_mem)(uintptr_t)view->handle;
    switch (view->via) {
    case ONUMA_VIA_SVM:
        return q->cl->clSetKernelArgSVMPointer ? q->cl->clSetKernelArgSVMPointer(kernel, index, pointer)
                                               : CL_INVALID_OPERATION;
    case ONUMA_VIA_USM:
        return q->set_usm ? q->set_usm(kernel, index, pointer) : CL_INVALID_OPERATION;
    case ONUMA_VIA_HANDLE:
        return q->cl->clSetKernelArg(kernel, index, sizeof handle, &handle);
    default:
        return CL_INVALID_ARG_VALUE;
    }
}

/* A tensor takes two arguments: the base, and the offset in bytes, which pointers already include. */
static bool set_arguments(runner *r, kernel_id id, const runner_binding *bindings) {
    opencl_queue *q = r->own;
    cl_kernel kernel = q->kernels[id];
    cl_uint index = 0;
    for (size_t i = 0; kernel_get(id)->signature[i]; i++) {
        const runner_binding *from = &bindings[i];
        cl_ulong offset = 0;
        cl_int code;
        if (from->kind == RUNNER_NUMBER) {
            code = q->cl->clSetKernelArg(kernel, index++, sizeof from->number, &from->number);
        } else {
            if (from->kind == RUNNER_BUFFER) {
                cl_mem handle = (cl_mem)(uintptr_t)from->buffer->handle;
                code = q->cl->clSetKernelArg(kernel, index++, sizeof handle, &handle);
            } else {
                code = set_view(q, kernel, index++, &from->view);
                if (from->view.via == ONUMA_VIA_HANDLE) offset = from->view.offset;
            }
            if (code == CL_SUCCESS) code = q->cl->clSetKernelArg(kernel, index++, sizeof offset, &offset);
        }
        if (code != CL_SUCCESS)
            return runner_fail(r, "argument %zu of %s: %s (%d)", i, kernel_get(id)->name, cli_opencl_error_name(code),
                               (int)code);
    }
    return true;
}

static bool opencl_enqueue(runner *r, kernel_id kernel, size_t items, const runner_binding *bindings) {
    opencl_queue *q = r->own;
    const size_t *group = kernel_get(kernel)->group ? &kernel_get(kernel)->group : NULL;
    cl_event event;
    if (!set_arguments(r, kernel, bindings)) return false;
    cl_int code = q->cl->clEnqueueNDRangeKernel(q->queue, q->kernels[kernel], 1, NULL, &items, group, q->gate ? 1 : 0,
                                                q->gate ? &q->gate : NULL, &event);
    if (!check(r, code, "clEnqueueNDRangeKernel")) return false;
    if (q->last) q->cl->clReleaseEvent(q->last);
    q->last = event;
    return true;
}

/* On the last kernel's event: clFinish alone can return before the work is done on Rusticl. */
static bool opencl_finish(runner *r) {
    opencl_queue *q = r->own;
    if (q->last && !check(r, q->cl->clWaitForEvents(1, &q->last), "clWaitForEvents")) return false;
    return check(r, q->cl->clFinish(q->queue), "clFinish");
}

static bool opencl_gate_close(runner *r) {
    opencl_queue *q = r->own;
    cl_int code;
    q->gate = q->cl->clCreateUserEvent(q->context, &code);
    return check(r, code, "clCreateUserEvent");
}

static void opencl_gate_open(runner *r) {
    opencl_queue *q = r->own;
    q->cl->clSetUserEventStatus(q->gate, CL_COMPLETE);
    q->cl->clReleaseEvent(q->gate);
    q->gate = NULL;
}

/* ---------------------------------------------------------------- the default way */

static bool opencl_buffer_create(runner *r, runner_buffer *buffer) {
    opencl_queue *q = r->own;
    cl_int code;
    cl_mem memory = q->cl->clCreateBuffer(q->context, CL_MEM_READ_WRITE, buffer->size, NULL, &code);
    buffer->handle = (uint64_t)(uintptr_t)memory;
    return check(r, code, "clCreateBuffer");
}

static void opencl_buffer_destroy(runner *r, runner_buffer *buffer) {
    opencl_queue *q = r->own;
    q->cl->clReleaseMemObject((cl_mem)(uintptr_t)buffer->handle);
}

static bool opencl_buffer_write(runner *r, const runner_buffer *buffer, const void *from) {
    opencl_queue *q = r->own;
    return check(r,
                 q->cl->clEnqueueWriteBuffer(q->queue, (cl_mem)(uintptr_t)buffer->handle, CL_TRUE, 0, buffer->size,
                                             from, 0, NULL, NULL),
                 "clEnqueueWriteBuffer");
}

static bool opencl_buffer_read(runner *r, const runner_buffer *buffer, void *to) {
    opencl_queue *q = r->own;
    return check(r,
                 q->cl->clEnqueueReadBuffer(q->queue, (cl_mem)(uintptr_t)buffer->handle, CL_TRUE, 0, buffer->size, to,
                                            0, NULL, NULL),
                 "clEnqueueReadBuffer");
}

const runner_ops runner_opencl_ops = {
    .api = ONUMA_API_OPENCL,
    .default_way = "clCreateBuffer, with clEnqueueWriteBuffer and clEnqueueReadBuffer",
    .open = opencl_open,
    .close = opencl_close,
    .enqueue = opencl_enqueue,
    .finish = opencl_finish,
    .gate_close = opencl_gate_close,
    .gate_open = opencl_gate_open,
    .buffer_create = opencl_buffer_create,
    .buffer_destroy = opencl_buffer_destroy,
    .buffer_write = opencl_buffer_write,
    .buffer_read = opencl_buffer_read,
};
