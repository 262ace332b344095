/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share among themselves. */
#ifndef ONUMA_OS_PRIVATE_H
#define ONUMA_OS_PRIVATE_H

#include "os/os.h"

/* Whether [p, p+size) is whole pages that do not wrap around; else INTERNAL with `what` in the detail. */
onuma_result onuma__os_check_pages(const char *what, const void *p, size_t size);

/* errno of a call about these pages as a failure, with the remedy if memory is short. */
onuma_result onuma__os_fail_errno(const char *what, const void *p, size_t size);

/* Sleep while the word has this value, perhaps no longer than until something happens, so callers look again; and end the
 * sleep of one, or of all, that do. errno is the caller's to keep. */
void onuma__os_word_wait(_Atomic uint32_t *word, uint32_t value);
void onuma__os_word_wake(_Atomic uint32_t *word);
void onuma__os_word_wake_all(_Atomic uint32_t *word);

/* Whether [offset, offset + size) is whole granules of this memory; else a detail. */
bool onuma__os_check_window(const onuma__os_shared *shared, size_t offset, size_t size);

/* Linux and macOS: a file in memory that nobody else can name, closed by exec. -1 and errno. */
int onuma__os_nameless_file(void);

/* Addresses of `size` bytes (whole pages) on a multiple of `align` (a power of two, at least the granule), with zeroed
 * memory behind them or none. NULL and a detail on failure. */
void *onuma__os_place(size_t size, size_t align, bool committed);

/* Linux and Windows, behind large.c: the size of large pages, or 0 and *why (a constant); and `size` bytes in whole ones
 * of that size, or NULL and a detail. */
size_t onuma__os_find_large_pages(const char **why);
void *onuma__os_place_large(size_t size, size_t large);

/* Whether a driver's library may be looked for under this name: a bare file name, no path. If not, `why` says so. */
bool onuma__os_check_bare_name(const char *name, char *why, size_t why_size);

/* The exit hook that was set, called and forgotten state by state: hands `t` to it, frees the text, zeroes *t. */
void onuma__os_thread_finish(onuma__os_thread *t);

/* The next thread number: 1, 2, ... */
uint64_t onuma__os_thread_next_number(void);

/* onuma__os_memory of Linux, with /proc and /sys looked for under `root`, so that tests can show it any machine. */
void onuma__os_memory_under(const char *root, uint64_t *total, uint64_t *available);

/* Likewise; and what it counts in the text of memory.events, with a newline before it: times that the group was at its limit. */
onuma_result onuma__os_watch_create_under(const char *root, bool pressure, onuma__os_watch **out, const char **why);
uint64_t onuma__os_count_events(const char *text);

/* The system's own text for an error number (errno; GetLastError on Windows). */
typedef struct onuma__os_error {
    char text[160];
} onuma__os_error;
onuma__os_error onuma__os_error_text(unsigned long code);

#endif
