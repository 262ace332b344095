/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `opennuma bench` can measure. To add a bench: write its function, declare it here, and put it in the table of
 * bench.c. It is a command like any other (command.h); argv[0] is "bench NAME".
 */
#ifndef CLI_BENCH_BENCH_H
#define CLI_BENCH_BENCH_H

#include "command.h"

cli_command_function cli_bench_alloc, cli_bench_generate, cli_bench_live, cli_bench_replay, cli_bench_sync;

#endif
