/* SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"

#include <stdbool.h>
#include <stdio.h>

#if defined(_WIN32)
#include <io.h>
#else
#include <unistd.h>
#endif

static const char *drawn_what; /* NULL: no line stands */
static int drawn_percent;

static bool on_terminal(void) {
    static int known = -1;
    if (known < 0) {
#if defined(_WIN32)
        known = _isatty(_fileno(stderr)) != 0;
#else
        known = isatty(STDERR_FILENO) != 0;
#endif
    }
    return known == 1;
}

void cli_progress(const char *what, uint64_t done, uint64_t total) {
    if (!on_terminal()) return;
    int percent = total ? (int)((double)done / (double)total * 100) : 0;
    if (what == drawn_what && percent == drawn_percent) return;
    fprintf(stderr, "\r\x1b[K%s %d%%", what, percent);
    fflush(stderr);
    drawn_what = what;
    drawn_percent = percent;
}

void cli_progress_end(void) {
    if (!drawn_what) return;
    fputs("\r\x1b[K", stderr);
    fflush(stderr);
    drawn_what = NULL;
}
