/* SPDX-License-Identifier: Apache-2.0 */
/* Abilities, the lock, waiting on a word, the barrier on all threads, yielding, sleeping and the clock. */
#include "os/windows_private.h"

#include <stdatomic.h>

bool onuma__os_has_barrier_all;

static onuma__os_abilities abilities; /* constant once `once` is done */
static onuma__os_once once;

/*
 * Waiting on a word, of Windows 8 and later, by name: the import libraries at hand lead to it by the name of a set of
 * interfaces (api-ms-win-core-synch-l1-2-0.dll), which Windows 7 lacks; a program that links to it would not even start there.
 * kernelbase.dll, where it is, belongs to every process and was loaded from the system's folder before any of our code
 * ran. Release, with acquire where they are read: both are set before either is used. NULL: they are not there, or not looked for yet.
 */
typedef BOOL(WINAPI wait_function)(volatile VOID *address, PVOID compare, SIZE_T size, DWORD ms);
typedef VOID(WINAPI wake_function)(PVOID address);
static wait_function *_Atomic wait_on_address;
static wake_function *_Atomic wake_one, *_Atomic wake_all;

static void find_waiting(void) {
    HMODULE kernel = GetModuleHandleW(L"kernelbase.dll");
    FARPROC wait = kernel ? GetProcAddress(kernel, "WaitOnAddress") : NULL;
    FARPROC one = kernel ? GetProcAddress(kernel, "WakeByAddressSingle") : NULL;
    FARPROC all = kernel ? GetProcAddress(kernel, "WakeByAddressAll") : NULL;
    if (!wait || !one || !all) return;
    atomic_store_explicit(&wake_one, (wake_function *)(void (*)(void))one, memory_order_release);
    atomic_store_explicit(&wake_all, (wake_function *)(void (*)(void))all, memory_order_release);
    atomic_store_explicit(&wait_on_address, (wait_function *)(void (*)(void))wait, memory_order_release);
}

/* Without the function it is a nap, at whose end callers look again. */
void onuma__os_word_wait(_Atomic uint32_t *word, uint32_t value) {
    wait_function *wait = atomic_load_explicit(&wait_on_address, memory_order_acquire);
    if (wait)
        wait((volatile void *)word, &value, sizeof value, INFINITE);
    else
        Sleep(1);
}

/* Whoever sleeps has found the functions. The fence lets this thread find them too: its change of the word, which the
 * sleeper did not see, comes before its look at the function. */
static void wake(wake_function *_Atomic *which, _Atomic uint32_t *word) {
    onuma__os_fence();
    wake_function *fn = atomic_load_explicit(which, memory_order_acquire);
    if (fn) fn((void *)word);
}

void onuma__os_word_wake(_Atomic uint32_t *word) {
    wake(&wake_one, word);
}

void onuma__os_word_wake_all(_Atomic uint32_t *word) {
    wake(&wake_all, word);
}

static void read_abilities(void) {
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    abilities.page_size = info.dwPageSize;
    abilities.reserve_granule = info.dwAllocationGranularity;
    abilities.address_space = (uint64_t)(uintptr_t)info.lpMaximumApplicationAddress + 1;
    /* FlushProcessWriteBuffers cannot fail, says Windows. Under Wine it returns and has done nothing: tests saw both
     * halves miss each other. */
    find_waiting();
    HMODULE ntdll = GetModuleHandleW(L"ntdll.dll");
    abilities.asymmetric_barrier = ntdll && !GetProcAddress(ntdll, "wine_get_version");
    __atomic_store_n(&onuma__os_has_barrier_all, abilities.asymmetric_barrier, __ATOMIC_RELEASE);
}

const onuma__os_abilities *onuma__os_abilities_get(void) {
    onuma__os_once_run(&once, read_abilities);
    return &abilities;
}

bool onuma__os_barrier_all(void) {
    onuma__os_fence();
    if (!onuma__os_abilities_get()->asymmetric_barrier) return false;
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
