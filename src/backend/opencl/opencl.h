/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the OpenCL backend share. */
#ifndef ONUMA_BACKEND_OPENCL_OPENCL_H
#define ONUMA_BACKEND_OPENCL_OPENCL_H

#include "backend/opencl/loader.h"

#include "os/os.h"

#include <stdatomic.h>

/*
 * How CPU and device share memory, best first, in the order of the words of opencl.share after "auto". Each is
 * enough by itself; which one a device has is all that differs above this backend.
 */
typedef enum onuma__cl_way {
    ONUMA__CL_NONE,       /* no way: none works, or the one that is forced does not */
    ONUMA__CL_USM,        /* Intel's unified shared memory: pointers */
    ONUMA__CL_SVM_FINE,   /* shared virtual memory: pointers */
    ONUMA__CL_SVM_COARSE, /* the same, with map and unmap around accesses of the CPU */
    ONUMA__CL_IMPORT,     /* pages of the system under a cl_mem: handles, with map and unmap; every device has it */
    ONUMA__CL_WAYS
} onuma__cl_way;

extern const char *const onuma__cl_way_names[ONUMA__CL_WAYS];

/* How a device shares memory with the CPU, and how that is known. */
typedef struct onuma__cl_verdict {
    onuma_proof proof;
    onuma__cl_way way;
    bool mapped;           /* every access of the CPU goes between map and unmap, whatever the way promises */
    bool imports;          /* the program's own memory can be shared */
    bool import_zero_copy; /* and it was seen that no copy lies between */
    uint64_t max_segment; /* the most that the driver gave at once, where it refused what it states it allows; else 0 */
    uint32_t notes;       /* of ONUMA_SHARING_* */
    char detail[256];
} onuma__cl_verdict;

/* What is known of a device without a context. Constant once filled. */
typedef struct onuma__cl_facts {
    cl_platform_id platform;
    cl_device_id device;
    uint32_t offered;     /* bit (1u << way) for each way that the driver says it has */
    uint32_t allowed;     /* those of them that opencl.share allows */
    bool compiles;        /* it takes kernels as source */
    bool part;            /* of a device that the program divided */
    uint64_t stated_most; /* largest single allocation by the driver's word */
    onuma__cl_verdict verdict;
    bool unified;        /* shares the CPU's memory */
    bool shared_is_host; /* USM: kind shared is better served by host allocations (facts.c says when) */
    bool host_usm;       /* USM: the device reaches host allocations */
    clSharedMemAllocINTEL_fn shared_alloc; /* these four only with USM */
    clHostMemAllocINTEL_fn host_alloc;
    clMemFreeINTEL_fn usm_free;
    clSetKernelArgMemPointerINTEL_fn set_pointer;
    onuma_backend_device_info info;
} onuma__cl_facts;

struct onuma_backend_instance {
    const onuma_backend_host *host;
    onuma__cl cl;
    cl_uint platform_count;
    onuma__cl_facts *devices; /* in the drivers' order, platform by platform */
    size_t device_count;
    onuma__os_lock verdict_lock;             /* guards the list below, not what is in its entries */
    struct onuma__cl_verdict_slot *verdicts; /* verdict.c: one for each device and kind of context that was opened */
};

struct onuma_backend_device {
    onuma_backend_instance *instance;
    const onuma_backend_host *host;
    const onuma__cl *cl; /* the instance's */
    onuma__cl_facts facts;
    cl_context context;         /* one reference is ours */
    cl_command_queue map_queue; /* in order; carries nothing but map and unmap */
    uint64_t deadline;          /* of all the probe's waiting, by onuma__os_now; 0: no probe is under way */
    bool stuck;                 /* something of the probe's never ended: what it may use is never given back */
    _Atomic size_t pointers;    /* SVM and USM segments alive: they keep no reference to the context, so closing looks
                                   here: acquire, with release where one goes */
    struct onuma__cl_backing *_Atomic lingering; /* a stack: pushed one by one, taken whole (backing.c) */
};

/* Ask a device everything. Fails for devices that do not answer or are older than OpenCL 1.2. The verdict is the
 * driver's word. */
onuma_result onuma__cl_facts_query(const onuma_backend_instance *instance, cl_platform_id platform, cl_device_id device,
                                   onuma__cl_facts *out);

/* Whether the setting opencl.probe has this value. */
bool onuma__cl_probe_is(const onuma_backend_instance *instance, const char *value);

/* Let everything that depends on the way to share follow from `verdict`. */
void onuma__cl_facts_decide(onuma__cl_facts *facts, const onuma__cl_verdict *verdict);

/* ---- the functions of the table, by file */

/* handle.c. INVALID_ARGUMENT if this can be no handle. */
onuma_result onuma__cl_check_handle(const onuma_backend_instance *instance, const void *handle, const char *type);

/* device.c */
/* Whether `said`, which a driver calls the device of something, means this one. */
bool onuma__cl_is_device(const onuma__cl *cl, cl_device_id device, cl_device_id said);
onuma_result onuma__cl_device_open(onuma_backend_instance *instance, size_t i, onuma_backend_device **out);
void onuma__cl_device_close(onuma_backend_device *device);
onuma_result onuma__cl_device_info(onuma_backend_device *device, onuma_backend_device_info *out);
onuma_result onuma__cl_memory_free(onuma_backend_device *device, uint64_t *bytes);
onuma_result onuma__cl_device_adopt(onuma_backend_instance *instance, const onuma_native_device *native,
                                    onuma_backend_device **out);
onuma_result onuma__cl_device_from_queue(onuma_backend_instance *instance, uint64_t native_queue,
                                         onuma_backend_device **out);

/* await.c. Whether `event` of this queue, which is released, ends well before the device's deadline. TIMEOUT if it does
 * not end, or if the driver does not tell: then the device is `stuck`, and the event stays. */
onuma_result onuma__cl_await(onuma_backend_device *device, cl_command_queue queue, cl_event event, const char *what);

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
