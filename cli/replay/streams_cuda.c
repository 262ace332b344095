/* SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/loader.h"
#include "output.h"
#include "replay/streams.h"

/*
 * A stream for each of the trace's. What ends at an r is an event on one more stream, which waits for a number in memory
 * to come to that of the r: releases are numbered in the order of the r lines, and the replay raises the number when it
 * gets there. So one wait at a time stands for all the work of a queue that the trace does not show.
 */
typedef struct cuda_streams {
    const cli_cuda *cuda;
    cli_cuda_context context;                        /* the device's; not ours to release */
    cli_cuda_stream streams[TRACE_MOST_STREAMS + 1]; /* the last is the one behind streams.later */
    size_t stream_count;
    cli_cuda_event *later; /* by release - 1; the first `enqueued` are recorded */
    uint32_t enqueued;
    _Atomic uint32_t *reached; /* read by the device */
} cuda_streams;

static bool check(const cuda_streams *own, cli_cuda_result code, const char *what) {
    if (code) cli_error("%s: %s", what, cli_cuda_error_name(own->cuda, code));
    return !code;
}

/* A real stream moves by itself. */
static void advance(streams *s, size_t index) {
    (void)s;
    (void)index;
}

/* All waits up to this number: that of a release which no block announced comes and goes like others. */
static bool enqueue(cuda_streams *own, uint32_t number) {
    cli_cuda_stream stream = own->streams[own->stream_count - 1];
    const cli_cuda_pointer address = (uintptr_t)own->reached;
    for (; own->enqueued < number; own->enqueued++)
        if (!check(own, own->cuda->stream_wait_value(stream, address, own->enqueued + 1, CLI_CUDA_WAIT_VALUE_GEQ),
                   "cuStreamWaitValue32") ||
            !check(own, own->cuda->event_create(&own->later[own->enqueued], CLI_CUDA_EVENT_DISABLE_TIMING),
                   "cuEventCreate") ||
            !check(own, own->cuda->event_record(own->later[own->enqueued], stream), "cuEventRecord"))
            return false;
    return true;
}

static onuma_result later_use(streams *s, void *block, uint32_t number) {
    cuda_streams *own = s->own;
    if (!enqueue(own, number)) return ONUMA_ERROR_INTERNAL;
    onuma_result r = onuma_use(s->later, block, ONUMA_ACCESS_READ);
    if (r != ONUMA_OK) return r;
    onuma_native_event done = ONUMA_NATIVE_EVENT_INIT;
    done.api = ONUMA_API_CUDA;
    done.handle = (uint64_t)(uintptr_t)own->later[number - 1];
    return onuma_submitted(s->later, &done);
}

/* They come in order, but for those at the end, which were reached or never are. */
static void release(streams *s, uint32_t number) {
    cuda_streams *own = s->own;
    if (atomic_load_explicit(own->reached, memory_order_relaxed) < number)
        atomic_store_explicit(own->reached, number, memory_order_release);
}

static bool catch_up(streams *s) {
    cuda_streams *own = s->own;
    for (size_t i = 0; i < s->count; i++)
        (void)own->cuda->stream_synchronize(own->streams[i]);
    return true;
}

static void destroy(streams *s) {
    cuda_streams *own = s->own;
    cli_cuda_context ours;
    /* A wait left open would hold the device for ever. */
    if (own->reached) release(s, (uint32_t)s->trace->release_count);
    for (size_t i = 0; i < own->stream_count; i++) {
        (void)own->cuda->stream_synchronize(own->streams[i]);
        (void)own->cuda->stream_destroy(own->streams[i]);
    }
    for (uint32_t i = 0; i < own->enqueued; i++)
        (void)own->cuda->event_destroy(own->later[i]);
    if (own->reached) (void)own->cuda->host_free((void *)own->reached);
    (void)own->cuda->pop(&ours);
    free(own->later);
    free(own);
}

static const streams_operations operations = {advance, later_use, release, catch_up, destroy};

static onuma_result add_queue(cuda_streams *own, onuma_device *device, onuma_queue_order order, onuma_queue **out) {
    cli_cuda_stream stream;
    if (!check(own, own->cuda->stream_create(&stream, CLI_CUDA_STREAM_NON_BLOCKING), "cuStreamCreate"))
        return ONUMA_ERROR_INTERNAL;
    own->streams[own->stream_count++] = stream;
    onuma_queue_desc desc = ONUMA_QUEUE_DESC_INIT;
    desc.order = order;
    return onuma_queue_wrap(device, ONUMA_API_CUDA, (uint64_t)(uintptr_t)stream, &desc, out);
}

static onuma_result add_later(streams *s, cuda_streams *own, onuma_device *device) {
    const size_t count = s->trace->release_count;
    void *word = NULL;
    if (!count) return ONUMA_OK;
    own->later = cli_allocate(count * sizeof *own->later);
    if (!check(own, own->cuda->host_allocate(&word, sizeof *own->reached, CLI_CUDA_HOST_DEVICEMAP), "cuMemHostAlloc"))
        return ONUMA_ERROR_OUT_OF_MEMORY;
    own->reached = word;
    atomic_init(own->reached, 0);
    return add_queue(own, device, ONUMA_QUEUE_UNORDERED, &s->later);
}

onuma_result streams_create_cuda(streams *s, onuma_device *device, const onuma_device_info *info) {
    const char *why;
    const cli_cuda *cuda = cli_cuda_load(&why);
    if (!cuda) {
        cli_error("%s: %s", info->id, why);
        return ONUMA_ERROR_NOT_SUPPORTED;
    }
    cuda_streams *own = cli_allocate(sizeof *own);
    *own = (cuda_streams){.cuda = cuda, .context = (cli_cuda_context)(uintptr_t)info->native_context};
    s->own = own;
    s->operations = &operations;
    (void)cuda->push(own->context); /* until destroy: one thread calls all this */
    for (size_t i = 0; i < s->trace->stream_count; i++) {
        onuma_result r = add_queue(own, device, ONUMA_QUEUE_IN_ORDER, &s->queues[i]);
        if (r != ONUMA_OK) return r;
        s->count++;
    }
    return add_later(s, own, device);
}
