/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Markers: points in a queue that frees and accesses wait for.
 *
 * A marker costs a driver call (12 ms on some queues when they pile up), so it
 * is lazy and shared: whoever needs "everything submitted so far has passed"
 * joins the queue's open marker, which reaches the driver when somebody first
 * asks how far it is. Recording later than asked covers more work, never less,
 * so sharing is always safe; it only ever waits a little longer.
 *
 * The recording thread takes the marker off the queue before it enters the
 * driver. Everyone who joined did so before that, so what they had submitted
 * lies before the driver's marker.
 *
 *     PENDING → RECORDING → RECORDED → PASSED
 *        ↑          │           │
 *        └──────────┘ failed    └→ (failed, not lost) RECORDING → RECORDED, behind the failed work
 *                   └───────────┴→ LOST
 *
 * The one thread that swaps the state to RECORDING owns it until it stores the
 * next. A poll that fails proves nothing about the work before the marker (an
 * event in error may end while other commands of an unordered queue still
 * run), so it never counts as passed.
 */
#include <stdlib.h>

#include "sync/internal.h"

onuma__marker *onuma__marker_create(onuma__queue_object *queue) {
    onuma__marker *marker = atomic_exchange_explicit(&queue->spare_marker, NULL, memory_order_acquire);
    if (marker)
        *marker = (onuma__marker){0};
    else
        marker = calloc(1, sizeof *marker);
    if (!marker) return NULL;
    atomic_init(&marker->references, 1);
    atomic_init(&marker->state, ONUMA__MARKER_PENDING);
    marker->queue = onuma__queue_retain(queue);
    return marker;
}

void onuma__marker_release(onuma__marker *marker, onuma__dead *dead) {
    if (!marker) return;
    /* Release: our use of it is over; acquire: so is everyone else's before it is destroyed. */
    if (atomic_fetch_sub_explicit(&marker->references, 1, memory_order_acq_rel) != 1) return;
    marker->next_dead = dead->markers;
    dead->markers = marker;
}

static void destroy(onuma__marker *marker, onuma__dead *dead) {
    onuma__queue_object *queue = marker->queue;
    if (onuma__queue_begin(queue)) {
        for (size_t i = 0; i < ONUMA__MARKER_TRIES; i++)
            if (marker->native[i]) queue->shared.device->ops->marker_destroy(marker->native[i]);
        onuma__queue_end(queue);
    }
    free(atomic_exchange_explicit(&queue->spare_marker, marker, memory_order_acq_rel));
    onuma__queue_drop(queue, dead);
}

void onuma__dead_bury(onuma__dead *dead) {
    while (dead->markers) {
        onuma__marker *marker = dead->markers;
        dead->markers = marker->next_dead;
        destroy(marker, dead);
    }
    while (dead->queues) {
        onuma__queue_object *queue = dead->queues;
        dead->queues = queue->next_dead;
        onuma__queue_close(queue);
    }
}

onuma__join onuma__marker_join(onuma__queue_object *queue, onuma__marker **out) {
    onuma__marker *fresh = NULL, *joined = NULL;
    bool released;
    *out = NULL;
    for (;;) {
        onuma__os_lock_acquire(&queue->lock);
        released = queue->released;
        if (!released && !queue->open && fresh) {
            queue->open = fresh;
            fresh = NULL;
        }
        joined = released ? queue->last : queue->open;
        if (joined) onuma__marker_retain(joined);
        onuma__os_lock_release(&queue->lock);
        if (joined || released || fresh) break;
        fresh = onuma__marker_create(queue);
        if (!fresh) return ONUMA__NO_MEMORY;
    }
    if (fresh) { /* another thread was first; nobody has seen ours */
        atomic_fetch_sub_explicit(&queue->references, 1, memory_order_relaxed); /* not the last: the caller has one */
        free(fresh);
    }
    *out = joined;
    return joined ? ONUMA__JOINED : ONUMA__ALL_PASSED;
}

/* Whatever its driver says from then on, work that was on it proves nothing. Relaxed: never cleared. */
static bool is_lost(const onuma__device *device) {
    return atomic_load_explicit(&device->lost, memory_order_relaxed);
}

