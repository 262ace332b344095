/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Level Zero backend through its table, on Intel's driver without hardware: what it says of devices, what memory
 * is, and markers, which between.c sets in the device's place.
 */
#include "backend/device.h"
#include "backend/level_zero/level_zero.h"
#include "between.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define GIB ((size_t)1 << 30)

typedef struct fixture {
    onuma__config config;
    onuma__registry registry;
    onuma__device *device;
    const onuma_backend *ops;
    onuma_backend_device *backend;
    ze_context_handle_t context;
    ze_device_handle_t id;
    between_books before;
} fixture;

static void ok(onuma_result r) {
    if (r != ONUMA_OK) fail_msg("%s: %s", onuma_result_name(r), onuma_last_error());
}

/* The call fails so, and the text holds `part`. */
static void fails(onuma_result r, onuma_result expected, const char *part) {
    if (r != expected)
        fail_msg("%s instead of %s: %s", onuma_result_name(r), onuma_result_name(expected), onuma_last_error());
    if (strstr(onuma_last_error(), part) == NULL) fail_msg("no \"%s\" in \"%s\"", part, onuma_last_error());
}

static bool is_integrated(void) {
    return strcmp(getenv("ONUMA_TEST_CHIP"), "tgllp") == 0;
}

static size_t device_number(void) {
    return (size_t)atoi(getenv("CreateMultipleRootDevices"));
}

static void open_registry(fixture *f) {
    f->before = between_books_now();
    onuma__config_init(&f->config);
    ok(onuma__registry_open(&f->config, NULL, &f->registry));
    f->device = NULL;
    for (size_t i = 0; i < f->registry.device_count; i++)
        if (strcmp(f->registry.devices[i]->id, "level_zero:0") == 0) f->device = f->registry.devices[i];
    assert_non_null(f->device);
    f->ops = f->device->ops;
}

static void open_device(fixture *f) {
    ok(onuma__device_open(f->device));
    f->backend = atomic_load(&f->device->backend);
    f->context = (ze_context_handle_t)(uintptr_t)f->device->info.native_context;
    f->id = (ze_device_handle_t)(uintptr_t)f->device->info.native_device;
    assert_non_null(f->context);
    assert_non_null(f->id);
}

static int set_up(void **state) {
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    open_registry(f);
    open_device(f);
    *state = f;
    return 0;
}

static void close_registry(fixture *f) {
    onuma__registry_close(&f->registry);
}

/* Everything that the library made in the driver is gone. */
static int tear_down(void **state) {
    fixture *f = *state;
    close_registry(f);
    const between_books after = between_books_now();
    if (memcmp(&after, &f->before, sizeof after) != 0)
        fail_msg("left: %d contexts, %d memory, %d pools, %d events, %d lists, %d imports",
                 after.contexts - f->before.contexts, after.memory - f->before.memory, after.pools - f->before.pools,
                 after.events - f->before.events, after.lists - f->before.lists, after.imports - f->before.imports);
    between_stand_in(false, BETWEEN_SYSMAN_NONE, 0);
    between_claim(0);
    free(f);
    return 0;
}

static onuma_segment segment_of(const fixture *f, onuma_kind kind, size_t size) {
    onuma_segment segment = {.struct_size = sizeof segment};
    ok(f->ops->segment_create(f->backend, kind, size, &segment));
    assert_true(segment.size >= size);
    assert_int_equal(segment.kind, kind);
    assert_int_equal(segment.address, (uintptr_t)segment.base);
    assert_int_equal(segment.handle, 0);
    assert_false(segment.needs_map);
    return segment;
}

/* ------------------------------------------------------------------- devices */

