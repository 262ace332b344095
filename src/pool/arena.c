/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/arena.h"

#include "pool/heap.h"
#include "pool/keep.h"
#include "pool/node.h"
#include "pool/stable.h"
#include "pool/stats.h"

#include <stddef.h>
#include <string.h>

/* A chunk is at most this fraction of what the pool has in use. */
#define CHUNK_SHARE 8

/* So often a thread goes to the engine before it gets a chunk. */
#define TRIPS 32

/* What arenas serve, at first and once the thread has found others at the engine's lock so often. */
#define BLOCK_MAX ((size_t)256 * 1024)
#define BLOCK_MAX_MET ((size_t)1024 * 1024)
#define MET 64

/* Descriptors taken at once. */
#define DRAWN 16

onuma__arena onuma__arena_nowhere;

static onuma__stable nodes = {.item = (sizeof(onuma__node) + 63) / 64 * 64, .link = offsetof(onuma__node, next)};
static onuma__stable chunks = {.item = (sizeof(onuma__chunk) + 63) / 64 * 64,
                               .link = offsetof(onuma__chunk, spare_link)};

static void add_metadata(onuma__engine *engine, int64_t bytes) {
    atomic_fetch_add_explicit(&engine->arena_bytes, (uint64_t)bytes, memory_order_relaxed);
}

onuma__engine *onuma__node_lock(const onuma__node *node, onuma__os_lock **lock) {
    onuma__engine *engine = atomic_load_explicit(&node->engine, memory_order_acquire);
    onuma__arena *arena = onuma__node_arena(node);
    if (engine == NULL) return NULL;
    *lock = onuma__arena_lock_or(arena, engine);
    onuma__os_lock_acquire(*lock);
    if (onuma__node_arena(node) == arena && atomic_load_explicit(&node->engine, memory_order_relaxed) == engine &&
        arena != &onuma__arena_nowhere)
        return engine;
    onuma__os_lock_release(*lock);
    return NULL;
}

/* ------------------------------------------------------------ descriptors */

/* A node that is this arena's. NULL when memory is out. */
static onuma__node *draw(onuma__engine *engine, onuma__arena *arena) {
    for (unsigned i = 0; arena->spare == NULL && i < DRAWN; i++) {
        onuma__node *node = onuma__stable_take(&nodes);
        if (node == NULL) break;
        atomic_store_explicit(&node->arena, arena, memory_order_release);
        node->next = arena->spare;
        arena->spare = node;
        add_metadata(engine, (int64_t)nodes.item);
    }
    onuma__node *node = arena->spare;
    if (node != NULL) arena->spare = node->next;
    return node;
}

static void discard(onuma__arena *arena, onuma__node *node) {
    node->state = ONUMA__NODE_DEAD;
    atomic_store_explicit(&node->engine, NULL, memory_order_release);
    node->next = arena->spare;
    arena->spare = node;
}

bool onuma__arena_shed(onuma__engine *engine, onuma__arena *arena) {
    onuma__os_lock_acquire(&arena->lock);
    const bool bare = arena->count == 0;
    while (bare && arena->spare != NULL) {
        onuma__node *node = arena->spare;
        arena->spare = node->next;
        atomic_store_explicit(&node->arena, &onuma__arena_nowhere, memory_order_release);
        onuma__stable_give(&nodes, node);
        add_metadata(engine, -(int64_t)nodes.item);
    }
    onuma__os_lock_release(&arena->lock);
    return bare;
}

void onuma__arena_reset(onuma__arena *arena, size_t bound) {
    arena->bound = bound;
    arena->most = BLOCK_MAX;
    arena->trips = arena->met = 0;
    arena->count = arena->empty = 0;
    arena->spare = NULL;
    atomic_store_explicit(&arena->free_bytes, 0, memory_order_relaxed);
}

/* ------------------------------------------------------------------ bits */

