/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the CUDA backend share.
 *
 * A device is its primary context, which all of a process's CUDA code that does not ask for another has too: PyTorch's
 * tensors, a program's streams and our blocks see each other. It is retained once. The threads that call may have any
 * context current, or none (autograd's workers, say), and may be capturing a graph: so each call into the driver goes
 * between onuma__cu_enter and onuma__cu_leave (scope.c).
 */
#ifndef ONUMA_BACKEND_CUDA_CUDA_H
#define ONUMA_BACKEND_CUDA_CUDA_H

#include "backend/cuda/driver.h"

#include "base/result.h"
#include "opennuma/backend.h"
#include "os/os.h"

#include <stdatomic.h>

/* How CPU and device share memory, in the order in which they are tried: the words of cuda.share after "auto". */
typedef enum onuma__cu_way {
    ONUMA__CU_NONE,
    ONUMA__CU_VMM,     /* pages of the host mapped into a range of addresses: committed and given back one by one */
    ONUMA__CU_PINNED,  /* cuMemHostAlloc, mapped: segments */
    ONUMA__CU_MANAGED, /* cuMemAllocManaged: segments that migrate. Never taken by itself */
    ONUMA__CU_WAYS
} onuma__cu_way;

extern const char *const onuma__cu_way_names[ONUMA__CU_WAYS];

/* What is known of a device without its context. Constant once filled. */
typedef struct onuma__cu_facts {
    onuma__cu_device device;
    uint32_t ways;       /* bit (1u << way) for each that the driver says it has and cuda.share allows */
    onuma__cu_way way;   /* the one in use */
    bool ranges;         /* virtual memory management: device memory in ranges */
    bool registers;      /* memory of the program can be pinned */
    bool read_only_pins; /* even if it may not be written */
    int numa_node;       /* of the host, the closest */
    size_t granule;      /* of mapping into ranges */
    onuma_backend_device_info info;
} onuma__cu_facts;

struct onuma_backend_instance {
    const onuma_backend_host *host;
    onuma__cu cu;
    int version; /* of the driver: 13000 is CUDA 13.0 */
    onuma__cu_facts *devices;
    size_t device_count;
};

struct onuma_backend_device {
    const onuma_backend_host *host;
    const onuma__cu *cu; /* the instance's */
    onuma__cu_facts facts;
    onuma__cu_context context; /* the primary one, retained */
    _Atomic size_t managed;    /* bytes of managed memory given out or about to be; relaxed: a sum */
    _Atomic size_t
        segments; /* alive: they die with the context. Closing looks here: acquire, with release where one goes */
};

/* ---- loader.c. NOT_FOUND if there is no driver, INTERNAL for one that does not load or lacks a function. */
onuma_result onuma__cu_load(const onuma_backend_host *host, onuma__cu *out);

/* ---- errors.c */
/* Record "<what>: CUDA_ERROR_... (code); <remedy>" and return the result that goes with the code. */
onuma_result onuma__cu_fail(const onuma_backend_host *host, onuma__cu_result code, const char *what, ...)
    ONUMA__PRINTF(3, 4);
/* Whether the code only says that a graph is being captured. */
bool onuma__cu_is_capture(onuma__cu_result code);

#define ONUMA__CU_SUCCESS 0
#define ONUMA__CU_OUT_OF_MEMORY 2
#define ONUMA__CU_STUB_LIBRARY 34
#define ONUMA__CU_NO_DEVICE 100
#define ONUMA__CU_NOT_READY 600

/* ---- scope.c */
typedef struct onuma__cu_scope {
    int mode; /* of capture, the thread's own */
    bool relaxed, entered;
} onuma__cu_scope;

/* The device's context is current and no capture of this thread is harmed until leave. */
onuma_result onuma__cu_enter(onuma_backend_device *device, onuma__cu_scope *scope);
void onuma__cu_leave(onuma_backend_device *device, onuma__cu_scope *scope);

/* ---- facts.c. Fails for devices that do not answer. */
onuma_result onuma__cu_facts_query(const onuma_backend_instance *instance, int ordinal, onuma__cu_facts *out);
/* Let everything that depends on the way to share follow from it. */
void onuma__cu_facts_decide(onuma__cu_facts *facts, onuma__cu_way way, onuma_proof proof);
/* The kind's place for virtual memory: on the device, or on the host's nearest node. */
onuma__cu_properties onuma__cu_place(const onuma__cu_facts *facts, onuma_kind kind);

/* ---- trial.c: settle which way to share works, by looking. With the context current. */
onuma_result onuma__cu_trial(onuma_backend_device *device);

/* ---- the functions of the table: device.c, range.c, segment.c, queue.c */
onuma_result onuma__cu_device_open(onuma_backend_instance *instance, size_t i, onuma_backend_device **out);
void onuma__cu_device_close(onuma_backend_device *device);
onuma_result onuma__cu_device_info(onuma_backend_device *device, onuma_backend_device_info *out);
onuma_result onuma__cu_memory_free(onuma_backend_device *device, uint64_t *bytes);

onuma_result onuma__cu_range_reserve(onuma_backend_device *device, onuma_kind kind, size_t size, onuma_segment *out);
onuma_result onuma__cu_range_commit(onuma_backend_device *device, onuma_segment *segment, size_t offset, size_t size);
onuma_result onuma__cu_range_decommit(onuma_backend_device *device, onuma_segment *segment, size_t offset, size_t size);
void onuma__cu_range_destroy(onuma_backend_device *device, onuma_segment *segment);

onuma_result onuma__cu_segment_create(onuma_backend_device *device, onuma_kind kind, size_t size, onuma_segment *out);
onuma_result onuma__cu_import_host(onuma_backend_device *device, void *host, size_t size, bool read_only,
                                   onuma_segment *out);
void onuma__cu_segment_destroy(onuma_backend_device *device, onuma_segment *segment);

onuma_result onuma__cu_queue_open(onuma_backend_device *device, uint64_t native, onuma_queue_order *order,
                                  onuma_backend_queue **out);
void onuma__cu_queue_close(onuma_backend_queue *queue);
onuma_result onuma__cu_marker_record(onuma_backend_queue *queue, onuma_backend_marker **out);
onuma_result onuma__cu_marker_wrap(onuma_backend_queue *queue, const onuma_native_event *event,
                                   onuma_backend_marker **out);
onuma_result onuma__cu_marker_poll(onuma_backend_marker *marker, bool *passed);
void onuma__cu_marker_destroy(onuma_backend_marker *marker);
onuma_result onuma__cu_queue_wait_marker(onuma_backend_queue *queue, onuma_backend_marker *marker);

#endif
