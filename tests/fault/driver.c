/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decorated backends: every call is checked and counted, made to fail if that is planned, else passed on to the real
 * one. Faults of the driver's word (a short segment, an absurd limit) are laid over a true answer of the real driver,
 * so that what is given back is always whole.
 */
#include "objects.h"

#include <stdlib.h>
#include <string.h>

/* The types are the backend's own, so they are ours. */
#define OBJECT(p) ((object *)(void *)(p))
#define INNER(type, o) ((type *)(o)->inner)

static onuma_result fail(const object *o, const fault_plan *how, const char *function) {
    return o->host->fail(how->result != ONUMA_OK ? how->result : ONUMA_ERROR_INTERNAL, "injected: %s fails", function);
}

/* ---------------------------------------------------------------- instance */

static onuma_result open_over(const onuma_backend *ops, const onuma_backend_host *host, onuma_backend_instance **out) {
    fault_plan how;
    if (fault_due(FAULT_open, &how)) return host->fail(how.result, "injected: open of %s fails", ops->name);
    onuma_backend_instance *inner = NULL;
    const onuma_result r = ops->open(host, &inner);
    if (r != ONUMA_OK) return r;
    object *o = object_new(INSTANCE, NULL, inner);
    o->ops = ops;
    o->host = host;
    *out = (onuma_backend_instance *)o;
    return ONUMA_OK;
}

static onuma_result open_host(const onuma_backend_host *host, onuma_backend_instance **out) {
    return open_over(&onuma__backend_host, host, out);
}

static onuma_result open_opencl(const onuma_backend_host *host, onuma_backend_instance **out) {
    return open_over(&onuma__backend_opencl, host, out);
}

static onuma_result open_level_zero(const onuma_backend_host *host, onuma_backend_instance **out) {
    return open_over(&onuma__backend_level_zero, host, out);
}

static void close_instance(onuma_backend_instance *instance) {
    object *o = OBJECT(instance);
    object_check(o, INSTANCE, "close");
    object_end(o, "close");
    if (o->ops->close != NULL) o->ops->close(INNER(onuma_backend_instance, o));
}

static void describe(onuma_backend_instance *instance, char *text, size_t size) {
    object *o = OBJECT(instance);
    fault_plan how;
    object_check(o, INSTANCE, "describe");
    if (fault_due(FAULT_describe, &how)) {
        if (how.manner == FAULT_ABSURD) memset(text, 'x', size); /* a text without an end; else none */
    } else if (o->ops->describe != NULL) {
        o->ops->describe(INNER(onuma_backend_instance, o), text, size);
    } else if (size != 0) {
        text[0] = '\0';
    }
}

static size_t device_count(onuma_backend_instance *instance) {
    object *o = OBJECT(instance);
    fault_plan how;
    object_check(o, INSTANCE, "device_count");
    const size_t count = o->ops->device_count(INNER(onuma_backend_instance, o));
    if (!fault_due(FAULT_device_count, &how)) return count;
    return how.manner != FAULT_MORE ? 0 : how.which == 0 ? count + 3 : SIZE_MAX / how.which;
}

/* Values that no device has, one at a time. */
static void distort(onuma_backend_device_info *info, unsigned which) {
    switch (which % FAULT_ABSURDITIES) {
    case 0:
        info->max_segment = 1;
        break;
    case 1:
        info->memory_total = 1;
        break;
    case 2:
        info->kinds = 0;
        break;
    case 3:
        info->max_segment = UINT64_MAX;
        break;
    case 4:
        info->alignment = (size_t)1 << 62;
        break;
    case 5:
        info->alignment = 3;
        break;
    case 6:
        info->alignment = 0;
        break;
    case 7:
        info->page_size = 0;
        break;
    case 8:
        info->page_size = 3;
        break;
    case 9:
        info->kinds = UINT32_MAX;
        break;
    case 10:
        info->abilities = UINT32_MAX;
        break;
    case 11:
        info->type = 77;
        break;
    default: /* texts without an end */
        memset(info->name, 'x', sizeof info->name);
        memset(info->driver, 'x', sizeof info->driver);
        memset(info->physical, 'x', sizeof info->physical);
        memset(info->shared_via, 'x', sizeof info->shared_via);
        memset(info->sharing_detail, 'x', sizeof info->sharing_detail);
    }
}

