/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's own memory as blocks. An import is an owner of exactly one
 * block: sync retires it when the block was freed and nothing uses it any more,
 * and then the driver's segment, the record and, through its deleter, the memory
 * go, in that order.
 */
#include "policy/private.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef struct import import;
struct import {
    onuma__owner owner; /* first: sync sees the import through it */
    onuma_segment segment;
    onuma__span span;
    onuma_import_deleter *deleter;
    void *user;
    import *next, **link; /* in one of the lists below; under the policy lock */
};

static import *live_imports, *kept_imports; /* under the policy lock */

static void push(import **list, import *one) {
    one->next = *list;
    one->link = list;
    if (one->next != NULL) one->next->link = &one->next;
    *list = one;
}

static void unlink_import(import *one) {
    *one->link = one->next;
    if (one->next != NULL) one->next->link = one->link;
}

static const onuma_segment *segment_of(const onuma__span *span) {
    return &((const import *)span->own)->segment;
}

static void retired(onuma__owner *owner) {
    import *one = (import *)owner;
    onuma__device *device = one->owner.device;
    onuma_import_deleter *deleter = one->deleter;
    void *user = one->user, *host = one->span.base;
    onuma__policy_lock();
    unlink_import(one);
    onuma__policy_unlock();
    device->ops->segment_destroy(atomic_load_explicit(&device->backend, memory_order_acquire), &one->segment);
    onuma__sync_end_import(owner);
    free(one);
    atomic_fetch_sub_explicit(&device->users, 1, memory_order_release);
    if (deleter != NULL) deleter(user, host);
}

/* What a driver says of it, checked: views and maps are told as offsets from there. */
static onuma_result check_segment(const onuma__device *device, const onuma_segment *segment, const void *host,
                                  size_t size) {
    if (segment->base == host && segment->size >= size) return ONUMA_OK;
    return onuma__fail(ONUMA_ERROR_INTERNAL,
                       "device %s: %zu bytes at %p were imported, the driver made %zu at %p of it", device->id, size,
                       host, segment->size, segment->base);
}

onuma_result onuma__import(onuma__device *device, void *host, size_t size, const onuma_import_desc *desc, void **out) {
    if (host == NULL || size == 0 || size > UINTPTR_MAX - (uintptr_t)host)
        return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "import: %zu bytes at %p are no memory of the program", size,
                           host);
    onuma_result r = onuma__import_check(host, size);
    if (r == ONUMA_OK) r = onuma__device_open(device);
    if (r != ONUMA_OK) return r;
    import *one = calloc(1, sizeof *one);
    if (one == NULL) return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for an import's record");
    onuma_backend_device *backend = atomic_load_explicit(&device->backend, memory_order_acquire);
    one->segment.struct_size = sizeof one->segment;
    one->owner =
        (onuma__owner){.device = device, .read_only = desc->read_only, .segment = segment_of, .retired = retired};
    r = onuma__sync_begin_import(&one->owner);
    if (r != ONUMA_OK) goto free_record;
    r = onuma__device_note(device, device->ops->import_host(backend, host, size, desc->read_only, &one->segment));
    if (r != ONUMA_OK) goto free_record;
    r = check_segment(device, &one->segment, host, size);
    if (r != ONUMA_OK) goto destroy_segment;

    one->owner.kind = one->segment.kind;
    one->span = (onuma__span){.base = host, .size = size, .own = one};
    one->deleter = desc->deleter;
    one->user = desc->user;
    atomic_fetch_add_explicit(&device->users, 1, memory_order_relaxed);
    onuma__policy_lock();
    push(&live_imports, one);
    onuma__policy_unlock();
    r = onuma__import_add(host, size, &one->span, &one->owner);
    if (r == ONUMA_OK) {
        *out = host;
        return ONUMA_OK;
    }

    onuma__policy_lock();
    unlink_import(one);
    onuma__policy_unlock();
    atomic_fetch_sub_explicit(&device->users, 1, memory_order_release);
destroy_segment:
    device->ops->segment_destroy(backend, &one->segment);
free_record:
    onuma__sync_end_import(&one->owner);
    free(one);
    return r;
}

/* The device's imports leave one list for the other. Those that live are leaks; the rest were freed, and a queue has
 * them still. */
uint64_t onuma__imports_keep(onuma__device *device) {
    onuma__leaks leaks = {.pool = "imports", .log = device->log};
    uint64_t kept = 0;
    onuma__policy_lock();
    for (import *one = live_imports, *next; one != NULL; one = next) {
        next = one->next;
        if (one->owner.device != device) continue;
        onuma__block block;
        if (onuma__engine_find(one->span.base, &block) == ONUMA_OK)
            onuma__leaks_add(&leaks, one->span.base, one->span.size);
        unlink_import(one);
        push(&kept_imports, one);
        kept++;
    }
    onuma__policy_unlock();
    onuma__leaks_report(&leaks);
    return kept;
}

bool onuma__imports_kept(const onuma__device *device) {
    onuma__policy_lock();
    const import *one = kept_imports;
    while (one != NULL && one->owner.device != device)
        one = one->next;
    onuma__policy_unlock();
    return one != NULL;
}
