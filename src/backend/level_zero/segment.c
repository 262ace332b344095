/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segments: unified shared memory as the driver allocates it, and memory of the program that the driver takes over.
 *
 * A driver that is asked for more than there is may lose the device instead of refusing, so it is asked within what is
 * free, where that is known. What it refuses although it states it, the pool above asks for in smaller pieces.
 */
#include "backend/level_zero/level_zero.h"
#include "base/checked.h"

static const char *kind_name(onuma_kind kind) {
    return kind == ONUMA_KIND_HOST ? "host" : kind == ONUMA_KIND_SHARED ? "shared" : "device";
}

/* All that was said and known belongs in the text. */
static onuma_result refused(const onuma_backend_device *device, ze_result_t code, onuma_kind kind, size_t size) {
    const onuma__ze_facts *f = &device->facts;
    return onuma__ze_fail(device->host, code,
                          "%zu bytes of kind %s on \"%s\", which says that it has %llu and allows %llu at once%s", size,
                          kind_name(kind), f->info.name, (unsigned long long)f->info.memory_total,
                          (unsigned long long)f->stated_most, f->relaxed ? ", or more" : "");
}

static bool is_on_host(const onuma__ze_facts *f, onuma_kind kind) {
    return kind == ONUMA_KIND_HOST || (kind == ONUMA_KIND_SHARED && f->shared_is_host);
}

/* Bytes free where the segment would lie; 0: unknown. */
static uint64_t free_for(onuma_backend_device *device, onuma_kind kind) {
    uint64_t total = 0, available = 0;
    if (is_on_host(&device->facts, kind))
        onuma__os_memory(&total, &available);
    else
        (void)onuma__ze_memory_free(device, &available);
    return available;
}

static ze_result_t allocate(const onuma_backend_device *device, onuma_kind kind, size_t size, void **base) {
    const onuma__ze *ze = device->ze;
    const onuma__ze_facts *f = &device->facts;
    const ze_relaxed_allocation_limits_exp_desc_t relaxed = {.stype =
                                                                 ZE_STRUCTURE_TYPE_RELAXED_ALLOCATION_LIMITS_EXP_DESC,
                                                             .flags = ZE_RELAXED_ALLOCATION_LIMITS_EXP_FLAG_MAX_SIZE};
    /* Kernels that were not built for it cannot use so large a buffer, nor a small one inside it. */
    const void *more = f->relaxed && size > f->stated_most ? &relaxed : NULL;
    const ze_device_mem_alloc_desc_t on_device = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC, .pNext = more};
    const ze_host_mem_alloc_desc_t on_host = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC, .pNext = more};
    if (is_on_host(f, kind)) return ze->zeMemAllocHost(device->context, &on_host, size, 0, base);
    /* Alignment 0 is the driver's choice; drivers ignore or refuse large ones, and blocks are aligned inside. */
    if (kind == ONUMA_KIND_SHARED) {
        const ze_host_mem_alloc_desc_t plain = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC};
        return ze->zeMemAllocShared(device->context, &on_device, &plain, size, 0, f->device, base);
    }
    return ze->zeMemAllocDevice(device->context, &on_device, size, 0, f->device, base);
}

/* What the driver knows of the memory: that it is what was asked for, and how much it really is. */
static ze_result_t look_at(const onuma_backend_device *device, onuma_kind kind, void *base, size_t *size) {
    const onuma__ze *ze = device->ze;
    const ze_memory_type_t wanted = is_on_host(&device->facts, kind) ? ZE_MEMORY_TYPE_HOST
                                    : kind == ONUMA_KIND_SHARED      ? ZE_MEMORY_TYPE_SHARED
                                                                     : ZE_MEMORY_TYPE_DEVICE;
    ze_memory_allocation_properties_t properties = {.stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES};
    ze_device_handle_t owner = NULL;
    void *start = NULL;
    size_t whole = 0;
    ze_result_t code = ze->zeMemGetAllocProperties(device->context, base, &properties, &owner);
    if (code == ZE_RESULT_SUCCESS) code = ze->zeMemGetAddressRange(device->context, base, &start, &whole);
    if (code != ZE_RESULT_SUCCESS) return code;
    if (properties.type != wanted || start != base || whole < *size) return ZE_RESULT_ERROR_UNKNOWN;
    *size = whole;
    return ZE_RESULT_SUCCESS;
}

