/* SPDX-License-Identifier: Apache-2.0 */
#if !defined(_WIN32)
#define _POSIX_C_SOURCE 200809L
#endif
#include "clock.h"

#if defined(_WIN32)
#include <windows.h>

uint64_t cli_now(void) {
    LARGE_INTEGER count, frequency;
    QueryPerformanceCounter(&count);
    QueryPerformanceFrequency(&frequency);
    uint64_t whole = (uint64_t)(count.QuadPart / frequency.QuadPart),
             rest = (uint64_t)(count.QuadPart % frequency.QuadPart);
    return whole * 1000000000u + rest * 1000000000u / (uint64_t)frequency.QuadPart;
}

void cli_sleep(uint64_t ns) {
    Sleep((DWORD)(ns / 1000000u + (ns % 1000000u != 0)));
}
#else
#include <time.h>

uint64_t cli_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void cli_sleep(uint64_t ns) {
    const struct timespec span = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
    (void)nanosleep(&span, NULL);
}
#endif
