/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Views: how a device addresses a block.
 *
 * Where the segment has a device address, a view is arithmetic. Elsewhere it is
 * a handle made by the driver for exactly this block (never the segment's own:
 * kernels on a buffer and on a part of it at once are undefined), made once,
 * kept in the side record, and given back when the block is gone for good. The
 * thread that finds no handle leaves a place for it, and makes it with no lock
 * held; others wait for the place to be filled.
 *
 * A retained view is a reference of the user's own to the driver's handle. They
 * are counted here, so that giving back one that is not held is refused
 * instead of taking the library's reference away.
 */
#include <stdlib.h>
#include <string.h>

#include "sync/internal.h"

#define RETAINED_MARK UINT64_C(0x6f6e756d61766965)

typedef struct retained {
    struct retained *next;
    onuma__device *device;
    uint64_t handle;
    uint64_t count;
} retained;

static struct {
    onuma__os_lock lock; /* guards the list: few are retained at once */
    retained *first;
} held;

static onuma_backend_device *backend_of(const onuma__device *device) {
    return atomic_load_explicit(&device->backend, memory_order_acquire);
}

/* -------------------------------------------------------------- handles of blocks */

static onuma__block_view *find_view(const onuma__record *record, size_t size) {
    onuma__block_view *view = record->views;
    while (view && view->size != size)
        view = view->next;
    return view;
}

static void drop_place(onuma__record *record, onuma__block_view *view) {
    onuma__block_view **at = &record->views;
    while (*at != view)
        at = &(*at)->next;
    *at = view->next;
    free(view);
}

/* The record is pinned and has a place for the view. */
static onuma_result fill_place(onuma__record *record, onuma__block_view *view, uint64_t *handle) {
    onuma__device *device = record->owner->device;
    onuma_result r = onuma__device_note(
        device, device->ops->view_create(backend_of(device), record->segment, record->offset, view->size, handle));
    onuma__shard *shard = onuma__shard_lock(record->base);
    if (r == ONUMA_OK) {
        view->handle = *handle;
        view->ready = true;
    } else {
        drop_place(record, view);
        onuma__record_unpin(record);
    }
    onuma__shard_unlock(shard);
    return r;
}

onuma_result onuma__view_handle(void *ptr, uint64_t *handle, onuma__record **pinned) {
    onuma__backoff backoff;
    onuma__backoff_start(&backoff, ONUMA_TIMEOUT_INFINITE);
    for (;;) {
        onuma__block block;
        onuma__record *record;
        onuma__block_view *view = NULL;
        onuma_result r = onuma__engine_find(ptr, &block);
        if (r != ONUMA_OK) return r;
        onuma__shard *shard = onuma__shard_lock(block.base);
        r = onuma__record_open(shard, &block, NULL, &record);
        bool mine = r == ONUMA_OK && !(view = find_view(record, record->size));
        if (mine && (view = calloc(1, sizeof *view)) != NULL) {
            view->size = record->size;
            view->next = record->views;
            record->views = view;
        }
        bool ready = view && view->ready;
        if (view && (mine || ready)) onuma__record_pin(record);
        if (ready) *handle = view->handle;
        onuma__shard_unlock(shard);
        if (r != ONUMA_OK) return r;
        if (!view) return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for a view");
        if (mine || ready) *pinned = record;
        if (mine) return fill_place(record, view, handle);
        if (ready) return ONUMA_OK;
        (void)onuma__backoff_pause(&backoff);
    }
}

void onuma__views_destroy(onuma__record *record) {
    onuma__device *device = record->owner->device;
    /* A child must leave the parent's driver alone. */
    if (record->generation != onuma__os_process_generation()) return;
    for (onuma__block_view *view = record->views; view; view = view->next)
        if (view->ready) device->ops->view_release(backend_of(device), view->handle);
}

/* --------------------------------------------------------------- retained handles */

static onuma_result count_retained(onuma__device *device, uint64_t handle) {
    retained *fresh = malloc(sizeof *fresh);
    if (!fresh) return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory to retain a view");
    onuma__os_lock_acquire(&held.lock);
    retained *entry = held.first;
    while (entry && (entry->device != device || entry->handle != handle))
        entry = entry->next;
    if (entry) {
        entry->count++;
    } else {
        *fresh = (retained){held.first, device, handle, 1};
        held.first = fresh;
        fresh = NULL;
    }
    onuma__os_lock_release(&held.lock);
    free(fresh);
    return ONUMA_OK;
}

