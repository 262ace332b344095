/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice of the way to share. Ways are tried from the fastest; the first that holds is taken, and what did not hold
 * is told. A way that promises coherence and does not keep it is still good with map and unmap around accesses, where it
 * has them. What OpenCL itself only promises between map and unmap (coarse SVM, imports) is always mapped, even where
 * the probe saw that it works without: a driver may begin to copy when memory gets short.
 */
#include "backend/opencl/probe.h"
#include "os/os.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether memory is so plentiful that a driver's refusal says something of the driver. */
static bool memory_is_plenty(void) {
    uint64_t total, available;
    onuma__os_memory(&total, &available);
    return available == 0 || available > UINT64_C(1) << 30;
}

typedef struct probe {
    onuma_backend_device *device;
    onuma__cl_runner runner;
    onuma__cl_verdict verdict;
    bool lasting;
} probe;

static void tell(probe *p, const char *format, ...) ONUMA__PRINTF(2, 3);
static void tell(probe *p, const char *format, ...) {
    char *text = p->verdict.detail;
    size_t used = strlen(text);
    const size_t room = sizeof p->verdict.detail;
    if (used != 0) used += (size_t)snprintf(text + used, room - used, "; ");
    if (used >= room) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, room - used, format, arguments);
    va_end(arguments);
}

/* A wrong byte is one too many. A call that failed may have met bad luck, so it gets a second chance. */
static onuma_result try_way(probe *p, onuma__cl_way way, onuma__cl_sight sight, onuma__cl_finding *finding) {
    onuma_result r = onuma__cl_try(p->device, &p->runner, way, sight, finding);
    if (r == ONUMA_OK && !finding->holds && !finding->wrong)
        r = onuma__cl_try(p->device, &p->runner, way, sight, finding);
    if (r != ONUMA_OK) return r;
    if (finding->refused || finding->max_segment != 0) p->lasting &= memory_is_plenty();
    return ONUMA_OK;
}

static void take(probe *p, onuma__cl_way way, bool mapped, const onuma__cl_finding *finding) {
    p->verdict.way = way;
    p->verdict.mapped = mapped;
    p->verdict.max_segment = finding->max_segment;
    tell(p, "%s proved%s", onuma__cl_way_names[way], mapped ? " with map and unmap" : "");
    if (finding->max_segment == 0) return;
    p->verdict.notes |= ONUMA_SHARING_LESS;
    tell(p, "the driver refuses more than some %llu bytes at once, though it states %llu",
         (unsigned long long)finding->max_segment, (unsigned long long)p->device->facts.stated_most);
}

/* USM has no map. Neither has a way of SVM that shares nothing at all. */
static onuma_result try_pointers(probe *p, onuma__cl_way way) {
    onuma__cl_finding finding;
    const bool promises = way != ONUMA__CL_SVM_COARSE;
    if (promises) {
        const onuma_result r = try_way(p, way, ONUMA__CL_SIGHT_FREE, &finding);
        if (r != ONUMA_OK) return r;
        if (finding.holds) {
            take(p, way, false, &finding);
            return ONUMA_OK;
        }
        p->verdict.notes |= ONUMA_SHARING_SLOWER;
        tell(p, "%s: %s", onuma__cl_way_names[way], finding.why);
        if (way == ONUMA__CL_USM || finding.refused) return ONUMA_OK;
    }
    const onuma_result r = try_way(p, way, ONUMA__CL_SIGHT_MAPPED, &finding);
    if (r != ONUMA_OK) return r;
    if (finding.holds) {
        take(p, way, true, &finding);
        return ONUMA_OK;
    }
    p->verdict.notes |= ONUMA_SHARING_SLOWER;
    tell(p, "%s%s: %s", onuma__cl_way_names[way], promises ? " with map" : "", finding.why);
    return ONUMA_OK;
}

