/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line on standard error that tells how far a long command is; nothing at
 * all where standard error is not a terminal. A command that is interrupted takes the line
 * away before it ends, so that the shell's prompt stands where it belongs.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdint.h>

/* Replace the line: "replay 42%". Cheap when called often: it draws only when the percentage or `what` changes. */
void cli_progress(const char *what, uint64_t done, uint64_t total);

/* Take the line away, before anything else is printed. */
void cli_progress_end(void);

#endif
