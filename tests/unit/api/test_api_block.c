/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks: allocated, described, zeroed, resized, freed; and imports. */
#include "api.h"

#include "system.h"

typedef struct fixture {
    onuma_runtime *rt;
    onuma_device *device;
    onuma_pool *pool;
    size_t alignment;
} fixture;

static int set_up(void **state) {
    static fixture f;
    onuma_device_info info = ONUMA_DEVICE_INFO_INIT;
    f.rt = api_runtime(NULL, NULL);
    f.device = api_device(f.rt);
    f.pool = api_pool(f.device, 0);
    OK(onuma_device_get_info(f.device, &info));
    f.alignment = info.alignment;
    *state = &f;
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    OK(onuma_pool_destroy(f->pool));
    onuma_runtime_destroy(f->rt);
    return 0;
}

static const size_t sizes[] = {0, 1, 15, 16, 64, 100, 4095, 4096, 32768, 65537, 1 << 20, (5 << 20) + 3};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void blocks_do_not_overlap(void **state) {
    fixture *f = *state;
    void *blocks[SIZES * 4];
    for (size_t i = 0; i < SIZES * 4; i++) {
        OK(onuma_alloc(f->pool, sizes[i % SIZES], 0, NULL, &blocks[i]));
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % f->alignment, 0);
        api_fill(blocks[i], sizes[i % SIZES], (unsigned char)i);
    }
    for (size_t i = 0; i < SIZES * 4; i++) {
        api_check(blocks[i], sizes[i % SIZES], (unsigned char)i);
        for (size_t j = 0; j < i; j++)
            assert_ptr_not_equal(blocks[i], blocks[j]);
    }
    for (size_t i = 0; i < SIZES * 4; i++)
        OK(onuma_free(blocks[i], NULL));
    onuma_pool_stats stats = api_stats(f->pool);
    assert_int_equal(stats.in_use_bytes, 0);
    assert_int_equal(stats.in_use_blocks, 0);
    assert_int_equal(stats.requested_bytes, 0);
    assert_int_equal(stats.alloc_count, SIZES * 4);
    assert_int_equal(stats.free_count, SIZES * 4);
}

static void aligns_as_asked(void **state) {
    fixture *f = *state;
    for (size_t align = 1; align <= (size_t)4 << 20; align *= 2) {
        void *block;
        OK(onuma_alloc(f->pool, 100, align, NULL, &block));
        assert_int_equal((uintptr_t)block % align, 0);
        assert_int_equal((uintptr_t)block % f->alignment, 0);
        api_fill(block, 100, 1);
        OK(onuma_free(block, NULL));
    }
}

static void describes_from_inside(void **state) {
    fixture *f = *state;
    for (size_t i = 0; i < SIZES; i++) {
        void *block;
        onuma_block_info info = ONUMA_BLOCK_INFO_INIT;
        OK(onuma_alloc(f->pool, sizes[i], 0, NULL, &block));
        const size_t at[] = {0, sizes[i] / 2, sizes[i] != 0 ? sizes[i] - 1 : 0};
        for (size_t k = 0; k < 3; k++) {
            OK(onuma_block_get_info((char *)block + at[k], &info));
            assert_ptr_equal(info.base, block);
            assert_true(info.size >= sizes[i]);
            assert_int_equal(info.requested, sizes[i]);
            assert_ptr_equal(info.pool, f->pool);
            assert_int_equal(info.kind, ONUMA_KIND_SHARED);
        }
        OK(onuma_free(block, NULL));
        FAILS(INVALID_POINTER, "", onuma_block_get_info(block, &info));
    }
}

