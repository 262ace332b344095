/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/context.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The words of each key; NULL for keys that are numbers. */
#define CHOICE(words) words
#define BOOL "off|on"
#define SIZE NULL
#define TIME NULL
#define KEY(field, name, type, fallback, help) {name, type, offsetof(onuma__config, field)},
static const struct {
    const char *name, *words;
    size_t offset;
} keys[] = {ONUMA__CONFIG_KEYS(KEY)};
#undef KEY

enum { KEYS = sizeof keys / sizeof keys[0], VALUE_BYTES = 32 };

struct onuma__backend_context {
    const onuma__log *log;
    char values[KEYS][VALUE_BYTES];
};

static void value_text(const char *words, uint64_t value, char text[VALUE_BYTES]) {
    if (words == NULL) {
        snprintf(text, VALUE_BYTES, "%" PRIu64, value);
        return;
    }
    for (uint64_t skip = value; skip > 0 && words != NULL; skip--) {
        words = strchr(words, '|');
        if (words != NULL) words++;
    }
    if (words != NULL) snprintf(text, VALUE_BYTES, "%.*s", (int)strcspn(words, "|"), words);
}

onuma_result onuma__backend_context_create(const onuma__config *config, const onuma__log *log,
                                           onuma__backend_context **out) {
    onuma__backend_context *context = calloc(1, sizeof *context);
    if (context == NULL) return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for the backends' configuration");
    context->log = log;
    for (size_t i = 0; i < KEYS; i++) {
        uint64_t value;
        memcpy(&value, (const char *)config + keys[i].offset, sizeof value);
        value_text(keys[i].words, value, context->values[i]);
    }
    *out = context;
    return ONUMA_OK;
}

void onuma__backend_context_destroy(onuma__backend_context *context) {
    free(context);
}

static void write_log(const onuma_backend_host *host, onuma_log_level level, const char *format, ...)
    ONUMA__PRINTF(3, 4);
static void write_log(const onuma_backend_host *host, onuma_log_level level, const char *format, ...) {
    const onuma__backend_context *context = host->user;
    if (!onuma__log_wants(context->log, level)) return;
    char line[ONUMA__DETAIL_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    onuma__log_write(context->log, level, "%s", line);
}

static const char *config_value(const onuma_backend_host *host, const char *key) {
    const onuma__backend_context *context = host->user;
    for (size_t i = 0; i < KEYS; i++)
        if (strcmp(keys[i].name, key) == 0) return context->values[i];
    return NULL;
}

void onuma__backend_context_host(const onuma__backend_context *context, onuma_backend_host *host) {
    *host = (onuma_backend_host){
        .struct_size = sizeof *host, .fail = onuma__fail, .log = write_log, .config = config_value, .user = context};
}
