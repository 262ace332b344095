/* SPDX-License-Identifier: Apache-2.0 */
/* Queues and markers. A marker is an event; it keeps its queue, so it may outlive ours. */
#include "backend/opencl/opencl.h"

#include <stdlib.h>

struct onuma_backend_queue {
    onuma_backend_device *device;
    cl_command_queue queue; /* one reference is ours */
};

struct onuma_backend_marker {
    const onuma__cl *cl;
    const onuma_backend_host *host;
    cl_event event;         /* one reference is ours */
    cl_command_queue queue; /* that the event belongs to, one reference ours; NULL for user events */
    _Atomic bool flushed;   /* relaxed: flushing twice does no harm */
};

/* -------------------------------------------------------------------- queues */

static onuma_result check_context(const onuma_backend_device *device, cl_command_queue queue) {
    cl_context context = NULL;
    cl_device_id id = NULL;
    cl_int code = device->cl->clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof(cl_context), &context, NULL);
    if (code == CL_SUCCESS)
        code = device->cl->clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof(cl_device_id), &id, NULL);
    if (code != CL_SUCCESS) return onuma__cl_fail(device->host, code, "clGetCommandQueueInfo");
    if (context == device->context && onuma__cl_is_device(device->cl, device->facts.device, id)) return ONUMA_OK;
    return device->host->fail(
        ONUMA_ERROR_INVALID_ARGUMENT,
        "the cl_command_queue %p is of device %p in context %p, and \"%s\" of device %p in context "
        "%p, whose memory the queue could not use; make it there, or get its device with "
        "onuma_device_from_queue",
        (void *)queue, (void *)id, (void *)context, device->facts.info.name, (void *)device->facts.device,
        (void *)device->context);
}

static onuma_result detect_order(const onuma_backend_device *device, cl_command_queue queue, onuma_queue_order *order) {
    cl_command_queue_properties properties = 0;
    const cl_int code =
        device->cl->clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL);
    if (code != CL_SUCCESS) return onuma__cl_fail(device->host, code, "clGetCommandQueueInfo");
    *order = (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0 ? ONUMA_QUEUE_UNORDERED : ONUMA_QUEUE_IN_ORDER;
    return ONUMA_OK;
}

onuma_result onuma__cl_queue_open(onuma_backend_device *device, uint64_t native, onuma_queue_order *order,
                                  onuma_backend_queue **out) {
    cl_command_queue handle = (cl_command_queue)(uintptr_t)native;
    onuma_result r = onuma__cl_check_handle(device->instance, handle, "cl_command_queue");
    if (r == ONUMA_OK) r = check_context(device, handle);
    onuma_queue_order detected = *order;
    if (r == ONUMA_OK && detected == ONUMA_QUEUE_DETECT) r = detect_order(device, handle, &detected);
    if (r != ONUMA_OK) return r;

    onuma_backend_queue *queue = malloc(sizeof *queue);
    if (queue == NULL) return device->host->fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for an OpenCL queue");
    const cl_int code = device->cl->clRetainCommandQueue(handle);
    if (code != CL_SUCCESS) {
        free(queue);
        return onuma__cl_fail(device->host, code, "clRetainCommandQueue");
    }
    *queue = (onuma_backend_queue){device, handle};
    *order = detected;
    *out = queue;
    return ONUMA_OK;
}

void onuma__cl_queue_close(onuma_backend_queue *queue) {
    queue->device->cl->clReleaseCommandQueue(queue->queue);
    free(queue);
}

/* ------------------------------------------------------------------- markers */

/* Takes over one reference to `event`, also when it fails. */
static onuma_result new_marker(const onuma_backend_device *device, cl_event event, onuma_backend_marker **out) {
    const onuma__cl *cl = device->cl;
    cl_command_queue queue = NULL;
    cl_int code = cl->clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof(cl_command_queue), &queue, NULL);
    if (code == CL_SUCCESS && queue != NULL) code = cl->clRetainCommandQueue(queue);
    if (code != CL_SUCCESS) {
        cl->clReleaseEvent(event);
        return onuma__cl_fail(device->host, code, "clGetEventInfo");
    }
    onuma_backend_marker *marker = malloc(sizeof *marker);
    if (marker == NULL) {
        if (queue != NULL) cl->clReleaseCommandQueue(queue);
        cl->clReleaseEvent(event);
        return device->host->fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for a marker of an OpenCL queue");
    }
    *marker = (onuma_backend_marker){.cl = cl, .host = device->host, .event = event, .queue = queue};
    *out = marker;
    return ONUMA_OK;
}

