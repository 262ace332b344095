/* SPDX-License-Identifier: Apache-2.0 */
/**
 * For writers of backends: what one driver API must tell and do.
 *
 * A backend is a constant onuma_backend, which src/backend/list.c
 * lists. Three levels of object, each opaque to the rest of the library:
 *
 *     instance   the driver, loaded: enumerates devices, creates no context
 *     device     one device with a context, opened at its first use
 *     segment, view, queue, marker   what lives in a device
 *
 * Rules for every function:
 * - It may be called from any thread, several at once, unless said otherwise,
 *   and never with a lock of the library held, so it may block and may call back.
 * - Errors: fill the detail with host->fail, driver's own code included, and
 *   return what it returns. Out parameters are then untouched.
 *   DEVICE_LOST is told apart from all others.
 * - Nothing here counts, caches or retries: that is the library's work.
 * - Optional functions may be NULL, but a whole group at a time; the registry
 *   checks the groups once and fills gaps with functions that answer NOT_SUPPORTED.
 *
 * src/backend/host.c is the smallest complete backend and the template.
 */
#ifndef OPENNUMA_BACKEND_H
#define OPENNUMA_BACKEND_H

#include "opennuma/opennuma.h"

#if defined(__cplusplus)
extern "C" {
#endif

/** Raised whenever a member changes meaning. Members are only added at the end, which struct_size tells. */
#define ONUMA_BACKEND_ABI 1

typedef struct onuma_backend_instance onuma_backend_instance; /* each backend defines its own */
typedef struct onuma_backend_device   onuma_backend_device;
typedef struct onuma_backend_queue    onuma_backend_queue;
typedef struct onuma_backend_marker   onuma_backend_marker;

/** What the library gives a backend. Valid as long as the instance. */
typedef struct onuma_backend_host {
    size_t struct_size;
    /** Record the detail text and return r. */
    onuma_result (*fail)(onuma_result r, const char *format, ...);
    /** Write a log line. */
    void (*log)(const struct onuma_backend_host *host, onuma_log_level level, const char *format, ...);
    /** The value of a configuration key of this backend ("opencl.share"), as text; NULL if there is no such key. */
    const char *(*config)(const struct onuma_backend_host *host, const char *key);
    const void *user; /* the library's own */
} onuma_backend_host;

/** Abilities of a device, in onuma_backend_device_info.abilities. */
enum {
    ONUMA_ABILITY_RESERVE  = 1u << 0, /**< the reserve group: addresses apart from memory */
    ONUMA_ABILITY_IMPORT   = 1u << 1, /**< import_host */
    ONUMA_ABILITY_HANDLES  = 1u << 2, /**< views are handles of their own, made per block (view group) */
    ONUMA_ABILITY_COHERENT = 1u << 3, /**< no host_map needed between CPU and device accesses of shared memory;
                                           single segments may still need it (onuma_segment.needs_map: imports) */
    ONUMA_ABILITY_QUEUES   = 1u << 4, /**< the queue group */
    ONUMA_ABILITY_WAIT     = 1u << 5, /**< queue_wait_marker: one queue waits for another on the device */
    ONUMA_ABILITY_ADOPT    = 1u << 6, /**< device_adopt and device_from_queue */
    ONUMA_ABILITY_COUNTED  = 1u << 7  /**< a view may be released while submitted work still uses it: the driver counts */
};

typedef struct onuma_backend_device_info {
    size_t            struct_size;
    char              name[128];
    char              driver[128];
    char              physical[64];
    char              shared_via[32];
    onuma_device_type type;
    bool              simulator;
    uint32_t          kinds;            /**< bit (1u << ONUMA_KIND_x) */
    uint32_t          abilities;
    uint64_t          memory_total;
    uint64_t          max_segment;      /**< largest single allocation the driver states; 0: no limit known */
    size_t            alignment;        /**< every block's: the strictest of view origin, cache line, flush granule */
    size_t            page_size;        /**< commit granule of the reserve group (any power of two); alignment of
                                             imports where they need one; 0: neither */
    onuma_via         via;              /**< how views of shared memory are bound */
    uint64_t          native_context, native_device; /**< 0 before the device is opened */
    onuma_proof       proof;            /**< NONE before somebody has looked */
    bool              import_zero_copy; /**< only if seen */
    char              sharing_detail[256];
    uint32_t          sharing_notes;    /**< of ONUMA_SHARING_* */
    uint32_t          unreserved_kinds; /**< bit (1u << ONUMA_KIND_x) for each kind that RESERVE does not hold for: it comes
                                             in segments only */
} onuma_backend_device_info;

/**
 * Memory got from the driver. `base` is a CPU address, or, where the CPU has
 * none, reserved addresses that name it. The library leaves all of it as it was filled.
 */
typedef struct onuma_segment {
    size_t     struct_size;
    void      *base;
    size_t     size;    /**< usable bytes at base, at least what was asked for */
    uint64_t   address; /**< the device's address of base; 0 if this segment's views are handles (device memory and
                             imports of a device whose shared memory is bound by pointer, say): ask per segment */
    uint64_t   handle;  /**< the driver's handle of the whole; 0 if it has none */
    onuma_kind kind;
    bool       read_only;
    void      *own;     /**< the backend's */
    bool       needs_map; /**< CPU accesses go between host_map and host_unmap, whatever the device's abilities */
} onuma_segment;

typedef struct onuma_backend {
    size_t      struct_size;
    uint32_t    abi; /**< ONUMA_BACKEND_ABI */
    onuma_api   api;
    const char *name; /**< "opencl"; also the prefix of device ids */

    /* ---- instance. Only `open` is required here; device_count and all that a device needs (to memory_free, and the
     * two functions on segments) come together. open: NOT_FOUND when the driver is absent, which is normal and quiet; others are loud. */
    onuma_result (*open)(const onuma_backend_host *host, onuma_backend_instance **out);
    void (*close)(onuma_backend_instance *instance);
    /** A line about the driver for `info`. */
    void (*describe)(onuma_backend_instance *instance, char *text, size_t size);
    size_t (*device_count)(onuma_backend_instance *instance);
    /** Without creating a context. */
    onuma_result (*device_query)(onuma_backend_instance *instance, size_t i, onuma_backend_device_info *out);

    /* ---- device */
    onuma_result (*device_open)(onuma_backend_instance *instance, size_t i, onuma_backend_device **out);
    void (*device_close)(onuma_backend_device *device);
    /** After opening; may know more than device_query did. */
    onuma_result (*device_info)(onuma_backend_device *device, onuma_backend_device_info *out);
    /** Bytes free now, as the driver says; 0: it does not tell. */
    onuma_result (*memory_free)(onuma_backend_device *device, uint64_t *bytes);

    /* ---- ADOPT group */
    onuma_result (*device_adopt)(onuma_backend_instance *instance, const onuma_native_device *native,
                                 onuma_backend_device **out);
    onuma_result (*device_from_queue)(onuma_backend_instance *instance, uint64_t native_queue,
                                      onuma_backend_device **out);

    /* ---- segments (every backend). Destroying is called only when no view lives and no queue uses it. */
    onuma_result (*segment_create)(onuma_backend_device *device, onuma_kind kind, size_t size, onuma_segment *out);
    void (*segment_destroy)(onuma_backend_device *device, onuma_segment *segment);

    /* ---- RESERVE group: `segment` with no memory yet; commit and decommit whole pages of it. Destroyed as above. */
    onuma_result (*segment_reserve)(onuma_backend_device *device, onuma_kind kind, size_t size, onuma_segment *out);
    onuma_result (*segment_commit)(onuma_backend_device *device, onuma_segment *segment, size_t offset, size_t size);
    onuma_result (*segment_decommit)(onuma_backend_device *device, onuma_segment *segment, size_t offset, size_t size);

    /* ---- IMPORT: memory of the program as a segment, without copying, or NOT_SUPPORTED. Destroyed as above. */
    onuma_result (*import_host)(onuma_backend_device *device, void *host, size_t size, bool read_only,
                                onuma_segment *out);

    /* ---- HANDLES group: a view of [offset, offset+size) with a handle of its own.
     * view_retain gives the caller one more reference to the driver's handle, view_release takes one back. */
    onuma_result (*view_create)(onuma_backend_device *device, const onuma_segment *segment, size_t offset, size_t size,
                                uint64_t *handle);
    void (*view_retain)(onuma_backend_device *device, uint64_t handle);
    void (*view_release)(onuma_backend_device *device, uint64_t handle);

    /* ---- coherence, needed unless COHERENT: make the device's writes visible to the CPU (map), and the CPU's to
     * the device (unmap); complete on return. `view` is the block's handle, made beforehand where the segment's
     * views are handles (without one the driver would not learn of the access); 0 where they are pointers. Only a
     * MODE that was mapped is unmapped. What is mapped for writing can be read, too, and bytes that are not written
     * keep the device's values. A map that fails leaves nothing mapped. On the backend's own queue, never the user's. */
    onuma_result (*host_map)(onuma_backend_device *device, const onuma_segment *segment, uint64_t view, size_t offset,
                             size_t size, onuma_access mode);
    onuma_result (*host_unmap)(onuma_backend_device *device, const onuma_segment *segment, uint64_t view, size_t offset,
                               size_t size, onuma_access mode);

    /* ---- QUEUES group. queue_open keeps a reference of its own to the native queue; *order is in: what the user
     * said, out: IN_ORDER or UNORDERED. */
    onuma_result (*queue_open)(onuma_backend_device *device, uint64_t native, onuma_queue_order *order,
                               onuma_backend_queue **out);
    void (*queue_close)(onuma_backend_queue *queue);
    /** A marker of everything submitted to the queue so far. It may be lazy; polling must make it progress. */
    onuma_result (*marker_record)(onuma_backend_queue *queue, onuma_backend_marker **out);
    /** A marker that passes with a native event, which is retained where the API counts its events. */
    onuma_result (*marker_wrap)(onuma_backend_queue *queue, const onuma_native_event *event, onuma_backend_marker **out);
    /** *passed: whether the device has gone by it. Never blocks. DEVICE_LOST and other failures of the work itself are errors. */
    onuma_result (*marker_poll)(onuma_backend_marker *marker, bool *passed);
    void (*marker_destroy)(onuma_backend_marker *marker);
    /* ---- WAIT: later work of `queue` runs after the marker, on the device. */
    onuma_result (*queue_wait_marker)(onuma_backend_queue *queue, onuma_backend_marker *marker);

    /* ---- optional, of segments of the RESERVE group: what committed pages hold is wanted no more. They stay committed
     * and may be written again with no further call; the system may take their memory meanwhile. */
    onuma_result (*segment_discard)(onuma_backend_device *device, onuma_segment *segment, size_t offset, size_t size);
} onuma_backend;

#if defined(__cplusplus)
}
#endif
#endif
