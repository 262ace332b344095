/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA's codes, what they mean here, and what to do about them: one table. Numbers and names are those of CUresult in
 * NVIDIA's reference. A kernel that went wrong spoils its context for good; every later call then gives the same code, so
 * these count as a lost device.
 */
#include "backend/cuda/cuda.h"

#include <stdarg.h>
#include <stdio.h>

#define DEFECT ONUMA_ERROR_INTERNAL, "a defect in OpenNUMA or in the driver: please report it"
#define ARGUMENT ONUMA_ERROR_INVALID_ARGUMENT, "the driver does not know this handle, or it is of another context"
#define MEMORY ONUMA_ERROR_OUT_OF_MEMORY, "free memory, or ask for less at once"
#define SPOILT ONUMA_ERROR_DEVICE_LOST, "a kernel went wrong and its context is lost; start the program again"
#define GONE ONUMA_ERROR_DEVICE_LOST, "the device is gone; look at nvidia-smi and the kernel's log"
#define ENDED ONUMA_ERROR_DEVICE_LOST, "the driver has shut down, as it does when a process ends"
#define UNABLE ONUMA_ERROR_NOT_SUPPORTED, "this device or driver cannot do that"
#define CAPTURE ONUMA_ERROR_BUSY, "a graph is being captured; call again when the capture has ended"

static const struct {
    onuma__cu_result code;
    const char *name;
    onuma_result result;
    const char *remedy;
} codes[] = {
    {1, "INVALID_VALUE", DEFECT},
    {ONUMA__CU_OUT_OF_MEMORY, "OUT_OF_MEMORY", MEMORY},
    {3, "NOT_INITIALIZED", ENDED},
    {4, "DEINITIALIZED", ENDED},
    {ONUMA__CU_STUB_LIBRARY, "STUB_LIBRARY", ONUMA_ERROR_NOT_FOUND,
     "this libcuda is the toolkit's stand-in for linking; install NVIDIA's driver"},
    {46, "DEVICE_UNAVAILABLE", GONE},
    {ONUMA__CU_NO_DEVICE, "NO_DEVICE", ONUMA_ERROR_NOT_FOUND,
     "the driver finds no GPU (nvidia-smi tells more; CUDA_VISIBLE_DEVICES may hide them)"},
    {101, "INVALID_DEVICE", DEFECT},
    {201, "INVALID_CONTEXT", ARGUMENT},
    {214, "ECC_UNCORRECTABLE", GONE},
    {220, "NVLINK_UNCORRECTABLE", GONE},
    {226, "CONTAINED", GONE},
    {304, "OPERATING_SYSTEM", MEMORY},
    {400, "INVALID_HANDLE", ARGUMENT},
    {700, "ILLEGAL_ADDRESS", SPOILT},
    {702, "LAUNCH_TIMEOUT", SPOILT},
    {709, "CONTEXT_IS_DESTROYED", GONE},
    {710, "ASSERT", SPOILT},
    {712, "HOST_MEMORY_ALREADY_REGISTERED", ONUMA_ERROR_CONFLICT,
     "the memory, or part of it, is pinned already: import it once, and as a whole"},
    {714, "HARDWARE_STACK_ERROR", SPOILT},
    {715, "ILLEGAL_INSTRUCTION", SPOILT},
    {716, "MISALIGNED_ADDRESS", SPOILT},
    {717, "INVALID_ADDRESS_SPACE", SPOILT},
    {718, "INVALID_PC", SPOILT},
    {719, "LAUNCH_FAILED", SPOILT},
    {721, "TENSOR_MEMORY_LEAK", SPOILT},
    {800, "NOT_PERMITTED", UNABLE},
    {801, "NOT_SUPPORTED", UNABLE},
    {802, "SYSTEM_NOT_READY", ONUMA_ERROR_INTERNAL, "the system's fabric manager or driver is not ready; start it"},
    {803, "SYSTEM_DRIVER_MISMATCH", ONUMA_ERROR_INTERNAL,
     "kernel module and library of the driver are of different versions; restart the machine"},
    {804, "COMPAT_NOT_SUPPORTED_ON_DEVICE", ONUMA_ERROR_INTERNAL,
     "a forward-compatible libcuda is found that this GPU does not take; remove cuda-compat"},
    {900, "STREAM_CAPTURE_UNSUPPORTED", CAPTURE},
    {901, "STREAM_CAPTURE_INVALIDATED", CAPTURE},
    {905, "STREAM_CAPTURE_ISOLATION", CAPTURE},
    {906, "STREAM_CAPTURE_IMPLICIT", CAPTURE},
    {907, "CAPTURED_EVENT", CAPTURE},
    {908, "STREAM_CAPTURE_WRONG_THREAD", CAPTURE},
};

bool onuma__cu_is_capture(onuma__cu_result code) {
    return code >= 900 && code <= 908;
}

onuma_result onuma__cu_fail(const onuma_backend_host *host, onuma__cu_result code, const char *what, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, what);
    vsnprintf(text, sizeof text, what, arguments);
    va_end(arguments);
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i].code == code)
            return host->fail(codes[i].result, "%s: CUDA_ERROR_%s (%d); %s", text, codes[i].name, code,
                              codes[i].remedy);
    return host->fail(ONUMA_ERROR_INTERNAL, "%s: CUDA error %d", text, code);
}
