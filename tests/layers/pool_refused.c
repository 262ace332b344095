/* SPDX-License-Identifier: Apache-2.0 */
/* Pools on a driver that gives less than it states (layer `refuses`): what can be had is had, the rest is told. */
#include "control.h"
#include "kernel.h"

#include "../unit/api/api.h"

#define MOST (256u << 10)
#define COUNT 200u
#define SIZE 20000u

typedef struct fixture {
    onuma_runtime *rt;
    onuma_device *device;
    onuma_pool *pool;
} fixture;

/* The pool opens the device, before anything is refused. */
static int set_up(void **state) {
    static fixture f;
    api_lines *none = NULL;
    layer_set("");
    f.rt = api_runtime(NULL, none);
    f.device = api_device(f.rt);
    f.pool = api_pool(f.device, 0);
    *state = &f;
    return 0;
}

static int tear_down(void **state) {
    const fixture *f = *state;
    layer_set("");
    OK(onuma_pool_destroy(f->pool));
    onuma_runtime_destroy(f->rt);
    return 0;
}

static void expect_empty(onuma_pool *pool) {
    OK(onuma_pool_trim(pool, 0, NULL));
    const onuma_pool_stats stats = api_stats(pool);
    assert_int_equal(stats.in_use_bytes, 0);
    assert_int_equal(stats.reserved_bytes, 0);
    assert_int_equal(stats.segment_alloc_count, stats.segment_free_count);
}

static void segments_get_as_small_as_must_be(void **state) {
    const fixture *f = *state;
    void *blocks[COUNT];
    char settings[64];
    snprintf(settings, sizeof settings, "above:%u,says:%s", MOST, "size");
    layer_set(settings);
    for (unsigned i = 0; i < COUNT; i++)
        OK(onuma_alloc(f->pool, SIZE, 0, NULL, &blocks[i]));
    for (unsigned i = 0; i < COUNT; i++)
        api_fill(blocks[i], SIZE, (unsigned char)i);
    for (unsigned i = 0; i < COUNT; i++)
        api_check(blocks[i], SIZE, (unsigned char)i);
    const onuma_pool_stats stats = api_stats(f->pool);
    assert_int_equal(stats.in_use_blocks, COUNT);
    assert_int_equal(stats.requested_bytes, COUNT * SIZE);
    assert_int_equal(stats.alloc_failure_count, 0);
    /* Not a segment for each block: as large as the driver gives them, or half of that. */
    assert_in_range(stats.segment_alloc_count, COUNT * SIZE / MOST, 3 * (COUNT * SIZE / MOST));
    assert_true(stats.reserved_bytes <= stats.segment_alloc_count * MOST);
    for (unsigned i = 0; i < COUNT; i++)
        OK(onuma_free(blocks[i], NULL));
    expect_empty(f->pool);
}

static void what_is_too_large_is_told_with_figures(void **state) {
    const fixture *f = *state;
    onuma_device_info info = ONUMA_DEVICE_INFO_INIT;
    void *block = NULL, *small;
    char figure[32];
    static const char *const codes[] = {"memory", "size", "resources"};
    OK(onuma_device_get_info(f->device, &info));
    cl_ulong largest = 0;
    kernel_ok(clGetDeviceInfo((cl_device_id)(uintptr_t)info.native_device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof largest,
                              &largest, NULL),
              "clGetDeviceInfo");
    snprintf(figure, sizeof figure, "allows %llu at once", (unsigned long long)largest);
    for (size_t i = 0; i < 3; i++) {
        char settings[64];
        snprintf(settings, sizeof settings, "above:%u,says:%s", MOST, codes[i]);
        layer_set(settings);
        const onuma_pool_stats before = api_stats(f->pool);
        FAILS(OUT_OF_MEMORY, figure, onuma_alloc(f->pool, 4 * MOST, 0, NULL, &block));
        assert_null(block);
        assert_non_null(strstr(onuma_last_error(), "1048576"));
        const onuma_pool_stats after = api_stats(f->pool);
        assert_int_equal(after.alloc_failure_count, before.alloc_failure_count + 1);
        assert_int_equal(after.in_use_bytes, before.in_use_bytes);
        assert_true(after.reserved_bytes <= before.reserved_bytes); /* empty segments went, to make room */
        OK(onuma_alloc(f->pool, 1000, 0, NULL, &small));
        OK(onuma_free(small, NULL));
    }
    layer_set("");
    OK(onuma_alloc(f->pool, 4 * MOST, 0, NULL, &block));
    OK(onuma_free(block, NULL));
    expect_empty(f->pool);
}

