/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine: serves blocks from spans of addresses. It knows no driver, no
 * queue and no clock, and never touches the memory it manages.
 *
 * Who may reuse freed memory. Every block is allocated and freed under a *tag*:
 * 0 for the CPU alone, else the number of an in-order queue. What is freed
 * under tag t serves allocations of tag t at once. It serves others only after
 * the engine has been told that the queue has passed (onuma__engine_tag_passed)
 * the epoch in which it was freed. Memory freed under tag 0 serves anyone.
 * The layer above turns epochs into markers; the engine only counts.
 *
 * A free that the engine must not finish by itself (the block has side records,
 * or was allocated under another tag than it is freed under) leaves the block
 * *held*: dead to the user, so that a second free is refused, but not reusable
 * until onuma__engine_release.
 *
 * Results of its own, never shown to users:
 */
#ifndef ONUMA_POOL_POOL_H
#define ONUMA_POOL_POOL_H

#include <stdatomic.h>

#include "pool/source.h"

enum {
    ONUMA__MISS = 1000, /* nothing free fits: grow, or make room and try again */
    ONUMA__HELD = 1001  /* the block is dead but not yet reusable */
};

typedef uint32_t onuma__tag;

/* No queue's number: passed to onuma__engine_free it differs from every block's tag, so the free is always held. */
#define ONUMA__TAG_HOLD UINT32_MAX

/* Bit of the numbers of unordered queues. What was allocated under such a tag is held by every free, with tag 0 too:
 * work of the queue may overtake, so not even the queue itself may reuse it before a marker has passed. */
#define ONUMA__TAG_UNORDERED 0x80000000u

typedef struct onuma__engine onuma__engine;

typedef struct onuma__engine_desc {
    onuma__source source; /* copied */
    onuma_source mode;    /* RANGE or SEGMENTS */
    size_t alignment;     /* every block's at least; a power of two, at least 16 */
    size_t segment_bytes; /* ordinary segments; 0: the engine's choice */
    size_t max_segment;   /* a source's largest; 0: none */
    size_t cache_bytes;   /* most free small-block bytes one thread keeps */
    size_t chunk_bytes;   /* of arenas' smaller chunks, a power of two up to 2 MiB; 0: the engine's choice */
    bool exact_peaks;     /* in_use and requested peaks exact: an atomic for every call */
    void *owner;          /* the pool object above; given back by onuma__engine_find */
} onuma__engine_desc;

/* The largest block, aligned to `align` (at least the engine's), that any source with this largest segment can serve: a
 * whole one less what the source's own alignment may cost. 0: none. */
size_t onuma__largest_block(size_t max_segment, size_t align);

onuma_result onuma__engine_create(const onuma__engine_desc *desc, onuma__engine **out);

/* All spans go back to the source, whatever lives in them: the layer above has made sure that may be. */
void onuma__engine_destroy(onuma__engine *engine);

/* ------------------------------------------------------------ blocks */

/* Fast path: no lock, no shared atomic, no system call. ONUMA__MISS, INVALID_ARGUMENT (align), OUT_OF_MEMORY (size absurd). */
onuma_result onuma__engine_alloc(onuma__engine *engine, size_t size, size_t align, onuma__tag tag, void **out);

/*
 * The shortest way of an allocation: a block of no special alignment, from the heap that last served the calling
 * thread, if that was remembered with the same key (never NULL) and is of the same tag. false: take the long way.
 * A key is whatever names the engine for the layer above; it must never name another.
 */
bool onuma__engine_alloc_again(const void *key, size_t size, onuma__tag tag, void **out);
void onuma__engine_remember(onuma__engine *engine, const void *key, onuma__tag tag);
/* The key means this engine no more, though it lives on. */
void onuma__engine_forget_keys(onuma__engine *engine);

/* After a miss: get memory from the source (no lock held meanwhile) so that this allocation can succeed; one that
 * commits pages also allocates: *out is the block. The source's own result on failure. */
onuma_result onuma__engine_grow(onuma__engine *engine, size_t size, size_t align, onuma__tag tag, void **out);

/*
 * Free a block of any engine. OK: done. ONUMA__HELD: see above; `*engine` and the block's base go to the caller.
 * DOUBLE_FREE and INVALID_POINTER leave everything as it was; so does freeing an import (ONUMA__HELD with
 * *engine NULL: the caller retires it).
 */
onuma_result onuma__engine_free(void *ptr, onuma__tag tag, onuma__engine **engine);

/* The shortest way of a free: of a small block whose slab is the calling thread's, or a large one that its front keeps,
 * in an engine that has a key. false: nothing happened, take the long way. */
bool onuma__engine_free_own(void *ptr, onuma__tag tag);

/* Finish a held free: every queue that might touch it has passed, so it serves anyone. */
void onuma__engine_release(onuma__engine *engine, void *ptr);
/* The same when only the queue of its own tag might touch it, as for a free under that tag. */
void onuma__engine_release_own(onuma__engine *engine, void *ptr);

