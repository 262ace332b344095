/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Abilities, waiting on a word, yielding, sleeping and the clock.
 *
 * macOS tells no process to interrupt its other threads, so there is no asymmetric barrier: both halves of a guard
 * use real fences. The system's own locks are not used, since a child made by fork() may not release what its parent
 * took; __ulock is what its C++ library waits with.
 */
#include "os/private.h"

#include <errno.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

bool onuma__os_has_barrier_all;

static onuma__os_abilities abilities; /* constant once `once` is done */
static onuma__os_once once;

static void read_abilities(void) {
    abilities.page_size = (size_t)sysconf(_SC_PAGESIZE);
    abilities.reserve_granule = abilities.page_size;
    abilities.address_space = UINT64_C(1) << 47; /* of every Mac */
}

const onuma__os_abilities *onuma__os_abilities_get(void) {
    onuma__os_once_run(&once, read_abilities);
    return &abilities;
}

bool onuma__os_barrier_all(void) {
    onuma__os_fence();
    return false;
}

/* Of the system's library, in no header; their form has not changed since 10.12. */
extern int __ulock_wait(uint32_t operation, void *address, uint64_t value, uint32_t timeout_us);
extern int __ulock_wake(uint32_t operation, void *address, uint64_t value);
enum { COMPARE_AND_WAIT = 1, WAKE_ALL = 0x100, NO_ERRNO = 0x01000000 };

void onuma__os_word_wait(_Atomic uint32_t *word, uint32_t value) {
    (void)__ulock_wait(COMPARE_AND_WAIT | NO_ERRNO, (void *)word, value, 0);
}

void onuma__os_word_wake(_Atomic uint32_t *word) {
    (void)__ulock_wake(COMPARE_AND_WAIT | NO_ERRNO, (void *)word, 0);
}

void onuma__os_word_wake_all(_Atomic uint32_t *word) {
    (void)__ulock_wake(COMPARE_AND_WAIT | NO_ERRNO | WAKE_ALL, (void *)word, 0);
}

void onuma__os_yield(void) {
    sched_yield();
}

void onuma__os_sleep(uint64_t ns) {
    struct timespec left = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

uint64_t onuma__os_now(void) {
    return clock_gettime_nsec_np(CLOCK_UPTIME_RAW);
}
