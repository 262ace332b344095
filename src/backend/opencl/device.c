/* SPDX-License-Identifier: Apache-2.0 */
/* Devices in a context of ours, and in contexts of the program's. */
#include "backend/opencl/backing.h"
#include "backend/opencl/probe.h"
#include "os/os.h"

#include <stdio.h>
#include <stdlib.h>

/* Takes over one reference to `context`, also when it fails. */
static onuma_result enter_context(onuma_backend_instance *instance, const onuma__cl_facts *facts, cl_context context,
                                  onuma_backend_device **out) {
    const onuma__cl *cl = &instance->cl;
    onuma_result r;
    cl_int code;
    onuma_backend_device *device = calloc(1, sizeof *device);
    if (device == NULL) {
        r = instance->host->fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for OpenCL device \"%s\"", facts->info.name);
        goto failed;
    }
    *device = (onuma_backend_device){
        .instance = instance, .host = instance->host, .cl = cl, .facts = *facts, .context = context};
    device->facts.info.native_context = (uintptr_t)context;
    device->facts.info.native_device = (uintptr_t)facts->device;
    device->map_queue = cl->clCreateCommandQueue(context, facts->device, 0, &code);
    if (code != CL_SUCCESS) {
        r = onuma__cl_fail(instance->host, code, "clCreateCommandQueue on \"%s\"", facts->info.name);
        goto failed;
    }
    r = onuma__cl_verdict_settle(device);
    if (r != ONUMA_OK) {
        onuma__cl_device_close(device);
        return r;
    }
    *out = device;
    return ONUMA_OK;
failed:
    free(device);
    cl->clReleaseContext(context);
    return r;
}

onuma_result onuma__cl_device_open(onuma_backend_instance *instance, size_t i, onuma_backend_device **out) {
    const onuma__cl_facts *facts = &instance->devices[i];
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)facts->platform, 0};
    for (;;) {
        cl_int code;
        cl_context context = instance->cl.clCreateContext(properties, 1, &facts->device, NULL, NULL, &code);
        if (code != CL_SUCCESS)
            return onuma__cl_fail(instance->host, code, "clCreateContext on \"%s\"", facts->info.name);
        onuma_backend_device *opened = NULL;
        const onuma_result r = enter_context(instance, facts, context, &opened);
        if (opened == NULL) return r;
        if (!opened->stuck) {
            *out = opened;
            return ONUMA_OK;
        }
        /* In another context, where nothing is under way. That nothing may be tried is known by then. */
        onuma__cl_device_close(opened);
    }
}

/*
 * Buffers, queues and events hold references to the context of their own, so whatever of them the program still
 * keeps stays good. SVM and USM memory does not: while some of it lives, our reference stays, and the memory with it.
 * A context in which something never ends is left behind as it is: drivers wait for it in any release.
 */
void onuma__cl_device_close(onuma_backend_device *device) {
    if (device->stuck) {
        free(device);
        return;
    }
    onuma__cl_backing_sweep(device); /* what still lingers keeps its cl_mem and its pages for good */
    const size_t pointers = atomic_load_explicit(&device->pointers, memory_order_acquire);
    device->cl->clReleaseCommandQueue(device->map_queue);
    if (pointers == 0)
        device->cl->clReleaseContext(device->context);
    else
        device->host->log(device->host, ONUMA_LOG_WARN,
                          "%zu segments of OpenCL device \"%s\" still live: their context stays", pointers,
                          device->facts.info.name);
    free(device);
}

onuma_result onuma__cl_device_info(onuma_backend_device *device, onuma_backend_device_info *out) {
    *out = device->facts.info;
    return ONUMA_OK;
}

/* OpenCL does not tell; but a device that shares the CPU's memory has no more free than the system. */
onuma_result onuma__cl_memory_free(onuma_backend_device *device, uint64_t *bytes) {
    const onuma_backend_device_info *info = &device->facts.info;
    uint64_t total = 0, available = 0;
    if (device->facts.unified) onuma__os_memory(&total, &available);
    *bytes = info->memory_total != 0 && info->memory_total < available ? info->memory_total : available;
    return ONUMA_OK;
}

/* ---------------------------------------------------------------- adoption */

static bool is_part_of(const onuma__cl *cl, cl_device_id part, cl_device_id whole) {
    cl_device_id parent = NULL;
    return cl->clGetDeviceInfo(part, CL_DEVICE_PARENT_DEVICE, sizeof(cl_device_id), &parent, NULL) == CL_SUCCESS &&
           parent == whole && whole != NULL;
}

/* PoCL tells of the whole device where a context was made of a part of it. */
bool onuma__cl_is_device(const onuma__cl *cl, cl_device_id device, cl_device_id said) {
    return device == said || is_part_of(cl, device, said) || is_part_of(cl, said, device);
}

