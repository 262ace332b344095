/* SPDX-License-Identifier: Apache-2.0 */
/* The lock, above a system's waiting on a word. */
#include "os/private.h"

#include <errno.h>
#include <stdatomic.h>

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
        onuma__os_word_wait(&lock->word, CONTENDED);
    errno = error;
}

void onuma__os_lock_acquire(onuma__os_lock *lock) {
    if (ONUMA__UNLIKELY(!onuma__os_lock_try(lock))) acquire_slowly(lock);
}

void onuma__os_lock_release(onuma__os_lock *lock) {
    if (ONUMA__UNLIKELY(atomic_exchange_explicit(&lock->word, FREE, memory_order_release) == CONTENDED))
        onuma__os_word_wake(&lock->word);
}
