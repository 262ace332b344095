/* SPDX-License-Identifier: Apache-2.0 */
#if !defined(_WIN32)
#define _POSIX_C_SOURCE 200809L
#endif
#include "demo/system.h"

#include <stdio.h>
#include <time.h>

#if defined(_WIN32)
#include <windows.h>

#include <psapi.h>

uint64_t demo_clock_ns(void) {
    LARGE_INTEGER count, frequency;
    QueryPerformanceCounter(&count);
    QueryPerformanceFrequency(&frequency);
    uint64_t whole = (uint64_t)(count.QuadPart / frequency.QuadPart),
             rest = (uint64_t)(count.QuadPart % frequency.QuadPart);
    return whole * 1000000000u + rest * 1000000000u / (uint64_t)frequency.QuadPart;
}

void demo_pause(void) {
    Sleep(1);
}

uint64_t demo_process_memory(void) {
    PROCESS_MEMORY_COUNTERS counters;
    return K32GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof counters) ? counters.WorkingSetSize : 0;
}
#else
#include <unistd.h>

uint64_t demo_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void demo_pause(void) {
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

uint64_t demo_process_memory(void) {
    unsigned long total, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file) return 0;
    if (fscanf(file, "%lu %lu", &total, &resident) != 2) resident = 0;
    fclose(file);
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}
#endif
