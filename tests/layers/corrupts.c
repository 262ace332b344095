/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver that gets one byte wrong, in memory that CPU and device share: a buffer over the program's, SVM, or USM.
 *
 *     when    kernel_out  after a kernel: what the CPU reads of its work
 *             kernel_in   while a kernel runs: what it reads of the CPU's work; as it was afterwards
 *             map, unmap  after those, in the mapped range
 *     at      first, last, odd (an odd place near the middle), page (the last byte of its first page), or a number
 *     from, below, misaligned   as in layer.h
 *
 * `at` counts in what was bound or mapped; in SVM and USM, whose length the driver does not learn, from the pointer to
 * the allocation's end. A byte is inverted by the CPU while the device stands still, so kernels are waited for at
 * once: work that only begins when this thread goes on would hang. Drivers below must share memory really.
 */
#include "memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096u
#define BOUND 64u /* arguments that one kernel call corrupts at most */

/* ------------------------------------------------------------- which byte */

static unsigned char *byte_of(char *host, size_t size) {
    size_t at = layer_number("at", 0);
    if (layer_says("at", "last")) at = size - 1;
    if (layer_says("at", "odd")) at = size > 1 ? size / 2 | 1 : 0;
    if (layer_says("at", "page")) at = PAGE - 1 - (uintptr_t)host % PAGE;
    if (at >= size) at = size - 1;
    return (unsigned char *)host + at;
}

/* ------------------------------------------------------ what is bound where */

typedef struct binding {
    struct binding *next;
    cl_kernel kernel;
    cl_uint index;
    char *host;
    size_t size;
} binding;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list */
static binding *first;

static void bind(cl_kernel kernel, cl_uint index, char *host, size_t size) {
    pthread_mutex_lock(&lock);
    binding *at = first;
    while (at && (at->kernel != kernel || at->index != index))
        at = at->next;
    if (!at && host && (at = calloc(1, sizeof *at)) != NULL) {
        at->next = first;
        first = at;
    }
    if (at) *at = (binding){at->next, kernel, index, host, size};
    pthread_mutex_unlock(&lock);
}

static size_t bytes_bound(cl_kernel kernel, unsigned char *out[BOUND]) {
    size_t count = 0;
    pthread_mutex_lock(&lock);
    for (const binding *at = first; at; at = at->next)
        if (at->kernel == kernel && at->host && count < BOUND && layer_concerns(at->size, at->host))
            out[count++] = byte_of(at->host, at->size);
    pthread_mutex_unlock(&lock);
    return count;
}

static CL_API_ENTRY cl_int CL_API_CALL argument(cl_kernel kernel, cl_uint index, size_t size, const void *value) {
    memory m = {.host = NULL};
    cl_mem buffer = NULL;
    if (size == sizeof(cl_mem) && value) memcpy(&buffer, value, sizeof(cl_mem));
    if (!buffer || !memory_of_buffer(buffer, &m)) m.host = NULL;
    const cl_int code = layer_next.clSetKernelArg(kernel, index, size, value);
    if (code == CL_SUCCESS) bind(kernel, index, m.host, m.size);
    return code;
}

static void bind_pointer(cl_kernel kernel, cl_uint index, const void *pointer) {
    memory m;
    if (memory_of_pointer(pointer, &m))
        bind(kernel, index, (char *)(uintptr_t)pointer, m.size - (size_t)((const char *)pointer - m.host));
    else
        bind(kernel, index, NULL, 0);
}

static CL_API_ENTRY cl_int CL_API_CALL argument_svm(cl_kernel kernel, cl_uint index, const void *pointer) {
    const cl_int code = layer_next.clSetKernelArgSVMPointer(kernel, index, pointer);
    if (code == CL_SUCCESS) bind_pointer(kernel, index, pointer);
    return code;
}

static CL_API_ENTRY cl_kernel CL_API_CALL create_kernel(cl_program program, const char *name, cl_int *code) {
    cl_kernel kernel = layer_next.clCreateKernel(program, name, code);
    pthread_mutex_lock(&lock);
    for (binding *at = first; at; at = at->next)
        if (at->kernel == kernel) at->host = NULL; /* of one that had this handle before */
    pthread_mutex_unlock(&lock);
    return kernel;
}

/* ------------------------------------------------------------- the memory */

