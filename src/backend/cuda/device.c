/* SPDX-License-Identifier: Apache-2.0 */
/* A device in its primary context. */
#include "backend/cuda/cuda.h"

#include <stdlib.h>

onuma_result onuma__cu_device_open(onuma_backend_instance *instance, size_t i, onuma_backend_device **out) {
    const onuma_backend_host *host = instance->host;
    onuma_backend_device *device = calloc(1, sizeof *device);
    if (device == NULL)
        return host->fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for CUDA device \"%s\"",
                          instance->devices[i].info.name);
    device->host = host;
    device->cu = &instance->cu;
    device->facts = instance->devices[i];
    const onuma__cu_result code = device->cu->PrimaryRetain(&device->context, device->facts.device);
    if (code != ONUMA__CU_SUCCESS) {
        const onuma_result r = onuma__cu_fail(host, code, "the primary context of \"%s\"", device->facts.info.name);
        free(device);
        return r;
    }
    device->facts.info.native_context = (uintptr_t)device->context;
    device->facts.info.native_device = (uint64_t)device->facts.device;
    const onuma_result r = onuma__cu_trial(device);
    if (r != ONUMA_OK) {
        onuma__cu_device_close(device);
        return r;
    }
    *out = device;
    return ONUMA_OK;
}

/* What still lives in the context would go with it, so it stays then. */
void onuma__cu_device_close(onuma_backend_device *device) {
    const size_t segments = atomic_load_explicit(&device->segments, memory_order_acquire);
    if (segments == 0)
        (void)device->cu->PrimaryRelease(device->facts.device);
    else
        device->host->log(device->host, ONUMA_LOG_WARN,
                          "%zu segments of CUDA device \"%s\" still live: their context stays", segments,
                          device->facts.info.name);
    free(device);
}

onuma_result onuma__cu_device_info(onuma_backend_device *device, onuma_backend_device_info *out) {
    *out = device->facts.info;
    return ONUMA_OK;
}

onuma_result onuma__cu_memory_free(onuma_backend_device *device, uint64_t *bytes) {
    onuma__cu_scope scope;
    const onuma_result r = onuma__cu_enter(device, &scope);
    if (r != ONUMA_OK) return r;
    size_t available = 0, total = 0;
    const onuma__cu_result code = device->cu->MemGetInfo(&available, &total);
    onuma__cu_leave(device, &scope);
    if (code != ONUMA__CU_SUCCESS)
        return onuma__cu_fail(device->host, code, "cuMemGetInfo of \"%s\"", device->facts.info.name);
    *bytes = available;
    return ONUMA_OK;
}
