/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's interface on one thread, in both modes: what may succeed, what is refused, what is counted. */
#include "pool_support.h"

static void test_small_and_large(void **state) {
    pool *p = *state;
    static const size_t sizes[] = {0, 1, 15, 16, 17, 100, 4096, 32768, 32769, 100000, 1 << 20, 5 << 20, 80 << 20};
    void *blocks[sizeof sizes / sizeof sizes[0]];
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        blocks[i] = take(p, sizes[i], 0, 0);
        onuma__block block;
        assert_int_equal(onuma__engine_find(blocks[i], &block), ONUMA_OK);
        assert_ptr_equal(block.base, blocks[i]);
        assert_int_equal(block.requested, sizes[i]);
        assert_true(block.size >= sizes[i]);
        assert_ptr_equal(block.owner, p);
        assert_ptr_equal(block.engine, p->engine);
        assert_ptr_equal((char *)block.span->base + block.offset, blocks[i]);
        if (sizes[i] > 1) {
            assert_int_equal(onuma__engine_find((char *)blocks[i] + sizes[i] - 1, &block), ONUMA_OK);
            assert_ptr_equal(block.base, blocks[i]);
            assert_int_equal(drop(p, (char *)blocks[i] + 1, 0), ONUMA_ERROR_INVALID_POINTER);
            assert_int_equal(drop(p, (char *)blocks[i] + sizes[i] / 2, 0), ONUMA_ERROR_INVALID_POINTER);
        }
        check(p);
    }
    assert_int_equal(stats(p).in_use_blocks, sizeof sizes / sizeof sizes[0]);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_int_equal(drop(p, blocks[i], 0), ONUMA_OK);
        const onuma_result again = drop(p, blocks[i], 0);
        assert_true(again == ONUMA_ERROR_DOUBLE_FREE || again == ONUMA_ERROR_INVALID_POINTER);
        if (sizes[i] <= 32768) assert_int_equal(again, ONUMA_ERROR_DOUBLE_FREE);
        onuma__block block;
        assert_int_equal(onuma__engine_find(blocks[i], &block), ONUMA_ERROR_INVALID_POINTER);
        check(p);
    }
    assert_int_equal(stats(p).in_use_bytes, 0);
    assert_int_equal(stats(p).requested_bytes, 0);
}

static void test_alignment(void **state) {
    pool *p = *state;
    for (size_t align = 1; align <= (size_t)1 << 30; align *= 2) {
        static const size_t sizes[] = {0, 1, 24, 3000, 32768, 40000};
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            void *a = take(p, sizes[i], align, 0), *b = take(p, sizes[i], align, 0);
            assert_int_equal((uintptr_t)a % align, 0);
            assert_int_equal((uintptr_t)b % align, 0);
            assert_ptr_not_equal(a, b);
            assert_int_equal(drop(p, a, 0), ONUMA_OK);
            assert_int_equal(drop(p, b, 0), ONUMA_OK);
        }
    }
    check(p);
}

static void test_bad_requests(void **state) {
    pool *p = *state;
    void *out = p;
    assert_int_equal(onuma__engine_alloc(p->engine, 64, 3, 0, &out), ONUMA_ERROR_INVALID_ARGUMENT);
    assert_null(out);
    assert_int_equal(onuma__engine_alloc(p->engine, 64, SIZE_MAX, 0, &out), ONUMA_ERROR_INVALID_ARGUMENT);
    assert_int_equal(onuma__engine_grow(p->engine, 64, 48, 0, &out), ONUMA_ERROR_INVALID_ARGUMENT);
    static const size_t absurd[] = {SIZE_MAX,         SIZE_MAX - 1,     SIZE_MAX - 4095,
                                    SIZE_MAX - 65536, SIZE_MAX / 2 + 1, (size_t)1 << 62};
    for (size_t i = 0; i < sizeof absurd / sizeof absurd[0]; i++) {
        assert_int_equal(onuma__engine_alloc(p->engine, absurd[i], 0, 0, &out), ONUMA_ERROR_OUT_OF_MEMORY);
        assert_int_equal(onuma__engine_grow(p->engine, absurd[i], 0, 0, &out), ONUMA_ERROR_OUT_OF_MEMORY);
        assert_null(out);
    }
    assert_int_equal(onuma__engine_alloc(p->engine, 1, (size_t)1 << 63, 0, &out), ONUMA_ERROR_OUT_OF_MEMORY);
    check(p);
}

