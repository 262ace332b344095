/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <windows.h>

#include "bench/alloc/thread.h"
#include "output.h"

/* Those of the process's group: more than 64 processors are more groups, and nothing here asks for them. */
static DWORD_PTR allowed(void) {
    DWORD_PTR process = 1, system;
    (void)GetProcessAffinityMask(GetCurrentProcess(), &process, &system);
    return process;
}

unsigned bench_processors(void) {
    unsigned count = 0;
    for (DWORD_PTR left = allowed(); left; left &= left - 1)
        count++;
    return count ? count : 1;
}

void bench_bind(unsigned i) {
    DWORD_PTR left = allowed();
    if (!left) return;
    for (i %= bench_processors(); i > 0; i--)
        left &= left - 1;
    (void)SetThreadAffinityMask(GetCurrentThread(), left & (~left + 1));
}

uint64_t bench_thread_time(void) {
    FILETIME created, ended, kernel, user;
    if (!GetThreadTimes(GetCurrentThread(), &created, &ended, &kernel, &user)) return 0;
    uint64_t in_kernel = (uint64_t)kernel.dwHighDateTime << 32 | kernel.dwLowDateTime;
    uint64_t in_user = (uint64_t)user.dwHighDateTime << 32 | user.dwLowDateTime;
    return (in_kernel + in_user) * 100;
}

struct bench_thread {
    HANDLE handle;
    void (*run)(void *argument);
    void *argument;
};

static DWORD WINAPI enter(void *started) {
    const bench_thread *thread = started;
    thread->run(thread->argument);
    return 0;
}

bench_thread *bench_thread_start(void (*run)(void *argument), void *argument) {
    bench_thread *thread = cli_allocate(sizeof *thread);
    thread->run = run;
    thread->argument = argument;
    thread->handle = CreateThread(NULL, 0, enter, thread, 0, NULL);
    if (thread->handle) return thread;
    free(thread);
    return NULL;
}

void bench_thread_join(bench_thread *thread) {
    (void)WaitForSingleObject(thread->handle, INFINITE);
    CloseHandle(thread->handle);
    free(thread);
}
