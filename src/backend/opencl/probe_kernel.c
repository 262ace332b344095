/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The probe's kernel, on a queue of its own. The geometry is always the same: some drivers compile a kernel anew for
 * each size of work-group.
 */
#include "backend/opencl/probe.h"
#include "os/os.h"

#include <stdlib.h>

/* Words where the address allows it, so that a simulator is done before one loses patience; and odd ends by byte. */
static const char source[] = "kernel void opennuma_probe(global uchar *data, uint from, uint count, uint mask) {\n"
                             "    global uchar *first = data + from;\n"
                             "    uint word = mask * 0x01010101u, items = get_global_size(0);\n"
                             "    uint words = ((size_t)first & 3) == 0 ? count / 4 : 0;\n"
                             "    for (uint i = get_global_id(0); i < words; i += items)\n"
                             "        ((global uint *)first)[i] ^= word;\n"
                             "    for (uint i = 4 * words + get_global_id(0); i < count; i += items)\n"
                             "        first[i] ^= (uchar)word;\n"
                             "}\n";

#define ITEMS ((size_t)256)
#define GROUP ((size_t)16)

/* Of all the probe's waiting together; a driver may compile for seconds at the first launch. */
uint64_t onuma__cl_patience(const onuma_backend_device *device) {
    const char *text = device->host->config(device->host, "opencl.patience");
    return text != NULL ? strtoull(text, NULL, 10) : 0;
}

static onuma_result build(onuma__cl_runner *runner) {
    const onuma_backend_device *device = runner->device;
    const onuma__cl *cl = device->cl;
    const char *text = source;
    const size_t length = sizeof source - 1;
    cl_int code;
    runner->program = cl->clCreateProgramWithSource(device->context, 1, &text, &length, &code);
    if (code == CL_SUCCESS)
        code = cl->clBuildProgram(runner->program, 1, &device->facts.device, "", NULL, NULL);
    else
        runner->program = NULL;
    if (code == CL_SUCCESS) return ONUMA_OK;
    const onuma_result r = onuma__cl_fail(device->host, code, "building a kernel for \"%s\"", device->facts.info.name);
    return r == ONUMA_ERROR_DEVICE_LOST ? r : ONUMA_ERROR_NOT_SUPPORTED;
}

onuma_result onuma__cl_runner_open(onuma_backend_device *device, onuma__cl_runner *out) {
    const onuma__cl *cl = device->cl;
    onuma__cl_runner runner = {.device = device, .group = GROUP};
    if (!device->facts.compiles)
        return device->host->fail(ONUMA_ERROR_NOT_SUPPORTED, "device \"%s\" has no compiler", device->facts.info.name);
    size_t most = 0;
    if (cl->clGetDeviceInfo(device->facts.device, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof most, &most, NULL) !=
            CL_SUCCESS ||
        most < GROUP)
        runner.group = 1;
    cl_int code;
    runner.queue = cl->clCreateCommandQueue(device->context, device->facts.device, 0, &code);
    if (code != CL_SUCCESS)
        return onuma__cl_fail(device->host, code, "clCreateCommandQueue on \"%s\"", device->facts.info.name);
    const onuma_result r = build(&runner);
    if (r != ONUMA_OK) {
        onuma__cl_runner_close(&runner);
        return r;
    }
    device->deadline = onuma__os_now() + onuma__cl_patience(device);
    *out = runner;
    return ONUMA_OK;
}

void onuma__cl_runner_close(onuma__cl_runner *runner) {
    if (runner->device->stuck) return;
    if (runner->program != NULL) runner->device->cl->clReleaseProgram(runner->program);
    runner->device->cl->clReleaseCommandQueue(runner->queue);
}

onuma_result onuma__cl_runner_kernel(const onuma__cl_runner *runner, cl_kernel *out) {
    const onuma_backend_device *device = runner->device;
    cl_int code;
    cl_kernel kernel = device->cl->clCreateKernel(runner->program, "opennuma_probe", &code);
    if (code != CL_SUCCESS)
        return onuma__cl_fail(device->host, code, "clCreateKernel on \"%s\"", device->facts.info.name);
    *out = kernel;
    return ONUMA_OK;
}

static cl_int bind_memory(const onuma_backend_device *device, cl_kernel kernel, const onuma__cl_place *place) {
    switch (place->way) {
    case ONUMA__CL_USM:
        return device->facts.set_pointer(kernel, 0, place->pointer);
    case ONUMA__CL_SVM_FINE:
    case ONUMA__CL_SVM_COARSE:
        return device->cl->clSetKernelArgSVMPointer(kernel, 0, place->pointer);
    default:
        return device->cl->clSetKernelArg(kernel, 0, sizeof(cl_mem), &place->memory);
    }
}

onuma_result onuma__cl_runner_run(const onuma__cl_runner *runner, cl_kernel kernel, const onuma__cl_place *place,
                                  unsigned char mask) {
    const onuma_backend_device *device = runner->device;
    const onuma__cl *cl = device->cl;
    const cl_uint numbers[3] = {(cl_uint)place->from, (cl_uint)place->count, mask};
    cl_int code = bind_memory(device, kernel, place);
    for (cl_uint i = 0; code == CL_SUCCESS && i < 3; i++)
        code = cl->clSetKernelArg(kernel, i + 1, sizeof numbers[i], &numbers[i]);
    cl_event event = NULL;
    const size_t items = ITEMS;
    if (code == CL_SUCCESS)
        code = cl->clEnqueueNDRangeKernel(runner->queue, kernel, 1, NULL, &items, &runner->group, 0, NULL, &event);
    if (code != CL_SUCCESS)
        return onuma__cl_fail(device->host, code, "starting a kernel on \"%s\"", device->facts.info.name);
    return onuma__cl_await(runner->device, runner->queue, event, "a kernel");
}
