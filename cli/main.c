/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "command.h"
#if defined(_WIN32)
#include "windows_text.h"
#endif

static const cli_command commands[] = {
    {"info", "what was found on this machine: drivers and devices", cli_info_main},
    {"demo", "check and measure the sharing of memory on the best device", cli_demo_main},
    {"replay", "run an allocation trace of a real program through a pool", cli_replay_main},
    {"bench", "measure the library on this machine", cli_bench_main},
    {"doctor", "what this machine lacks, and the remedy", cli_doctor_main},
};

enum { COMMANDS = sizeof commands / sizeof *commands };

static const char *command_name_at(const void *list, size_t i) {
    (void)list;
    return i < COMMANDS ? commands[i].name : NULL;
}

static void print_help(void) {
    printf("usage: opennuma COMMAND [options]\n\n"
           "One memory for the CPU and the GPU: look at it, try it, measure it.\n\ncommands:\n");
    for (size_t i = 0; i < COMMANDS; i++)
        printf("  %-10s%s\n", commands[i].name, commands[i].help);
    printf("\nEvery command takes --help, and --json for one JSON object instead of text.\n"
           "Exit status: 0 all that was checked held, 1 something did not, 2 the request is bad\n"
           "or the output cannot be written. The library's own settings are in OPENNUMA_CONF;\n"
           "opennuma info --config lists them.\n");
}

static int unknown_command(const char *name) {
    const char *near = cli_nearest(name, command_name_at, NULL);
    return near ? cli_bad_request("there is no command \"%.100s\"; did you mean \"%s\"?", name, near)
                : cli_bad_request("there is no command \"%.100s\"; see opennuma --help", name);
}

static int run(int argc, char **argv) {
    if (argc < 2) return cli_bad_request("which command? See opennuma --help");
    const char *first = argv[1];
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0) {
        print_help();
        return CLI_HELD;
    }
    if (strcmp(first, "--version") == 0) {
        printf("opennuma %s\n", onuma_version());
        return CLI_HELD;
    }
    if (first[0] == '-')
        return cli_bad_request("%.100s is no option of opennuma itself (--help, --version); a command comes first",
                               first);
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(first, commands[i].name) == 0) return commands[i].run(argc - 1, argv + 1);
    return unknown_command(first);
}

int main(int argc, char **argv) {
#if defined(_WIN32)
    if (!cli_arguments_in_utf8(&argc, &argv)) return cli_bad_request("cannot read the command line");
#endif
    cli_output_prepare();
    cli_json_prepare();
    return cli_output_finish(run(argc, argv));
}