static onuma_result device_query(onuma_backend_instance *instance, size_t i, onuma_backend_device_info *out) {
    object *o = OBJECT(instance);
    fault_plan how;
    object_check(o, INSTANCE, "device_query");
    const bool due = fault_due(FAULT_device_query, &how);
    if (due && how.manner != FAULT_ABSURD) return fail(o, &how, "device_query");
    if (i >= o->ops->device_count(INNER(onuma_backend_instance, o)))
        return o->host->fail(ONUMA_ERROR_NOT_FOUND, "injected: there is no device %zu", i);
    const onuma_result r = o->ops->device_query(INNER(onuma_backend_instance, o), i, out);
    if (r == ONUMA_OK && due) distort(out, how.which);
    return r;
}

/* ------------------------------------------------------------------ device */

static onuma_backend_device *shell(object *instance, onuma_backend_device *inner) {
    return (onuma_backend_device *)object_new(DEVICE, instance, inner);
}

static onuma_result device_open(onuma_backend_instance *instance, size_t i, onuma_backend_device **out) {
    object *o = OBJECT(instance);
    fault_plan how;
    object_check(o, INSTANCE, "device_open");
    if (fault_due(FAULT_device_open, &how)) return fail(o, &how, "device_open");
    onuma_backend_device *inner = NULL;
    const onuma_result r = o->ops->device_open(INNER(onuma_backend_instance, o), i, &inner);
    if (r == ONUMA_OK) *out = shell(o, inner);
    return r;
}

static void device_close(onuma_backend_device *device) {
    object *o = OBJECT(device);
    object_check(o, DEVICE, "device_close");
    object_end(o, "device_close");
    o->ops->device_close(INNER(onuma_backend_device, o));
}

static onuma_result device_info(onuma_backend_device *device, onuma_backend_device_info *out) {
    object *o = OBJECT(device);
    fault_plan how;
    object_check(o, DEVICE, "device_info");
    const bool due = fault_due(FAULT_device_info, &how);
    if (due && how.manner != FAULT_ABSURD) return fail(o, &how, "device_info");
    const onuma_result r = o->ops->device_info(INNER(onuma_backend_device, o), out);
    if (r == ONUMA_OK && due) distort(out, how.which);
    return r;
}

static onuma_result memory_free(onuma_backend_device *device, uint64_t *bytes) {
    object *o = OBJECT(device);
    fault_plan how;
    object_check(o, DEVICE, "memory_free");
    if (fault_due(FAULT_memory_free, &how)) return fail(o, &how, "memory_free");
    return o->ops->memory_free(INNER(onuma_backend_device, o), bytes);
}

static onuma_result device_adopt(onuma_backend_instance *instance, const onuma_native_device *native,
                                 onuma_backend_device **out) {
    object *o = OBJECT(instance);
    fault_plan how;
    object_check(o, INSTANCE, "device_adopt");
    if (fault_due(FAULT_device_adopt, &how)) return fail(o, &how, "device_adopt");
    onuma_backend_device *inner = NULL;
    const onuma_result r = o->ops->device_adopt(INNER(onuma_backend_instance, o), native, &inner);
    if (r == ONUMA_OK) *out = shell(o, inner);
    return r;
}

