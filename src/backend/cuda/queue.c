/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams and markers. A marker is an event.
 *
 * The default streams are streams like others. The legacy one (0, 1) runs in order with itself and with all that is not
 * "non-blocking". The per-thread one (2) is another stream in each thread, and which thread will free or record is not
 * known: so its queue is unordered, and its markers are recorded on the legacy stream, which comes after the per-thread
 * streams of all threads.
 *
 * A stream that captures a graph runs nothing now, and an event recorded there stands for a node, which never passes. A
 * marker on such a stream is recorded when the capture has ended: until then nothing freed there is used elsewhere.
 *
 * A program's own event is not counted by the driver, so the program keeps it until the work has passed.
 */
#include "backend/cuda/cuda.h"

#include <stdlib.h>

struct onuma_backend_queue {
    onuma_backend_device *device;
    onuma__cu_stream stream, recorded; /* which work waits on, which markers are recorded on */
};

enum { DEFERRED, BUSY, RECORDED }; /* BUSY: one thread is just trying */

struct onuma_backend_marker {
    onuma_backend_device *device;
    onuma__cu_stream stream;
    onuma__cu_event event;
    onuma__cu_event captured; /* DEFERRED: stands for the work within the capture; NULL if it could not be had */
    bool ours;                /* the event */
    /* From DEFERRED who makes it BUSY records, and releases the next state; who acquires RECORDED may ask the event. */
    _Atomic int state;
};

/* -------------------------------------------------------------------- queues */

static onuma_result check_stream(onuma_backend_device *device, uint64_t native) {
    if (!onuma__os_can_read((const void *)(uintptr_t)native))
        return device->host->fail(ONUMA_ERROR_INVALID_ARGUMENT,
                                  "0x%llx is no CUstream: pass the handle that the driver gave, or 0 for the default "
                                  "stream",
                                  (unsigned long long)native);
    onuma__cu_scope scope;
    const onuma_result r = onuma__cu_enter(device, &scope);
    if (r != ONUMA_OK) return r;
    onuma__cu_context context = NULL;
    const onuma__cu_result code = device->cu->StreamGetCtx((onuma__cu_stream)(uintptr_t)native, &context);
    onuma__cu_leave(device, &scope);
    if (code != ONUMA__CU_SUCCESS)
        return onuma__cu_fail(device->host, code, "cuStreamGetCtx of 0x%llx", (unsigned long long)native);
    if (context == device->context) return ONUMA_OK;
    return device->host->fail(
        ONUMA_ERROR_INVALID_ARGUMENT,
        "the CUstream 0x%llx is of context %p, and \"%s\" is used through its primary context %p; "
        "make the stream there",
        (unsigned long long)native, (void *)context, device->facts.info.name, (void *)device->context);
}

onuma_result onuma__cu_queue_open(onuma_backend_device *device, uint64_t native, onuma_queue_order *order,
                                  onuma_backend_queue **out) {
    onuma__cu_stream stream = (onuma__cu_stream)(uintptr_t)native;
    const bool per_thread = stream == ONUMA__CU_STREAM_PER_THREAD;
    if (native > (uintptr_t)ONUMA__CU_STREAM_PER_THREAD) {
        const onuma_result r = check_stream(device, native);
        if (r != ONUMA_OK) return r;
    }
    onuma_backend_queue *queue = malloc(sizeof *queue);
    if (queue == NULL) return device->host->fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for a CUDA stream");
    *queue = (onuma_backend_queue){device, stream, per_thread ? ONUMA__CU_STREAM_LEGACY : stream};
    if (per_thread)
        *order = ONUMA_QUEUE_UNORDERED;
    else if (*order == ONUMA_QUEUE_DETECT)
        *order = ONUMA_QUEUE_IN_ORDER;
    *out = queue;
    return ONUMA_OK;
}

void onuma__cu_queue_close(onuma_backend_queue *queue) {
    free(queue);
}

/* ------------------------------------------------------------------- markers */

/* With the context current. *recorded: whether it could be done; not during a capture. */
static onuma__cu_result try_record(const onuma_backend_marker *marker, bool *recorded) {
    const onuma__cu *cu = marker->device->cu;
    int status = ONUMA__CU_CAPTURE_STATUS_NONE;
    *recorded = false;
    onuma__cu_result code = cu->StreamIsCapturing(marker->stream, &status);
    if (code == ONUMA__CU_SUCCESS && status == ONUMA__CU_CAPTURE_STATUS_NONE) {
        code = cu->EventRecord(marker->event, marker->stream);
        *recorded = code == ONUMA__CU_SUCCESS;
    }
    /* The legacy stream is told of captures on others in this way. */
    return onuma__cu_is_capture(code) ? ONUMA__CU_SUCCESS : code;
}

/* The work so far within the capture, for other streams that are to join it. */
static void note_captured(onuma_backend_marker *marker) {
    const onuma__cu *cu = marker->device->cu;
    if (cu->EventCreate(&marker->captured, ONUMA__CU_EVENT_DISABLE_TIMING) != ONUMA__CU_SUCCESS) {
        marker->captured = NULL;
    } else if (cu->EventRecord(marker->captured, marker->stream) != ONUMA__CU_SUCCESS) {
        (void)cu->EventDestroy(marker->captured);
        marker->captured = NULL;
    }
}

