/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the Level Zero backend share. */
#ifndef ONUMA_BACKEND_LEVEL_ZERO_LEVEL_ZERO_H
#define ONUMA_BACKEND_LEVEL_ZERO_LEVEL_ZERO_H

#include "backend/level_zero/loader.h"

#include "os/os.h"

#include <stdatomic.h>

/* What is known of a device without a context. Constant once filled. */
typedef struct onuma__ze_facts {
    ze_driver_handle_t driver;
    ze_device_handle_t device;
    bool integrated;                  /* it shares the CPU's memory */
    bool shared_is_host;              /* kind shared is better served by host allocations (facts.c says when) */
    bool relaxed;                     /* allocations may be larger than stated_most, if they ask for it */
    uint64_t stated_most;             /* largest single allocation by the driver's word */
    zes_device_handle_t sysman;       /* tells of free memory; NULL: nobody does */
    onuma__ze_import_function import; /* both or neither */
    onuma__ze_unimport_function unimport;
    onuma_backend_device_info info;
} onuma__ze_facts;

struct onuma_backend_instance {
    const onuma_backend_host *host;
    onuma__ze ze;
    uint32_t driver_count;
    ze_api_version_t version;    /* the oldest of the drivers' */
    ze_ipc_property_flags_t ipc; /* what all drivers can share between processes */
    onuma__ze_facts *devices;    /* in the drivers' order, driver by driver */
    size_t device_count;
};

typedef struct onuma__ze_signal onuma__ze_signal;

struct onuma_backend_device {
    onuma_backend_instance *instance;
    const onuma_backend_host *host;
    const onuma__ze *ze; /* the instance's */
    onuma__ze_facts facts;
    ze_context_handle_t context;
    bool adopted;            /* the context is the program's */
    _Atomic size_t segments; /* alive: they keep no reference to the context, so closing looks here: acquire, with
                                 release where one goes */
    struct onuma__ze_signals *signals;
};

/* Ask a device everything. */
onuma_result onuma__ze_facts_query(const onuma_backend_instance *instance, ze_driver_handle_t driver,
                                   ze_device_handle_t device, onuma__ze_facts *out);

/* sysman.c */
/* The handle by which the device's memory can be asked for, or NULL. */
zes_device_handle_t onuma__ze_sysman_find(const onuma_backend_instance *instance, ze_device_handle_t device,
                                          const ze_device_uuid_t *uuid);
/* Bytes free in the device's own memory; 0: nobody tells. */
uint64_t onuma__ze_sysman_free(const onuma__ze *ze, zes_device_handle_t device);

/* handle.c. INVALID_ARGUMENT if this can be no handle. */
onuma_result onuma__ze_check_handle(const onuma_backend_host *host, const void *handle, const char *type);

/* device.c */
onuma_result onuma__ze_device_open(onuma_backend_instance *instance, size_t i, onuma_backend_device **out);
void onuma__ze_device_close(onuma_backend_device *device);
onuma_result onuma__ze_device_info(onuma_backend_device *device, onuma_backend_device_info *out);
onuma_result onuma__ze_memory_free(onuma_backend_device *device, uint64_t *bytes);
onuma_result onuma__ze_device_adopt(onuma_backend_instance *instance, const onuma_native_device *native,
                                    onuma_backend_device **out);
onuma_result onuma__ze_device_from_queue(onuma_backend_instance *instance, uint64_t native_queue,
                                         onuma_backend_device **out);

/* segment.c */
onuma_result onuma__ze_segment_create(onuma_backend_device *device, onuma_kind kind, size_t size, onuma_segment *out);
onuma_result onuma__ze_import_host(onuma_backend_device *device, void *host, size_t size, bool read_only,
                                   onuma_segment *out);
void onuma__ze_segment_destroy(onuma_backend_device *device, onuma_segment *segment);

/* signal.c: events of our own, used again and again. */
struct onuma__ze_signal {
    ze_event_handle_t event;
    ze_command_list_handle_t list; /* for command queues; NULL before the first */
    uint32_t ordinal;              /* of the group of queues that the list is for */
    onuma__ze_signal *awaited;     /* what the work that sets this one waits for, one reference; else NULL */
    _Atomic uint32_t references;   /* acquire-release: who drops the last one has seen all that the others did */
    onuma__ze_signal *next;        /* in the list it is on; under its lock */
};
onuma_result onuma__ze_signals_create(onuma_backend_device *device);
/* false: some may still be set by the device, so all stay, and the context must too. */
bool onuma__ze_signals_destroy(onuma_backend_device *device);
/* One that is not set, with one reference. */
onuma_result onuma__ze_signal_take(onuma_backend_device *device, onuma__ze_signal **out);
/* One that was taken, and that no work will set. */
void onuma__ze_signal_return(onuma_backend_device *device, onuma__ze_signal *signal);
/* Gives one reference back. With the last it is used again as soon as it is set. */
void onuma__ze_signal_drop(onuma_backend_device *device, onuma__ze_signal *signal);

/* queue.c */
onuma_result onuma__ze_queue_open(onuma_backend_device *device, uint64_t native, onuma_queue_order *order,
                                  onuma_backend_queue **out);
void onuma__ze_queue_close(onuma_backend_queue *queue);
onuma_result onuma__ze_marker_record(onuma_backend_queue *queue, onuma_backend_marker **out);
onuma_result onuma__ze_marker_wrap(onuma_backend_queue *queue, const onuma_native_event *event,
                                   onuma_backend_marker **out);
onuma_result onuma__ze_marker_poll(onuma_backend_marker *marker, bool *passed);
void onuma__ze_marker_destroy(onuma_backend_marker *marker);
onuma_result onuma__ze_queue_wait_marker(onuma_backend_queue *queue, onuma_backend_marker *marker);

#endif
