/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command is, and what every command may use. To add one: write its
 * function, declare it here (or in the header of its folder), and put it in the
 * table of main.c.
 *
 * A command parses its options (options.h), prints results to standard output as
 * text (table.h, units.h) or, with --json, as one object (json.h), reports errors and
 * returns an exit status (output.h), and shows how far it is (progress.h).
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "clock.h"
#include "json.h"
#include "opennuma/opennuma.h"
#include "options.h"
#include "output.h"
#include "progress.h"
#include "table.h"
#include "units.h"

/* argv[0] is the command's name, its arguments follow. Returns an exit status. */
typedef int cli_command_function(int argc, char **argv);

typedef struct cli_command {
    const char *name;
    const char *help; /* one line */
    cli_command_function *run;
} cli_command;

cli_command_function cli_info_main, cli_demo_main, cli_replay_main, cli_bench_main, cli_doctor_main;

#endif