static void devices_are_described(void **state) {
    fixture *f = *state;
    char text[256];
    size_t found = 0;
    for (size_t i = 0; i < f->registry.device_count; i++) {
        const onuma__device *d = f->registry.devices[i];
        if (d->ops->api != ONUMA_API_LEVEL_ZERO) continue;
        found++;
        assert_int_equal(d->info.type, is_integrated() ? ONUMA_DEVICE_INTEGRATED : ONUMA_DEVICE_DISCRETE);
        assert_int_equal(d->info.kinds, 7);
        assert_string_equal(d->info.shared_via, "usm");
        assert_int_equal(d->info.via, ONUMA_VIA_POINTER);
        assert_true(strncmp(d->info.driver, "Level Zero 1.", 13) == 0 && strlen(d->info.name) > 0);
        assert_true(d->info.memory_total > GIB && d->info.max_segment == d->info.memory_total); /* limits are relaxed */
        assert_int_equal(d->info.alignment, 128);
        assert_int_equal(d->info.proof, ONUMA_PROOF_ASSUMED);
        assert_int_equal(d->info.sharing_notes, ONUMA_SHARING_NO_KERNELS);
        assert_non_null(strstr(d->info.sharing_detail, "runs no kernels"));
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(f->registry.devices[k]->info.physical, d->info.physical);
    }
    assert_int_equal(found, device_number());
    assert_string_equal(f->registry.devices[0]->id, "level_zero:0"); /* before the host */
    f->ops->describe(f->device->instance, text, sizeof text);
    assert_non_null(strstr(text, "of 1 driver, version 1.3, between processes: memory"));
}

static void asking_makes_no_context(void **state) {
    fixture *f = *state;
    close_registry(f);
    open_registry(f);
    assert_int_equal(between_books_now().contexts, f->before.contexts);
    assert_int_equal(f->device->info.native_context, 0);
    open_device(f);
    assert_int_equal(between_books_now().contexts, f->before.contexts + 1);
}

static void free_memory_is_the_systems_or_unknown(void **state) {
    fixture *f = *state;
    uint64_t bytes = 1, total, available;
    ok(f->ops->memory_free(f->backend, &bytes));
    onuma__os_memory(&total, &available);
    if (is_integrated())
        assert_true(bytes > 0 && bytes <= f->device->info.memory_total && bytes <= total);
    else
        assert_int_equal(bytes, 0);
}

/* Of the device's own memory, not the module of the system's. */
static void system_management_tells_of_free_memory(void **state) {
    fixture *f = *state;
    onuma_segment segment = {.struct_size = sizeof segment};
    for (between_sysman how = BETWEEN_SYSMAN_OLD; how <= BETWEEN_SYSMAN_NEW; how++) {
        uint64_t bytes = 0;
        close_registry(f);
        if (how == BETWEEN_SYSMAN_OLD) setenv("ZES_ENABLE_SYSMAN", "1", 1);
        between_stand_in(false, how, 3u << 20);
        open_registry(f);
        open_device(f);
        unsetenv("ZES_ENABLE_SYSMAN");
        ok(f->ops->memory_free(f->backend, &bytes));
        if (is_integrated()) continue;
        assert_int_equal(bytes, 3u << 20);
        /* More than that is not asked of the driver. */
        const uint64_t asked = between_calls("zeMemAllocDevice");
        fails(f->ops->segment_create(f->backend, ONUMA_KIND_DEVICE, 4u << 20, &segment), ONUMA_ERROR_OUT_OF_MEMORY,
              "4194304 bytes of kind device");
        fails(f->ops->segment_create(f->backend, ONUMA_KIND_DEVICE, 4u << 20, &segment), ONUMA_ERROR_OUT_OF_MEMORY,
              "3145728 are free");
        assert_int_equal(between_calls("zeMemAllocDevice"), asked);
        segment = segment_of(f, ONUMA_KIND_DEVICE, 2u << 20);
        f->ops->segment_destroy(f->backend, &segment);
        /* A part of a sum is no sum. */
        between_fail("zesMemoryGetState", 1, 1, ZE_RESULT_ERROR_UNSUPPORTED_FEATURE);
        ok(f->ops->memory_free(f->backend, &bytes));
        between_fail_none();
        assert_int_equal(bytes, 0);
    }
}

/* -------------------------------------------------------------------- memory */

