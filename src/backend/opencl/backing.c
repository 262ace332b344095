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
    bool ours;         /* unmapped with the record; else the program's */
    _Atomic int state; /* acquire-release exchanges: who frees has seen all that the other did */
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
    atomic_store_explicit(&backing->state, HELD, memory_order_release);
    const cl_int code = device->cl->clSetMemObjectDestructorCallback(memory, driver_is_done, backing);
    return code == CL_SUCCESS ? ONUMA_OK
                              : onuma__cl_fail(device->host, code, "clSetMemObjectDestructorCallback on \"%s\"",
                                               device->facts.info.name);
}

void onuma__cl_backing_release(const onuma_backend_device *device, onuma__cl_backing *backing) {
    const uint64_t end = onuma__os_now() + (backing->ours ? WAIT_OURS : WAIT_PROGRAM);
    uint64_t pause = 1000;
    while (atomic_load_explicit(&backing->state, memory_order_relaxed) == HELD && onuma__os_now() < end) {
        onuma__os_sleep(pause);
        if (pause < 1000000) pause *= 2;
    }
    const bool ours = backing->ours;
    void *base = backing->base;
    if (atomic_exchange_explicit(&backing->state, LEFT, memory_order_acq_rel) == DONE) {
        onuma__cl_backing_discard(backing);
        return;
    }
    /* From here on the record is the callback's. */
    device->host->log(device->host, ours ? ONUMA_LOG_INFO : ONUMA_LOG_WARN,
                      ours ? "the OpenCL driver still holds the pages at %p; they are unmapped when it lets go"
                           : "the OpenCL driver still holds imported memory at %p (a view retained by the program?); "
                             "it must stay mapped until that is released",
                      base);
}
