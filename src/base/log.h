/* SPDX-License-Identifier: Apache-2.0 */
/* The log: silent unless asked, one line a message, never called with a lock held. */
#ifndef ONUMA_BASE_LOG_H
#define ONUMA_BASE_LOG_H

#include "base/result.h"

/* A runtime's log. Set up once, read-only afterwards, so it needs no lock. */
typedef struct onuma__log {
    onuma_log_level level;
    onuma_log_callback *callback; /* NULL: standard error */
    void *user;
} onuma__log;

/* Formats "opennuma: " and the message, and hands it on if `level` is within the log's. NULL log: nothing. */
void onuma__log_write(const onuma__log *log, onuma_log_level level, const char *format, ...) ONUMA__PRINTF(3, 4);

static inline bool onuma__log_wants(const onuma__log *log, onuma_log_level level) {
    return log != NULL && level <= log->level;
}

#endif