static void memory_is_what_it_says(void **state) {
    fixture *f = *state;
    const size_t sizes[] = {1, 4096, 65536, (1u << 20) + 1, 64u << 20};
    for (onuma_kind kind = ONUMA_KIND_HOST; kind <= ONUMA_KIND_DEVICE; kind++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            onuma_segment segment = segment_of(f, kind, sizes[i]);
            ze_memory_allocation_properties_t properties = {.stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES};
            ze_device_handle_t owner = NULL;
            assert_int_equal((uintptr_t)segment.base % f->device->info.alignment, 0);
            /* An address inside is known too. */
            assert_int_equal(
                zeMemGetAllocProperties(f->context, (char *)segment.base + segment.size - 1, &properties, &owner),
                ZE_RESULT_SUCCESS);
            const bool host = kind == ONUMA_KIND_HOST || (kind == ONUMA_KIND_SHARED && !is_integrated());
            assert_int_equal(properties.type, host                        ? ZE_MEMORY_TYPE_HOST
                                              : kind == ONUMA_KIND_SHARED ? ZE_MEMORY_TYPE_SHARED
                                                                          : ZE_MEMORY_TYPE_DEVICE);
            if (kind != ONUMA_KIND_DEVICE) {
                memset(segment.base, 0x5a, segment.size);
                assert_int_equal(((unsigned char *)segment.base)[segment.size - 1], 0x5a);
            }
            f->ops->segment_destroy(f->backend, &segment);
        }
}

static void large_memory_asks_for_relaxed_limits(void **state) {
    fixture *f = *state;
    /* Of device memory of its own the discrete one, which is none, gives no more than 4 GiB. */
    const onuma_kind kind = is_integrated() ? ONUMA_KIND_DEVICE : ONUMA_KIND_SHARED;
    assert_true(f->backend->facts.stated_most < 5 * GIB);
    onuma_segment segment = segment_of(f, kind, 5 * GIB);
    f->ops->segment_destroy(f->backend, &segment);
}

static void what_cannot_be_is_refused(void **state) {
    fixture *f = *state;
    onuma_segment segment = {.struct_size = sizeof segment};
    fails(f->ops->segment_create(f->backend, ONUMA_KIND_SHARED, 0, &segment), ONUMA_ERROR_OUT_OF_MEMORY, "0 bytes");
    fails(f->ops->segment_create(f->backend, ONUMA_KIND_SHARED, SIZE_MAX, &segment), ONUMA_ERROR_OUT_OF_MEMORY,
          "18446744073709551615 bytes");
    fails(f->ops->segment_create(f->backend, 9, 4096, &segment), ONUMA_ERROR_NOT_SUPPORTED, "kind 9");
    for (onuma_kind kind = ONUMA_KIND_HOST; kind <= ONUMA_KIND_DEVICE; kind++)
        fails(f->ops->segment_create(f->backend, kind, GIB << 20, &segment), ONUMA_ERROR_OUT_OF_MEMORY,
              "1125899906842624 bytes of kind");
    assert_null(segment.base);
    /* The driver's own words, with what it states. */
    between_fail("zeMemAllocDevice", 1, 1, ZE_RESULT_ERROR_UNSUPPORTED_SIZE);
    fails(f->ops->segment_create(f->backend, ONUMA_KIND_DEVICE, 1u << 20, &segment), ONUMA_ERROR_OUT_OF_MEMORY,
          "allows 4294959104 at once, or more: ZE_RESULT_ERROR_UNSUPPORTED_SIZE (0x78000009)");
    between_fail("zeMemAllocDevice", 1, 1, ZE_RESULT_ERROR_DEVICE_LOST);
    fails(f->ops->segment_create(f->backend, ONUMA_KIND_DEVICE, 1u << 20, &segment), ONUMA_ERROR_DEVICE_LOST,
          "0x70000001");
    between_fail("zeMemGetAddressRange", 1, 1, ZE_RESULT_ERROR_UNKNOWN); /* what was given goes back */
    fails(f->ops->segment_create(f->backend, ONUMA_KIND_HOST, 4096, &segment), ONUMA_ERROR_INTERNAL, "4096 bytes");
    between_fail_none();
}

