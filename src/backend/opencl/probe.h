/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sharing probe: before any data of a user's passes through a way to share, a kernel has proved it here.
 *
 *     verdict.c        who looks, when, and once: the memo of one runtime, the cache of the user
 *     probe.c          the choice: which ways are tried, in which order, and what follows
 *     probe_trial.c    the trial of one way
 *     probe_kernel.c   the kernel, and its queue
 *     probe_key.c      what a verdict depends on
 */
#ifndef ONUMA_BACKEND_OPENCL_PROBE_H
#define ONUMA_BACKEND_OPENCL_PROBE_H

#include "backend/opencl/opencl.h"
#include "backend/proof_cache.h"

/* Raised when a change of the probe makes earlier verdicts worthless. */
#define ONUMA__CL_PROBE_VERSION "2"

/* ---- verdict.c */

/* One device, and one kind of context on it. */
typedef struct onuma__cl_verdict_slot onuma__cl_verdict_slot;

/* Take over what earlier runs found, for each device of the instance. Opens none. */
void onuma__cl_verdicts_recall(onuma_backend_instance *instance);
/* Settle how `device`, whose context is open and which nobody else knows yet, shares memory: from the memo, from the
 * cache, or by a probe. Threads that race for one device wait for the one that probes. */
onuma_result onuma__cl_verdict_settle(onuma_backend_device *device);
void onuma__cl_verdicts_forget(onuma_backend_instance *instance);

/* ---- probe_key.c */

/* `context` NULL: one of ours, with this device alone. */
void onuma__cl_probe_key(const onuma_backend_instance *instance, const onuma__cl_facts *facts, cl_context context,
                         onuma__proof_key *out);

/* ---- probe.c */

/* Look. *lasting: whether the next run would find the same. Fails for want of memory, or with the device lost. */
onuma_result onuma__cl_probe(onuma_backend_device *device, onuma__cl_verdict *out, bool *lasting);

/* ---- probe_kernel.c */

/* The kernel and a queue of its own. */
typedef struct onuma__cl_runner {
    onuma_backend_device *device;
    cl_command_queue queue;
    cl_program program;
    size_t group;
} onuma__cl_runner;

/* The setting, in nanoseconds. */
uint64_t onuma__cl_patience(const onuma_backend_device *device);

/* Sets the device's deadline. NOT_SUPPORTED: the device takes no kernel. */
onuma_result onuma__cl_runner_open(onuma_backend_device *device, onuma__cl_runner *out);
void onuma__cl_runner_close(onuma__cl_runner *runner);

/* Where a kernel works. */
typedef struct onuma__cl_place {
    onuma__cl_way way; /* how it is bound: by pointer, or (IMPORT, NONE) by handle */
    void *pointer;
    cl_mem memory;
    size_t from, count; /* bytes */
} onuma__cl_place;

/* Change every byte there by `mask`; complete on return. TIMEOUT as in onuma__cl_await. */
onuma_result onuma__cl_runner_run(const onuma__cl_runner *runner, cl_kernel kernel, const onuma__cl_place *place,
                                  unsigned char mask);
onuma_result onuma__cl_runner_kernel(const onuma__cl_runner *runner, cl_kernel *out);

/* ---- probe_trial.c */

typedef enum { ONUMA__CL_SIGHT_FREE, ONUMA__CL_SIGHT_MAPPED } onuma__cl_sight; /* without, with map and unmap */

/* What a trial found. */
typedef struct onuma__cl_finding {
    bool holds;
    bool wrong;           /* a wrong byte was seen; else the driver failed a call */
    bool refused;         /* it had no memory to give */
    uint64_t max_segment; /* as in the verdict */
    char why[160];        /* if it does not hold */
} onuma__cl_finding;

/*
 * Whether each side sees the other's writes by this way. Fails for want of memory of our own, with the device lost,
 * and with TIMEOUT if a command never ends.
 */
onuma_result onuma__cl_try(onuma_backend_device *device, onuma__cl_runner *runner, onuma__cl_way way,
                           onuma__cl_sight sight, onuma__cl_finding *out);

#endif
