/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's state from its first use to its exit, workers, once and fork. */
#define _GNU_SOURCE
#include "support.h"

#include "os/os.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8, ROUNDS = 25 };

static void join(pthread_t thread) {
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static pthread_t start(void *(*fn)(void *), void *argument) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, fn, argument), 0);
    return thread;
}

/* The heaps of these tests: an address that says "to be handed back", counted out and in. */
static int heap;
static _Atomic int handed_out, handed_back, hook_calls;
static _Atomic uint64_t last_exited;

static void hook(onuma__os_thread *t) {
    hook_calls++;
    last_exited = t->number;
    if (t->heaps == &heap) handed_back++;
    t->heaps = NULL;
    onuma__fail(ONUMA_ERROR_BUSY, "failing inside the hook is allowed");
}

static void take_heap(void) {
    onuma__os_thread *t = onuma__os_thread_get();
    if (t->number != 0 && t->heaps == NULL) {
        t->heaps = &heap;
        handed_out++;
    }
}

static int reset_counts(void **state) {
    (void)state;
    handed_out = handed_back = hook_calls = 0;
    onuma__os_on_thread_exit(hook);
    return 0;
}

static void *use_nothing(void *argument) {
    return argument;
}

static void *use_library(void *argument) {
    uint64_t *number = argument;
    onuma__os_thread *t = onuma__os_thread_get();
    *number = t == onuma__os_thread_get() && t->heaps == NULL && t->in_handler == 0 ? t->number : 0;
    take_heap();
    onuma__fail(ONUMA_ERROR_IO, "a text to be freed");
    return NULL;
}

static void exit_calls_the_hook_once(void **state) {
    (void)state;
    join(start(use_nothing, NULL));
    assert_int_equal(hook_calls, 0);
    uint64_t number = 0;
    join(start(use_library, &number));
    assert_int_equal(hook_calls, 1);
    assert_int_equal(handed_back, 1);
    assert_true(number != 0);
    assert_true(last_exited == number);
}

