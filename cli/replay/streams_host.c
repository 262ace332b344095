/* SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>
#include <stdlib.h>

#include "output.h"
#include "replay/streams.h"

/*
 * Every operation is one piece of work on its stream. `done` walks through the
 * operations behind the replay; those before it are complete. So no stream needs
 * a list of what it was given. One thread steps the timelines, and any thread of the
 * library may read them: hence the release stores.
 */
typedef struct host_streams {
    size_t done, given; /* operations that are complete, and that streams were given; done <= given */
    onuma_host_timeline later;
    onuma_host_timeline timelines[TRACE_MOST_STREAMS];
} host_streams;

static void raise_to(_Atomic uint64_t *counter, uint64_t value) {
    if (atomic_load_explicit(counter, memory_order_relaxed) < value)
        atomic_store_explicit(counter, value, memory_order_release);
}

static void add_one(_Atomic uint64_t *counter) {
    raise_to(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1);
}

static void complete_one(host_streams *host, const trace *t) {
    add_one(&host->timelines[t->ops[host->done++].stream].completed);
}

static void advance(streams *s, size_t index) {
    host_streams *host = s->own;
    const trace_op *op = &s->trace->ops[index];
    while (host->done < host->given && op->time_us - s->trace->ops[host->done].time_us >= STREAMS_LAG_US)
        complete_one(host, s->trace);
    add_one(&host->timelines[op->stream].submitted);
    host->given = index + 1;
}

static bool catch_up(streams *s) {
    host_streams *host = s->own;
    bool behind = host->done < host->given;
    while (host->done < host->given)
        complete_one(host, s->trace);
    return behind;
}

/* Releases are numbered in the order of the r lines, so the number of one is the timeline's value once it is reached.
 */
static onuma_result later_use(streams *s, void *block, uint32_t number) {
    host_streams *host = s->own;
    onuma_result r = onuma_use(s->later, block, ONUMA_ACCESS_READ);
    if (r != ONUMA_OK) return r;
    raise_to(&host->later.submitted, number);
    onuma_native_event done = ONUMA_NATIVE_EVENT_INIT;
    done.api = ONUMA_API_HOST;
    done.handle = number;
    return onuma_submitted(s->later, &done);
}

static void release(streams *s, uint32_t number) {
    host_streams *host = s->own;
    raise_to(&host->later.submitted, number);
    raise_to(&host->later.completed, number);
}

static void destroy(streams *s) {
    free(s->own);
}

static const streams_operations operations = {advance, later_use, release, catch_up, destroy};

/* The library waits for a stream: the time that passes meanwhile is not the trace's, and long enough for the streams and
 * for whatever later queue still used what was freed so far. */
static void wait(void *user) {
    streams *s = user;
    host_streams *host = s->own;
    (void)catch_up(s);
    raise_to(&host->later.completed, atomic_load_explicit(&host->later.submitted, memory_order_relaxed));
}

static onuma_result wrap(streams *s, onuma_device *device, onuma_host_timeline *timeline, onuma_queue_order order,
                         onuma_queue **out) {
    onuma_queue_desc desc = ONUMA_QUEUE_DESC_INIT;
    desc.order = order;
    desc.user = s;
    desc.wait = wait;
    return onuma_queue_wrap(device, ONUMA_API_HOST, (uint64_t)(uintptr_t)timeline, &desc, out);
}

onuma_result streams_create_host(streams *s, onuma_device *device) {
    host_streams *host = cli_allocate(sizeof *host);
    host->done = host->given = 0;
    atomic_init(&host->later.submitted, 0);
    atomic_init(&host->later.completed, 0);
    s->own = host;
    s->operations = &operations;
    for (size_t i = 0; i < s->trace->stream_count; i++) {
        atomic_init(&host->timelines[i].submitted, 0);
        atomic_init(&host->timelines[i].completed, 0);
        onuma_result r = wrap(s, device, &host->timelines[i], ONUMA_QUEUE_IN_ORDER, &s->queues[i]);
        if (r != ONUMA_OK) return r;
        s->count++;
    }
    if (!s->trace->release_count) return ONUMA_OK;
    return wrap(s, device, &host->later, ONUMA_QUEUE_UNORDERED, &s->later);
}
