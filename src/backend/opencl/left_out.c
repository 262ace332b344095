/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for the OpenCL backend where the library is built without OpenCL's headers. */
#include "backend/device.h"

static onuma_result left_out(const onuma_backend_host *host, onuma_backend_instance **out) {
    (void)out;
    return host->fail(ONUMA_ERROR_NOT_FOUND, "this library was built without OpenCL; install the OpenCL headers "
                                             "(opencl-c-headers) and build it again");
}

const onuma_backend onuma__backend_opencl = {.struct_size = sizeof(onuma_backend),
                                             .abi = ONUMA_BACKEND_ABI,
                                             .api = ONUMA_API_OPENCL,
                                             .name = "opencl",
                                             .open = left_out};
