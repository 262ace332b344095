/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segments: SVM and USM as the driver allocates them; pages of the system (or of the program) under a cl_mem; and
 * cl_mems with nothing that the CPU can reach, named by reserved addresses.
 */
#include "backend/opencl/backing.h"
#include "backend/opencl/opencl.h"
#include "base/checked.h"
#include "os/os.h"

#include <stdlib.h>

static onuma_result no_way(const onuma_backend_device *device, onuma_kind kind) {
    const onuma_backend_host *host = device->host;
    const onuma__cl_facts *f = &device->facts;
    const char *name = kind == ONUMA_KIND_HOST ? "host" : "shared";
    if (f->allowed == 0)
        return host->fail(ONUMA_ERROR_NOT_SUPPORTED,
                          "device \"%s\" cannot share memory by opencl.share:%s, so it has no kind %s; use "
                          "opencl.share:auto, or import, which every device has",
                          f->info.name, host->config(host, "opencl.share"), name);
    return host->fail(ONUMA_ERROR_NOT_SUPPORTED, "device \"%s\" has no kind %s: %s", f->info.name, name,
                      f->verdict.detail);
}

/* Drivers refuse below what they state; both figures belong in the text. */
static onuma_result refused(const onuma_backend_device *device, cl_int code, const char *what, size_t size) {
    const onuma_backend_device_info *info = &device->facts.info;
    return onuma__cl_fail(device->host, code,
                          "%s of %zu bytes on \"%s\", which says that it has %llu and allows %llu at once", what, size,
                          info->name, (unsigned long long)info->memory_total, (unsigned long long)info->max_segment);
}

/* ---------------------------------------------------- SVM and USM: pointers */

static void *usm_alloc(const onuma_backend_device *device, onuma_kind kind, size_t size, cl_int *code) {
    const onuma__cl_facts *f = &device->facts;
    const bool host = kind == ONUMA_KIND_HOST ? f->host_usm : f->shared_is_host;
    /* Alignment 0 is the driver's choice; drivers ignore or refuse large ones, and blocks are aligned inside. */
    return host ? f->host_alloc(device->context, NULL, size, 0, code)
                : f->shared_alloc(device->context, f->device, NULL, size, 0, code);
}

static onuma_result create_pointer(onuma_backend_device *device, onuma_kind kind, size_t size, onuma_segment *out) {
    const onuma__cl_facts *f = &device->facts;
    void *base;
    if (f->verdict.way == ONUMA__CL_USM) {
        cl_int code = CL_SUCCESS;
        base = usm_alloc(device, kind, size, &code);
        if (base == NULL || code != CL_SUCCESS)
            return refused(device, code == CL_SUCCESS ? CL_MEM_OBJECT_ALLOCATION_FAILURE : code, "allocation of USM",
                           size);
    } else {
        cl_svm_mem_flags flags = CL_MEM_READ_WRITE;
        if (f->verdict.way == ONUMA__CL_SVM_FINE) flags |= CL_MEM_SVM_FINE_GRAIN_BUFFER;
        base = device->cl->clSVMAlloc(device->context, flags, size, 0);
        /* It gives no code. */
        if (base == NULL) return refused(device, CL_MEM_OBJECT_ALLOCATION_FAILURE, "clSVMAlloc", size);
    }
    atomic_fetch_add_explicit(&device->pointers, 1, memory_order_relaxed);
    *out = (onuma_segment){.struct_size = sizeof *out,
                           .base = base,
                           .size = size,
                           .address = (uintptr_t)base,
                           .kind = kind,
                           .needs_map = f->verdict.mapped || f->verdict.way == ONUMA__CL_SVM_COARSE};
    return ONUMA_OK;
}

static void destroy_pointer(onuma_backend_device *device, onuma_segment *segment) {
    /* Neither waits for the queues; nothing uses the memory any more, as the caller has seen by markers. */
    if (device->facts.verdict.way == ONUMA__CL_USM)
        device->facts.usm_free(device->context, segment->base);
    else
        device->cl->clSVMFree(device->context, segment->base);
    /* Release: the driver has taken it back before whoever closes the device counts it out. */
    atomic_fetch_sub_explicit(&device->pointers, 1, memory_order_release);
}

/* ------------------------------------------------ pages under a cl_mem: handles */

