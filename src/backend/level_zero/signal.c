/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals: events of our own, and for command queues a short command list each that sets one. They come from pools of
 * our own, made when none is left, and are used again and again.
 *
 * An event is reset before it is used again, so the device must be done with it in every respect: the work that sets
 * it, and work of other queues that waits for it. So a signal is counted. The marker holds a reference, and so does
 * each signal whose work awaits it. With the last reference it goes to `pending`; whoever takes a signal looks at a
 * few of those, and what is set by then is free. Its list is reset too, which the device leaves a moment after the
 * list's last command has set the event: so those that are free are taken in turn, and the one just set comes last.
 * Fences would do the same, but die with their queue, which is the program's.
 *
 * What is still pending when the device closes may be set at any time, so then all stay, with their context.
 */
#include "backend/level_zero/level_zero.h"

#include <stdlib.h>

#define POOL_EVENTS 32
#define LOOKS 8 /* at pending ones, each time */

typedef struct pool {
    ze_event_pool_handle_t handle;
    onuma__ze_signal signals[POOL_EVENTS];
    struct pool *next;
} pool;

/* A queue: first in, first out. */
typedef struct chain {
    onuma__ze_signal *first, *last;
} chain;

struct onuma__ze_signals {
    onuma__os_lock lock; /* guards all of this; never held while the driver is called */
    pool *pools;
    chain unused, pending;
    size_t pending_count;
};

static void put(chain *to, onuma__ze_signal *signal) {
    signal->next = NULL;
    if (to->first == NULL)
        to->first = signal;
    else
        to->last->next = signal;
    to->last = signal;
}

static onuma__ze_signal *get(chain *from) {
    onuma__ze_signal *signal = from->first;
    if (signal != NULL) from->first = signal->next;
    return signal;
}

onuma_result onuma__ze_signals_create(onuma_backend_device *device) {
    device->signals = calloc(1, sizeof *device->signals);
    if (device->signals != NULL) return ONUMA_OK;
    return device->host->fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for the events of Level Zero device \"%s\"",
                              device->facts.info.name);
}

/* -------------------------------------------------------------------- pools */

static void destroy_pool(const onuma__ze *ze, pool *p) {
    for (size_t i = 0; i < POOL_EVENTS; i++) {
        if (p->signals[i].list != NULL) ze->zeCommandListDestroy(p->signals[i].list);
        if (p->signals[i].event != NULL) ze->zeEventDestroy(p->signals[i].event);
    }
    ze->zeEventPoolDestroy(p->handle);
    free(p);
}

static onuma_result create_pool(const onuma_backend_device *device, pool **out) {
    const onuma__ze *ze = device->ze;
    ze_device_handle_t handle = device->facts.device;
    const ze_event_pool_desc_t desc = {
        .stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, .flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE, .count = POOL_EVENTS};
    pool *p = calloc(1, sizeof *p);
    if (p == NULL) return device->host->fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for a pool of Level Zero events");
    ze_result_t code = ze->zeEventPoolCreate(device->context, &desc, 1, &handle, &p->handle);
    if (code != ZE_RESULT_SUCCESS) {
        free(p);
        return onuma__ze_fail(device->host, code, "zeEventPoolCreate on \"%s\"", device->facts.info.name);
    }
    for (uint32_t i = 0; code == ZE_RESULT_SUCCESS && i < POOL_EVENTS; i++) {
        const ze_event_desc_t event = {.stype = ZE_STRUCTURE_TYPE_EVENT_DESC,
                                       .index = i,
                                       .signal = ZE_EVENT_SCOPE_FLAG_HOST, /* the device's writes reach the CPU */
                                       .wait = ZE_EVENT_SCOPE_FLAG_DEVICE};
        code = ze->zeEventCreate(p->handle, &event, &p->signals[i].event);
    }
    if (code != ZE_RESULT_SUCCESS) {
        destroy_pool(ze, p);
        return onuma__ze_fail(device->host, code, "zeEventCreate on \"%s\"", device->facts.info.name);
    }
    *out = p;
    return ONUMA_OK;
}

