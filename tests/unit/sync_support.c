/* SPDX-License-Identifier: Apache-2.0 */
#include "sync_support.h"

#include <stdlib.h>
#include <string.h>

fake_driver fake;
static onuma_backend table; /* the host's, with the functions below */

#define COUNT(what) atomic_fetch_add(&fake.what, 1)

static void check_locked(void) {
    if (fake.wants_lock && atomic_load(&fake.locked) == 0) COUNT(unlocked_calls);
}

static onuma_result fake_queue_open(onuma_backend_device *device, uint64_t native, onuma_queue_order *order,
                                    onuma_backend_queue **out) {
    COUNT(opens);
    return onuma__backend_host.queue_open(device, native, order, out);
}
static void fake_queue_close(onuma_backend_queue *queue) {
    COUNT(closes);
    onuma__backend_host.queue_close(queue);
}
static onuma_result fake_record(onuma_backend_queue *queue, onuma_backend_marker **out) {
    COUNT(records);
    check_locked();
    onuma_result r = atomic_load(&fake.record);
    if (r != ONUMA_OK) return onuma__fail(r, "fake");
    COUNT(live_markers);
    return onuma__backend_host.marker_record(queue, out);
}
static onuma_result fake_wrap(onuma_backend_queue *queue, const onuma_native_event *event, onuma_backend_marker **out) {
    onuma_result r = onuma__backend_host.marker_wrap(queue, event, out);
    if (r == ONUMA_OK) COUNT(live_markers);
    return r;
}
static onuma_result fake_poll(onuma_backend_marker *marker, bool *passed) {
    COUNT(polls);
    if (atomic_load(&fake.poll_gate) && !atomic_exchange(&fake.poll_waits, true))
        while (atomic_load(&fake.poll_gate))
            onuma__os_yield();
    onuma_result r = atomic_load(&fake.poll);
    if (r != ONUMA_OK) return onuma__fail(r, "fake");
    return onuma__backend_host.marker_poll(marker, passed);
}
static void fake_destroy(onuma_backend_marker *marker) {
    atomic_fetch_sub(&fake.live_markers, 1);
    onuma__backend_host.marker_destroy(marker);
}
static onuma_result fake_wait(onuma_backend_queue *queue, onuma_backend_marker *marker) {
    (void)queue;
    check_locked();
    if (marker) COUNT(waits);
    return ONUMA_OK;
}
static onuma_result fake_map(onuma_backend_device *device, const onuma_segment *segment, uint64_t view, size_t offset,
                             size_t size, onuma_access mode) {
    (void)device, (void)segment, (void)view, (void)offset, (void)size;
    if (atomic_load(&fake.map) != ONUMA_OK) return onuma__fail(atomic_load(&fake.map), "fake");
    COUNT(maps);
    if (atomic_exchange(&fake.mapped_mode, mode) != 0) return onuma__fail(ONUMA_ERROR_INTERNAL, "mapped twice");
    return ONUMA_OK;
}
static onuma_result fake_unmap(onuma_backend_device *device, const onuma_segment *segment, uint64_t view, size_t offset,
                               size_t size, onuma_access mode) {
    (void)device, (void)segment, (void)view, (void)offset, (void)size;
    if (atomic_load(&fake.unmap) != ONUMA_OK) return onuma__fail(atomic_load(&fake.unmap), "fake");
    COUNT(unmaps);
    if (atomic_exchange(&fake.mapped_mode, 0) != mode) return onuma__fail(ONUMA_ERROR_INTERNAL, "not mapped so");
    return ONUMA_OK;
}
static onuma_result fake_view(onuma_backend_device *device, const onuma_segment *segment, size_t offset, size_t size,
                              uint64_t *handle) {
    (void)device, (void)size;
    COUNT(view_waiters);
    while (atomic_load(&fake.view_gate))
        onuma__os_yield();
    if (atomic_load(&fake.view) != ONUMA_OK) return onuma__fail(atomic_load(&fake.view), "fake");
    COUNT(views_made);
    *handle = (uint64_t)(uintptr_t)segment->base + offset + 1;
    return ONUMA_OK;
}
static void fake_view_retain(onuma_backend_device *device, uint64_t handle) {
    (void)device, (void)handle;
    COUNT(views_retained);
}
static void fake_view_release(onuma_backend_device *device, uint64_t handle) {
    (void)device, (void)handle;
    COUNT(views_released);
}

/* ---------------------------------------------------------------- the engine's memory */

static const onuma_segment *segment_of(const onuma__span *span) {
    return span->own;
}

static onuma_result acquire(void *self, size_t size, onuma__span *out) {
    fixture *f = self;
    onuma_segment *segment = calloc(1, sizeof *segment);
    assert_non_null(segment);
    onuma_backend_device *backend = atomic_load(&f->device->backend);
    onuma_result r = table.segment_create(backend, ONUMA_KIND_SHARED, size, segment);
    assert_int_equal(r, ONUMA_OK);
    if (f->device->info.abilities & ONUMA_ABILITY_HANDLES) segment->address = 0;
    *out = (onuma__span){segment->base, segment->size, segment};
    f->spans++;
    return ONUMA_OK;
}

static void release(void *self, const onuma__span *span, size_t committed) {
    fixture *f = self;
    (void)committed;
    table.segment_destroy(atomic_load(&f->device->backend), span->own);
    free(span->own);
    f->released_spans++;
}

