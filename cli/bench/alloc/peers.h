/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allocators that are compared with, from libraries in one folder (scripts/setup.sh bench fills it; it may be carried
 * to another machine). Each is loaded for itself alone, so that it replaces nobody's malloc.
 */
#ifndef CLI_BENCH_ALLOC_PEERS_H
#define CLI_BENCH_ALLOC_PEERS_H

#include "bench/alloc/allocator.h"

enum { BENCH_MOST_PEERS = 6 };

typedef struct bench_peers {
    bench_allocator allocators[BENCH_MOST_PEERS];
    size_t count;
    char lacking[64]; /* names of those that a library was built without, "" if none */
} bench_peers;

/*
 * The folder that setup.sh fills: in OPENNUMA_STACKS, or in the build tree that the command lies in. For the caller to
 * free. NULL: there is none.
 */
char *bench_peers_folder(void);

/*
 * Some peers read their settings from the environment as the process starts, and jemalloc needs room that the dynamic
 * linker only leaves if it is told so. Starts the command anew where the environment is not yet so: then it does not
 * return. false: that failed and was reported. argv[0] is the bench's name.
 */
bool bench_peers_prepare(int argc, char **argv);

/* false: one is missing or not what it should be, and that was reported with the remedy. */
bool bench_peers_load(const char *folder, bench_peers *out);

#endif
