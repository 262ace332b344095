/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intel's unified shared memory that is not shared: it has no maps, so what one side writes never reaches the other
 * but by clEnqueueMemcpyINTEL. The functions are no part of the loader's table; programs ask for them by name. The
 * driver's are kept from the last time that somebody asked: programs with two such drivers are not served.
 */
#include "memory.h"
#include "shadow.h"

#include <stdlib.h>
#include <string.h>

static struct {
    clHostMemAllocINTEL_fn host;
    clSharedMemAllocINTEL_fn shared;
    clMemFreeINTEL_fn free;
    clMemBlockingFreeINTEL_fn blocking_free;
    clSetKernelArgMemPointerINTEL_fn argument;
    clEnqueueMemcpyINTEL_fn copy;
} driver;

static void *follow(cl_context context, void *device, size_t size, cl_int *code) {
    memory one = {.device = device, .size = size, .root_size = size};
    if (!device || !shadow_wants_usm(size)) return device;
    one.host = shadow_host_block(device, size, &one.block);
    if (one.host && memory_add_pointer(&one)) return one.host;
    free(one.block);
    driver.free(context, device);
    if (code) *code = CL_OUT_OF_HOST_MEMORY;
    return NULL;
}

static CL_API_ENTRY void *CL_API_CALL host(cl_context context, const cl_mem_properties_intel *properties, size_t size,
                                           cl_uint alignment, cl_int *code) {
    return follow(context, driver.host(context, properties, size, alignment, code), size, code);
}

static CL_API_ENTRY void *CL_API_CALL shared(cl_context context, cl_device_id device,
                                             const cl_mem_properties_intel *properties, size_t size, cl_uint alignment,
                                             cl_int *code) {
    return follow(context, driver.shared(context, device, properties, size, alignment, code), size, code);
}

static cl_int give_back(clMemFreeINTEL_fn by, cl_context context, void *pointer) {
    memory m = {.device = pointer};
    (void)memory_take_pointer(pointer, &m);
    const cl_int code = by(context, m.device);
    free(m.block);
    return code;
}

static CL_API_ENTRY cl_int CL_API_CALL release(cl_context context, void *pointer) {
    return give_back(driver.free, context, pointer);
}

static CL_API_ENTRY cl_int CL_API_CALL release_blocking(cl_context context, void *pointer) {
    return give_back(driver.blocking_free, context, pointer);
}

static CL_API_ENTRY cl_int CL_API_CALL argument(cl_kernel kernel, cl_uint index, const void *pointer) {
    return driver.argument(kernel, index, shadow_device_pointer(pointer));
}

static CL_API_ENTRY cl_int CL_API_CALL copy(cl_command_queue queue, cl_bool blocking, void *to, const void *from,
                                            size_t size, cl_uint count, const cl_event *after, cl_event *event) {
    return driver.copy(queue, blocking, (void *)(uintptr_t)shadow_device_pointer(to), shadow_device_pointer(from), size,
                       count, after, event);
}

static CL_API_ENTRY void *CL_API_CALL look_up(cl_platform_id platform, const char *name) {
    void *address = layer_next.clGetExtensionFunctionAddressForPlatform(platform, name);
    LAYER_REPLACE(name, address, "clHostMemAllocINTEL", driver.host, host)
    LAYER_REPLACE(name, address, "clSharedMemAllocINTEL", driver.shared, shared)
    LAYER_REPLACE(name, address, "clMemFreeINTEL", driver.free, release)
    LAYER_REPLACE(name, address, "clMemBlockingFreeINTEL", driver.blocking_free, release_blocking)
    LAYER_REPLACE(name, address, "clSetKernelArgMemPointerINTEL", driver.argument, argument)
    LAYER_REPLACE(name, address, "clEnqueueMemcpyINTEL", driver.copy, copy)
    return address;
}

void shadow_install_usm(cl_icd_dispatch *mine) {
    mine->clGetExtensionFunctionAddressForPlatform = look_up;
}