static void memory_of_the_program_is_imported(void **state) {
    fixture *f = *state;
    const size_t page = f->device->info.page_size, size = 16 * page;
    onuma_segment segment = {.struct_size = sizeof segment};
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    assert_true((f->device->info.abilities & ONUMA_ABILITY_IMPORT) != 0);
    fails(f->ops->import_host(f->backend, memory + 1, page, false, &segment), ONUMA_ERROR_NOT_SUPPORTED, "whole pages");
    fails(f->ops->import_host(f->backend, memory, page + 1, false, &segment), ONUMA_ERROR_NOT_SUPPORTED, "whole pages");
    fails(f->ops->import_host(f->backend, memory, 0, false, &segment), ONUMA_ERROR_NOT_SUPPORTED, "0 bytes");
    for (int i = 0; i < 3; i++) {
        ok(f->ops->import_host(f->backend, memory, size, i == 1, &segment));
        assert_ptr_equal(segment.base, memory);
        assert_int_equal(segment.address, (uintptr_t)memory);
        assert_int_equal(segment.size, size);
        assert_int_equal(segment.read_only, i == 1);
        assert_int_equal(between_books_now().imports, f->before.imports + 1);
        f->ops->segment_destroy(f->backend, &segment);
        memory[size - 1] = 1; /* still the program's */
    }
    munmap(memory, size);
}

/* Where the context would go, memory and all. */
static void a_context_stays_while_memory_lives(void **state) {
    fixture *f = *state;
    onuma_segment segment = segment_of(f, ONUMA_KIND_SHARED, 4096);
    const uint64_t destroyed = between_calls("zeContextDestroy");
    close_registry(f);
    assert_int_equal(between_calls("zeContextDestroy"), destroyed);
    memset(segment.base, 1, 4096);
    f->before = between_books_now(); /* that is so by intent */
    open_registry(f);
}

/* ------------------------------------------------------------------- adoption */

