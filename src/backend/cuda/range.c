/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges: addresses apart from memory, in which pages of the device or of the host appear and go. The device and, for
 * the host's, the CPU use the same address.
 *
 *     reserved   |  page  |  page  |        |  page  |        |
 *     a handle       1        2                 3
 *
 * Each page is memory of its own, because a mapping goes only as a whole and which pages will go together is not known
 * when they come. Its handle is given back as soon as it is mapped: the mapping keeps the memory.
 *
 * cuMemUnmap waits for nothing. That no work uses the pages is what the library's markers have shown before.
 */
#include "backend/cuda/cuda.h"
#include "base/checked.h"

#include <stdlib.h>

/* Behind each range. Two threads never commit or decommit the same page at once, by the contract; so each byte is one
 * thread's at a time, and relaxed. */
typedef struct range {
    size_t pages;
    _Atomic uint8_t mapped[];
} range;

static bool is_mapped(const range *own, size_t page) {
    return atomic_load_explicit(&own->mapped[page], memory_order_relaxed) != 0;
}

static void note_mapped(range *own, size_t from, size_t to, bool mapped) {
    for (size_t page = from; page < to; page++)
        atomic_store_explicit(&own->mapped[page], mapped, memory_order_relaxed);
}

/* Pages from `from` to `to` of the range at `base`. A failure leaves pages mapped that nobody will use, which is all one
 * can do about it. */
static onuma__cu_result unmap(const onuma_backend_device *device, uintptr_t base, size_t from, size_t to) {
    const size_t granule = device->facts.granule;
    return from == to ? ONUMA__CU_SUCCESS : device->cu->MemUnmap(base + from * granule, (to - from) * granule);
}

static onuma__cu_result map_page(const onuma_backend_device *device, const onuma__cu_properties *place,
                                 onuma__cu_pointer address) {
    const onuma__cu *cu = device->cu;
    onuma__cu_memory memory;
    onuma__cu_result code = cu->MemCreate(&memory, device->facts.granule, place, 0);
    if (code != ONUMA__CU_SUCCESS) return code;
    code = cu->MemMap(address, device->facts.granule, 0, memory, 0);
    const onuma__cu_result released = cu->MemRelease(memory);
    if (code == ONUMA__CU_SUCCESS && released != ONUMA__CU_SUCCESS) {
        (void)cu->MemUnmap(address, device->facts.granule);
        code = released;
    }
    return code;
}

/* All of the pages, or none. */
static onuma__cu_result map(const onuma_backend_device *device, onuma_kind kind, uintptr_t base, size_t from,
                            size_t to) {
    const onuma__cu_facts *facts = &device->facts;
    const onuma__cu_properties place = onuma__cu_place(facts, kind);
    const onuma__cu_access access[] = {
        {{ONUMA__CU_LOCATION_DEVICE, facts->device}, ONUMA__CU_ACCESS_READ_WRITE},
        {place.location, ONUMA__CU_ACCESS_READ_WRITE}, /* the CPU, where the memory is its own */
    };
    onuma__cu_result code = ONUMA__CU_SUCCESS;
    size_t page = from;
    for (; page < to && code == ONUMA__CU_SUCCESS; page++)
        code = map_page(device, &place, base + page * facts->granule);
    if (code != ONUMA__CU_SUCCESS)
        page--; /* that one is not there */
    else
        code = device->cu->MemSetAccess(base + from * facts->granule, (to - from) * facts->granule, access,
                                        kind == ONUMA_KIND_DEVICE ? 1 : 2);
    if (code != ONUMA__CU_SUCCESS) (void)unmap(device, base, from, page);
    return code;
}

static onuma_result check_kind(const onuma_backend_device *device, onuma_kind kind) {
    const onuma__cu_facts *facts = &device->facts;
    if (facts->ranges && (kind == ONUMA_KIND_DEVICE || facts->way == ONUMA__CU_VMM)) return ONUMA_OK;
    return device->host->fail(ONUMA_ERROR_NOT_SUPPORTED, "\"%s\" has no ranges for memory of kind %u; segments work",
                              facts->info.name, (unsigned)kind);
}