static onuma_result device_from_queue(onuma_backend_instance *instance, uint64_t native, onuma_backend_device **out) {
    object *o = OBJECT(instance);
    fault_plan how;
    object_check(o, INSTANCE, "device_from_queue");
    if (fault_due(FAULT_device_from_queue, &how)) return fail(o, &how, "device_from_queue");
    onuma_backend_device *inner = NULL;
    const onuma_result r = o->ops->device_from_queue(INNER(onuma_backend_instance, o), native, &inner);
    if (r == ONUMA_OK) *out = shell(o, inner);
    return r;
}

/* ---------------------------------------------------------------- segments */

/* What the library is told of a segment that the driver made as it should. */
static void tell(object *s, const fault_plan *how, size_t asked, onuma_segment *out) {
    const object *other = how->manner == FAULT_OVERLAPS ? object_other_segment(s->parent) : NULL;
    *out = s->segment;
    out->own = s;
    switch (how->manner) {
    case FAULT_SHORT:
        out->size = asked / 2;
        break;
    case FAULT_NOWHERE:
        out->base = NULL;
        break;
    case FAULT_WRAPS:
        out->base = (void *)(UINTPTR_MAX - 4095); // NOLINT: an address
        if (out->size < 8192) out->size = 8192;
        break;
    case FAULT_OVERLAPS:
        if (other != NULL) out->base = other->segment.base;
        break;
    case FAULT_UNALIGNED:
        s->shift = 8;
        out->base = (char *)out->base + s->shift;
        if (out->address != 0) out->address += s->shift;
        out->size = asked;
        break;
    default:
        break;
    }
}

/* More than the library asks for, where the fault needs room. */
static size_t wish(size_t asked, bool due, const fault_plan *how) {
    const size_t extra = due && how->manner == FAULT_SURPLUS     ? 65536u + 4096u
                         : due && how->manner == FAULT_UNALIGNED ? 4096u
                                                                 : 0;
    return asked <= SIZE_MAX - extra ? asked + extra : asked;
}

typedef onuma_result make(onuma_backend_device *device, onuma_kind kind, size_t size, onuma_segment *out);

static onuma_result new_segment(onuma_backend_device *device, fault_site site, make *with, bool reserved,
                                onuma_kind kind, size_t size, onuma_segment *out) {
    object *o = OBJECT(device);
    fault_plan how = {.manner = FAULT_FAIL};
    object_check(o, DEVICE, fault_site_name(site));
    const bool due = fault_due(site, &how);
    if (due && how.manner == FAULT_FAIL) return fail(o, &how, fault_site_name(site));
    onuma_segment inner = {.struct_size = sizeof inner};
    const onuma_result r = with(INNER(onuma_backend_device, o), kind, wish(size, due, &how), &inner);
    if (r != ONUMA_OK) return r;
    object *s = object_new(SEGMENT, o, NULL);
    s->segment = inner;
    s->reserved = reserved;
    if (!due) how.manner = FAULT_FAIL;
    tell(s, &how, size, out);
    object_size(s, out->size);
    return ONUMA_OK;
}

static onuma_result segment_create(onuma_backend_device *device, onuma_kind kind, size_t size, onuma_segment *out) {
    return new_segment(device, FAULT_segment_create, OBJECT(device)->ops->segment_create, false, kind, size, out);
}

static onuma_result segment_reserve(onuma_backend_device *device, onuma_kind kind, size_t size, onuma_segment *out) {
    return new_segment(device, FAULT_segment_reserve, OBJECT(device)->ops->segment_reserve, true, kind, size, out);
}

static void segment_destroy(onuma_backend_device *device, onuma_segment *segment) {
    object *o = OBJECT(device), *s = segment->own;
    object_check(o, DEVICE, "segment_destroy");
    object_check(s, SEGMENT, "segment_destroy");
    object_end(s, "segment_destroy");
    o->ops->segment_destroy(INNER(onuma_backend_device, o), &s->segment);
}

typedef onuma_result change(onuma_backend_device *device, onuma_segment *segment, size_t offset, size_t size);

