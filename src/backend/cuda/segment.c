/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segments that come and go whole: memory of the device, memory of the host that the driver pins, memory that
 * migrates, and the program's own memory pinned where it lies.
 */
#include "backend/cuda/cuda.h"

#include <inttypes.h>

/* What is behind a segment, when it is not a range: `own` is one of these addresses. */
static const char plain_memory, pinned_memory, managed_memory, registered_memory;

static onuma_segment describe(onuma__cu_pointer base, size_t size, onuma_kind kind, const char *own) {
    return (onuma_segment){.struct_size = sizeof(onuma_segment),
                           .base = (void *)(uintptr_t)base,
                           .size = size,
                           .address = base,
                           .kind = kind,
                           .own = (void *)(uintptr_t)own};
}

/*
 * Of managed memory never more is taken than the card has free, whatever of it has migrated so far: a card that is asked
 * for more than it has can stop answering altogether.
 */
static onuma_result admit_managed(onuma_backend_device *device, size_t size) {
    uint64_t available = 0;
    const onuma_result r = onuma__cu_memory_free(device, &available);
    if (r != ONUMA_OK) return r;
    size_t taken = atomic_load_explicit(&device->managed, memory_order_relaxed);
    do {
        if (size > available || taken > available - size)
            return device->host->fail(ONUMA_ERROR_OUT_OF_MEMORY,
                                      "%zu bytes of managed memory besides %zu are more than the %" PRIu64
                                      " that \"%s\" has free; free memory, or ask for less",
                                      size, taken, available, device->facts.info.name);
    } while (!atomic_compare_exchange_weak_explicit(&device->managed, &taken, taken + size, memory_order_relaxed,
                                                    memory_order_relaxed));
    return ONUMA_OK;
}

static void dismiss_managed(onuma_backend_device *device, size_t size) {
    atomic_fetch_sub_explicit(&device->managed, size, memory_order_relaxed);
}

/* With the context current. */
static onuma__cu_result allocate(const onuma_backend_device *device, const char *what, size_t size,
                                 onuma__cu_pointer *out) {
    const onuma__cu *cu = device->cu;
    if (what == &plain_memory) return cu->MemAlloc(out, size);
    if (what == &managed_memory) return cu->MemAllocManaged(out, size, ONUMA__CU_MEM_ATTACH_GLOBAL);
    void *host = NULL;
    const onuma__cu_result code = cu->MemHostAlloc(&host, size, ONUMA__CU_HOST_PORTABLE | ONUMA__CU_HOST_DEVICEMAP);
    *out = (uintptr_t)host; /* with unified addressing the device's address is the same */
    return code;
}

onuma_result onuma__cu_segment_create(onuma_backend_device *device, onuma_kind kind, size_t size, onuma_segment *out) {
    const onuma__cu_facts *facts = &device->facts;
    const char *what = kind == ONUMA_KIND_DEVICE         ? &plain_memory
                       : facts->way == ONUMA__CU_MANAGED ? &managed_memory
                                                         : &pinned_memory;
    if (kind != ONUMA_KIND_DEVICE && facts->way == ONUMA__CU_NONE)
        return device->host->fail(ONUMA_ERROR_NOT_SUPPORTED, "\"%s\" has no memory of kind %u: %s", facts->info.name,
                                  (unsigned)kind, facts->info.sharing_detail);
    onuma_result r = what == &managed_memory ? admit_managed(device, size) : ONUMA_OK;
    if (r != ONUMA_OK) return r;
    onuma__cu_scope scope;
    onuma__cu_pointer base = 0;
    r = onuma__cu_enter(device, &scope);
    if (r == ONUMA_OK) {
        const onuma__cu_result code = allocate(device, what, size, &base);
        onuma__cu_leave(device, &scope);
        if (code != ONUMA__CU_SUCCESS)
            r = onuma__cu_fail(device->host, code, "%zu bytes of %s memory on \"%s\"", size,
                               what == &plain_memory ? "device" : onuma__cu_way_names[facts->way], facts->info.name);
    }
    if (r != ONUMA_OK) {
        if (what == &managed_memory) dismiss_managed(device, size);
        return r;
    }
    atomic_fetch_add_explicit(&device->segments, 1, memory_order_relaxed); /* as in range.c */
    *out = describe(base, size, kind, what);
    return ONUMA_OK;
}

onuma_result onuma__cu_import_host(onuma_backend_device *device, void *host, size_t size, bool read_only,
                                   onuma_segment *out) {
    const onuma__cu *cu = device->cu;
    const unsigned protect = read_only && device->facts.read_only_pins ? ONUMA__CU_HOST_READ_ONLY : 0;
    onuma__cu_scope scope;
    onuma__cu_pointer address = 0;
    onuma_result r = onuma__cu_enter(device, &scope);
    if (r != ONUMA_OK) return r;
    onuma__cu_result code =
        cu->MemHostRegister(host, size, ONUMA__CU_HOST_PORTABLE | ONUMA__CU_HOST_DEVICEMAP | protect);
    const bool pinned = code == ONUMA__CU_SUCCESS;
    if (pinned) code = cu->MemHostGetDevicePointer(&address, host, 0);
    if (pinned && code != ONUMA__CU_SUCCESS) (void)cu->MemHostUnregister(host);
    onuma__cu_leave(device, &scope);
    if (code == 1) /* CUDA_ERROR_INVALID_VALUE: of arguments that are all good, but for what lies there */
        return device->host->fail(
            ONUMA_ERROR_NOT_SUPPORTED,
            "%zu bytes at %p cannot be pinned for \"%s\": CUDA_ERROR_INVALID_VALUE (1); is all of "
            "it mapped%s?",
            size, host, device->facts.info.name, read_only ? "" : " and writable");
    if (code != ONUMA__CU_SUCCESS)
        return onuma__cu_fail(device->host, code, "pinning %zu bytes at %p for \"%s\"", size, host,
                              device->facts.info.name);
    atomic_fetch_add_explicit(&device->segments, 1, memory_order_relaxed);
    *out = describe((uintptr_t)host, size, ONUMA_KIND_SHARED, &registered_memory);
    out->address = address;
    out->read_only = read_only;
    return ONUMA_OK;
}

static void give_back(onuma_backend_device *device, onuma_segment *segment) {
    const onuma__cu *cu = device->cu;
    if (segment->own == &plain_memory || segment->own == &managed_memory)
        (void)cu->MemFree(segment->address);
    else if (segment->own == &pinned_memory)
        (void)cu->MemFreeHost(segment->base);
    else if (segment->own == &registered_memory)
        (void)cu->MemHostUnregister(segment->base);
    else
        onuma__cu_range_destroy(device, segment);
}

/* If even the context cannot be made current the driver has shut down, and its memory is gone with it. */
void onuma__cu_segment_destroy(onuma_backend_device *device, onuma_segment *segment) {
    onuma__cu_scope scope;
    (void)onuma__cu_enter(device, &scope);
    give_back(device, segment);
    onuma__cu_leave(device, &scope);
    if (segment->own == &managed_memory) dismiss_managed(device, segment->size);
    /* Release: the driver has taken it back before whoever closes the device counts it out. */
    atomic_fetch_sub_explicit(&device->segments, 1, memory_order_release);
}
