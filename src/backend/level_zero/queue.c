/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queues and markers. A queue is a command queue or an immediate command list; the handle does not tell which, so the
 * program says so with ONUMA_LEVEL_ZERO_LIST, which sets the lowest bit of the number. A marker is a barrier that sets
 * an event of ours behind all that was submitted before: appended to an immediate list, or in a list of its own that
 * the queue executes. The driver counts no references, so a native event that the program announces, and the queue
 * itself, are the program's to keep.
 */
#include "backend/level_zero/level_zero.h"

#include <stdlib.h>

struct onuma_backend_queue {
    onuma_backend_device *device;
    ze_command_queue_handle_t queue; /* one of these is NULL */
    ze_command_list_handle_t list;
    uint32_t ordinal; /* of the queue's group */
};

struct onuma_backend_marker {
    onuma_backend_device *device;
    ze_event_handle_t event;
    onuma__ze_signal *signal; /* whose event it is, one reference; NULL: the program's */
};

/* -------------------------------------------------------------------- queues */

/* Where the driver tells, a list of another context or device is refused; its memory it could not use. */
static onuma_result check_list(const onuma_backend_device *device, ze_command_list_handle_t list) {
    const onuma__ze *ze = device->ze;
    ze_context_handle_t context = NULL;
    ze_device_handle_t id = NULL;
    if (ze->zeCommandListGetContextHandle == NULL || ze->zeCommandListGetDeviceHandle == NULL ||
        ze->zeCommandListGetContextHandle(list, &context) != ZE_RESULT_SUCCESS ||
        ze->zeCommandListGetDeviceHandle(list, &id) != ZE_RESULT_SUCCESS)
        return ONUMA_OK;
    if (context == device->context && id == device->facts.device) return ONUMA_OK;
    return device->host->fail(
        ONUMA_ERROR_INVALID_ARGUMENT,
        "the ze_command_list_handle_t %p is of device %p in context %p, and \"%s\" of device %p in context %p, whose "
        "memory the list could not use; make it there, or get its device with onuma_device_from_queue",
        (void *)list, (void *)id, (void *)context, device->facts.info.name, (void *)device->facts.device,
        (void *)device->context);
}

onuma_result onuma__ze_queue_open(onuma_backend_device *device, uint64_t native, onuma_queue_order *order,
                                  onuma_backend_queue **out) {
    const bool is_list = (native & 1) != 0;
    onuma_backend_queue found = {.device = device};
    void *handle = (void *)(uintptr_t)(native - is_list);
    onuma_result r = onuma__ze_check_handle(device->host, handle,
                                            is_list ? "ze_command_list_handle_t" : "ze_command_queue_handle_t");
    if (r != ONUMA_OK) return r;
    if (is_list) {
        found.list = handle;
        r = check_list(device, found.list);
    } else {
        found.queue = handle;
        /* Since version 1.9. Before, the first group, which computes on every device seen so far. */
        if (device->ze->zeCommandQueueGetOrdinal == NULL ||
            device->ze->zeCommandQueueGetOrdinal(found.queue, &found.ordinal) != ZE_RESULT_SUCCESS)
            found.ordinal = 0;
    }
    if (r != ONUMA_OK) return r;
    onuma_backend_queue *queue = malloc(sizeof *queue);
    if (queue == NULL) return device->host->fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for a Level Zero queue");
    *queue = found;
    /* Commands start in the order of submission and may overlap, unless the list was made in order, which none tells. */
    if (*order == ONUMA_QUEUE_DETECT) *order = ONUMA_QUEUE_UNORDERED;
    *out = queue;
    return ONUMA_OK;
}

void onuma__ze_queue_close(onuma_backend_queue *queue) {
    free(queue);
}

/* ---------------------------------------------------------------- submission */

/* The signal's own list, open and empty. */
static ze_result_t prepare_list(const onuma_backend_queue *queue, onuma__ze_signal *signal) {
    const onuma_backend_device *device = queue->device;
    const onuma__ze *ze = device->ze;
    if (signal->list != NULL && signal->ordinal == queue->ordinal) return ze->zeCommandListReset(signal->list);
    if (signal->list != NULL) ze->zeCommandListDestroy(signal->list);
    signal->list = NULL;
    signal->ordinal = queue->ordinal;
    const ze_command_list_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC,
                                         .commandQueueGroupOrdinal = queue->ordinal};
    return ze->zeCommandListCreate(device->context, device->facts.device, &desc, &signal->list);
}