/* The first run of `wanted` free bits in a word, of which bits beside it are not part; 64: there is none. */
static unsigned run_inside(uint64_t free, size_t wanted) {
    for (size_t left = wanted; left > 1; left -= left / 2)
        free &= free >> (left / 2);
    return free != 0 ? (unsigned)__builtin_ctzll(free) : 64;
}

/*
 * The first run of free units that is long enough, word by word; UNITS if there is none. Then *longest is what no
 * run exceeds: exact for those that reach over the end of a word.
 */
static size_t find_run(const onuma__chunk *chunk, size_t wanted, size_t *longest) {
    const size_t inside = wanted < 64 ? wanted - 1 : 62; /* of a word, at most so many if none is found */
    size_t run = 0;                                      /* free units before this word */
    *longest = 0;
    for (size_t w = 0; w * 64 < chunk->units; w++) {
        const uint64_t taken = chunk->taken[w];
        if (taken == 0) {
            run += 64;
            if (run >= wanted) return w * 64 + 64 - run;
            continue;
        }
        const size_t low = (size_t)__builtin_ctzll(taken);
        run += low;
        if (run >= wanted) return w * 64 + low - run;
        if (run > *longest) *longest = run;
        if (wanted < 64) {
            const unsigned at = run_inside(~taken, wanted);
            if (at < 64) return w * 64 + at;
        }
        run = (size_t)__builtin_clzll(taken);
        if (inside > *longest) *longest = inside;
    }
    if (run > *longest) *longest = run;
    return ONUMA__CHUNK_UNITS;
}

/* Where the free run begins that ends before this unit. */
static size_t run_before(const onuma__chunk *chunk, size_t unit) {
    while (unit > 0) {
        const uint64_t below = chunk->taken[(unit - 1) / 64] << (63 - (unit - 1) % 64);
        const size_t here = (unit - 1) % 64 + 1;
        const size_t run = below != 0 ? (size_t)__builtin_clzll(below) : here;
        unit -= run;
        if (run < here) break;
    }
    return unit;
}

static size_t unit_of(const onuma__chunk *chunk, uintptr_t address) {
    return (address - chunk->base) >> ONUMA__UNIT_SHIFT;
}

static size_t free_bytes(const onuma__arena *arena) {
    return (size_t)atomic_load_explicit(&arena->free_bytes, memory_order_relaxed);
}

/* Units become taken, or free, and are counted. */
static void assign(onuma__arena *arena, onuma__chunk *chunk, size_t from, size_t to, bool taken) {
    const unsigned units = (unsigned)(to - from);
    onuma__bits_assign(chunk->taken, from, to, taken);
    arena->empty -= chunk->free_units == chunk->units;
    chunk->free_units = taken ? chunk->free_units - units : chunk->free_units + units;
    arena->empty += chunk->free_units == chunk->units;
    const int64_t bytes = (int64_t)units << ONUMA__UNIT_SHIFT;
    onuma__heap_add(&arena->free_bytes, taken ? -bytes : bytes);
    if (taken) return;
    const size_t run = onuma__bits_find(chunk->taken, to, chunk->units, true) - run_before(chunk, from);
    if (run > arena->longest[chunk->index]) arena->longest[chunk->index] = (uint16_t)run;
}

/* ------------------------------------------------------------------ chunks */

size_t onuma__arena_wants(const onuma__heap *heap, size_t bytes) {
    const onuma__engine *engine = heap->engine;
    const uint64_t in_use = atomic_load_explicit(&engine->totals.in_use.now, memory_order_relaxed);
    const size_t chunk = heap->arena.most > BLOCK_MAX ? engine->chunk_bytes * 2 : engine->chunk_bytes;
    if (heap->tag != 0 || heap->arena.trips < TRIPS || (int64_t)in_use < 0 || in_use < chunk * CHUNK_SHARE) return 0;
    const bool may = free_bytes(&heap->arena) + chunk <= heap->arena.bound;
    return may && bytes <= chunk / 2 && bytes <= heap->arena.most ? chunk : 0;
}

