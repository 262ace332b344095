/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output.h"
#include "units.h"

/* ------------------------------------------------------------ suggestions */

enum { LONGEST_NAME = 32 };

static size_t smallest(size_t a, size_t b, size_t c) {
    size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* Levenshtein's distance; names longer than LONGEST_NAME are as far as can be. */
static size_t distance(const char *a, const char *b) {
    size_t m = strlen(a), n = strlen(b);
    if (m > LONGEST_NAME || n > LONGEST_NAME) return SIZE_MAX;
    size_t row[LONGEST_NAME + 1];
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; i <= m; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t above = row[j];
            row[j] = smallest(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[n];
}

const char *cli_nearest(const char *wrong, const char *(*name_at)(const void *list, size_t i), const void *list) {
    const char *best = NULL;
    size_t best_distance = SIZE_MAX;
    const char *name;
    for (size_t i = 0; (name = name_at(list, i)); i++) {
        size_t d = distance(wrong, name);
        /* What begins like a name is near it, however much is missing. */
        if (wrong[0] && strncmp(name, wrong, strlen(wrong)) == 0) d = 1;
        if (d < best_distance && d <= strlen(name) / 2 + 1) {
            best = name;
            best_distance = d;
        }
    }
    return best;
}

static const char *option_name_at(const void *list, size_t i) {
    const cli_usage *usage = list;
    if (i < usage->option_count) return usage->options[i].name;
    return i == usage->option_count ? "help" : NULL;
}

/* ------------------------------------------------------------------- help */

enum { HELP_COLUMN = 26 };

static void print_option(const char *name, const char *value, const char *help) {
    int used = printf("  --%s%s%s", name, value ? " " : "", value ? value : "");
    int gap = used < HELP_COLUMN - 1 ? HELP_COLUMN - used : 2;
    printf("%*s%s\n", gap, "", help);
}

static void print_help(const cli_usage *usage) {
    printf("usage: opennuma %s%s%s [options]\n\n%s\n\noptions:\n", usage->command, usage->operands[0] ? " " : "",
           usage->operands, usage->summary);
    for (size_t i = 0; i < usage->option_count; i++)
        print_option(usage->options[i].name, usage->options[i].value, usage->options[i].help);
    print_option("help", NULL, "print this");
}

/* ---------------------------------------------------------------- parsing */

static const cli_option *find_option(const cli_usage *usage, const char *name, size_t length) {
    for (size_t i = 0; i < usage->option_count; i++) {
        const char *candidate = usage->options[i].name;
        if (strlen(candidate) == length && memcmp(candidate, name, length) == 0) return &usage->options[i];
    }
    return NULL;
}

static bool is_choice(const char *choices, const char *value) {
    size_t length = strlen(value);
    for (const char *at = choices; *at;) {
        size_t n = strcspn(at, "|");
        if (n == length && memcmp(at, value, n) == 0) return true;
        at += n + (at[n] == '|');
    }
    return false;
}

static bool take_value(const cli_option *option, const char *value, int *status) {
    if (option->text) {
        if (option->choices && !is_choice(option->choices, value)) {
            *status =
                cli_bad_request("--%s cannot be \"%.100s\"; it is one of %s", option->name, value, option->choices);
            return false;
        }
        *option->text = value;
        return true;
    }
    char *end;
    errno = 0;
    double number = strtod(value, &end);
    if (end == value || *end || errno == ERANGE || !cli_is_finite(number) || number <= 0) {
        *status =
            cli_bad_request("--%s cannot be \"%.100s\"; it is a number greater than 0, 0.25 say", option->name, value);
        return false;
    }
    *option->number = number;
    return true;
}

static bool unknown_option(const cli_usage *usage, const char *argument, int *status) {
    char name[LONGEST_NAME + 1];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(argument, "="), argument);
    const char *near = cli_nearest(name[0] == '-' ? name + strspn(name, "-") : name, option_name_at, usage);
    *status = near ? cli_bad_request("%s has no option %.100s; did you mean --%s?", usage->command, argument, near)
                   : cli_bad_request("%s has no option %.100s; see opennuma %s --help", usage->command, argument,
                                     usage->command);
    return false;
}

/* One argument that begins with a dash; *i moves past the value if it takes the next one. */
static bool take_option(const cli_usage *usage, int argc, char **argv, int *i, int *status) {
    const char *argument = argv[*i];
    const char *name = argument + 2;
    size_t length = strcspn(name, "=");
    if (strcmp(argument, "-h") == 0 || strcmp(argument, "--help") == 0) {
        print_help(usage);
        *status = CLI_HELD;
        return false;
    }
    const cli_option *option = argument[1] == '-' ? find_option(usage, name, length) : NULL;
    if (!option) return unknown_option(usage, argument, status);
    const char *value = name[length] == '=' ? name + length + 1 : NULL;
    if (option->flag) {
        if (value) {
            *status = cli_bad_request("--%s takes no value, \"%.100s\" was given", option->name, value);
            return false;
        }
        *option->flag = true;
        return true;
    }
    if (!value) {
        if (*i + 1 >= argc) {
            *status = cli_bad_request("--%s needs a value: --%s %s", option->name, option->name, option->value);
            return false;
        }
        value = argv[++*i];
    }
    return take_value(option, value, status);
}

bool cli_options_parse(const cli_usage *usage, int argc, char **argv, const char **operands, int *status) {
    size_t found = 0;
    bool options_end = false;
    for (int i = 1; i < argc; i++) {
        if (!options_end && strcmp(argv[i], "--") == 0) {
            options_end = true;
        } else if (!options_end && argv[i][0] == '-' && argv[i][1]) {
            if (!take_option(usage, argc, argv, &i, status)) return false;
        } else if (found < usage->operand_count) {
            operands[found++] = argv[i];
        } else {
            *status = cli_bad_request("%s: \"%.100s\" is one argument too many; see opennuma %s --help", usage->command,
                                      argv[i], usage->command);
            return false;
        }
    }
    if (found < usage->operand_count) {
        *status =
            cli_bad_request("%s needs %s; see opennuma %s --help", usage->command, usage->operands, usage->command);
        return false;
    }
    return true;
}
