/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared virtual memory whose addresses the driver does not know: it has memory of its own, and every pointer is
 * translated on its way down. Pointers that lie in memory themselves are not, so kernels that follow such would fail.
 */
#include "memory.h"
#include "shadow.h"

#include <stdlib.h>
#include <string.h>

#define PAGE 4096u

const void *shadow_device_pointer(const void *pointer) {
    memory m;
    return memory_of_pointer(pointer, &m) ? m.device + ((const char *)pointer - m.host) : pointer;
}

void *shadow_host_block(const void *device, size_t size, void **block) {
    const size_t within = (uintptr_t)device % PAGE;
    const size_t whole = (within + size + PAGE - 1) / PAGE * PAGE;
    *block = whole >= size ? aligned_alloc(PAGE, whole) : NULL;
    if (!*block) return NULL;
    memset(*block, 0xa5, whole);
    return (char *)*block + within;
}

static CL_API_ENTRY void *CL_API_CALL allocate(cl_context context, cl_svm_mem_flags flags, size_t size,
                                               cl_uint alignment) {
    memory one = {.size = size, .root_size = size, .flags = flags};
    one.device = layer_next.clSVMAlloc(context, flags, size, alignment);
    if (!one.device || !shadow_wants_svm(flags, size)) return one.device;
    one.host = shadow_host_block(one.device, size, &one.block);
    if (one.host && memory_add_pointer(&one)) return one.host;
    free(one.block);
    layer_next.clSVMFree(context, one.device);
    return NULL;
}

static CL_API_ENTRY void CL_API_CALL release(cl_context context, void *pointer) {
    memory m = {.device = pointer};
    (void)memory_take_pointer(pointer, &m);
    layer_next.clSVMFree(context, m.device);
    free(m.block);
}

/* The program's callback would get the driver's pointers: not offered. */
static CL_API_ENTRY cl_int CL_API_CALL release_queued(cl_command_queue queue, cl_uint number, void *pointers[],
                                                      void(CL_CALLBACK *done)(cl_command_queue, cl_uint, void *[],
                                                                              void *),
                                                      void *user, cl_uint count, const cl_event *after,
                                                      cl_event *event) {
    (void)user;
    if (done) return CL_INVALID_OPERATION;
    cl_int code = layer_next.clFinish(queue); /* the copies that are under way end first */
    for (cl_uint i = 0; i < number && code == CL_SUCCESS; i++) {
        memory m = {.device = pointers[i]};
        (void)memory_take_pointer(pointers[i], &m);
        void *device = m.device;
        const bool last = i + 1 == number;
        code = layer_next.clEnqueueSVMFree(queue, 1, &device, NULL, NULL, count, after, last ? event : NULL);
        free(m.block);
    }
    return code;
}

/* The part of an allocation that a map moves. */
typedef struct range {
    char *host, *device;
    size_t size;
} range;

static range range_of(const memory *m, const void *pointer, size_t size) {
    const size_t granule = shadow_granule() > 1 ? shadow_granule() : 1;
    size_t begin = (size_t)((const char *)pointer - m->host), end = begin + size;
    /* Lines of a cache are lines of addresses, and an allocation need not begin at one. */
    const size_t lead = (uintptr_t)m->device % granule;
    begin -= (begin + lead) % granule < begin ? (begin + lead) % granule : begin;
    end = (end + lead + granule - 1) / granule * granule - lead;
    if (end > m->size) end = m->size;
    return (range){m->host + begin, m->device + begin, end - begin};
}

