/* SPDX-License-Identifier: Apache-2.0 */
/* The lock under contention, and the two halves of the asymmetric barrier against each other. */
#define _GNU_SOURCE
#include "support.h"

#include "os/os.h"

#include <pthread.h>
#include <stdatomic.h>
#if !defined(_WIN32)
#include <sys/wait.h>
#include <unistd.h>
#endif

enum { THREADS = 8, TURNS = 10000, LITMUS_ROUNDS = 8000 };

static onuma__os_lock lock;
static long counter; /* guarded by lock, and by nothing else */

static void *count(void *argument) {
    for (int i = 0; i < TURNS; i++) {
        if (i % 7 == 0) {
            while (!onuma__os_lock_try(&lock))
                onuma__os_yield();
        } else {
            onuma__os_lock_acquire(&lock);
        }
        counter++;
        if (i % 1000 == 0) onuma__os_yield(); /* held while others run: they must sleep, and be woken */
        onuma__os_lock_release(&lock);
    }
    return argument;
}

static void lock_excludes(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(counter, (long)THREADS * TURNS);
    assert_true(onuma__os_lock_try(&lock));
    assert_false(onuma__os_lock_try(&lock));
    onuma__os_lock_release(&lock);
}

static bool entered; /* guarded by lock */

static void *enter(void *argument) {
    onuma__os_lock_acquire(&lock);
    entered = true;
    onuma__os_lock_release(&lock);
    return argument;
}

static void waiters_sleep_until_the_release(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    onuma__os_lock_acquire(&lock);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, enter, NULL), 0);
    onuma__os_sleep(20000000);
    assert_false(entered);
    onuma__os_lock_release(&lock);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_true(entered);
}

/*
 * Each side stores to its own word, passes its half of the barrier and loads the other's: at least one must see the
 * other's store. Without a barrier, processors let both loads overtake the stores within a few thousand rounds.
 */
static _Atomic int fast_word, slow_word, fast_saw;
static _Atomic int round_open, round_done;

/* The two meet at full speed where both have a processor; where they have not, the other one gets this one's. */
static void spin_until(_Atomic int *word, int value) {
    for (unsigned spins = 1; atomic_load_explicit(word, memory_order_acquire) != value; spins++)
        if (spins % 4096 == 0) onuma__os_yield();
}

static void *fast_half(void *argument) {
    for (int round = 1; round <= LITMUS_ROUNDS; round++) {
        spin_until(&round_open, round);
        atomic_store_explicit(&fast_word, round, memory_order_relaxed);
        onuma__os_light_barrier();
        atomic_store_explicit(&fast_saw, atomic_load_explicit(&slow_word, memory_order_relaxed), memory_order_relaxed);
        atomic_store_explicit(&round_done, round, memory_order_release);
    }
    return argument;
}

static void the_halves_of_the_barrier_meet(void **state) {
    (void)state;
    bool works = onuma__os_abilities_get()->asymmetric_barrier;
    assert_true(onuma__os_has_barrier_all == works);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, fast_half, NULL), 0);
    int both_missed = 0;
    for (int round = 1; round <= LITMUS_ROUNDS; round++) {
        atomic_store_explicit(&round_open, round, memory_order_release);
        for (volatile int delay = round % 64; delay > 0; delay--) {
        }
        atomic_store_explicit(&slow_word, round, memory_order_relaxed);
        assert_true(onuma__os_barrier_all() == works);
        int slow_saw = atomic_load_explicit(&fast_word, memory_order_relaxed);
        spin_until(&round_done, round);
        if (slow_saw != round && atomic_load_explicit(&fast_saw, memory_order_relaxed) != round) both_missed++;
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(both_missed, 0);
}

#if !defined(_WIN32)
static void the_barrier_works_in_a_child(void **state) {
    (void)state;
    bool works = onuma__os_abilities_get()->asymmetric_barrier;
    pid_t child = fork();
    if (child == 0) _exit(onuma__os_barrier_all() == works ? 0 : 1);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lock_excludes),
        cmocka_unit_test(waiters_sleep_until_the_release),
        cmocka_unit_test(the_halves_of_the_barrier_meet),
#if !defined(_WIN32)
        cmocka_unit_test(the_barrier_works_in_a_child),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
