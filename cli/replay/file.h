/* SPDX-License-Identifier: Apache-2.0 */
/* A trace from a file, gzip or plain. */
#ifndef CLI_REPLAY_FILE_H
#define CLI_REPLAY_FILE_H

#include "replay/trace.h"

/* "-" is standard input. false: `error` says why in one line, the file's name not included. */
bool trace_read_file(trace *out, const char *path, char *error, size_t error_size);

#endif