/* What is there is used up to the last, and a free makes room. */
static void a_budget_is_used_up(void **state) {
    const fixture *f = *state;
    static void *blocks[1024];
    unsigned count = 0;
    void *none = NULL;
    onuma_result r;
    layer_set("total:4194304");
    while (count < 1024 && (r = onuma_alloc(f->pool, SIZE, 0, NULL, &blocks[count])) == ONUMA_OK)
        count++;
    assert_int_equal(r, ONUMA_ERROR_OUT_OF_MEMORY);
    assert_in_range(count, 3 * 4194304 / 4 / SIZE, 4194304 / SIZE);
    onuma_pool_stats stats = api_stats(f->pool);
    assert_int_equal(stats.in_use_blocks, count);
    assert_true(stats.reserved_bytes <= 4194304);
    OK(onuma_free(blocks[--count], NULL));
    OK(onuma_alloc(f->pool, SIZE, 0, NULL, &blocks[count++]));
    FAILS(OUT_OF_MEMORY, "no room for", onuma_alloc(f->pool, SIZE, 0, NULL, &none));
    while (count != 0)
        OK(onuma_free(blocks[--count], NULL));
    /* Another shape of block finds the whole budget. */
    OK(onuma_alloc(f->pool, 3 << 20, 0, NULL, &blocks[0]));
    api_fill(blocks[0], 3 << 20, 5);
    api_check(blocks[0], 3 << 20, 5);
    OK(onuma_free(blocks[0], NULL));
    expect_empty(f->pool);
}

/* A device that is tried while the driver refuses: what it then says of its largest block is so, for every kind. */
static void the_largest_block_can_be_had(void **state) {
    (void)state;
    api_lines *none = NULL;
    char config[96];
    snprintf(config, sizeof config, "opencl.probe:always,opencl.share:%s", getenv("ONUMA_TEST_WAY"));
    /* What is found of this driver is not to be kept: its settings here are in no environment. */
    char *caches = strdup(getenv("XDG_CACHE_HOME"));
    assert_int_equal(setenv("XDG_CACHE_HOME", "/dev/null", 1), 0);
    layer_set("above:10000000");
    onuma_runtime *rt = api_runtime(config, none);
    onuma_device *device = api_device(rt);
    for (onuma_kind kind = ONUMA_KIND_HOST; kind <= ONUMA_KIND_DEVICE; kind++) {
        onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
        onuma_device_info info = ONUMA_DEVICE_INFO_INIT;
        onuma_pool *pool;
        void *block = NULL;
        char figure[32];
        desc.kind = kind;
        OK(onuma_pool_create(device, &desc, &pool));
        OK(onuma_device_get_info(device, &info));
        assert_in_range(info.max_block, 8 << 20, 10000000);
        OK(onuma_alloc(pool, info.max_block, 0, NULL, &block));
        if (kind != ONUMA_KIND_DEVICE) api_fill(block, info.max_block, 9);
        OK(onuma_free(block, NULL));
        /* Beyond it both figures are told: what was asked for, and what can be had. */
        snprintf(figure, sizeof figure, "blocks of up to %llu", (unsigned long long)info.max_block);
        FAILS(OUT_OF_MEMORY, figure, onuma_alloc(pool, info.max_block + (128 << 10), 0, NULL, &block));
        expect_empty(pool);
        OK(onuma_pool_destroy(pool));
    }
    layer_set("");
    onuma_runtime_destroy(rt);
    assert_int_equal(setenv("XDG_CACHE_HOME", caches, 1), 0);
    free(caches);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(segments_get_as_small_as_must_be),
        TEST(what_is_too_large_is_told_with_figures),
        TEST(a_budget_is_used_up),
        TEST(the_largest_block_can_be_had),
    };
    cl_uint number;
    if (clGetPlatformIDs(0, NULL, &number) != CL_SUCCESS) return 1; /* which loads the layer */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