static void contexts_of_the_program_are_adopted(void **state) {
    fixture *f = *state;
    close_registry(f);
    between_stand_in(true, BETWEEN_SYSMAN_NONE, 0);
    open_registry(f);
    open_device(f);
    const ze_context_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
    ze_context_handle_t context = NULL;
    const onuma__ze_facts *facts = &f->backend->facts;
    assert_int_equal(zeContextCreate(facts->driver, &desc, &context), ZE_RESULT_SUCCESS);
    const uint64_t list = between_list_create(context, f->id), own_list = between_list_create(f->context, f->id);
    const uint64_t queue = between_queue_create(context, f->id);

    onuma_native_device native = ONUMA_NATIVE_DEVICE_INIT;
    onuma__device *adopted = NULL, *again = NULL, *own = NULL;
    fails(onuma__registry_adopt(&f->registry, ONUMA_API_LEVEL_ZERO, &native, &adopted), ONUMA_ERROR_INVALID_ARGUMENT,
          "no ze_context_handle_t");
    native.context = 0x10;
    fails(onuma__registry_adopt(&f->registry, ONUMA_API_LEVEL_ZERO, &native, &adopted), ONUMA_ERROR_INVALID_ARGUMENT,
          "0x10 is no ze_context_handle_t");
    char zeros[64] __attribute__((aligned(16))) = {0};
    native.context = (uintptr_t)zeros;
    fails(onuma__registry_adopt(&f->registry, ONUMA_API_LEVEL_ZERO, &native, &adopted), ONUMA_ERROR_INVALID_ARGUMENT,
          "no ze_context_handle_t");
    native.context = (uintptr_t)context;
    native.device = (uintptr_t)context; /* none of the devices */
    fails(onuma__registry_adopt(&f->registry, ONUMA_API_LEVEL_ZERO, &native, &adopted), ONUMA_ERROR_INVALID_ARGUMENT,
          "names none of the");
    native.device = (uintptr_t)f->id;
    ok(onuma__registry_adopt(&f->registry, ONUMA_API_LEVEL_ZERO, &native, &adopted));
    assert_ptr_not_equal(adopted, f->device);
    assert_string_equal(adopted->info.physical, f->device->info.physical);
    if (device_number() == 1) { /* the only one goes without saying */
        native.device = 0;
        ok(onuma__registry_adopt(&f->registry, ONUMA_API_LEVEL_ZERO, &native, &again));
        assert_ptr_equal(again, adopted);
        bool last = true;
        ok(onuma__registry_release(&f->registry, again, &last));
        assert_false(last);
    }
    ok(onuma__registry_from_queue(&f->registry, ONUMA_API_LEVEL_ZERO, list, &again));
    assert_ptr_equal(again, adopted);
    ok(onuma__registry_from_queue(&f->registry, ONUMA_API_LEVEL_ZERO, own_list, &own));
    assert_ptr_equal(own, f->device);
    fails(onuma__registry_from_queue(&f->registry, ONUMA_API_LEVEL_ZERO, queue, &own), ONUMA_ERROR_NOT_SUPPORTED,
          "onuma_device_adopt");
    fails(onuma__registry_from_queue(&f->registry, ONUMA_API_LEVEL_ZERO, 1, &own), ONUMA_ERROR_INVALID_ARGUMENT,
          "no ze_command_list_handle_t");

    /* A list of another context cannot use our memory. */
    onuma_backend_queue *opened = NULL;
    onuma_queue_order order = ONUMA_QUEUE_DETECT;
    fails(f->ops->queue_open(f->backend, list, &order, &opened), ONUMA_ERROR_INVALID_ARGUMENT, "in context");

    onuma_backend_device *backend = atomic_load(&adopted->backend);
    onuma_segment segment = {.struct_size = sizeof segment};
    ok(f->ops->segment_create(backend, ONUMA_KIND_SHARED, 4096, &segment));
    ze_memory_allocation_properties_t properties = {.stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES};
    assert_int_equal(zeMemGetAllocProperties(context, segment.base, &properties, NULL), ZE_RESULT_SUCCESS);
    assert_int_not_equal(properties.type, ZE_MEMORY_TYPE_UNKNOWN);
    f->ops->segment_destroy(backend, &segment);
    bool last = true;
    ok(onuma__registry_release(&f->registry, again, &last));
    assert_false(last);
    ok(onuma__registry_release(&f->registry, adopted, &last));
    assert_true(last);
    between_queue_destroy(queue);
    between_queue_destroy(own_list);
    between_queue_destroy(list);
    assert_int_equal(zeContextDestroy(context), ZE_RESULT_SUCCESS); /* still the program's */
}

static void an_old_driver_does_not_tell_of_queues(void **state) {
    fixture *f = *state;
    onuma__device *device = NULL;
    const uint64_t list = between_list_create(f->context, f->id);
    fails(onuma__registry_from_queue(&f->registry, ONUMA_API_LEVEL_ZERO, list, &device), ONUMA_ERROR_NOT_SUPPORTED,
          "use onuma_device_adopt");
    between_queue_destroy(list);
}

/* -------------------------------------------------------------------- markers */

static onuma_backend_queue *open_queue(const fixture *f, uint64_t native) {
    onuma_backend_queue *queue = NULL;
    onuma_queue_order order = ONUMA_QUEUE_DETECT;
    ok(f->ops->queue_open(f->backend, native, &order, &queue));
    assert_int_equal(order, ONUMA_QUEUE_UNORDERED);
    order = ONUMA_QUEUE_IN_ORDER;
    f->ops->queue_close(queue);
    ok(f->ops->queue_open(f->backend, native, &order, &queue));
    assert_int_equal(order, ONUMA_QUEUE_IN_ORDER);
    return queue;
}

static bool passed(const fixture *f, onuma_backend_marker *marker) {
    bool yes = false;
    ok(f->ops->marker_poll(marker, &yes));
    return yes;
}

