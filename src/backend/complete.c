/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks a backend's table once, so that everyone else may call it freely.
 *
 * The functions of a table come in groups that are there as a whole or not at
 * all; half a group is a defect of the backend, found when the library starts
 * and not in a user's hands. Gaps are filled with functions that answer
 * NOT_SUPPORTED, so no caller tests for NULL. A table of an older library is
 * shorter (struct_size): what it lacks is a gap like any other.
 */
#include "backend/device.h"

#include "base/checked.h"
#include <string.h>

/* ------------------------------------------------------------- the fillers */

static onuma_result refuse(const char *function) {
    return onuma__fail(ONUMA_ERROR_NOT_SUPPORTED, "this backend has no %s; the device's abilities tell what it has",
                       function);
}

static void no_close(onuma_backend_instance *instance) {
    (void)instance;
}

static void no_describe(onuma_backend_instance *instance, char *text, size_t size) {
    (void)instance;
    if (size != 0) text[0] = '\0';
}

static size_t no_device_count(onuma_backend_instance *instance) {
    (void)instance;
    return 0;
}

static onuma_result no_device_query(onuma_backend_instance *instance, size_t i, onuma_backend_device_info *out) {
    (void)instance, (void)i, (void)out;
    return refuse("device_query");
}

static onuma_result no_device_open(onuma_backend_instance *instance, size_t i, onuma_backend_device **out) {
    (void)instance, (void)i, (void)out;
    return refuse("device_open");
}

static void no_device_close(onuma_backend_device *device) {
    (void)device;
}

static onuma_result no_device_info(onuma_backend_device *device, onuma_backend_device_info *out) {
    (void)device, (void)out;
    return refuse("device_info");
}

static onuma_result no_memory_free(onuma_backend_device *device, uint64_t *bytes) {
    (void)device, (void)bytes;
    return refuse("memory_free");
}

static onuma_result no_device_adopt(onuma_backend_instance *instance, const onuma_native_device *native,
                                    onuma_backend_device **out) {
    (void)instance, (void)native, (void)out;
    return refuse("device_adopt");
}

static onuma_result no_device_from_queue(onuma_backend_instance *instance, uint64_t queue, onuma_backend_device **out) {
    (void)instance, (void)queue, (void)out;
    return refuse("device_from_queue");
}

static onuma_result no_segment_create(onuma_backend_device *device, onuma_kind kind, size_t size, onuma_segment *out) {
    (void)device, (void)kind, (void)size, (void)out;
    return refuse("segment_create");
}

static void no_segment_destroy(onuma_backend_device *device, onuma_segment *segment) {
    (void)device, (void)segment;
}

static onuma_result no_segment_reserve(onuma_backend_device *device, onuma_kind kind, size_t size, onuma_segment *out) {
    (void)device, (void)kind, (void)size, (void)out;
    return refuse("segment_reserve");
}

static onuma_result no_segment_commit(onuma_backend_device *device, onuma_segment *segment, size_t offset,
                                      size_t size) {
    (void)device, (void)segment, (void)offset, (void)size;
    return refuse("segment_commit");
}

static onuma_result no_segment_decommit(onuma_backend_device *device, onuma_segment *segment, size_t offset,
                                        size_t size) {
    (void)device, (void)segment, (void)offset, (void)size;
    return refuse("segment_decommit");
}

static onuma_result no_segment_discard(onuma_backend_device *device, onuma_segment *segment, size_t offset,
                                       size_t size) {
    (void)device, (void)segment, (void)offset, (void)size;
    return refuse("segment_discard");
}

static onuma_result no_import_host(onuma_backend_device *device, void *host, size_t size, bool read_only,
                                   onuma_segment *out) {
    (void)device, (void)host, (void)size, (void)read_only, (void)out;
    return refuse("import_host");
}

static onuma_result no_view_create(onuma_backend_device *device, const onuma_segment *segment, size_t offset,
                                   size_t size, uint64_t *handle) {
    (void)device, (void)segment, (void)offset, (void)size, (void)handle;
    return refuse("view_create");
}

static void no_view_retain(onuma_backend_device *device, uint64_t handle) {
    (void)device, (void)handle;
}

static void no_view_release(onuma_backend_device *device, uint64_t handle) {
    (void)device, (void)handle;
}

static onuma_result no_host_map(onuma_backend_device *device, const onuma_segment *segment, uint64_t view,
                                size_t offset, size_t size, onuma_access mode) {
    (void)device, (void)segment, (void)view, (void)offset, (void)size, (void)mode;
    return refuse("host_map");
}

