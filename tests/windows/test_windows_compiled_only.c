/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Wine cannot do, so that the code for it is compiled and never run: each shows that it still cannot. One that
 * fails is good news: the ability can be tested from now on, and leaves compiled-only.txt.
 */
#include "../unit/support.h"

#include "os/os.h"

#include <string.h>

static void barrier_on_all_threads(void **state) {
    (void)state;
    assert_false(onuma__os_abilities_get()->asymmetric_barrier);
    assert_false(onuma__os_barrier_all());
}

static void large_pages(void **state) {
    (void)state;
    const char *why;
    assert_int_equal(onuma__os_large_page_size(&why), 0);
    assert_non_null(strstr(why, "lock pages"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(barrier_on_all_threads),
        cmocka_unit_test(large_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