static CL_API_ENTRY cl_int CL_API_CALL map(cl_command_queue queue, cl_bool blocking, cl_map_flags flags, void *pointer,
                                           size_t size, cl_uint count, const cl_event *after, cl_event *event) {
    memory m;
    if (!memory_of_pointer(pointer, &m))
        return layer_next.clEnqueueSVMMap(queue, blocking, flags, pointer, size, count, after, event);
    if (size == 0 || size > m.size - (size_t)((char *)pointer - m.host)) return CL_INVALID_VALUE;
    const shadow_map made = {NULL, pointer, size, flags};
    const range at = range_of(&m, pointer, size);
    if (flags & CL_MAP_WRITE_INVALIDATE_REGION) return CL_INVALID_VALUE; /* nobody needs it yet */
    if (!shadow_map_add(&made)) return CL_OUT_OF_HOST_MEMORY;
    const cl_int code =
        layer_next.clEnqueueSVMMemcpy(queue, blocking, at.host, at.device, at.size, count, after, event);
    shadow_map undone;
    if (code != CL_SUCCESS) (void)shadow_map_take(NULL, pointer, &undone);
    return code;
}

static CL_API_ENTRY cl_int CL_API_CALL unmap(cl_command_queue queue, void *pointer, cl_uint count,
                                             const cl_event *after, cl_event *event) {
    memory m;
    shadow_map made;
    if (!memory_of_pointer(pointer, &m)) return layer_next.clEnqueueSVMUnmap(queue, pointer, count, after, event);
    if (!shadow_map_take(NULL, pointer, &made)) return CL_INVALID_VALUE;
    const range at = range_of(&m, pointer, made.size);
    const cl_int code = made.flags & CL_MAP_WRITE ? layer_next.clEnqueueSVMMemcpy(queue, CL_FALSE, at.device, at.host,
                                                                                  at.size, count, after, event)
                                                  : layer_next.clEnqueueMarkerWithWaitList(queue, count, after, event);
    if (code != CL_SUCCESS) (void)shadow_map_add(&made);
    return code;
}

static CL_API_ENTRY cl_int CL_API_CALL argument(cl_kernel kernel, cl_uint index, const void *pointer) {
    return layer_next.clSetKernelArgSVMPointer(kernel, index, shadow_device_pointer(pointer));
}

static CL_API_ENTRY cl_int CL_API_CALL execution(cl_kernel kernel, cl_kernel_exec_info what, size_t size,
                                                 const void *value) {
    if (what != CL_KERNEL_EXEC_INFO_SVM_PTRS && what != CL_KERNEL_EXEC_INFO_USM_PTRS_INTEL)
        return layer_next.clSetKernelExecInfo(kernel, what, size, value);
    const size_t number = size / sizeof(void *);
    const void **device = malloc(size + 1);
    if (!device) return CL_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < number; i++)
        device[i] = shadow_device_pointer(((const void *const *)value)[i]);
    const cl_int code = layer_next.clSetKernelExecInfo(kernel, what, size, device);
    free(device);
    return code;
}

static CL_API_ENTRY cl_int CL_API_CALL copy(cl_command_queue queue, cl_bool blocking, void *to, const void *from,
                                            size_t size, cl_uint count, const cl_event *after, cl_event *event) {
    return layer_next.clEnqueueSVMMemcpy(queue, blocking, (void *)(uintptr_t)shadow_device_pointer(to),
                                         shadow_device_pointer(from), size, count, after, event);
}

static CL_API_ENTRY cl_int CL_API_CALL fill(cl_command_queue queue, void *to, const void *pattern, size_t pattern_size,
                                            size_t size, cl_uint count, const cl_event *after, cl_event *event) {
    return layer_next.clEnqueueSVMMemFill(queue, (void *)(uintptr_t)shadow_device_pointer(to), pattern, pattern_size,
                                          size, count, after, event);
}

void shadow_install_svm(cl_icd_dispatch *mine) {
    mine->clSVMAlloc = allocate;
    mine->clSVMFree = release;
    mine->clEnqueueSVMFree = release_queued;
    mine->clEnqueueSVMMap = map;
    mine->clEnqueueSVMUnmap = unmap;
    mine->clSetKernelArgSVMPointer = argument;
    mine->clSetKernelExecInfo = execution;
    mine->clEnqueueSVMMemcpy = copy;
    mine->clEnqueueSVMMemFill = fill;
}
