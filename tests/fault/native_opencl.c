/* SPDX-License-Identifier: Apache-2.0 */
/* Queues of a real OpenCL driver in the device's own context. What does not end by itself waits for a user event. */
#include "script.h"

#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

static cl_context context;
static cl_command_queue queues[SCRIPT_QUEUES];
static cl_event gates[SCRIPT_QUEUES], last[SCRIPT_QUEUES];

static void must(cl_int code, const char *what) {
    if (code == CL_SUCCESS) return;
    fprintf(stderr, "%s gives %d, and no fault was meant for it\n", what, (int)code);
    abort();
}

static void open(uint64_t native_context, uint64_t native_device) {
    cl_int code = CL_SUCCESS;
    context = (cl_context)(uintptr_t)native_context;
    if (context == NULL) return; /* the device could not be opened */
    for (unsigned i = 0; i < SCRIPT_QUEUES; i++) {
        queues[i] = clCreateCommandQueue(context, (cl_device_id)(uintptr_t)native_device, 0, &code);
        must(code, "clCreateCommandQueue");
    }
}

static void end(unsigned i) {
    if (gates[i] == NULL) return;
    must(clSetUserEventStatus(gates[i], CL_COMPLETE), "clSetUserEventStatus");
    must(clFinish(queues[i]), "clFinish");
    clReleaseEvent(gates[i]);
    clReleaseEvent(last[i]);
    gates[i] = last[i] = NULL;
}

static void close(void) {
    for (unsigned i = 0; i < SCRIPT_QUEUES; i++) {
        end(i);
        if (queues[i] != NULL) clReleaseCommandQueue(queues[i]);
        queues[i] = NULL;
    }
}

static uint64_t queue(unsigned i) {
    return (uintptr_t)queues[i];
}

static void begin(unsigned i, onuma_native_event *event) {
    cl_int code = CL_SUCCESS;
    gates[i] = clCreateUserEvent(context, &code);
    must(code, "clCreateUserEvent");
    must(clEnqueueMarkerWithWaitList(queues[i], 1, &gates[i], &last[i]), "clEnqueueMarkerWithWaitList");
    event->api = ONUMA_API_OPENCL;
    event->handle = (uintptr_t)last[i];
}

const native_calls native_opencl = {ONUMA_API_OPENCL, "opencl:0", "log:warn", open, close, queue, begin, end};
