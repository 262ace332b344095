/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers over the program's memory, which the driver copies instead. */
#include "memory.h"
#include "shadow.h"

#include <string.h>

#define HOST_ACCESS (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS)

/* As the driver gets them: the copying needs access that the program may have renounced. */
static cl_mem_flags private_flags(cl_mem_flags flags) {
    return (flags & ~(cl_mem_flags)(CL_MEM_USE_HOST_PTR | HOST_ACCESS)) | CL_MEM_COPY_HOST_PTR;
}

static bool wanted(cl_mem_flags flags, size_t size, const void *host) {
    return (flags & CL_MEM_USE_HOST_PTR) && host && shadow_wants_buffer(size, host);
}

/* Know the buffer that the driver made, or give it back. */
static cl_mem adopt(cl_mem buffer, cl_mem_flags flags, size_t size, void *host, cl_int *code) {
    const memory one = {
        .buffer = buffer, .root = buffer, .host = host, .size = size, .root_size = size, .flags = flags};
    if (!buffer || memory_add_buffer(&one)) return buffer;
    layer_next.clReleaseMemObject(buffer);
    if (code) *code = CL_OUT_OF_HOST_MEMORY;
    return NULL;
}

static CL_API_ENTRY cl_mem CL_API_CALL create(cl_context context, cl_mem_flags flags, size_t size, void *host,
                                              cl_int *code) {
    if (!wanted(flags, size, host)) return layer_next.clCreateBuffer(context, flags, size, host, code);
    return adopt(layer_next.clCreateBuffer(context, private_flags(flags), size, host, code), flags, size, host, code);
}

static CL_API_ENTRY cl_mem CL_API_CALL create_with_properties(cl_context context, const cl_mem_properties *properties,
                                                              cl_mem_flags flags, size_t size, void *host,
                                                              cl_int *code) {
    if (!wanted(flags, size, host))
        return layer_next.clCreateBufferWithProperties(context, properties, flags, size, host, code);
    return adopt(layer_next.clCreateBufferWithProperties(context, properties, private_flags(flags), size, host, code),
                 flags, size, host, code);
}

static CL_API_ENTRY cl_mem CL_API_CALL create_part(cl_mem parent, cl_mem_flags flags, cl_buffer_create_type type,
                                                   const void *region, cl_int *code) {
    memory root;
    const bool known = memory_of_buffer(parent, &root);
    cl_mem part =
        layer_next.clCreateSubBuffer(parent, known ? flags & ~(cl_mem_flags)HOST_ACCESS : flags, type, region, code);
    if (!known || !part) return part;
    const cl_buffer_region *at = region;
    const memory one = {.buffer = part,
                        .root = root.root,
                        .host = root.host + at->origin,
                        .size = at->size,
                        .origin = root.origin + at->origin,
                        .root_size = root.root_size,
                        .flags = flags | (root.flags & (CL_MEM_USE_HOST_PTR | CL_MEM_READ_ONLY))};
    if (memory_add_buffer(&one)) return part;
    layer_next.clReleaseMemObject(part);
    if (code) *code = CL_OUT_OF_HOST_MEMORY;
    return NULL;
}

/* What a map moves. */
typedef struct range {
    cl_mem buffer;
    size_t begin, size; /* in that */
    char *host;
} range;

/* Whole lines may reach beyond a part, into its root; else the part itself serves, which may outlive that. */
static range range_of(const memory *m, size_t offset, size_t size) {
    const size_t granule = shadow_granule();
    if (granule <= 1) return (range){m->buffer, offset, size, m->host + offset};
    size_t begin = m->origin + offset, end = begin + size;
    begin -= begin % granule;
    end = (end + granule - 1) / granule * granule;
    if (end > m->root_size) end = m->root_size;
    return (range){m->root, begin, end - begin, m->host - m->origin + begin};
}