/* false: it is not held. */
static bool uncount_retained(const onuma__device *device, uint64_t handle) {
    retained *gone = NULL;
    onuma__os_lock_acquire(&held.lock);
    retained **at = &held.first;
    while (*at && ((*at)->device != device || (*at)->handle != handle))
        at = &(*at)->next;
    bool found = *at != NULL;
    if (found && --(*at)->count == 0) {
        gone = *at;
        *at = gone->next;
    }
    onuma__os_lock_release(&held.lock);
    free(gone);
    return found;
}

void onuma__views_forget_device(const onuma__device *device) {
    onuma__os_lock_acquire(&held.lock);
    for (retained **at = &held.first; *at;) {
        retained *entry = *at;
        if (entry->device == device) {
            *at = entry->next;
            free(entry);
        } else {
            at = &entry->next;
        }
    }
    onuma__os_lock_release(&held.lock);
}

/* ------------------------------------------------------------------------ the calls */

static onuma_result check(const onuma__block *block, const onuma__device *device, onuma_api api) {
    const onuma__owner *owner = block->owner;
    if (api != device->ops->api)
        return onuma__fail(ONUMA_ERROR_NOT_SUPPORTED, "device %s gives views for its own api, %u (%s), not for api %u",
                           device->id, device->ops->api, device->ops->name, api);
    if (owner->device != device)
        return onuma__fail(
            ONUMA_ERROR_NOT_SUPPORTED,
            "block %p is memory of device %s, which %s cannot see: allocate it from a pool of %s, or import it there",
            block->base, owner->device->id, device->id, device->id);
    return ONUMA_OK;
}

static onuma_result handle_view(void *ptr, bool retain, onuma__device *device, uint64_t *handle) {
    onuma__record *record;
    if (!(device->info.abilities & ONUMA_ABILITY_HANDLES))
        return onuma__fail(ONUMA_ERROR_NOT_SUPPORTED, "device %s has neither an address nor a handle for block of %p",
                           device->id, ptr);
    onuma_result r = onuma__view_handle(ptr, handle, &record);
    if (r != ONUMA_OK) return r;
    if (retain) {
        r = count_retained(device, *handle);
        if (r == ONUMA_OK) device->ops->view_retain(backend_of(device), *handle);
    }
    onuma__record_unpin(record);
    return r;
}

onuma_result onuma__view_get(void *ptr, onuma__device *device, onuma_api api, onuma_view *out) {
    onuma__block block;
    uint64_t handle = 0;
    bool retain = (out->flags & ONUMA_VIEW_RETAIN) != 0;
    if (out->flags & ~ONUMA_VIEW_RETAIN)
        return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "view flags 0x%x: only ONUMA_VIEW_RETAIN is known",
                           out->flags);
    onuma_result r = onuma__engine_find(ptr, &block);
    if (r == ONUMA_OK) r = check(&block, device, api);
    if (r != ONUMA_OK) return r;
    const onuma__owner *owner = block.owner;
    const onuma_segment *segment = owner->segment ? owner->segment(block.span) : NULL;
    if (!segment)
        return onuma__fail(ONUMA_ERROR_NOT_SUPPORTED, "block %p is simulated: there is no memory behind it to view",
                           block.base);
    size_t within = (size_t)((uintptr_t)ptr - (uintptr_t)block.base);
    if (segment->address == 0) {
        r = handle_view(ptr, retain, device, &handle);
        if (r != ONUMA_OK) return r;
    }
    out->via = segment->address ? device->info.via : ONUMA_VIA_HANDLE;
    out->pointer = segment->address ? segment->address + block.offset + within : 0;
    out->handle = handle;
    out->offset = handle ? within : 0;
    out->size = block.size - within;
    out->reserved[0] = retain ? (uint64_t)(uintptr_t)device : 0;
    out->reserved[1] = retain ? RETAINED_MARK : 0;
    return ONUMA_OK;
}

onuma_result onuma__view_release(onuma_view *view) {
    if (!(view->flags & ONUMA_VIEW_RETAIN) || view->reserved[1] != RETAINED_MARK)
        return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT,
                           "only a view got with ONUMA_VIEW_RETAIN is given back, and once");
    onuma__device *device = (onuma__device *)(uintptr_t)view->reserved[0];
    if (view->handle != 0) {
        /* Known by value alone until it is found: the device may be gone. */
        if (!uncount_retained(device, view->handle))
            return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT,
                               "view handle 0x%llx is not held: it was given back before, or its device is gone",
                               (unsigned long long)view->handle);
        device->ops->view_release(backend_of(device), view->handle);
    }
    view->reserved[0] = view->reserved[1] = 0;
    return ONUMA_OK;
}

void onuma__views_fork(onuma__fork_step step) {
    if (step == ONUMA__FORK_BEFORE)
        onuma__os_lock_acquire(&held.lock);
    else
        onuma__os_lock_release(&held.lock);
}
