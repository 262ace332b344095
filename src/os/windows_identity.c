/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that tell one state of the system from another: of files, of the machine, of the environment. */
#include "os/windows_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

/* What does not fit a path or a variable of such a size names nothing of ours: it is left out. */
enum { NAME_WORDS = 1024, PATH_BYTES = 3 * NAME_WORDS };

void onuma__os_each_variable(void (*fn)(void *user, const char *variable), void *user) {
    wchar_t *block = GetEnvironmentStringsW();
    size_t room = 0;
    char *text = NULL;
    for (const wchar_t *at = block; at != NULL && *at != L'\0'; at += wcslen(at) + 1) {
        const size_t need = 3 * wcslen(at) + 1;
        if (need > room) {
            char *larger = realloc(text, need);
            if (larger == NULL) continue;
            text = larger, room = need;
        }
        if (onuma__os_utf8(at, text, room)) fn(user, text);
    }
    free(text);
    if (block != NULL) FreeEnvironmentStringsW(block);
}

static void identity_of(const wchar_t *path, char *text, size_t size) {
    WIN32_FILE_ATTRIBUTE_DATA s;
    char name[PATH_BYTES];
    if (!GetFileAttributesExW(path, GetFileExInfoStandard, &s) || !onuma__os_utf8(path, name, sizeof name)) return;
    (void)snprintf(text, size, "%s %lu:%lu bytes %lu:%lu", name, s.nFileSizeHigh, s.nFileSizeLow,
                   s.ftLastWriteTime.dwHighDateTime, s.ftLastWriteTime.dwLowDateTime);
}

void onuma__os_file_identity(const char *path, char *text, size_t size) {
    wchar_t wide[NAME_WORDS];
    if (size != 0) text[0] = '\0';
    if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, NAME_WORDS)) identity_of(wide, text, size);
}

void onuma__os_code_identity(const void *address, char *text, size_t size) {
    HMODULE module = NULL;
    wchar_t path[NAME_WORDS];
    if (size != 0) text[0] = '\0';
    if (address == NULL ||
        !GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
                            address, &module))
        return;
    const DWORD length = GetModuleFileNameW(module, path, NAME_WORDS);
    if (length != 0 && length < NAME_WORDS) identity_of(path, text, size);
}

/* The kernel's file changes with each update of the system. */
void onuma__os_machine_identity(char *text, size_t size) {
    wchar_t computer[MAX_COMPUTERNAME_LENGTH + 1] = L"", system[NAME_WORDS];
    char name[3 * MAX_COMPUTERNAME_LENGTH + 1] = "", kernel[PATH_BYTES + 100] = "";
    DWORD length = MAX_COMPUTERNAME_LENGTH + 1;
    if (GetComputerNameW(computer, &length)) (void)onuma__os_utf8(computer, name, sizeof name);
    const UINT used = GetSystemDirectoryW(system, NAME_WORDS);
    if (used != 0 && used + sizeof "\\ntoskrnl.exe" < NAME_WORDS) {
        wcscat(system, L"\\ntoskrnl.exe");
        identity_of(system, kernel, sizeof kernel);
    }
    (void)snprintf(text, size, "%s Windows %s", name, kernel);
}