static void test_foreign_pointers(void **state) {
    pool *p = *state;
    void *block = take(p, 64, 0, 0), *large = take(p, 1 << 20, 0, 0);
    int local;
    const uint64_t foreign[] = {0,
                                1,
                                4095,
                                (uintptr_t)&local,
                                0x00007fffffffffff,
                                0x0000800000000000,
                                0xff007fffffde0000,
                                0xffffffffffffffff,
                                0xfffffffffffff000,
                                0x8000000000000000,
                                (uintptr_t)block - 1,
                                (uintptr_t)large + (1 << 20)};
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        onuma__block found;
        void *ptr = (void *)(uintptr_t)foreign[i];
        assert_int_equal(drop(p, ptr, 0), ONUMA_ERROR_INVALID_POINTER);
        assert_int_equal(onuma__engine_set_special(ptr, true), ONUMA_ERROR_INVALID_POINTER);
        assert_int_equal(onuma__engine_resize(ptr, 10), ONUMA_ERROR_INVALID_POINTER);
        if (i < 10) assert_int_equal(onuma__engine_find(ptr, &found), ONUMA_ERROR_INVALID_POINTER);
        onuma__engine_release(p->engine, ptr);
    }
    assert_int_equal(drop(p, block, 0), ONUMA_OK);
    assert_int_equal(drop(p, large, 0), ONUMA_OK);
    check(p);
}

static void test_held(void **state) {
    pool *p = *state;
    static const size_t sizes[] = {64, 1 << 20};
    for (size_t i = 0; i < 2; i++) {
        /* special */
        void *block = take(p, sizes[i], 0, 0);
        onuma__block found;
        assert_int_equal(onuma__engine_set_special(block, true), ONUMA_OK);
        assert_int_equal(onuma__engine_find(block, &found), ONUMA_OK);
        assert_true(found.special);
        assert_int_equal(onuma__engine_find_held(block, &found), ONUMA_ERROR_INVALID_POINTER);
        assert_int_equal(drop(p, block, 0), ONUMA__HELD);
        assert_int_equal(stats(p).pending_bytes, found.size);
        assert_int_equal(stats(p).in_use_bytes, 0);
        assert_int_equal(drop(p, block, 0), ONUMA_ERROR_DOUBLE_FREE);
        assert_int_equal(onuma__engine_find(block, &found), ONUMA_ERROR_INVALID_POINTER);
        assert_int_equal(onuma__engine_find_held(block, &found), ONUMA_OK);
        assert_ptr_equal(found.base, block);
        check(p);
        for (int n = 0; n < 100; n++) {
            void *other = take(p, sizes[i], 0, 0);
            assert_ptr_not_equal(other, block);
            assert_int_equal(drop(p, other, 0), ONUMA_OK);
        }
        onuma__engine_release(p->engine, block);
        onuma__engine_release(p->engine, block); /* does nothing */
        assert_int_equal(stats(p).pending_bytes, 0);
        check(p);
        /* no longer special */
        block = take(p, sizes[i], 0, 0);
        assert_int_equal(onuma__engine_set_special(block, true), ONUMA_OK);
        assert_int_equal(onuma__engine_set_special(block, false), ONUMA_OK);
        assert_int_equal(drop(p, block, 0), ONUMA_OK);
        /* another tag, and none that a block can have */
        block = take(p, sizes[i], 0, 7);
        assert_int_equal(drop(p, block, 8), ONUMA__HELD);
        onuma__engine_release(p->engine, block);
        block = take(p, sizes[i], 0, 7);
        assert_int_equal(drop(p, block, ONUMA__TAG_HOLD), ONUMA__HELD);
        assert_int_equal(onuma__engine_find_held(block, &found), ONUMA_OK);
        assert_int_equal(found.tag, 7);
        onuma__engine_release(p->engine, block);
        check(p);
    }
}