static onuma__cu_result begin(onuma_backend_marker *marker) {
    const onuma__cu *cu = marker->device->cu;
    onuma__cu_result code = cu->EventCreate(&marker->event, ONUMA__CU_EVENT_DISABLE_TIMING);
    if (code != ONUMA__CU_SUCCESS) return code;
    bool recorded = false;
    code = try_record(marker, &recorded);
    if (code != ONUMA__CU_SUCCESS) {
        (void)cu->EventDestroy(marker->event);
        return code;
    }
    if (!recorded) note_captured(marker);
    atomic_init(&marker->state, recorded ? RECORDED : DEFERRED);
    return ONUMA__CU_SUCCESS;
}

static onuma_result new_marker(onuma_backend_queue *queue, onuma_backend_marker **out) {
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return queue->device->host->fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for a marker of a CUDA stream");
    (*out)->device = queue->device;
    (*out)->stream = queue->recorded;
    return ONUMA_OK;
}

onuma_result onuma__cu_marker_record(onuma_backend_queue *queue, onuma_backend_marker **out) {
    onuma_backend_device *device = queue->device;
    onuma_backend_marker *marker;
    onuma_result r = new_marker(queue, &marker);
    if (r != ONUMA_OK) return r;
    marker->ours = true;
    onuma__cu_scope scope;
    r = onuma__cu_enter(device, &scope);
    if (r != ONUMA_OK) goto failed;
    const onuma__cu_result code = begin(marker);
    onuma__cu_leave(device, &scope);
    if (code == ONUMA__CU_SUCCESS) {
        *out = marker;
        return ONUMA_OK;
    }
    r = onuma__cu_fail(device->host, code, "a marker on a stream of \"%s\"", device->facts.info.name);
failed:
    free(marker);
    return r;
}

onuma_result onuma__cu_marker_wrap(onuma_backend_queue *queue, const onuma_native_event *event,
                                   onuma_backend_marker **out) {
    const onuma_backend_host *host = queue->device->host;
    if (event->api != ONUMA_API_CUDA || !onuma__os_can_read((const void *)(uintptr_t)event->handle))
        return host->fail(ONUMA_ERROR_INVALID_ARGUMENT,
                          "the event 0x%llx of API number %u is no CUevent, which a CUDA stream takes",
                          (unsigned long long)event->handle, (unsigned)event->api);
    onuma_backend_marker *marker;
    const onuma_result r = new_marker(queue, &marker);
    if (r != ONUMA_OK) return r;
    marker->event = (onuma__cu_event)(uintptr_t)event->handle;
    atomic_init(&marker->state, RECORDED);
    *out = marker;
    return ONUMA_OK;
}

/* With the context current: record what a capture has kept from it. */
static onuma__cu_result catch_up(onuma_backend_marker *marker) {
    int deferred = DEFERRED;
    if (!atomic_compare_exchange_strong_explicit(&marker->state, &deferred, BUSY, memory_order_acquire,
                                                 memory_order_relaxed))
        return ONUMA__CU_SUCCESS;
    bool recorded = false;
    const onuma__cu_result code = try_record(marker, &recorded);
    atomic_store_explicit(&marker->state, recorded ? RECORDED : DEFERRED, memory_order_release);
    return code;
}

onuma_result onuma__cu_marker_poll(onuma_backend_marker *marker, bool *passed) {
    onuma_backend_device *device = marker->device;
    onuma__cu_scope scope;
    const onuma_result r = onuma__cu_enter(device, &scope);
    if (r != ONUMA_OK) return r;
    onuma__cu_result code = ONUMA__CU_SUCCESS;
    if (atomic_load_explicit(&marker->state, memory_order_acquire) != RECORDED) code = catch_up(marker);
    const bool recorded = atomic_load_explicit(&marker->state, memory_order_acquire) == RECORDED;
    if (code == ONUMA__CU_SUCCESS && recorded) code = device->cu->EventQuery(marker->event);
    onuma__cu_leave(device, &scope);
    if (code != ONUMA__CU_SUCCESS && code != ONUMA__CU_NOT_READY)
        return onuma__cu_fail(device->host, code, "asking how far a stream of \"%s\" is", device->facts.info.name);
    *passed = recorded && code == ONUMA__CU_SUCCESS;
    return ONUMA_OK;
}

void onuma__cu_marker_destroy(onuma_backend_marker *marker) {
    onuma_backend_device *device = marker->device;
    onuma__cu_scope scope;
    (void)onuma__cu_enter(device, &scope); /* a driver that has shut down has no events either */
    if (marker->ours) (void)device->cu->EventDestroy(marker->event);
    if (marker->captured != NULL) (void)device->cu->EventDestroy(marker->captured);
    onuma__cu_leave(device, &scope);
    free(marker);
}

onuma_result onuma__cu_queue_wait_marker(onuma_backend_queue *queue, onuma_backend_marker *marker) {
    onuma_backend_device *device = queue->device;
    const bool recorded = atomic_load_explicit(&marker->state, memory_order_acquire) == RECORDED;
    onuma__cu_event event = recorded ? marker->event : marker->captured;
    if (event == NULL)
        return device->host->fail(ONUMA_ERROR_BUSY, "a stream of \"%s\" cannot wait for one that captures a graph",
                                  device->facts.info.name);
    onuma__cu_scope scope;
    const onuma_result r = onuma__cu_enter(device, &scope);
    if (r != ONUMA_OK) return r;
    const onuma__cu_result code = device->cu->StreamWaitEvent(queue->stream, event, 0);
    onuma__cu_leave(device, &scope);
    return code == ONUMA__CU_SUCCESS
               ? ONUMA_OK
               : onuma__cu_fail(device->host, code, "cuStreamWaitEvent on \"%s\"", device->facts.info.name);
}
