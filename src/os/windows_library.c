/* SPDX-License-Identifier: Apache-2.0 */
/* Drivers' libraries, the names of code addresses, and the environment. */
#include "os/windows_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *onuma__os_library_open(const char *name, char *why, size_t why_size) {
    if (why_size) why[0] = '\0';
    if (!onuma__os_check_bare_name(name, why, why_size)) return NULL;
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
    wchar_t path[MAX_PATH];
    char file[3 * MAX_PATH];
    DWORD length = 0;
    if (GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
                           address, &module))
        length = GetModuleFileNameW(module, path, MAX_PATH);
    if (length == 0 || length >= MAX_PATH || !onuma__os_utf8(path, file, sizeof file)) {
        (void)snprintf(text, size, "%p", address);
        return;
    }
    const char *slash = strrchr(file, '\\');
    (void)snprintf(text, size, "%s+0x%" PRIxPTR, slash ? slash + 1 : file, (uintptr_t)address - (uintptr_t)module);
}

/* ------------------------------------------------------------- environment */

/*
 * Windows keeps the environment in UTF-16, so a value in UTF-8 needs a place, and whoever got it may keep it for as
 * long as the process lives. The same value is handed out again, so what is kept is bounded by how many there were.
 */
typedef struct kept_value {
    struct kept_value *next;
    char text[];
} kept_value;

static onuma__os_lock kept_lock; /* guards the list; its members never change */
static kept_value *kept;

static const char *keep(const char *text) {
    const size_t size = strlen(text) + 1;
    onuma__os_lock_acquire(&kept_lock);
    kept_value *value = kept;
    while (value && strcmp(value->text, text) != 0)
        value = value->next;
    if (!value && (value = malloc(sizeof *value + size)) != NULL) {
        memcpy(value->text, text, size);
        value->next = kept;
        kept = value;
    }
    onuma__os_lock_release(&kept_lock);
    return value ? value->text : NULL;
}

/* No program here runs with more rights than the environment's owner, as set-user-id ones do elsewhere. */
const char *onuma__os_getenv(const char *name) {
    wchar_t wide_name[128];
    if (!MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, name, -1, wide_name, 128)) return NULL;
    DWORD room = GetEnvironmentVariableW(wide_name, NULL, 0); /* 0: it is not set */
    if (room == 0) return NULL;
    wchar_t *wide = malloc(room * sizeof *wide);
    char *text = malloc((size_t)room * 3);
    const char *value = NULL;
    if (wide && text && GetEnvironmentVariableW(wide_name, wide, room) < room &&
        onuma__os_utf8(wide, text, (size_t)room * 3))
        value = keep(text);
    free(wide);
    free(text);
    return value;
}
