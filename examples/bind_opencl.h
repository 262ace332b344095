/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a block becomes the argument of an OpenCL kernel. Devices differ in that: a buffer handle, a
 * pointer of shared virtual memory, a pointer of Intel's unified shared memory; the view says which.
 */
#ifndef BIND_OPENCL_H
#define BIND_OPENCL_H

/* clSetKernelArgSVMPointer is of OpenCL 2.0, clCreateCommandQueue of 1.2. */
#define CL_TARGET_OPENCL_VERSION 200
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <opennuma/opennuma.h>

#include <stdint.h>

static inline cl_int bind_block(cl_kernel kernel, cl_uint index, void *block, onuma_device *device) {
    onuma_view view = ONUMA_VIEW_INIT;
    if (onuma_view_get(block, device, ONUMA_API_OPENCL, &view) != ONUMA_OK) return CL_INVALID_MEM_OBJECT;

    if (view.via == ONUMA_VIA_HANDLE) {
        cl_mem memory = (cl_mem)(uintptr_t)view.handle;
        return clSetKernelArg(kernel, index, sizeof memory, &memory);
    }
    if (view.via == ONUMA_VIA_SVM) return clSetKernelArgSVMPointer(kernel, index, (void *)(uintptr_t)view.pointer);

    onuma_device_info info = ONUMA_DEVICE_INFO_INIT;
    cl_platform_id platform;
    if (onuma_device_get_info(device, &info) != ONUMA_OK) return CL_INVALID_DEVICE;
    clGetDeviceInfo((cl_device_id)(uintptr_t)info.native_device, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL);
    clSetKernelArgMemPointerINTEL_fn set_pointer =
        (clSetKernelArgMemPointerINTEL_fn)clGetExtensionFunctionAddressForPlatform(platform,
                                                                                   "clSetKernelArgMemPointerINTEL");
    return set_pointer ? set_pointer(kernel, index, (void *)(uintptr_t)view.pointer) : CL_INVALID_OPERATION;
}

#endif
