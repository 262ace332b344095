/* SPDX-License-Identifier: Apache-2.0 */
/* The check and completion of backends' tables. */
#include "backend/device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void expect_error(onuma_result r, onuma_result expected, const char *word) {
    assert_int_equal(r, expected);
    if (strstr(onuma_last_error(), word) == NULL) fail_msg("\"%s\" does not name %s", onuma_last_error(), word);
}

static void whole_table_is_accepted_as_it_is(void **state) {
    (void)state;
    onuma_backend to;
    assert_int_equal(onuma__backend_complete(&onuma__backend_host, &to), ONUMA_OK);
    assert_ptr_equal(to.open, onuma__backend_host.open);
    assert_ptr_equal(to.marker_poll, onuma__backend_host.marker_poll);
}

static void gaps_answer_not_supported(void **state) {
    (void)state;
    onuma_backend to;
    assert_int_equal(onuma__backend_complete(&onuma__backend_host, &to), ONUMA_OK);
    uint64_t handle = 77;
    onuma_backend_device *device = NULL;
    expect_error(to.view_create(NULL, NULL, 0, 0, &handle), ONUMA_ERROR_NOT_SUPPORTED, "view_create");
    expect_error(to.device_adopt(NULL, NULL, &device), ONUMA_ERROR_NOT_SUPPORTED, "device_adopt");
    expect_error(to.host_map(NULL, NULL, 0, 0, 0, ONUMA_ACCESS_READ), ONUMA_ERROR_NOT_SUPPORTED, "host_map");
    expect_error(to.queue_wait_marker(NULL, NULL), ONUMA_ERROR_NOT_SUPPORTED, "queue_wait_marker");
    assert_int_equal(handle, 77); /* out-parameters untouched */
    assert_null(device);
}

/* Every function slot of the table that the host backend fills, taken away one by one. */
static void half_a_group_is_named(void **state) {
    (void)state;
    static const struct {
        size_t offset;
        const char *name;
    } slots[] = {
#define SLOT(f) {offsetof(onuma_backend, f), #f}
        SLOT(open),
        SLOT(device_count),
        SLOT(device_query),
        SLOT(device_open),
        SLOT(device_close),
        SLOT(device_info),
        SLOT(memory_free),
        SLOT(segment_create),
        SLOT(segment_destroy),
        SLOT(segment_reserve),
        SLOT(segment_commit),
        SLOT(segment_decommit),
        SLOT(queue_open),
        SLOT(queue_close),
        SLOT(marker_record),
        SLOT(marker_wrap),
        SLOT(marker_poll),
        SLOT(marker_destroy),
    };
    for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++) {
        onuma_backend from = onuma__backend_host, to = {0};
        memset((char *)&from + slots[i].offset, 0, sizeof(void (*)(void)));
        expect_error(onuma__backend_complete(&from, &to), ONUMA_ERROR_INTERNAL, slots[i].name);
        assert_null(to.open); /* untouched */
    }
}

static void other_abi_and_short_tables(void **state) {
    (void)state;
    onuma_backend from = onuma__backend_host, to;
    from.abi++;
    expect_error(onuma__backend_complete(&from, &to), ONUMA_ERROR_INTERNAL, "ABI");
    from = onuma__backend_host;
    from.struct_size = 8;
    expect_error(onuma__backend_complete(&from, &to), ONUMA_ERROR_INTERNAL, "ABI");

    /* A table of a library that knew no queues yet. */
    from = onuma__backend_host;
    from.struct_size = offsetof(onuma_backend, queue_open);
    assert_int_equal(onuma__backend_complete(&from, &to), ONUMA_OK);
    onuma_queue_order order = ONUMA_QUEUE_DETECT;
    expect_error(to.queue_open(NULL, 1, &order, NULL), ONUMA_ERROR_NOT_SUPPORTED, "queue_open");
    assert_ptr_equal(to.segment_reserve, onuma__backend_host.segment_reserve);

    /* A member that a later library added is not looked at. */
    struct {
        onuma_backend table;
        void *later;
    } longer = {onuma__backend_host, &to};
    longer.table.struct_size = sizeof longer;
    assert_int_equal(onuma__backend_complete(&longer.table, &to), ONUMA_OK);
    assert_int_equal(to.struct_size, sizeof to);
}