static CL_API_ENTRY cl_mem CL_API_CALL create(cl_context context, cl_mem_flags flags, size_t size, void *host,
                                              cl_int *code) {
    cl_mem buffer = layer_next.clCreateBuffer(context, flags, size, host, code);
    const memory one = {.buffer = buffer, .root = buffer, .host = host, .size = size, .root_size = size};
    if (buffer && (flags & CL_MEM_USE_HOST_PTR)) (void)memory_add_buffer(&one);
    return buffer;
}

static CL_API_ENTRY cl_mem CL_API_CALL create_part(cl_mem parent, cl_mem_flags flags, cl_buffer_create_type type,
                                                   const void *region, cl_int *code) {
    memory root;
    cl_mem part = layer_next.clCreateSubBuffer(parent, flags, type, region, code);
    if (!part || !memory_of_buffer(parent, &root)) return part;
    const cl_buffer_region *at = region;
    const memory one = {.buffer = part, .root = parent, .host = root.host + at->origin, .size = at->size};
    (void)memory_add_buffer(&one);
    return part;
}

static void follow(void *pointer, size_t size) {
    const memory one = {.host = pointer, .device = pointer, .size = size};
    if (pointer) (void)memory_add_pointer(&one);
}

static CL_API_ENTRY void *CL_API_CALL allocate(cl_context context, cl_svm_mem_flags flags, size_t size,
                                               cl_uint alignment) {
    void *pointer = layer_next.clSVMAlloc(context, flags, size, alignment);
    follow(pointer, size);
    return pointer;
}

static CL_API_ENTRY void CL_API_CALL release(cl_context context, void *pointer) {
    memory gone;
    (void)memory_take_pointer(pointer, &gone);
    layer_next.clSVMFree(context, pointer);
}

/* ------------------------------------------------------------ the corruption */

static void invert(unsigned char *const *bytes, size_t count) {
    for (size_t i = 0; i < count; i++)
        *bytes[i] ^= 0xff;
}

/* Wait for a command; its event goes to the program, if that wants it. */
static cl_int finish(cl_event own, cl_event *event) {
    const cl_int code = layer_next.clWaitForEvents(1, &own);
    if (event)
        *event = own;
    else
        layer_next.clReleaseEvent(own);
    return code;
}

static CL_API_ENTRY cl_int CL_API_CALL run(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                           const size_t *offset, const size_t *global, const size_t *local,
                                           cl_uint count, const cl_event *after, cl_event *event) {
    unsigned char *bytes[BOUND], seen[BOUND];
    const bool in = layer_says("when", "kernel_in"), out = layer_says("when", "kernel_out");
    const size_t wrong = in || out ? bytes_bound(kernel, bytes) : 0;
    cl_event own;
    if (wrong == 0)
        return layer_next.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, count, after, event);
    if (in) {
        cl_event before;
        cl_int code = layer_next.clEnqueueMarkerWithWaitList(queue, 0, NULL, &before);
        if (code == CL_SUCCESS) code = finish(before, NULL);
        if (code != CL_SUCCESS) return code;
        invert(bytes, wrong);
        for (size_t i = 0; i < wrong; i++)
            seen[i] = *bytes[i];
    }
    cl_int code =
        layer_next.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, count, after, &own);
    if (code == CL_SUCCESS) code = finish(own, event);
    if (out && code == CL_SUCCESS) invert(bytes, wrong);
    for (size_t i = 0; in && i < wrong; i++)
        if (*bytes[i] == seen[i]) *bytes[i] ^= 0xff; /* unless the kernel has written it */
    return code;
}

static void corrupt_range(char *host, size_t size, const char *when) {
    if (host && size != 0 && layer_says("when", when) && layer_concerns(size, host)) *byte_of(host, size) ^= 0xff;
}

static CL_API_ENTRY void *CL_API_CALL map(cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags,
                                          size_t offset, size_t size, cl_uint count, const cl_event *after,
                                          cl_event *event, cl_int *code) {
    cl_event own;
    cl_int own_code;
    (void)blocking;
    if (!code) code = &own_code;
    void *mapped =
        layer_next.clEnqueueMapBuffer(queue, buffer, CL_FALSE, flags, offset, size, count, after, &own, code);
    if (!mapped) return NULL;
    *code = finish(own, event);
    corrupt_range(mapped, size, "map");
    return mapped;
}

