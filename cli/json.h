/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cJSON with what it lacks: exact 64-bit integers, and text that is valid UTF-8
 * whatever bytes a driver or a file name holds. Memory running out ends the program
 * (cli_json_prepare), so results need no checking.
 */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <cjson/cJSON.h>
#include <stdint.h>

/* Called once, before any other use of cJSON. */
void cli_json_prepare(void);

/* Add a member. */
void cli_json_text(cJSON *object, const char *name, const char *text);
void cli_json_integer(cJSON *object, const char *name, uint64_t value);
void cli_json_number(cJSON *object, const char *name, double value); /* null where it is not finite */

/* Append to an array. */
void cli_json_append_text(cJSON *array, const char *text);

/* Print on a line of its own to standard output, and delete. */
void cli_json_print(cJSON *object);

#endif