static void test_resize(void **state) {
    pool *p = *state;
    char *small = take(p, 100, 0, 0), *large = take(p, 1 << 20, 0, 0);
    onuma__block found;
    assert_int_equal(onuma__engine_resize(small, 110), ONUMA_OK);
    assert_int_equal(onuma__engine_resize(small, 4000), ONUMA__MISS);
    assert_int_equal(stats(p).requested_bytes, 110 + (1 << 20));
    assert_int_equal(onuma__engine_resize(large, 5000), ONUMA_OK);
    assert_int_equal(onuma__engine_find(large, &found), ONUMA_OK);
    assert_int_equal(found.size, 8192);
    assert_int_equal(stats(p).requested_bytes, 110 + 5000);
    check(p);
    assert_int_equal(onuma__engine_resize(large, 700000), ONUMA_OK); /* into what it gave up */
    check(p);
    assert_int_equal(onuma__engine_resize(large, SIZE_MAX), ONUMA__MISS);
    assert_int_equal(onuma__engine_resize(large + 1, 5), ONUMA_ERROR_INVALID_POINTER);
    assert_int_equal(onuma__engine_set_special(large, true), ONUMA_OK);
    assert_int_equal(onuma__engine_resize(large, 10), ONUMA_OK); /* keeps its memory */
    assert_int_equal(onuma__engine_find(large, &found), ONUMA_OK);
    assert_int_equal(found.size, 700000 / 4096 * 4096 + 4096);
    assert_int_equal(onuma__engine_set_special(large, false), ONUMA_OK);
    assert_int_equal(drop(p, large, 0), ONUMA_OK);
    assert_int_equal(drop(p, small, 0), ONUMA_OK);
    assert_int_equal(onuma__engine_resize(small, 5), ONUMA_ERROR_INVALID_POINTER);
    check(p);
}

static void test_trim_to_nothing(void **state) {
    pool *p = *state;
    void *blocks[300];
    for (size_t i = 0; i < 300; i++)
        blocks[i] = take(p, i * i * 20, 0, (onuma__tag)(i % 3));
    for (size_t i = 0; i < 300; i++)
        assert_int_equal(drop(p, blocks[i], 0), ONUMA_OK);
    uint64_t epoch;
    onuma__engine_take_caches(p->engine);
    for (onuma__tag tag = 1; tag < 3; tag++)
        if (onuma__engine_tag_close(p->engine, tag, &epoch)) onuma__engine_tag_passed(p->engine, tag, epoch);
    const uint64_t before = stats(p).reserved_bytes;
    assert_true(before > 0);
    assert_int_equal(onuma__engine_trim(p->engine, 0), before);
    assert_int_equal(stats(p).reserved_bytes, 0);
    assert_int_equal(p->source.held, 0);
    assert_int_equal(stats(p).reserved_bytes_peak, before);
    check(p);
    assert_int_equal(onuma__engine_trim(p->engine, 0), 0);
    void *again = take(p, 1000, 0, 0);
    assert_int_equal(drop(p, again, 0), ONUMA_OK);
}

static bool add_up(void *user, const onuma__block *block) {
    uint64_t *sum = user;
    *sum += block->requested;
    return true;
}

static bool stop_at_once(void *user, const onuma__block *block) {
    (void)block;
    ++*(uint64_t *)user;
    return false;
}

static void test_walk(void **state) {
    pool *p = *state;
    uint64_t expected = 0, sum = 0, calls = 0;
    for (size_t i = 1; i < 200; i++) {
        void *block = take(p, i * 700, 0, 0);
        if (i % 3 == 0)
            assert_int_equal(drop(p, block, 0), ONUMA_OK);
        else
            expected += i * 700;
    }
    onuma__engine_walk(p->engine, add_up, &sum);
    assert_int_equal(sum, expected);
    onuma__engine_walk(p->engine, stop_at_once, &calls);
    assert_int_equal(calls, 1);
}

