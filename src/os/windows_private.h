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

#endif
