/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver that gives less than it states. Settings: above (sizes beyond it are refused), total (what lives at once,
 * rounded as asked), says (the error: size, memory, resources; memory). SVM and USM are refused with NULL.
 */
#include "memory.h"

static cl_int refusal(void) {
    if (layer_says("says", "size")) return CL_INVALID_BUFFER_SIZE;
    return layer_says("says", "resources") ? CL_OUT_OF_RESOURCES : CL_MEM_OBJECT_ALLOCATION_FAILURE;
}

static bool refused(size_t size) {
    const size_t total = layer_number("total", SIZE_MAX), used = memory_total();
    return size > layer_number("above", SIZE_MAX) || used > total || size > total - used;
}

static CL_API_ENTRY cl_mem CL_API_CALL create(cl_context context, cl_mem_flags flags, size_t size, void *host,
                                              cl_int *code) {
    if (refused(size)) {
        if (code) *code = refusal();
        return NULL;
    }
    cl_mem buffer = layer_next.clCreateBuffer(context, flags, size, host, code);
    const memory one = {.buffer = buffer, .root = buffer, .host = host, .size = size, .root_size = size};
    if (buffer) (void)memory_add_buffer(&one);
    return buffer;
}

static void *follow(void *pointer, size_t size) {
    const memory one = {.host = pointer, .device = pointer, .size = size};
    if (pointer) (void)memory_add_pointer(&one);
    return pointer;
}

static CL_API_ENTRY void *CL_API_CALL allocate(cl_context context, cl_svm_mem_flags flags, size_t size,
                                               cl_uint alignment) {
    return refused(size) ? NULL : follow(layer_next.clSVMAlloc(context, flags, size, alignment), size);
}

static CL_API_ENTRY void CL_API_CALL release(cl_context context, void *pointer) {
    memory gone;
    (void)memory_take_pointer(pointer, &gone);
    layer_next.clSVMFree(context, pointer);
}

/* --------------------------------------------------------------------- USM */

static struct {
    clHostMemAllocINTEL_fn host;
    clSharedMemAllocINTEL_fn shared;
    clMemFreeINTEL_fn free;
} driver;

static void *refuse_usm(cl_int *code) {
    if (code) *code = refusal();
    return NULL;
}

static CL_API_ENTRY void *CL_API_CALL allocate_host(cl_context context, const cl_mem_properties_intel *properties,
                                                    size_t size, cl_uint alignment, cl_int *code) {
    return refused(size) ? refuse_usm(code) : follow(driver.host(context, properties, size, alignment, code), size);
}

static CL_API_ENTRY void *CL_API_CALL allocate_shared(cl_context context, cl_device_id device,
                                                      const cl_mem_properties_intel *properties, size_t size,
                                                      cl_uint alignment, cl_int *code) {
    return refused(size) ? refuse_usm(code)
                         : follow(driver.shared(context, device, properties, size, alignment, code), size);
}

static CL_API_ENTRY cl_int CL_API_CALL release_usm(cl_context context, void *pointer) {
    memory gone;
    (void)memory_take_pointer(pointer, &gone);
    return driver.free(context, pointer);
}

static CL_API_ENTRY void *CL_API_CALL look_up(cl_platform_id platform, const char *name) {
    void *address = layer_next.clGetExtensionFunctionAddressForPlatform(platform, name);
    LAYER_REPLACE(name, address, "clHostMemAllocINTEL", driver.host, allocate_host)
    LAYER_REPLACE(name, address, "clSharedMemAllocINTEL", driver.shared, allocate_shared)
    LAYER_REPLACE(name, address, "clMemFreeINTEL", driver.free, release_usm)
    return address;
}

void layer_install(cl_icd_dispatch *mine) {
    mine->clCreateBuffer = create;
    mine->clSVMAlloc = allocate;
    mine->clSVMFree = release;
    mine->clGetExtensionFunctionAddressForPlatform = look_up;
}
