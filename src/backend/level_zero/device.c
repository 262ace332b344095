/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices in a context of ours, and in contexts of the program's. Level Zero counts no references: a context of the
 * program's must stay until the device is released.
 */
#include "backend/level_zero/level_zero.h"

#include <stdlib.h>

/* Takes over the context if it is ours, also when it fails. */
static onuma_result enter_context(onuma_backend_instance *instance, const onuma__ze_facts *facts,
                                  ze_context_handle_t context, bool adopted, onuma_backend_device **out) {
    onuma_result r = ONUMA_ERROR_OUT_OF_MEMORY;
    onuma_backend_device *device = calloc(1, sizeof *device);
    if (device == NULL) {
        (void)instance->host->fail(r, "no memory for Level Zero device \"%s\"", facts->info.name);
        goto failed;
    }
    *device = (onuma_backend_device){.instance = instance,
                                     .host = instance->host,
                                     .ze = &instance->ze,
                                     .facts = *facts,
                                     .context = context,
                                     .adopted = adopted};
    device->facts.info.native_context = (uintptr_t)context;
    device->facts.info.native_device = (uintptr_t)facts->device;
    r = onuma__ze_signals_create(device);
    if (r != ONUMA_OK) goto failed;
    *out = device;
    return ONUMA_OK;
failed:
    free(device);
    if (!adopted) instance->ze.zeContextDestroy(context);
    return r;
}

onuma_result onuma__ze_device_open(onuma_backend_instance *instance, size_t i, onuma_backend_device **out) {
    const onuma__ze_facts *facts = &instance->devices[i];
    const ze_context_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
    ze_context_handle_t context = NULL;
    const ze_result_t code = instance->ze.zeContextCreate(facts->driver, &desc, &context);
    if (code != ZE_RESULT_SUCCESS)
        return onuma__ze_fail(instance->host, code, "zeContextCreate for \"%s\"", facts->info.name);
    return enter_context(instance, facts, context, false, out);
}

/* What lives in a context goes with it, so while something does, the context stays. */
void onuma__ze_device_close(onuma_backend_device *device) {
    const size_t segments = atomic_load_explicit(&device->segments, memory_order_acquire);
    const bool idle = onuma__ze_signals_destroy(device);
    if (segments != 0 || !idle)
        device->host->log(device->host, ONUMA_LOG_WARN,
                          "Level Zero device \"%s\": %zu segments still live%s: their context stays",
                          device->facts.info.name, segments, idle ? "" : ", and work of its queues goes on");
    else if (!device->adopted)
        device->ze->zeContextDestroy(device->context);
    free(device);
}

onuma_result onuma__ze_device_info(onuma_backend_device *device, onuma_backend_device_info *out) {
    *out = device->facts.info;
    return ONUMA_OK;
}

/* A device that shares the CPU's memory has no more free than the system; of others, system management knows or nobody. */
onuma_result onuma__ze_memory_free(onuma_backend_device *device, uint64_t *bytes) {
    const onuma__ze_facts *f = &device->facts;
    uint64_t total = 0, available = 0;
    if (f->integrated)
        onuma__os_memory(&total, &available);
    else
        available = onuma__ze_sysman_free(device->ze, f->sysman);
    *bytes = f->info.memory_total != 0 && f->info.memory_total < available ? f->info.memory_total : available;
    return ONUMA_OK;
}

/* ---------------------------------------------------------------- adoption */

/* A part of a device that was found is a device too. NULL, and no failure, if it is a part of none. */
static onuma_result find_part(const onuma_backend_instance *instance, const onuma__ze_facts *whole,
                              ze_device_handle_t wanted, onuma__ze_facts *out, bool *found) {
    const onuma__ze *ze = &instance->ze;
    uint32_t count = 0;
    if (ze->zeDeviceGetSubDevices(whole->device, &count, NULL) != ZE_RESULT_SUCCESS || count == 0) return ONUMA_OK;
    ze_device_handle_t *parts = calloc(count, sizeof(ze_device_handle_t));
    if (parts == NULL)
        return instance->host->fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for %u parts of a device", (unsigned)count);
    if (ze->zeDeviceGetSubDevices(whole->device, &count, parts) != ZE_RESULT_SUCCESS) count = 0;
    for (uint32_t i = 0; i < count && !*found; i++)
        *found = parts[i] == wanted;
    free(parts);
    return *found ? onuma__ze_facts_query(instance, whole->driver, wanted, out) : ONUMA_OK;
}