void onuma__arena_met(onuma__heap *heap) {
    if (++heap->arena.met == MET) heap->arena.most = BLOCK_MAX_MET;
}

void onuma__arena_refused(onuma__heap *heap) {
    if (heap->arena.trips >= TRIPS) heap->arena.trips = 0;
}

/* A taken node becomes a chunk. Under the arena's lock and the engine's. */
static onuma_result make_chunk(onuma__arena *arena, onuma__engine *engine, onuma__node *node) {
    if (arena->count == ONUMA__ARENA_CHUNKS) return ONUMA_ERROR_OUT_OF_MEMORY;
    onuma__chunk *chunk = onuma__stable_take(&chunks);
    if (chunk == NULL) return ONUMA_ERROR_OUT_OF_MEMORY;
    chunk->node = node;
    chunk->base = node->base;
    chunk->units = chunk->free_units = (unsigned)(node->size >> ONUMA__UNIT_SHIFT);
    chunk->index = arena->count++;
    memset(chunk->taken, 0, sizeof chunk->taken);
    onuma__bits_assign(chunk->taken, chunk->units, ONUMA__CHUNK_UNITS, true); /* what it does not have */
    memset(chunk->starts, 0, sizeof chunk->starts);
    arena->longest[chunk->index] = (uint16_t)chunk->units;
    arena->chunks[chunk->index] = chunk;
    arena->empty++;
    onuma__heap_add(&arena->free_bytes, (int64_t)node->size);
    atomic_store_explicit(&chunk->arena, arena, memory_order_release);
    node->state = ONUMA__NODE_CHUNK;
    node->chunk = chunk;
    onuma__pagemap_fill(node->base, node->size, (onuma__entry)chunk | ONUMA__ENTRY_CHUNK);
    add_metadata(engine, (int64_t)chunks.item);
    onuma__count(engine, (int64_t)node->size, 0, 0, 0);
    return ONUMA_OK;
}

/* A chunk is no more; its memory is the caller's. Under both locks. */
static onuma__node *bury(onuma__arena *arena, onuma__engine *engine, onuma__chunk *chunk) {
    onuma__node *node = chunk->node;
    onuma__pagemap_fill(node->base, node->size, 0);
    atomic_store_explicit(&chunk->arena, NULL, memory_order_release);
    node->chunk = NULL;
    node->state = ONUMA__NODE_TAKEN;
    const unsigned last = --arena->count;
    arena->chunks[chunk->index] = arena->chunks[last];
    arena->chunks[chunk->index]->index = chunk->index;
    arena->longest[chunk->index] = arena->longest[last];
    arena->empty -= chunk->free_units == chunk->units;
    onuma__heap_add(&arena->free_bytes, -(int64_t)((size_t)chunk->free_units << ONUMA__UNIT_SHIFT));
    onuma__count(engine, -(int64_t)node->size, 0, 0, 0);
    add_metadata(engine, -(int64_t)chunks.item);
    onuma__stable_give(&chunks, chunk);
    return node;
}

/* An empty chunk goes back. Under the arena's lock. */
static void retire(onuma__arena *arena, onuma__chunk *chunk) {
    onuma__engine *engine = atomic_load_explicit(&chunk->node->engine, memory_order_relaxed);
    onuma__os_lock_acquire(&engine->lock);
    onuma__node_give(engine, bury(arena, engine, chunk), true);
    onuma__os_lock_release(&engine->lock);
}

/* Under the lock: empty chunks go back until what is free is within the bound. Returns whether any did. */
static bool retire_beyond(onuma__arena *arena, size_t bound) {
    bool any = false;
    for (unsigned i = arena->count; i-- > 0 && arena->empty != 0 && free_bytes(arena) > bound;) {
        if (arena->chunks[i]->free_units != arena->chunks[i]->units) continue;
        retire(arena, arena->chunks[i]);
        any = true;
    }
    return any;
}