/* ------------------------------------------------------------------- sweeping */

static bool is_set(const onuma__ze *ze, const onuma__ze_signal *signal) {
    return ze->zeEventQueryStatus(signal->event) == ZE_RESULT_SUCCESS;
}

/* Looks at up to `count` that are pending. */
static void sweep(onuma_backend_device *device, size_t count) {
    struct onuma__ze_signals *s = device->signals;
    for (size_t i = 0; i < count; i++) {
        onuma__os_lock_acquire(&s->lock);
        onuma__ze_signal *signal = get(&s->pending);
        onuma__os_lock_release(&s->lock);
        if (signal == NULL) return;
        const bool set = is_set(device->ze, signal);
        onuma__ze_signal *awaited = set ? signal->awaited : NULL;
        if (set) signal->awaited = NULL;
        onuma__os_lock_acquire(&s->lock);
        put(set ? &s->unused : &s->pending, signal);
        s->pending_count -= set;
        onuma__os_lock_release(&s->lock);
        if (awaited != NULL) onuma__ze_signal_drop(device, awaited);
    }
}

bool onuma__ze_signals_destroy(onuma_backend_device *device) {
    struct onuma__ze_signals *s = device->signals;
    /* One that is set may free another that it awaited, so as often as there are some. */
    for (size_t left = s->pending_count + 1; left > 0 && s->pending_count != 0; left--)
        sweep(device, s->pending_count);
    if (s->pending_count != 0) {
        free(s); /* pools and events stay */
        return false;
    }
    while (s->pools != NULL) {
        pool *p = s->pools;
        s->pools = p->next;
        destroy_pool(device->ze, p);
    }
    free(s);
    return true;
}

/* ------------------------------------------------------------------ lifetimes */

static onuma__ze_signal *get_unused(struct onuma__ze_signals *s) {
    onuma__os_lock_acquire(&s->lock);
    onuma__ze_signal *signal = get(&s->unused);
    onuma__os_lock_release(&s->lock);
    return signal;
}

onuma_result onuma__ze_signal_take(onuma_backend_device *device, onuma__ze_signal **out) {
    struct onuma__ze_signals *s = device->signals;
    sweep(device, LOOKS);
    onuma__ze_signal *signal = get_unused(s);
    if (signal == NULL) {
        pool *fresh = NULL;
        const onuma_result r = create_pool(device, &fresh);
        if (fresh == NULL) return r;
        onuma__os_lock_acquire(&s->lock);
        fresh->next = s->pools;
        s->pools = fresh;
        for (size_t i = 1; i < POOL_EVENTS; i++)
            put(&s->unused, &fresh->signals[i]);
        onuma__os_lock_release(&s->lock);
        signal = &fresh->signals[0];
    }
    const ze_result_t code = device->ze->zeEventHostReset(signal->event);
    if (code != ZE_RESULT_SUCCESS) {
        onuma__ze_signal_return(device, signal);
        return onuma__ze_fail(device->host, code, "zeEventHostReset on \"%s\"", device->facts.info.name);
    }
    atomic_store_explicit(&signal->references, 1, memory_order_relaxed); /* nobody else has it */
    *out = signal;
    return ONUMA_OK;
}

void onuma__ze_signal_return(onuma_backend_device *device, onuma__ze_signal *signal) {
    struct onuma__ze_signals *s = device->signals;
    onuma__os_lock_acquire(&s->lock);
    put(&s->unused, signal);
    onuma__os_lock_release(&s->lock);
}

void onuma__ze_signal_drop(onuma_backend_device *device, onuma__ze_signal *signal) {
    struct onuma__ze_signals *s = device->signals;
    if (atomic_fetch_sub_explicit(&signal->references, 1, memory_order_acq_rel) != 1) return;
    onuma__os_lock_acquire(&s->lock);
    put(&s->pending, signal);
    s->pending_count++;
    onuma__os_lock_release(&s->lock);
}
