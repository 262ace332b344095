/* SPDX-License-Identifier: Apache-2.0 */
/* What a device tells of itself, and what follows from it. */
#include "backend/level_zero/level_zero.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Intel's OpenCL states 128 bytes for the same chips, two cache lines. Drivers align whole allocations to pages. */
#define ALIGNMENT 128

/*
 * Intel's driver with debug keys that put a recorder, or nothing, in the device's place: commands report success and
 * nothing runs. Whatever it says of sharing, no kernel ever sees.
 */
static bool runs_nothing(void) {
    const char *keys = onuma__os_getenv("NEOReadDebugKeys"), *receiver = onuma__os_getenv("SetCommandStreamReceiver");
    return keys != NULL && strcmp(keys, "1") == 0 && receiver != NULL && atoi(receiver) > 0;
}

static bool has_extension(const onuma__ze *ze, ze_driver_handle_t driver, const char *name) {
    uint32_t count = 0;
    if (ze->zeDriverGetExtensionProperties(driver, &count, NULL) != ZE_RESULT_SUCCESS || count == 0) return false;
    ze_driver_extension_properties_t *all = calloc(count, sizeof all[0]);
    if (all == NULL || ze->zeDriverGetExtensionProperties(driver, &count, all) != ZE_RESULT_SUCCESS) count = 0;
    bool found = false;
    for (uint32_t i = 0; i < count && !found; i++)
        found = strncmp(all[i].name, name, sizeof all[i].name) == 0;
    free(all);
    return found;
}

static void *driver_function(const onuma__ze *ze, ze_driver_handle_t driver, const char *name) {
    void *address = NULL;
    if (ze->zeDriverGetExtensionFunctionAddress == NULL ||
        ze->zeDriverGetExtensionFunctionAddress(driver, name, &address) != ZE_RESULT_SUCCESS)
        return NULL;
    return address;
}

/* Memory of the program is imported through two functions of the driver's own, which no list of extensions names. */
static void find_import(const onuma__ze *ze, onuma__ze_facts *f) {
    void *import = driver_function(ze, f->driver, "zexDriverImportExternalPointer");
    void *unimport = driver_function(ze, f->driver, "zexDriverReleaseImportedPointer");
    if (import == NULL || unimport == NULL) return;
    memcpy(&f->import, &import, sizeof import);
    memcpy(&f->unimport, &unimport, sizeof unimport);
}

/* Equal texts mean the same chip, across drivers too: OpenCL's device of the same chip says the same (opencl/facts.c). */
static void name_chip(const onuma__ze *ze, const ze_device_properties_t *properties, onuma__ze_facts *f) {
    char *to = f->info.physical;
    const size_t room = sizeof f->info.physical;
    ze_pci_ext_properties_t pci = {.stype = ZE_STRUCTURE_TYPE_PCI_EXT_PROPERTIES};
    if (ze->zeDevicePciGetPropertiesExt != NULL &&
        ze->zeDevicePciGetPropertiesExt(f->device, &pci) == ZE_RESULT_SUCCESS) {
        snprintf(to, room, "pci:%04x:%02x:%02x.%x", (unsigned)pci.address.domain, (unsigned)pci.address.bus,
                 (unsigned)pci.address.device, (unsigned)pci.address.function);
        return;
    }
    int length = snprintf(to, room, "uuid:");
    for (size_t i = 0; i < sizeof properties->uuid.id; i++)
        length += snprintf(to + length, room - (size_t)length, "%02x", (unsigned)properties->uuid.id[i]);
}

static ze_result_t total_memory(const onuma__ze *ze, ze_device_handle_t device, uint64_t *total) {
    uint32_t count = 0;
    *total = 0;
    ze_result_t code = ze->zeDeviceGetMemoryProperties(device, &count, NULL);
    if (code != ZE_RESULT_SUCCESS || count == 0) return code;
    ze_device_memory_properties_t *all = calloc(count, sizeof all[0]);
    if (all == NULL) return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    for (uint32_t i = 0; i < count; i++)
        all[i].stype = ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES;
    code = ze->zeDeviceGetMemoryProperties(device, &count, all);
    for (uint32_t i = 0; code == ZE_RESULT_SUCCESS && i < count; i++)
        *total += all[i].totalSize;
    free(all);
    return code;
}

/*
 * Shared allocations of a discrete GPU migrate as a whole when the CPU touches them. A segment holds many blocks, so
 * unless the device says that both sides may access one allocation at a time, the CPU's work on one block would pull
 * the pages from under a kernel that works on its neighbour: host allocations, which stay put, serve there instead.
 * An integrated GPU has nothing to migrate.
 */
