/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "opencl/loader.h"
#include "output.h"
#include "replay/streams.h"

/*
 * A command queue for each stream. What ends at an r is a user event, which the
 * replay completes when it gets there: it stands for the work of a queue that the
 * trace does not show.
 */
typedef struct opencl_streams {
    const cli_opencl *cl;
    cl_context context;                              /* the device's; not ours to release */
    cl_command_queue queues[TRACE_MOST_STREAMS + 1]; /* the last is the one behind streams.later */
    size_t queue_count;
    cl_event *later; /* by release - 1; NULL: not announced, or over */
} opencl_streams;

/* A real queue moves by itself. */
static void advance(streams *s, size_t index) {
    (void)s;
    (void)index;
}

static onuma_result later_use(streams *s, void *block, uint32_t number) {
    opencl_streams *own = s->own;
    cl_int code;
    cl_event event = own->cl->clCreateUserEvent(own->context, &code);
    if (!event) {
        cli_error("clCreateUserEvent: %s", cli_opencl_error_name(code));
        return ONUMA_ERROR_INTERNAL;
    }
    own->later[number - 1] = event; /* so that it is completed in any case */
    onuma_result r = onuma_use(s->later, block, ONUMA_ACCESS_READ);
    if (r != ONUMA_OK) return r;
    onuma_native_event done = ONUMA_NATIVE_EVENT_INIT;
    done.api = ONUMA_API_OPENCL;
    done.handle = (uint64_t)(uintptr_t)event;
    return onuma_submitted(s->later, &done);
}

static void release(streams *s, uint32_t number) {
    opencl_streams *own = s->own;
    cl_event *event = &own->later[number - 1];
    if (!*event) return;
    own->cl->clSetUserEventStatus(*event, CL_COMPLETE);
    own->cl->clReleaseEvent(*event);
    *event = NULL;
}

static bool catch_up(streams *s) {
    opencl_streams *own = s->own;
    for (size_t i = 0; i < s->count; i++)
        own->cl->clFinish(own->queues[i]);
    return true;
}

static void destroy(streams *s) {
    opencl_streams *own = s->own;
    /* A user event left open would make the driver wait for ever. */
    for (uint32_t number = 1; own->later && number <= s->trace->release_count; number++)
        release(s, number);
    for (size_t i = 0; i < own->queue_count; i++)
        own->cl->clReleaseCommandQueue(own->queues[i]);
    free(own->later);
    free(own);
}

static const streams_operations operations = {advance, later_use, release, catch_up, destroy};

static onuma_result add_queue(opencl_streams *own, onuma_device *device, const onuma_device_info *info,
                              onuma_queue_order order, onuma_queue **out) {
    cl_int code;
    cl_command_queue queue =
        own->cl->clCreateCommandQueue(own->context, (cl_device_id)(uintptr_t)info->native_device, 0, &code);
    if (!queue) {
        cli_error("%s: clCreateCommandQueue: %s", info->id, cli_opencl_error_name(code));
        return ONUMA_ERROR_INTERNAL;
    }
    own->queues[own->queue_count++] = queue;
    onuma_queue_desc desc = ONUMA_QUEUE_DESC_INIT;
    desc.order = order;
    return onuma_queue_wrap(device, ONUMA_API_OPENCL, (uint64_t)(uintptr_t)queue, &desc, out);
}

onuma_result streams_create_opencl(streams *s, onuma_device *device, const onuma_device_info *info) {
    const char *why;
    const cli_opencl *cl = cli_opencl_load(&why);
    if (!cl) {
        cli_error("%s: %s", info->id, why);
        return ONUMA_ERROR_NOT_SUPPORTED;
    }
    opencl_streams *own = cli_allocate(sizeof *own);
    *own = (opencl_streams){.cl = cl, .context = (cl_context)(uintptr_t)info->native_context};
    size_t events = s->trace->release_count * sizeof *own->later;
    own->later = memset(cli_allocate(events), 0, events);
    s->own = own;
    s->operations = &operations;
    for (size_t i = 0; i < s->trace->stream_count; i++) {
        onuma_result r = add_queue(own, device, info, ONUMA_QUEUE_IN_ORDER, &s->queues[i]);
        if (r != ONUMA_OK) return r;
        s->count++;
    }
    if (!s->trace->release_count) return ONUMA_OK;
    return add_queue(own, device, info, ONUMA_QUEUE_UNORDERED, &s->later);
}