static onuma_result refuse_lost(const onuma__device *device) {
    return onuma__fail(ONUMA_ERROR_DEVICE_LOST, "device %s was lost: destroy its runtime and make another", device->id);
}

/* onuma__queue_begin, for calls that a lost device must not get either. */
static onuma_result begin(onuma__queue_object *queue) {
    if (!onuma__queue_begin(queue)) return onuma__queue_refuse(queue);
    if (!is_lost(queue->shared.device)) return ONUMA_OK;
    onuma_result r = refuse_lost(queue->shared.device);
    onuma__queue_end(queue);
    return r;
}

/* From RECORDING: let the driver record into native[i]. On failure the state goes back to `otherwise`, or to LOST. */
static onuma_result record_into(onuma__marker *marker, uint32_t i, uint32_t otherwise) {
    onuma__queue_object *queue = marker->queue;
    onuma__device *device = queue->shared.device;
    onuma_backend_marker *native = NULL;
    onuma_result r = begin(queue);
    if (r == ONUMA_OK) {
        onuma__queue_enter(queue);
        r = device->ops->marker_record(queue->native, &native);
        onuma__queue_leave(queue);
        r = onuma__device_note(device, r);
        onuma__queue_end(queue);
    }
    if (r == ONUMA_OK) {
        marker->native[i] = native;
        atomic_store_explicit(&marker->tries, i, memory_order_release);
        otherwise = ONUMA__MARKER_RECORDED;
    } else if (r == ONUMA_ERROR_DEVICE_LOST) {
        otherwise = ONUMA__MARKER_LOST;
    }
    atomic_store_explicit(&marker->state, otherwise, memory_order_release);
    return r;
}

static bool claim(onuma__marker *marker, uint32_t from) {
    return atomic_compare_exchange_strong_explicit(&marker->state, &from, ONUMA__MARKER_RECORDING, memory_order_acq_rel,
                                                   memory_order_relaxed);
}

/* It is no longer, or not yet, PENDING. */
static onuma_result judge_claimed(const onuma__marker *marker) {
    if (onuma__marker_state(marker) != ONUMA__MARKER_LOST) return ONUMA_OK;
    return refuse_lost(marker->queue->shared.device);
}

onuma_result onuma__marker_record_apart(onuma__marker *marker) {
    if (!claim(marker, ONUMA__MARKER_PENDING)) return judge_claimed(marker);
    return record_into(marker, 0, ONUMA__MARKER_PENDING);
}

onuma_result onuma__marker_record_new(onuma__marker *marker) {
    atomic_store_explicit(&marker->state, ONUMA__MARKER_RECORDING, memory_order_relaxed);
    return record_into(marker, 0, ONUMA__MARKER_PENDING);
}

onuma_result onuma__marker_record(onuma__marker *marker) {
    onuma__queue_object *queue = marker->queue;
    if (!claim(marker, ONUMA__MARKER_PENDING)) return judge_claimed(marker);
    onuma__os_lock_acquire(&queue->lock);
    if (queue->open == marker) {
        queue->open = NULL;
        atomic_fetch_sub_explicit(&marker->references, 1, memory_order_relaxed); /* not the last: the caller has one */
    }
    onuma__os_lock_release(&queue->lock);
    return record_into(marker, 0, ONUMA__MARKER_PENDING);
}

onuma_result onuma__marker_wrap(onuma__queue_object *queue, const onuma_native_event *event, onuma__marker **out) {
    onuma__device *device = queue->shared.device;
    onuma__marker *marker = onuma__marker_create(queue);
    if (!marker) return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for a marker");
    onuma_result r = begin(queue);
    if (r == ONUMA_OK) {
        r = onuma__device_note(device, device->ops->marker_wrap(queue->native, event, &marker->native[0]));
        onuma__queue_end(queue);
    }
    if (r != ONUMA_OK) {
        onuma__dead dead = {0};
        marker->native[0] = NULL;
        onuma__marker_release(marker, &dead);
        onuma__dead_bury(&dead);
        return r;
    }
    atomic_store_explicit(&marker->state, ONUMA__MARKER_RECORDED, memory_order_release);
    marker->foreign = event->api != ONUMA_API_HOST;
    *out = marker;
    return ONUMA_OK;
}

