/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share among themselves. */
#ifndef ONUMA_OS_PRIVATE_H
#define ONUMA_OS_PRIVATE_H

#include "os/os.h"

/* Whether [p, p+size) is whole pages that do not wrap around; else INTERNAL with `what` in the detail. */
onuma_result onuma__os_check_pages(const char *what, const void *p, size_t size);

/* Addresses of `size` bytes (whole pages) on a multiple of `align` (a power of two, at least the granule), with zeroed
 * memory behind them or none. NULL and a detail on failure. */
void *onuma__os_place(size_t size, size_t align, bool committed);

/* Whether a driver's library may be looked for under this name: a bare file name, no path. */
bool onuma__os_is_bare_name(const char *name);

/* The exit hook that was set, called and forgotten state by state: hands `t` to it, frees the text, zeroes *t. */
void onuma__os_thread_finish(onuma__os_thread *t);

/* The next thread number: 1, 2, ... */
uint64_t onuma__os_thread_next_number(void);

/* onuma__os_memory of Linux, with /proc and /sys looked for under `root`, so that tests can show it any machine. */
void onuma__os_memory_under(const char *root, uint64_t *total, uint64_t *available);

/* The system's own text for an error number (errno; GetLastError on Windows). */
typedef struct onuma__os_error {
    char text[160];
} onuma__os_error;
onuma__os_error onuma__os_error_text(unsigned long code);

#endif