/* Which device: `wanted`, or the only one there is if that is NULL. */
static onuma_result find_device(const onuma_backend_instance *instance, ze_device_handle_t wanted,
                                onuma__ze_facts *out) {
    bool found = false;
    for (size_t i = 0; i < instance->device_count; i++)
        if (instance->devices[i].device == wanted || (wanted == NULL && instance->device_count == 1)) {
            *out = instance->devices[i];
            return ONUMA_OK;
        }
    for (size_t i = 0; i < instance->device_count && wanted != NULL; i++) {
        const onuma_result r = find_part(instance, &instance->devices[i], wanted, out, &found);
        if (r != ONUMA_OK || found) return r;
    }
    return instance->host->fail(ONUMA_ERROR_INVALID_ARGUMENT,
                                "the ze_device_handle_t %p names none of the %zu devices that Level Zero lists, nor a "
                                "part of one",
                                (void *)wanted, instance->device_count);
}

static onuma_result adopt(onuma_backend_instance *instance, ze_context_handle_t context, ze_device_handle_t wanted,
                          onuma_backend_device **out) {
    onuma__ze_facts facts = {.device = NULL};
    const onuma_result r = find_device(instance, wanted, &facts);
    if (r != ONUMA_OK) return r;
    const ze_result_t code = instance->ze.zeContextGetStatus(context);
    if (code != ZE_RESULT_SUCCESS)
        return onuma__ze_fail(instance->host, code, "zeContextGetStatus of an adopted context");
    return enter_context(instance, &facts, context, true, out);
}

onuma_result onuma__ze_device_adopt(onuma_backend_instance *instance, const onuma_native_device *native,
                                    onuma_backend_device **out) {
    ze_context_handle_t context = (ze_context_handle_t)(uintptr_t)native->context;
    const onuma_result r = onuma__ze_check_handle(instance->host, context, "ze_context_handle_t");
    return r != ONUMA_OK ? r : adopt(instance, context, (ze_device_handle_t)(uintptr_t)native->device, out);
}

/* Lists tell where they belong since version 1.9; queues never do. */
onuma_result onuma__ze_device_from_queue(onuma_backend_instance *instance, uint64_t native_queue,
                                         onuma_backend_device **out) {
    const onuma_backend_host *host = instance->host;
    const onuma__ze *ze = &instance->ze;
    if ((native_queue & 1) == 0)
        return host->fail(ONUMA_ERROR_NOT_SUPPORTED,
                          "a Level Zero command queue (0x%llx) does not tell its context; use onuma_device_adopt with "
                          "context and device (an immediate command list is named by ONUMA_LEVEL_ZERO_LIST)",
                          (unsigned long long)native_queue);
    ze_command_list_handle_t list = (ze_command_list_handle_t)(uintptr_t)(native_queue - 1);
    const onuma_result r = onuma__ze_check_handle(host, list, "ze_command_list_handle_t");
    if (r != ONUMA_OK) return r;
    ze_context_handle_t context = NULL;
    ze_device_handle_t device = NULL;
    ze_result_t code = ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
    if (ze->zeCommandListGetContextHandle != NULL && ze->zeCommandListGetDeviceHandle != NULL)
        code = ze->zeCommandListGetContextHandle(list, &context);
    if (code == ZE_RESULT_SUCCESS) code = ze->zeCommandListGetDeviceHandle(list, &device);
    if (code != ZE_RESULT_SUCCESS)
        return onuma__ze_fail(host, code,
                              "asking a Level Zero command list for its context (drivers before version 1.9 do not "
                              "tell: use onuma_device_adopt)");
    return adopt(instance, context, device, out);
}
