/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cl_mem over host pages uses them until its destructor callback, however long that is after our last release: a
 * driver may free on a thread of its own, and a program that retained a view (a sub-buffer) keeps the parent, and so
 * the pages, for as long as it likes. Unmapping before would hand the device pages that mean something else.
 *
 * So a small record stands between us and the driver:
 *
 *     HELD ----callback----> DONE                 release() finds DONE and frees
 *       \----release(), after waiting----> LEFT   the callback finds LEFT and frees
 *
 * Whoever comes second frees, and touches neither device nor instance, which may be gone by then. For pages of ours
 * the wait only lets the common case (the driver is done at once or a moment later, on its own thread) count as given
 * back. For the program's pages it matters: when an import's free is over, the program may unmap them. It is bounded
 * because the driver may hold on for ever without using them: Rusticl's kernels keep what was last bound to them.
 *
 * A loader that hands calls on to another world (Wine's opencl.dll) has no callbacks to give. There our reference, kept
 * until it is the last, is what tells: sub-buffers and kernels hold references to the parent, and no command of ours is
 * under way any more. Whatever is not alone when it is released lingers on the device and is looked at again whenever
 * another segment comes or goes.
 */
#include "backend/opencl/backing.h"
#include "os/os.h"

#include <stdlib.h>

enum { HELD, DONE, LEFT };

#define WAIT_OURS 5000000ull      /* 5 ms */
#define WAIT_PROGRAM 200000000ull /* 200 ms */

struct onuma__cl_backing {
    void *base;
    size_t size;
    bool ours;               /* unmapped with the record; else the program's */
    bool untold;             /* no callback will come; constant once attached, and then `state` stays HELD */
    cl_mem memory;           /* one reference, until it is released */
    onuma__cl_backing *next; /* lingering: of whoever took the list */
    _Atomic int state;       /* acquire-release exchanges: who frees has seen all that the other did */
};

onuma_result onuma__cl_backing_create(const onuma_backend_device *device, void *base, size_t size, bool ours,
                                      onuma__cl_backing **out) {
    onuma__cl_backing *backing = malloc(sizeof *backing);
    if (backing == NULL) {
        if (ours) onuma__os_release(base, size);
        return device->host->fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for the record of an OpenCL segment");
    }
    *backing = (onuma__cl_backing){.base = base, .size = size, .ours = ours, .state = HELD};
    *out = backing;
    return ONUMA_OK;
}

void onuma__cl_backing_discard(onuma__cl_backing *backing) {
    if (backing->ours) onuma__os_release(backing->base, backing->size);
    free(backing);
}

static void CL_CALLBACK driver_is_done(cl_mem memory, void *user) {
    (void)memory;
    onuma__cl_backing *backing = user;
    if (atomic_exchange_explicit(&backing->state, DONE, memory_order_acq_rel) == LEFT)
        onuma__cl_backing_discard(backing);
}

onuma_result onuma__cl_backing_attach(const onuma_backend_device *device, onuma__cl_backing *backing, cl_mem memory) {
    /* Release: the callback's acquire on another thread sees the whole record, whatever the driver does in between. */
    backing->memory = memory;
    atomic_store_explicit(&backing->state, HELD, memory_order_release);
    const cl_int code = device->cl->clSetMemObjectDestructorCallback(memory, driver_is_done, backing);
    backing->untold = code == CL_INVALID_OPERATION; /* not among the errors of this function: it is not there */
    if (backing->untold) return ONUMA_OK;
    return code == CL_SUCCESS ? ONUMA_OK
                              : onuma__cl_fail(device->host, code, "clSetMemObjectDestructorCallback on \"%s\"",
                                               device->facts.info.name);
}

/* ------------------------------------------------------- drivers that do not tell */

static bool is_alone(const onuma_backend_device *device, const onuma__cl_backing *backing) {
    cl_uint references = 0;
    return device->cl->clGetMemObjectInfo(backing->memory, CL_MEM_REFERENCE_COUNT, sizeof references, &references,
                                          NULL) == CL_SUCCESS &&
           references == 1;
}

static void let_go(const onuma_backend_device *device, onuma__cl_backing *backing) {
    device->cl->clReleaseMemObject(backing->memory);
    onuma__cl_backing_discard(backing);
}

static void linger(onuma_backend_device *device, onuma__cl_backing *backing) {
    /* Release: who takes the list reads the record. */
    backing->next = atomic_load_explicit(&device->lingering, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&device->lingering, &backing->next, backing, memory_order_release,
                                                  memory_order_relaxed)) {
    }
}

void onuma__cl_backing_sweep(onuma_backend_device *device) {
    if (atomic_load_explicit(&device->lingering, memory_order_relaxed) == NULL) return;
    onuma__cl_backing *backing = atomic_exchange_explicit(&device->lingering, NULL, memory_order_acquire);
    while (backing != NULL) {
        onuma__cl_backing *next = backing->next;
        if (is_alone(device, backing))
            let_go(device, backing);
        else
            linger(device, backing);
        backing = next;
    }
}

/* ---------------------------------------------------------------------- release */

static bool is_done(const onuma_backend_device *device, const onuma__cl_backing *backing) {
    return backing->untold ? is_alone(device, backing)
                           : atomic_load_explicit(&backing->state, memory_order_relaxed) != HELD;
}

static void wait_until_done(const onuma_backend_device *device, const onuma__cl_backing *backing) {
    const uint64_t end = onuma__os_now() + (backing->ours ? WAIT_OURS : WAIT_PROGRAM);
    uint64_t pause = 1000;
    while (!is_done(device, backing) && onuma__os_now() < end) {
        onuma__os_sleep(pause);
        if (pause < 1000000) pause *= 2;
    }
}

void onuma__cl_backing_release(onuma_backend_device *device, onuma__cl_backing *backing) {
    const bool ours = backing->ours;
    void *base = backing->base;
    onuma__cl_backing_sweep(device);
    if (!backing->untold) device->cl->clReleaseMemObject(backing->memory);
    wait_until_done(device, backing);
    if (backing->untold) {
        if (is_alone(device, backing)) {
            let_go(device, backing);
            return;
        }
        linger(device, backing);
    } else if (atomic_exchange_explicit(&backing->state, LEFT, memory_order_acq_rel) == DONE) {
        onuma__cl_backing_discard(backing);
        return;
    }
    /* From here on the record is the callback's, or the list's. */
    device->host->log(device->host, ours ? ONUMA_LOG_INFO : ONUMA_LOG_WARN,
                      ours ? "the OpenCL driver still holds the pages at %p; they are unmapped when it lets go"
                           : "the OpenCL driver still holds imported memory at %p (a view retained by the program?); "
                             "it must stay mapped until that is released",
                      base);
}
