/* SPDX-License-Identifier: Apache-2.0 */
/* Pages kept out of children. A program of its own, for emulators of other processors do not pass the request on. */
#define _GNU_SOURCE
#include "support.h"

#include "os/os.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

/* Whether the byte can be read, by letting the kernel try. */
static bool readable(const void *p) {
    int probe[2];
    if (pipe(probe) != 0) _exit(3);
    ssize_t n = write(probe[1], p, 1);
    if (n != 1 && errno != EFAULT) _exit(3);
    close(probe[0]);
    close(probe[1]);
    return n == 1;
}

static void excluded_pages_do_not_reach_a_child(void **state) {
    (void)state;
    const size_t page = onuma__os_abilities_get()->page_size;
    char *p = onuma__os_map(2 * page, 0);
    assert_non_null(p);
    onuma__os_exclude_from_fork(p, page);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(readable(p) ? 1 : readable(p + page) ? 0 : 2);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_true(readable(p));
    onuma__os_release(p, 2 * page);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(excluded_pages_do_not_reach_a_child)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
