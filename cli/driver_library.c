/* SPDX-License-Identifier: Apache-2.0 */
#include "driver_library.h"

#include <stdio.h>
#include <string.h>

#if defined(_WIN32)
#include <windows.h>

void *cli_library_open(const char *name, char *why, size_t size) {
    /* The system folder alone: a DLL beside the program or in the working folder is not the driver's. */
    HMODULE library = LoadLibraryExA(name, NULL, LOAD_LIBRARY_SEARCH_SYSTEM32);
    if (!library) snprintf(why, size, "%s: error %lu", name, (unsigned long)GetLastError());
    return (void *)library;
}

void *cli_library_of_process(const char *symbol) {
    (void)symbol; /* nothing is preloaded there */
    return NULL;
}

void cli_library_find(void *library, const char *name, void *to) {
    FARPROC found = GetProcAddress((HMODULE)library, name);
    memcpy(to, &found, sizeof found);
}
#else
#include <dlfcn.h>

void *cli_library_open(const char *name, char *why, size_t size) {
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) snprintf(why, size, "%s", dlerror());
    return library;
}

void *cli_library_of_process(const char *symbol) {
    void *process = dlopen(NULL, RTLD_NOW | RTLD_LOCAL);
    return process && dlsym(process, symbol) ? process : NULL;
}

void cli_library_find(void *library, const char *name, void *to) {
    void *found = dlsym(library, name);
    memcpy(to, &found, sizeof found);
}
#endif
