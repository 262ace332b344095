/* SPDX-License-Identifier: Apache-2.0 */
/* A filter that forbids membarrier after it was promised: others' fast halves run without fences, so "no" is no answer. */
#define _GNU_SOURCE
#include "membarrier.h"
#include "support.h"

#include "os/os.h"

#include <sys/wait.h>

static void a_promised_barrier_is_never_refused(void **state) {
    (void)state;
    const bool works = onuma__os_abilities_get()->asymmetric_barrier;
    const pid_t child = fork();
    if (child == 0) _exit(works && !forbid_membarrier() ? 2 : onuma__os_barrier_all() == works ? 0 : 1);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_promised_barrier_is_never_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