/* Of every device, whatever way it shares by: the program's own memory goes this way. */
static onuma_result try_imports(probe *p) {
    onuma__cl_finding mapped, bare;
    onuma_result r = try_way(p, ONUMA__CL_IMPORT, ONUMA__CL_SIGHT_MAPPED, &mapped);
    if (r != ONUMA_OK) return r;
    const bool wanted = p->verdict.way == ONUMA__CL_NONE && (p->device->facts.allowed & 1u << ONUMA__CL_IMPORT) != 0;
    if (!mapped.holds) {
        p->verdict.notes |= ONUMA_SHARING_NO_IMPORTS;
        tell(p, "import: %s", mapped.why);
        return ONUMA_OK;
    }
    p->verdict.imports = true;
    if (wanted) take(p, ONUMA__CL_IMPORT, true, &mapped);
    r = try_way(p, ONUMA__CL_IMPORT, ONUMA__CL_SIGHT_FREE, &bare);
    if (r != ONUMA_OK) return r;
    p->verdict.import_zero_copy = bare.holds;
    if (bare.holds)
        tell(p, "imports are zero-copy");
    else
        tell(p, "imports are perhaps copied: before a map, %s", bare.why);
    return ONUMA_OK;
}

/* ---------------------------------------------------------------- if none holds */

enum { COPIED = 64 };

/* What copies work on. */
typedef struct copy {
    unsigned char before[COPIED], after[COPIED];
} copy;

/* To the device, changed by a kernel, and back. */
static onuma_result change_by_copies(probe *p, copy *c, cl_mem memory, cl_kernel kernel) {
    onuma_backend_device *device = p->device;
    const onuma__cl *cl = device->cl;
    cl_command_queue queue = p->runner.queue;
    const onuma__cl_place place = {.count = COPIED, .memory = memory};
    cl_event event;
    cl_int code = cl->clEnqueueWriteBuffer(queue, memory, CL_FALSE, 0, COPIED, c->before, 0, NULL, &event);
    if (code != CL_SUCCESS) return onuma__cl_fail(device->host, code, "clEnqueueWriteBuffer");
    onuma_result r = onuma__cl_await(device, queue, event, "a copy to the device");
    if (r == ONUMA_OK) r = onuma__cl_runner_run(&p->runner, kernel, &place, 0xff);
    if (r != ONUMA_OK) return r;
    code = cl->clEnqueueReadBuffer(queue, memory, CL_FALSE, 0, COPIED, c->after, 0, NULL, &event);
    if (code != CL_SUCCESS) return onuma__cl_fail(device->host, code, "clEnqueueReadBuffer");
    return onuma__cl_await(device, queue, event, "a copy to the CPU");
}

/* With explicit copies alone, and no sharing: does a kernel do anything at all here? Where even this cannot be found
 * out, nothing is said of it. */
static onuma_result kernels_run(probe *p, bool *run) {
    const onuma_backend_device *device = p->device;
    const onuma__cl *cl = device->cl;
    *run = true;
    copy *c = calloc(1, sizeof *c); /* not on the stack: a copy that never ends may still write there */
    if (c == NULL) return ONUMA_OK;
    for (size_t i = 0; i < COPIED; i++)
        c->before[i] = (unsigned char)(i * 7 + 1);
    cl_int code;
    cl_mem memory = cl->clCreateBuffer(device->context, CL_MEM_READ_WRITE, COPIED, NULL, &code);
    cl_kernel kernel = NULL;
    onuma_result r = ONUMA_ERROR_INTERNAL;
    if (code == CL_SUCCESS) {
        r = onuma__cl_runner_kernel(&p->runner, &kernel);
        if (r == ONUMA_OK) r = change_by_copies(p, c, memory, kernel);
        if (device->stuck) return r;
        if (kernel != NULL) cl->clReleaseKernel(kernel);
        cl->clReleaseMemObject(memory);
    }
    size_t changed = 0;
    for (size_t i = 0; i < COPIED; i++)
        changed += c->after[i] == (unsigned char)~c->before[i];
    if (r == ONUMA_OK) *run = changed != 0;
    free(c);
    return r == ONUMA_ERROR_DEVICE_LOST ? r : ONUMA_OK;
}