/* Whole pages of the real segment that cover (or, to be given back, lie within) those of the shifted one. */
static void shifted(const object *s, bool outward, size_t *offset, size_t *size) {
    const size_t page = onuma__os_abilities_get()->page_size, end = *offset + *size + s->shift;
    if (s->shift == 0) return;
    const size_t from = (*offset + s->shift + (outward ? 0 : page - 1)) / page * page;
    const size_t to = (end + (outward ? page - 1 : 0)) / page * page;
    *offset = from;
    *size = to > from ? to - from : 0;
}

static onuma_result change_pages(onuma_backend_device *device, onuma_segment *segment, fault_site site, change *with,
                                 int sign, size_t offset, size_t size) {
    object *o = OBJECT(device), *s = segment->own;
    fault_plan how;
    object_check(o, DEVICE, fault_site_name(site));
    object_check(s, SEGMENT, fault_site_name(site));
    if (offset > segment->size || size > segment->size - offset)
        fault_violate("%s of %zu bytes at %zu of a segment of %zu", fault_site_name(site), size, offset, segment->size);
    if (fault_due(site, &how)) return fail(o, &how, fault_site_name(site));
    size_t real_offset = offset, real_size = size;
    shifted(s, sign > 0, &real_offset, &real_size);
    onuma_result r = ONUMA_OK;
    if (real_size != 0) r = with(INNER(onuma_backend_device, o), &s->segment, real_offset, real_size);
    if (r == ONUMA_OK) object_commit(s, sign * (int64_t)size);
    return r;
}

static onuma_result segment_commit(onuma_backend_device *device, onuma_segment *segment, size_t offset, size_t size) {
    return change_pages(device, segment, FAULT_segment_commit, OBJECT(device)->ops->segment_commit, 1, offset, size);
}

static onuma_result segment_decommit(onuma_backend_device *device, onuma_segment *segment, size_t offset, size_t size) {
    return change_pages(device, segment, FAULT_segment_decommit, OBJECT(device)->ops->segment_decommit, -1, offset,
                        size);
}

/* Nothing is done about a refusal, so none is made. */
static onuma_result segment_discard(onuma_backend_device *device, onuma_segment *segment, size_t offset, size_t size) {
    object *o = OBJECT(device), *s = segment->own;
    object_check(o, DEVICE, "segment_discard");
    object_check(s, SEGMENT, "segment_discard");
    if (offset > segment->size || size > segment->size - offset)
        fault_violate("segment_discard of %zu bytes at %zu of a segment of %zu", size, offset, segment->size);
    size_t real_offset = offset, real_size = size;
    shifted(s, false, &real_offset, &real_size);
    if (real_size == 0) return ONUMA_OK;
    return o->ops->segment_discard(INNER(onuma_backend_device, o), &s->segment, real_offset, real_size);
}

static onuma_result import_host(onuma_backend_device *device, void *host, size_t size, bool read_only,
                                onuma_segment *out) {
    object *o = OBJECT(device);
    fault_plan how = {.manner = FAULT_FAIL};
    object_check(o, DEVICE, "import_host");
    const bool due = fault_due(FAULT_import_host, &how);
    if (due && how.manner == FAULT_FAIL) return fail(o, &how, "import_host");
    onuma_segment inner = {.struct_size = sizeof inner};
    const onuma_result r = o->ops->import_host(INNER(onuma_backend_device, o), host, size, read_only, &inner);
    if (r != ONUMA_OK) return r;
    object *s = object_new(IMPORT, o, NULL);
    s->segment = inner;
    if (!due) how.manner = FAULT_FAIL;
    tell(s, &how, size, out);
    return ONUMA_OK;
}

/* ------------------------------------------------------------ views, access */