onuma_result onuma__ze_segment_create(onuma_backend_device *device, onuma_kind kind, size_t size, onuma_segment *out) {
    const onuma_backend_host *host = device->host;
    const onuma__ze_facts *f = &device->facts;
    if (kind > ONUMA_KIND_DEVICE || (f->info.kinds & 1u << kind) == 0)
        return host->fail(ONUMA_ERROR_NOT_SUPPORTED, "device \"%s\" has no memory of kind %u", f->info.name,
                          (unsigned)kind);
    if (size == 0 || !onuma__align_up(size, f->info.page_size, &size))
        return host->fail(ONUMA_ERROR_OUT_OF_MEMORY, "no segment can have %zu bytes", size);
    const uint64_t available = free_for(device, kind);
    if (available != 0 && size > available)
        return host->fail(ONUMA_ERROR_OUT_OF_MEMORY,
                          "%zu bytes of kind %s on \"%s\": %llu are free; free memory, or ask for less", size,
                          kind_name(kind), f->info.name, (unsigned long long)available);
    void *base = NULL;
    ze_result_t code = allocate(device, kind, size, &base);
    if (code == ZE_RESULT_SUCCESS && base == NULL) code = ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
    if (code != ZE_RESULT_SUCCESS) return refused(device, code, kind, size);
    code = look_at(device, kind, base, &size);
    if (code != ZE_RESULT_SUCCESS) {
        device->ze->zeMemFree(device->context, base);
        return onuma__ze_fail(host, code, "what \"%s\" says of the %zu bytes of kind %s that it gave", f->info.name,
                              size, kind_name(kind));
    }
    atomic_fetch_add_explicit(&device->segments, 1, memory_order_relaxed);
    *out = (onuma_segment){
        .struct_size = sizeof *out, .base = base, .size = size, .address = (uintptr_t)base, .kind = kind};
    return ONUMA_OK;
}

/* ------------------------------------------------------------------- imports */

static char imported; /* its address in onuma_segment.own */

onuma_result onuma__ze_import_host(onuma_backend_device *device, void *host, size_t size, bool read_only,
                                   onuma_segment *out) {
    const onuma__ze_facts *f = &device->facts;
    const size_t page = f->info.page_size;
    if (f->import == NULL)
        return device->host->fail(
            ONUMA_ERROR_NOT_SUPPORTED,
            "import of %zu bytes at %p: the driver of \"%s\" takes no memory of the program; copy "
            "it into a block instead",
            size, host, f->info.name);
    if (size == 0 || ((uintptr_t)host & (page - 1)) != 0 || (size & (page - 1)) != 0)
        return device->host->fail(ONUMA_ERROR_NOT_SUPPORTED,
                                  "import of %zu bytes at %p: Level Zero devices share whole pages only; align address "
                                  "and size to %zu bytes (aligned_alloc, mmap)",
                                  size, host, page);
    const ze_result_t code = f->import(f->driver, host, size);
    if (code != ZE_RESULT_SUCCESS)
        return onuma__ze_fail(device->host, code, "import of %zu bytes at %p on \"%s\"", size, host, f->info.name);
    atomic_fetch_add_explicit(&device->segments, 1, memory_order_relaxed);
    *out = (onuma_segment){.struct_size = sizeof *out,
                           .base = host,
                           .size = size,
                           .address = (uintptr_t)host,
                           .kind = ONUMA_KIND_SHARED,
                           .read_only = read_only,
                           .own = &imported};
    return ONUMA_OK;
}

void onuma__ze_segment_destroy(onuma_backend_device *device, onuma_segment *segment) {
    const onuma__ze_facts *f = &device->facts;
    /* Neither waits for the queues; nothing uses the memory any more, as the caller has seen by markers. */
    const ze_result_t code = segment->own == &imported ? f->unimport(f->driver, segment->base)
                                                       : device->ze->zeMemFree(device->context, segment->base);
    if (code != ZE_RESULT_SUCCESS)
        device->host->log(device->host, ONUMA_LOG_WARN, "\"%s\" does not take back %zu bytes at %p: %s (0x%x)",
                          f->info.name, segment->size, segment->base, onuma__ze_code_name(code), (unsigned)code);
    /* Release: the driver has taken it back before whoever closes the device counts it out. */
    atomic_fetch_sub_explicit(&device->segments, 1, memory_order_release);
}
