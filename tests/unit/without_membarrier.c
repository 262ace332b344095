/* SPDX-License-Identifier: Apache-2.0 */
/*
 * without_membarrier PROGRAM ARGUMENT...: on a system that never had the barrier on all threads (an old kernel, a filter of
 * a container's). Where it is there by default nothing else would run on the real fences that stand in for it.
 */
#define _GNU_SOURCE
#include "membarrier.h"

#include "os/os.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    if (argc < 2 || !forbid_membarrier()) {
        fprintf(stderr, "membarrier cannot be forbidden: %s\n", strerror(errno));
        return 2;
    }
    if (onuma__os_abilities_get()->asymmetric_barrier || onuma__os_barrier_all()) {
        fprintf(stderr, "the library has a barrier on all threads all the same\n");
        return 2;
    }
    execv(argv[1], argv + 1);
    fprintf(stderr, "%s: %s\n", argv[1], strerror(errno));
    return 2;
}
