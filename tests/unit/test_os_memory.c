/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory: what is committed reads zero, what is not faults, and wrong arguments are refused. */
#define _GNU_SOURCE
#include "support.h"

#include "os/os.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t page;
static int probe[2];

static int setup(void **state) {
    (void)state;
    page = onuma__os_abilities_get()->page_size;
    return pipe(probe);
}

/* Whether the byte can be read, by letting the kernel try: no fault, and no handler for one. */
static bool readable(const void *p) {
    ssize_t n = write(probe[1], p, 1);
    assert_true(n == 1 || errno == EFAULT);
    char byte;
    if (n == 1) assert_int_equal(read(probe[0], &byte, 1), 1);
    return n == 1;
}

static bool writable(void *p) {
    char byte = 0;
    assert_int_equal(write(probe[1], &byte, 1), 1);
    ssize_t n = read(probe[0], p, 1);
    assert_true(n == 1 || errno == EFAULT);
    if (n != 1) assert_int_equal(read(probe[0], &byte, 1), 1);
    return n == 1;
}

static void abilities_make_sense(void **state) {
    (void)state;
    const onuma__os_abilities *abilities = onuma__os_abilities_get();
    assert_int_equal(abilities->page_size, sysconf(_SC_PAGESIZE));
    assert_int_equal(abilities->reserve_granule % abilities->page_size, 0);
    const uint64_t space = abilities->address_space;
    assert_true(space >= (uint64_t)1 << 36 && (space & (space - 1)) == 0);
    assert_true((uintptr_t)&space < space && (uintptr_t)&page < space);
    assert_ptr_equal(abilities, onuma__os_abilities_get());
}

static void reserved_faults_committed_is_zero(void **state) {
    (void)state;
    const size_t size = 16 * page;
    unsigned char *p = onuma__os_reserve(size, 0);
    assert_non_null(p);
    assert_false(readable(p));
    assert_false(readable(p + size - 1));

    assert_int_equal(onuma__os_commit(p + page, 2 * page), ONUMA_OK);
    assert_false(readable(p + page - 1));
    assert_false(readable(p + 3 * page));
    for (size_t i = page; i < 3 * page; i++)
        assert_int_equal(p[i], 0);
    memset(p + page, 0xab, 2 * page);

    assert_int_equal(onuma__os_decommit(p + page, page), ONUMA_OK);
    assert_false(readable(p + page));
    assert_int_equal(p[2 * page], 0xab);
    assert_int_equal(onuma__os_commit(p + page, page), ONUMA_OK);
    for (size_t i = page; i < 2 * page; i++)
        assert_int_equal(p[i], 0);
    assert_int_equal(p[3 * page - 1], 0xab);

    onuma__os_release(p, size);
    assert_false(readable(p + page));
}

static size_t resident_pages(void *p, size_t size) {
    unsigned char in[64 * 16]; /* qemu writes one for each page of the machine below it, which may be smaller */
    assert_true(size / page <= 64);
    assert_int_equal(mincore(p, size, in), 0);
    size_t count = 0;
    for (size_t i = 0; i < size / page; i++)
        count += in[i] & 1;
    return count;
}

static void decommit_gives_the_memory_back(void **state) {
    (void)state;
    const size_t size = 64 * page;
    char *p = onuma__os_reserve(size, 0);
    assert_non_null(p);
    assert_int_equal(onuma__os_commit(p, size), ONUMA_OK);
    memset(p, 1, size);
    assert_int_equal(resident_pages(p, size), 64);
    assert_int_equal(onuma__os_decommit(p, size), ONUMA_OK);
    assert_int_equal(onuma__os_decommit(p, size), ONUMA_OK);
    assert_int_equal(onuma__os_commit(p, size), ONUMA_OK); /* emulators tell nothing of pages that are closed */
    assert_int_equal(resident_pages(p, size), 0);
    onuma__os_release(p, size);
}

static void locked_memory_is_given_back_too(void **state) {
    (void)state;
    char *p = onuma__os_map(page, 0);
    assert_non_null(p);
    assert_int_equal(mlock(p, page), 0);
    *p = 1;
    assert_int_equal(onuma__os_decommit(p, page), ONUMA_OK);
    assert_false(readable(p));
    assert_int_equal(onuma__os_commit(p, page), ONUMA_OK);
    assert_int_equal(*p, 0);
    onuma__os_release(p, page);
}

static void alignments_are_kept(void **state) {
    (void)state;
    for (size_t align = 1; align <= (size_t)1 << 32; align *= 2) {
        char *p = onuma__os_reserve(3 * page, align);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % align, 0);
        assert_int_equal(onuma__os_commit(p, 3 * page), ONUMA_OK);
        p[0] = p[3 * page - 1] = 1;
        char *q = onuma__os_map(page + 1, align);
        assert_non_null(q);
        assert_int_equal((uintptr_t)q % align, 0);
        assert_int_equal(q[page], 0);
        q[0] = q[2 * page - 1] = 1;
        onuma__os_release(p, 3 * page);
        onuma__os_release(q, page + 1);
        assert_false(readable(p));
        assert_false(readable(q + page));
    }
}

