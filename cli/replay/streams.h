/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The streams of a trace as queues of a device.
 *
 * The host device has no work of its own, so its queues are timelines that the
 * replay moves: what a stream was given at time t of the trace is done at t +
 * STREAMS_LAG_US. One millisecond is how far a GPU typically runs behind the
 * program (in the traces recorded from PyTorch the r of a block comes 0.6 to 2.9 ms
 * after its f). A device with a driver gets real queues, which take their own time.
 *
 * A block with an r is used, when it is freed, by a queue that the trace does not
 * name. That is one more queue, unordered, because the r lines need not come in
 * the order of the f lines; each use on it is done when its r is reached.
 */
#ifndef CLI_REPLAY_STREAMS_H
#define CLI_REPLAY_STREAMS_H

#include "opennuma/opennuma.h"
#include "replay/trace.h"

enum { STREAMS_LAG_US = 1000 };

typedef struct streams streams;

/* What a kind of device does; one thread calls. */
typedef struct streams_operations {
    /* Operation `index` of the trace is about to run: its stream gets work, and time has come to that operation's. */
    void (*advance)(streams *s, size_t index);
    /* Announce the use of a block that ends at its r, which has the number `release`. */
    onuma_result (*later_use)(streams *s, void *block, uint32_t release);
    /* That r is reached. Without an announced use it does nothing. */
    void (*release)(streams *s, uint32_t release);
    /* All work given to the streams so far is done; no r is reached by this. false: it was done already. */
    bool (*catch_up)(streams *s);
    /* Give the native queues back, after the library's wrappers. */
    void (*destroy)(streams *s);
} streams_operations;

struct streams {
    const trace *trace;
    onuma_queue *queues[TRACE_MOST_STREAMS]; /* by the trace's index of the stream */
    size_t count;                            /* of queues wrapped so far */
    onuma_queue *later;                      /* NULL if the trace has no r */
    const streams_operations *operations;
    void *own; /* the kind's */
};

/*
 * The device must have been used (a pool be created), so that it has its native context. NOT_SUPPORTED, with a
 * line on standard error, where the driver's loader cannot be had; other failures are the library's.
 */
onuma_result streams_create(const onuma_runtime *rt, onuma_device *device, const trace *t, streams *out);

/* Everything is done, every r reached. Then frees are no longer held back. */
void streams_finish(streams *s);
void streams_destroy(streams *s);

/* The kinds, which fill all but `trace`. On failure *s is as far as it came; streams_create destroys it. */
onuma_result streams_create_host(streams *s, onuma_device *device);
onuma_result streams_create_opencl(streams *s, onuma_device *device, const onuma_device_info *info);
onuma_result streams_create_cuda(streams *s, onuma_device *device, const onuma_device_info *info);

#endif
