/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles that come from the program, looked at before a driver follows them: a number that is no handle would crash
 * there.
 *
 * Every object of a driver begins with an address: of its functions, or, where the loader or a layer stands between,
 * of the driver's own object. So a handle points to memory that can be read, and so does what stands there. Devices
 * are checked against those that the drivers list. Not seen are objects of another type, and ones that were destroyed.
 */
#include "backend/level_zero/level_zero.h"

onuma_result onuma__ze_check_handle(const onuma_backend_host *host, const void *handle, const char *type) {
    if ((uintptr_t)handle % _Alignof(void *) == 0 && onuma__os_can_read(handle) &&
        onuma__os_can_read(*(const void *const *)handle))
        return ONUMA_OK;
    return host->fail(ONUMA_ERROR_INVALID_ARGUMENT,
                      "%p is no %s: no Level Zero driver has an object there; pass the handle that the driver gave, "
                      "while it lives",
                      handle, type);
}
