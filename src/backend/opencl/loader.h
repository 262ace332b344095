/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenCL's entry points, found at run time: the library links to no driver. The one list below makes the struct,
 * the look-ups and the message that names what is missing; types come from OpenCL's own headers.
 */
#ifndef ONUMA_BACKEND_OPENCL_LOADER_H
#define ONUMA_BACKEND_OPENCL_LOADER_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS /* clCreateCommandQueue: the one that devices of every version have */
#include <CL/cl.h>
#include <CL/cl_ext.h>
#if !defined(cl_intel_unified_shared_memory) /* headers before 2022 */
#include <CL/cl_ext_intel.h>
#endif

#include "base/result.h"
#include "opennuma/backend.h"

/* X(need, function). OpenCL 1.2 is the oldest that is served; what came later is there or not, by loader and device. */
#define ONUMA__CL_FUNCTIONS(X)                                                                                         \
    X(REQUIRED, clGetPlatformIDs)                                                                                      \
    X(REQUIRED, clGetPlatformInfo)                                                                                     \
    X(REQUIRED, clGetDeviceIDs)                                                                                        \
    X(REQUIRED, clGetDeviceInfo)                                                                                       \
    X(REQUIRED, clGetExtensionFunctionAddressForPlatform)                                                              \
    X(REQUIRED, clCreateContext)                                                                                       \
    X(REQUIRED, clRetainContext)                                                                                       \
    X(REQUIRED, clReleaseContext)                                                                                      \
    X(REQUIRED, clGetContextInfo)                                                                                      \
    X(REQUIRED, clCreateCommandQueue)                                                                                  \
    X(REQUIRED, clRetainCommandQueue)                                                                                  \
    X(REQUIRED, clReleaseCommandQueue)                                                                                 \
    X(REQUIRED, clGetCommandQueueInfo)                                                                                 \
    X(REQUIRED, clFlush)                                                                                               \
    X(REQUIRED, clCreateBuffer)                                                                                        \
    X(REQUIRED, clCreateSubBuffer)                                                                                     \
    X(REQUIRED, clRetainMemObject)                                                                                     \
    X(REQUIRED, clReleaseMemObject)                                                                                    \
    X(REQUIRED, clGetMemObjectInfo)                                                                                    \
    X(REQUIRED, clSetMemObjectDestructorCallback)                                                                      \
    X(REQUIRED, clEnqueueMapBuffer)                                                                                    \
    X(REQUIRED, clEnqueueUnmapMemObject)                                                                               \
    X(REQUIRED, clEnqueueMarkerWithWaitList)                                                                           \
    X(REQUIRED, clEnqueueBarrierWithWaitList)                                                                          \
    X(REQUIRED, clWaitForEvents)                                                                                       \
    X(REQUIRED, clGetEventInfo)                                                                                        \
    X(REQUIRED, clRetainEvent)                                                                                         \
    X(REQUIRED, clReleaseEvent)                                                                                        \
    X(REQUIRED, clCreateProgramWithSource)                                                                             \
    X(REQUIRED, clBuildProgram)                                                                                        \
    X(REQUIRED, clReleaseProgram)                                                                                      \
    X(REQUIRED, clCreateKernel)                                                                                        \
    X(REQUIRED, clReleaseKernel)                                                                                       \
    X(REQUIRED, clSetKernelArg)                                                                                        \
    X(REQUIRED, clEnqueueNDRangeKernel)                                                                                \
    X(REQUIRED, clEnqueueWriteBuffer)                                                                                  \
    X(REQUIRED, clEnqueueReadBuffer)                                                                                   \
    X(OPTIONAL, clSVMAlloc)                                                                                            \
    X(OPTIONAL, clSVMFree)                                                                                             \
    X(OPTIONAL, clEnqueueSVMMap)                                                                                       \
    X(OPTIONAL, clEnqueueSVMUnmap)                                                                                     \
    X(OPTIONAL, clSetKernelArgSVMPointer)

typedef struct onuma__cl {
#define ONUMA__X(need, function) __typeof__(&function) function;
    ONUMA__CL_FUNCTIONS(ONUMA__X)
#undef ONUMA__X
} onuma__cl;

/*
 * Load the first of the NULL-terminated `names` that there is. NOT_FOUND if there is none, which is normal; INTERNAL
 * for one that is there and does not load, or lacks a required function.
 */
onuma_result onuma__cl_load(const onuma_backend_host *host, const char *const *names, onuma__cl *out);

/* The loader's names on this system. */
extern const char *const onuma__cl_library_names[];

/* "CL_OUT_OF_RESOURCES" for -5; "unknown error" for codes that are not in OpenCL's headers. */
const char *onuma__cl_code_name(cl_int code);

/* Record "<what>: CL_... (code); <remedy>" and return the result that goes with the code. */
onuma_result onuma__cl_fail(const onuma_backend_host *host, cl_int code, const char *what, ...) ONUMA__PRINTF(3, 4);

#endif