/* Takes over the pages, if they are `ours`, also when it fails. */
static onuma_result create_over_pages(onuma_backend_device *device, void *base, size_t size, bool ours, bool read_only,
                                      onuma_segment *out) {
    onuma__cl_backing_sweep(device);
    onuma__cl_backing *backing = NULL;
    onuma_result r = onuma__cl_backing_create(device, base, size, ours, &backing);
    if (r != ONUMA_OK) return r;
    cl_int code;
    const cl_mem_flags access = read_only ? CL_MEM_READ_ONLY : CL_MEM_READ_WRITE;
    cl_mem memory = device->cl->clCreateBuffer(device->context, access | CL_MEM_USE_HOST_PTR, size, base, &code);
    if (code != CL_SUCCESS) {
        onuma__cl_backing_discard(backing);
        return refused(device, code, "clCreateBuffer over host memory", size);
    }
    r = onuma__cl_backing_attach(device, backing, memory);
    if (r != ONUMA_OK) {
        device->cl->clReleaseMemObject(memory);
        onuma__cl_backing_discard(backing);
        return r;
    }
    *out = (onuma_segment){.struct_size = sizeof *out,
                           .base = base,
                           .size = size,
                           .handle = (uintptr_t)memory,
                           .kind = ONUMA_KIND_SHARED,
                           .read_only = read_only,
                           .own = backing,
                           .needs_map = true};
    return ONUMA_OK;
}

static onuma_result create_pages(onuma_backend_device *device, onuma_kind kind, size_t size, onuma_segment *out) {
    void *base = onuma__os_map(size, 0);
    if (base == NULL) return ONUMA_ERROR_OUT_OF_MEMORY;
    /* A child that wrote to its copy-on-write twin of a page the device has pinned would split the two views. */
    onuma__os_exclude_from_fork(base, size);
    const onuma_result r = create_over_pages(device, base, size, true, false, out);
    if (r == ONUMA_OK) out->kind = kind;
    return r;
}

/*
 * Drivers copy without a word what they cannot address in place (Intel: what is not aligned), and bytes then exist
 * twice; so what is not whole pages is refused.
 */
onuma_result onuma__cl_import_host(onuma_backend_device *device, void *host, size_t size, bool read_only,
                                   onuma_segment *out) {
    const size_t page = device->facts.info.page_size;
    if (!device->facts.verdict.imports)
        return device->host->fail(ONUMA_ERROR_NOT_SUPPORTED,
                                  "import of %zu bytes at %p: device \"%s\" does not share imported memory (%s); copy "
                                  "it into a block instead",
                                  size, host, device->facts.info.name, device->facts.verdict.detail);
    if (size == 0 || ((uintptr_t)host & (page - 1)) != 0 || (size & (page - 1)) != 0)
        return device->host->fail(ONUMA_ERROR_NOT_SUPPORTED,
                                  "import of %zu bytes at %p: OpenCL devices share whole pages only; align address and "
                                  "size to %zu bytes (aligned_alloc, mmap)",
                                  size, host, page);
    return create_over_pages(device, host, size, false, read_only, out);
}

/* --------------------------------------------------------- device memory: handles */

static onuma_result create_device(onuma_backend_device *device, size_t size, onuma_segment *out) {
    void *name = onuma__os_reserve(size, 0);
    if (name == NULL) return ONUMA_ERROR_OUT_OF_MEMORY;
    cl_int code;
    cl_mem memory = device->cl->clCreateBuffer(device->context, CL_MEM_READ_WRITE, size, NULL, &code);
    if (code != CL_SUCCESS) {
        onuma__os_release(name, size);
        return refused(device, code, "clCreateBuffer", size);
    }
    *out = (onuma_segment){
        .struct_size = sizeof *out, .base = name, .size = size, .handle = (uintptr_t)memory, .kind = ONUMA_KIND_DEVICE};
    return ONUMA_OK;
}

/* ------------------------------------------------------------------ all of them */

onuma_result onuma__cl_segment_create(onuma_backend_device *device, onuma_kind kind, size_t size, onuma_segment *out) {
    if (size == 0 || !onuma__align_up(size, device->facts.info.page_size, &size))
        return device->host->fail(ONUMA_ERROR_OUT_OF_MEMORY, "no segment can have %zu bytes", size);
    if (kind == ONUMA_KIND_DEVICE) return create_device(device, size, out);
    if (kind != ONUMA_KIND_HOST && kind != ONUMA_KIND_SHARED)
        return device->host->fail(ONUMA_ERROR_NOT_SUPPORTED, "there is no kind %u of memory", (unsigned)kind);
    switch (device->facts.verdict.way) {
    case ONUMA__CL_USM:
    case ONUMA__CL_SVM_FINE:
    case ONUMA__CL_SVM_COARSE:
        return create_pointer(device, kind, size, out);
    case ONUMA__CL_IMPORT:
        return create_pages(device, kind, size, out);
    default:
        return no_way(device, kind);
    }
}

void onuma__cl_segment_destroy(onuma_backend_device *device, onuma_segment *segment) {
    if (segment->address != 0) {
        destroy_pointer(device, segment);
        return;
    }
    if (segment->kind != ONUMA_KIND_DEVICE) {
        onuma__cl_backing_release(device, segment->own);
        return;
    }
    device->cl->clReleaseMemObject((cl_mem)(uintptr_t)segment->handle);
    onuma__os_release(segment->base, segment->size); /* addresses only */
}
