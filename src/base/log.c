/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LINE_BYTES 1024

/* A message is one line whatever is quoted in it: a driver's build log must not look like several of ours. */
static void flatten(char *text) {
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f) *text = ' ';
}

void onuma__log_write(const onuma__log *log, onuma_log_level level, const char *format, ...) {
    if (!onuma__log_wants(log, level) || level == ONUMA_LOG_NONE) return;

    static const char prefix[] = "opennuma: ";
    char line[LINE_BYTES + sizeof "\n"];
    const size_t begin = sizeof prefix - 1;
    memcpy(line, prefix, sizeof prefix);
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line + begin, LINE_BYTES - begin, format, arguments);
    va_end(arguments);
    if (length < 0) return;
    if ((size_t)length >= LINE_BYTES - begin) memcpy(line + LINE_BYTES - sizeof "...", "...", sizeof "...");
    flatten(line);

    if (log->callback) {
        log->callback(log->user, level, line);
    } else {
        /* One call, so that lines of several threads do not mix. */
        strcat(line, "\n");
        fputs(line, stderr);
        fflush(stderr); /* not every system leaves it unbuffered, and the next thing may be a crash */
    }
}