bool onuma__arena_retire_empty(onuma__arena *arena) {
    onuma__os_lock_acquire(&arena->lock);
    const bool any = retire_beyond(arena, 0);
    onuma__os_lock_release(&arena->lock);
    return any;
}

onuma_result onuma__arena_add(onuma__heap *heap, onuma__node *node) {
    onuma__engine *engine = heap->engine;
    onuma__os_lock_acquire(&heap->arena.lock);
    onuma__os_lock_acquire(&engine->lock);
    const onuma_result r = make_chunk(&heap->arena, engine, node);
    if (r != ONUMA_OK) onuma__node_give(engine, node, true);
    onuma__os_lock_release(&engine->lock);
    onuma__os_lock_release(&heap->arena.lock);
    return r;
}

bool onuma__arena_extend(onuma__heap *heap, size_t chunk_bytes) {
    onuma__engine *engine = heap->engine;
    onuma__node *node;
    onuma__os_lock_acquire(&engine->lock);
    const onuma_result r = onuma__node_take(engine, chunk_bytes, engine->unit, 0, ONUMA__TAKE_READY, &node);
    onuma__os_lock_release(&engine->lock);
    return r == ONUMA_OK && onuma__arena_add(heap, node) == ONUMA_OK;
}

void onuma__arena_forget(onuma__engine *engine, onuma__arena *arena) {
    onuma__os_lock_acquire(&arena->lock);
    onuma__os_lock_acquire(&engine->lock);
    while (arena->count != 0) {
        onuma__chunk *chunk = arena->chunks[arena->count - 1];
        for (onuma__node *node; (node = onuma__chunk_next(chunk, NULL)) != NULL;) {
            onuma__bits_assign(chunk->starts, unit_of(chunk, node->base), unit_of(chunk, node->base) + 1, false);
            atomic_store_explicit(&node->claim, 0, memory_order_relaxed);
            discard(arena, node);
        }
        (void)bury(arena, engine, chunk);
    }
    onuma__os_lock_release(&engine->lock);
    onuma__os_lock_release(&arena->lock);
}

/* ------------------------------------------------------------------ blocks */

/* The chunk with the shortest run that may be long enough, so that long ones are left for longer blocks; count: none. */
static unsigned tightest(const onuma__arena *arena, size_t units) {
    unsigned best = arena->count;
    size_t least = ONUMA__CHUNK_UNITS + 1;
    for (unsigned i = 0; i < arena->count; i++) {
        if (arena->longest[i] < units || arena->longest[i] >= least) continue;
        best = i;
        least = arena->longest[i];
    }
    return best;
}

/* Under the lock: a place for a block. NULL: there is none. */
static onuma__chunk *find_place(onuma__arena *arena, size_t units, size_t *at) {
    for (unsigned i; (i = tightest(arena, units)) < arena->count;) {
        size_t longest;
        *at = find_run(arena->chunks[i], units, &longest);
        if (*at < ONUMA__CHUNK_UNITS) return arena->chunks[i];
        arena->longest[i] = (uint16_t)longest;
    }
    return NULL;
}

static void begin(onuma__chunk *chunk, size_t at, size_t units, onuma__node *node, size_t requested) {
    onuma__engine *engine = atomic_load_explicit(&chunk->node->engine, memory_order_relaxed);
    node->base = chunk->base + (at << ONUMA__UNIT_SHIFT);
    node->size = units << ONUMA__UNIT_SHIFT;
    node->segment = chunk->node->segment;
    node->chunk = chunk;
    node->tag = 0;
    node->special = node->stranded = false;
    node->align_shift = (uint8_t)engine->classes.shift;
    node->state = ONUMA__NODE_LIVE;
    /* Nothing of a queue comes into an arena before all queues are through with it. */
    atomic_store_explicit(&node->recycled, false, memory_order_relaxed);
    atomic_store_explicit(&node->requested, requested, memory_order_relaxed);
    atomic_store_explicit(&node->engine, engine, memory_order_release);
    /* Release: whoever claims it sees all of it. */
    atomic_store_explicit(&node->claim, node->base, memory_order_release);
    onuma__pagemap_set(node->base, (onuma__entry)node | ONUMA__ENTRY_NODE);
    chunk->starts[at / 64] |= (uint64_t)1 << (at % 64);
}

