/* SPDX-License-Identifier: Apache-2.0 */
/* The device object: opened at its first use, described at any time. */
#include "backend/device.h"

#include <string.h>

/*
 * Racing threads may each make a context; one of them is published, the others
 * are closed again. The waste is rare and bounded, while opening under the lock
 * would hold it through driver code, which may log into the program's callback.
 */
onuma_result onuma__device_open(onuma__device *device) {
    /* Acquire: whoever sees the pointer sees `info` as it was filled before the release below. */
    if (atomic_load_explicit(&device->backend, memory_order_acquire) != NULL) return ONUMA_OK;
    if (atomic_load_explicit(&device->lost, memory_order_relaxed))
        return onuma__fail(ONUMA_ERROR_DEVICE_LOST, "device %s was lost; make a new runtime to try it again",
                           device->id);

    const onuma_backend *ops = device->ops;
    onuma_backend_device *opened = NULL;
    onuma_result r = ops->device_open(device->instance, device->index, &opened);
    if (r != ONUMA_OK) return onuma__device_note(device, r);

    onuma_backend_device_info info = {.struct_size = sizeof info};
    r = ops->device_info(opened, &info);
    if (r == ONUMA_OK) r = onuma__backend_check(ops, &info);
    if (r != ONUMA_OK) {
        ops->device_close(opened);
        return onuma__device_note(device, r);
    }

    onuma__os_lock_acquire(&device->lock);
    if (atomic_load_explicit(&device->backend, memory_order_relaxed) == NULL) { /* written under this lock only */
        device->info = info;
        atomic_store_explicit(&device->backend, opened, memory_order_release);
        opened = NULL;
    }
    onuma__os_lock_release(&device->lock);
    if (opened != NULL) ops->device_close(opened);
    return ONUMA_OK;
}

void onuma__device_info(onuma__device *device, onuma_backend_device_info *out) {
    onuma__os_lock_acquire(&device->lock);
    *out = device->info;
    onuma__os_lock_release(&device->lock);
}

onuma_result onuma__device_note(onuma__device *device, onuma_result r) {
    /* Relaxed: only hastens what the driver would answer anyway. */
    if (r == ONUMA_ERROR_DEVICE_LOST && !atomic_exchange_explicit(&device->lost, true, memory_order_relaxed))
        onuma__log_write(device->log, ONUMA_LOG_ERROR, "device %s is lost: %s", device->id, onuma_last_error());
    return r;
}