static int compare(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void numbers_are_unique(void **state) {
    (void)state;
    uint64_t numbers[ROUNDS * THREADS + 1];
    for (size_t round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        for (size_t i = 0; i < THREADS; i++)
            threads[i] = start(use_library, &numbers[round * THREADS + i]);
        for (size_t i = 0; i < THREADS; i++)
            join(threads[i]);
    }
    numbers[ROUNDS * THREADS] = onuma__os_thread_get()->number;
    assert_true(numbers[ROUNDS * THREADS] == onuma__os_thread_get()->number);
    qsort(numbers, ROUNDS * THREADS + 1, sizeof *numbers, compare);
    assert_true(numbers[0] != 0);
    for (size_t i = 1; i <= ROUNDS * THREADS; i++)
        assert_true(numbers[i] != numbers[i - 1]);
    assert_int_equal(hook_calls, ROUNDS * THREADS);
    assert_int_equal(handed_back, handed_out);
}

/* Other exit handlers, of keys made before and after the library's, that use the library: all is handed back. */
static pthread_key_t keys[4];
static _Atomic int late_uses;

static void late_use(void *value) {
    (void)value;
    late_uses++;
    take_heap();
    onuma__fail(ONUMA_ERROR_IO, "a late text");
}

static void *use_with_keys(void *argument) {
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        pthread_setspecific(keys[i], &heap);
    return use_library(argument);
}

static void late_uses_are_handed_back_too(void **state) {
    (void)state;
    for (size_t i = 2; i < 4; i++)
        assert_int_equal(pthread_key_create(&keys[i], late_use), 0);
    uint64_t number = 0;
    join(start(use_with_keys, &number));
    for (size_t i = 0; i < 4; i++)
        pthread_key_delete(keys[i]);
    assert_int_equal(late_uses, 4);
    assert_true(handed_out >= 2);
    assert_int_equal(handed_back, handed_out);
    assert_int_equal(hook_calls, handed_out);
    assert_true(last_exited != number);
}

/* ----------------------------------------------------------------- workers */

static void report_mask(void *argument) {
    pthread_sigmask(SIG_SETMASK, NULL, argument);
}

static void workers_take_no_signals(void **state) {
    (void)state;
    sigset_t before, after, inside;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    onuma__os_worker *worker = NULL;
    assert_int_equal(onuma__os_worker_start(report_mask, &inside, &worker), ONUMA_OK);
    onuma__os_worker_join(worker);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    const int blocked[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGCHLD, SIGPROF};
    for (size_t i = 0; i < sizeof blocked / sizeof *blocked; i++) {
        assert_int_equal(sigismember(&inside, blocked[i]), 1);
        assert_int_equal(sigismember(&after, blocked[i]), sigismember(&before, blocked[i]));
    }
    assert_int_equal(sigismember(&inside, SIGSEGV), 0);
    onuma__os_worker_join(NULL);
}

static void use_in_worker(void *argument) {
    use_library(argument);
}

static void workers_exit_like_other_threads(void **state) {
    (void)state;
    uint64_t number = 0;
    onuma__os_worker *worker = NULL;
    assert_int_equal(onuma__os_worker_start(use_in_worker, &number, &worker), ONUMA_OK);
    onuma__os_worker_join(worker);
    assert_int_equal(hook_calls, 1);
    assert_true(last_exited == number);
}

/* -------------------------------------------------------------------- once */

static _Atomic int runs;
static int written_once;

static void run_slowly(void) {
    runs++;
    onuma__os_sleep(2000000);
    written_once = 42;
}

static onuma__os_once contended;

static void *run_contended(void *argument) {
    onuma__os_once_run(&contended, run_slowly);
    *(int *)argument = written_once;
    return NULL;
}

static void once_runs_once_and_all_wait(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    int seen[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        threads[i] = start(run_contended, &seen[i]);
    for (size_t i = 0; i < THREADS; i++)
        join(threads[i]);
    onuma__os_once_run(&contended, run_slowly);
    assert_int_equal(runs, 1);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(seen[i], 42);
}

/* -------------------------------------------------------------------- fork */

static int exit_status(pid_t child) {
    int status;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static onuma__os_once interrupted;
static _Atomic bool inside, proceed;

static void wait_inside(void) {
    inside = true;
    while (!proceed)
        onuma__os_yield();
}

static void *run_interrupted(void *argument) {
    onuma__os_once_run(&interrupted, wait_inside);
    return argument;
}

static void a_child_does_not_wait_for_a_thread_it_lacks(void **state) {
    (void)state;
    pthread_t thread = start(run_interrupted, NULL);
    while (!inside)
        onuma__os_yield();
    pid_t child = fork();
    if (child == 0) {
        proceed = true;
        alarm(20);
        onuma__os_once_run(&interrupted, wait_inside);
        _exit(0);
    }
    proceed = true;
    join(thread);
    assert_int_equal(exit_status(child), 0);
}

static char order[16];

static void note(char c) {
    order[strlen(order)] = c;
}

/* Hooks of two layers, the outer one in capitals. */
#define HOOK(name, letter)                                                                                             \
    static void name(void) {                                                                                           \
        note(letter);                                                                                                  \
    }
HOOK(inner_before, 'b')
HOOK(inner_parent, 'p')
HOOK(inner_child, 'c')
HOOK(outer_before, 'B')
HOOK(outer_parent, 'P')
HOOK(outer_child, 'C')

static void forks_are_noticed(void **state) {
    (void)state;
    uint64_t generation = onuma__os_process_generation();
    assert_true(generation == onuma__os_process_generation());
    onuma__os_at_fork(0, inner_before, inner_parent, inner_child);
    onuma__os_at_fork(3, outer_before, outer_parent, outer_child);
    onuma__os_at_fork(ONUMA__OS_FORK_ORDERS, outer_before, outer_parent, outer_child); /* ignored */
    pid_t child = fork();
    if (child == 0) {
        uint64_t mine = onuma__os_process_generation();
        if (mine == generation) _exit(1);
        if (strcmp(order, "BbcC") != 0) _exit(2);
        pid_t grandchild = fork();
        if (grandchild == 0) {
            uint64_t its = onuma__os_process_generation();
            _exit(its == mine || its == generation ? 3 : 0);
        }
        int status = 0;
        waitpid(grandchild, &status, 0);
        _exit(WEXITSTATUS(status));
    }
    assert_int_equal(exit_status(child), 0);
    assert_string_equal(order, "BbpP");
    assert_true(generation == onuma__os_process_generation());
    onuma__os_at_fork(0, NULL, NULL, NULL);
    onuma__os_at_fork(3, NULL, NULL, NULL);
    child = fork();
    if (child == 0) _exit(strcmp(order, "BbpP") == 0 ? 0 : 1);
    assert_int_equal(exit_status(child), 0);
}

static void the_clock_and_sleep_go_forward(void **state) {
    (void)state;
    uint64_t begin = onuma__os_now();
    onuma__os_sleep(3000000);
    assert_true(onuma__os_now() - begin >= 3000000);
    onuma__os_sleep(0);
}

int main(void) {
    /* Two keys before the library makes its own: destructors mostly run in the order of keys. */
    if (pthread_key_create(&keys[0], late_use) != 0 || pthread_key_create(&keys[1], late_use) != 0) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(exit_calls_the_hook_once, reset_counts),
        cmocka_unit_test_setup(numbers_are_unique, reset_counts),
        cmocka_unit_test_setup(late_uses_are_handed_back_too, reset_counts),
        cmocka_unit_test(workers_take_no_signals),
        cmocka_unit_test_setup(workers_exit_like_other_threads, reset_counts),
        cmocka_unit_test(once_runs_once_and_all_wait),
        cmocka_unit_test(a_child_does_not_wait_for_a_thread_it_lacks),
        cmocka_unit_test(forks_are_noticed),
        cmocka_unit_test(the_clock_and_sleep_go_forward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