/* From RECORDED alone: a thread that is recording anew has the last word. */
static void settle(onuma__marker *marker, uint32_t final) {
    uint32_t from = ONUMA__MARKER_RECORDED;
    atomic_compare_exchange_strong_explicit(&marker->state, &from, final, memory_order_acq_rel, memory_order_relaxed);
}

/* A poll of native[i] failed without the device being lost. */
static void poll_failed(onuma__marker *marker, uint32_t i) {
    if (!claim(marker, ONUMA__MARKER_RECORDED)) return;
    if (atomic_load_explicit(&marker->tries, memory_order_acquire) != i) /* another thread has already recorded anew */
        atomic_store_explicit(&marker->state, ONUMA__MARKER_RECORDED, memory_order_release);
    else if (i + 1 == ONUMA__MARKER_TRIES)
        atomic_store_explicit(&marker->state, ONUMA__MARKER_LOST, memory_order_release);
    else
        (void)record_into(marker, i + 1, ONUMA__MARKER_LOST);
}

/* A recorded one. */
static void ask(onuma__marker *marker) {
    onuma__device *device = marker->queue->shared.device;
    uint32_t i = atomic_load_explicit(&marker->tries, memory_order_acquire);
    bool passed = false;
    onuma_result r = ONUMA_ERROR_DEVICE_LOST;
    if (!is_lost(device)) r = onuma__device_note(device, device->ops->marker_poll(marker->native[i], &passed));
    if (r == ONUMA_ERROR_DEVICE_LOST)
        settle(marker, ONUMA__MARKER_LOST);
    else if (r != ONUMA_OK)
        poll_failed(marker, i);
    else if (passed)
        settle(marker, ONUMA__MARKER_PASSED);
}

/*
 * Nobody asks about a queue that was released and is done: all that it had has passed, and the program may have taken
 * away what an answer would come from, as the timeline of a host queue.
 */
static bool pass_finished(onuma__marker *marker) {
    /* Sequentially consistent, and so acquire: the caller sees what the queue's work wrote. See onuma__queue_release. */
    if (marker->foreign || !atomic_load(&marker->queue->finished)) return false;
    uint32_t from = ONUMA__MARKER_PENDING;
    if (!atomic_compare_exchange_strong_explicit(&marker->state, &from, ONUMA__MARKER_PASSED, memory_order_acq_rel,
                                                 memory_order_relaxed))
        settle(marker, ONUMA__MARKER_PASSED);
    return onuma__marker_state(marker) == ONUMA__MARKER_PASSED;
}

uint32_t onuma__marker_poll(onuma__marker *marker, uint64_t pass) {
    uint32_t state = onuma__marker_state(marker);
    if (state == ONUMA__MARKER_PASSED || state == ONUMA__MARKER_LOST) return state;
    if (pass_finished(marker)) return ONUMA__MARKER_PASSED;
    if (pass != 0 && atomic_exchange_explicit(&marker->polled_in, pass, memory_order_relaxed) == pass) return state;
    if (!onuma__queue_begin(marker->queue)) return ONUMA__MARKER_LOST;
    /* Once more: who finished the queue since waits for those that are inside, and nobody else. */
    if (pass_finished(marker)) {
        onuma__queue_end(marker->queue);
        return ONUMA__MARKER_PASSED;
    }
    if (state == ONUMA__MARKER_PENDING) (void)onuma__marker_record(marker);
    if (onuma__marker_state(marker) == ONUMA__MARKER_RECORDED) ask(marker);
    onuma__queue_end(marker->queue);
    return onuma__marker_state(marker);
}

uint64_t onuma__marker_new_pass(void) {
    static _Atomic uint64_t passes; /* relaxed: only has to be unique */
    return atomic_fetch_add_explicit(&passes, 1, memory_order_relaxed) + 1;
}
