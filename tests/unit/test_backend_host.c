/* SPDX-License-Identifier: Apache-2.0 */
/* The host backend, through the registry as the library reaches it. */
#include "backend/device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct fixture {
    onuma__config config;
    onuma__registry registry;
    onuma__device *device;
    const onuma_backend *ops;
    onuma_backend_device *backend;
} fixture;

static int set_up(void **state) {
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    onuma__config_init(&f->config);
    assert_int_equal(onuma__config_parse(&f->config, "backends:host", "test"), ONUMA_OK);
    assert_int_equal(onuma__registry_open(&f->config, NULL, &f->registry), ONUMA_OK);
    assert_int_equal(f->registry.device_count, 1);
    f->device = f->registry.devices[0];
    assert_int_equal(onuma__device_open(f->device), ONUMA_OK);
    f->ops = f->device->ops;
    f->backend = atomic_load(&f->device->backend);
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    onuma__registry_close(&f->registry);
    free(f);
    return 0;
}

static void host_alone_is_found_when_no_driver_is_loaded(void **state) {
    fixture *f = *state;
    assert_string_equal(f->device->id, "host");
    assert_int_equal(f->device->info.type, ONUMA_DEVICE_HOST);
    assert_true(f->device->info.memory_total > 0);
    size_t drivers = 0;
    for (size_t i = 0; i < f->registry.backend_count; i++) {
        const onuma__backend_state *backend = &f->registry.backends[i];
        if (backend->ops->api == ONUMA_API_HOST) {
            assert_int_equal(backend->status, ONUMA_BACKEND_OK);
            continue;
        }
        drivers++;
        assert_int_equal(backend->status, ONUMA_BACKEND_ABSENT);
        assert_null(backend->instance);
        assert_non_null(strstr(backend->detail, "backends:host"));
    }
    assert_true(drivers > 0);
}

