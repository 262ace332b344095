/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "api/runtime.h"

/* ------------------------------------------------------------ finding them */

size_t onuma_device_count(const onuma_runtime *rt) {
    const onuma__runtime *runtime = onuma__get_runtime(rt);
    return runtime != NULL ? runtime->registry.device_count : 0;
}

onuma_device *onuma_device_at(const onuma_runtime *rt, size_t i) {
    const onuma__runtime *runtime = onuma__get_runtime(rt);
    return runtime != NULL && i < runtime->registry.device_count ? runtime->registry.devices[i]->handle : NULL;
}

static onuma_result not_found(const onuma__registry *registry, const char *id, const char *function) {
    char ids[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < registry->device_count && used < sizeof ids; i++)
        used += (size_t)snprintf(ids + used, sizeof ids - used, "%s%s", i != 0 ? ", " : "", registry->devices[i]->id);
    return onuma__fail(ONUMA_ERROR_NOT_FOUND, "%s: there is no device \"%.40s\"; there are %s", function, id, ids);
}

onuma_result onuma_device_find(const onuma_runtime *rt, const char *id, onuma_device **out) {
    ONUMA__CHECK_OUT(out, __func__);
    const onuma__runtime *runtime = onuma__get_runtime(rt);
    if (runtime == NULL) return onuma__handle_refuse(ONUMA__HANDLE_RUNTIME, rt, __func__, "rt");
    if (id == NULL) return onuma__refuse_null(__func__, "id");
    for (size_t i = 0; i < runtime->registry.device_count; i++) {
        if (strcmp(runtime->registry.devices[i]->id, id) != 0) continue;
        *out = runtime->registry.devices[i]->handle;
        return ONUMA_OK;
    }
    return not_found(&runtime->registry, id, __func__);
}

/* ------------------------------------------------------- the program's own */

/* The runtime, in the process that made it: adopting calls a driver. */
static onuma_result runtime_to_adopt(const onuma_runtime *rt, const char *function, onuma__runtime **out) {
    *out = onuma__get_runtime(rt);
    if (*out == NULL) return onuma__handle_refuse(ONUMA__HANDLE_RUNTIME, rt, function, "rt");
    return (*out)->generation == onuma__os_process_generation() ? ONUMA_OK
                                                                : onuma__refuse_forked(function, "to be adopted");
}

/* The handle of a device that the registry counted once more. */
static onuma_result share(onuma__runtime *runtime, onuma__device *device, onuma_device **out) {
    *out = onuma__handle_share(ONUMA__HANDLE_DEVICE, device, runtime, &device->handle);
    if (*out != NULL) return ONUMA_OK;
    bool last;
    (void)onuma__registry_release(&runtime->registry, device, &last);
    return ONUMA_ERROR_OUT_OF_MEMORY;
}

onuma_result onuma_device_adopt(onuma_runtime *rt, onuma_api api, const onuma_native_device *native,
                                onuma_device **out) {
    const onuma__struct *type = ONUMA__STRUCT(onuma_native_device, context);
    onuma__runtime *runtime;
    onuma__device *device;
    onuma_native_device full = ONUMA_NATIVE_DEVICE_INIT;
    ONUMA__CHECK_OUT(out, __func__);
    onuma_result r = runtime_to_adopt(rt, __func__, &runtime);
    if (r == ONUMA_OK) r = onuma__struct_check(type, native, __func__);
    if (r == ONUMA_OK) r = onuma__struct_read(type, native, &full, __func__);
    if (r == ONUMA_OK) r = onuma__registry_adopt(&runtime->registry, api, &full, &device);
    return r != ONUMA_OK ? r : share(runtime, device, out);
}

onuma_result onuma_device_from_queue(onuma_runtime *rt, onuma_api api, uint64_t native_queue, onuma_device **out) {
    onuma__runtime *runtime;
    onuma__device *device;
    ONUMA__CHECK_OUT(out, __func__);
    onuma_result r = runtime_to_adopt(rt, __func__, &runtime);
    if (r == ONUMA_OK) r = onuma__registry_from_queue(&runtime->registry, api, native_queue, &device);
    return r != ONUMA_OK ? r : share(runtime, device, out);
}

/* For the last work of queues that are released already, which use the device until it has ended. */
#define QUEUES_WAIT UINT64_C(1000000000)

/* The last reference: BUSY, or the device is gone; or, where quarantine needs it, only the handle is. */
static onuma_result release_last(onuma__runtime *runtime, onuma__device *device) {
    bool gone;
    onuma__queues_drain_device(device, QUEUES_WAIT);
    if (onuma__device_is_kept(device) && atomic_load_explicit(&device->users, memory_order_acquire) == 0)
        return ONUMA_OK;
    if (atomic_load_explicit(&device->users, memory_order_acquire) == 0) onuma__sync_end_imports(device);
    return onuma__registry_release(&runtime->registry, device, &gone);
}

