/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output.h"

void cli_json_prepare(void) {
    cJSON_Hooks hooks = {cli_allocate, free};
    cJSON_InitHooks(&hooks);
}

/* Bytes of the well-formed UTF-8 character at `c`, 0 if there is none (RFC 3629: no overlong forms, no surrogates). */
static size_t character_length(const unsigned char *c) {
    size_t length;
    uint32_t code, least;
    if (c[0] < 0x80) return 1;
    if ((c[0] & 0xE0) == 0xC0) {
        length = 2, code = c[0] & 0x1Fu, least = 0x80;
    } else if ((c[0] & 0xF0) == 0xE0) {
        length = 3, code = c[0] & 0x0Fu, least = 0x800;
    } else if ((c[0] & 0xF8) == 0xF0) {
        length = 4, code = c[0] & 0x07u, least = 0x10000;
    } else {
        return 0;
    }
    for (size_t i = 1; i < length; i++) {
        if ((c[i] & 0xC0) != 0x80) return 0; /* the terminating zero too */
        code = code << 6 | (c[i] & 0x3Fu);
    }
    bool surrogate = code >= 0xD800 && code <= 0xDFFF;
    return code < least || surrogate || code > 0x10FFFF ? 0 : length;
}

static cJSON *text_item(const char *text) {
    static const char replacement[] = "\xEF\xBF\xBD";
    char *valid = cli_allocate(strlen(text) * 3 + 1);
    char *out = valid;
    for (const char *c = text; *c;) {
        size_t length = character_length((const unsigned char *)c);
        memcpy(out, length ? c : replacement, length ? length : 3);
        out += length ? length : 3;
        c += length ? length : 1;
    }
    *out = '\0';
    cJSON *item = cJSON_CreateString(valid);
    free(valid);
    return item;
}

void cli_json_text(cJSON *object, const char *name, const char *text) {
    cJSON_AddItemToObject(object, name, text_item(text));
}

void cli_json_append_text(cJSON *array, const char *text) {
    cJSON_AddItemToArray(array, text_item(text));
}

void cli_json_integer(cJSON *object, const char *name, uint64_t value) {
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, value);
    cJSON_AddRawToObject(object, name, digits);
}

void cli_json_number(cJSON *object, const char *name, double value) {
    if (isfinite(value))
        cJSON_AddNumberToObject(object, name, value);
    else
        cJSON_AddNullToObject(object, name);
}

void cli_json_print(cJSON *object) {
    char *text = cJSON_PrintUnformatted(object);
    cJSON_Delete(object);
    puts(text);
    cJSON_free(text);
}