static onuma_result no_host_unmap(onuma_backend_device *device, const onuma_segment *segment, uint64_t view,
                                  size_t offset, size_t size, onuma_access mode) {
    (void)device, (void)segment, (void)view, (void)offset, (void)size, (void)mode;
    return refuse("host_unmap");
}

static onuma_result no_queue_open(onuma_backend_device *device, uint64_t native, onuma_queue_order *order,
                                  onuma_backend_queue **out) {
    (void)device, (void)native, (void)order, (void)out;
    return refuse("queue_open");
}

static void no_queue_close(onuma_backend_queue *queue) {
    (void)queue;
}

static onuma_result no_marker_record(onuma_backend_queue *queue, onuma_backend_marker **out) {
    (void)queue, (void)out;
    return refuse("marker_record");
}

static onuma_result no_marker_wrap(onuma_backend_queue *queue, const onuma_native_event *event,
                                   onuma_backend_marker **out) {
    (void)queue, (void)event, (void)out;
    return refuse("marker_wrap");
}

static onuma_result no_marker_poll(onuma_backend_marker *marker, bool *passed) {
    (void)marker, (void)passed;
    return refuse("marker_poll");
}

static void no_marker_destroy(onuma_backend_marker *marker) {
    (void)marker;
}

static onuma_result no_queue_wait_marker(onuma_backend_queue *queue, onuma_backend_marker *marker) {
    (void)queue, (void)marker;
    return refuse("queue_wait_marker");
}

/* -------------------------------------------------------------- the groups */

/* X(function, group). A group is there as a whole or not at all; in SINGLE each function is a group of its own. */
#define FUNCTIONS(X)                                                                                                   \
    X(close, SINGLE)                                                                                                   \
    X(describe, SINGLE)                                                                                                \
    X(device_count, DEVICES)                                                                                           \
    X(device_query, DEVICES)                                                                                           \
    X(device_open, DEVICES)                                                                                            \
    X(device_close, DEVICES)                                                                                           \
    X(device_info, DEVICES)                                                                                            \
    X(memory_free, DEVICES)                                                                                            \
    X(segment_create, DEVICES)                                                                                         \
    X(segment_destroy, DEVICES)                                                                                        \
    X(device_adopt, ADOPT)                                                                                             \
    X(device_from_queue, ADOPT)                                                                                        \
    X(segment_reserve, RESERVE)                                                                                        \
    X(segment_commit, RESERVE)                                                                                         \
    X(segment_decommit, RESERVE)                                                                                       \
    X(segment_discard, SINGLE)                                                                                         \
    X(import_host, IMPORT)                                                                                             \
    X(view_create, HANDLES)                                                                                            \
    X(view_retain, HANDLES)                                                                                            \
    X(view_release, HANDLES)                                                                                           \
    X(host_map, MAP)                                                                                                   \
    X(host_unmap, MAP)                                                                                                 \
    X(queue_open, QUEUES)                                                                                              \
    X(queue_close, QUEUES)                                                                                             \
    X(marker_record, QUEUES)                                                                                           \
    X(marker_wrap, QUEUES)                                                                                             \
    X(marker_poll, QUEUES)                                                                                             \
    X(marker_destroy, QUEUES)                                                                                          \
    X(queue_wait_marker, WAIT)

enum group { SINGLE, DEVICES, ADOPT, RESERVE, IMPORT, HANDLES, MAP, QUEUES, WAIT, GROUPS };

/* For each group: a function that is there, and one that is missing. */
typedef struct presence {
    const char *there[GROUPS];
    const char *missing[GROUPS];
} presence;

static presence look(const onuma_backend *table) {
    presence p = {{NULL}, {NULL}};
#define X(function, group) *(table->function != NULL ? &p.there[group] : &p.missing[group]) = #function;
    FUNCTIONS(X)
#undef X
    return p;
}

