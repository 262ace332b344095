/* SPDX-License-Identifier: Apache-2.0 */
/* Runtimes, backends, devices, and the sizes of public structs. */
#include "api.h"

#include "system.h"

static void creates_with_and_without_a_desc(void **state) {
    (void)state;
    onuma_runtime *rt;
    OK(onuma_runtime_create(NULL, &rt));
    assert_non_null(rt);
    assert_true(onuma_device_count(rt) >= 1);
    onuma_runtime_destroy(rt);
    onuma_runtime_destroy(rt); /* recognised, and nothing happens */
    assert_int_equal(onuma_device_count(rt), 0);
    assert_int_equal(onuma_backend_count(rt), 0);
    assert_null(onuma_device_at(rt, 0));
    onuma_runtime_destroy(NULL);
}

static void reads_the_environment_then_the_desc(void **state) {
    (void)state;
    onuma_runtime *rt;
    onuma_runtime_desc desc = ONUMA_RUNTIME_DESC_INIT;
    system_set_variable("OPENNUMA_CONF", "backends:none_such");
    FAILS(INVALID_ARGUMENT, "OPENNUMA_CONF: key \"backends\" has the value \"none_such\"",
          onuma_runtime_create(NULL, &rt));
    assert_null(rt);
    system_set_variable("OPENNUMA_CONF", "backends:all");
    desc.config = "backends:host";
    OK(onuma_runtime_create(&desc, &rt));
    assert_int_equal(onuma_device_count(rt), 1);
    onuma_runtime_destroy(rt);
    system_set_variable("OPENNUMA_CONF", NULL);
    desc.config = "colour:red";
    FAILS(INVALID_ARGUMENT, "no key \"colour\"", onuma_runtime_create(&desc, &rt));
}

static void describes_backends(void **state) {
    (void)state;
    onuma_runtime *rt = api_runtime("backends:host", NULL);
    bool host = false;
    for (size_t i = 0; i < onuma_backend_count(rt); i++) {
        onuma_backend_info info = ONUMA_BACKEND_INFO_INIT;
        OK(onuma_backend_get_info(rt, i, &info));
        if (strcmp(info.name, "host") == 0) host = info.status == ONUMA_BACKEND_OK;
        if (strcmp(info.name, "opencl") == 0) assert_int_equal(info.status, ONUMA_BACKEND_ABSENT);
    }
    assert_true(host);
    onuma_runtime_destroy(rt);
}

static void finds_and_describes_devices(void **state) {
    (void)state;
    onuma_runtime *rt = api_runtime("backends:all", NULL);
    size_t count = onuma_device_count(rt);
    for (size_t i = 0; i < count; i++) {
        onuma_device_info info = ONUMA_DEVICE_INFO_INIT;
        onuma_device *found;
        OK(onuma_device_get_info(onuma_device_at(rt, i), &info));
        assert_true(info.id[0] != '\0' && info.name[0] != '\0' && info.backend[0] != '\0');
        assert_true(info.kinds != 0 && info.alignment != 0);
        assert_true(info.memory_total == 0 || info.memory_free <= info.memory_total);
        OK(onuma_device_find(rt, info.id, &found));
        assert_ptr_equal(found, onuma_device_at(rt, i));
        OK(onuma_device_release(found)); /* ignored: not adopted */
        OK(onuma_device_get_info(found, &info));
    }
    onuma_device_info last = ONUMA_DEVICE_INFO_INIT;
    OK(onuma_device_get_info(onuma_device_at(rt, count - 1), &last));
    assert_string_equal(last.id, "host");
    assert_true(last.memory_total != 0 && last.memory_free != 0 && last.memory_free <= last.memory_total);
    assert_null(onuma_device_at(rt, count));
    onuma_device *none = (onuma_device *)rt;
    FAILS(NOT_FOUND, "no device \"opencl:77\"; there are ", onuma_device_find(rt, "opencl:77", &none));
    assert_non_null(strstr(onuma_last_error(), "host"));
    assert_null(none);
    onuma_runtime_destroy(rt);
    FAILS(INVALID_ARGUMENT, "not a live device", onuma_device_get_info((onuma_device *)last.struct_size, &last));
}