static cl_int nothing(cl_command_queue queue, bool blocking, cl_uint count, const cl_event *after, cl_event *event) {
    cl_event own;
    cl_int code = layer_next.clEnqueueMarkerWithWaitList(queue, count, after, &own);
    if (code == CL_SUCCESS && blocking) code = layer_next.clWaitForEvents(1, &own);
    if (code == CL_SUCCESS && event)
        *event = own;
    else if (code == CL_SUCCESS)
        layer_next.clReleaseEvent(own);
    return code;
}

static CL_API_ENTRY void *CL_API_CALL map(cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags,
                                          size_t offset, size_t size, cl_uint count, const cl_event *after,
                                          cl_event *event, cl_int *code) {
    memory m;
    cl_int own_code;
    if (!code) code = &own_code;
    if (!memory_of_buffer(buffer, &m))
        return layer_next.clEnqueueMapBuffer(queue, buffer, blocking, flags, offset, size, count, after, event, code);
    *code = size == 0 || offset > m.size || size > m.size - offset ? CL_INVALID_VALUE : CL_SUCCESS;
    if (*code != CL_SUCCESS) return NULL;
    const shadow_map made = {buffer, m.host + offset, size, flags};
    const range at = range_of(&m, offset, size);
    /* What the device cannot write is not read back: the program's memory may not be writable at all. */
    *code = (flags & CL_MAP_WRITE_INVALIDATE_REGION) || (m.flags & CL_MEM_READ_ONLY)
                ? nothing(queue, blocking, count, after, event)
                : layer_next.clEnqueueReadBuffer(queue, at.buffer, blocking, at.begin, at.size, at.host, count, after,
                                                 event);
    if (*code == CL_SUCCESS && !shadow_map_add(&made)) *code = CL_OUT_OF_HOST_MEMORY;
    return *code == CL_SUCCESS ? made.pointer : NULL;
}

static CL_API_ENTRY cl_int CL_API_CALL unmap(cl_command_queue queue, cl_mem buffer, void *mapped, cl_uint count,
                                             const cl_event *after, cl_event *event) {
    memory m;
    shadow_map made;
    if (!memory_of_buffer(buffer, &m))
        return layer_next.clEnqueueUnmapMemObject(queue, buffer, mapped, count, after, event);
    if (!shadow_map_take(buffer, mapped, &made)) return CL_INVALID_VALUE;
    const range at = range_of(&m, (size_t)(made.pointer - m.host), made.size);
    const cl_int code = made.flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION)
                            ? layer_next.clEnqueueWriteBuffer(queue, at.buffer, CL_FALSE, at.begin, at.size, at.host,
                                                              count, after, event)
                            : nothing(queue, false, count, after, event);
    if (code != CL_SUCCESS) (void)shadow_map_add(&made);
    return code;
}

static CL_API_ENTRY cl_int CL_API_CALL info(cl_mem buffer, cl_mem_info what, size_t size, void *value,
                                            size_t *size_ret) {
    memory m;
    const cl_int code = layer_next.clGetMemObjectInfo(buffer, what, size, value, size_ret);
    if (code != CL_SUCCESS || !value || !memory_of_buffer(buffer, &m)) return code;
    void *host = m.host;
    const cl_uint maps = shadow_map_count(buffer);
    if (what == CL_MEM_HOST_PTR) memcpy(value, &host, sizeof host);
    if (what == CL_MEM_FLAGS) memcpy(value, &m.flags, sizeof m.flags);
    if (what == CL_MEM_MAP_COUNT) memcpy(value, &maps, sizeof maps);
    return code;
}

void shadow_install_buffers(cl_icd_dispatch *mine) {
    mine->clCreateBuffer = create;
    mine->clCreateBufferWithProperties = create_with_properties;
    mine->clCreateSubBuffer = create_part;
    mine->clEnqueueMapBuffer = map;
    mine->clEnqueueUnmapMemObject = unmap;
    mine->clGetMemObjectInfo = info;
}
