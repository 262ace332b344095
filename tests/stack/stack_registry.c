/* SPDX-License-Identifier: Apache-2.0 */
/* What the registry makes of the drivers it finds: none at all, a way to share that is not there, and several at once. */
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
    const onuma__backend_state *opencl, *host;
} fixture;

static int set_up(void **state) {
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    onuma__config_init(&f->config);
    assert_int_equal(onuma__config_parse(&f->config, getenv("OPENNUMA_CONF"), "OPENNUMA_CONF"), ONUMA_OK);
    assert_int_equal(onuma__registry_open(&f->config, NULL, &f->registry), ONUMA_OK);
    for (size_t i = 0; i < f->registry.backend_count; i++) {
        const onuma__backend_state *backend = &f->registry.backends[i];
        if (strcmp(backend->ops->name, "host") == 0) f->host = backend;
        if (strcmp(backend->ops->name, "opencl") == 0) f->opencl = backend;
    }
    assert_non_null(f->opencl);
    assert_non_null(f->host);
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    onuma__registry_close(&f->registry);
    free(f);
    return 0;
}

static void host_works_without_any_driver(void **state) {
    fixture *f = *state;
    assert_int_equal(f->opencl->status, ONUMA_BACKEND_ABSENT);
    assert_non_null(strstr(f->opencl->detail, "found no driver"));
    assert_int_equal(f->host->status, ONUMA_BACKEND_OK);
    assert_int_equal(f->registry.device_count, 1);
    onuma__device *host = f->registry.devices[0];
    assert_string_equal(host->id, "host");
    assert_int_equal(onuma__device_open(host), ONUMA_OK);
    onuma_segment segment = {.struct_size = sizeof segment};
    onuma_backend_device *backend = atomic_load(&host->backend);
    assert_int_equal(host->ops->segment_create(backend, ONUMA_KIND_SHARED, 4096, &segment), ONUMA_OK);
    memset(segment.base, 1, segment.size);
    host->ops->segment_destroy(backend, &segment);
    onuma__device *adopted = NULL;
    onuma_native_device native = ONUMA_NATIVE_DEVICE_INIT;
    assert_int_equal(onuma__registry_adopt(&f->registry, ONUMA_API_OPENCL, &native, &adopted), ONUMA_ERROR_NOT_FOUND);
    assert_non_null(strstr(onuma_last_error(), "found no driver"));
}

static void forced_way_that_is_missing_leaves_device_memory(void **state) {
    fixture *f = *state;
    assert_int_equal(f->opencl->status, ONUMA_BACKEND_OK);
    onuma__device *device = f->registry.devices[0];
    assert_string_equal(device->id, "opencl:0");
    assert_string_equal(device->info.shared_via, "");
    assert_int_equal(device->info.kinds, 1u << ONUMA_KIND_DEVICE);
    assert_int_equal(onuma__device_open(device), ONUMA_OK);
    onuma_backend_device *backend = atomic_load(&device->backend);
    onuma_segment segment = {.struct_size = sizeof segment};
    for (onuma_kind kind = ONUMA_KIND_HOST; kind <= ONUMA_KIND_SHARED; kind++) {
        assert_int_equal(device->ops->segment_create(backend, kind, 4096, &segment), ONUMA_ERROR_NOT_SUPPORTED);
        assert_non_null(strstr(onuma_last_error(), getenv("ONUMA_TEST_WAY"))); /* what was wrong */
        assert_non_null(strstr(onuma_last_error(), "opencl.share:auto"));      /* what to do */
        assert_null(segment.base);
    }
    assert_int_equal(device->ops->segment_create(backend, ONUMA_KIND_DEVICE, 4096, &segment), ONUMA_OK);
    device->ops->segment_destroy(backend, &segment);
}

/* Several drivers at once, a simulator among them. */
static void devices_of_all_drivers_come_best_first(void **state) {
    fixture *f = *state;
    const size_t count = f->registry.device_count;
    assert_true(count >= 4);
    assert_string_equal(f->registry.devices[count - 1]->id, "host");
    assert_true(f->registry.devices[count - 2]->info.simulator);
    unsigned seen = 0;
    for (size_t i = 0; i < count - 1; i++) {
        const onuma__device *device = f->registry.devices[i];
        char id[32];
        snprintf(id, sizeof id, "opencl:%zu", device->index);
        assert_string_equal(device->id, id);
        assert_true(device->index < count - 1);
        seen |= 1u << device->index;
        assert_int_equal(device->info.simulator, i == count - 2);
        if (i == count - 2) continue;
        assert_int_equal(device->info.type, ONUMA_DEVICE_CPU);
        assert_string_equal(device->info.physical, "cpu"); /* the one chip that all of them run on */
        if (i > 0) assert_true(device->index > f->registry.devices[i - 1]->index); /* the drivers' order among equals */
    }
    assert_int_equal(seen, (1u << (count - 1)) - 1);
}

int main(void) {
    const struct {
        const char *name;
        struct CMUnitTest test;
    } tests[] = {
        {"none", cmocka_unit_test_setup_teardown(host_works_without_any_driver, set_up, tear_down)},
        {"all", cmocka_unit_test_setup_teardown(devices_of_all_drivers_come_best_first, set_up, tear_down)},
    };
    const char *stack = getenv("ONUMA_TEST_STACK");
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        if (strcmp(stack, tests[i].name) == 0) {
            const struct CMUnitTest one[] = {tests[i].test};
            return cmocka_run_group_tests_name(tests[i].name, one, NULL, NULL);
        }
    const struct CMUnitTest missing[] = {
        cmocka_unit_test_setup_teardown(forced_way_that_is_missing_leaves_device_memory, set_up, tear_down)};
    return cmocka_run_group_tests(missing, NULL, NULL);
}
