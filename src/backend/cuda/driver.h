/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this backend knows of CUDA's driver API: declarations of its own, of only the entry points it calls, so that
 * nothing of NVIDIA's is needed to build. Names, types and values are those of NVIDIA's public reference,
 * https://docs.nvidia.com/cuda/cuda-driver-api/ (the chapter stands beside each group). Functions carry the suffix
 * under which the driver exports the form declared here; they have kept it since the versions noted.
 */
#ifndef ONUMA_BACKEND_CUDA_DRIVER_H
#define ONUMA_BACKEND_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef int onuma__cu_result; /* CUresult */
typedef int onuma__cu_device; /* CUdevice: an ordinal */
typedef struct onuma__cu_context_object *onuma__cu_context;
typedef struct onuma__cu_stream_object *onuma__cu_stream;
typedef struct onuma__cu_event_object *onuma__cu_event;
typedef uint64_t onuma__cu_pointer; /* CUdeviceptr */
typedef uint64_t onuma__cu_memory;  /* CUmemGenericAllocationHandle */

/* Handles that stand for default streams ("Stream synchronization behavior"). NULL means LEGACY where functions are called by
 * these names. */
#define ONUMA__CU_STREAM_LEGACY ((onuma__cu_stream)1)
#define ONUMA__CU_STREAM_PER_THREAD ((onuma__cu_stream)2)

/* CUdevice_attribute ("Data types used by CUDA driver"). */
enum {
    ONUMA__CU_INTEGRATED = 18,
    ONUMA__CU_CAN_MAP_HOST_MEMORY = 19,
    ONUMA__CU_PCI_BUS_ID = 33,
    ONUMA__CU_PCI_DEVICE_ID = 34,
    ONUMA__CU_UNIFIED_ADDRESSING = 41,
    ONUMA__CU_PCI_DOMAIN_ID = 50,
    ONUMA__CU_CAPABILITY_MAJOR = 75,
    ONUMA__CU_CAPABILITY_MINOR = 76,
    ONUMA__CU_CONCURRENT_MANAGED_ACCESS = 89,
    ONUMA__CU_HOST_REGISTER_SUPPORTED = 99,
    ONUMA__CU_VIRTUAL_MEMORY_SUPPORTED = 102,
    ONUMA__CU_READ_ONLY_REGISTER_SUPPORTED = 113,
    ONUMA__CU_HOST_NUMA_ID = 134,
    ONUMA__CU_HOST_NUMA_VIRTUAL_MEMORY_SUPPORTED = 141
};

/* CUstreamCaptureMode, CUstreamCaptureStatus ("Stream management"). */
enum { ONUMA__CU_CAPTURE_MODE_RELAXED = 2 };
enum { ONUMA__CU_CAPTURE_STATUS_NONE = 0 };

/* Flags of events, streams and host memory ("Event management", "Stream management", "Memory management"). */
enum { ONUMA__CU_EVENT_DISABLE_TIMING = 2 };
enum { ONUMA__CU_STREAM_NON_BLOCKING = 1 };
enum { ONUMA__CU_HOST_PORTABLE = 1, ONUMA__CU_HOST_DEVICEMAP = 2, ONUMA__CU_HOST_READ_ONLY = 8 };
enum { ONUMA__CU_MEM_ATTACH_GLOBAL = 1 };

/* "Virtual memory management". */
enum { ONUMA__CU_LOCATION_DEVICE = 1, ONUMA__CU_LOCATION_HOST_NUMA = 3 };
enum { ONUMA__CU_ALLOCATION_PINNED = 1 };
enum { ONUMA__CU_ACCESS_READ_WRITE = 3 };
enum { ONUMA__CU_GRANULARITY_MINIMUM = 0 };

typedef struct onuma__cu_location {
    int type, id;
} onuma__cu_location;

typedef struct onuma__cu_properties { /* CUmemAllocationProp */
    int type, handle_types;
    onuma__cu_location location;
    void *windows_security;
    struct {
        unsigned char compression, direct_memory_access;
        unsigned short usage;
        unsigned char reserved[4];
    } flags;
} onuma__cu_properties;

typedef struct onuma__cu_access { /* CUmemAccessDesc */
    onuma__cu_location location;
    int flags;
} onuma__cu_access;

/*
 * X(need, name, exported name, parameters). REQUIRED is what CUDA 10.1 had, the oldest that is served; the rest came later.
 */