static void refuses_what_is_no_block(void **state) {
    fixture *f = *state;
    int mine = 5;
    void *block, *keeper;
    for (size_t i = 0; i < SIZES; i++) {
        OK(onuma_alloc(f->pool, sizes[i], 0, NULL, &keeper)); /* so that the slab or segment stays */
        OK(onuma_alloc(f->pool, sizes[i], 0, NULL, &block));
        api_fill(block, sizes[i], 9);
        if (sizes[i] > 1) FAILS(INVALID_POINTER, "", onuma_free((char *)block + 1, NULL));
        if (sizes[i] > 16) FAILS(INVALID_POINTER, "", onuma_free((char *)block + 16, NULL));
        api_check(block, sizes[i], 9);
        OK(onuma_free(block, NULL));
        onuma_result r = onuma_free(block, NULL);
        assert_true(r == ONUMA_ERROR_DOUBLE_FREE || r == ONUMA_ERROR_INVALID_POINTER);
        if (sizes[i] <= 32768) assert_int_equal(r, ONUMA_ERROR_DOUBLE_FREE);
        OK(onuma_free(keeper, NULL));
    }
    FAILS(INVALID_POINTER, "", onuma_free(&mine, NULL));
    FAILS(INVALID_POINTER, "", onuma_free((void *)(uintptr_t)0xff007fffffde0000, NULL));
    FAILS(INVALID_POINTER, "", onuma_free((void *)(uintptr_t)1, NULL));
    FAILS(INVALID_POINTER, "", onuma_free((void *)UINTPTR_MAX, NULL));
    OK(onuma_free(NULL, NULL));
    assert_int_equal(mine, 5);
}

static void zeroes(void **state) {
    fixture *f = *state;
    for (size_t i = 0; i < SIZES; i++) {
        void *dirty, *block;
        OK(onuma_alloc(f->pool, sizes[i], 0, NULL, &dirty));
        api_fill(dirty, sizes[i], 0xff);
        OK(onuma_free(dirty, NULL));
        OK(onuma_alloc_zeroed(f->pool, sizes[i], 0, NULL, &block));
        api_check(block, sizes[i], 0);
        OK(onuma_free(block, NULL));
    }
}

static void resizes_and_keeps_contents(void **state) {
    fixture *f = *state;
    for (size_t i = 0; i < SIZES; i++)
        for (size_t j = 0; j < SIZES; j++) {
            void *block, *moved;
            size_t kept = sizes[i] < sizes[j] ? sizes[i] : sizes[j];
            onuma_block_info info = ONUMA_BLOCK_INFO_INIT;
            OK(onuma_alloc(f->pool, sizes[i], 0, NULL, &block));
            api_fill(block, sizes[i], (unsigned char)(i + 1));
            OK(onuma_realloc(block, sizes[j], NULL, &moved));
            api_check(moved, kept, (unsigned char)(i + 1));
            OK(onuma_block_get_info(moved, &info));
            assert_int_equal(info.requested, sizes[j]);
            assert_true(info.size >= sizes[j]);
            assert_int_equal(api_stats(f->pool).in_use_blocks, 1);
            assert_int_equal(api_stats(f->pool).requested_bytes, sizes[j]);
            OK(onuma_free(moved, NULL));
        }
}

static void failed_resize_leaves_the_block(void **state) {
    fixture *f = *state;
    void *block, *moved;
    OK(onuma_alloc(f->pool, 1000, 0, NULL, &block));
    api_fill(block, 1000, 3);
    assert_int_not_equal(onuma_realloc(block, SIZE_MAX / 2, NULL, &moved), ONUMA_OK);
    assert_null(moved);
    OK(onuma_pool_set_limit(f->pool, 1));
    FAILS(LIMIT, "limit", onuma_realloc(block, 64 << 20, NULL, &moved));
    OK(onuma_pool_set_limit(f->pool, 0));
    FAILS(INVALID_POINTER, "inside", onuma_realloc((char *)block + 64, 10, NULL, &moved));
    api_check(block, 1000, 3);
    OK(onuma_free(block, NULL));
    FAILS(INVALID_POINTER, "", onuma_realloc(block, 10, NULL, &moved));
    FAILS(INVALID_POINTER, "onuma_alloc", onuma_realloc(NULL, 10, NULL, &moved));
}

/* ----------------------------------------------------------------- imports */

