/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Level Zero's entry points, found at run time: the library links to no driver. The one list below makes the struct,
 * the look-ups and the message that names what is missing; types come from Level Zero's own headers. What is younger
 * than the headers of Debian 12 (1.8) is declared here as later headers do (oneapi-src/level-zero, include/ze_api.h and
 * zes_api.h at v1.9 and v1.11); the same declaration twice is no error.
 */
#ifndef ONUMA_BACKEND_LEVEL_ZERO_LOADER_H
#define ONUMA_BACKEND_LEVEL_ZERO_LOADER_H

#include <level_zero/ze_api.h>
#include <level_zero/zes_api.h>

#include "base/result.h"
#include "opennuma/backend.h"

typedef uint32_t onuma__ze_sysman_flags; /* zes_init_flags_t */

ZE_APIEXPORT ze_result_t ZE_APICALL zeCommandListGetDeviceHandle(ze_command_list_handle_t, ze_device_handle_t *);
ZE_APIEXPORT ze_result_t ZE_APICALL zeCommandListGetContextHandle(ze_command_list_handle_t, ze_context_handle_t *);
ZE_APIEXPORT ze_result_t ZE_APICALL zeCommandQueueGetOrdinal(ze_command_queue_handle_t, uint32_t *);
ZE_APIEXPORT ze_result_t ZE_APICALL zesInit(onuma__ze_sysman_flags);
ZE_APIEXPORT ze_result_t ZE_APICALL zesDriverGet(uint32_t *, zes_driver_handle_t *);
ZE_APIEXPORT ze_result_t ZE_APICALL zesDeviceGet(zes_driver_handle_t, uint32_t *, zes_device_handle_t *);

/* X(need, function). Version 1.0 is the oldest that is served; what came later is there or not, by loader and driver. */
#define ONUMA__ZE_FUNCTIONS(X)                                                                                         \
    X(REQUIRED, zeInit)                                                                                                \
    X(REQUIRED, zeDriverGet)                                                                                           \
    X(REQUIRED, zeDriverGetApiVersion)                                                                                 \
    X(REQUIRED, zeDriverGetProperties)                                                                                 \
    X(REQUIRED, zeDriverGetIpcProperties)                                                                              \
    X(REQUIRED, zeDriverGetExtensionProperties)                                                                        \
    X(REQUIRED, zeDeviceGet)                                                                                           \
    X(REQUIRED, zeDeviceGetSubDevices)                                                                                 \
    X(REQUIRED, zeDeviceGetProperties)                                                                                 \
    X(REQUIRED, zeDeviceGetMemoryProperties)                                                                           \
    X(REQUIRED, zeDeviceGetMemoryAccessProperties)                                                                     \
    X(REQUIRED, zeContextCreate)                                                                                       \
    X(REQUIRED, zeContextDestroy)                                                                                      \
    X(REQUIRED, zeContextGetStatus)                                                                                    \
    X(REQUIRED, zeMemAllocShared)                                                                                      \
    X(REQUIRED, zeMemAllocHost)                                                                                        \
    X(REQUIRED, zeMemAllocDevice)                                                                                      \
    X(REQUIRED, zeMemFree)                                                                                             \
    X(REQUIRED, zeMemGetAllocProperties)                                                                               \
    X(REQUIRED, zeMemGetAddressRange)                                                                                  \
    X(REQUIRED, zeEventPoolCreate)                                                                                     \
    X(REQUIRED, zeEventPoolDestroy)                                                                                    \
    X(REQUIRED, zeEventCreate)                                                                                         \
    X(REQUIRED, zeEventDestroy)                                                                                        \
    X(REQUIRED, zeEventHostReset)                                                                                      \
    X(REQUIRED, zeEventQueryStatus)                                                                                    \
    X(REQUIRED, zeCommandListCreate)                                                                                   \
    X(REQUIRED, zeCommandListDestroy)                                                                                  \
    X(REQUIRED, zeCommandListReset)                                                                                    \
    X(REQUIRED, zeCommandListClose)                                                                                    \
    X(REQUIRED, zeCommandListAppendBarrier)                                                                            \
    X(REQUIRED, zeCommandQueueExecuteCommandLists)                                                                     \
    X(OPTIONAL, zeDriverGetExtensionFunctionAddress)                                                                   \
    X(OPTIONAL, zeDevicePciGetPropertiesExt)                                                                           \
    X(OPTIONAL, zeCommandListGetDeviceHandle)                                                                          \
    X(OPTIONAL, zeCommandListGetContextHandle)                                                                         \
    X(OPTIONAL, zeCommandQueueGetOrdinal)                                                                              \
    X(OPTIONAL, zesInit)                                                                                               \
    X(OPTIONAL, zesDriverGet)                                                                                          \
    X(OPTIONAL, zesDeviceGet)                                                                                          \
    X(OPTIONAL, zesDeviceGetProperties)                                                                                \
    X(OPTIONAL, zesDeviceEnumMemoryModules)                                                                            \
    X(OPTIONAL, zesMemoryGetProperties)                                                                                \
    X(OPTIONAL, zesMemoryGetState)

typedef struct onuma__ze {
#define ONUMA__X(need, function) __typeof__(&function) function;
    ONUMA__ZE_FUNCTIONS(ONUMA__X)
#undef ONUMA__X
} onuma__ze;

/* Found by name from the driver, not the loader (intel/compute-runtime, level_zero/include/zex_driver.h). */
typedef ze_result_t(ZE_APICALL *onuma__ze_import_function)(ze_driver_handle_t, void *, size_t);
typedef ze_result_t(ZE_APICALL *onuma__ze_unimport_function)(ze_driver_handle_t, void *);

/*
 * Load the loader that this process has, else the first of the NULL-terminated `names` that there is. NOT_FOUND if
 * there is none, which is normal; INTERNAL for one that is there and does not load, or lacks a required function.
 */
onuma_result onuma__ze_load(const onuma_backend_host *host, const char *const *names, onuma__ze *out);

/* The loader's names on this system. */
extern const char *const onuma__ze_library_names[];

/* "ZE_RESULT_ERROR_DEVICE_LOST" for 0x70000001; "unknown error" for codes that are not in Level Zero's headers. */
const char *onuma__ze_code_name(ze_result_t code);

/* Record "<what>: ZE_RESULT_... (code); <remedy>" and return the result that goes with the code. */
onuma_result onuma__ze_fail(const onuma_backend_host *host, ze_result_t code, const char *what, ...)
    ONUMA__PRINTF(3, 4);

#endif