#define ONUMA__CU_FUNCTIONS(X)                                                                                         \
    X(REQUIRED, Init, "cuInit", (unsigned flags))                                                                      \
    X(REQUIRED, DriverGetVersion, "cuDriverGetVersion", (int *version))                                                \
    X(REQUIRED, DeviceGetCount, "cuDeviceGetCount", (int *count))                                                      \
    X(REQUIRED, DeviceGet, "cuDeviceGet", (onuma__cu_device * device, int ordinal))                                    \
    X(REQUIRED, DeviceGetName, "cuDeviceGetName", (char *name, int length, onuma__cu_device device))                   \
    X(REQUIRED, DeviceGetAttribute, "cuDeviceGetAttribute", (int *value, int attribute, onuma__cu_device device))      \
    X(REQUIRED, DeviceTotalMem, "cuDeviceTotalMem_v2", (size_t * bytes, onuma__cu_device device))                      \
    X(REQUIRED, PrimaryRetain, "cuDevicePrimaryCtxRetain", (onuma__cu_context * context, onuma__cu_device device))     \
    X(REQUIRED, PrimaryRelease, "cuDevicePrimaryCtxRelease", (onuma__cu_device device))                                \
    X(REQUIRED, CtxPush, "cuCtxPushCurrent_v2", (onuma__cu_context context))                                           \
    X(REQUIRED, CtxPop, "cuCtxPopCurrent_v2", (onuma__cu_context * context))                                           \
    X(REQUIRED, ExchangeCaptureMode, "cuThreadExchangeStreamCaptureMode", (int *mode))                                 \
    X(REQUIRED, MemGetInfo, "cuMemGetInfo_v2", (size_t * available, size_t * total))                                   \
    X(REQUIRED, MemAlloc, "cuMemAlloc_v2", (onuma__cu_pointer * pointer, size_t size))                                 \
    X(REQUIRED, MemAllocManaged, "cuMemAllocManaged", (onuma__cu_pointer * pointer, size_t size, unsigned flags))      \
    X(REQUIRED, MemFree, "cuMemFree_v2", (onuma__cu_pointer pointer))                                                  \
    X(REQUIRED, MemHostAlloc, "cuMemHostAlloc", (void **pointer, size_t size, unsigned flags))                         \
    X(REQUIRED, MemFreeHost, "cuMemFreeHost", (void *pointer))                                                         \
    X(REQUIRED, MemHostRegister, "cuMemHostRegister_v2", (void *pointer, size_t size, unsigned flags))                 \
    X(REQUIRED, MemHostUnregister, "cuMemHostUnregister", (void *pointer))                                             \
    X(REQUIRED, MemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2",                                               \
      (onuma__cu_pointer * device, void *host, unsigned flags))                                                        \
    X(REQUIRED, MemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2",                                                               \
      (onuma__cu_pointer to, onuma__cu_pointer from, size_t size, onuma__cu_stream stream))                            \
    X(REQUIRED, MemsetD32Async, "cuMemsetD32Async",                                                                    \
      (onuma__cu_pointer to, unsigned value, size_t count, onuma__cu_stream stream))                                   \
    X(REQUIRED, StreamCreate, "cuStreamCreate", (onuma__cu_stream * stream, unsigned flags))                           \
    X(REQUIRED, StreamDestroy, "cuStreamDestroy_v2", (onuma__cu_stream stream))                                        \
    X(REQUIRED, StreamSynchronize, "cuStreamSynchronize", (onuma__cu_stream stream))                                   \
    X(REQUIRED, StreamGetCtx, "cuStreamGetCtx", (onuma__cu_stream stream, onuma__cu_context * context))                \
    X(REQUIRED, StreamIsCapturing, "cuStreamIsCapturing", (onuma__cu_stream stream, int *status))                      \
    X(REQUIRED, StreamWaitEvent, "cuStreamWaitEvent",                                                                  \
      (onuma__cu_stream stream, onuma__cu_event event, unsigned flags))                                                \
    X(REQUIRED, EventCreate, "cuEventCreate", (onuma__cu_event * event, unsigned flags))                               \
    X(REQUIRED, EventRecord, "cuEventRecord", (onuma__cu_event event, onuma__cu_stream stream))                        \
    X(REQUIRED, EventQuery, "cuEventQuery", (onuma__cu_event event))                                                   \
    X(REQUIRED, EventDestroy, "cuEventDestroy_v2", (onuma__cu_event event))                                            \
    X(OPTIONAL, MemAddressReserve, "cuMemAddressReserve",                                                              \
      (onuma__cu_pointer * pointer, size_t size, size_t align, onuma__cu_pointer hint, unsigned long long flags))      \
    X(OPTIONAL, MemAddressFree, "cuMemAddressFree", (onuma__cu_pointer pointer, size_t size))                          \
    X(OPTIONAL, MemCreate, "cuMemCreate",                                                                              \
      (onuma__cu_memory * memory, size_t size, const onuma__cu_properties *properties, unsigned long long flags))      \
    X(OPTIONAL, MemRelease, "cuMemRelease", (onuma__cu_memory memory))                                                 \
    X(OPTIONAL, MemMap, "cuMemMap",                                                                                    \
      (onuma__cu_pointer pointer, size_t size, size_t offset, onuma__cu_memory memory, unsigned long long flags))      \
    X(OPTIONAL, MemUnmap, "cuMemUnmap", (onuma__cu_pointer pointer, size_t size))                                      \
    X(OPTIONAL, MemSetAccess, "cuMemSetAccess",                                                                        \
      (onuma__cu_pointer pointer, size_t size, const onuma__cu_access *access, size_t count))                          \
    X(OPTIONAL, MemGetGranularity, "cuMemGetAllocationGranularity",                                                    \
      (size_t * granularity, const onuma__cu_properties *properties, int option))

#if defined(_WIN32)
#define ONUMA__CU_CALL __stdcall
#else
#define ONUMA__CU_CALL
#endif

typedef struct onuma__cu {
#define ONUMA__X(need, name, exported, parameters) onuma__cu_result(ONUMA__CU_CALL *name) parameters;
    ONUMA__CU_FUNCTIONS(ONUMA__X)
#undef ONUMA__X
} onuma__cu;

#endif
