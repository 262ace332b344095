/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing leaks in silence: what is said, to whom, and that leaked memory stays usable. */
#include "api.h"

#include "system.h"

static void runtime_reports_to_its_callback(void **state) {
    (void)state;
    api_lines lines;
    onuma_runtime *rt = api_runtime(NULL, &lines); /* no level given: warnings are heard */
    onuma_pool *pool = api_pool(api_device(rt), 0);
    void *blocks[15];
    for (size_t i = 0; i < 15; i++) {
        OK(onuma_alloc(pool, 100 + i, 0, NULL, &blocks[i]));
        api_fill(blocks[i], 100 + i, 1);
    }
    onuma_runtime_destroy(rt);
    assert_int_equal(api_count_lines(&lines, "opennuma: leak: pool \"test\": 15 blocks, 1605 bytes"), 1);
    assert_int_equal(api_count_lines(&lines, "opennuma: leak: pool \"test\": block "), 10);
    assert_int_equal(api_count_lines(&lines, "and 5 more"), 1);
    assert_int_equal(api_count_lines(&lines, "track:full"), 1);
    if (getenv("OPENNUMA_TEST_DEVICE") == NULL) memset(blocks[0], 2, 100); /* still mapped */
    OK(onuma_free(blocks[0], NULL)); /* late, as at the exit of an interpreter: harmless */
    size_t said = lines.count;
    for (size_t i = 1; i < 15; i++)
        OK(onuma_free(blocks[i], NULL));
    assert_int_equal(lines.count, said); /* and nothing is said to a callback whose runtime is gone */
}

__attribute__((noinline)) static void *leak_here(onuma_pool *pool) {
    void *block;
    OK(onuma_alloc(pool, 77, 0, NULL, &block));
    return block;
}

static void full_tracking_names_site_and_age(void **state) {
    (void)state;
    api_lines lines;
    onuma_runtime *rt = api_runtime("track:full", &lines);
    onuma_pool *pool = api_pool(api_device(rt), 0);
    void *kept = leak_here(pool), *freed = leak_here(pool), *moved = leak_here(pool), *out;
    OK(onuma_free(freed, NULL));
    OK(onuma_realloc(moved, 500000, NULL, &out));
    OK(onuma_pool_destroy_forced(pool, 0));
    assert_int_equal(api_count_lines(&lines, "leak: pool \"test\": 2 blocks, 500077 bytes"), 1);
    assert_int_equal(api_count_lines(&lines, "77 bytes, allocated 0."), 1);
    assert_int_equal(api_count_lines(&lines, "500000 bytes, allocated 0."), 1);
    assert_int_equal(api_count_lines(&lines, " by thread "), 2);
    assert_int_equal(api_count_lines(&lines, " at test_api_leaks" SYSTEM_PROGRAM_SUFFIX "+0x"), 2);
    assert_int_equal(api_count_lines(&lines, "track:full"), 0);
    assert_int_not_equal(onuma_free(kept, NULL), ONUMA_OK);
    onuma_runtime_destroy(rt);
    assert_int_equal(api_count_lines(&lines, "2 blocks"), 1); /* told once */
}

static void peaks_are_exact_when_tracking(void **state) {
    (void)state;
    onuma_runtime *rt = api_runtime("track:full", NULL);
    onuma_pool *pool = api_pool(api_device(rt), 0);
    void *blocks[10];
    for (size_t i = 0; i < 10; i++)
        OK(onuma_alloc(pool, 1000, 0, NULL, &blocks[i]));
    for (size_t i = 0; i < 10; i++)
        OK(onuma_free(blocks[i], NULL));
    assert_int_equal(api_stats(pool).requested_bytes_peak, 10000);
    assert_int_equal(api_stats(pool).in_use_blocks_peak, 10);
    OK(onuma_pool_destroy(pool));
    onuma_runtime_destroy(rt);
}

static void imports_are_reported_too(void **state) {
    (void)state;
    api_lines lines;
    onuma_runtime *rt = api_runtime(NULL, &lines);
    onuma_import_desc desc = ONUMA_IMPORT_DESC_INIT;
    api_deletion deletion = {0};
    desc.deleter = api_count_deletion;
    desc.user = &deletion;
    static _Alignas(4096) char memory[8192];
    void *block;
    OK(onuma_import(api_device(rt), memory, 8192, &desc, &block));
    onuma_runtime_destroy(rt);
    assert_int_equal(api_count_lines(&lines, "opennuma: leak: pool \"imports\": 1 block, 8192 bytes"), 1);
    assert_int_equal(deletion.calls, 0);
    OK(onuma_free(block, NULL));
    assert_int_equal(deletion.calls, 1);
}

static void nothing_to_say_without_leaks(void **state) {
    (void)state;
    api_lines lines;
    onuma_runtime *rt = api_runtime("log:warn", &lines);
    onuma_pool *pool = api_pool(api_host(rt), 0), *forgotten = api_pool(api_host(rt), 0);
    void *block;
    OK(onuma_alloc(pool, 100, 0, NULL, &block));
    OK(onuma_free(block, NULL));
    OK(onuma_pool_destroy(pool));
    (void)forgotten; /* a pool without blocks goes with its runtime */
    onuma_runtime_destroy(rt);
    assert_int_equal(api_count_lines(&lines, "leak:"), 0);
}

static void level_none_is_obeyed(void **state) {
    (void)state;
    api_lines lines;
    onuma_runtime *rt = api_runtime("log:none", &lines);
    onuma_pool *pool = api_pool(api_host(rt), 0);
    void *block;
    OK(onuma_alloc(pool, 100, 0, NULL, &block));
    OK(onuma_pool_destroy_forced(pool, 0));
    onuma_runtime_destroy(rt);
    assert_int_equal(lines.count, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runtime_reports_to_its_callback), cmocka_unit_test(full_tracking_names_site_and_age),
        cmocka_unit_test(peaks_are_exact_when_tracking),   cmocka_unit_test(imports_are_reported_too),
        cmocka_unit_test(nothing_to_say_without_leaks),    cmocka_unit_test(level_none_is_obeyed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