onuma_result onuma__backend_complete(const onuma_backend *from, onuma_backend *to) {
    if (from->abi != ONUMA_BACKEND_ABI || from->struct_size < offsetof(onuma_backend, close))
        return onuma__fail(ONUMA_ERROR_INTERNAL,
                           "backend table of ABI %u and %zu bytes; this library speaks ABI %u: build the backend "
                           "against its backend.h",
                           (unsigned)from->abi, from->struct_size, (unsigned)ONUMA_BACKEND_ABI);
    onuma_backend table = {0};
    memcpy(&table, from, from->struct_size < sizeof table ? from->struct_size : sizeof table);
    table.struct_size = sizeof table;
    if (table.name == NULL || table.name[0] == '\0')
        return onuma__fail(ONUMA_ERROR_INTERNAL, "a backend table has no name");
    if (table.open == NULL) return onuma__fail(ONUMA_ERROR_INTERNAL, "backend %s: open is missing", table.name);

    presence p = look(&table);
    for (int group = SINGLE + 1; group < GROUPS; group++)
        if (p.there[group] != NULL && p.missing[group] != NULL)
            return onuma__fail(ONUMA_ERROR_INTERNAL, "backend %s: %s is missing, though it has %s of the same group",
                               table.name, p.missing[group], p.there[group]);
    if (p.there[WAIT] != NULL && p.there[QUEUES] == NULL)
        return onuma__fail(ONUMA_ERROR_INTERNAL, "backend %s: queue_open is missing, though it has queue_wait_marker",
                           table.name);

#define X(function, group)                                                                                             \
    if (table.function == NULL) table.function = no_##function;
    FUNCTIONS(X)
#undef X
    *to = table;
    return ONUMA_OK;
}

/* No device needs more, and sums with it must not overflow. */
#define MOST_ALIGNMENT ((size_t)1 << 30)

/* Every text of a device's description. */
static void end_texts(onuma_backend_device_info *info) {
    info->name[sizeof info->name - 1] = '\0';
    info->driver[sizeof info->driver - 1] = '\0';
    info->physical[sizeof info->physical - 1] = '\0';
    info->shared_via[sizeof info->shared_via - 1] = '\0';
    info->sharing_detail[sizeof info->sharing_detail - 1] = '\0';
}

/* Texts that a driver did not end are cut, values that no device can have make it one that does not work. */
static onuma_result check_values(const onuma_backend *complete, onuma_backend_device_info *info) {
    end_texts(info);
    if (!onuma__is_power_of_two(info->alignment) || info->alignment > MOST_ALIGNMENT)
        return onuma__fail(ONUMA_ERROR_INTERNAL,
                           "backend %s: device \"%s\" has an alignment of %zu, no power of two up to %zu",
                           complete->name, info->name, info->alignment, MOST_ALIGNMENT);
    const bool paged = (info->abilities & ONUMA_ABILITY_RESERVE) != 0;
    if ((paged || info->page_size != 0) && !onuma__is_power_of_two(info->page_size))
        return onuma__fail(ONUMA_ERROR_INTERNAL, "backend %s: device \"%s\" has pages of %zu bytes, no power of two",
                           complete->name, info->name, info->page_size);
    if (info->type > ONUMA_DEVICE_HOST || info->kinds >> (ONUMA_KIND_DEVICE + 1) != 0)
        return onuma__fail(ONUMA_ERROR_INTERNAL,
                           "backend %s: device \"%s\" is of type %u and has memory of kinds 0x%x, which do not exist",
                           complete->name, info->name, (unsigned)info->type, (unsigned)info->kinds);
    return ONUMA_OK;
}

onuma_result onuma__backend_check(const onuma_backend *complete, onuma_backend_device_info *info) {
    const onuma_result r = check_values(complete, info);
    if (r != ONUMA_OK) return r;
    const uint32_t a = info->abilities;
    const struct {
        bool needed, missing;
        const char *function, *why;
    } rules[] = {
        {(a & ONUMA_ABILITY_RESERVE) != 0, complete->segment_reserve == no_segment_reserve, "segment_reserve",
         "says RESERVE"},
        {(a & ONUMA_ABILITY_IMPORT) != 0, complete->import_host == no_import_host, "import_host", "says IMPORT"},
        {(a & ONUMA_ABILITY_HANDLES) != 0, complete->view_create == no_view_create, "view_create", "says HANDLES"},
        {(a & ONUMA_ABILITY_COHERENT) == 0, complete->host_map == no_host_map, "host_map", "does not say COHERENT"},
        {(a & ONUMA_ABILITY_QUEUES) != 0, complete->queue_open == no_queue_open, "queue_open", "says QUEUES"},
        {(a & ONUMA_ABILITY_WAIT) != 0, complete->queue_wait_marker == no_queue_wait_marker, "queue_wait_marker",
         "says WAIT"},
        {(a & ONUMA_ABILITY_ADOPT) != 0, complete->device_adopt == no_device_adopt, "device_adopt", "says ADOPT"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].needed && rules[i].missing)
            return onuma__fail(ONUMA_ERROR_INTERNAL, "backend %s: %s is missing, though device \"%s\" %s",
                               complete->name, rules[i].function, info->name, rules[i].why);
    return ONUMA_OK;
}
