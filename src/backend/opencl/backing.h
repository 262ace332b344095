/* SPDX-License-Identifier: Apache-2.0 */
/* The pages under a cl_mem, and when they may go. */
#ifndef ONUMA_BACKEND_OPENCL_BACKING_H
#define ONUMA_BACKEND_OPENCL_BACKING_H

#include "backend/opencl/opencl.h"

typedef struct onuma__cl_backing onuma__cl_backing;

/* Takes over the pages if they are `ours`, also when it fails. */
onuma_result onuma__cl_backing_create(const onuma_backend_device *device, void *base, size_t size, bool ours,
                                      onuma__cl_backing **out);
/* No cl_mem came to lie over it. */
void onuma__cl_backing_discard(onuma__cl_backing *backing);
/* `memory` lies over it from now on. */
onuma_result onuma__cl_backing_attach(const onuma_backend_device *device, onuma__cl_backing *backing, cl_mem memory);
/* Releases the cl_mem; the pages go as soon as the driver is done with them. */
void onuma__cl_backing_release(onuma_backend_device *device, onuma__cl_backing *backing);
/* Look again at cl_mems of drivers that do not say when they are done; before the device closes at the latest. */
void onuma__cl_backing_sweep(onuma_backend_device *device);

#endif