static void test_imports(void **state) {
    pool *p = *state;
    static char memory[10000];
    static const onuma__span span = {.base = memory, .size = sizeof memory};
    onuma__block found;
    int owner;
    void *block = take(p, 1 << 20, 0, 0);
    assert_int_equal(onuma__import_add(memory + 1, 5000, &span, &owner), ONUMA_OK);
    assert_int_equal(onuma__import_add(memory, 2, &span, &owner), ONUMA_ERROR_CONFLICT);
    assert_int_equal(onuma__import_add(memory + 5000, 1, &span, &owner), ONUMA_ERROR_CONFLICT);
    assert_int_equal(onuma__import_add(memory + 5001, 1, &span, &owner), ONUMA_OK);
    assert_int_equal(onuma__import_add((char *)block + 100, 10, &span, &owner), ONUMA_ERROR_CONFLICT);
    assert_int_equal(onuma__import_add(memory, 0, &span, &owner), ONUMA_ERROR_INVALID_ARGUMENT);
    assert_int_equal(onuma__import_add((void *)(UINTPTR_MAX - 10), 100, &span, &owner), ONUMA_ERROR_INVALID_ARGUMENT);
    assert_int_equal(onuma__engine_find(memory + 4000, &found), ONUMA_OK);
    assert_ptr_equal(found.base, memory + 1);
    assert_null(found.engine);
    assert_ptr_equal(found.owner, &owner);
    assert_int_equal(found.offset, 1);
    assert_int_equal(onuma__engine_set_special(memory + 1, true), ONUMA_OK);
    assert_int_equal(drop(p, memory + 4000, 0), ONUMA_ERROR_INVALID_POINTER);
    assert_int_equal(drop(p, memory + 1, 0), ONUMA__HELD);
    assert_int_equal(drop(p, memory + 1, 0), ONUMA_ERROR_DOUBLE_FREE);
    assert_int_equal(onuma__engine_find(memory + 1, &found), ONUMA_ERROR_INVALID_POINTER);
    assert_int_equal(onuma__engine_find_held(memory + 1, &found), ONUMA_OK);
    onuma__import_remove(memory + 1);
    onuma__import_remove(memory + 5001);
    assert_int_equal(drop(p, memory + 1, 0), ONUMA_ERROR_INVALID_POINTER);
    assert_int_equal(onuma__import_add(memory, 10000, &span, &owner), ONUMA_OK);
    onuma__import_remove(memory);
}

/* Held blocks that the engine is told to remember: it gives exactly those back, once. */
static void test_stranded(void **state) {
    enum { COUNT = 40 };
    pool *p = *state;
    static const size_t sizes[] = {16, 700, 1 << 20};
    void *stranded[COUNT], *held[COUNT];
    onuma__block taken[COUNT];
    assert_int_equal(onuma__engine_take_stranded(p->engine, taken, COUNT), 0);
    for (size_t i = 0; i < COUNT; i++) {
        stranded[i] = take(p, sizes[i % 3], 0, 7);
        held[i] = take(p, sizes[i % 3], 0, 7);
        assert_int_equal(drop(p, stranded[i], 8), ONUMA__HELD);
        assert_int_equal(drop(p, held[i], 8), ONUMA__HELD);
        onuma__engine_strand(p->engine, stranded[i]);
        assert_int_equal(drop(p, stranded[i], 8), ONUMA_ERROR_DOUBLE_FREE);
    }
    check(p);
    size_t count = 0;
    for (size_t some; (some = onuma__engine_take_stranded(p->engine, taken + count, 7)) != 0; count += some)
        check(p);
    assert_int_equal(count, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        size_t times = 0;
        for (size_t j = 0; j < COUNT; j++)
            times += taken[j].base == stranded[i] && taken[j].tag == 7 && taken[j].size >= sizes[i % 3];
        assert_int_equal(times, 1);
        onuma__engine_release(p->engine, stranded[i]);
        onuma__engine_release(p->engine, held[i]);
    }
    assert_int_equal(stats(p).pending_bytes, 0);
    check(p);
}

static void test_destroy_with_live_blocks(void **state) {
    pool *p = *state;
    void *small = take(p, 64, 0, 0), *large = take(p, 1 << 20, 0, 0), *held = take(p, 64, 0, 3);
    assert_int_equal(drop(p, held, 4), ONUMA__HELD);
    close_pool(p);
    onuma__engine *engine;
    assert_int_equal(onuma__engine_free(small, 0, &engine), ONUMA_ERROR_INVALID_POINTER);
    assert_int_equal(onuma__engine_free(large, 0, &engine), ONUMA_ERROR_INVALID_POINTER);
    assert_null(engine);
    open_pool(p);
    assert_int_equal(drop(p, take(p, 64, 0, 0), 0), ONUMA_OK);
}

#define BOTH(test)                                                                                                     \
    cmocka_unit_test_setup_teardown(test, range_pool, end_pool),                                                       \
        cmocka_unit_test_setup_teardown(test, segments_pool, end_pool)

int main(void) {
    const struct CMUnitTest tests[] = {
        BOTH(test_small_and_large),
        BOTH(test_alignment),
        BOTH(test_bad_requests),
        BOTH(test_foreign_pointers),
        BOTH(test_held),
        BOTH(test_resize),
        BOTH(test_trim_to_nothing),
        BOTH(test_walk),
        BOTH(test_imports),
        BOTH(test_stranded),
        BOTH(test_destroy_with_live_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