static void imports_and_deletes_once(void **state) {
    fixture *f = *state;
    api_deletion d = {0};
    onuma_import_desc desc = ONUMA_IMPORT_DESC_INIT;
    desc.deleter = api_count_deletion;
    desc.user = &d;
    char *memory = system_pages(16384);
    void *block, *second;
    assert_non_null(memory);
    memset(memory, 4, 16384);
    OK(onuma_import(f->device, memory, 16384, &desc, &block));
    assert_ptr_equal(block, memory);
    onuma_block_info info = ONUMA_BLOCK_INFO_INIT;
    OK(onuma_block_get_info(memory + 5000, &info));
    assert_ptr_equal(info.base, memory);
    assert_int_equal(info.size, 16384);
    assert_null(info.pool);
    api_check(block, 16384, 4);

    FAILS(CONFLICT, "", onuma_import(f->device, memory, 16384, &desc, &second));
    FAILS(CONFLICT, "", onuma_import(f->device, memory + 4096, 4096, NULL, &second));
    assert_null(second);
    assert_int_equal(d.calls, 0);
    FAILS(NOT_SUPPORTED, "import", onuma_realloc(block, 100, NULL, &second));
    FAILS(INVALID_POINTER, "", onuma_free(memory + 4096, NULL));
    OK(onuma_free(block, NULL));
    assert_int_equal(d.calls, 1);
    assert_ptr_equal(d.memory, memory);
    assert_int_not_equal(onuma_free(block, NULL), ONUMA_OK);
    assert_int_equal(d.calls, 1);
    OK(onuma_import(f->device, memory, 16384, NULL, &block)); /* the place is free again, and a deleter is optional */
    OK(onuma_free(block, NULL));
    assert_int_equal(d.calls, 1);
    system_pages_free(memory, 16384);
}

static void import_refuses_nonsense(void **state) {
    fixture *f = *state;
    static char memory[8192];
    void *block, *taken;
    FAILS(INVALID_ARGUMENT, "0 bytes", onuma_import(f->device, memory, 0, NULL, &block));
    FAILS(INVALID_ARGUMENT, "", onuma_import(f->device, NULL, 100, NULL, &block));
    FAILS(INVALID_ARGUMENT, "", onuma_import(f->device, memory, SIZE_MAX, NULL, &block));
    FAILS(INVALID_ARGUMENT, "out is NULL", onuma_import(f->device, memory, 100, NULL, NULL));
    OK(onuma_alloc(f->pool, 8192, 4096, NULL, &taken));
    FAILS(CONFLICT, "", onuma_import(f->device, taken, 8192, NULL, &block));
    assert_null(block);
    OK(onuma_free(taken, NULL));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
/* Whatever it moves to, a block keeps the alignment that it was asked for with. */
static void resizing_keeps_the_alignment(void **state) {
    (void)state;
    onuma_runtime *rt = api_runtime(NULL, NULL);
    onuma_pool *pool = api_pool(api_device(rt), 0);
    const size_t alignments[] = {64, 256, 1024, 4096, 65536, 2 << 20};
    const size_t steps[] = {1, 100, 4096, 5000, 32768, 33000, 100000, 3 << 20};
    enum { STEPS = sizeof steps / sizeof steps[0] };
    for (size_t a = 0; a < sizeof alignments / sizeof alignments[0]; a++)
        for (size_t from = 0; from < STEPS; from++)
            for (size_t to = 0; to < STEPS; to++) {
                void *block, *moved, *again, *in_the_way;
                OK(onuma_alloc(pool, steps[from], alignments[a], NULL, &block));
                api_fill(block, steps[from], 7);
                OK(onuma_alloc(pool, 100000, 0, NULL, &in_the_way)); /* of growing in place */
                OK(onuma_realloc(block, steps[to], NULL, &moved));
                assert_int_equal((uintptr_t)moved % alignments[a], 0);
                OK(onuma_realloc(moved, steps[to] * 2 + 1, NULL, &again));
                assert_int_equal((uintptr_t)again % alignments[a], 0);
                api_check(again, steps[from] < steps[to] ? steps[from] : steps[to], 7);
                OK(onuma_realloc(again, 0, NULL, &moved));
                OK(onuma_realloc(moved, steps[from], NULL, &again));
                assert_int_equal((uintptr_t)again % alignments[a], 0);
                OK(onuma_free(again, NULL));
                OK(onuma_free(in_the_way, NULL));
            }
    OK(onuma_pool_trim(pool, 0, NULL));
    assert_int_equal(api_stats(pool).reserved_bytes, 0);
    OK(onuma_pool_destroy(pool));
    onuma_runtime_destroy(rt);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resizing_keeps_the_alignment),
        TEST(blocks_do_not_overlap),
        TEST(aligns_as_asked),
        TEST(describes_from_inside),
        TEST(refuses_what_is_no_block),
        TEST(zeroes),
        TEST(resizes_and_keeps_contents),
        TEST(failed_resize_leaves_the_block),
        TEST(imports_and_deletes_once),
        TEST(import_refuses_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
