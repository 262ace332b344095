/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where kernels run, so that each check is written once for every driver API.
 *
 * A runner is one device with a queue of its own (in order, unless it is asked for otherwise) and the demo's
 * kernels on it. It launches kernels on pool blocks, following the library's
 * rules (announce, bind the view, submit, seal), and on the driver's own
 * buffers, which is the default way that ours is measured against. A driver
 * API is a runner_ops: see runner_host.c for the smallest.
 *
 * Functions return false on failure and leave the reason in `error`.
 */
#ifndef DEMO_RUNNER_H
#define DEMO_RUNNER_H

#include "demo/fault.h"
#include "demo/kernels.h"
#include "opennuma/opennuma.h"
#include "output.h"

#include <stdbool.h>

typedef struct runner runner;

/* A buffer of the driver, with memory of its own. */
typedef struct runner_buffer {
    uint64_t handle; /* the API's */
    size_t size;
    struct runner_buffer *next; /* the runner's, for those it owns itself */
} runner_buffer;

typedef enum runner_argument_kind { RUNNER_BLOCK, RUNNER_BUFFER, RUNNER_NUMBER } runner_argument_kind;

typedef struct runner_argument {
    runner_argument_kind kind;
    union {
        void *block; /* a pointer into a block, its start or not */
        const runner_buffer *buffer;
        uint32_t number;
    };
} runner_argument;

#define BLOCK(pointer) ((runner_argument){.kind = RUNNER_BLOCK, .block = (pointer)})
#define BUFFER(from) ((runner_argument){.kind = RUNNER_BUFFER, .buffer = (from)})
#define NUMBER(value) ((runner_argument){.kind = RUNNER_NUMBER, .number = (uint32_t)(value)})
#define ARGUMENTS(...) ((const runner_argument[]){__VA_ARGS__})

/* An argument as the API binds it. */
typedef struct runner_binding {
    runner_argument_kind kind;
    onuma_view view; /* of a block */
    const runner_buffer *buffer;
    uint32_t number;
} runner_binding;

typedef struct runner_ops {
    onuma_api api;
    const char *default_way;                       /* how programs without this library hand data over */
    bool (*open)(runner *r, const runner *beside); /* the device is opened; sets native_queue and own; clears unordered
                                                      where there are no such queues. beside: of the same device, or NULL */
    void (*close)(runner *r);
    bool (*enqueue)(runner *r, kernel_id kernel, size_t items, const runner_binding *bindings);
    bool (*finish)(runner *r); /* waits for all work */
    /* Later work of r comes after what `on` has by now; *event stands for that. NULL: the library does it. */
    bool (*wait_for)(runner *r, const runner *on, onuma_native_event *event);
    /* Work enqueued after gate_close starts only after gate_open. */
    bool (*gate_close)(runner *r);
    void (*gate_open)(runner *r);
    bool (*buffer_create)(runner *r, runner_buffer *buffer); /* of buffer->size bytes */
    void (*buffer_destroy)(runner *r, runner_buffer *buffer);
    bool (*buffer_write)(runner *r, const runner_buffer *buffer, const void *from); /* complete on return */
    bool (*buffer_read)(runner *r, const runner_buffer *buffer, void *to);
} runner_ops;

struct runner {
    onuma_device *device;
    onuma_device_info info;
    onuma_queue *queue;
    uint64_t native_queue;
    const runner_ops *ops;
    const demo_fault *fault;
    void *own;
    bool unordered; /* work may overtake earlier work */
    bool batching;
    runner_buffer *copies; /* of the fault that binds copies */
    char error[512];
};

extern const runner_ops runner_host_ops, runner_opencl_ops, runner_cuda_ops;

/* Open a device that a pool was created on already, because that is what opens its context. */
bool runner_open(runner *r, onuma_device *device, const demo_fault *fault);
/* Another queue of the same device; unordered only if there are such queues. */
bool runner_open_beside(runner *r, const runner *beside, bool unordered);
void runner_close(runner *r);

/* Record why, and false. */
bool runner_fail(runner *r, const char *format, ...) CLI_FORMAT(2);
/* A result of the library: true if it is OK, else recorded with its detail text. */
bool runner_check(runner *r, onuma_result result, const char *what);

/* Run a kernel over `items` items, with its tensors in blocks or in buffers. Returns when it is submitted. */
bool runner_launch(runner *r, kernel_id kernel, size_t items, const runner_argument *arguments);
bool runner_finish(runner *r);
/* What is launched on r from now on comes after what was launched on `on`. */
bool runner_wait_for(runner *r, const runner *on);

/* Between these, launches announce their accesses but are sealed together at the end, as a program with many kernels does. */
void runner_batch_begin(runner *r);
bool runner_batch_end(runner *r);

/* The CPU's access to a block: the library's host access, but for what the fault leaves out. */
onuma_result runner_try_acquire(runner *r, void *block, size_t size, onuma_access mode, uint64_t timeout_ns);
bool runner_acquire(runner *r, void *block, size_t size, onuma_access mode);
bool runner_release(runner *r, void *block, size_t size, onuma_access mode);

#endif
