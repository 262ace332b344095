/* SPDX-License-Identifier: Apache-2.0 */
/* Windows' own header, in one manner for all files of this folder: Windows 8 and later. */
#ifndef ONUMA_OS_WINDOWS_PRIVATE_H
#define ONUMA_OS_WINDOWS_PRIVATE_H

#define WIN32_LEAN_AND_MEAN
#define NOMINMAX
#undef _WIN32_WINNT
#define _WIN32_WINNT 0x0602

#include "os/private.h"

#include <windows.h>

/* The narrow forms of Windows' functions speak the machine's code page; the wide ones are called, and this follows.
 * false and "": it does not fit. */
bool onuma__os_utf8(const wchar_t *wide, char *text, size_t size);

/* Whether an open file or folder belongs to the user (or the administrators), and nobody else may write it. */
bool onuma__os_is_private(HANDLE file);

/* Rights for what is made: the user's alone, and so for what is made in it. false: the system refused. Not to be copied. */
typedef struct onuma__os_rights {
    SECURITY_ATTRIBUTES attributes; /* what CreateFile and CreateDirectory take */
    SECURITY_DESCRIPTOR descriptor;
    _Alignas(8) unsigned char list[128];
} onuma__os_rights;
bool onuma__os_private_rights(onuma__os_rights *rights);

#endif
