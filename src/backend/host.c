/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host backend: the CPU's own memory, no driver. The smallest complete backend, and the template for
 * others. Groups it has no use for (ADOPT, HANDLES, coherence, WAIT) are left out. A host queue is the
 * address of the program's timeline.
 *
 * With host.large_pages it has no RESERVE group, for large pages are had and given back whole: pools take segments then.
 */
#include "backend/device.h"
#include "base/checked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Neither instance nor device has any state but how it was asked for: both are one of these addresses. */
static char ordinary, in_large_pages, refused_large_pages;
struct onuma_backend_queue {
    onuma_host_timeline timeline;
};
struct onuma_backend_marker {
    const onuma_host_timeline *timeline;
    uint64_t target; /* passed when `completed` has reached it */
};

static onuma_result host_open(const onuma_backend_host *host, onuma_backend_instance **out) {
    const char *wanted = host->config(host, "host.large_pages"), *why;
    char *instance = &ordinary;
    if (wanted != NULL && strcmp(wanted, "on") == 0)
        instance = onuma__os_large_page_size(&why) != 0 ? &in_large_pages : &refused_large_pages;
    *out = (onuma_backend_instance *)instance;
    return ONUMA_OK;
}
static size_t host_device_count(onuma_backend_instance *instance) {
    (void)instance;
    return 1;
}
static onuma_result host_memory_free(onuma_backend_device *device, uint64_t *bytes) {
    (void)device;
    uint64_t total;
    onuma__os_memory(&total, bytes);
    return ONUMA_OK;
}
static onuma_result host_device_info(onuma_backend_device *device, onuma_backend_device_info *out) {
    const char *how = (const char *)device, *why;
    uint64_t available;
    /* clang-format off */
    *out = (onuma_backend_device_info){
        .struct_size = sizeof *out, .name = "host CPU", .driver = "system memory",
        .physical = "cpu", .shared_via = "pointer", .type = ONUMA_DEVICE_HOST, .via = ONUMA_VIA_POINTER,
        .abilities = ONUMA_ABILITY_RESERVE | ONUMA_ABILITY_IMPORT | ONUMA_ABILITY_COHERENT | ONUMA_ABILITY_QUEUES,
        .kinds = 1u << ONUMA_KIND_HOST | 1u << ONUMA_KIND_SHARED, .alignment = 64 /* a cache line */,
        .page_size = onuma__os_abilities_get()->page_size, .proof = ONUMA_PROOF_NOT_NEEDED, .import_zero_copy = true};
    /* clang-format on */
    if (how == &in_large_pages) out->abilities &= ~(uint32_t)ONUMA_ABILITY_RESERVE;
    if (how != &ordinary) {
        const size_t large = onuma__os_large_page_size(&why);
        if (large != 0) {
            (void)snprintf(out->driver, sizeof out->driver, "system memory in pages of %zu KiB", large >> 10);
        } else {
            (void)snprintf(out->driver, sizeof out->driver, "system memory, no large pages: %s", why);
            out->sharing_notes = ONUMA_SHARING_SMALL_PAGES;
        }
    }
    onuma__os_memory(&out->memory_total, &available);
    return ONUMA_OK;
}
static onuma_result host_device_query(onuma_backend_instance *instance, size_t i, onuma_backend_device_info *out) {
    (void)i;
    return host_device_info((onuma_backend_device *)instance, out);
}
static onuma_result host_device_open(onuma_backend_instance *instance, size_t i, onuma_backend_device **out) {
    (void)i;
    *out = (onuma_backend_device *)instance;
    return ONUMA_OK;
}
static void host_device_close(onuma_backend_device *device) {
    (void)device;
}

/* Ordinary ones where no large page is left, and for what is not whole large ones, without a word. */
static void *map_large_or_ordinary(size_t size, size_t align) {
    const char *why;
    size_t whole;
    void *base = NULL;
    if (onuma__align_up(size, onuma__os_large_page_size(&why), &whole) && whole == size)
        base = onuma__os_map_large(size);
    return base != NULL ? base : onuma__os_map(size, align);
}

