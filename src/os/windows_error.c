/* SPDX-License-Identifier: Apache-2.0 */
/* GetLastError in words. */
#include "os/windows_private.h"

#include <stdio.h>

onuma__os_error onuma__os_error_text(unsigned long code) {
    onuma__os_error error;
    const DWORD flags =
        FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS | FORMAT_MESSAGE_MAX_WIDTH_MASK /* no line breaks */;
    DWORD length = FormatMessageA(flags, NULL, code, 0, error.text, (DWORD)sizeof error.text, NULL);
    while (length && (error.text[length - 1] == ' ' || error.text[length - 1] == '.'))
        error.text[--length] = '\0';
    if (length == 0) (void)snprintf(error.text, sizeof error.text, "error %lu", code);
    return error;
}