static void keep_line(void *user, onuma_log_level level, const char *line) {
    fixture *f = user;
    (void)level;
    size_t used = strlen(f->lines);
    if (used + strlen(line) + 2 < sizeof f->lines) {
        strcpy(f->lines + used, line);
        strcat(f->lines, "\n");
    }
}

static void make_table(void) {
    assert_int_equal(onuma__backend_complete(&onuma__backend_host, &table), ONUMA_OK);
    table.queue_open = fake_queue_open;
    table.queue_close = fake_queue_close;
    table.marker_record = fake_record;
    table.marker_wrap = fake_wrap;
    table.marker_poll = fake_poll;
    table.marker_destroy = fake_destroy;
    table.queue_wait_marker = fake_wait;
    table.host_map = fake_map;
    table.host_unmap = fake_unmap;
    table.view_create = fake_view;
    table.view_retain = fake_view_retain;
    table.view_release = fake_view_release;
}

int sync_set_up(void **state) {
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    memset(&fake, 0, sizeof fake);
    make_table();
    f->log = (onuma__log){ONUMA_LOG_WARN, keep_line, f};
    onuma__config_init(&f->config);
    assert_int_equal(onuma__config_parse(&f->config, "backends:host,check:hazards", "test"), ONUMA_OK);
    assert_int_equal(onuma__registry_open(&f->config, &f->log, &f->registry), ONUMA_OK);
    f->device = f->registry.devices[0];
    assert_int_equal(onuma__device_open(f->device), ONUMA_OK);
    f->device->ops = &table;
    f->owner = (onuma__owner){.device = f->device, .kind = ONUMA_KIND_SHARED, .segment = segment_of};
    onuma__engine_desc desc = {.source = {.self = f, .acquire = acquire, .release = release},
                               .mode = ONUMA_SOURCE_SEGMENTS,
                               .alignment = 64,
                               .cache_bytes = 1u << 20,
                               .owner = &f->owner};
    assert_int_equal(onuma__engine_create(&desc, &f->engine), ONUMA_OK);
    assert_int_equal(onuma__sync_begin_engine(f->engine), ONUMA_OK);
    f->owner.engine = f->engine;
    *state = f;
    return 0;
}

int sync_tear_down(void **state) {
    fixture *f = *state;
    if (f->engine) {
        (void)onuma__sync_drop_engine(f->engine, 0);
        onuma__engine_destroy(f->engine);
    }
    onuma__queues_drop_device(f->device, 0);
    onuma__registry_close(&f->registry);
    free(f);
    return 0;
}

void needs_mapping(fixture *f) {
    f->device->info.abilities &= ~(uint32_t)ONUMA_ABILITY_COHERENT;
}

void gives_handles(fixture *f) {
    f->device->info.abilities |= ONUMA_ABILITY_HANDLES;
}

void *take(fixture *f, size_t size, onuma__queue *queue) {
    void *out = NULL;
    onuma__tag tag = queue ? queue->tag : 0;
    int32_t r = onuma__engine_alloc(f->engine, size, 0, tag, &out);
    while (r == ONUMA__MISS) {
        r = onuma__engine_grow(f->engine, size, 0, tag, &out);
        if (r == ONUMA_OK && !out) r = onuma__engine_alloc(f->engine, size, 0, tag, &out);
    }
    assert_int_equal(r, ONUMA_OK);
    if (queue) onuma__sync_note(f->engine, queue);
    return out;
}

onuma__queue *wrap(fixture *f, onuma_host_timeline *timeline, onuma_queue_order order) {
    onuma_queue_desc desc = ONUMA_QUEUE_DESC_INIT;
    onuma__queue *queue = NULL;
    desc.order = order;
    assert_int_equal(onuma__queue_wrap(f->device, ONUMA_API_HOST, (uint64_t)(uintptr_t)timeline, &desc, &queue),
                     ONUMA_OK);
    return queue;
}

void drop(onuma__queue *queue) {
    bool last = false;
    assert_int_equal(onuma__queue_release(queue, &last), ONUMA_OK);
    assert_true(last);
}

void submit(onuma_host_timeline *timeline) {
    atomic_fetch_add(&timeline->submitted, 1);
}

void complete(onuma_host_timeline *timeline) {
    atomic_store(&timeline->completed, atomic_load(&timeline->submitted));
}

onuma_result use(onuma__queue *queue, void *ptr, onuma_access mode) {
    return onuma__sync_use_many(queue, 1, &ptr, &mode);
}

onuma_native_event event_at(uint64_t value) {
    onuma_native_event event = ONUMA_NATIVE_EVENT_INIT;
    event.api = ONUMA_API_HOST;
    event.handle = value;
    return event;
}

struct helper {
    onuma__os_worker *worker;
};

helper *start(void (*fn)(void *), void *argument) {
    helper *thread = malloc(sizeof *thread);
    assert_non_null(thread);
    assert_int_equal(onuma__os_worker_start(fn, argument, &thread->worker), ONUMA_OK);
    return thread;
}

void join(helper *thread) {
    onuma__os_worker_join(thread->worker);
    free(thread);
}

bool serves(fixture *f, size_t size, onuma__queue *queue, const void *ptr) {
    void *out;
    bool found = false;
    while (onuma__engine_alloc(f->engine, size, 0, queue ? queue->tag : 0, &out) == ONUMA_OK)
        if (out == ptr) found = true;
    return found;
}

void poll_gives(fixture *f, bool expected) {
    assert_int_equal(onuma__sync_poll(f->engine), expected);
}
