/* SPDX-License-Identifier: Apache-2.0 */
#if !defined(_WIN32)
#define _POSIX_C_SOURCE 200809L
#endif
#include "progress.h"

#include <stdbool.h>
#include <stdio.h>

#if defined(_WIN32)
#include <io.h>
#else
#include <signal.h>
#include <unistd.h>
#endif

#define CLEAR_LINE "\r\x1b[K"

static const char *drawn_what; /* NULL: no line stands */
static int drawn_percent;

#if !defined(_WIN32)
/* Ends as it would have without this, by the signal, which is what shells look at. Was installed for one delivery. */
static void clear_and_end(int signal_number) {
    (void)!write(STDERR_FILENO, CLEAR_LINE, sizeof CLEAR_LINE - 1);
    (void)raise(signal_number);
}

/* Where nobody took it over: what is ignored (nohup) stays so. */
static void clear_when_interrupted(void) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction now, ours = {.sa_handler = clear_and_end, .sa_flags = (int)SA_RESETHAND | SA_NODEFER};
        (void)sigemptyset(&ours.sa_mask);
        if (sigaction(signals[i], NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL)
            (void)sigaction(signals[i], &ours, NULL);
    }
}
#else
static void clear_when_interrupted(void) {}
#endif

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
    if (!drawn_what) clear_when_interrupted();
    fprintf(stderr, CLEAR_LINE "%s %d%%", what, percent);
    fflush(stderr);
    drawn_what = what;
    drawn_percent = percent;
}

void cli_progress_end(void) {
    if (!drawn_what) return;
    fputs(CLEAR_LINE, stderr);
    fflush(stderr);
    drawn_what = NULL;
}
