/* SPDX-License-Identifier: Apache-2.0 */
/* OpenCL's codes, what they mean here, and what to do about them: one table. */
#include "backend/opencl/loader.h"

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
    cl_int code;
    const char *name;
    onuma_result result;
    const char *remedy;
} codes[] = {
    CODE(CL_DEVICE_NOT_FOUND, LOST),
    CODE(CL_DEVICE_NOT_AVAILABLE, LOST),
    CODE(CL_COMPILER_NOT_AVAILABLE, UNABLE),
    CODE(CL_MEM_OBJECT_ALLOCATION_FAILURE, MEMORY),
    CODE(CL_OUT_OF_RESOURCES, MEMORY),
    CODE(CL_OUT_OF_HOST_MEMORY, MEMORY),
    CODE(CL_MEM_COPY_OVERLAP, DEFECT),
    CODE(CL_MAP_FAILURE, DEFECT),
    CODE(CL_BUILD_PROGRAM_FAILURE, ONUMA_ERROR_NOT_SUPPORTED, "the driver's compiler does not work"),
    CODE(CL_MISALIGNED_SUB_BUFFER_OFFSET, DEFECT),
    CODE(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, ONUMA_ERROR_INTERNAL, "work that this waited for failed"),
    CODE(CL_INVALID_VALUE, DEFECT),
    CODE(CL_INVALID_DEVICE_TYPE, DEFECT),
    CODE(CL_INVALID_PLATFORM, ARGUMENT),
    CODE(CL_INVALID_DEVICE, ARGUMENT),
    CODE(CL_INVALID_CONTEXT, ARGUMENT),
    CODE(CL_INVALID_QUEUE_PROPERTIES, UNABLE),
    CODE(CL_INVALID_COMMAND_QUEUE, ARGUMENT),
    CODE(CL_INVALID_HOST_PTR, DEFECT),
    CODE(CL_INVALID_MEM_OBJECT, ARGUMENT),
    CODE(CL_INVALID_EVENT_WAIT_LIST, ARGUMENT),
    CODE(CL_INVALID_EVENT, ARGUMENT),
    CODE(CL_INVALID_OPERATION, UNABLE),
    CODE(CL_INVALID_BUFFER_SIZE, MEMORY),
    CODE(CL_INVALID_PROPERTY, DEFECT),
    CODE(CL_PLATFORM_NOT_FOUND_KHR, ONUMA_ERROR_NOT_FOUND, "install an OpenCL driver"),
    {-9999, "illegal access by a kernel (NVIDIA)", LOST},
};

static size_t find(cl_int code) {
    size_t i = 0;
    while (i < sizeof codes / sizeof codes[0] && codes[i].code != code)
        i++;
    return i;
}

const char *onuma__cl_code_name(cl_int code) {
    const size_t i = find(code);
    return i < sizeof codes / sizeof codes[0] ? codes[i].name : "unknown error";
}

onuma_result onuma__cl_fail(const onuma_backend_host *host, cl_int code, const char *what, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, what);
    vsnprintf(text, sizeof text, what, arguments);
    va_end(arguments);
    const size_t i = find(code);
    if (i == sizeof codes / sizeof codes[0])
        return host->fail(ONUMA_ERROR_INTERNAL, "%s: OpenCL error %d", text, (int)code);
    return host->fail(codes[i].result, "%s: %s (%d); %s", text, codes[i].name, (int)code, codes[i].remedy);
}
