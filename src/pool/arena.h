/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arenas: memory for blocks above the slabs' 32 KiB that one thread has for itself, so that threads which replace such
 * blocks at random do not search the engine's indexes, nor meet at its lock. They serve up to 256 KiB; and up to a
 * mebibyte once the thread had to wait at that lock, for larger blocks leave more unused in chunks than the time is worth
 * to a thread alone.
 *
 * An arena takes *chunks* of two mebibytes, or four for larger blocks, from the engine, as slabs take their memory. In a
 * chunk a bit for each unit tells what is taken, and the first run that is long enough serves. A free clears bits, which
 * joins it with its neighbours: there are no tags in a chunk, and no stretches.
 *
 * Only blocks of the CPU's tag come from arenas: memory of queues is what must be packed tightest, and it is
 * waited for longer than for a lock. And only where a chunk is a small part of what the pool has in use, from a thread
 * that came often; so small pools have none. What an arena may have free before it takes one more chunk is within the bound
 * of a front; chunks that are wholly free go back when it is passed.
 *
 * A block is a node here too, with a claim (large.h), and fronts keep it as any other. But what guards the node is the
 * arena's lock: its own thread's in the main, and others take it when they send back what their fronts kept of it. A
 * thread that follows a stale pointer must find out which lock that is, and that it still is: `arena` of a node changes
 * from an arena, and to it, under the lock of that arena only. Such nodes are therefore a stock of their own (NULL: a
 * node of the engine, for ever), and belong to onuma__arena_nowhere while none has them.
 *
 * What a chunk has free counts as in use until someone reads the statistics, as with fronts; so an allocation touches
 * nothing that threads share.
 */
#ifndef ONUMA_POOL_ARENA_H
#define ONUMA_POOL_ARENA_H

#include "pool/engine.h"

#define ONUMA__CHUNK_UNITS 1024u /* most */
#define ONUMA__CHUNK_WORDS (ONUMA__CHUNK_UNITS / 64)
#define ONUMA__ARENA_CHUNKS 256u

/* Guarded by the arena's lock; `arena` changes under it. */
struct onuma__chunk {
    _Atomic(onuma__arena *) arena; /* NULL while dead; read without the lock to find that lock */
    onuma__node *node;             /* its memory */
    uintptr_t base;
    unsigned units, free_units;
    unsigned index;                      /* in its arena */
    uint64_t taken[ONUMA__CHUNK_WORDS];  /* bit: that unit is a block's */
    uint64_t starts[ONUMA__CHUNK_WORDS]; /* bit: a block starts there */
    void *spare_link;                    /* of stable.c while unused */
};

struct onuma__arena {
    onuma__os_lock lock;
    _Atomic int64_t free_bytes; /* of chunks: written under the lock; relaxed, read for statistics */
    size_t bound;               /* of what may be free while whole chunks are, or before one more; constant */
    size_t most;                /* largest block: the thread's alone, like the next two */
    unsigned met;               /* how often the thread found others at the engine's lock */
    unsigned trips;             /* how often it found nothing here */
    /* Guarded by the lock. */
    unsigned count, empty;                 /* chunks; those that are wholly free */
    uint16_t longest[ONUMA__ARENA_CHUNKS]; /* units: no free run of that chunk is longer */
    onuma__chunk *chunks[ONUMA__ARENA_CHUNKS];
    onuma__node *spare; /* nodes, linked by next */
};

/* The arena of nodes that none has. */
extern ONUMA__HIDDEN onuma__arena onuma__arena_nowhere;

static inline onuma__chunk *onuma__entry_chunk(onuma__entry entry) {
    return (onuma__chunk *)(entry & ~(onuma__entry)ONUMA__ENTRY_SORT);
}

/* The arena whose lock guards a node, NULL: the engine's does. Acquire: what it is comes before what it is in. */
static inline onuma__arena *onuma__node_arena(const onuma__node *node) {
    return atomic_load_explicit(&node->arena, memory_order_acquire);
}

static inline onuma__os_lock *onuma__arena_lock_or(onuma__arena *arena, onuma__engine *engine) {
    return arena != NULL ? &arena->lock : &engine->lock;
}

/* Take the lock that guards a node, which may be another's by now, but is this engine's and guarded so until *lock is
 * released. NULL, and no lock, if it is nobody's. */
onuma__engine *onuma__node_lock(const onuma__node *node, onuma__os_lock **lock);

/* From the arena of this heap, the calling thread's; `bytes` are whole units. NULL if it has none. */
void *onuma__arena_alloc(onuma__heap *heap, size_t bytes, size_t requested);

/* How long a chunk the heap should get, now that it could not serve so many bytes. 0: none. */
size_t onuma__arena_wants(const onuma__heap *heap, size_t bytes);
/* A chunk of committed memory that is free; false if there is none. */
bool onuma__arena_extend(onuma__heap *heap, size_t chunk_bytes);
/* A chunk of a taken node of tag 0. OUT_OF_MEMORY, and the node is free again. */
onuma_result onuma__arena_add(onuma__heap *heap, onuma__node *node);
/* The thread found another at the engine's lock. */
void onuma__arena_met(onuma__heap *heap);
/* The engine served what the heap could not: if a chunk was wanted, there was none, so do not ask again soon. */
void onuma__arena_refused(onuma__heap *heap);

/* Under the arena's lock: a block that is claimed, or held, becomes free memory. Takes the engine's lock at times. */
void onuma__arena_give(onuma__arena *arena, onuma__node *node);
/* Under the arena's lock: shorten or lengthen a block. ONUMA__MISS if what follows is taken. */
onuma_result onuma__arena_resize(onuma__arena *arena, onuma__node *node, size_t bytes);

/* Wholly free chunks go back to the engine. Returns whether any did. */
bool onuma__arena_retire_empty(onuma__arena *arena);
/* If there is no chunk, and so nobody who gives to it: descriptors go back to the process. Whether that is so. */
bool onuma__arena_shed(onuma__engine *engine, onuma__arena *arena);
/* All chunks of a dying engine's heap, whatever lives in them; their memory is the caller's. */
void onuma__arena_forget(onuma__engine *engine, onuma__arena *arena);
/* Empty, for a heap that begins. */
void onuma__arena_reset(onuma__arena *arena, size_t bound);

/* Under the arena's lock: the block that holds this address of a chunk, live or not; NULL if none does. */
onuma__node *onuma__chunk_holding(const onuma__chunk *chunk, uintptr_t address);
/* The block that follows this one, NULL: the first. NULL: there is none. Under the arena's lock, or everyone at rest. */
onuma__node *onuma__chunk_next(const onuma__chunk *chunk, const onuma__node *node);

#endif
