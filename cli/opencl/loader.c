/* SPDX-License-Identifier: Apache-2.0 */
#include "opencl/loader.h"

#include <stdio.h>

#include "driver_library.h"

#if defined(_WIN32)
#define LIBRARY "OpenCL.dll"
#else
#define LIBRARY "libOpenCL.so.1"
#endif

/* Both lists into the struct. The name of the first required function that is missing, or NULL. */
static const char *fill(cli_opencl *functions, void *library) {
    const char *missing = NULL;
#define CLI_X(name)                                                                                                    \
    cli_library_find(library, #name, &functions->name);                                                                \
    if (!functions->name && !missing) missing = #name;
    CLI_OPENCL_REQUIRED(CLI_X)
#undef CLI_X
#define CLI_X(name) cli_library_find(library, #name, &functions->name);
    CLI_OPENCL_OPTIONAL(CLI_X)
#undef CLI_X
    return missing;
}

const cli_opencl *cli_opencl_load(const char **why) {
    static enum { UNTRIED, LOADED, FAILED } state;
    static cli_opencl functions;
    static char reason[256];
    if (state == UNTRIED) {
        state = FAILED;
        /* Preloaded in the system's place (oclgrind does that), OpenCL is already here; the library looks alike. */
        void *library = cli_library_of_process("clGetPlatformIDs");
        if (!library) library = cli_library_open(LIBRARY, reason, sizeof reason);
        const char *missing = library ? fill(&functions, library) : NULL;
        if (missing)
            snprintf(reason, sizeof reason, LIBRARY " has no %s: it is older than OpenCL 1.2", missing);
        else if (library)
            state = LOADED;
    }
    if (state == LOADED) return &functions;
    if (why) *why = reason;
    return NULL;
}

#define ERRORS(X)                                                                                                      \
    X(CL_SUCCESS)                                                                                                      \
    X(CL_DEVICE_NOT_FOUND)                                                                                             \
    X(CL_DEVICE_NOT_AVAILABLE)                                                                                         \
    X(CL_COMPILER_NOT_AVAILABLE)                                                                                       \
    X(CL_MEM_OBJECT_ALLOCATION_FAILURE)                                                                                \
    X(CL_OUT_OF_RESOURCES)                                                                                             \
    X(CL_OUT_OF_HOST_MEMORY)                                                                                           \
    X(CL_PROFILING_INFO_NOT_AVAILABLE)                                                                                 \
    X(CL_MEM_COPY_OVERLAP)                                                                                             \
    X(CL_IMAGE_FORMAT_MISMATCH)                                                                                        \
    X(CL_IMAGE_FORMAT_NOT_SUPPORTED)                                                                                   \
    X(CL_BUILD_PROGRAM_FAILURE)                                                                                        \
    X(CL_MAP_FAILURE)                                                                                                  \
    X(CL_MISALIGNED_SUB_BUFFER_OFFSET)                                                                                 \
    X(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)                                                                    \
    X(CL_COMPILE_PROGRAM_FAILURE)                                                                                      \
    X(CL_LINKER_NOT_AVAILABLE)                                                                                         \
    X(CL_LINK_PROGRAM_FAILURE)                                                                                         \
    X(CL_DEVICE_PARTITION_FAILED)                                                                                      \
    X(CL_KERNEL_ARG_INFO_NOT_AVAILABLE)                                                                                \
    X(CL_INVALID_VALUE)                                                                                                \
    X(CL_INVALID_DEVICE_TYPE)                                                                                          \
    X(CL_INVALID_PLATFORM)                                                                                             \
    X(CL_INVALID_DEVICE)                                                                                               \
    X(CL_INVALID_CONTEXT)                                                                                              \
    X(CL_INVALID_QUEUE_PROPERTIES)                                                                                     \
    X(CL_INVALID_COMMAND_QUEUE)                                                                                        \
    X(CL_INVALID_HOST_PTR)                                                                                             \
    X(CL_INVALID_MEM_OBJECT)                                                                                           \
    X(CL_INVALID_IMAGE_FORMAT_DESCRIPTOR)                                                                              \
    X(CL_INVALID_IMAGE_SIZE)                                                                                           \
    X(CL_INVALID_SAMPLER)                                                                                              \
    X(CL_INVALID_BINARY)                                                                                               \
    X(CL_INVALID_BUILD_OPTIONS)                                                                                        \
    X(CL_INVALID_PROGRAM)                                                                                              \
    X(CL_INVALID_PROGRAM_EXECUTABLE)                                                                                   \
    X(CL_INVALID_KERNEL_NAME)                                                                                          \
    X(CL_INVALID_KERNEL_DEFINITION)                                                                                    \
    X(CL_INVALID_KERNEL)                                                                                               \
    X(CL_INVALID_ARG_INDEX)                                                                                            \
    X(CL_INVALID_ARG_VALUE)                                                                                            \
    X(CL_INVALID_ARG_SIZE)                                                                                             \
    X(CL_INVALID_KERNEL_ARGS)                                                                                          \
    X(CL_INVALID_WORK_DIMENSION)                                                                                       \
    X(CL_INVALID_WORK_GROUP_SIZE)                                                                                      \
    X(CL_INVALID_WORK_ITEM_SIZE)                                                                                       \
    X(CL_INVALID_GLOBAL_OFFSET)                                                                                        \
    X(CL_INVALID_EVENT_WAIT_LIST)                                                                                      \
    X(CL_INVALID_EVENT)                                                                                                \
    X(CL_INVALID_OPERATION)                                                                                            \
    X(CL_INVALID_BUFFER_SIZE)                                                                                          \
    X(CL_INVALID_GLOBAL_WORK_SIZE)                                                                                     \
    X(CL_INVALID_PROPERTY)                                                                                             \
    X(CL_PLATFORM_NOT_FOUND_KHR)

const char *cli_opencl_error_name(cl_int code) {
    switch (code) {
#define CLI_X(name)                                                                                                    \
    case name:                                                                                                         \
        return #name;
        ERRORS(CLI_X)
#undef CLI_X
    default:
        return "CL_UNKNOWN_ERROR";
    }
}