static void abilities_need_their_functions(void **state) {
    (void)state;
    onuma_backend to;
    assert_int_equal(onuma__backend_complete(&onuma__backend_host, &to), ONUMA_OK);
    onuma_backend_device_info good = {.name = "tester",
                                      .abilities = ONUMA_ABILITY_COHERENT | ONUMA_ABILITY_RESERVE,
                                      .alignment = 64,
                                      .page_size = 4096};
    assert_int_equal(onuma__backend_check(&to, &good), ONUMA_OK);
    const struct {
        uint32_t abilities;
        const char *name;
    } bad[] = {{ONUMA_ABILITY_COHERENT | ONUMA_ABILITY_HANDLES, "view_create"},
               {ONUMA_ABILITY_COHERENT | ONUMA_ABILITY_WAIT, "queue_wait_marker"},
               {ONUMA_ABILITY_COHERENT | ONUMA_ABILITY_ADOPT, "device_adopt"},
               {0, "host_map"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        onuma_backend_device_info info = good;
        info.abilities = bad[i].abilities;
        expect_error(onuma__backend_check(&to, &info), ONUMA_ERROR_INTERNAL, bad[i].name);
    }
    onuma_backend_device_info odd = good;
    odd.alignment = 48;
    expect_error(onuma__backend_check(&to, &odd), ONUMA_ERROR_INTERNAL, "48");
}

static void impossible_values_are_refused(void **state) {
    (void)state;
    onuma_backend to;
    assert_int_equal(onuma__backend_complete(&onuma__backend_host, &to), ONUMA_OK);
    const onuma_backend_device_info good = {.name = "tester",
                                            .kinds = 1u << ONUMA_KIND_SHARED,
                                            .abilities = ONUMA_ABILITY_COHERENT | ONUMA_ABILITY_RESERVE,
                                            .alignment = 64,
                                            .page_size = 4096};
    onuma_backend_device_info info = good;
    info.alignment = (size_t)1 << 31;
    expect_error(onuma__backend_check(&to, &info), ONUMA_ERROR_INTERNAL, "2147483648");
    info = good;
    info.page_size = 0;
    expect_error(onuma__backend_check(&to, &info), ONUMA_ERROR_INTERNAL, "pages of 0");
    info = good;
    info.kinds = 1u << (ONUMA_KIND_DEVICE + 1);
    expect_error(onuma__backend_check(&to, &info), ONUMA_ERROR_INTERNAL, "0x8");
    info = good;
    info.type = ONUMA_DEVICE_HOST + 1;
    expect_error(onuma__backend_check(&to, &info), ONUMA_ERROR_INTERNAL, "type 4");
}

static void texts_without_an_end_are_cut(void **state) {
    (void)state;
    onuma_backend to;
    assert_int_equal(onuma__backend_complete(&onuma__backend_host, &to), ONUMA_OK);
    onuma_backend_device_info info;
    char *const texts[] = {info.name, info.driver, info.physical, info.shared_via, info.sharing_detail};
    const size_t sizes[] = {sizeof info.name, sizeof info.driver, sizeof info.physical, sizeof info.shared_via,
                            sizeof info.sharing_detail};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        info = (onuma_backend_device_info){.alignment = 64, .page_size = 4096, .abilities = ONUMA_ABILITY_COHERENT};
        memset(texts[i], 'x', sizes[i]);
        assert_int_equal(onuma__backend_check(&to, &info), ONUMA_OK);
        assert_ptr_equal(memchr(texts[i], '\0', sizes[i]), texts[i] + sizes[i] - 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_table_is_accepted_as_it_is),
        cmocka_unit_test(gaps_answer_not_supported),
        cmocka_unit_test(half_a_group_is_named),
        cmocka_unit_test(other_abi_and_short_tables),
        cmocka_unit_test(abilities_need_their_functions),
        cmocka_unit_test(impossible_values_are_refused),
        cmocka_unit_test(texts_without_an_end_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
