/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trying something that may not come back. A broken driver aborts while it is loaded, or waits for ever, and
 * nothing that shares its process can tell about it. So the doctor itself loads no driver: each is tried
 * in a child of its own, which writes what it learns into memory that both see, and which is ended when its time is
 * up. How far the child came is then known even if it died.
 */
#ifndef CLI_DOCTOR_TRIAL_H
#define CLI_DOCTOR_TRIAL_H

#include <stddef.h>

typedef enum {
    TRIAL_DONE,
    TRIAL_CRASHED,   /* by a signal; code is its number */
    TRIAL_ENDED,     /* it called exit() in the middle; code is the status */
    TRIAL_HUNG,      /* it was still at it when the time was up */
    TRIAL_IMPOSSIBLE /* there could be no child; code is errno */
} trial_outcome;

typedef struct trial {
    trial_outcome outcome;
    int code;
    char said[200]; /* the last line that it wrote to standard error; "" if none */
} trial;

/*
 * Run `body` on a copy of `report`, and bring the copy back, whatever became of the child. Standard output
 * of the child leads nowhere. To be called before this process has threads.
 */
trial trial_run(void (*body)(void *report), void *report, size_t report_size, double seconds);

/* "crashed (SIGSEGV)", "did not come back within 30 s", ... */
void trial_describe(const trial *t, double seconds, char *text, size_t size);

#endif
