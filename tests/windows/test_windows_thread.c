/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's state from its first use to its exit: threads, fibers, and callbacks that use the library late. */
#include "../unit/support.h"

#include "os/os.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

enum { THREADS = 8, ROUNDS = 25 };

static int heap; /* an address that says "to be handed back" */
static _Atomic int handed_out, handed_back, hook_calls;
static _Atomic uint64_t last_exited;

static void hook(onuma__os_thread *t) {
    hook_calls++;
    last_exited = t->number;
    if (t->heaps == &heap) handed_back++;
    t->heaps = NULL;
    onuma__fail(ONUMA_ERROR_BUSY, "failing inside the hook is allowed");
}

static int reset(void **state) {
    (void)state;
    handed_out = handed_back = hook_calls = 0;
    onuma__os_on_thread_exit(hook);
    return 0;
}

static void take_heap(void) {
    onuma__os_thread *t = onuma__os_thread_get();
    if (t->number != 0 && t->heaps == NULL) {
        t->heaps = &heap;
        handed_out++;
    }
}

static DWORD WINAPI use_library(void *argument) {
    uint64_t *number = argument;
    onuma__os_thread *t = onuma__os_thread_get();
    *number = t == onuma__os_thread_get() && t->heaps == NULL && t->in_handler == 0 ? t->number : 0;
    take_heap();
    onuma__fail(ONUMA_ERROR_IO, "a text to be freed");
    return 0;
}

static DWORD WINAPI use_nothing(void *argument) {
    (void)argument;
    return 0;
}

static HANDLE start(LPTHREAD_START_ROUTINE fn, void *argument) {
    HANDLE thread = CreateThread(NULL, 0, fn, argument, 0, NULL);
    assert_non_null(thread);
    return thread;
}

static void join(HANDLE thread) {
    assert_int_equal(WaitForSingleObject(thread, 60000), WAIT_OBJECT_0);
    CloseHandle(thread);
}

static void exit_calls_the_hook_once(void **state) {
    (void)state;
    join(start(use_nothing, NULL));
    assert_int_equal(hook_calls, 0);
    uint64_t number = 0;
    join(start(use_library, &number));
    assert_int_equal(hook_calls, 1);
    assert_int_equal(handed_back, 1);
    assert_true(number != 0 && last_exited == number);
}

static int compare(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void numbers_are_unique(void **state) {
    (void)state;
    uint64_t numbers[ROUNDS * THREADS + 1];
    for (size_t round = 0; round < ROUNDS; round++) {
        HANDLE threads[THREADS];
        for (size_t i = 0; i < THREADS; i++)
            threads[i] = start(use_library, &numbers[round * THREADS + i]);
        for (size_t i = 0; i < THREADS; i++)
            join(threads[i]);
    }
    numbers[ROUNDS * THREADS] = onuma__os_thread_get()->number;
    qsort(numbers, ROUNDS * THREADS + 1, sizeof *numbers, compare);
    assert_true(numbers[0] != 0);
    for (size_t i = 1; i <= ROUNDS * THREADS; i++)
        assert_true(numbers[i] != numbers[i - 1]);
    assert_int_equal(hook_calls, ROUNDS * THREADS);
    assert_int_equal(handed_back, handed_out);
}

/* Callbacks of other slots, made before and after the library's, use the library while the thread ends. */
static DWORD early_slot, late_slot;
static _Atomic int late_uses;

static void NTAPI use_late(void *value) {
    if (!value) return;
    late_uses++;
    take_heap();
    onuma__fail(ONUMA_ERROR_IO, "a late text");
}

static DWORD WINAPI use_with_slots(void *argument) {
    FlsSetValue(early_slot, &heap);
    FlsSetValue(late_slot, &heap);
    return use_library(argument);
}

static void late_uses_leave_nothing_behind(void **state) {
    (void)state;
    late_slot = FlsAlloc(use_late);
    assert_int_not_equal(late_slot, FLS_OUT_OF_INDEXES);
    uint64_t number = 0;
    join(start(use_with_slots, &number));
    assert_int_equal(late_uses, 2);
    assert_true(handed_out >= 1);
    assert_int_equal(handed_back, handed_out);
    FlsFree(late_slot);
}

/* ------------------------------------------------------------------ fibers */

static void *main_fiber;
static uint64_t fiber_number;

static void CALLBACK fiber_main(void *argument) {
    use_library(argument);
    SwitchToFiber(main_fiber);
}

static DWORD WINAPI run_fibers(void *argument) {
    uint64_t *wrong = argument;
    *wrong = 1;
    uint64_t mine = 0;
    use_library(&mine);
    main_fiber = ConvertThreadToFiber(NULL);
    void *fiber = main_fiber ? CreateFiber(0, fiber_main, &fiber_number) : NULL;
    if (!fiber) return 0;
    SwitchToFiber(fiber);
    const uint64_t still_mine = onuma__os_thread_get()->number;
    DeleteFiber(fiber); /* its state is handed back; the thread's lives on */
    *wrong = mine == 0 || fiber_number == 0 || fiber_number == mine || still_mine != mine || hook_calls != 1 ||
             last_exited != fiber_number || onuma__os_thread_get()->number != mine;
    return 0;
}

static void fibers_have_a_state_each(void **state) {
    (void)state;
    uint64_t wrong = 1;
    join(start(run_fibers, &wrong));
    assert_int_equal(wrong, 0);
    assert_int_equal(hook_calls, 2);
    assert_int_equal(handed_back, handed_out);
}

/* ----------------------------------------------------------------- workers */

static void use_in_worker(void *argument) {
    use_library(argument);
}

static void workers_exit_like_other_threads(void **state) {
    (void)state;
    uint64_t number = 0;
    onuma__os_worker *worker = NULL;
    assert_int_equal(onuma__os_worker_start(use_in_worker, &number, &worker), ONUMA_OK);
    onuma__os_worker_join(worker);
    onuma__os_worker_join(NULL);
    assert_int_equal(hook_calls, 1);
    assert_true(last_exited == number);
}

static _Atomic int runs;
static int written_once;
static onuma__os_once contended;

static void run_slowly(void) {
    runs++;
    onuma__os_sleep(2000000);
    written_once = 42;
}

static DWORD WINAPI run_contended(void *argument) {
    onuma__os_once_run(&contended, run_slowly);
    *(int *)argument = written_once;
    return 0;
}

static void once_runs_once_and_all_wait(void **state) {
    (void)state;
    HANDLE threads[THREADS];
    int seen[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        threads[i] = start(run_contended, &seen[i]);
    for (size_t i = 0; i < THREADS; i++)
        join(threads[i]);
    assert_int_equal(runs, 1);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(seen[i], 42);
}

static void the_clock_and_sleep_go_forward(void **state) {
    (void)state;
    uint64_t begin = onuma__os_now();
    onuma__os_sleep(3000000);
    assert_true(onuma__os_now() - begin >= 3000000);
    onuma__os_sleep(0);
    assert_int_equal(onuma__os_process_generation(), 1);
}

int main(void) {
    early_slot = FlsAlloc(use_late); /* before the library makes its own */
    if (early_slot == FLS_OUT_OF_INDEXES) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(exit_calls_the_hook_once, reset),
        cmocka_unit_test_setup(numbers_are_unique, reset),
        cmocka_unit_test_setup(late_uses_leave_nothing_behind, reset),
        cmocka_unit_test_setup(fibers_have_a_state_each, reset),
        cmocka_unit_test_setup(workers_exit_like_other_threads, reset),
        cmocka_unit_test(once_runs_once_and_all_wait),
        cmocka_unit_test(the_clock_and_sleep_go_forward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
