/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool as PyTorch's and CuPy's native ones are made: a std::set of free blocks, a hash map of live ones, one mutex.
 * `opennuma bench replay` compares with it. It follows the published rules of PyTorch's native allocator:
 *
 *   sizes are rounded to 512 bytes
 *   up to 1 MiB from segments of 2 MiB; below 10 MiB from segments of 20 MiB; larger from their own, of whole 2 MiB
 *   best fit among the free blocks of the same stream and sort (up to 1 MiB or larger), ties by address
 *   the rest of a block is split off if it is at least 512 bytes (small) or more than 1 MiB (large)
 *   neighbours that are free are joined at once; segments are never given back
 *
 * There is no memory behind its addresses, and no driver behind its segments. They are handed out downwards, as the
 * driver did on the machine where the traces were recorded: so ties fall as they did there, and the peaks are those that
 * PyTorch itself reported.
 */
#ifndef BENCH_MAP_POOL_H
#define BENCH_MAP_POOL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct map_pool map_pool;

typedef struct map_pool_figures {
    uint64_t reserved, reserved_peak; /* bytes */
    uint64_t segments;                /* calls that a driver would have got */
    uint64_t metadata_peak;           /* bytes of blocks and of the nodes that hold them */
} map_pool_figures;

/* What bench/map_pool.cc exports, as one table named map_pool_functions. NULL where memory is out. */
typedef struct map_pool_table {
    map_pool *(*create)(void);
    void (*destroy)(map_pool *pool);
    void *(*allocate)(map_pool *pool, size_t size, uintptr_t stream);
    void (*release)(map_pool *pool, void *block);
    void (*read)(map_pool *pool, map_pool_figures *out);
} map_pool_table;

#ifdef __cplusplus
}
#endif
#endif