/* `get` is onuma__os_map or onuma__os_reserve, which say themselves why they fail. */
static onuma_result get_pages(onuma_kind kind, size_t size, void *(*get)(size_t, size_t), onuma_segment *out) {
    if (kind != ONUMA_KIND_HOST && kind != ONUMA_KIND_SHARED)
        return onuma__fail(ONUMA_ERROR_NOT_SUPPORTED, "the host has no memory of kind %u; take SHARED", (unsigned)kind);
    if (size == 0 || !onuma__align_up(size, onuma__os_abilities_get()->page_size, &size))
        return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "the host has no segment of %zu bytes", size);
    void *base = get(size, 0);
    if (base == NULL) return ONUMA_ERROR_OUT_OF_MEMORY;
    *out = (onuma_segment){.struct_size = sizeof *out, .base = base, .size = size, .kind = kind};
    out->address = (uintptr_t)base;
    return ONUMA_OK;
}
static onuma_result host_create(onuma_backend_device *device, onuma_kind kind, size_t size, onuma_segment *out) {
    return get_pages(kind, size, (const char *)device == &in_large_pages ? map_large_or_ordinary : onuma__os_map, out);
}
static onuma_result host_reserve(onuma_backend_device *device, onuma_kind kind, size_t size, onuma_segment *out) {
    (void)device;
    return get_pages(kind, size, onuma__os_reserve, out);
}
static onuma_result host_commit(onuma_backend_device *device, onuma_segment *segment, size_t offset, size_t size) {
    (void)device;
    return onuma__os_commit((char *)segment->base + offset, size);
}
static onuma_result host_decommit(onuma_backend_device *device, onuma_segment *segment, size_t offset, size_t size) {
    (void)device;
    return onuma__os_decommit((char *)segment->base + offset, size);
}
static onuma_result host_discard(onuma_backend_device *device, onuma_segment *segment, size_t offset, size_t size) {
    (void)device;
    return onuma__os_discard((char *)segment->base + offset, size);
}
static onuma_result host_import(onuma_backend_device *device, void *memory, size_t size, bool read_only,
                                onuma_segment *out) {
    *out = (onuma_segment){.struct_size = sizeof *out, .base = memory, .size = size, .kind = ONUMA_KIND_SHARED};
    out->address = (uintptr_t)memory, out->read_only = read_only;
    out->own = device; /* whatever is not NULL: the pages are not ours */
    return ONUMA_OK;
}
static void host_destroy(onuma_backend_device *device, onuma_segment *segment) {
    (void)device;
    if (segment->own == NULL) onuma__os_release(segment->base, segment->size);
}

static onuma_result host_queue_open(onuma_backend_device *device, uint64_t native, onuma_queue_order *order,
                                    onuma_backend_queue **out) {
    (void)device;
    if (native == 0 || native % _Alignof(onuma_host_timeline) != 0)
        return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT,
                           "0x%llx is not the address of an onuma_host_timeline, which is not 0 and aligned to %zu",
                           (unsigned long long)native, _Alignof(onuma_host_timeline));
    /* One counter that only grows says that all work up to it is done: that is an order. */
    if (*order == ONUMA_QUEUE_DETECT) *order = ONUMA_QUEUE_IN_ORDER;
    *out = (onuma_backend_queue *)(uintptr_t)native;
    return ONUMA_OK;
}
static void host_queue_close(onuma_backend_queue *queue) {
    (void)queue;
}
static onuma_result new_marker(const onuma_backend_queue *queue, uint64_t target, onuma_backend_marker **out) {
    onuma_backend_marker *marker = malloc(sizeof *marker);
    if (marker == NULL) return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for a marker of a host queue");
    *marker = (onuma_backend_marker){&queue->timeline, target};
    *out = marker;
    return ONUMA_OK;
}
static onuma_result host_marker_record(onuma_backend_queue *queue, onuma_backend_marker **out) {
    /* Acquire: what this thread has seen submitted is counted. */
    return new_marker(queue, atomic_load_explicit(&queue->timeline.submitted, memory_order_acquire), out);
}
static onuma_result host_marker_wrap(onuma_backend_queue *queue, const onuma_native_event *event,
                                     onuma_backend_marker **out) {
    return event->api == ONUMA_API_HOST ? new_marker(queue, event->handle, out)
                                        : onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "the event's api is not HOST");
}
static onuma_result host_marker_poll(onuma_backend_marker *marker, bool *passed) {
    /* Acquire: what the worker wrote before it completed is visible to whoever sees the marker passed. */
    *passed = atomic_load_explicit(&marker->timeline->completed, memory_order_acquire) >= marker->target;
    return ONUMA_OK;
}
static void host_marker_destroy(onuma_backend_marker *marker) {
    free(marker);
}

/* clang-format off */
const onuma_backend onuma__backend_host = {
    .struct_size = sizeof(onuma_backend), .abi = ONUMA_BACKEND_ABI, .api = ONUMA_API_HOST, .name = "host",
    .open = host_open, .device_count = host_device_count, .device_query = host_device_query,
    .device_open = host_device_open, .device_close = host_device_close, .device_info = host_device_info,
    .memory_free = host_memory_free, .segment_create = host_create, .segment_destroy = host_destroy,
    .segment_reserve = host_reserve, .segment_commit = host_commit, .segment_decommit = host_decommit,
    .segment_discard = host_discard, .import_host = host_import, .queue_open = host_queue_open, .queue_close = host_queue_close,
    .marker_record = host_marker_record, .marker_wrap = host_marker_wrap, .marker_poll = host_marker_poll,
    .marker_destroy = host_marker_destroy};