/* Which device of the context: `wanted`, or its only one if that is NULL. */
static onuma_result device_of_context(const onuma_backend_instance *instance, cl_context context, cl_device_id wanted,
                                      cl_device_id *out) {
    const onuma__cl *cl = &instance->cl;
    size_t size = 0;
    cl_int code = cl->clGetContextInfo(context, CL_CONTEXT_DEVICES, 0, NULL, &size);
    if (code != CL_SUCCESS) return onuma__cl_fail(instance->host, code, "clGetContextInfo of an adopted context");
    const size_t count = size / sizeof(cl_device_id);
    cl_device_id *ids = calloc(count + 1, sizeof ids[0]);
    if (ids == NULL)
        return instance->host->fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for %zu devices of a context", count);
    onuma_result r = ONUMA_OK;
    code = cl->clGetContextInfo(context, CL_CONTEXT_DEVICES, size, ids, NULL);
    if (code != CL_SUCCESS) {
        r = onuma__cl_fail(instance->host, code, "clGetContextInfo of an adopted context");
    } else if (wanted == NULL && count == 1) {
        *out = ids[0];
    } else {
        size_t matches = 0;
        for (size_t i = 0; wanted != NULL && i < count && (matches == 0 || *out != wanted); i++)
            if (onuma__cl_is_device(cl, ids[i], wanted)) {
                matches = ids[i] == wanted ? 1 : matches + 1;
                *out = is_part_of(cl, wanted, ids[i]) ? wanted : ids[i];
            }
        if (matches != 1)
            r = instance->host->fail(
                ONUMA_ERROR_INVALID_ARGUMENT, "the cl_device_id %p names none of the %zu devices of the context %p%s",
                (void *)wanted, count, (void *)context, matches != 0 ? ", but the parent of several" : "");
    }
    free(ids);
    return r;
}

static onuma_result adopt(onuma_backend_instance *instance, cl_context context, cl_device_id wanted,
                          onuma_backend_device **out) {
    const onuma__cl *cl = &instance->cl;
    cl_device_id id = NULL;
    onuma_result r = device_of_context(instance, context, wanted, &id);
    if (r != ONUMA_OK) return r;

    onuma__cl_facts facts;
    size_t i = 0;
    while (i < instance->device_count && instance->devices[i].device != id)
        i++;
    if (i < instance->device_count) {
        facts = instance->devices[i];
    } else { /* a sub-device, say */
        cl_platform_id platform = NULL;
        cl_int code = cl->clGetDeviceInfo(id, CL_DEVICE_PLATFORM, sizeof(cl_platform_id), &platform, NULL);
        if (code != CL_SUCCESS) return onuma__cl_fail(instance->host, code, "clGetDeviceInfo of an adopted device");
        r = onuma__cl_facts_query(instance, platform, id, &facts);
        if (r != ONUMA_OK) return r;
        if (facts.info.physical[0] == '\0')
            snprintf(facts.info.physical, sizeof facts.info.physical, "%.40s#part", facts.info.name);
    }
    cl_int code = cl->clRetainContext(context);
    if (code != CL_SUCCESS) return onuma__cl_fail(instance->host, code, "clRetainContext of an adopted context");
    return enter_context(instance, &facts, context, out);
}

onuma_result onuma__cl_device_adopt(onuma_backend_instance *instance, const onuma_native_device *native,
                                    onuma_backend_device **out) {
    cl_context context = (cl_context)(uintptr_t)native->context;
    cl_device_id device = (cl_device_id)(uintptr_t)native->device;
    onuma_result r = onuma__cl_check_handle(instance, context, "cl_context");
    if (r == ONUMA_OK && device != NULL) r = onuma__cl_check_handle(instance, device, "cl_device_id");
    return r != ONUMA_OK ? r : adopt(instance, context, device, out);
}

onuma_result onuma__cl_device_from_queue(onuma_backend_instance *instance, uint64_t native_queue,
                                         onuma_backend_device **out) {
    const onuma__cl *cl = &instance->cl;
    cl_command_queue queue = (cl_command_queue)(uintptr_t)native_queue;
    const onuma_result r = onuma__cl_check_handle(instance, queue, "cl_command_queue");
    if (r != ONUMA_OK) return r;
    cl_context context = NULL;
    cl_device_id device = NULL;
    cl_int code = cl->clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof(cl_context), &context, NULL);
    if (code == CL_SUCCESS)
        code = cl->clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof(cl_device_id), &device, NULL);
    if (code != CL_SUCCESS) return onuma__cl_fail(instance->host, code, "clGetCommandQueueInfo");
    return adopt(instance, context, device, out);
}
