/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the OpenCL backend share. */
#ifndef ONUMA_BACKEND_OPENCL_OPENCL_H
#define ONUMA_BACKEND_OPENCL_OPENCL_H

#include "backend/opencl/loader.h"

#include <stdatomic.h>

/*
 * How CPU and device share memory, best first, in the order of the words of opencl.share after "auto". Each is
 * enough by itself; which one a device has is all that differs above this backend.
 */
typedef enum onuma__cl_way {
    ONUMA__CL_NONE,       /* a forced way that this device has not */
    ONUMA__CL_USM,        /* Intel's unified shared memory: pointers */
    ONUMA__CL_SVM_FINE,   /* shared virtual memory: pointers */
    ONUMA__CL_SVM_COARSE, /* the same, with map and unmap around accesses of the CPU */
    ONUMA__CL_IMPORT,     /* pages of the system under a cl_mem: handles, with map and unmap; every device has it */
    ONUMA__CL_WAYS
} onuma__cl_way;

extern const char *const onuma__cl_way_names[ONUMA__CL_WAYS];

/* What is known of a device without a context. Constant once filled. */
typedef struct onuma__cl_facts {
    cl_platform_id platform;
    cl_device_id device;
    onuma__cl_way way;
    bool unified;        /* shares the CPU's memory */
    bool shared_is_host; /* USM: kind shared is better served by host allocations (facts.c says when) */
    bool host_usm;       /* USM: the device reaches host allocations */
    clSharedMemAllocINTEL_fn shared_alloc; /* these three only with USM */
    clHostMemAllocINTEL_fn host_alloc;
    clMemFreeINTEL_fn usm_free;
    onuma_backend_device_info info;
} onuma__cl_facts;

struct onuma_backend_instance {
    const onuma_backend_host *host;
    onuma__cl cl;
    cl_uint platform_count;
    onuma__cl_facts *devices; /* in the drivers' order, platform by platform */
    size_t device_count;
};

struct onuma_backend_device {
    onuma_backend_instance *instance;
    const onuma_backend_host *host;
    const onuma__cl *cl; /* the instance's */
    onuma__cl_facts facts;
    cl_context context;         /* one reference is ours */
    cl_command_queue map_queue; /* in order; carries nothing but map and unmap */
    _Atomic size_t pointers;    /* SVM and USM segments alive: they keep no reference to the context, so closing looks
                                   here. Relaxed: closing happens after all else */
};

/* Ask a device everything. Fails for devices that do not answer or are older than OpenCL 1.2. */
onuma_result onuma__cl_facts_query(const onuma_backend_instance *instance, cl_platform_id platform, cl_device_id device,
                                   onuma__cl_facts *out);

/* ---- the functions of the table, by file */

/* device.c */
onuma_result onuma__cl_device_open(onuma_backend_instance *instance, size_t i, onuma_backend_device **out);
void onuma__cl_device_close(onuma_backend_device *device);
onuma_result onuma__cl_device_info(onuma_backend_device *device, onuma_backend_device_info *out);
onuma_result onuma__cl_memory_free(onuma_backend_device *device, uint64_t *bytes);
onuma_result onuma__cl_device_adopt(onuma_backend_instance *instance, const onuma_native_device *native,
                                    onuma_backend_device **out);
onuma_result onuma__cl_device_from_queue(onuma_backend_instance *instance, uint64_t native_queue,
                                         onuma_backend_device **out);

/* segment.c */
onuma_result onuma__cl_segment_create(onuma_backend_device *device, onuma_kind kind, size_t size, onuma_segment *out);
onuma_result onuma__cl_import_host(onuma_backend_device *device, void *host, size_t size, bool read_only,
                                   onuma_segment *out);
void onuma__cl_segment_destroy(onuma_backend_device *device, onuma_segment *segment);

/* view.c */
onuma_result onuma__cl_view_create(onuma_backend_device *device, const onuma_segment *segment, size_t offset,
                                   size_t size, uint64_t *handle);
void onuma__cl_view_retain(onuma_backend_device *device, uint64_t handle);
void onuma__cl_view_release(onuma_backend_device *device, uint64_t handle);
onuma_result onuma__cl_host_map(onuma_backend_device *device, const onuma_segment *segment, uint64_t view,
                                size_t offset, size_t size, onuma_access mode);
onuma_result onuma__cl_host_unmap(onuma_backend_device *device, const onuma_segment *segment, uint64_t view,
                                  size_t offset, size_t size, onuma_access mode);

/* queue.c */
onuma_result onuma__cl_queue_open(onuma_backend_device *device, uint64_t native, onuma_queue_order *order,
                                  onuma_backend_queue **out);
void onuma__cl_queue_close(onuma_backend_queue *queue);
onuma_result onuma__cl_marker_record(onuma_backend_queue *queue, onuma_backend_marker **out);
onuma_result onuma__cl_marker_wrap(onuma_backend_queue *queue, const onuma_native_event *event,
                                   onuma_backend_marker **out);
onuma_result onuma__cl_marker_poll(onuma_backend_marker *marker, bool *passed);
void onuma__cl_marker_destroy(onuma_backend_marker *marker);
onuma_result onuma__cl_queue_wait_marker(onuma_backend_queue *queue, onuma_backend_marker *marker);

#endif
