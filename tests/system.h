/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of several folders ask of the system, in one manner for all systems. */
#ifndef TESTS_SYSTEM_H
#define TESTS_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#include <fcntl.h>
#include <io.h>
#include <windows.h>

#include <psapi.h>

#define SYSTEM_PROGRAM_SUFFIX ".exe"
/* A library that is on every system, and is no driver. */
#define SYSTEM_LIBRARY "ws2_32.dll"

/* NULL as the value: the variable is no more. */
static inline void system_set_variable(const char *name, const char *value) {
    _putenv_s(name, value ? value : "");
}

static inline int system_pipe(int ends[2]) {
    return _pipe(ends, 4096, _O_BINARY);
}

/* Whole pages, zeroed, aligned to 64 KiB at most. */
static inline void *system_pages(size_t size) {
    return VirtualAlloc(NULL, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

static inline void system_pages_free(void *pages, size_t size) {
    (void)size;
    VirtualFree(pages, 0, MEM_RELEASE);
}

static inline bool system_is_mapped(const void *p) {
    MEMORY_BASIC_INFORMATION info;
    return VirtualQuery(p, &info, sizeof info) != 0 && info.State == MEM_COMMIT;
}

/* Bytes of memory that the process holds. */
static inline size_t system_resident(void) {
    PROCESS_MEMORY_COUNTERS counters = {.cb = sizeof counters};
    return K32GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof counters) ? counters.WorkingSetSize : 0;
}

/* A file of these bytes, mapped so that it can only be read. NULL if that fails. */
static inline void *system_map_file(const void *bytes, size_t size) {
    char folder[MAX_PATH], name[MAX_PATH];
    if (!GetTempPathA(sizeof folder, folder) || !GetTempFileNameA(folder, "onu", 0, name)) return NULL;
    HANDLE file = CreateFileA(name, GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ, NULL, CREATE_ALWAYS,
                              FILE_FLAG_DELETE_ON_CLOSE, NULL);
    DWORD written = 0;
    void *mapped = NULL;
    if (file != INVALID_HANDLE_VALUE && WriteFile(file, bytes, (DWORD)size, &written, NULL) && written == size) {
        HANDLE mapping = CreateFileMappingW(file, NULL, PAGE_READONLY, 0, 0, NULL);
        if (mapping) {
            mapped = MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, size);
            CloseHandle(mapping);
        }
    }
    if (file != INVALID_HANDLE_VALUE) CloseHandle(file);
    return mapped;
}

static inline void system_unmap_file(void *mapped, size_t size) {
    (void)size;
    UnmapViewOfFile(mapped);
}
#else
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define SYSTEM_PROGRAM_SUFFIX ""
#if defined(__GLIBC__)
#define SYSTEM_LIBRARY "libm.so.6"
#else
#define SYSTEM_LIBRARY "libm.so" /* musl has all in one */
#endif

static inline void system_set_variable(const char *name, const char *value) {
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static inline int system_pipe(int ends[2]) {
    return pipe(ends);
}

static inline void *system_pages(size_t size) {
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

static inline void system_pages_free(void *pages, size_t size) {
    munmap(pages, size);
}

static inline bool system_is_mapped(const void *p) {
    return madvise((void *)(size_t)p, 4096, MADV_NORMAL) == 0 || errno != ENOMEM;
}

static inline size_t system_resident(void) {
    unsigned long total, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file) return 0;
    if (fscanf(file, "%lu %lu", &total, &resident) != 2) resident = 0;
    fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static inline void *system_map_file(const void *bytes, size_t size) {
    char name[] = "/tmp/opennuma-test-XXXXXX";
    int file = mkstemp(name);
    if (file < 0) return NULL;
    unlink(name);
    void *mapped = MAP_FAILED;
    if (write(file, bytes, size) == (ssize_t)size) mapped = mmap(NULL, size, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    return mapped == MAP_FAILED ? NULL : mapped;
}

static inline void system_unmap_file(void *mapped, size_t size) {
    munmap(mapped, size);
}
#endif

#endif
