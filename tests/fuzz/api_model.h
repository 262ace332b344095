/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must hold of blocks and queues, kept beside the library by the simplest
 * means: lists, and a look through all of them.
 *
 * A queue is a host timeline that the input steps. Whatever the library should
 * wait for is here a number that a timeline must reach. These numbers are lower
 * bounds: the library may wait for more, never for less.
 */
#ifndef TESTS_FUZZ_API_MODEL_H
#define TESTS_FUZZ_API_MODEL_H

#include <opennuma/opennuma.h>

#include "fuzz.h"

enum { QUEUES = 3, BLOCKS = 48, USES = 8, PENDING = 256, POOLS = 2 };

/* Value of a use whose work is not submitted yet. */
#define OPEN UINT64_MAX

typedef struct model_use {
    unsigned queue;
    onuma_access mode;
    uint64_t until;   /* OPEN, or what the timeline reaches when it is over */
    uint64_t implied; /* what an acquire took it for while it was open; OPEN if none did */
} model_use;

/* until[q]: what timeline q must have reached; 0 is always reached. */
typedef struct model_block {
    unsigned char *base; /* NULL: none here */
    size_t size, requested, filled;
    unsigned pool;
    uint64_t number;    /* of which its contents are made */
    bool bound[QUEUES]; /* counts as used by the queue until it is freed */
    uint64_t until[QUEUES];
    uint64_t last_owner[QUEUES]; /* when work of those who had this memory before is over */
    model_use uses[USES];
    size_t use_count;
    bool announced; /* some use ever was */
    unsigned holds[ONUMA_ACCESS_READ_WRITE + 1];
} model_block;

/* Freed, and perhaps still used by queues. */
typedef struct model_pending {
    unsigned char *base;
    size_t size, looked_at; /* bytes whose contents are still known */
    uint64_t number;
    uint64_t until[QUEUES];
} model_pending;

typedef struct model_queue {
    onuma_host_timeline *timeline;
    onuma_queue *queue; /* NULL: not wrapped */
    bool in_order;
} model_queue;

typedef struct model_pool {
    onuma_pool *pool;
    bool simulated;
    size_t alignment, limit;
    uint64_t most_reserved; /* what the limit allows, or was reserved when it was set */
    uint64_t in_use, requested, blocks, allocs, frees, failures;
} model_pool;

typedef struct model {
    model_pool pools[POOLS];
    model_queue queues[QUEUES];
    model_block blocks[BLOCKS];
    model_pending pending[PENDING];
    size_t pending_count;
    uint64_t numbers;
} model;

bool model_reached(const model *m, unsigned queue, uint64_t value);
bool model_all_reached(const model *m);
/* All work that was handed in is done. */
void model_finish_queues(model *m);

/*
 * The library handed out `base`: alone, aligned, in memory that nobody uses, unless it is later work of the same queue
 * (-1: of none, the CPU's own).
 */
void model_allocated(model *m, model_block *block, unsigned pool, void *base, size_t requested, size_t align,
                     int queue);
void model_fill(model *m, model_block *block);
/* The first `upto` bytes are as they were filled, as far as they were. */
void model_check_contents(const model *m, const model_block *block, size_t upto);
/* The block is freed on a queue, or with -1 on none. Call it before the library's own. */
void model_freed(model *m, model_block *block, int queue);
/* Forget what has passed; what has not must be untouched. */
void model_settle(model *m);
void model_check_statistics(model *m);

/* Does the CPU's access have to wait? Also notes that it takes open uses for submitted. */
bool model_acquire_waits(model *m, model_block *block, onuma_access mode);
void model_acquired(model_block *block, onuma_access mode);
bool model_use_conflicts(const model_block *block, onuma_access mode);
void model_used(model *m, model_block *block, unsigned queue, onuma_access mode);
void model_submitted(model *m, unsigned queue, uint64_t until);
/* The queue is about to be released: what it was used for ends with its last work. */
void model_release_queue(model *m, unsigned queue);

#endif
