/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenCL for the command line itself: what it runs kernels and queues with. The
 * system's loader is opened when first needed, by its bare name, so that the
 * command works on machines without it; the library does the same for itself.
 *
 * A function that some command needs is added to the list; from the list come
 * the struct, the look-ups and the message that names a missing one.
 */
#ifndef CLI_OPENCL_LOADER_H
#define CLI_OPENCL_LOADER_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>

/* Those that every loader since OpenCL 1.2 has. */
#define CLI_OPENCL_REQUIRED(X)                                                                                         \
    X(clGetPlatformIDs)                                                                                                \
    X(clGetDeviceInfo)                                                                                                 \
    X(clGetExtensionFunctionAddressForPlatform)                                                                        \
    X(clCreateCommandQueue)                                                                                            \
    X(clReleaseCommandQueue)                                                                                           \
    X(clCreateUserEvent)                                                                                               \
    X(clSetUserEventStatus)                                                                                            \
    X(clWaitForEvents)                                                                                                 \
    X(clReleaseEvent)                                                                                                  \
    X(clFlush)                                                                                                         \
    X(clFinish)                                                                                                        \
    X(clCreateBuffer)                                                                                                  \
    X(clReleaseMemObject)                                                                                              \
    X(clCreateProgramWithSource)                                                                                       \
    X(clBuildProgram)                                                                                                  \
    X(clGetProgramBuildInfo)                                                                                           \
    X(clReleaseProgram)                                                                                                \
    X(clCreateKernel)                                                                                                  \
    X(clSetKernelArg)                                                                                                  \
    X(clReleaseKernel)                                                                                                 \
    X(clEnqueueNDRangeKernel)                                                                                          \
    X(clEnqueueReadBuffer)                                                                                             \
    X(clEnqueueWriteBuffer)

/* Those that may be absent: NULL then, to be tested where they are used. */
#define CLI_OPENCL_OPTIONAL(X)                                                                                         \
    X(clSetKernelArgSVMPointer)                                                                                        \
    X(clSetKernelExecInfo)

typedef struct cli_opencl {
#define CLI_X(name) __typeof__(&name) name;
    CLI_OPENCL_REQUIRED(CLI_X)
    CLI_OPENCL_OPTIONAL(CLI_X)
#undef CLI_X
} cli_opencl;

/* The functions, loaded once; NULL where they cannot be, and *why says so. Not thread-safe. */
const cli_opencl *cli_opencl_load(const char **why);

/* "CL_OUT_OF_RESOURCES", say; "CL_UNKNOWN_ERROR" for codes not listed. Static text. */
const char *cli_opencl_error_name(cl_int code);

#endif
