/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of a discrete GPU's memory is free: Level Zero itself does not tell, its system management does. Since
 * version 1.5 that is a library of its own behind the same loader, with devices of its own that share the UUID; before,
 * it was there if ZES_ENABLE_SYSMAN was set when the driver started, with the very handles of the devices. Where
 * there is neither, or the user may not ask, free memory is unknown.
 */
#include "backend/level_zero/level_zero.h"

#include <stdlib.h>
#include <string.h>

static bool has_memory_functions(const onuma__ze *ze) {
    return ze->zesDeviceEnumMemoryModules != NULL && ze->zesMemoryGetProperties != NULL &&
           ze->zesMemoryGetState != NULL;
}

static zes_device_handle_t find_among(const onuma__ze *ze, zes_driver_handle_t driver, const ze_device_uuid_t *uuid) {
    uint32_t count = 0;
    if (ze->zesDeviceGet(driver, &count, NULL) != ZE_RESULT_SUCCESS || count == 0) return NULL;
    zes_device_handle_t *devices = calloc(count, sizeof(zes_device_handle_t)), found = NULL;
    if (devices == NULL || ze->zesDeviceGet(driver, &count, devices) != ZE_RESULT_SUCCESS) count = 0;
    for (uint32_t i = 0; i < count && found == NULL; i++) {
        zes_device_properties_t properties = {.stype = ZES_STRUCTURE_TYPE_DEVICE_PROPERTIES};
        properties.core.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES;
        if (ze->zesDeviceGetProperties(devices[i], &properties) == ZE_RESULT_SUCCESS &&
            memcmp(properties.core.uuid.id, uuid->id, sizeof uuid->id) == 0)
            found = devices[i];
    }
    free(devices);
    return found;
}

zes_device_handle_t onuma__ze_sysman_find(const onuma_backend_instance *instance, ze_device_handle_t device,
                                          const ze_device_uuid_t *uuid) {
    const onuma__ze *ze = &instance->ze;
    if (!has_memory_functions(ze)) return NULL;
    const char *enabled = onuma__os_getenv("ZES_ENABLE_SYSMAN");
    if (enabled != NULL && strcmp(enabled, "1") == 0) return (zes_device_handle_t)device;
    if (ze->zesInit == NULL || ze->zesDriverGet == NULL || ze->zesDeviceGet == NULL ||
        ze->zesDeviceGetProperties == NULL)
        return NULL;
    uint32_t count = 0;
    if (ze->zesInit(0) != ZE_RESULT_SUCCESS || ze->zesDriverGet(&count, NULL) != ZE_RESULT_SUCCESS || count == 0)
        return NULL;
    zes_driver_handle_t *drivers = calloc(count, sizeof(zes_driver_handle_t));
    zes_device_handle_t found = NULL;
    if (drivers == NULL || ze->zesDriverGet(&count, drivers) != ZE_RESULT_SUCCESS) count = 0;
    for (uint32_t i = 0; i < count && found == NULL; i++)
        found = find_among(ze, drivers[i], uuid);
    free(drivers);
    return found;
}

/* Of one module; false if it does not tell. */
static bool add_module(const onuma__ze *ze, zes_mem_handle_t module, uint64_t *bytes) {
    zes_mem_properties_t properties = {.stype = ZES_STRUCTURE_TYPE_MEM_PROPERTIES};
    zes_mem_state_t state = {.stype = ZES_STRUCTURE_TYPE_MEM_STATE};
    if (ze->zesMemoryGetProperties(module, &properties) != ZE_RESULT_SUCCESS) return false;
    if (properties.location != ZES_MEM_LOC_DEVICE) return true;
    if (ze->zesMemoryGetState(module, &state) != ZE_RESULT_SUCCESS) return false;
    *bytes += state.free;
    return true;
}

uint64_t onuma__ze_sysman_free(const onuma__ze *ze, zes_device_handle_t device) {
    uint32_t count = 0;
    if (device == NULL || ze->zesDeviceEnumMemoryModules(device, &count, NULL) != ZE_RESULT_SUCCESS || count == 0)
        return 0;
    zes_mem_handle_t *modules = calloc(count, sizeof(zes_mem_handle_t));
    if (modules == NULL || ze->zesDeviceEnumMemoryModules(device, &count, modules) != ZE_RESULT_SUCCESS) count = 0;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!add_module(ze, modules[i], &bytes)) { /* a part of the sum would be an invention */
            bytes = 0;
            break;
        }
    free(modules);
    return bytes;
}