/* Sets `signal` when all before is done, and `after`, if that is not NULL; later work comes after both. */
static onuma_result submit(const onuma_backend_queue *queue, onuma__ze_signal *signal, ze_event_handle_t after) {
    const onuma__ze *ze = queue->device->ze;
    const uint32_t count = after != NULL;
    ze_event_handle_t *list = after != NULL ? &after : NULL;
    ze_result_t code;
    if (queue->list != NULL) {
        code = ze->zeCommandListAppendBarrier(queue->list, signal->event, count, list);
    } else {
        code = prepare_list(queue, signal);
        if (code == ZE_RESULT_SUCCESS) code = ze->zeCommandListAppendBarrier(signal->list, signal->event, count, list);
        if (code == ZE_RESULT_SUCCESS) code = ze->zeCommandListClose(signal->list);
        if (code == ZE_RESULT_SUCCESS)
            code = ze->zeCommandQueueExecuteCommandLists(queue->queue, 1, &signal->list, NULL);
    }
    return code == ZE_RESULT_SUCCESS ? ONUMA_OK
                                     : onuma__ze_fail(queue->device->host, code, "a barrier on a queue of \"%s\"",
                                                      queue->device->facts.info.name);
}

/* ------------------------------------------------------------------- markers */

static onuma_result new_marker(onuma_backend_device *device, onuma_backend_marker value, onuma_backend_marker **out) {
    onuma_backend_marker *marker = malloc(sizeof *marker);
    if (marker == NULL)
        return device->host->fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for a marker of a Level Zero queue");
    *marker = value;
    *out = marker;
    return ONUMA_OK;
}

onuma_result onuma__ze_marker_record(onuma_backend_queue *queue, onuma_backend_marker **out) {
    onuma_backend_device *device = queue->device;
    onuma__ze_signal *signal = NULL;
    onuma_backend_marker *marker = NULL;
    onuma_result r = onuma__ze_signal_take(device, &signal);
    if (r != ONUMA_OK) return r;
    r = new_marker(device, (onuma_backend_marker){device, signal->event, signal}, &marker);
    if (r == ONUMA_OK) r = submit(queue, signal, NULL);
    if (r != ONUMA_OK) {
        free(marker);
        onuma__ze_signal_return(device, signal);
        return r;
    }
    *out = marker;
    return ONUMA_OK;
}

onuma_result onuma__ze_marker_wrap(onuma_backend_queue *queue, const onuma_native_event *event,
                                   onuma_backend_marker **out) {
    onuma_backend_device *device = queue->device;
    ze_event_handle_t native = (ze_event_handle_t)(uintptr_t)event->handle;
    if (event->api != ONUMA_API_LEVEL_ZERO)
        return device->host->fail(
            ONUMA_ERROR_INVALID_ARGUMENT,
            "the event %p of API number %u is no ze_event_handle_t, which a Level Zero queue takes", (void *)native,
            (unsigned)event->api);
    const onuma_result r = onuma__ze_check_handle(device->host, native, "ze_event_handle_t");
    return r != ONUMA_OK ? r : new_marker(device, (onuma_backend_marker){device, native, NULL}, out);
}

onuma_result onuma__ze_marker_poll(onuma_backend_marker *marker, bool *passed) {
    const ze_result_t code = marker->device->ze->zeEventQueryStatus(marker->event);
    if (code != ZE_RESULT_SUCCESS && code != ZE_RESULT_NOT_READY)
        return onuma__ze_fail(marker->device->host, code, "zeEventQueryStatus of a marker");
    *passed = code == ZE_RESULT_SUCCESS;
    return ONUMA_OK;
}

void onuma__ze_marker_destroy(onuma_backend_marker *marker) {
    if (marker->signal != NULL) onuma__ze_signal_drop(marker->device, marker->signal);
    free(marker);
}

onuma_result onuma__ze_queue_wait_marker(onuma_backend_queue *queue, onuma_backend_marker *marker) {
    onuma_backend_device *device = queue->device;
    onuma__ze_signal *signal = NULL;
    onuma_result r = onuma__ze_signal_take(device, &signal);
    if (r != ONUMA_OK) return r;
    r = submit(queue, signal, marker->event);
    if (r != ONUMA_OK) {
        onuma__ze_signal_return(device, signal);
        return r;
    }
    if (marker->signal != NULL) {
        /* Relaxed: the marker's own reference keeps it meanwhile. */
        atomic_fetch_add_explicit(&marker->signal->references, 1, memory_order_relaxed);
        signal->awaited = marker->signal;
    }
    onuma__ze_signal_drop(device, signal);
    return ONUMA_OK;
}