onuma_result onuma__cu_range_reserve(onuma_backend_device *device, onuma_kind kind, size_t size, onuma_segment *out) {
    const onuma__cu_facts *facts = &device->facts;
    onuma_result r = check_kind(device, kind);
    if (r != ONUMA_OK) return r;
    if (size == 0 || !onuma__align_up(size, facts->granule, &size))
        return device->host->fail(ONUMA_ERROR_OUT_OF_MEMORY, "no addresses for a range of %zu bytes", size);
    const size_t pages = size / facts->granule;
    range *own = calloc(1, sizeof *own + pages);
    if (own == NULL)
        return device->host->fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for the record of %zu pages", pages);
    own->pages = pages;
    onuma__cu_scope scope;
    onuma__cu_pointer base = 0;
    r = onuma__cu_enter(device, &scope);
    if (r != ONUMA_OK) goto failed;
    const onuma__cu_result code = device->cu->MemAddressReserve(&base, size, 0, 0, 0);
    onuma__cu_leave(device, &scope);
    if (code != ONUMA__CU_SUCCESS) {
        r = onuma__cu_fail(device->host, code, "cuMemAddressReserve of %zu bytes on \"%s\"", size, facts->info.name);
        goto failed;
    }
    /* Relaxed: whoever closes the device was told of the segment in another way. */
    atomic_fetch_add_explicit(&device->segments, 1, memory_order_relaxed);
    *out = (onuma_segment){.struct_size = sizeof *out,
                           .base = (void *)(uintptr_t)base,
                           .size = size,
                           .address = base,
                           .kind = kind,
                           .own = own};
    return ONUMA_OK;
failed:
    free(own);
    return r;
}

onuma_result onuma__cu_range_commit(onuma_backend_device *device, onuma_segment *segment, size_t offset, size_t size) {
    const size_t from = offset / device->facts.granule, to = (offset + size) / device->facts.granule;
    onuma__cu_scope scope;
    const onuma_result r = onuma__cu_enter(device, &scope);
    if (r != ONUMA_OK) return r;
    const onuma__cu_result code = map(device, segment->kind, (uintptr_t)segment->base, from, to);
    onuma__cu_leave(device, &scope);
    if (code != ONUMA__CU_SUCCESS)
        return onuma__cu_fail(device->host, code, "%zu bytes more of %s memory on \"%s\"", size,
                              segment->kind == ONUMA_KIND_DEVICE ? "device" : "host", device->facts.info.name);
    note_mapped(segment->own, from, to, true);
    return ONUMA_OK;
}

onuma_result onuma__cu_range_decommit(onuma_backend_device *device, onuma_segment *segment, size_t offset,
                                      size_t size) {
    const size_t from = offset / device->facts.granule, to = (offset + size) / device->facts.granule;
    onuma__cu_scope scope;
    const onuma_result r = onuma__cu_enter(device, &scope);
    if (r != ONUMA_OK) return r;
    const onuma__cu_result code = unmap(device, (uintptr_t)segment->base, from, to);
    onuma__cu_leave(device, &scope);
    if (code != ONUMA__CU_SUCCESS)
        return onuma__cu_fail(device->host, code, "cuMemUnmap of %zu bytes on \"%s\"", size, device->facts.info.name);
    note_mapped(segment->own, from, to, false);
    return ONUMA_OK;
}

/* Addresses with a page that the driver would not take back stay ours for good, so that nobody else gets them. */
void onuma__cu_range_destroy(onuma_backend_device *device, onuma_segment *segment) {
    range *own = segment->own;
    const uintptr_t base = (uintptr_t)segment->base;
    bool empty = true;
    for (size_t from = 0, to; from < own->pages; from = to) {
        to = from + 1;
        if (!is_mapped(own, from)) continue;
        while (to < own->pages && is_mapped(own, to))
            to++;
        if (unmap(device, base, from, to) != ONUMA__CU_SUCCESS) empty = false;
    }
    if (empty) (void)device->cu->MemAddressFree(base, segment->size);
    free(own);
}
