/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/alloc/peers.h"
#include "output.h"

/* The peers are libraries of Linux. */
char *bench_peers_folder(void) {
    return NULL;
}

bool bench_peers_prepare(int argc, char **argv) {
    (void)argc, (void)argv;
    cli_error("the peers are libraries of Linux; leave out --peers and --peers-from here");
    return false;
}

bool bench_peers_load(const char *folder, bench_peers *out) {
    (void)folder;
    *out = (bench_peers){0};
    return false;
}
