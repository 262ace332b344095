/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's structures, for the files of this folder.
 *
 *   engine ── segments ── nodes (large blocks, slabs, free memory; in address order)
 *      │                    │
 *      ├── tags ── indexes ─┘ (free nodes by size, one index per tag and sort of segment)
 *      └── heaps (thread, tag) ── slabs (small blocks)
 *
 * Beside these, two maps of the whole process lead from a pointer to its block:
 * pagemap.h (starts of large blocks, pages of slabs) and directory.h (spans).
 *
 * Locks, in the order in which they may be nested:
 *
 *   that of fork.c: the list of engines
 *   lifetime    process-wide: threads that exit against engines that die (heap.c)
 *   heaps_lock  of an engine: its list of heaps, and who may take from the heaps of others
 *   that of an arena: its chunks, and the nodes of the blocks in them (arena.h)
 *   lock        of an engine: segments, nodes, indexes, tags, making and retiring slabs
 *   those of directory.c and stable.c, innermost
 *
 * What a heap owns is not under a lock but under its owner's guard: see heap.h.
 * None is held while the source is called.
 *
 * Engines, segments, nodes, slabs and heaps are type-stable (stable.h): a
 * thread that follows a stale pointer to one reads an item of the right type,
 * and checks under its lock whether it still is the one it was looking for.
 */
#ifndef ONUMA_POOL_ENGINE_H
#define ONUMA_POOL_ENGINE_H

#include "base/checked.h"
#include "os/os.h"
#include "pool/bitmap.h"
#include "pool/classes.h"
#include "pool/pagemap.h"
#include "pool/pool.h"

#include <stdatomic.h>

#define ONUMA__ABSURD ((size_t)1 << (sizeof(size_t) * 8 - 4)) /* no system has as much; keeps sums from overflowing */

typedef struct onuma__segment onuma__segment;
typedef struct onuma__node onuma__node;
typedef struct onuma__slab onuma__slab;
typedef struct onuma__heap onuma__heap;
typedef struct onuma__index onuma__index;
typedef struct onuma__arena onuma__arena;
typedef struct onuma__chunk onuma__chunk;

/* A block allocated under one tag and freed under another (0: the CPU's) must be held. */
static inline bool onuma__tag_holds(onuma__tag allocated, onuma__tag freed) {
    return (freed != 0 && freed != allocated) || (allocated & ONUMA__TAG_UNORDERED) != 0;
}

/* ------------------------------------------------------------------- nodes */

typedef enum {
    ONUMA__NODE_DEAD, /* no memory: a spare descriptor */
    ONUMA__NODE_FREE,
    ONUMA__NODE_TAKEN, /* out of the index, not yet a block: its pages are being committed */
    ONUMA__NODE_LIVE,  /* a large block, or one that a front keeps */
    ONUMA__NODE_HELD,  /* a large block, dead to the user */
    ONUMA__NODE_SLAB,
    ONUMA__NODE_CHUNK /* an arena's: the blocks in it have nodes of their own */
} onuma__node_state;

/*
 * A stretch of a segment: a large block, a slab's memory or free memory.
 * The nodes of a segment tile it. Fields are guarded by the engine's lock,
 * unless something else is said (of blocks in chunks: by their arena's, see arena.h); those of a live block may be read
 * by whoever has seen its claim.
 */
struct onuma__node {
    /* One cache line: what keeping a block and handing it out need. */
    _Atomic uintptr_t claim;         /* a block's address while it may be freed: see large.h */
    _Atomic(onuma__engine *) engine; /* NULL while dead; also read without the lock, to find it */
    _Atomic(onuma__arena *) arena;   /* whose lock guards it, NULL: the engine's; see arena.h */
    uintptr_t base;
    size_t size;
    _Atomic size_t requested; /* while a block; also written by the owner of a front (relaxed) */
    onuma__node *next;        /* in a list of an index, while `indexed`; in a front, under its guard */
    onuma__tag tag;           /* allocated or freed under */
    uint8_t state;            /* onuma__node_state */
    uint8_t align_shift;      /* while a block: the alignment it was allocated with */
    bool special;             /* while a block */
    _Atomic bool recycled;    /* while a block: as in onuma__block. Relaxed: written before the block is anybody's */

