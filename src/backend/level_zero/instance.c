/* SPDX-License-Identifier: Apache-2.0 */
/* The Level Zero drivers of this machine, and the backend's table. */
#include "backend/device.h"
#include "backend/level_zero/level_zero.h"

#include <stdio.h>
#include <stdlib.h>

/* Programs cannot share memory with other kinds of device (NPUs are some) as this library means it. */
static bool is_wanted(const onuma__ze *ze, ze_device_handle_t device) {
    ze_device_properties_t properties = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES};
    return ze->zeDeviceGetProperties(device, &properties) != ZE_RESULT_SUCCESS || /* then the query tells why */
           properties.type == ZE_DEVICE_TYPE_GPU || properties.type == ZE_DEVICE_TYPE_CPU;
}

static void add_device(onuma_backend_instance *instance, ze_driver_handle_t driver, ze_device_handle_t device) {
    const onuma_backend_host *host = instance->host;
    onuma__ze_facts facts;
    if (device == NULL || !is_wanted(&instance->ze, device)) return;
    if (onuma__ze_facts_query(instance, driver, device, &facts) == ONUMA_OK)
        instance->devices[instance->device_count++] = facts;
    else
        host->log(host, ONUMA_LOG_WARN, "a Level Zero device is left out: %s", onuma_last_error());
}

/* Fails only when memory is out: a driver or device that does not answer is told of and left out. */
static onuma_result add_driver(onuma_backend_instance *instance, ze_driver_handle_t driver) {
    const onuma_backend_host *host = instance->host;
    const onuma__ze *ze = &instance->ze;
    uint32_t count = 0;
    ze_api_version_t version = ZE_API_VERSION_1_0;
    ze_driver_ipc_properties_t ipc = {.stype = ZE_STRUCTURE_TYPE_DRIVER_IPC_PROPERTIES};
    ze_result_t code = ze->zeDeviceGet(driver, &count, NULL);
    if (code == ZE_RESULT_SUCCESS && count == 0) return ONUMA_OK;
    if (code == ZE_RESULT_SUCCESS) code = ze->zeDriverGetApiVersion(driver, &version);
    if (code == ZE_RESULT_SUCCESS) code = ze->zeDriverGetIpcProperties(driver, &ipc);
    ze_device_handle_t *handles = NULL;
    if (code == ZE_RESULT_SUCCESS) {
        handles = calloc(count, sizeof(ze_device_handle_t));
        onuma__ze_facts *grown =
            realloc(instance->devices, (instance->device_count + count) * sizeof instance->devices[0]);
        if (grown != NULL) instance->devices = grown;
        if (handles == NULL || grown == NULL) {
            free(handles);
            return host->fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for %u Level Zero devices", (unsigned)count);
        }
        code = ze->zeDeviceGet(driver, &count, handles);
    }
    if (code != ZE_RESULT_SUCCESS) {
        host->log(host, ONUMA_LOG_WARN, "a Level Zero driver is left out: it answers with %s (0x%x)",
                  onuma__ze_code_name(code), (unsigned)code);
    } else {
        if (version < instance->version) instance->version = version;
        instance->ipc &= ipc.flags;
        for (uint32_t i = 0; i < count; i++)
            add_device(instance, driver, handles[i]);
    }
    free(handles);
    return ONUMA_OK;
}

static onuma_result no_device(const onuma_backend_host *host) {
    return host->fail(ONUMA_ERROR_NOT_FOUND, "the Level Zero loader found no driver with a device (Intel: "
                                             "intel-opencl-icd; a GPU may need its kernel driver, or membership of "
                                             "the groups render and video)");
}