typedef struct onuma__block {
    void *base;
    size_t size, requested;
    onuma__engine *engine;   /* NULL for an import */
    void *owner;             /* the engine's owner, or what the import was registered with */
    const onuma__span *span; /* where it lies; valid while the block lives */
    size_t offset;           /* of base in the span */
    size_t align;            /* that it was allocated with, or a stricter one; of an import 1 */
    onuma__tag tag;          /* allocated under */
    bool special;            /* side records exist */
    bool recycled; /* work that its tag's queue had before the allocation may still use it; false: surely not */
} onuma__block;

/* The live block that holds `ptr`, interior pointers too. INVALID_POINTER otherwise (held blocks are not live). */
onuma_result onuma__engine_find(const void *ptr, onuma__block *out);

/* The same for a block that is held: from ONUMA__HELD until its release (or onuma__import_remove), when only the
 * caller of onuma__engine_free knows of it. `base` exactly. INVALID_POINTER if it is not held. */
onuma_result onuma__engine_find_held(const void *base, onuma__block *out);

/*
 * The caller has no memory to remember a held block with: the engine does so, with none of its own, until it is asked.
 * Taking gives up to `room` of them back into the caller's care; returns how many. A search through everything.
 */
void onuma__engine_strand(onuma__engine *engine, void *base);
size_t onuma__engine_take_stranded(onuma__engine *engine, onuma__block *out, size_t room);

/* Side records exist (or no longer do) for the live block at `base`: frees of it become held. */
onuma_result onuma__engine_set_special(void *base, bool special);

/* Shrink or grow a live block in place and set what was requested; ONUMA__MISS if it cannot. */
onuma_result onuma__engine_resize(void *base, size_t size);

/* Every live block of an engine, in address order per span; other threads must be at rest. Stops when fn returns false. */
void onuma__engine_walk(onuma__engine *engine, bool (*fn)(void *user, const onuma__block *block), void *user);

/* ------------------------------------------------------- imported memory */

/* Memory that no engine manages, as a block: found by find, held by free. CONFLICT if it overlaps a live block or
 * import. `span` and `owner` are kept. */
onuma_result onuma__import_add(void *base, size_t size, const onuma__span *span, void *owner);
/* Whether that would be a CONFLICT now: to be asked before a driver is, which has its own words for such memory. */
onuma_result onuma__import_check(const void *base, size_t size);
void onuma__import_remove(void *base); /* live or held */

/* --------------------------------------------------------- tags, room */

/* Close the tag's epoch: what was freed under it so far waits for `*epoch`. false: nothing waits. */
bool onuma__engine_tag_close(onuma__engine *engine, onuma__tag tag, uint64_t *epoch);
/* The queue has passed what was submitted before that epoch closed. Returns whether anything became free for all. */
bool onuma__engine_tag_passed(onuma__engine *engine, onuma__tag tag, uint64_t epoch);
/* Whether anything that was freed under the tag up to that epoch still waits. */
bool onuma__engine_tag_waits(onuma__engine *engine, onuma__tag tag, uint64_t epoch);
/* What the other tag's queue does from now on comes after that epoch of `tag`: what waits of it counts as freed under the
 * other tag just now. Returns whether anything did. */
bool onuma__engine_tag_move(onuma__engine *engine, onuma__tag tag, uint64_t epoch, onuma__tag to);
/* Whether the engine has memory of that tag: live, cached or waiting. */
bool onuma__engine_tag_known(onuma__engine *engine, onuma__tag tag);

/*
 * Becomes true (relaxed) when it is worth asking how far the queues are though nothing missed: enough was freed that
 * others could use. Whoever asks sets it to false. Constant address while the engine lives.
 */
_Atomic bool *onuma__engine_due(onuma__engine *engine);

/* Whether growing by `size` would make the engine hold more than it was ever asked for at once, and a little, while
 * memory that waits for queues is the reason. */
bool onuma__engine_would_swell(onuma__engine *engine, size_t size);

/* Hand the small blocks that idle threads (the caller too) cache back to the pool. Returns whether any came. */
bool onuma__engine_take_caches(onuma__engine *engine);

/* Give wholly free segments (pages, for a range) back until at most `keep` bytes are reserved. Returns bytes given back. */
size_t onuma__engine_trim(onuma__engine *engine, size_t keep);

/*
 * A gentler trim, for decay: free memory goes back while more than `keep` bytes are reserved, but no segment whose going
 * would leave less, and nobody's cache. Then the contents of free pages beyond `keep_filled` are discarded, where the
 * source can: the system may take their memory if it is short, and they serve again without a call. Returns bytes given back.
 */
size_t onuma__engine_shrink(onuma__engine *engine, size_t keep_filled, size_t keep);

/* The most bytes that were in use since the last such call (some KiB missed for each thread); at least what is now. */
uint64_t onuma__engine_peak_lately(onuma__engine *engine);

/* Gauges and counters; oom_retry and alloc_failure stay 0: they belong to policy. `pending` is what is held or waits for a tag. */
void onuma__engine_get_stats(onuma__engine *engine, onuma_pool_stats *out);
void onuma__engine_reset_peak(onuma__engine *engine);

/* For tests: every invariant of every structure; INTERNAL and a detail naming the first that is broken. Other threads at rest. */
onuma_result onuma__engine_check(onuma__engine *engine);

#endif