static void bad_queues_and_events_are_refused(void **state) {
    fixture *f = *state;
    onuma_backend_queue *queue = NULL;
    onuma_backend_marker *marker = NULL;
    onuma_queue_order order = ONUMA_QUEUE_DETECT;
    char zeros[64] __attribute__((aligned(16))) = {0};
    const uint64_t bad[] = {0, 1, 8, 9, (uintptr_t)zeros, (uintptr_t)zeros + 1, UINT64_C(0xff007fffffde0000)};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        fails(f->ops->queue_open(f->backend, bad[i], &order, &queue), ONUMA_ERROR_INVALID_ARGUMENT,
              bad[i] & 1 ? "no ze_command_list_handle_t" : "no ze_command_queue_handle_t");
    const uint64_t native = between_queue_create(f->context, f->id);
    queue = open_queue(f, native);
    onuma_native_event event = ONUMA_NATIVE_EVENT_INIT;
    fails(f->ops->marker_wrap(queue, &event, &marker), ONUMA_ERROR_INVALID_ARGUMENT, "which a Level Zero queue takes");
    event.api = ONUMA_API_LEVEL_ZERO;
    fails(f->ops->marker_wrap(queue, &event, &marker), ONUMA_ERROR_INVALID_ARGUMENT, "no ze_event_handle_t");
    f->ops->queue_close(queue);
    between_queue_destroy(native);
}

static void markers_pass_when_the_work_before_is_done(void **state) {
    fixture *f = *state;
    for (int is_list = 0; is_list < 2; is_list++) {
        const uint64_t native =
            is_list ? between_list_create(f->context, f->id) : between_queue_create(f->context, f->id);
        onuma_backend_queue *queue = open_queue(f, native);
        onuma_backend_marker *idle, *busy, *wrapped;
        ze_event_handle_t gate = between_event_create(f->context, f->id),
                          done = between_event_create(f->context, f->id);
        ok(f->ops->marker_record(queue, &idle));
        assert_true(passed(f, idle));
        between_submit(native, gate, done);
        ok(f->ops->marker_record(queue, &busy));
        const onuma_native_event event = {sizeof event, ONUMA_API_LEVEL_ZERO, (uintptr_t)done};
        ok(f->ops->marker_wrap(queue, &event, &wrapped));
        assert_false(passed(f, busy));
        assert_false(passed(f, wrapped));
        assert_true(passed(f, idle));
        between_event_set(gate);
        assert_true(passed(f, busy));
        assert_true(passed(f, wrapped));
        f->ops->marker_destroy(idle);
        f->ops->marker_destroy(busy);
        f->ops->marker_destroy(wrapped);
        f->ops->queue_close(queue);
        between_queue_destroy(native);
        between_event_destroy(gate);
        between_event_destroy(done);
    }
}

/* Later work of one waits for the other, on the device. The marker may go meanwhile; its event may not be used again. */
static void queues_wait_for_one_another(void **state) {
    fixture *f = *state;
    for (int is_list = 0; is_list < 2; is_list++) {
        const uint64_t first = between_queue_create(f->context, f->id);
        const uint64_t second =
            is_list ? between_list_create(f->context, f->id) : between_queue_create(f->context, f->id);
        onuma_backend_queue *ahead = open_queue(f, first), *behind = open_queue(f, second);
        ze_event_handle_t gate = between_event_create(f->context, f->id),
                          later = between_event_create(f->context, f->id);
        onuma_backend_marker *marker;
        between_submit(first, gate, NULL);
        ok(f->ops->marker_record(ahead, &marker));
        ok(f->ops->queue_wait_marker(behind, marker));
        between_submit(second, NULL, later);
        f->ops->marker_destroy(marker);
        for (int i = 0; i < 100; i++) { /* would use an event again that is free too early */
            ok(f->ops->marker_record(ahead, &marker));
            assert_false(passed(f, marker));
            f->ops->marker_destroy(marker);
            assert_false(between_event_is_set(later));
        }
        between_event_set(gate);
        assert_true(between_event_is_set(later));
        f->ops->queue_close(ahead);
        f->ops->queue_close(behind);
        between_queue_destroy(first);
        between_queue_destroy(second);
        between_event_destroy(gate);
        between_event_destroy(later);
    }
}

