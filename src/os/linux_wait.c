/* SPDX-License-Identifier: Apache-2.0 */
/* The lock, yielding, sleeping and the clock. */
#define _GNU_SOURCE
#include "os/os.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * The lock's word. A thread that had to wait takes the lock as CONTENDED, since it cannot know whether it was the
 * only one; the worst that follows is one wake-up too many. So a holder that finds HELD has nobody to wake.
 * Acquire when taking and release when giving: what the lock guards travels along.
 */
enum { FREE = 0, HELD = 1, CONTENDED = 2 };

/* Long enough for a critical section of the library (under a microsecond), short beside a system call. */
enum { SPINS = 100 };

static void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
    __asm__ __volatile__("yield");
#endif
}

bool onuma__os_lock_try(onuma__os_lock *lock) {
    uint32_t seen = FREE;
    return atomic_compare_exchange_strong_explicit(&lock->word, &seen, HELD, memory_order_acquire,
                                                   memory_order_relaxed);
}

ONUMA__COLD static void acquire_slowly(onuma__os_lock *lock) {
    for (int i = 0; i < SPINS; i++) {
        uint32_t seen = atomic_load_explicit(&lock->word, memory_order_relaxed);
        if (seen == FREE && onuma__os_lock_try(lock)) return;
        if (seen == CONTENDED) break; /* others sleep already: spinning would only overtake them */
        relax();
    }
    int error = errno; /* a lock is taken in places that must not disturb it */
    while (atomic_exchange_explicit(&lock->word, CONTENDED, memory_order_acquire) != FREE)
        syscall(SYS_futex, &lock->word, FUTEX_WAIT_PRIVATE, CONTENDED, NULL, NULL, 0);
    errno = error;
}

void onuma__os_lock_acquire(onuma__os_lock *lock) {
    if (ONUMA__UNLIKELY(!onuma__os_lock_try(lock))) acquire_slowly(lock);
}

void onuma__os_lock_release(onuma__os_lock *lock) {
    if (ONUMA__UNLIKELY(atomic_exchange_explicit(&lock->word, FREE, memory_order_release) == CONTENDED))
        syscall(SYS_futex, &lock->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void onuma__os_yield(void) {
    sched_yield();
}

void onuma__os_sleep(uint64_t ns) {
    struct timespec left = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR) {
    }
}

uint64_t onuma__os_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
