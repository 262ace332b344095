/* SPDX-License-Identifier: Apache-2.0 */
/* Decay in forked children of a program with threads. The thread sanitizer lets no such child start a thread, qemu fails. */
#include "policy_decay.h"

#include <sys/wait.h>
#include <unistd.h>

#include "policy/private.h"

/* A child has no thread until its calls come to upkeep, whatever its parent's was doing; and goes on without its parent's. */
static void a_child_gets_a_thread_of_its_own(void **state) {
    (void)state;
    fixture f;
    void *blocks[16];
    open_fixture(&f, THREAD_SETTINGS, ONUMA_SOURCE_RANGE);
    for (int i = 0; i < 20; i++) {
        fill(&f, 512 * MIB, blocks);
        empty(blocks, 16);
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            fill(&f, 512 * MIB, blocks);
            empty(blocks, 16);
            for (unsigned n = 0; n < ONUMA__UPKEEP_EVERY; n++) {
                fill(&f, 32 * MIB, blocks);
                empty(blocks, 1);
            }
            wait_until_empty(&f);
            _exit(onuma_pool_destroy(f.handle) == ONUMA_OK ? 0 : 1);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    wait_until_empty(&f);
    close_fixture(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_child_gets_a_thread_of_its_own)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
