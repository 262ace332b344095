/* SPDX-License-Identifier: Apache-2.0 */
/* GetLastError in words, and Windows' texts in UTF-8. */
#include "os/windows_private.h"

#include <stdio.h>

bool onuma__os_utf8(const wchar_t *wide, char *text, size_t size) {
    const bool all = WideCharToMultiByte(CP_UTF8, 0, wide, -1, text, (int)size, NULL, NULL) != 0;
    if (!all) text[0] = '\0';
    return all;
}

onuma__os_error onuma__os_error_text(unsigned long code) {
    onuma__os_error error;
    wchar_t wide[sizeof error.text / 3]; /* a character of the wide form takes three bytes at most */
    const DWORD flags =
        FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS | FORMAT_MESSAGE_MAX_WIDTH_MASK /* no line breaks */;
    DWORD length = FormatMessageW(flags, NULL, code, 0, wide, (DWORD)(sizeof wide / sizeof *wide), NULL);
    while (length && (wide[length - 1] == L' ' || wide[length - 1] == L'.'))
        wide[--length] = L'\0';
    if (length == 0 || !onuma__os_utf8(wide, error.text, sizeof error.text))
        (void)snprintf(error.text, sizeof error.text, "error %lu", code);
    return error;
}