static onuma_result none_holds(probe *p) {
    bool run;
    p->verdict.proof = ONUMA_PROOF_FAILED;
    p->verdict.notes &= ~(uint32_t)ONUMA_SHARING_SLOWER; /* than what? */
    const onuma_result r = kernels_run(p, &run);
    if (r != ONUMA_OK || run) return r;
    p->verdict.notes |= ONUMA_SHARING_NO_KERNELS;
    p->verdict.detail[0] = '\0';
    tell(p, "this driver runs no kernels: it reports success and does nothing. Use one for hardware that is there");
    return ONUMA_OK;
}

/* A device without a compiler, or one whose compiler fails: what is right by the words of OpenCL alone. */
static void unprovable(probe *p) {
    const onuma__cl_facts *f = &p->device->facts;
    static const onuma__cl_way ways[] = {ONUMA__CL_SVM_COARSE, ONUMA__CL_IMPORT, ONUMA__CL_SVM_FINE};
    p->lasting = false; /* and quick to find out again */
    p->verdict.proof = ONUMA_PROOF_UNPROVABLE;
    p->verdict.imports = true;
    p->verdict.mapped = true;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0] && p->verdict.way == ONUMA__CL_NONE; i++)
        if ((f->allowed & 1u << ways[i]) != 0) p->verdict.way = ways[i];
    snprintf(p->verdict.detail, sizeof p->verdict.detail, "%s: %.160s",
             p->verdict.way != ONUMA__CL_NONE ? "unproved, so always with map and unmap"
                                              : "unproved, and there is no way with map and unmap; opencl.probe:off "
                                                "believes the driver",
             onuma_last_error());
}

static void never_ended(probe *p) {
    p->lasting = false;
    p->verdict = (onuma__cl_verdict){.proof = ONUMA_PROOF_FAILED, .notes = ONUMA_SHARING_HANGS};
    tell(p, "%.120s within %llu ms; is the device hung? A new runtime tries again", onuma_last_error(),
         (unsigned long long)(onuma__cl_patience(p->device) / 1000000));
}

static onuma_result try_all(probe *p) {
    const onuma__cl_facts *f = &p->device->facts;
    onuma_result r = ONUMA_OK;
    for (onuma__cl_way way = ONUMA__CL_USM; r == ONUMA_OK && way < ONUMA__CL_IMPORT; way++)
        if ((f->allowed & 1u << way) != 0 && p->verdict.way == ONUMA__CL_NONE) r = try_pointers(p, way);
    if (r == ONUMA_OK) r = try_imports(p);
    if (r == ONUMA_OK && p->verdict.way == ONUMA__CL_NONE) r = none_holds(p);
    return r;
}

onuma_result onuma__cl_probe(onuma_backend_device *device, onuma__cl_verdict *out, bool *lasting) {
    const onuma_backend_host *host = device->host;
    const uint64_t start = onuma__os_now();
    probe p = {.device = device, .verdict = {.proof = ONUMA_PROOF_MEASURED}, .lasting = true};
    if (device->facts.allowed == 0) p.verdict.notes = ONUMA_SHARING_NOT_OFFERED;
    onuma_result r = onuma__cl_runner_open(device, &p.runner);
    if (r != ONUMA_OK && r != ONUMA_ERROR_DEVICE_LOST) r = onuma__cl_runner_open(device, &p.runner);
    if (r == ONUMA_ERROR_NOT_SUPPORTED) {
        unprovable(&p);
        r = ONUMA_OK;
    } else if (r == ONUMA_OK) {
        if (device->facts.allowed == 0)
            tell(&p, "opencl.share:%s is not offered by this driver", host->config(host, "opencl.share"));
        r = try_all(&p);
        if (r == ONUMA_ERROR_TIMEOUT) {
            never_ended(&p);
            r = ONUMA_OK;
        }
        onuma__cl_runner_close(&p.runner);
    }
    device->deadline = 0;
    if (r != ONUMA_OK) return r;
    host->log(host, p.verdict.proof == ONUMA_PROOF_MEASURED ? ONUMA_LOG_DEBUG : ONUMA_LOG_WARN,
              "device \"%s\": %s (looked for %llu ms)", device->facts.info.name, p.verdict.detail,
              (unsigned long long)((onuma__os_now() - start) / 1000000));
    *out = p.verdict;
    *lasting = p.lasting;
    return ONUMA_OK;
}
