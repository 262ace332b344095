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

/* One driver, context and device. */
typedef struct onuma__device {
    const onuma_backend *ops; /* complete: gaps are filled */
    onuma_backend_instance *instance;
    size_t index; /* in the driver's order */
    char id[32];
    const onuma__log *log;       /* the runtime's */
    const onuma__config *config; /* the runtime's */
    onuma_device *handle;        /* what the user holds; set by the api layer */
    uint64_t generation;         /* of the process that made it (onuma__os_process_generation); set with the handle */
    bool adopted;                /* the caller releases it; counted */
    onuma__os_lock lock;         /* guards opening */
    _Atomic(onuma_backend_device *) backend; /* NULL until opened; then constant. Acquire/release with `info` */
    onuma_backend_device_info info;          /* constant once opened */
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
    size_t backend_count;
    onuma__device **devices; /* owned */
    size_t device_count;
    const onuma__log *log;
    const onuma__config *config;
} onuma__registry;

/* Open every driver there is. Fails only when memory is out: the host backend always works. */
onuma_result onuma__registry_open(const onuma__config *config, const onuma__log *log, onuma__registry *out);
void onuma__registry_close(onuma__registry *registry); /* devices that are open are closed */

/* Make sure the device has its context. Cheap once it has. */
onuma_result onuma__device_open(onuma__device *device);

/* Check a table's abi, size and groups, and complete it. INTERNAL with the missing function's name. */
onuma_result onuma__backend_complete(const onuma_backend *from, onuma_backend *to);

/* A driver's answer on its way up: marks the device lost on DEVICE_LOST. Returns r. */
onuma_result onuma__device_note(onuma__device *device, onuma_result r);

extern const onuma_backend onuma__backend_host;
extern const onuma_backend onuma__backend_opencl;

#endif