onuma_result onuma__cl_marker_record(onuma_backend_queue *queue, onuma_backend_marker **out) {
    const onuma_backend_device *device = queue->device;
    cl_event event;
    /* With no list it waits for all that was submitted before, in either order of queue. */
    const cl_int code = device->cl->clEnqueueMarkerWithWaitList(queue->queue, 0, NULL, &event);
    if (code != CL_SUCCESS)
        return onuma__cl_fail(device->host, code, "clEnqueueMarkerWithWaitList on \"%s\"", device->facts.info.name);
    return new_marker(device, event, out);
}

onuma_result onuma__cl_marker_wrap(onuma_backend_queue *queue, const onuma_native_event *event,
                                   onuma_backend_marker **out) {
    const onuma_backend_device *device = queue->device;
    cl_event native = (cl_event)(uintptr_t)event->handle;
    if (event->api != ONUMA_API_OPENCL || native == NULL)
        return device->host->fail(ONUMA_ERROR_INVALID_ARGUMENT,
                                  "the event %p of API number %u is no cl_event, which an OpenCL queue takes",
                                  (void *)native, (unsigned)event->api);
    const cl_int code = device->cl->clRetainEvent(native);
    if (code != CL_SUCCESS) return onuma__cl_fail(device->host, code, "clRetainEvent");
    return new_marker(device, native, out);
}

/* Without it some drivers never begin the work that the event stands for. */
static onuma_result flush_once(onuma_backend_marker *marker) {
    if (marker->queue == NULL || atomic_load_explicit(&marker->flushed, memory_order_relaxed)) return ONUMA_OK;
    const cl_int code = marker->cl->clFlush(marker->queue);
    if (code != CL_SUCCESS) return onuma__cl_fail(marker->host, code, "clFlush");
    atomic_store_explicit(&marker->flushed, true, memory_order_relaxed);
    return ONUMA_OK;
}

onuma_result onuma__cl_marker_poll(onuma_backend_marker *marker, bool *passed) {
    const onuma_result r = flush_once(marker);
    if (r != ONUMA_OK) return r;
    cl_int status = CL_QUEUED;
    const cl_int code =
        marker->cl->clGetEventInfo(marker->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
    if (code != CL_SUCCESS) return onuma__cl_fail(marker->host, code, "clGetEventInfo");
    if (status < 0) { /* the code tells of the work, not of this call: only a lost device is told apart */
        const onuma_result of_work =
            onuma__cl_fail(marker->host, status, "work on an OpenCL queue ended with an error");
        return of_work == ONUMA_ERROR_DEVICE_LOST ? of_work : ONUMA_ERROR_INTERNAL;
    }
    *passed = status == CL_COMPLETE;
    return ONUMA_OK;
}

void onuma__cl_marker_destroy(onuma_backend_marker *marker) {
    marker->cl->clReleaseEvent(marker->event);
    if (marker->queue != NULL) marker->cl->clReleaseCommandQueue(marker->queue);
    free(marker);
}

onuma_result onuma__cl_queue_wait_marker(onuma_backend_queue *queue, onuma_backend_marker *marker) {
    /* The other queue's work must have begun, or this one would wait for what nobody has handed to the device. */
    const onuma_result r = flush_once(marker);
    if (r != ONUMA_OK) return r;
    const cl_int code = marker->cl->clEnqueueBarrierWithWaitList(queue->queue, 1, &marker->event, NULL);
    return code == CL_SUCCESS ? ONUMA_OK : onuma__cl_fail(marker->host, code, "clEnqueueBarrierWithWaitList");
}
