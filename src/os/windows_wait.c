/* SPDX-License-Identifier: Apache-2.0 */
/* Abilities, the lock, the barrier on all threads, yielding, sleeping and the clock. */
#include "os/windows_private.h"

bool onuma__os_has_barrier_all;

static onuma__os_abilities abilities; /* constant once `once` is done */
static onuma__os_once once;

static void read_abilities(void) {
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    abilities.page_size = info.dwPageSize;
    abilities.reserve_granule = info.dwAllocationGranularity;
    abilities.asymmetric_barrier = true; /* FlushProcessWriteBuffers is there and cannot fail */
    __atomic_store_n(&onuma__os_has_barrier_all, true, __ATOMIC_RELEASE);
}

const onuma__os_abilities *onuma__os_abilities_get(void) {
    onuma__os_once_run(&once, read_abilities);
    return &abilities;
}

bool onuma__os_barrier_all(void) {
    onuma__os_fence();
    FlushProcessWriteBuffers();
    return true;
}

_Static_assert(sizeof(onuma__os_lock) == sizeof(SRWLOCK), "the lock's word is an SRWLOCK, zero when free");

static PSRWLOCK native(onuma__os_lock *lock) {
    return (PSRWLOCK)(void *)&lock->word;
}

void onuma__os_lock_acquire(onuma__os_lock *lock) {
    AcquireSRWLockExclusive(native(lock));
}

bool onuma__os_lock_try(onuma__os_lock *lock) {
    return TryAcquireSRWLockExclusive(native(lock)) != 0;
}

void onuma__os_lock_release(onuma__os_lock *lock) {
    ReleaseSRWLockExclusive(native(lock));
}

void onuma__os_yield(void) {
    SwitchToThread();
}

void onuma__os_sleep(uint64_t ns) {
    const uint64_t longest = 0x7fffffff; /* ms; INFINITE is special */
    uint64_t ms = ns / 1000000u + (ns % 1000000u != 0);
    while (ms > longest) {
        Sleep((DWORD)longest);
        ms -= longest;
    }
    Sleep((DWORD)ms);
}

uint64_t onuma__os_now(void) {
    LARGE_INTEGER ticks, frequency;
    QueryPerformanceCounter(&ticks);
    QueryPerformanceFrequency(&frequency);
    uint64_t t = (uint64_t)ticks.QuadPart, f = (uint64_t)frequency.QuadPart;
    return t / f * 1000000000u + t % f * 1000000000u / f; /* parted, for the product of all would overflow in hours */
}
