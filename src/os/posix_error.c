/* SPDX-License-Identifier: Apache-2.0 */
/*
 * errno in words. A file of its own because strerror is not safe among threads, and strerror_r has two forms: asking
 * for POSIX and nothing more gives the same one everywhere.
 */
#define _POSIX_C_SOURCE 200809L
#include "os/private.h"

#include <stdio.h>
#include <string.h>

onuma__os_error onuma__os_error_text(unsigned long code) {
    onuma__os_error error;
    if (strerror_r((int)code, error.text, sizeof error.text) != 0)
        snprintf(error.text, sizeof error.text, "error %lu", code);
    return error;
}
