/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of check:hazards: accesses that get in each other's way, with both sides named. */
#include <stdarg.h>
#include <stdio.h>

#include "sync/internal.h"

bool onuma__hazards_wanted(const onuma__device *device) {
    return device->config && device->config->check == ONUMA__CHECK_HAZARDS &&
           onuma__log_wants(device->log, ONUMA_LOG_WARN);
}

void onuma__hazard(const onuma__device *device, const char *format, ...) {
    char text[400];
    va_list arguments;
    if (!onuma__hazards_wanted(device)) return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    onuma__log_write(device->log, ONUMA_LOG_WARN, "hazard: %s", text);
}

const char *onuma__access_name(onuma_access mode) {
    switch (mode) {
    case ONUMA_ACCESS_READ:
        return "reading";
    case ONUMA_ACCESS_WRITE:
        return "writing";
    default:
        return "reading and writing";
    }
}
