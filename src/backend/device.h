/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's side of backends: the registry with what was found, and the
 * device object that all upper layers hold.
 */
#ifndef ONUMA_BACKEND_DEVICE_H
#define ONUMA_BACKEND_DEVICE_H

#include "base/config.h"
#include "base/log.h"
#include "opennuma/backend.h"
#include "os/os.h"

#include <stdatomic.h>

/* One driver, context and device. */
typedef struct onuma__device {
    const onuma_backend *ops; /* complete: gaps are filled */
    onuma_backend_instance *instance;
    size_t index; /* in the driver's order */
    char id[32];
    const onuma__log *log;                   /* the runtime's */
    const onuma__config *config;             /* the runtime's */
    struct onuma__budget *budget;            /* src/policy's: the runtime's; NULL in tests of single layers */
    _Atomic(void *) handle;                  /* the onuma_device that the user holds; set by the api layer */
    uint64_t generation;                     /* of the process that made it (onuma__os_process_generation) */
    bool adopted;                            /* the caller releases it; counted */
    uint32_t references;                     /* of an adopted one; the registry's adopt_lock */
    struct onuma__device *next;              /* in the registry's list of adopted ones; adopt_lock */
    onuma__os_lock lock;                     /* guards opening */
    _Atomic(onuma_backend_device *) backend; /* NULL until opened; then constant. Acquire/release with `info` */
    onuma_backend_device_info info;          /* constant once opened; before, read with onuma__device_info */
    _Atomic uint32_t users;                  /* pools, queues and imports on it: relaxed counter, read when releasing */
    _Atomic bool lost;                       /* set by the first DEVICE_LOST, never cleared */
} onuma__device;

/* What became of one backend in one runtime. */
typedef struct onuma__backend_state {
    const onuma_backend *ops; /* complete */
    onuma_backend_host host;
    onuma_backend_instance *instance; /* NULL unless status is OK */
    onuma_backend_status status;
    char detail[256];
} onuma__backend_state;

/* The backends of one runtime and the devices they found, best first. */
typedef struct onuma__registry {
    onuma__backend_state *backends;
    onuma_backend *tables; /* the completed ops of each */
    size_t backend_count;
    onuma__device **devices; /* owned */
    size_t device_count;
    const onuma__log *log;
    const onuma__config *config;
    struct onuma__budget *budget;           /* of all devices; may be set once the registry is open */
    struct onuma__backend_context *context; /* what stands behind the backends' onuma_backend_host */
    onuma__os_lock adopt_lock;              /* guards the list below and the references of what is on it */
    onuma__device *adopted;                 /* newest first */
    uint32_t adopted_count;                 /* ever; numbers their ids; adopt_lock */
} onuma__registry;

/* Open every driver there is. Fails only when memory is out: the host backend always works. */
onuma_result onuma__registry_open(const onuma__config *config, const onuma__log *log, onuma__registry *out);
void onuma__registry_set_budget(onuma__registry *registry, struct onuma__budget *budget);
void onuma__registry_close(onuma__registry *registry); /* devices that are open are closed */

/*
 * Devices in contexts of the program's own. The same native context and device give the same object, with one more
 * reference; a context that the library made itself gives the device that it was made for. *out has `handle` NULL if
 * it is new. NOT_SUPPORTED where the backend cannot adopt, NOT_FOUND where it
 * has no driver here.
 */
onuma_result onuma__registry_adopt(onuma__registry *registry, onuma_api api, const onuma_native_device *native,
                                   onuma__device **out);
onuma_result onuma__registry_from_queue(onuma__registry *registry, onuma_api api, uint64_t native_queue,
                                        onuma__device **out);
/*
 * Give one reference back. *last: it was the last, and the object is gone. BUSY, nothing changed, if it is the last
 * and `users` is not 0. Devices that were not adopted are left alone: OK, *last false.
 */
onuma_result onuma__registry_release(onuma__registry *registry, onuma__device *device, bool *last);

/* A copy of device->info, whole even while another thread opens the device. */
void onuma__device_info(onuma__device *device, onuma_backend_device_info *out);

/* Make sure the device has its context. Cheap once it has. */
onuma_result onuma__device_open(onuma__device *device);

/* Check a table's abi, size and groups, and complete it. INTERNAL with the missing function's name. */
onuma_result onuma__backend_complete(const onuma_backend *from, onuma_backend *to);

/* Whether a device's abilities have their functions in a complete table. INTERNAL names what is missing. */
onuma_result onuma__backend_check(const onuma_backend *complete, onuma_backend_device_info *info);

/* A driver's answer on its way up: marks the device lost on DEVICE_LOST. Returns r. */
onuma_result onuma__device_note(onuma__device *device, onuma_result r);

/* list.c: what this library was built with. */
extern const onuma_backend *const onuma__backends[];
extern const size_t onuma__backend_total;
extern const onuma_backend onuma__backend_host;
extern const onuma_backend onuma__backend_cuda;
extern const onuma_backend onuma__backend_opencl;
extern const onuma_backend onuma__backend_level_zero;

#endif
