/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's driver of this machine, its devices, and the backend's table. */
#include "backend/cuda/cuda.h"
#include "backend/device.h"

#include <stdio.h>
#include <stdlib.h>

static void cu_close(onuma_backend_instance *instance) {
    free(instance->devices);
    free(instance);
}

/* A device that does not answer is told of and left out; the others keep the driver's order. */
static onuma_result find_devices(onuma_backend_instance *instance) {
    const onuma_backend_host *host = instance->host;
    int count = 0;
    const onuma__cu_result code = instance->cu.DeviceGetCount(&count);
    if (code != ONUMA__CU_SUCCESS) return onuma__cu_fail(host, code, "cuDeviceGetCount");
    if (count > 0) instance->devices = calloc((size_t)count, sizeof instance->devices[0]);
    if (count > 0 && instance->devices == NULL)
        return host->fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for %d CUDA devices", count);
    for (int ordinal = 0; ordinal < count; ordinal++) {
        if (onuma__cu_facts_query(instance, ordinal, &instance->devices[instance->device_count]) == ONUMA_OK)
            instance->device_count++;
        else
            host->log(host, ONUMA_LOG_WARN, "a CUDA device is left out: %s", onuma_last_error());
    }
    return instance->device_count != 0
               ? ONUMA_OK
               : host->fail(ONUMA_ERROR_NOT_FOUND, "NVIDIA's driver is there, and none of its %d devices answers",
                            count);
}

static onuma_result cu_open(const onuma_backend_host *host, onuma_backend_instance **out) {
    onuma_backend_instance *instance = calloc(1, sizeof *instance);
    if (instance == NULL) return host->fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for the CUDA backend");
    instance->host = host;
    onuma_result r = onuma__cu_load(host, &instance->cu);
    if (r == ONUMA_OK) {
        onuma__cu_result code = instance->cu.Init(0);
        if (code == ONUMA__CU_SUCCESS) code = instance->cu.DriverGetVersion(&instance->version);
        if (code != ONUMA__CU_SUCCESS) r = onuma__cu_fail(host, code, "cuInit");
    }
    if (r == ONUMA_OK) r = find_devices(instance);
    if (r != ONUMA_OK) {
        cu_close(instance);
        return r;
    }
    *out = instance;
    return ONUMA_OK;
}

static void cu_describe(onuma_backend_instance *instance, char *text, size_t size) {
    snprintf(text, size, "CUDA %d.%d, %zu device%s", instance->version / 1000, instance->version % 1000 / 10,
             instance->device_count, instance->device_count == 1 ? "" : "s");
}

static size_t cu_device_count(onuma_backend_instance *instance) {
    return instance->device_count;
}

static onuma_result cu_device_query(onuma_backend_instance *instance, size_t i, onuma_backend_device_info *out) {
    *out = instance->devices[i].info;
    return ONUMA_OK;
}

const onuma_backend onuma__backend_cuda = {
    .struct_size = sizeof(onuma_backend),
    .abi = ONUMA_BACKEND_ABI,
    .api = ONUMA_API_CUDA,
    .name = "cuda",
    .open = cu_open,
    .close = cu_close,
    .describe = cu_describe,
    .device_count = cu_device_count,
    .device_query = cu_device_query,
    .device_open = onuma__cu_device_open,
    .device_close = onuma__cu_device_close,
    .device_info = onuma__cu_device_info,
    .memory_free = onuma__cu_memory_free,
    .segment_create = onuma__cu_segment_create,
    .segment_destroy = onuma__cu_segment_destroy,
    .segment_reserve = onuma__cu_range_reserve,
    .segment_commit = onuma__cu_range_commit,
    .segment_decommit = onuma__cu_range_decommit,
    .import_host = onuma__cu_import_host,
    .queue_open = onuma__cu_queue_open,
    .queue_close = onuma__cu_queue_close,
    .marker_record = onuma__cu_marker_record,
    .marker_wrap = onuma__cu_marker_wrap,
    .marker_poll = onuma__cu_marker_poll,
    .marker_destroy = onuma__cu_marker_destroy,
    .queue_wait_marker = onuma__cu_queue_wait_marker,
};
