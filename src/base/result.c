/* SPDX-License-Identifier: Apache-2.0 */
/* Results, the thread's error detail and the version: what any call may ask of the library before all else. */
#include "base/result.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *onuma_result_name(onuma_result r) {
    switch (r) {
#define ONUMA_X(name, value, text)                                                                                     \
    case value:                                                                                                        \
        return "ONUMA_" #name;
        ONUMA_RESULTS(ONUMA_X)
#undef ONUMA_X
    default:
        return "ONUMA_ERROR_UNKNOWN";
    }
}

const char *onuma_result_text(onuma_result r) {
    switch (r) {
#define ONUMA_X(name, value, text)                                                                                     \
    case value:                                                                                                        \
        return text;
        ONUMA_RESULTS(ONUMA_X)
#undef ONUMA_X
    default:
        return "a number that is no result of OpenNUMA";
    }
}

#define QUOTE(x) #x
#define VERSION_TEXT(major, minor, patch) QUOTE(major) "." QUOTE(minor) "." QUOTE(patch)

const char *onuma_version(void) {
    return VERSION_TEXT(ONUMA_VERSION_MAJOR, ONUMA_VERSION_MINOR, ONUMA_VERSION_PATCH);
}

const char *onuma_last_error(void) {
    const char *text = onuma__thread_text();
    return text ? text : "no memory to keep the details";
}

onuma_result(onuma__fail)(onuma_result r, const char *format, ...) {
    /* Formatted beside the thread's buffer: the arguments may quote the present detail. */
    char detail[ONUMA__DETAIL_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    if (length < 0)
        snprintf(detail, sizeof detail, "%s", onuma_result_text(r));
    else if ((size_t)length >= sizeof detail)
        memcpy(detail + sizeof detail - sizeof "...", "...", sizeof "...");
    char *text = onuma__thread_text();
    if (text) memcpy(text, detail, strlen(detail) + 1);
    return r;
}
