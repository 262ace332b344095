/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drivers' libraries: found by bare name only, and an absent one told from a broken one. The environment points the
 * system's loader at the libraries that CMakeLists.txt makes.
 */
#define _GNU_SOURCE
#include "support.h"

#include "os/os.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

static void paths_are_refused(void **state) {
    (void)state;
    const char *names[] = {"/lib/libc.so.6",
                           "./libc.so.6",
                           "../libc.so.6",
                           "a/b.so",
                           "C:\\nvcuda.dll",
                           "\\\\host\\x.dll",
                           "c:x.dll",
                           "",
                           ".",
                           "..",
                           NULL};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char why[128] = "";
        assert_null(onuma__os_library_open(names[i], why, sizeof why));
        assert_non_null(strstr(why, "bare file name"));
        assert_null(onuma__os_library_open(names[i], NULL, 0));
    }
}

static void absence_is_quiet(void **state) {
    (void)state;
    onuma__fail(ONUMA_OK, "untouched");
    char why[128] = "something";
    assert_null(onuma__os_library_open("libopennuma-no-such-driver.so.1", why, sizeof why));
    assert_string_equal(why, "");
    assert_string_equal(onuma_last_error(), "untouched");
}

static void a_broken_library_is_told(void **state) {
    (void)state;
    char why[256] = "";
    assert_null(onuma__os_library_open("libonuma_test_broken.so", why, sizeof why));
    assert_non_null(strstr(why, "libonuma_test_broken.so"));
    char cut[8] = "";
    assert_null(onuma__os_library_open("libonuma_test_broken.so", cut, sizeof cut));
    assert_int_equal(strlen(cut), sizeof cut - 1);
}

static void a_library_that_lacks_another_is_broken_not_absent(void **state) {
    (void)state;
    char why[256] = "";
    assert_null(onuma__os_library_open("libonuma_test_lacking.so", why, sizeof why));
    assert_non_null(strstr(why, "libonuma_test_dependency.so"));
}

static void a_good_library_gives_symbols(void **state) {
    (void)state;
    char why[256] = "x";
    void *library = onuma__os_library_open("libonuma_test_good.so", why, sizeof why);
    if (!library) fail_msg("%s", why);
    int (*fn)(void);
    *(void **)&fn = onuma__os_library_symbol(library, "onuma_test_answer");
    assert_non_null(fn);
    assert_int_equal(fn(), 42);
    assert_null(onuma__os_library_symbol(library, "onuma_test_no_such_symbol"));
    assert_null(onuma__os_library_symbol(NULL, "onuma_test_answer"));
}

static void the_environment_is_read(void **state) {
    (void)state;
    assert_null(onuma__os_getenv("ONUMA_TEST_NOT_SET"));
    assert_int_equal(setenv("ONUMA_TEST_SET", "value", 1), 0);
    assert_string_equal(onuma__os_getenv("ONUMA_TEST_SET"), "value");
}

int main(void) {
    setlocale(LC_ALL, "");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_refused),
        cmocka_unit_test(absence_is_quiet),
        cmocka_unit_test(a_broken_library_is_told),
        cmocka_unit_test(a_library_that_lacks_another_is_broken_not_absent),
        cmocka_unit_test(a_good_library_gives_symbols),
        cmocka_unit_test(the_environment_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