onuma_result onuma_device_release(onuma_device *d) {
    onuma__device *device;
    onuma_result r = onuma__get_device(d, __func__, &device);
    if (r != ONUMA_OK || !device->adopted) return r;
    onuma__runtime *runtime = onuma__handle_owner(d);
    bool last, gone;
    device = onuma__handle_drop(ONUMA__HANDLE_DEVICE, d, &last);
    if (device == NULL) return onuma__handle_refuse(ONUMA__HANDLE_DEVICE, d, __func__, "d");
    if (!last) return onuma__registry_release(&runtime->registry, device, &gone);
    r = release_last(runtime, device);
    if (r == ONUMA_OK)
        onuma__handle_remove(d);
    else
        onuma__handle_unclaim(d);
    return r;
}

/* -------------------------------------------------------------- describing */

/* What pools of the device's own alignment can serve. A device that can serve none still has a limit, and 0 says none. */
static uint64_t max_block(const onuma_backend_device_info *info) {
    if (info->max_segment == 0) return 0;
    const size_t most = info->max_segment < SIZE_MAX ? (size_t)info->max_segment : SIZE_MAX;
    const size_t largest = onuma__largest_block(most, info->alignment);
    return largest != 0 ? largest : 1;
}

/*
 * Bytes free now. Where the device lives on the CPU's memory the system's word
 * counts as well: drivers there tell of a memory that the programs around them
 * have long filled; and it knows the limits of control groups. What our pools hold
 * free is ready for the next allocation, so it counts as free. And no device has more free than it has at all (PoCL calls
 * a part of the system's memory its own).
 */
static onuma_result memory_free(onuma__device *device, const onuma_backend_device_info *info, uint64_t *bytes) {
    onuma_backend_device *opened = atomic_load_explicit(&device->backend, memory_order_acquire);
    *bytes = 0;
    if (opened != NULL) {
        onuma_result r = onuma__device_note(device, device->ops->memory_free(opened, bytes));
        if (r == ONUMA_ERROR_DEVICE_LOST) return r;
        if (r != ONUMA_OK) *bytes = 0;
    }
    if (info->type != ONUMA_DEVICE_DISCRETE) {
        uint64_t total, available;
        onuma__os_memory(&total, &available);
        if (*bytes == 0 || (available != 0 && available < *bytes)) *bytes = available;
    }
    if (*bytes != 0) *bytes += onuma__pools_cached(device);
    if (info->memory_total != 0 && *bytes > info->memory_total) *bytes = info->memory_total;
    return ONUMA_OK;
}

onuma_result onuma_device_get_info(const onuma_device *d, onuma_device_info *out) {
    const onuma__struct *type = ONUMA__STRUCT(onuma_device_info, id);
    onuma__device *device;
    onuma_result r = onuma__get_device(d, __func__, &device);
    if (r == ONUMA_OK) r = onuma__struct_check(type, out, __func__);
    if (r != ONUMA_OK) return r;
    onuma_backend_device_info from;
    onuma__device_info(device, &from);
    onuma_device_info info = {
        .type = from.type,
        .kinds = from.kinds,
        .coherent = (from.abilities & ONUMA_ABILITY_COHERENT) != 0,
        .simulator = from.simulator,
        .memory_total = from.memory_total,
        .max_block = max_block(&from),
        .alignment = from.alignment,
        .native_context = from.native_context,
        .native_device = from.native_device,
        .proof = from.proof,
        .import_zero_copy = from.import_zero_copy,
        .sharing_notes = from.sharing_notes,
    };
    r = memory_free(device, &from, &info.memory_free);
    if (r != ONUMA_OK) return r;
    (void)snprintf(info.id, sizeof info.id, "%s", device->id);
    (void)snprintf(info.name, sizeof info.name, "%s", from.name);
    (void)snprintf(info.backend, sizeof info.backend, "%s", device->ops->name);
    (void)snprintf(info.driver, sizeof info.driver, "%s", from.driver);
    (void)snprintf(info.physical, sizeof info.physical, "%s", from.physical);
    (void)snprintf(info.shared_via, sizeof info.shared_via, "%s", from.shared_via);
    (void)snprintf(info.sharing_detail, sizeof info.sharing_detail, "%s", from.sharing_detail);
    onuma__struct_write(type, &info, out);
    return ONUMA_OK;
}