static void segments_are_zeroed_pages(void **state) {
    fixture *f = *state;
    for (onuma_kind kind = ONUMA_KIND_HOST; kind <= ONUMA_KIND_SHARED; kind++) {
        onuma_segment segment = {.struct_size = sizeof segment};
        assert_int_equal(f->ops->segment_create(f->backend, kind, 100001, &segment), ONUMA_OK);
        assert_true(segment.size >= 100001);
        assert_int_equal(segment.address, (uintptr_t)segment.base);
        assert_int_equal(segment.kind, kind);
        assert_int_equal(segment.handle, 0);
        assert_false(segment.needs_map);
        unsigned char *bytes = segment.base;
        for (size_t i = 0; i < segment.size; i++)
            assert_int_equal(bytes[i], 0);
        memset(bytes, 0xa5, segment.size);
        f->ops->segment_destroy(f->backend, &segment);
    }
    onuma_segment segment = {.base = f};
    assert_int_equal(f->ops->segment_create(f->backend, ONUMA_KIND_DEVICE, 4096, &segment), ONUMA_ERROR_NOT_SUPPORTED);
    assert_int_equal(f->ops->segment_create(f->backend, ONUMA_KIND_HOST, SIZE_MAX, &segment),
                     ONUMA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(f->ops->segment_create(f->backend, ONUMA_KIND_HOST, (size_t)1 << 60, &segment),
                     ONUMA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(f->ops->segment_create(f->backend, ONUMA_KIND_HOST, 0, &segment), ONUMA_ERROR_OUT_OF_MEMORY);
    assert_ptr_equal(segment.base, f); /* untouched */
}

static void reserved_addresses_are_committed_by_page(void **state) {
    fixture *f = *state;
    const size_t page = f->device->info.page_size;
    onuma_segment segment = {.struct_size = sizeof segment};
    assert_int_equal(f->ops->segment_reserve(f->backend, ONUMA_KIND_SHARED, (size_t)1 << 36, &segment), ONUMA_OK);
    unsigned char *bytes = (unsigned char *)segment.base + 3 * page;
    assert_int_equal(f->ops->segment_commit(f->backend, &segment, 3 * page, 2 * page), ONUMA_OK);
    memset(bytes, 0x5a, 2 * page);
    assert_int_equal(f->ops->segment_decommit(f->backend, &segment, 3 * page, page), ONUMA_OK);
    assert_int_equal(bytes[page], 0x5a);
    assert_int_equal(f->ops->segment_commit(f->backend, &segment, 3 * page, page), ONUMA_OK);
    for (size_t i = 0; i < page; i++)
        assert_int_equal(bytes[i], 0);
    f->ops->segment_destroy(f->backend, &segment);
}

static void imports_are_left_to_the_program(void **state) {
    fixture *f = *state;
    char memory[100] = "mine";
    onuma_segment segment = {.struct_size = sizeof segment};
    assert_int_equal(f->ops->import_host(f->backend, memory + 3, 97, true, &segment), ONUMA_OK);
    assert_ptr_equal(segment.base, memory + 3);
    assert_int_equal(segment.size, 97);
    assert_true(segment.read_only);
    f->ops->segment_destroy(f->backend, &segment);
    assert_string_equal(memory, "mine");
}

static bool poll(const fixture *f, onuma_backend_marker *marker) {
    bool passed = false;
    assert_int_equal(f->ops->marker_poll(marker, &passed), ONUMA_OK);
    return passed;
}

static void markers_follow_the_timeline(void **state) {
    fixture *f = *state;
    onuma_host_timeline timeline = {.submitted = 3, .completed = 1};
    onuma_queue_order order = ONUMA_QUEUE_DETECT;
    onuma_backend_queue *queue;
    assert_int_equal(f->ops->queue_open(f->backend, (uintptr_t)&timeline, &order, &queue), ONUMA_OK);
    assert_int_equal(order, ONUMA_QUEUE_IN_ORDER);

    onuma_backend_marker *recorded, *wrapped;
    assert_int_equal(f->ops->marker_record(queue, &recorded), ONUMA_OK);
    onuma_native_event event = ONUMA_NATIVE_EVENT_INIT;
    event.api = ONUMA_API_HOST, event.handle = 2;
    assert_int_equal(f->ops->marker_wrap(queue, &event, &wrapped), ONUMA_OK);
    event.api = ONUMA_API_OPENCL;
    onuma_backend_marker *none = NULL;
    assert_int_equal(f->ops->marker_wrap(queue, &event, &none), ONUMA_ERROR_INVALID_ARGUMENT);

    timeline.submitted = 9; /* later work does not move a marker */
    assert_false(poll(f, recorded) || poll(f, wrapped));
    timeline.completed = 2;
    assert_true(poll(f, wrapped) && !poll(f, recorded));
    f->ops->queue_close(queue); /* markers outlive their queue */
    timeline.completed = 3;
    assert_true(poll(f, recorded));
    f->ops->marker_destroy(recorded);
    f->ops->marker_destroy(wrapped);

    order = ONUMA_QUEUE_UNORDERED;
    assert_int_equal(f->ops->queue_open(f->backend, (uintptr_t)&timeline, &order, &queue), ONUMA_OK);
    assert_int_equal(order, ONUMA_QUEUE_UNORDERED);
    f->ops->queue_close(queue);
    assert_int_equal(f->ops->queue_open(f->backend, 0, &order, &queue), ONUMA_ERROR_INVALID_ARGUMENT);
    assert_int_equal(f->ops->queue_open(f->backend, (uintptr_t)&timeline + 1, &order, &queue),
                     ONUMA_ERROR_INVALID_ARGUMENT);
}

static void lost_devices_stay_lost(void **state) {
    fixture *f = *state;
    assert_int_equal(onuma__device_note(f->device, ONUMA_ERROR_OUT_OF_MEMORY), ONUMA_ERROR_OUT_OF_MEMORY);
    assert_false(atomic_load(&f->device->lost));
    assert_int_equal(onuma__device_note(f->device, ONUMA_ERROR_DEVICE_LOST), ONUMA_ERROR_DEVICE_LOST);
    assert_true(atomic_load(&f->device->lost));
    assert_int_equal(onuma__device_note(f->device, ONUMA_OK), ONUMA_OK);
    assert_true(atomic_load(&f->device->lost));
}

static void adopting_is_refused_where_there_is_nothing_to_adopt(void **state) {
    fixture *f = *state;
    onuma__device *device = NULL;
    onuma_native_device native = ONUMA_NATIVE_DEVICE_INIT;
    assert_int_equal(onuma__registry_adopt(&f->registry, ONUMA_API_HOST, &native, &device), ONUMA_ERROR_NOT_SUPPORTED);
    assert_int_equal(onuma__registry_adopt(&f->registry, ONUMA_API_OPENCL, &native, &device), ONUMA_ERROR_NOT_FOUND);
    assert_int_equal(onuma__registry_from_queue(&f->registry, 99, 1, &device), ONUMA_ERROR_NOT_FOUND);
    bool last = true;
    assert_int_equal(onuma__registry_release(&f->registry, f->device, &last), ONUMA_OK);
    assert_false(last);
    assert_null(device);
}

/* Whether the system gives them or not, `info` says which, and segments come. */
static void large_pages_are_tried_where_wanted(void **state) {
    (void)state;
    onuma__config config;
    onuma__registry registry;
    onuma__config_init(&config);
    assert_int_equal(onuma__config_parse(&config, "backends:host,host.large_pages:on", "test"), ONUMA_OK);
    assert_int_equal(onuma__registry_open(&config, NULL, &registry), ONUMA_OK);
    onuma__device *device = registry.devices[0];
    assert_int_equal(onuma__device_open(device), ONUMA_OK);
    onuma_backend_device *backend = atomic_load(&device->backend);
    const char *why;
    const size_t large = onuma__os_large_page_size(&why);
    const size_t size = large ? 2 * large : (size_t)4 << 20;
    print_message("%s\n", device->info.driver);
    assert_non_null(strstr(device->info.driver, large ? "in pages of " : why));
    assert_int_equal((device->info.abilities & ONUMA_ABILITY_RESERVE) == 0, large != 0);
    assert_int_equal(device->info.sharing_notes, large ? 0 : ONUMA_SHARING_SMALL_PAGES);
    const size_t sizes[] = {size, size + onuma__os_abilities_get()->page_size};
    for (size_t i = 0; i < 2; i++) {
        onuma_segment segment = {.struct_size = sizeof segment};
        assert_int_equal(device->ops->segment_create(backend, ONUMA_KIND_SHARED, sizes[i], &segment), ONUMA_OK);
        assert_int_equal(segment.size, sizes[i]);
        memset(segment.base, 1, segment.size);
        device->ops->segment_destroy(backend, &segment);
    }
    onuma__registry_close(&registry);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(host_alone_is_found_when_no_driver_is_loaded),
        TEST(segments_are_zeroed_pages),
        TEST(reserved_addresses_are_committed_by_page),
        TEST(imports_are_left_to_the_program),
        TEST(markers_follow_the_timeline),
        TEST(lost_devices_stay_lost),
        TEST(adopting_is_refused_where_there_is_nothing_to_adopt),
        cmocka_unit_test(large_pages_are_tried_where_wanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