void *onuma__arena_alloc(onuma__heap *heap, size_t bytes, size_t requested) {
    onuma__arena *arena = &heap->arena;
    const size_t units = bytes >> ONUMA__UNIT_SHIFT;
    if (heap->tag != 0 || heap->unit != ONUMA__UNIT || bytes > arena->most) return NULL;
    onuma__node *node = NULL;
    size_t at;
    onuma__os_lock_acquire(&arena->lock);
    onuma__chunk *chunk = find_place(arena, units, &at);
    if (chunk != NULL) node = draw(heap->engine, arena);
    if (node != NULL) {
        assign(arena, chunk, at, at + units, true);
        begin(chunk, at, units, node, requested);
    }
    onuma__os_lock_release(&arena->lock);
    if (node == NULL) {
        arena->trips++;
        return NULL;
    }
    onuma__heap_add(&heap->requested, (int64_t)requested);
    onuma__heap_add(&heap->allocs, 1);
    return (void *)node->base; // NOLINT: an address
}

void onuma__arena_give(onuma__arena *arena, onuma__node *node) {
    onuma__chunk *chunk = node->chunk;
    const size_t at = unit_of(chunk, node->base), end = at + (node->size >> ONUMA__UNIT_SHIFT);
    atomic_store_explicit(&node->claim, 0, memory_order_relaxed);
    chunk->starts[at / 64] &= ~((uint64_t)1 << (at % 64));
    onuma__pagemap_set(node->base, (onuma__entry)chunk | ONUMA__ENTRY_CHUNK);
    assign(arena, chunk, at, end, false);
    discard(arena, node);
    (void)retire_beyond(arena, arena->bound);
}

onuma_result onuma__arena_resize(onuma__arena *arena, onuma__node *node, size_t bytes) {
    onuma__chunk *chunk = node->chunk;
    const size_t at = unit_of(chunk, node->base);
    const size_t end = at + (node->size >> ONUMA__UNIT_SHIFT), to = at + (bytes >> ONUMA__UNIT_SHIFT);
    if (to > end) {
        if (to > chunk->units || onuma__bits_find(chunk->taken, end, to, true) != to) return ONUMA__MISS;
        assign(arena, chunk, end, to, true);
    } else if (to < end) {
        assign(arena, chunk, to, end, false);
        (void)retire_beyond(arena, arena->bound);
    }
    node->size = bytes;
    return ONUMA_OK;
}

/* The block that starts at this unit or is the first to start behind it. */
static onuma__node *block_from(const onuma__chunk *chunk, size_t unit) {
    const size_t at = unit < chunk->units ? onuma__bits_find(chunk->starts, unit, chunk->units, true) : chunk->units;
    if (at == chunk->units) return NULL;
    return onuma__entry_node(onuma__pagemap_get(chunk->base + (at << ONUMA__UNIT_SHIFT)));
}

onuma__node *onuma__chunk_holding(const onuma__chunk *chunk, uintptr_t address) {
    size_t word = unit_of(chunk, address) / 64;
    uint64_t upto = chunk->starts[word] & (~(uint64_t)0 >> (63 - unit_of(chunk, address) % 64));
    while (upto == 0 && word > 0)
        upto = chunk->starts[--word];
    if (upto == 0) return NULL;
    onuma__node *node = block_from(chunk, word * 64 + 63 - (size_t)__builtin_clzll(upto));
    return address - node->base < node->size ? node : NULL;
}

onuma__node *onuma__chunk_next(const onuma__chunk *chunk, const onuma__node *node) {
    return block_from(chunk, node != NULL ? unit_of(chunk, node->base + node->size) : 0);
}