    bool indexed;          /* stands for a stretch in its tag's index */
    bool stranded;         /* while held: see strand.c. The engine's lock, whatever guards the rest */
    onuma__node *previous; /* in a list of an index */
    onuma__segment *segment;
    onuma__node *before, *after;  /* neighbours in address */
    onuma__node *earlier, *later; /* in the tag's list by epoch, while free under a tag other than 0 */
    uintptr_t stretch_base;       /* while indexed: of the stretch that it stands for (stretch.h) */
    size_t stretch_size;
    onuma__slab *slab;   /* while a slab */
    onuma__chunk *chunk; /* while one, or of a block in one */
    uint64_t epoch;      /* of the tag, in which it was freed */
};

/* ---------------------------------------------------------------- segments */

enum {
    ONUMA__SORT_SMALL,  /* small blocks, slabs among them; the only sort in range mode */
    ONUMA__SORT_MEDIUM, /* larger ones that share segments */
    ONUMA__SORT_OWN,    /* those that get a segment to measure */
    ONUMA__SORTS
};

/* Of commitment, where the source has no larger ones: a constant, so that a trace replays alike on all systems. */
#define ONUMA__PAGE ((size_t)64 * 1024)

struct onuma__segment {
    _Atomic(onuma__engine *) engine; /* NULL while dead; read without the lock to find that lock */
    onuma__span span;                /* as the source gave it; constant while alive */
    uintptr_t base;                  /* the part used: whole units, aligned for the engine */
    size_t size;
    uint8_t sort;
    onuma__segment *previous, *next; /* in the engine's list */
    uint64_t number;                 /* in order of making: an order that does not depend on addresses */
    onuma__node *first;              /* lowest node */
    onuma__bitmap starts;            /* units where a large block starts (live or held) */
    uintptr_t high;                  /* end of the highest memory ever taken: what metadata has been touched */
    /* Range mode. A page is committed, in transition (`moving`, by the thread that set it) or neither. */
    uint64_t *committed, *moving;
    uint64_t *discarded; /* committed pages whose contents were given up, and which have not been taken since */
    size_t page;         /* bytes of one: the engine's */
    size_t pages;
    size_t committed_pages;
    size_t committed_end; /* no page from here on was ever committed */
};

/* --------------------------------------------------------- indexes and tags */

/* Stretches of free nodes by size: see index.c. */
#define ONUMA__INDEX_SUB_BITS 5
#define ONUMA__INDEX_SUBS (1u << ONUMA__INDEX_SUB_BITS)
#define ONUMA__INDEX_LEVELS 40
struct onuma__index {
    uint64_t levels;                    /* bit: some list of that level is not empty */
    uint32_t subs[ONUMA__INDEX_LEVELS]; /* bit: that list is not empty */
    onuma__node *lists[ONUMA__INDEX_LEVELS][ONUMA__INDEX_SUBS];
};

/* What the engine knows of one tag. */
typedef struct onuma__tag_state {
    onuma__tag tag;
    struct onuma__tag_state *next;       /* in its bucket */
    onuma__node *earliest, *latest;      /* free nodes by epoch; unused for tag 0 */
    size_t users;                        /* nodes of this tag */
    onuma__index *indexes[ONUMA__SORTS]; /* NULL where the mode has no such sort */
} onuma__tag_state;

#define ONUMA__TAG_BUCKETS 64

/* -------------------------------------------------------------- statistics */

/* A gauge with its peak. */
typedef struct onuma__gauge {
    _Atomic uint64_t now, peak; /* relaxed: counts, which order nothing */
} onuma__gauge;

