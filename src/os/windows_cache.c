/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user's cache folder, below %LOCALAPPDATA%. Windows keeps that closed to other users, but the variable may name any
 * folder: what is made is made the user's alone, and what is found must be. Links (reparse points) are opened as themselves, seen,
 * and refused. What is opened is looked at, never what a name leads to the next time.
 */
#define _CRT_RAND_S
#include "os/windows_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

enum { PATH_WORDS = 1024 };

static onuma_result io_error(const char *what, const char *name) {
    const DWORD code = GetLastError();
    const bool absent = code == ERROR_FILE_NOT_FOUND || code == ERROR_PATH_NOT_FOUND;
    return onuma__fail(absent ? ONUMA_ERROR_NOT_FOUND : ONUMA_ERROR_IO, "the user's cache: %s %s: %s", what, name,
                       onuma__os_error_text(code).text);
}

static bool is_ours(HANDLE file, bool folder) {
    BY_HANDLE_FILE_INFORMATION s;
    if (!GetFileInformationByHandle(file, &s) || (s.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0) return false;
    const bool is_folder = (s.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
    const bool plain = folder ? is_folder : !is_folder && s.nNumberOfLinks == 1 && GetFileType(file) == FILE_TYPE_DISK;
    return plain && onuma__os_is_private(file);
}

/* Writes the folder's path. The folder stays open as long as the handle: it cannot be replaced meanwhile. */
static HANDLE open_folder(bool make, wchar_t path[PATH_WORDS], onuma_result *r) {
    const DWORD length = GetEnvironmentVariableW(L"LOCALAPPDATA", path, PATH_WORDS);
    const bool absolute = length > 2 && path[1] == L':' && path[2] == L'\\';
    if (!absolute || length + sizeof "\\opennuma" >= PATH_WORDS) {
        *r = onuma__fail(ONUMA_ERROR_NOT_SUPPORTED, "the user's cache: LOCALAPPDATA names no folder");
        return INVALID_HANDLE_VALUE;
    }
    wcscat(path, L"\\opennuma");
    onuma__os_rights rights;
    if (make && (!onuma__os_private_rights(&rights) || !CreateDirectoryW(path, &rights.attributes)) &&
        GetLastError() != ERROR_ALREADY_EXISTS) {
        *r = io_error("making", "opennuma");
        return INVALID_HANDLE_VALUE;
    }
    HANDLE folder = CreateFileW(path, FILE_READ_ATTRIBUTES | READ_CONTROL, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL,
                                OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT, NULL);
    if (folder == INVALID_HANDLE_VALUE) {
        *r = io_error("opening", "opennuma");
    } else if (!is_ours(folder, true)) {
        *r = onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "the user's cache: opennuma is no folder of the user's alone");
        CloseHandle(folder);
        folder = INVALID_HANDLE_VALUE;
    }
    return folder;
}

static void file_path(const wchar_t *folder, const char *name, wchar_t path[PATH_WORDS]) {
    (void)swprintf(path, PATH_WORDS, L"%ls\\%hs", folder, name);
}

onuma_result onuma__os_cache_read(const char *name, char *bytes, size_t size, size_t *length) {
    wchar_t folder_path[PATH_WORDS], path[PATH_WORDS];
    onuma_result r = ONUMA_OK;
    HANDLE folder = open_folder(false, folder_path, &r);
    if (folder == INVALID_HANDLE_VALUE) return r;
    file_path(folder_path, name, path);
    HANDLE file = CreateFileW(path, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_DELETE, NULL, OPEN_EXISTING,
                              FILE_FLAG_OPEN_REPARSE_POINT, NULL);
    DWORD got = 0;
    if (file == INVALID_HANDLE_VALUE)
        r = io_error("opening", name);
    else if (!is_ours(file, false))
        r = onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "the user's cache: %s is no plain file of the user's alone",
                        name);
    else if (!ReadFile(file, bytes, (DWORD)size, &got, NULL))
        r = io_error("reading", name);
    else if (got >= size)
        r = onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "the user's cache: %s has %zu bytes or more", name, size);
    else
        *length = got;
    if (file != INVALID_HANDLE_VALUE) CloseHandle(file);
    CloseHandle(folder);
    return r;
}

onuma_result onuma__os_cache_write(const char *name, const char *bytes, size_t length) {
    wchar_t folder_path[PATH_WORDS], path[PATH_WORDS], fresh[PATH_WORDS];
    char fresh_name[96];
    unsigned random[4];
    for (int i = 0; i < 4; i++)
        if (rand_s(&random[i]) != 0)
            return onuma__fail(ONUMA_ERROR_IO, "the user's cache: no random bytes for %s", name);
    (void)snprintf(fresh_name, sizeof fresh_name, ".%.40s.%08x%08x%08x%08x", name, random[0], random[1], random[2],
                   random[3]);
    onuma_result r = ONUMA_OK;
    HANDLE folder = open_folder(true, folder_path, &r);
    if (folder == INVALID_HANDLE_VALUE) return r;
    file_path(folder_path, name, path);
    file_path(folder_path, fresh_name, fresh);
    onuma__os_rights rights;
    HANDLE file = onuma__os_private_rights(&rights) ? CreateFileW(fresh, GENERIC_WRITE, 0, &rights.attributes,
                                                                  CREATE_NEW, FILE_ATTRIBUTE_NORMAL, NULL)
                                                    : INVALID_HANDLE_VALUE;
    if (file == INVALID_HANDLE_VALUE) {
        r = io_error("making", fresh_name);
        CloseHandle(folder);
        return r;
    }
    DWORD put = 0;
    if (!WriteFile(file, bytes, (DWORD)length, &put, NULL) || put != length || !FlushFileBuffers(file))
        r = io_error("writing", fresh_name);
    CloseHandle(file);
    if (r == ONUMA_OK && !MoveFileExW(fresh, path, MOVEFILE_REPLACE_EXISTING)) r = io_error("replacing", name);
    if (r != ONUMA_OK) (void)DeleteFileW(fresh);
    CloseHandle(folder);
    return r;
}
