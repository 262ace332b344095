/* SPDX-License-Identifier: Apache-2.0 */
/* Drivers' libraries, the names of code addresses, and the environment. */
#include "os/windows_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *onuma__os_library_open(const char *name, char *why, size_t why_size) {
    if (why_size) why[0] = '\0';
    if (!onuma__os_is_bare_name(name)) {
        (void)snprintf(why, why_size,
                       "\"%s\" is not a bare file name; drivers are loaded from the system's places only",
                       name ? name : "");
        return NULL;
    }
    /* By its whole path: a bare name would also match a library of that name loaded from elsewhere before. */
    wchar_t path[MAX_PATH * 2];
    UINT used = GetSystemDirectoryW(path, MAX_PATH);
    if (used == 0 || used >= MAX_PATH) return NULL;
    path[used++] = L'\\';
    if (!MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, name, -1, path + used, (int)(MAX_PATH * 2 - used)))
        return NULL;
    if (GetFileAttributesW(path) == INVALID_FILE_ATTRIBUTES) return NULL;

    DWORD before;
    SetThreadErrorMode(SEM_FAILCRITICALERRORS, &before); /* no dialogue about a library that lacks another */
    HMODULE library = LoadLibraryExW(path, NULL, LOAD_LIBRARY_SEARCH_SYSTEM32);
    DWORD code = GetLastError();
    SetThreadErrorMode(before, NULL);
    if (!library) (void)snprintf(why, why_size, "%s: %s", name, onuma__os_error_text(code).text);
    return library;
}

/* A DLL is loaded once, so opening it gives the one that is there; and symbols have no place in common to look for. */
void *onuma__os_library_of_process(const char *symbol) {
    (void)symbol;
    return NULL;
}

void *onuma__os_library_symbol(void *library, const char *name) {
    if (!library) return NULL;
    FARPROC address = GetProcAddress(library, name);
    void *symbol;
    _Static_assert(sizeof symbol == sizeof address, "a function's address fits a pointer");
    memcpy(&symbol, &address, sizeof symbol);
    return symbol;
}

void onuma__os_describe_code(const void *address, char *text, size_t size) {
    HMODULE module = NULL;
    char file[MAX_PATH];
    if (!GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
                            address, &module) ||
        GetModuleFileNameA(module, file, sizeof file) == 0) {
        (void)snprintf(text, size, "%p", address);
        return;
    }
    file[sizeof file - 1] = '\0';
    const char *slash = strrchr(file, '\\');
    (void)snprintf(text, size, "%s+0x%" PRIxPTR, slash ? slash + 1 : file, (uintptr_t)address - (uintptr_t)module);
}

/* No program here runs with more rights than the environment's owner, as set-user-id ones do elsewhere. */
const char *onuma__os_getenv(const char *name) {
    return getenv(name);
}
