/* SPDX-License-Identifier: Apache-2.0 */
/* A filter that forbids membarrier after it was promised: others' fast halves run without fences, so "no" is no answer. */
#define _GNU_SOURCE
#include "support.h"

#include "os/os.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static bool forbid_membarrier(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = sizeof code / sizeof *code, .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0 &&
           syscall(SYS_membarrier, 0, 0, 0) == -1 && errno == EPERM;
}

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
