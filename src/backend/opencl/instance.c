/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenCL drivers of this machine, and the backend's table. */
#include "backend/device.h"
#include "backend/opencl/probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Devices that nothing better names are told apart by their place among those of the same name. */
static void name_chip_by_place(const onuma_backend_instance *instance, onuma_backend_device_info *info) {
    if (info->physical[0] != '\0') return;
    unsigned place = 0;
    for (size_t i = 0; i < instance->device_count; i++)
        if (strcmp(instance->devices[i].info.name, info->name) == 0) place++;
    snprintf(info->physical, sizeof info->physical, "%.40s#%u", info->name, place);
}

/* Fails only when memory is out: a platform or device that does not answer is told of and left out. */
static onuma_result add_platform(onuma_backend_instance *instance, cl_platform_id platform) {
    const onuma_backend_host *host = instance->host;
    const onuma__cl *cl = &instance->cl;
    cl_uint count = 0;
    cl_int code = cl->clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &count);
    if (code == CL_DEVICE_NOT_FOUND || (code == CL_SUCCESS && count == 0)) return ONUMA_OK;
    cl_device_id *ids = NULL;
    if (code == CL_SUCCESS) {
        ids = calloc(count, sizeof ids[0]);
        onuma__cl_facts *grown =
            realloc(instance->devices, (instance->device_count + count) * sizeof instance->devices[0]);
        if (grown != NULL) instance->devices = grown;
        if (ids == NULL || grown == NULL) {
            free(ids);
            return host->fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for %u OpenCL devices", (unsigned)count);
        }
        code = cl->clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids, NULL);
    }
    if (code != CL_SUCCESS)
        host->log(host, ONUMA_LOG_WARN, "an OpenCL platform is left out: clGetDeviceIDs: %s (%d)",
                  onuma__cl_code_name(code), (int)code);
    for (cl_uint i = 0; code == CL_SUCCESS && i < count; i++) {
        onuma__cl_facts facts;
        if (ids[i] == NULL) continue; /* one that was counted and not given */
        if (onuma__cl_facts_query(instance, platform, ids[i], &facts) != ONUMA_OK) {
            host->log(host, ONUMA_LOG_WARN, "an OpenCL device is left out: %s", onuma_last_error());
            continue;
        }
        name_chip_by_place(instance, &facts.info);
        instance->devices[instance->device_count++] = facts;
    }
    free(ids);
    return ONUMA_OK;
}

static onuma_result find_devices(onuma_backend_instance *instance) {
    const onuma_backend_host *host = instance->host;
    const onuma__cl *cl = &instance->cl;
    cl_uint count = 0;
    cl_int code = cl->clGetPlatformIDs(0, NULL, &count);
    if (code == CL_PLATFORM_NOT_FOUND_KHR || (code == CL_SUCCESS && count == 0))
        return host->fail(ONUMA_ERROR_NOT_FOUND, "the OpenCL loader found no driver; install one for your device "
                                                 "(Intel: intel-opencl-icd, any CPU: pocl-opencl-icd)");
    if (code != CL_SUCCESS) return onuma__cl_fail(host, code, "clGetPlatformIDs");
    cl_platform_id *platforms = calloc(count, sizeof platforms[0]);
    if (platforms == NULL)
        return host->fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for %u OpenCL platforms", (unsigned)count);
    onuma_result r = ONUMA_OK;
    code = cl->clGetPlatformIDs(count, platforms, NULL);
    if (code != CL_SUCCESS) r = onuma__cl_fail(host, code, "clGetPlatformIDs");
    for (cl_uint i = 0; r == ONUMA_OK && i < count; i++)
        if (platforms[i] != NULL) /* counted and not given: to some loaders NULL means the first, which we have */
            r = add_platform(instance, platforms[i]);
    free(platforms);
    instance->platform_count = count;
    if (r == ONUMA_OK && instance->device_count == 0)
        r = host->fail(ONUMA_ERROR_NOT_FOUND,
                       "%u OpenCL platform%s, but no device that answers (a GPU may need its kernel driver, or "
                       "membership of the groups render and video)",
                       (unsigned)count, count == 1 ? "" : "s");
    return r;
}

static void cl_close(onuma_backend_instance *instance) {
    onuma__cl_verdicts_forget(instance);
    free(instance->devices);
    free(instance);
}

static onuma_result cl_open(const onuma_backend_host *host, onuma_backend_instance **out) {
    onuma_backend_instance *instance = calloc(1, sizeof *instance);
    if (instance == NULL) return host->fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for the OpenCL backend");
    instance->host = host;
    onuma_result r = onuma__cl_load(host, onuma__cl_library_names, &instance->cl);
    if (r == ONUMA_OK) r = find_devices(instance);
    if (r != ONUMA_OK) {
        cl_close(instance);
        return r;
    }
    onuma__cl_verdicts_recall(instance);
    *out = instance;
    return ONUMA_OK;
}

static void cl_describe(onuma_backend_instance *instance, char *text, size_t size) {
    snprintf(text, size, "%zu device%s on %u platform%s", instance->device_count,
             instance->device_count == 1 ? "" : "s", (unsigned)instance->platform_count,
             instance->platform_count == 1 ? "" : "s");
}

static size_t cl_device_count(onuma_backend_instance *instance) {
    return instance->device_count;
}

static onuma_result cl_device_query(onuma_backend_instance *instance, size_t i, onuma_backend_device_info *out) {
    *out = instance->devices[i].info;
    return ONUMA_OK;
}

const onuma_backend onuma__backend_opencl = {
    .struct_size = sizeof(onuma_backend),
    .abi = ONUMA_BACKEND_ABI,
    .api = ONUMA_API_OPENCL,
    .name = "opencl",
    .open = cl_open,
    .close = cl_close,
    .describe = cl_describe,
    .device_count = cl_device_count,
    .device_query = cl_device_query,
    .device_open = onuma__cl_device_open,
    .device_close = onuma__cl_device_close,
    .device_info = onuma__cl_device_info,
    .memory_free = onuma__cl_memory_free,
    .device_adopt = onuma__cl_device_adopt,
    .device_from_queue = onuma__cl_device_from_queue,
    .segment_create = onuma__cl_segment_create,
    .segment_destroy = onuma__cl_segment_destroy,
    .import_host = onuma__cl_import_host,
    .view_create = onuma__cl_view_create,
    .view_retain = onuma__cl_view_retain,
    .view_release = onuma__cl_view_release,
    .host_map = onuma__cl_host_map,
    .host_unmap = onuma__cl_host_unmap,
    .queue_open = onuma__cl_queue_open,
    .queue_close = onuma__cl_queue_close,
    .marker_record = onuma__cl_marker_record,
    .marker_wrap = onuma__cl_marker_wrap,
    .marker_poll = onuma__cl_marker_poll,
    .marker_destroy = onuma__cl_marker_destroy,
    .queue_wait_marker = onuma__cl_queue_wait_marker,
};
