/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a command's words go: results to standard output, everything else to
 * standard error, and the exit status that every command gives.
 */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "opennuma/opennuma.h"

#if defined(__MINGW32__) /* where printf means that of Microsoft's old run-time library */
#define CLI_FORMAT(at) __attribute__((format(gnu_printf, at, (at) + 1)))
#elif defined(__GNUC__)
#define CLI_FORMAT(at) __attribute__((format(printf, at, (at) + 1)))
#else
#define CLI_FORMAT(at)
#endif

/* Exit statuses. A command returns one of them. */
enum {
    CLI_HELD = 0,       /* everything that was checked held */
    CLI_FAILED = 1,     /* something did not */
    CLI_BAD_REQUEST = 2 /* the request makes no sense, or the output cannot be written */
};

/* Called first in main: standard streams are open, and a closed pipe is an error of writing, not a signal. */
void cli_output_prepare(void);

/* One line "opennuma: ..." on standard error, which names the value and the remedy. */
void cli_error(const char *format, ...) CLI_FORMAT(1);

/* cli_error, and the status to return. */
int cli_bad_request(const char *format, ...) CLI_FORMAT(1);
int cli_failed(const char *format, ...) CLI_FORMAT(1);

/* A library call failed: its detail text behind `what`. BAD_REQUEST for arguments and names, else FAILED. */
int cli_library_error(const char *what, onuma_result r);

/* Called last in main: `status`, or BAD_REQUEST (and a line) if standard output could not be written in full. */
int cli_output_finish(int status);

/* Never NULL: where memory runs out the program ends with FAILED and a line. For small things only. */
void *cli_allocate(size_t size);
void *cli_reallocate(void *old, size_t size);
char *cli_copy_text(const char *text);

#endif
