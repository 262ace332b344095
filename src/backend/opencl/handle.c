/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles that come from the program, looked at before a driver or the loader
 * follows them: a number that is no handle would crash there.
 *
 * Every OpenCL object begins with the address of its driver's table of
 * functions, by which the loader finds the driver. So a handle points to memory
 * that can be read, and what stands there is what stands in the platform and
 * the devices of some driver. Where these two differ the driver has no such
 * tables (one that was loaded without a loader), and only the first half is checked.
 *
 * Not seen are objects of another type, and ones that were released.
 */
#include "backend/opencl/opencl.h"
#include "os/os.h"

static const void *table_of(const void *handle) {
    return *(const void *const *)handle;
}

static bool is_of_known_driver(const onuma_backend_instance *instance, const void *handle) {
    for (size_t i = 0; i < instance->device_count; i++) {
        const onuma__cl_facts *facts = &instance->devices[i];
        const void *table = table_of(facts->device);
        if (table == table_of(handle) || table != table_of(facts->platform)) return true;
    }
    return false;
}

onuma_result onuma__cl_check_handle(const onuma_backend_instance *instance, const void *handle, const char *type) {
    if (onuma__os_can_read(handle) && is_of_known_driver(instance, handle)) return ONUMA_OK;
    return instance->host->fail(ONUMA_ERROR_INVALID_ARGUMENT,
                                "%p is no %s: no OpenCL driver of this machine has an object there; pass the handle "
                                "that the driver gave, while it is retained",
                                handle, type);
}