static ze_result_t find_kinds(const onuma__ze *ze, onuma__ze_facts *f) {
    ze_device_memory_access_properties_t access = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEMORY_ACCESS_PROPERTIES};
    const ze_result_t code = ze->zeDeviceGetMemoryAccessProperties(f->device, &access);
    if (code != ZE_RESULT_SUCCESS) return code;
    const bool host = (access.hostAllocCapabilities & ZE_MEMORY_ACCESS_CAP_FLAG_RW) != 0;
    const ze_memory_access_cap_flags_t shared = access.sharedSingleDeviceAllocCapabilities;
    const bool stays = f->integrated || (shared & ZE_MEMORY_ACCESS_CAP_FLAG_CONCURRENT) != 0;
    f->shared_is_host = (shared & ZE_MEMORY_ACCESS_CAP_FLAG_RW) == 0 || !stays;
    if ((access.deviceAllocCapabilities & ZE_MEMORY_ACCESS_CAP_FLAG_RW) != 0) f->info.kinds |= 1u << ONUMA_KIND_DEVICE;
    if (host) f->info.kinds |= 1u << ONUMA_KIND_HOST;
    if (host || !f->shared_is_host) f->info.kinds |= 1u << ONUMA_KIND_SHARED;
    return ZE_RESULT_SUCCESS;
}

/* Everything but the texts. */
static ze_result_t fill(const onuma_backend_instance *instance, const ze_device_properties_t *properties,
                        onuma__ze_facts *f) {
    const onuma__ze *ze = &instance->ze;
    onuma_backend_device_info *info = &f->info;
    f->integrated = (properties->flags & ZE_DEVICE_PROPERTY_FLAG_INTEGRATED) != 0;
    f->stated_most = properties->maxMemAllocSize;
    f->relaxed = has_extension(ze, f->driver, ZE_RELAXED_ALLOCATION_LIMITS_EXP_NAME);
    f->sysman = onuma__ze_sysman_find(instance, f->device, &properties->uuid);
    find_import(ze, f);
    ze_result_t code = total_memory(ze, f->device, &info->memory_total);
    if (code == ZE_RESULT_SUCCESS) code = find_kinds(ze, f);
    info->type = properties->type == ZE_DEVICE_TYPE_CPU ? ONUMA_DEVICE_CPU
                 : f->integrated                        ? ONUMA_DEVICE_INTEGRATED
                                                        : ONUMA_DEVICE_DISCRETE;
    info->max_segment = f->relaxed ? info->memory_total : f->stated_most;
    info->alignment = ALIGNMENT;
    info->page_size = onuma__os_abilities_get()->page_size;
    info->via = ONUMA_VIA_POINTER;
    info->abilities = ONUMA_ABILITY_COHERENT | ONUMA_ABILITY_QUEUES | ONUMA_ABILITY_WAIT | ONUMA_ABILITY_ADOPT |
                      (f->import != NULL ? ONUMA_ABILITY_IMPORT : 0);
    return code;
}

static void describe_sharing(onuma_backend_device_info *info) {
    const bool shares = (info->kinds & 1u << ONUMA_KIND_SHARED) != 0;
    info->proof = shares ? ONUMA_PROOF_ASSUMED : ONUMA_PROOF_NOT_NEEDED;
    snprintf(info->shared_via, sizeof info->shared_via, "%s", shares ? "usm" : "");
    snprintf(info->sharing_detail, sizeof info->sharing_detail, "%s", "not looked at: Level Zero's own word");
    if (!runs_nothing()) return;
    info->sharing_notes |= ONUMA_SHARING_NO_KERNELS;
    snprintf(info->sharing_detail, sizeof info->sharing_detail,
             "this driver runs no kernels: SetCommandStreamReceiver=%.8s is in force (NEOReadDebugKeys)",
             onuma__os_getenv("SetCommandStreamReceiver"));
}

onuma_result onuma__ze_facts_query(const onuma_backend_instance *instance, ze_driver_handle_t driver,
                                   ze_device_handle_t device, onuma__ze_facts *out) {
    const onuma__ze *ze = &instance->ze;
    onuma__ze_facts f = {.driver = driver, .device = device, .info = {.struct_size = sizeof f.info}};
    ze_device_properties_t properties = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES};
    ze_driver_properties_t of_driver = {.stype = ZE_STRUCTURE_TYPE_DRIVER_PROPERTIES};
    ze_api_version_t version = ZE_API_VERSION_1_0;
    ze_result_t code = ze->zeDeviceGetProperties(device, &properties);
    if (code == ZE_RESULT_SUCCESS) code = ze->zeDriverGetProperties(driver, &of_driver);
    if (code == ZE_RESULT_SUCCESS) code = ze->zeDriverGetApiVersion(driver, &version);
    if (code == ZE_RESULT_SUCCESS) {
        properties.name[sizeof properties.name - 1] = '\0';
        snprintf(f.info.name, sizeof f.info.name, "%.*s", (int)sizeof f.info.name - 1, properties.name);
        snprintf(f.info.driver, sizeof f.info.driver, "Level Zero %u.%u / %u.%u.%u",
                 (unsigned)ZE_MAJOR_VERSION(version), (unsigned)ZE_MINOR_VERSION(version),
                 (unsigned)(of_driver.driverVersion >> 24), (unsigned)(of_driver.driverVersion >> 16 & 0xff),
                 (unsigned)(of_driver.driverVersion & 0xffff));
        code = fill(instance, &properties, &f);
    }
    if (code != ZE_RESULT_SUCCESS)
        return onuma__ze_fail(instance->host, code, "asking the Level Zero device \"%s\" for its properties",
                              f.info.name);
    name_chip(ze, &properties, &f);
    describe_sharing(&f.info);
    *out = f;
    return ONUMA_OK;
}