static void two_runtimes_are_independent(void **state) {
    (void)state;
    onuma_runtime *one = api_runtime(NULL, NULL), *two = api_runtime(NULL, NULL);
    assert_ptr_not_equal(one, two);
    onuma_device *first = api_host(one), *second = api_host(two);
    assert_ptr_not_equal(first, second);
    onuma_pool *pool = api_pool(second, 0), *gone = api_pool(first, 0);
    void *block, *other;
    OK(onuma_alloc(pool, 100, 0, NULL, &block));
    api_fill(block, 100, 7);
    onuma_runtime_destroy(one);
    FAILS(INVALID_ARGUMENT, "not a live pool", onuma_alloc(gone, 100, 0, NULL, &other));
    FAILS(INVALID_ARGUMENT, "not a live device", onuma_pool_create(first, NULL, &gone));
    api_check(block, 100, 7);
    OK(onuma_alloc(pool, 100, 0, NULL, &other));
    OK(onuma_free(other, NULL));
    OK(onuma_free(block, NULL));
    OK(onuma_pool_destroy(pool));
    onuma_runtime_destroy(two);
}

/* An older program's struct is smaller, a newer one's larger. */
static void reads_descs_of_all_sizes(void **state) {
    (void)state;
    onuma_runtime *rt = api_runtime(NULL, NULL);
    onuma_device *host = api_host(rt);
    struct {
        onuma_pool_desc desc;
        uint64_t later;
    } newer = {ONUMA_POOL_DESC_INIT, 0};
    onuma_pool *pool;
    onuma_pool_stats stats;
    newer.desc.struct_size = sizeof newer;
    OK(onuma_pool_create(host, &newer.desc, &pool));
    OK(onuma_pool_destroy(pool));
    newer.later = 1;
    FAILS(NOT_SUPPORTED, "does not know", onuma_pool_create(host, &newer.desc, &pool));
    assert_null(pool);

    onuma_pool_desc older = ONUMA_POOL_DESC_INIT;
    older.struct_size = offsetof(onuma_pool_desc, alignment);
    older.alignment = 3; /* not looked at */
    older.limit_bytes = 1;
    OK(onuma_pool_create(host, &older, &pool));
    void *block;
    OK(onuma_alloc(pool, 4096, 0, NULL, &block));
    OK(onuma_free(block, NULL));
    const size_t wrong[] = {0, 1, sizeof(size_t), 5000, SIZE_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        onuma_pool *none;
        older.struct_size = wrong[i];
        FAILS(INVALID_ARGUMENT, "struct_size", onuma_pool_create(host, &older, &none));
        stats.struct_size = wrong[i];
        FAILS(INVALID_ARGUMENT, "struct_size", onuma_pool_get_stats(pool, &stats));
    }
    OK(onuma_pool_destroy(pool));
    onuma_runtime_destroy(rt);
}

static void writes_only_what_fits(void **state) {
    (void)state;
    onuma_runtime *rt = api_runtime(NULL, NULL);
    onuma_pool *pool = api_pool(api_host(rt), 0);
    void *block;
    OK(onuma_alloc(pool, 100, 0, NULL, &block));
    onuma_pool_stats stats;
    memset(&stats, 0xee, sizeof stats);
    stats.struct_size = offsetof(onuma_pool_stats, in_use_blocks_peak);
    OK(onuma_pool_get_stats(pool, &stats));
    assert_int_equal(stats.struct_size, offsetof(onuma_pool_stats, in_use_blocks_peak));
    assert_int_equal(stats.in_use_blocks, 1);
    assert_true(stats.in_use_blocks_peak == 0xeeeeeeeeeeeeeeee);

    struct {
        onuma_pool_stats stats;
        uint64_t later;
    } newer = {ONUMA_POOL_STATS_INIT, 5};
    newer.stats.struct_size = sizeof newer;
    OK(onuma_pool_get_stats(pool, &newer.stats));
    assert_int_equal(newer.stats.in_use_blocks, 1);
    assert_int_equal(newer.later, 5);
    assert_int_equal(newer.stats.struct_size, sizeof newer);
    OK(onuma_free(block, NULL));
    onuma_runtime_destroy(rt);
}

static void names_results_and_keys(void **state) {
    (void)state;
    assert_string_equal(onuma_result_name(ONUMA_ERROR_LIMIT), "ONUMA_ERROR_LIMIT");
    assert_string_equal(onuma_result_name(12345), "ONUMA_ERROR_UNKNOWN");
    assert_true(onuma_result_text(ONUMA_ERROR_BUSY)[0] != '\0');
    assert_string_equal(onuma_version(), "0.1.0");
    size_t keys = 0;
    while (onuma_config_key_at(keys) != NULL)
        assert_non_null(onuma_config_key_at(keys++)->help);
    assert_true(keys >= 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(creates_with_and_without_a_desc),
        cmocka_unit_test(reads_the_environment_then_the_desc),
        cmocka_unit_test(describes_backends),
        cmocka_unit_test(finds_and_describes_devices),
        cmocka_unit_test(two_runtimes_are_independent),
        cmocka_unit_test(reads_descs_of_all_sizes),
        cmocka_unit_test(writes_only_what_fits),
        cmocka_unit_test(names_results_and_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
