/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options, declared as a table: from it come the parser, the help and the
 * suggestion for a misspelt name. "--name value" and "--name=value" are the
 * same; "--" ends the options; the last of a repeated option counts.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

/* Exactly one of flag, text and number is set; what it points to holds the default before parsing. */
typedef struct cli_option {
    const char *name;    /* without the dashes */
    const char *value;   /* what help calls the value, "ID"; NULL for a flag */
    const char *help;    /* one line */
    bool *flag;          /* becomes true */
    const char **text;   /* becomes the value */
    const char *choices; /* with text: the values allowed, "range|segments"; NULL: any */
    double *number;      /* becomes the value, which must be finite and greater than 0 */
} cli_option;

/* The option that every command has. */
#define CLI_OPTION_JSON(target)                                                                                        \
    { .name = "json", .help = "print one JSON object instead of text", .flag = (target) }

typedef struct cli_usage {
    const char *command;  /* "replay" */
    const char *operands; /* as help writes them, "FILE"; "" if there are none */
    const char *summary;  /* a sentence or a few lines */
    const cli_option *options;
    size_t option_count;
    size_t operand_count; /* how many operands there must be */
} cli_usage;

/*
 * Parse argv[1..]. true: go on; operands[0..operand_count) are filled. false: return *status, because
 * --help was asked for and printed, or the request is bad and was reported.
 */
bool cli_options_parse(const cli_usage *usage, int argc, char **argv, const char **operands, int *status);

/* The name nearest to a misspelt one, or NULL where none is near. `name_at` gives the i-th, NULL past the end. */
const char *cli_nearest(const char *wrong, const char *(*name_at)(const void *list, size_t i), const void *list);

#endif