static void events_are_used_again(void **state) {
    fixture *f = *state;
    const uint64_t native = between_queue_create(f->context, f->id), pools = between_calls("zeEventPoolCreate");
    onuma_backend_queue *queue = open_queue(f, native);
    for (int i = 0; i < 1000; i++) {
        onuma_backend_marker *marker;
        ok(f->ops->marker_record(queue, &marker));
        assert_true(passed(f, marker));
        f->ops->marker_destroy(marker);
    }
    assert_int_equal(between_calls("zeEventPoolCreate"), pools + 1);
    f->ops->queue_close(queue);
    between_queue_destroy(native);
}

static void a_marker_outlives_its_queue(void **state) {
    fixture *f = *state;
    const uint64_t native = between_queue_create(f->context, f->id);
    onuma_backend_queue *queue = open_queue(f, native);
    onuma_backend_marker *marker;
    ok(f->ops->marker_record(queue, &marker));
    assert_true(passed(f, marker));
    f->ops->queue_close(queue);
    between_queue_destroy(native);
    assert_true(passed(f, marker));
    f->ops->marker_destroy(marker);
}

static void a_lost_device_is_told_apart(void **state) {
    fixture *f = *state;
    const uint64_t native = between_queue_create(f->context, f->id);
    onuma_backend_queue *queue = open_queue(f, native);
    onuma_backend_marker *marker, *none = NULL;
    bool yes = false;
    ok(f->ops->marker_record(queue, &marker));
    between_fail("zeEventQueryStatus", 1, 1, ZE_RESULT_ERROR_DEVICE_LOST);
    fails(f->ops->marker_poll(marker, &yes), ONUMA_ERROR_DEVICE_LOST, "ZE_RESULT_ERROR_DEVICE_LOST (0x70000001)");
    between_fail("zeCommandQueueExecuteCommandLists", 1, 1, ZE_RESULT_ERROR_DEVICE_LOST);
    fails(f->ops->marker_record(queue, &none), ONUMA_ERROR_DEVICE_LOST, "a barrier on a queue");
    assert_null(none);
    between_fail_none();
    f->ops->marker_destroy(marker);
    f->ops->queue_close(queue);
    between_queue_destroy(native);
}

/* Its events may be written at any time, so they and their context stay. */
static void work_that_never_ends_keeps_its_context(void **state) {
    fixture *f = *state;
    const uint64_t native = between_queue_create(f->context, f->id);
    onuma_backend_queue *queue = open_queue(f, native);
    ze_event_handle_t gate = between_event_create(f->context, f->id);
    onuma_backend_marker *marker;
    between_submit(native, gate, NULL);
    ok(f->ops->marker_record(queue, &marker));
    f->ops->marker_destroy(marker);
    f->ops->queue_close(queue);
    const uint64_t contexts = between_calls("zeContextDestroy"), pools = between_calls("zeEventPoolDestroy");
    close_registry(f);
    assert_int_equal(between_calls("zeContextDestroy"), contexts);
    assert_int_equal(between_calls("zeEventPoolDestroy"), pools);
    between_event_set(gate);
    between_queue_destroy(native);
    between_event_destroy(gate);
    f->before = between_books_now();
    open_registry(f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(devices_are_described),
        TEST(asking_makes_no_context),
        TEST(free_memory_is_the_systems_or_unknown),
        TEST(system_management_tells_of_free_memory),
        TEST(memory_is_what_it_says),
        TEST(large_memory_asks_for_relaxed_limits),
        TEST(what_cannot_be_is_refused),
        TEST(memory_of_the_program_is_imported),
        TEST(a_context_stays_while_memory_lives),
        TEST(contexts_of_the_program_are_adopted),
        TEST(an_old_driver_does_not_tell_of_queues),
        TEST(bad_queues_and_events_are_refused),
        TEST(markers_pass_when_the_work_before_is_done),
        TEST(queues_wait_for_one_another),
        TEST(events_are_used_again),
        TEST(a_marker_outlives_its_queue),
        TEST(a_lost_device_is_told_apart),
        TEST(work_that_never_ends_keeps_its_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
