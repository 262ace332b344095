/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "character.h"
#include "output.h"
#include "units.h"

void cli_json_prepare(void) {
    cJSON_Hooks hooks = {cli_allocate, free};
    cJSON_InitHooks(&hooks);
}

static cJSON *text_item(const char *text) {
    static const char replacement[] = "\xEF\xBF\xBD";
    char *valid = cli_allocate(strlen(text) * 3 + 1);
    char *out = valid;
    for (const char *c = text; *c;) {
        size_t length = cli_character_length(c);
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
    if (cli_is_finite(value))
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
