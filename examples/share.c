/* SPDX-License-Identifier: Apache-2.0 */
#include "bind_opencl.h"

#include <stdio.h>
#include <stdlib.h>

static const char *source = "__kernel void twice(__global float *x) { x[get_global_id(0)] *= 2; }";

static void must(onuma_result result) {
    if (result == ONUMA_OK) return;
    fprintf(stderr, "%s: %s\n", onuma_result_name(result), onuma_last_error());
    exit(1);
}

int main(void) {
    enum { COUNT = 1000000 };
    size_t size = COUNT * sizeof(float), items = COUNT;

    /* An OpenCL device (onuma_device_at(runtime, 0) is the best of all), and a pool of memory that it shares with the CPU. */
    onuma_runtime *runtime;
    must(onuma_runtime_create(NULL, &runtime));
    onuma_device *device;
    must(onuma_device_find(runtime, "opencl:0", &device));
    onuma_pool_desc pool_desc = ONUMA_POOL_DESC_INIT;
    onuma_pool *pool;
    must(onuma_pool_create(device, &pool_desc, &pool));

    /* Your own OpenCL, in the context that the pool's memory belongs to. */
    onuma_device_info info = ONUMA_DEVICE_INFO_INIT;
    must(onuma_device_get_info(device, &info));
    cl_device_id native = (cl_device_id)(uintptr_t)info.native_device;
    cl_context context = (cl_context)(uintptr_t)info.native_context;
    cl_command_queue commands = clCreateCommandQueue(context, native, 0, NULL);
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, NULL);
    if (!commands || clBuildProgram(program, 1, &native, "", NULL, NULL) != CL_SUCCESS) return 1;
    cl_kernel kernel = clCreateKernel(program, "twice", NULL);
    onuma_queue *queue;
    must(onuma_queue_wrap(device, ONUMA_API_OPENCL, (uint64_t)(uintptr_t)commands, NULL, &queue));

    /* The CPU writes. */
    void *block;
    must(onuma_alloc(pool, size, 0, NULL, &block));
    float *x = block;
    must(onuma_host_acquire(block, size, ONUMA_ACCESS_WRITE, ONUMA_TIMEOUT_INFINITE));
    for (size_t i = 0; i < COUNT; i++)
        x[i] = (float)i;
    must(onuma_host_release(block, size, ONUMA_ACCESS_WRITE));

    /* The device works on the same bytes. */
    must(onuma_use(queue, block, ONUMA_ACCESS_READ_WRITE));
    bind_block(kernel, 0, block, device);
    clEnqueueNDRangeKernel(commands, kernel, 1, NULL, &items, NULL, 0, NULL, NULL);
    must(onuma_submitted(queue, NULL));

    /* The CPU reads them. This waits for the kernel; nothing is copied. */
    must(onuma_host_acquire(block, size, ONUMA_ACCESS_READ, ONUMA_TIMEOUT_INFINITE));
    int wrong = 0;
    for (size_t i = 0; i < COUNT; i++)
        wrong += x[i] != 2 * (float)i;
    must(onuma_host_release(block, size, ONUMA_ACCESS_READ));
    printf("%s shares through %s: %d of %d numbers are wrong\n", info.name, info.shared_via, wrong, COUNT);

    must(onuma_free(block, queue));
    must(onuma_queue_release(queue));
    must(onuma_pool_destroy_forced(pool, ONUMA_TIMEOUT_INFINITE));
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseCommandQueue(commands);
    onuma_runtime_destroy(runtime);
    return wrong != 0;
}
