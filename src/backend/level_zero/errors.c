/* SPDX-License-Identifier: Apache-2.0 */
/* Level Zero's codes, what they mean here, and what to do about them: one table. */
#include "backend/level_zero/loader.h"

#include <stdarg.h>
#include <stdio.h>

#define DEFECT ONUMA_ERROR_INTERNAL, "a defect in OpenNUMA or in the driver: please report it"
#define ARGUMENT ONUMA_ERROR_INVALID_ARGUMENT, "the driver does not know this handle"
#define MEMORY ONUMA_ERROR_OUT_OF_MEMORY, "free memory, or ask for less at once"
#define LOST ONUMA_ERROR_DEVICE_LOST, "the device is gone or was reset; make a new runtime to try it again"
#define UNABLE ONUMA_ERROR_NOT_SUPPORTED, "this device or driver cannot do that"

#define CODE(name, ...)                                                                                                \
    { name, #name, __VA_ARGS__ }
static const struct {
    ze_result_t code;
    const char *name;
    onuma_result result;
    const char *remedy;
} codes[] = {
    CODE(ZE_RESULT_ERROR_DEVICE_LOST, LOST),
    CODE(ZE_RESULT_ERROR_DEVICE_REQUIRES_RESET, LOST),
    CODE(ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY, MEMORY),
    CODE(ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY, MEMORY),
    CODE(ZE_RESULT_ERROR_UNSUPPORTED_SIZE, MEMORY), /* which drivers answer below what they state, too */
    CODE(ZE_RESULT_ERROR_DEVICE_IN_LOW_POWER_STATE, ONUMA_ERROR_INTERNAL, "the device sleeps; try again"),
    CODE(ZE_RESULT_ERROR_INSUFFICIENT_PERMISSIONS, ONUMA_ERROR_NOT_SUPPORTED,
         "join the groups render and video, or ask who runs this machine"),
    CODE(ZE_RESULT_ERROR_NOT_AVAILABLE, ONUMA_ERROR_INTERNAL, "another program holds it; try again"),
    CODE(ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE, ONUMA_ERROR_NOT_FOUND, "install the whole driver"),
    CODE(ZE_RESULT_ERROR_UNINITIALIZED, ONUMA_ERROR_NOT_FOUND, "install a driver (Debian: intel-opencl-icd)"),
    CODE(ZE_RESULT_ERROR_UNSUPPORTED_VERSION, UNABLE),
    CODE(ZE_RESULT_ERROR_UNSUPPORTED_FEATURE, UNABLE),
    CODE(ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT, UNABLE),
    CODE(ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION, UNABLE),
    CODE(ZE_RESULT_ERROR_INVALID_ARGUMENT, ARGUMENT),
    CODE(ZE_RESULT_ERROR_INVALID_NULL_HANDLE, ARGUMENT),
    CODE(ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT, ARGUMENT),
    CODE(
        ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE, ONUMA_ERROR_INVALID_ARGUMENT,
        "the queue is of a group that this driver does not tell of; take one of the first group, or update the driver"),
    CODE(ZE_RESULT_ERROR_INVALID_NULL_POINTER, DEFECT),
    CODE(ZE_RESULT_ERROR_INVALID_SIZE, DEFECT),
    CODE(ZE_RESULT_ERROR_INVALID_ENUMERATION, DEFECT),
    CODE(ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE, DEFECT),
    CODE(ZE_RESULT_ERROR_UNKNOWN, DEFECT),
};

static size_t find(ze_result_t code) {
    size_t i = 0;
    while (i < sizeof codes / sizeof codes[0] && codes[i].code != code)
        i++;
    return i;
}

const char *onuma__ze_code_name(ze_result_t code) {
    const size_t i = find(code);
    return i < sizeof codes / sizeof codes[0] ? codes[i].name : "unknown error";
}

onuma_result onuma__ze_fail(const onuma_backend_host *host, ze_result_t code, const char *what, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, what);
    vsnprintf(text, sizeof text, what, arguments);
    va_end(arguments);
    const size_t i = find(code);
    if (i == sizeof codes / sizeof codes[0])
        return host->fail(ONUMA_ERROR_INTERNAL, "%s: Level Zero error 0x%x", text, (unsigned)code);
    return host->fail(codes[i].result, "%s: %s (0x%x); %s", text, codes[i].name, (unsigned)code, codes[i].remedy);
}
