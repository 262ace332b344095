/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Views and coherence. A view is a sub-buffer of exactly one block, never the parent: kernels on a buffer and on a
 * sub-buffer of it at once are undefined, and so they are on sub-buffers that overlap, which those of blocks do not.
 */
#include "backend/opencl/opencl.h"

static cl_mem memory_of(uint64_t handle) {
    return (cl_mem)(uintptr_t)handle;
}

onuma_result onuma__cl_view_create(onuma_backend_device *device, const onuma_segment *segment, size_t offset,
                                   size_t size, uint64_t *handle) {
    if (segment->handle == 0)
        return device->host->fail(ONUMA_ERROR_NOT_SUPPORTED,
                                  "this memory of \"%s\" is bound by pointer (%s) and has no handles",
                                  device->facts.info.name, device->facts.info.shared_via);
    const cl_buffer_region region = {.origin = offset, .size = size};
    cl_int code;
    cl_mem view =
        device->cl->clCreateSubBuffer(memory_of(segment->handle), 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    if (code != CL_SUCCESS)
        return onuma__cl_fail(device->host, code, "clCreateSubBuffer of %zu bytes at offset %zu on \"%s\"", size,
                              offset, device->facts.info.name);
    *handle = (uintptr_t)view;
    return ONUMA_OK;
}

void onuma__cl_view_retain(onuma_backend_device *device, uint64_t handle) {
    device->cl->clRetainMemObject(memory_of(handle));
}

void onuma__cl_view_release(onuma_backend_device *device, uint64_t handle) {
    device->cl->clReleaseMemObject(memory_of(handle));
}

/* ----------------------------------------------------------------- coherence */

/*
 * On an event, not by clFinish: Rusticl's may return too early. It flushes the queue too. A second time if the driver
 * could not wait, for want of memory, say: the command is on its way all the same, and what it did cannot be undone.
 * The probe waits with a bound: a driver that it does not know yet may never come back.
 */
static onuma_result wait_and_release(onuma_backend_device *device, cl_event event, const char *what) {
    if (device->deadline != 0) return onuma__cl_await(device, device->map_queue, event, what);
    cl_int code = device->cl->clWaitForEvents(1, &event);
    if (code != CL_SUCCESS) code = device->cl->clWaitForEvents(1, &event);
    device->cl->clReleaseEvent(event);
    return code == CL_SUCCESS ? ONUMA_OK
                              : onuma__cl_fail(device->host, code, "%s on \"%s\"", what, device->facts.info.name);
}

/* Writing maps for reading too: of a block that is written in part the rest must be kept. */
static cl_map_flags map_flags(onuma_access mode) {
    return (mode & ONUMA_ACCESS_WRITE) != 0 ? CL_MAP_READ | CL_MAP_WRITE : CL_MAP_READ;
}

static onuma_result map_pointer(onuma_backend_device *device, void *base, size_t size, onuma_access mode) {
    cl_event event;
    const cl_int code =
        device->cl->clEnqueueSVMMap(device->map_queue, CL_FALSE, map_flags(mode), base, size, 0, NULL, &event);
    if (code != CL_SUCCESS)
        return onuma__cl_fail(device->host, code, "clEnqueueSVMMap of %zu bytes at %p on \"%s\"", size, base,
                              device->facts.info.name);
    const onuma_result r = wait_and_release(device, event, "clEnqueueSVMMap");
    /* The driver has it as mapped. Nobody waits for this: the next command of this queue comes after it. */
    if (r != ONUMA_OK && !device->stuck) device->cl->clEnqueueSVMUnmap(device->map_queue, base, 0, NULL, NULL);
    return r;
}

static onuma_result unmap_pointer(onuma_backend_device *device, void *base) {
    cl_event event;
    const cl_int code = device->cl->clEnqueueSVMUnmap(device->map_queue, base, 0, NULL, &event);
    if (code != CL_SUCCESS)
        return onuma__cl_fail(device->host, code, "clEnqueueSVMUnmap at %p on \"%s\"", base, device->facts.info.name);
    return wait_and_release(device, event, "clEnqueueSVMUnmap");
}

static onuma_result unmap_view(onuma_backend_device *device, cl_mem view, void *mapped) {
    cl_event event;
    const cl_int code = device->cl->clEnqueueUnmapMemObject(device->map_queue, view, mapped, 0, NULL, &event);
    if (code == CL_INVALID_VALUE) {
        /* Not mapped, says the driver: an unmap that failed when it was under way, and was told of, is tried again. */
        device->host->log(device->host, ONUMA_LOG_WARN, "the driver of \"%s\" has %p unmapped already",
                          device->facts.info.name, mapped);
        return ONUMA_OK;
    }
    if (code != CL_SUCCESS)
        return onuma__cl_fail(device->host, code, "clEnqueueUnmapMemObject at %p on \"%s\"", mapped,
                              device->facts.info.name);
    return wait_and_release(device, event, "clEnqueueUnmapMemObject");
}

static onuma_result map_view(onuma_backend_device *device, cl_mem view, size_t offset, void *expected, size_t size,
                             onuma_access mode) {
    cl_event event;
    cl_int code;
    void *mapped = device->cl->clEnqueueMapBuffer(device->map_queue, view, CL_FALSE, map_flags(mode), offset, size, 0,
                                                  NULL, &event, &code);
    if (code != CL_SUCCESS)
        return onuma__cl_fail(device->host, code, "clEnqueueMapBuffer of %zu bytes at offset %zu on \"%s\"", size,
                              offset, device->facts.info.name);
    const onuma_result r = wait_and_release(device, event, "clEnqueueMapBuffer");
    if ((r == ONUMA_OK && mapped == expected) || device->stuck) return r;
    device->cl->clEnqueueUnmapMemObject(device->map_queue, view, mapped, 0, NULL, NULL); /* as in map_pointer */
    if (r != ONUMA_OK) return r;
    return device->host->fail(ONUMA_ERROR_INTERNAL,
                              "device \"%s\" maps memory at %p to %p: its driver works on a copy; please report it, "
                              "and use another opencl.share",
                              device->facts.info.name, expected, mapped);
}

/* Where in its view a byte of the segment lies. */
static onuma_result offset_in_view(const onuma_backend_device *device, uint64_t view, size_t offset, size_t *inside) {
    size_t origin = 0;
    const cl_int code = device->cl->clGetMemObjectInfo(memory_of(view), CL_MEM_OFFSET, sizeof origin, &origin, NULL);
    if (code != CL_SUCCESS)
        return onuma__cl_fail(device->host, code, "clGetMemObjectInfo on \"%s\"", device->facts.info.name);
    if (origin > offset)
        return device->host->fail(ONUMA_ERROR_INTERNAL, "offset %zu lies before its view, which begins at %zu", offset,
                                  origin);
    *inside = offset - origin;
    return ONUMA_OK;
}

/* Whether there is something to do at all; *r is the answer if not. */
static bool needs_work(const onuma_backend_device *device, const onuma_segment *segment, uint64_t view, size_t size,
                       onuma_result *r) {
    *r = ONUMA_OK;
    if (!segment->needs_map || size == 0) return false;
    if (segment->address == 0 && view == 0)
        *r = device->host->fail(ONUMA_ERROR_INTERNAL, "mapping memory of \"%s\" without its view",
                                device->facts.info.name);
    return *r == ONUMA_OK;
}

onuma_result onuma__cl_host_map(onuma_backend_device *device, const onuma_segment *segment, uint64_t view,
                                size_t offset, size_t size, onuma_access mode) {
    void *base = (char *)segment->base + offset;
    onuma_result r;
    if (!needs_work(device, segment, view, size, &r)) return r;
    if (segment->read_only && (mode & ONUMA_ACCESS_WRITE) != 0)
        return device->host->fail(ONUMA_ERROR_INVALID_ARGUMENT, "the memory at %p was imported read-only", base);
    if (segment->address != 0) return map_pointer(device, base, size, mode);
    size_t inside = 0;
    r = offset_in_view(device, view, offset, &inside);
    return r == ONUMA_OK ? map_view(device, memory_of(view), inside, base, size, mode) : r;
}

onuma_result onuma__cl_host_unmap(onuma_backend_device *device, const onuma_segment *segment, uint64_t view,
                                  size_t offset, size_t size, onuma_access mode) {
    (void)mode; /* the driver knows how it was mapped */
    void *base = (char *)segment->base + offset;
    onuma_result r;
    if (!needs_work(device, segment, view, size, &r)) return r;
    return segment->address != 0 ? unmap_pointer(device, base) : unmap_view(device, memory_of(view), base);
}
