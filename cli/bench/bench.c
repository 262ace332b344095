/* SPDX-License-Identifier: Apache-2.0 */
/* bench: the measurements, each a command of its own behind one name. */
#include "bench/bench.h"

#include <stdio.h>
#include <string.h>

static const cli_command benches[] = {
    {"alloc", "time of allocations and frees, next to other allocators", cli_bench_alloc},
    {"generate", "write a trace of a made-up load", cli_bench_generate},
    {"live", "whether a pool slows down as it fills", cli_bench_live},
    {"replay", "how tight, how fast and how quiet a pool is on traces", cli_bench_replay},
    {"sync", "what following the rules of sharing costs", cli_bench_sync},
};

enum { BENCHES = sizeof benches / sizeof *benches };

static const char *bench_name_at(const void *list, size_t i) {
    (void)list;
    return i < BENCHES ? benches[i].name : NULL;
}

static void print_help(void) {
    printf("usage: opennuma bench NAME [options]\n\nMeasure the library on this machine.\n\nnames:\n");
    for (size_t i = 0; i < BENCHES; i++)
        printf("  %-10s%s\n", benches[i].name, benches[i].help);
    printf("\nEach has options of its own, --json among them: opennuma bench NAME --help\n");
}

int cli_bench_main(int argc, char **argv) {
    if (argc < 2) return cli_bad_request("bench needs NAME; see opennuma bench --help");
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        print_help();
        return CLI_HELD;
    }
    for (size_t i = 0; i < BENCHES; i++)
        if (strcmp(name, benches[i].name) == 0) return benches[i].run(argc - 1, argv + 1);
    const char *near = cli_nearest(name, bench_name_at, NULL);
    return near ? cli_bad_request("there is no bench \"%.100s\"; did you mean \"%s\"?", name, near)
                : cli_bad_request("there is no bench \"%.100s\"; see opennuma bench --help", name);
}