/* Where allocations and frees are counted: see stats.h. */
typedef struct onuma__totals {
    onuma__gauge in_use, requested, blocks;
    _Atomic uint64_t in_use_lately; /* the peak since it was last asked for (onuma__engine_peak_lately); relaxed */
    _Atomic uint64_t allocs, frees;
} onuma__totals;

/* ------------------------------------------------------------------ engine */

/* See sort.h. */
typedef struct onuma__sort_sizes {
    size_t block;   /* largest block of this sort */
    size_t segment; /* size of its segments */
    /* With what the pool holds both grow: they are at least this fraction of it (of n, one n-th). 0: they stay. */
    unsigned block_share, segment_share;
} onuma__sort_sizes;

struct onuma__engine {
    /* Constant from create to destroy. */
    _Atomic uint64_t id; /* never reused; 0 while dead */
    onuma__source source;
    void *owner;
    size_t alignment, unit; /* unit: what nodes are multiples of */
    size_t max_segment, cache_bytes;
    size_t front_bytes; /* most that one front keeps; 0: there are none */
    size_t chunk_bytes; /* of arenas' chunks */
    size_t range_bytes; /* range mode: of reservations */
    size_t page;        /* range mode: of commitment */
    onuma__sort_sizes sorts[ONUMA__SORTS];
    onuma__classes classes;
    bool range; /* mode */
    bool exact_peaks;

    onuma__os_lock lock;
    /* Guarded by lock. */
    onuma__segment *segments, *last_segment;
    uint64_t segment_number; /* of the last one made */
    onuma__tag_state *tags[ONUMA__TAG_BUCKETS];
    onuma__tag_state zero; /* tag 0: always there */
    uint64_t epoch;        /* the open one of every tag. One counter for all, so that a tag's state may be forgotten
                              and made again while the layer above still holds numbers of its closed epochs */
    onuma__node *spare;    /* descriptors ready for use, linked by next */
    size_t spare_count;
    size_t stranded;      /* held blocks, see strand.c */
    size_t freed_unnoted; /* under queues' tags since `due` was last set */
    size_t alert;         /* bytes of frees for which the pool is still watched after it grew: see tag.c */
    size_t node_count, slab_bytes, tag_count, segment_metadata; /* for metadata_bytes */
    size_t discarded_pages;                                     /* of all segments */
    bool growing[ONUMA__SORTS]; /* a thread is getting a segment of that sort that others can share */

    onuma__os_lock heaps_lock;
    /* Guarded by heaps_lock. */
    onuma__heap *heaps;
    _Atomic size_t heap_count; /* also read without, for metadata_bytes: relaxed */

    _Atomic uint64_t arena_bytes; /* relaxed: of arenas' chunks and nodes, for metadata_bytes */
    _Atomic bool misaligned;      /* relaxed: the source was seen to give spans that do not start on a unit */
    _Atomic size_t tolerated;     /* relaxed: bytes that a range may hold though more than its bound: see grow.c */
    _Atomic bool due;             /* relaxed: the layer above should ask how far the queues are */

    onuma__totals totals;
    onuma__gauge reserved, pending, metadata, cached;
    _Atomic uint64_t segment_allocs, segment_frees, commits, decommits;

    onuma__engine *earlier, *later; /* in the list of fork.c; its lock */

    void *spare_link; /* of stable.c while dead */
};

/* Under the lock: the state of a tag; made if `make` (NULL and a detail when memory is out), else NULL if unknown. */
onuma__tag_state *onuma__tag_get(onuma__engine *engine, onuma__tag tag, bool make);
/* Under the lock: forget a tag's state if nothing holds on to it. */
void onuma__tag_drop(onuma__engine *engine, onuma__tag_state *state);
/* Under the lock: `bytes` were freed under a tag. */
void onuma__tag_freed(onuma__engine *engine, size_t bytes);
/* Forget them all, that of tag 0 too. Under the lock. */
void onuma__tags_finish(onuma__engine *engine);

#endif