static void reserving_takes_no_memory(void **state) {
    (void)state;
    const size_t size = (size_t)64 << 30;
    char *p = onuma__os_reserve(size, (size_t)2 << 20);
    assert_non_null(p);
    assert_int_equal(onuma__os_commit(p + size - page, page), ONUMA_OK);
    p[size - 1] = 1;
    onuma__os_release(p, size);
}

static void the_impossible_is_refused_in_words(void **state) {
    (void)state;
    onuma__fail(ONUMA_OK, "%s", "");
    assert_null(onuma__os_reserve((SIZE_MAX / 2 + 1), 0));
    assert_true(strlen(onuma_last_error()) > 0);
    onuma__fail(ONUMA_OK, "%s", "");
    assert_null(onuma__os_reserve(page, SIZE_MAX / 2 + 1));
    assert_true(strlen(onuma_last_error()) > 0);
    assert_null(onuma__os_reserve(SIZE_MAX & ~(page - 1), 2 * page));
    assert_null(onuma__os_map(SIZE_MAX, 0));
    assert_null(onuma__os_map(0, 0));
    assert_null(onuma__os_reserve(0, 0));
    assert_null(onuma__os_reserve(page + 1, 0));
    assert_null(onuma__os_reserve(page, 3 * page));
}

static void what_is_not_whole_pages_is_refused(void **state) {
    (void)state;
    char *p = onuma__os_map(4 * page, 0);
    assert_non_null(p);
    memset(p, 7, 4 * page);
    const struct {
        char *p;
        size_t size;
    } bad[] = {{NULL, page},
               {p, 0},
               {p, page - 1},
               {p + 1, page},
               {p + page / 2, page / 2},
               {p, SIZE_MAX},
               {p, SIZE_MAX & ~(page - 1)}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(onuma__os_commit(bad[i].p, bad[i].size), ONUMA_ERROR_INTERNAL);
        assert_int_equal(onuma__os_decommit(bad[i].p, bad[i].size), ONUMA_ERROR_INTERNAL);
        assert_int_equal(onuma__os_protect(bad[i].p, bad[i].size, ONUMA__PROTECT_NONE), ONUMA_ERROR_INTERNAL);
        onuma__os_exclude_from_fork(bad[i].p, bad[i].size);
    }
    onuma__os_release(NULL, page);
    onuma__os_release(p + 1, page);
    onuma__os_release(p, 0);
    onuma__os_release(p, SIZE_MAX);
    assert_int_equal(onuma__os_protect(p, page, (onuma__os_protection)9), ONUMA_ERROR_INTERNAL);
    for (size_t i = 0; i < 4 * page; i++)
        assert_int_equal(p[i], 7);
    onuma__os_release(p, 4 * page);
}

static void protections_hold(void **state) {
    (void)state;
    char *p = onuma__os_map(2 * page, 0);
    assert_non_null(p);
    p[0] = p[page] = 9;
    assert_int_equal(onuma__os_protect(p, page, ONUMA__PROTECT_READ), ONUMA_OK);
    assert_true(readable(p));
    assert_false(writable(p));
    assert_true(writable(p + page));
    assert_int_equal(onuma__os_protect(p, page, ONUMA__PROTECT_NONE), ONUMA_OK);
    assert_false(readable(p));
    assert_int_equal(onuma__os_protect(p, page, ONUMA__PROTECT_READ_WRITE), ONUMA_OK);
    assert_int_equal(p[0], 9);
    assert_true(writable(p));
    onuma__os_release(p, 2 * page);
}

static void memory_is_told(void **state) {
    (void)state;
    uint64_t total = 0, available = 0;
    onuma__os_memory(&total, &available);
    assert_true(total > 0 && available > 0 && available <= total);
    assert_true(total / page <= (uint64_t)sysconf(_SC_PHYS_PAGES)); /* memory need not end with a whole page */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(abilities_make_sense),
        cmocka_unit_test(reserved_faults_committed_is_zero),
        cmocka_unit_test(decommit_gives_the_memory_back),
        cmocka_unit_test(locked_memory_is_given_back_too),
        cmocka_unit_test(alignments_are_kept),
        cmocka_unit_test(reserving_takes_no_memory),
        cmocka_unit_test(the_impossible_is_refused_in_words),
        cmocka_unit_test(what_is_not_whole_pages_is_refused),
        cmocka_unit_test(protections_hold),
        cmocka_unit_test(memory_is_told),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
