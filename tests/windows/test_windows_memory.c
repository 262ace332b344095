/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory as Windows itself sees it: reserved, committed, protected, given back. */
#include "../unit/support.h"

#include "os/os.h"

#include "system.h"

static size_t page, granule;

static int setup(void **state) {
    (void)state;
    page = onuma__os_abilities_get()->page_size;
    granule = onuma__os_abilities_get()->reserve_granule;
    return 0;
}

static MEMORY_BASIC_INFORMATION query(const void *p) {
    MEMORY_BASIC_INFORMATION info = {0};
    assert_true(VirtualQuery(p, &info, sizeof info) != 0);
    return info;
}

static void abilities_are_the_systems(void **state) {
    (void)state;
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    assert_int_equal(page, info.dwPageSize);
    assert_int_equal(granule, info.dwAllocationGranularity);
}

static void reserved_committed_and_given_back(void **state) {
    (void)state;
    const size_t size = 16 * page;
    unsigned char *p = onuma__os_reserve(size, 0);
    assert_non_null(p);
    assert_int_equal(query(p).State, MEM_RESERVE);
    assert_int_equal(query(p + size - 1).State, MEM_RESERVE);
    assert_int_equal(onuma__os_commit(p + page, 2 * page), ONUMA_OK);
    assert_int_equal(query(p).State, MEM_RESERVE);
    assert_int_equal(query(p + page).State, MEM_COMMIT);
    assert_int_equal(query(p + page).Protect, PAGE_READWRITE);
    assert_int_equal(query(p + 3 * page).State, MEM_RESERVE);
    for (size_t i = page; i < 3 * page; i++)
        assert_int_equal(p[i], 0);
    memset(p + page, 0xab, 2 * page);
    assert_int_equal(onuma__os_decommit(p + page, page), ONUMA_OK);
    assert_int_equal(query(p + page).State, MEM_RESERVE);
    assert_int_equal(p[2 * page], 0xab);
    assert_int_equal(onuma__os_commit(p + page, page), ONUMA_OK);
    for (size_t i = page; i < 2 * page; i++)
        assert_int_equal(p[i], 0);
    onuma__os_release(p, size);
    assert_int_equal(query(p).State, MEM_FREE);
}

static void alignments_are_kept(void **state) {
    (void)state;
    for (size_t align = 1; align <= (size_t)64 << 20; align *= 4) {
        void *reserved = onuma__os_reserve(3 * page, align), *mapped = onuma__os_map(5 * page, align);
        assert_non_null(reserved);
        assert_non_null(mapped);
        assert_int_equal((uintptr_t)reserved % (align > granule ? align : granule), 0);
        assert_int_equal((uintptr_t)mapped % (align > granule ? align : granule), 0);
        memset(mapped, 1, 5 * page);
        onuma__os_release(reserved, 3 * page);
        onuma__os_release(mapped, 5 * page);
    }
}

/* A reservation costs addresses, a touched page memory, and decommitting gives that back. */
static void memory_comes_back(void **state) {
    (void)state;
    const size_t size = (size_t)128 << 20;
    const size_t before = system_resident();
    assert_true(before > 0);
    char *p = onuma__os_reserve((size_t)64 << 30, 0);
    assert_non_null(p);
    assert_int_equal(onuma__os_commit(p, size), ONUMA_OK);
    memset(p, 1, size);
    const size_t touched = system_resident();
    assert_true(touched > before + size / 2 && touched < before + 2 * size);
    assert_int_equal(onuma__os_decommit(p, size), ONUMA_OK);
    assert_true(system_resident() < before + size / 2);
    onuma__os_release(p, (size_t)64 << 30);
}

static void protections_hold(void **state) {
    (void)state;
    char *p = onuma__os_map(3 * page, 0);
    assert_non_null(p);
    assert_int_equal(onuma__os_protect(p + page, page, ONUMA__PROTECT_READ), ONUMA_OK);
    assert_int_equal(query(p).Protect, PAGE_READWRITE);
    assert_int_equal(query(p + page).Protect, PAGE_READONLY);
    assert_int_equal(onuma__os_protect(p + page, page, ONUMA__PROTECT_NONE), ONUMA_OK);
    assert_int_equal(query(p + page).Protect, PAGE_NOACCESS);
    assert_int_equal(onuma__os_protect(p + page, page, ONUMA__PROTECT_READ_WRITE), ONUMA_OK);
    p[page] = 1;
    onuma__os_release(p, 3 * page);
}

static void the_impossible_is_refused_in_words(void **state) {
    (void)state;
    assert_null(onuma__os_map(SIZE_MAX - 5, 0));
    assert_null(onuma__os_reserve((size_t)1 << 60, 0));
    assert_non_null(strstr(onuma_last_error(), "bytes"));
    char *p = onuma__os_reserve(granule, 0);
    assert_int_equal(onuma__os_commit(p + 1, page), ONUMA_ERROR_INTERNAL);
    assert_non_null(strstr(onuma_last_error(), "whole pages"));
    assert_int_equal(onuma__os_protect(p, page, (onuma__os_protection)9), ONUMA_ERROR_INTERNAL);
    /* The reservation ends there: nothing of the neighbour's may change. */
    assert_int_not_equal(onuma__os_commit(p, (size_t)1 << 46), ONUMA_OK);
    assert_int_equal(query(p).State, MEM_RESERVE);
    onuma__os_release(p, granule);
}

static void reading_is_tried(void **state) {
    (void)state;
    char *p = onuma__os_map(2 * page, 0);
    assert_true(onuma__os_can_read(p));
    assert_false(onuma__os_can_read(p + 1)); /* no object begins there */
    assert_int_equal(onuma__os_protect(p, page, ONUMA__PROTECT_NONE), ONUMA_OK);
    assert_false(onuma__os_can_read(p));
    assert_true(onuma__os_can_read(p + page));
    onuma__os_release(p, 2 * page);
    assert_false(onuma__os_can_read(p + page));
    assert_false(onuma__os_can_read(NULL));
    assert_false(onuma__os_can_read((void *)(uintptr_t)0x1000));
}

static void memory_is_told(void **state) {
    (void)state;
    uint64_t total = 0, available = 0;
    onuma__os_memory(&total, &available);
    assert_true(total > (64u << 20));
    assert_true(available > 0 && available <= total);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(abilities_are_the_systems), cmocka_unit_test(reserved_committed_and_given_back),
        cmocka_unit_test(alignments_are_kept),       cmocka_unit_test(memory_comes_back),
        cmocka_unit_test(protections_hold),          cmocka_unit_test(the_impossible_is_refused_in_words),
        cmocka_unit_test(reading_is_tried),          cmocka_unit_test(memory_is_told),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
