/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child made by fork(): plain host pools go on working, what hangs on a
 * driver is refused, nothing hangs, whatever other threads were doing. Children
 * tell what went wrong by their exit status: the line number.
 */
#include "api.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) _exit(__LINE__ % 255 + 1);                                                                   \
    } while (0)

static void join_child(pid_t child) {
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) fail_msg("the child died of signal %d", WTERMSIG(status));
    if (WEXITSTATUS(status) != 0) fail_msg("the child failed at line %d (modulo 255)", WEXITSTATUS(status) - 1);
}

static void host_pools_work_in_a_child(void **state) {
    (void)state;
    onuma_runtime *rt = api_runtime("backends:host", NULL);
    onuma_pool *pool = api_pool(api_host(rt), 0);
    void *block, *large;
    OK(onuma_alloc(pool, 100, 0, NULL, &block));
    OK(onuma_alloc(pool, 1 << 20, 0, NULL, &large));
    api_fill(block, 100, 5);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(20);
        void *mine;
        CHILD(((char *)block)[99] == 5);
        CHILD(onuma_alloc(pool, 5000, 0, NULL, &mine) == ONUMA_OK);
        memset(mine, 1, 5000);
        CHILD(onuma_free(mine, NULL) == ONUMA_OK);
        CHILD(onuma_free(block, NULL) == ONUMA_OK);
        CHILD(onuma_free(block, NULL) == ONUMA_ERROR_DOUBLE_FREE);
        CHILD(onuma_free(large, NULL) == ONUMA_OK);
        CHILD(onuma_pool_destroy(pool) == ONUMA_OK);
        onuma_runtime_destroy(rt);
        onuma_runtime *own;
        CHILD(onuma_runtime_create(NULL, &own) == ONUMA_OK);
        onuma_runtime_destroy(own);
        _exit(0);
    }
    join_child(child);
    api_check(block, 100, 5);
    OK(onuma_free(block, NULL));
    OK(onuma_free(large, NULL));
    OK(onuma_pool_destroy(pool));
    onuma_runtime_destroy(rt);
}

/* On whatever driver's device there is; the host alone has none to refuse. */
static void driver_pools_are_refused_in_a_child(void **state) {
    (void)state;
    onuma_runtime *rt = api_runtime("backends:all", NULL);
    onuma_device *device = onuma_device_at(rt, 0);
    if (onuma_device_count(rt) == 1) {
        print_message("no driver on this machine: its refusal after fork() was not seen\n");
        onuma_runtime_destroy(rt);
        return;
    }
    onuma_pool *pool = api_pool(device, 0);
    void *block;
    OK(onuma_alloc(pool, 100, 0, NULL, &block));
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(20);
        void *out;
        onuma_pool *another;
        onuma_device_info info = ONUMA_DEVICE_INFO_INIT;
        CHILD(onuma_alloc(pool, 100, 0, NULL, &out) == ONUMA_ERROR_FORKED);
        CHILD(strstr(onuma_last_error(), "parent process") != NULL);
        CHILD(onuma_free(block, NULL) == ONUMA_ERROR_FORKED);
        CHILD(onuma_realloc(block, 5000000, NULL, &out) == ONUMA_ERROR_FORKED);
        CHILD(onuma_host_acquire(block, 100, ONUMA_ACCESS_READ, 0) == ONUMA_ERROR_FORKED);
        CHILD(onuma_pool_trim(pool, 0, NULL) == ONUMA_ERROR_FORKED);
        CHILD(onuma_pool_destroy(pool) == ONUMA_ERROR_FORKED);
        CHILD(onuma_pool_create(device, NULL, &another) == ONUMA_ERROR_FORKED);
        CHILD(onuma_device_get_info(device, &info) == ONUMA_ERROR_FORKED);
        onuma_runtime_destroy(rt);
        _exit(0);
    }
    join_child(child);
    OK(onuma_free(block, NULL));
    OK(onuma_pool_destroy(pool));
    onuma_runtime_destroy(rt);
}

static atomic_bool stop;
static void *churn(void *argument) {
    onuma_pool *pool = argument;
    while (!stop) {
        void *block;
        if (onuma_alloc(pool, 3000, 0, NULL, &block) == ONUMA_OK) (void)onuma_free(block, NULL);
        if (onuma_alloc(pool, 1 << 20, 0, NULL, &block) == ONUMA_OK) (void)onuma_free(block, NULL);
        (void)onuma_pool_trim(pool, 0, NULL);
    }
    return NULL;
}

static void fork_amid_allocations_does_not_hang(void **state) {
    (void)state;
    onuma_runtime *rt = api_runtime("backends:host,track:full", NULL);
    onuma_pool *pool = api_pool(api_host(rt), 0);
    pthread_t threads[2];
    stop = false;
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, pool), 0);
    for (unsigned round = 0; round < 30; round++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            alarm(20);
            void *small, *large;
            CHILD(onuma_alloc(pool, 3000, 0, NULL, &small) == ONUMA_OK);
            CHILD(onuma_alloc(pool, 1 << 20, 0, NULL, &large) == ONUMA_OK);
            memset(small, 1, 3000);
            memset(large, 1, 1 << 20);
            CHILD(onuma_free(small, NULL) == ONUMA_OK);
            CHILD(onuma_free(large, NULL) == ONUMA_OK);
            _exit(0);
        }
        join_child(child);
    }
    stop = true;
    for (size_t i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    OK(onuma_pool_destroy(pool));
    onuma_runtime_destroy(rt);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_pools_work_in_a_child),
        cmocka_unit_test(driver_pools_are_refused_in_a_child),
        cmocka_unit_test(fork_amid_allocations_does_not_hang),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
