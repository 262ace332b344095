/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of the OpenCL backend through its table alone, with no pool and no queue rules: a registry with the
 * stack's first device open, and blocks of its segments as the upper layers keep them.
 */
#ifndef ONUMA_TESTS_BACKEND_FIXTURE_H
#define ONUMA_TESTS_BACKEND_FIXTURE_H

#include "backend/device.h"
#include "kernel.h"

typedef struct fixture {
    onuma__config config;
    onuma__registry registry;
    onuma__device *device;
    const onuma_backend *ops;
    onuma_backend_device *backend;
    kernel_set kernels;
} fixture;

static inline const char *way(void) {
    return getenv("ONUMA_TEST_WAY");
}

static inline bool on_stack(const char *name) {
    return strcmp(getenv("ONUMA_TEST_STACK"), name) == 0;
}

/* A size for everyone, and a smaller one for the simulator. */
static inline size_t scaled(size_t size) {
    return on_stack("oclgrind") ? size / 32 : size;
}

static inline void ok(onuma_result r) {
    if (r != ONUMA_OK) fail_msg("%s: %s", onuma_result_name(r), onuma_last_error());
}

static inline int open_registry(void **state) {
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    onuma__config_init(&f->config);
    ok(onuma__config_parse(&f->config, getenv("OPENNUMA_CONF"), "OPENNUMA_CONF"));
    ok(onuma__registry_open(&f->config, NULL, &f->registry));
    for (size_t i = 0; i < f->registry.device_count; i++)
        if (strcmp(f->registry.devices[i]->id, "opencl:0") == 0) f->device = f->registry.devices[i];
    assert_non_null(f->device);
    *state = f;
    return 0;
}

static inline int set_up(void **state) {
    open_registry(state);
    fixture *f = *state;
    ok(onuma__device_open(f->device));
    f->ops = f->device->ops;
    f->backend = atomic_load(&f->device->backend);
    kernel_set_open(&f->kernels, f->device->info.native_context, f->device->info.native_device, 0);
    return 0;
}

static inline int tear_down(void **state) {
    fixture *f = *state;
    if (f->kernels.queue != NULL) kernel_set_close(&f->kernels);
    onuma__registry_close(&f->registry);
    free(f);
    return 0;
}

/* ------------------------------------------------------- blocks of a segment */

/* What the upper layers keep of a block: its place and its view. */
typedef struct block {
    onuma_segment *segment;
    size_t offset, size;
    onuma_view view;
} block;

static inline block block_at(const fixture *f, onuma_segment *segment, size_t offset, size_t size) {
    block b = {.segment = segment, .offset = offset, .size = size, .view = ONUMA_VIEW_INIT};
    b.view.size = size;
    if (segment->address != 0) {
        b.view.via = f->device->info.via;
        b.view.pointer = segment->address + offset;
    } else {
        b.view.via = ONUMA_VIA_HANDLE;
        ok(f->ops->view_create(f->backend, segment, offset, size, &b.view.handle));
        assert_int_not_equal(b.view.handle, segment->handle); /* never the parent */
    }
    return b;
}

static inline void block_drop(const fixture *f, block *b) {
    if (b->view.handle != 0) f->ops->view_release(f->backend, b->view.handle);
}

static inline void *map(const fixture *f, block *b, onuma_access mode) {
    if (b->segment->needs_map) ok(f->ops->host_map(f->backend, b->segment, b->view.handle, b->offset, b->size, mode));
    return (char *)b->segment->base + b->offset;
}

static inline void unmap(const fixture *f, block *b, onuma_access mode) {
    if (b->segment->needs_map) ok(f->ops->host_unmap(f->backend, b->segment, b->view.handle, b->offset, b->size, mode));
}

static inline void cpu_fills(const fixture *f, block *b, cl_uint seed) {
    pattern_fill(map(f, b, ONUMA_ACCESS_WRITE), b->size / 4, seed);
    unmap(f, b, ONUMA_ACCESS_WRITE);
}

static inline size_t cpu_finds_wrong(const fixture *f, block *b, cl_uint seed) {
    size_t wrong = pattern_wrong(map(f, b, ONUMA_ACCESS_READ), b->size / 4, seed);
    unmap(f, b, ONUMA_ACCESS_READ);
    return wrong;
}

static inline onuma_segment segment_of(const fixture *f, onuma_kind kind, size_t size) {
    onuma_segment segment = {.struct_size = sizeof segment};
    ok(f->ops->segment_create(f->backend, kind, size, &segment));
    assert_true(segment.size >= size);
    assert_int_equal(segment.kind, kind);
    assert_non_null(segment.base);
    return segment;
}

/* Where the first aligned block of a segment begins. */
static inline size_t first_offset(const fixture *f, const onuma_segment *segment) {
    const size_t align = f->device->info.alignment;
    return (align - (uintptr_t)segment->base % align) % align;
}

#define DESCRIBED(test) cmocka_unit_test_setup_teardown(test, open_registry, tear_down)
#define OPENED(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

#endif