static CL_API_ENTRY cl_int CL_API_CALL unmap(cl_command_queue queue, cl_mem buffer, void *mapped, cl_uint count,
                                             const cl_event *after, cl_event *event) {
    memory m;
    cl_event own;
    cl_int code = layer_next.clEnqueueUnmapMemObject(queue, buffer, mapped, count, after, &own);
    if (code == CL_SUCCESS) code = finish(own, event);
    if (code == CL_SUCCESS && memory_of_buffer(buffer, &m))
        corrupt_range(mapped, m.size - (size_t)((char *)mapped - m.host), "unmap");
    return code;
}

static CL_API_ENTRY cl_int CL_API_CALL map_svm(cl_command_queue queue, cl_bool blocking, cl_map_flags flags,
                                               void *pointer, size_t size, cl_uint count, const cl_event *after,
                                               cl_event *event) {
    cl_event own;
    (void)blocking;
    cl_int code = layer_next.clEnqueueSVMMap(queue, CL_FALSE, flags, pointer, size, count, after, &own);
    if (code == CL_SUCCESS) code = finish(own, event);
    if (code == CL_SUCCESS) corrupt_range(pointer, size, "map");
    return code;
}

static CL_API_ENTRY cl_int CL_API_CALL unmap_svm(cl_command_queue queue, void *pointer, cl_uint count,
                                                 const cl_event *after, cl_event *event) {
    memory m;
    cl_event own;
    cl_int code = layer_next.clEnqueueSVMUnmap(queue, pointer, count, after, &own);
    if (code == CL_SUCCESS) code = finish(own, event);
    if (code == CL_SUCCESS && memory_of_pointer(pointer, &m))
        corrupt_range(pointer, m.size - (size_t)((char *)pointer - m.host), "unmap");
    return code;
}

/* --------------------------------------------------------------------- USM */

static struct {
    clHostMemAllocINTEL_fn host;
    clSharedMemAllocINTEL_fn shared;
    clMemFreeINTEL_fn free;
    clSetKernelArgMemPointerINTEL_fn argument;
} driver;

static CL_API_ENTRY void *CL_API_CALL allocate_host(cl_context context, const cl_mem_properties_intel *properties,
                                                    size_t size, cl_uint alignment, cl_int *code) {
    void *pointer = driver.host(context, properties, size, alignment, code);
    follow(pointer, size);
    return pointer;
}

static CL_API_ENTRY void *CL_API_CALL allocate_shared(cl_context context, cl_device_id device,
                                                      const cl_mem_properties_intel *properties, size_t size,
                                                      cl_uint alignment, cl_int *code) {
    void *pointer = driver.shared(context, device, properties, size, alignment, code);
    follow(pointer, size);
    return pointer;
}

static CL_API_ENTRY cl_int CL_API_CALL release_usm(cl_context context, void *pointer) {
    memory gone;
    (void)memory_take_pointer(pointer, &gone);
    return driver.free(context, pointer);
}

static CL_API_ENTRY cl_int CL_API_CALL argument_usm(cl_kernel kernel, cl_uint index, const void *pointer) {
    const cl_int code = driver.argument(kernel, index, pointer);
    if (code == CL_SUCCESS) bind_pointer(kernel, index, pointer);
    return code;
}

static CL_API_ENTRY void *CL_API_CALL look_up(cl_platform_id platform, const char *name) {
    void *address = layer_next.clGetExtensionFunctionAddressForPlatform(platform, name);
    LAYER_REPLACE(name, address, "clHostMemAllocINTEL", driver.host, allocate_host)
    LAYER_REPLACE(name, address, "clSharedMemAllocINTEL", driver.shared, allocate_shared)
    LAYER_REPLACE(name, address, "clMemFreeINTEL", driver.free, release_usm)
    LAYER_REPLACE(name, address, "clSetKernelArgMemPointerINTEL", driver.argument, argument_usm)
    return address;
}

void layer_install(cl_icd_dispatch *mine) {
    mine->clCreateBuffer = create;
    mine->clCreateSubBuffer = create_part;
    mine->clSVMAlloc = allocate;
    mine->clSVMFree = release;
    mine->clSetKernelArg = argument;
    mine->clSetKernelArgSVMPointer = argument_svm;
    mine->clCreateKernel = create_kernel;
    mine->clEnqueueNDRangeKernel = run;
    mine->clEnqueueMapBuffer = map;
    mine->clEnqueueUnmapMemObject = unmap;
    mine->clEnqueueSVMMap = map_svm;
    mine->clEnqueueSVMUnmap = unmap_svm;
    mine->clGetExtensionFunctionAddressForPlatform = look_up;
}
