/* SPDX-License-Identifier: Apache-2.0 */
#include "windows_text.h"

#include <windows.h>

#include <shellapi.h>

#include "output.h"

wchar_t *cli_utf16(const char *utf8) {
    int length = MultiByteToWideChar(CP_UTF8, 0, utf8, -1, NULL, 0);
    wchar_t *utf16 = cli_allocate(((size_t)length + 1) * sizeof *utf16);
    utf16[0] = L'\0';
    MultiByteToWideChar(CP_UTF8, 0, utf8, -1, utf16, length);
    return utf16;
}

char *cli_utf8(const wchar_t *utf16) {
    int length = WideCharToMultiByte(CP_UTF8, 0, utf16, -1, NULL, 0, NULL, NULL);
    char *utf8 = cli_allocate((size_t)length + 1);
    utf8[0] = '\0';
    WideCharToMultiByte(CP_UTF8, 0, utf16, -1, utf8, length, NULL, NULL);
    return utf8;
}

bool cli_arguments_in_utf8(int *argc, char ***argv) {
    int count;
    wchar_t **wide = CommandLineToArgvW(GetCommandLineW(), &count);
    if (!wide) return false;
    *argv = cli_allocate(((size_t)count + 1) * sizeof **argv);
    for (int i = 0; i < count; i++)
        (*argv)[i] = cli_utf8(wide[i]);
    (*argv)[count] = NULL;
    *argc = count;
    LocalFree(wide);
    return true;
}