static onuma_result find_devices(onuma_backend_instance *instance) {
    const onuma_backend_host *host = instance->host;
    const onuma__ze *ze = &instance->ze;
    uint32_t count = 0;
    ze_result_t code = ze->zeInit(ZE_INIT_FLAG_GPU_ONLY);
    if (code == ZE_RESULT_ERROR_UNINITIALIZED || code == ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE) return no_device(host);
    if (code == ZE_RESULT_SUCCESS) code = ze->zeDriverGet(&count, NULL);
    if (code != ZE_RESULT_SUCCESS) return onuma__ze_fail(host, code, "starting Level Zero (zeInit, zeDriverGet)");
    if (count == 0) return no_device(host);
    ze_driver_handle_t *drivers = calloc(count, sizeof(ze_driver_handle_t));
    if (drivers == NULL)
        return host->fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for %u Level Zero drivers", (unsigned)count);
    onuma_result r = ONUMA_OK;
    code = ze->zeDriverGet(&count, drivers);
    if (code != ZE_RESULT_SUCCESS) r = onuma__ze_fail(host, code, "zeDriverGet");
    for (uint32_t i = 0; r == ONUMA_OK && i < count; i++)
        r = add_driver(instance, drivers[i]);
    free(drivers);
    instance->driver_count = count;
    return r == ONUMA_OK && instance->device_count == 0 ? no_device(host) : r;
}

static void ze_close(onuma_backend_instance *instance) {
    free(instance->devices);
    free(instance);
}

static onuma_result ze_open(const onuma_backend_host *host, onuma_backend_instance **out) {
    onuma_backend_instance *instance = calloc(1, sizeof *instance);
    if (instance == NULL) return host->fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for the Level Zero backend");
    instance->host = host;
    instance->version = ZE_API_VERSION_FORCE_UINT32;
    instance->ipc = ~(ze_ipc_property_flags_t)0;
    onuma_result r = onuma__ze_load(host, onuma__ze_library_names, &instance->ze);
    if (r == ONUMA_OK) r = find_devices(instance);
    if (r != ONUMA_OK) {
        ze_close(instance);
        return r;
    }
    *out = instance;
    return ONUMA_OK;
}

static void ze_describe(onuma_backend_instance *instance, char *text, size_t size) {
    const bool memory = (instance->ipc & ZE_IPC_PROPERTY_FLAG_MEMORY) != 0;
    const bool events = (instance->ipc & ZE_IPC_PROPERTY_FLAG_EVENT_POOL) != 0;
    snprintf(text, size, "%zu device%s of %u driver%s, version %u.%u, between processes: %s", instance->device_count,
             instance->device_count == 1 ? "" : "s", (unsigned)instance->driver_count,
             instance->driver_count == 1 ? "" : "s", (unsigned)ZE_MAJOR_VERSION(instance->version),
             (unsigned)ZE_MINOR_VERSION(instance->version),
             memory && events ? "memory and events"
             : memory         ? "memory"
             : events         ? "events"
                              : "nothing");
}

static size_t ze_device_count(onuma_backend_instance *instance) {
    return instance->device_count;
}

static onuma_result ze_device_query(onuma_backend_instance *instance, size_t i, onuma_backend_device_info *out) {
    *out = instance->devices[i].info;
    return ONUMA_OK;
}

const onuma_backend onuma__backend_level_zero = {
    .struct_size = sizeof(onuma_backend),
    .abi = ONUMA_BACKEND_ABI,
    .api = ONUMA_API_LEVEL_ZERO,
    .name = "level_zero",
    .open = ze_open,
    .close = ze_close,
    .describe = ze_describe,
    .device_count = ze_device_count,
    .device_query = ze_device_query,
    .device_open = onuma__ze_device_open,
    .device_close = onuma__ze_device_close,
    .device_info = onuma__ze_device_info,
    .memory_free = onuma__ze_memory_free,
    .device_adopt = onuma__ze_device_adopt,
    .device_from_queue = onuma__ze_device_from_queue,
    .segment_create = onuma__ze_segment_create,
    .segment_destroy = onuma__ze_segment_destroy,
    .import_host = onuma__ze_import_host,
    .queue_open = onuma__ze_queue_open,
    .queue_close = onuma__ze_queue_close,
    .marker_record = onuma__ze_marker_record,
    .marker_wrap = onuma__ze_marker_wrap,
    .marker_poll = onuma__ze_marker_poll,
    .marker_destroy = onuma__ze_marker_destroy,
    .queue_wait_marker = onuma__ze_queue_wait_marker,
};
