/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for the Level Zero backend where the library is built without Level Zero's headers. */
#include "backend/device.h"

static onuma_result left_out(const onuma_backend_host *host, onuma_backend_instance **out) {
    (void)out;
    return host->fail(ONUMA_ERROR_NOT_FOUND, "this library was built without Level Zero; install its headers "
                                             "(libze-dev) and build it again");
}

const onuma_backend onuma__backend_level_zero = {.struct_size = sizeof(onuma_backend),
                                                 .abi = ONUMA_BACKEND_ABI,
                                                 .api = ONUMA_API_LEVEL_ZERO,
                                                 .name = "level_zero",
                                                 .open = left_out};