static onuma_result view_create(onuma_backend_device *device, const onuma_segment *segment, size_t offset, size_t size,
                                uint64_t *handle) {
    object *o = OBJECT(device), *s = segment->own;
    fault_plan how;
    object_check(o, DEVICE, "view_create");
    object_check(s, SEGMENT, "view_create");
    if (fault_due(FAULT_view_create, &how)) return fail(o, &how, "view_create");
    const onuma_result r =
        o->ops->view_create(INNER(onuma_backend_device, o), &s->segment, offset + s->shift, size, handle);
    if (r == ONUMA_OK) view_enter(s, *handle);
    return r;
}

static void view_retain(onuma_backend_device *device, uint64_t handle) {
    object *o = OBJECT(device);
    object_check(o, DEVICE, "view_retain");
    if (!view_retained(o, handle)) fault_violate("view_retain of a handle that no view has");
    o->ops->view_retain(INNER(onuma_backend_device, o), handle);
}

static void view_release(onuma_backend_device *device, uint64_t handle) {
    object *o = OBJECT(device);
    object_check(o, DEVICE, "view_release");
    if (!view_released(o, handle)) {
        fault_violate("view_release of a handle that no view has");
        return;
    }
    o->ops->view_release(INNER(onuma_backend_device, o), handle);
}

static onuma_result host_map(onuma_backend_device *device, const onuma_segment *segment, uint64_t view, size_t offset,
                             size_t size, onuma_access mode) {
    object *o = OBJECT(device), *s = segment->own;
    fault_plan how;
    object_check(o, DEVICE, "host_map");
    object_check(s, SEGMENT, "host_map");
    if (fault_due(FAULT_host_map, &how)) return fail(o, &how, "host_map");
    const onuma_result r =
        o->ops->host_map(INNER(onuma_backend_device, o), &s->segment, view, offset + s->shift, size, mode);
    if (r == ONUMA_OK) object_map(s, 1);
    return r;
}

static onuma_result host_unmap(onuma_backend_device *device, const onuma_segment *segment, uint64_t view, size_t offset,
                               size_t size, onuma_access mode) {
    object *o = OBJECT(device), *s = segment->own;
    fault_plan how;
    object_check(o, DEVICE, "host_unmap");
    object_check(s, SEGMENT, "host_unmap");
    if (fault_due(FAULT_host_unmap, &how)) {
        object_stuck(s);
        return fail(o, &how, "host_unmap");
    }
    const onuma_result r =
        o->ops->host_unmap(INNER(onuma_backend_device, o), &s->segment, view, offset + s->shift, size, mode);
    if (r == ONUMA_OK) object_map(s, -1);
    return r;
}

/* ----------------------------------------------------------------- queues */

static onuma_result queue_open(onuma_backend_device *device, uint64_t native, onuma_queue_order *order,
                               onuma_backend_queue **out) {
    object *o = OBJECT(device);
    fault_plan how;
    object_check(o, DEVICE, "queue_open");
    if (fault_due(FAULT_queue_open, &how)) return fail(o, &how, "queue_open");
    onuma_backend_queue *inner = NULL;
    const onuma_result r = o->ops->queue_open(INNER(onuma_backend_device, o), native, order, &inner);
    if (r == ONUMA_OK) *out = (onuma_backend_queue *)object_new(QUEUE, o, inner);
    return r;
}

static void queue_close(onuma_backend_queue *queue) {
    object *o = OBJECT(queue);
    object_check(o, QUEUE, "queue_close");
    object_end(o, "queue_close");
    o->ops->queue_close(INNER(onuma_backend_queue, o));
}

static onuma_result marker_record(onuma_backend_queue *queue, onuma_backend_marker **out) {
    object *o = OBJECT(queue);
    fault_plan how;
    object_check(o, QUEUE, "marker_record");
    if (fault_due(FAULT_marker_record, &how)) return fail(o, &how, "marker_record");
    onuma_backend_marker *inner = NULL;
    const onuma_result r = o->ops->marker_record(INNER(onuma_backend_queue, o), &inner);
    if (r == ONUMA_OK) *out = (onuma_backend_marker *)object_new(MARKER, o, inner);
    return r;
}

