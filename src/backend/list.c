/* SPDX-License-Identifier: Apache-2.0 */
/* The backends of this library, in the order in which they are tried. Apart from the registry, so that a build of the
 * tests can link another list. A new backend is one more line. */
#include "backend/device.h"

const onuma_backend *const onuma__backends[] = {
    &onuma__backend_cuda,
    &onuma__backend_opencl,
    &onuma__backend_level_zero,
    &onuma__backend_host,
};
const size_t onuma__backend_total = sizeof onuma__backends / sizeof onuma__backends[0];
