/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pools of Unified Memory Framework, over its provider of the system's memory. What is used of it is declared in
 * umf.c, after its public headers of version 1.
 */
#ifndef CLI_BENCH_ALLOC_UMF_H
#define CLI_BENCH_ALLOC_UMF_H

#include "bench/alloc/allocator.h"

enum { BENCH_UMF_POOLS = 4 };

/*
 * From a loaded libumf, the pools it was built with, and in `lacking` the names of those it was not. 0: it is not what was
 * expected, and `wrong` says why.
 */
size_t bench_umf_allocators(void *library, bench_allocator out[BENCH_UMF_POOLS], char *lacking, size_t lacking_size,
                            char *wrong, size_t wrong_size);

#endif