static onuma_result marker_wrap(onuma_backend_queue *queue, const onuma_native_event *event,
                                onuma_backend_marker **out) {
    object *o = OBJECT(queue);
    fault_plan how;
    object_check(o, QUEUE, "marker_wrap");
    if (fault_due(FAULT_marker_wrap, &how)) return fail(o, &how, "marker_wrap");
    onuma_backend_marker *inner = NULL;
    const onuma_result r = o->ops->marker_wrap(INNER(onuma_backend_queue, o), event, &inner);
    if (r == ONUMA_OK) *out = (onuma_backend_marker *)object_new(MARKER, o, inner);
    return r;
}

static onuma_result marker_poll(onuma_backend_marker *marker, bool *passed) {
    object *o = OBJECT(marker);
    fault_plan how;
    object_check(o, MARKER, "marker_poll");
    const bool due = fault_due(FAULT_marker_poll, &how);
    if (due && how.manner != FAULT_NOT_YET) return fail(o, &how, "marker_poll");
    const onuma_result r = o->ops->marker_poll(INNER(onuma_backend_marker, o), passed);
    if (r == ONUMA_OK && due) *passed = false;
    return r;
}

static void marker_destroy(onuma_backend_marker *marker) {
    object *o = OBJECT(marker);
    object_check(o, MARKER, "marker_destroy");
    object_end(o, "marker_destroy");
    o->ops->marker_destroy(INNER(onuma_backend_marker, o));
}

static onuma_result queue_wait_marker(onuma_backend_queue *queue, onuma_backend_marker *marker) {
    object *o = OBJECT(queue), *m = OBJECT(marker);
    fault_plan how;
    object_check(o, QUEUE, "queue_wait_marker");
    object_check(m, MARKER, "queue_wait_marker");
    if (fault_due(FAULT_queue_wait_marker, &how)) return fail(o, &how, "queue_wait_marker");
    return o->ops->queue_wait_marker(INNER(onuma_backend_queue, o), INNER(onuma_backend_marker, m));
}

/* ------------------------------------------------------------------ tables */

static onuma_backend tables[3];
const onuma_backend *const onuma__backends[] = {&tables[0], &tables[1], &tables[2]};
const size_t onuma__backend_total = 3;

/* What the real one lacks is lacking here too. */
static void decorate(onuma_backend *table, const onuma_backend *real,
                     onuma_result (*open)(const onuma_backend_host *, onuma_backend_instance **)) {
    *table = (onuma_backend){.struct_size = sizeof *table, .abi = real->abi, .api = real->api, .name = real->name};
    table->open = open;
    table->close = close_instance;
    table->describe = describe;
#define KEEP(function) table->function = real->function != NULL ? function : NULL
    KEEP(device_count);
    KEEP(device_query);
    KEEP(device_open);
    KEEP(device_close);
    KEEP(device_info);
    KEEP(memory_free);
    KEEP(device_adopt);
    KEEP(device_from_queue);
    KEEP(segment_create);
    KEEP(segment_destroy);
    KEEP(segment_reserve);
    KEEP(segment_commit);
    KEEP(segment_decommit);
    KEEP(import_host);
    KEEP(view_create);
    KEEP(view_retain);
    KEEP(view_release);
    KEEP(host_map);
    KEEP(host_unmap);
    KEEP(queue_open);
    KEEP(queue_close);
    KEEP(marker_record);
    KEEP(marker_wrap);
    KEEP(marker_poll);
    KEEP(marker_destroy);
    KEEP(queue_wait_marker);
    KEEP(segment_discard);
#undef KEEP
}

void fault_start(void) {
    decorate(&tables[0], &onuma__backend_opencl, open_opencl);
    decorate(&tables[1], &onuma__backend_level_zero, open_level_zero);
    decorate(&tables[2], &onuma__backend_host, open_host);
}
