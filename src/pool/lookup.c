/* SPDX-License-Identifier: Apache-2.0 */
/* Which block a pointer lies in, and the walk over all blocks. */
#include "pool/arena.h"
#include "pool/directory.h"
#include "pool/large.h"
#include "pool/node.h"
#include "pool/slab.h"

void onuma__node_describe(const onuma__node *node, onuma__block *out) {
    onuma__engine *engine = atomic_load_explicit(&node->engine, memory_order_relaxed);
    *out = (onuma__block){.base = (void *)node->base, // NOLINT: an address
                          .size = node->size,
                          .requested = atomic_load_explicit(&node->requested, memory_order_relaxed),
                          .engine = engine,
                          .owner = engine->owner,
                          .span = &node->segment->span,
                          .offset = node->base - (uintptr_t)node->segment->span.base,
                          .align = (size_t)1 << node->align_shift,
                          .tag = node->tag,
                          .special = node->special,
                          .recycled = atomic_load_explicit(&node->recycled, memory_order_relaxed)};
}

static void describe_import(const onuma__import *import, onuma__block *out) {
    const onuma__span *span = import->span;
    *out = (onuma__block){.base = (void *)import->base, // NOLINT: an address
                          .size = import->size,
                          .requested = import->size,
                          .owner = import->owner,
                          .align = 1,
                          .span = span,
                          .offset = span != NULL ? import->base - (uintptr_t)span->base : 0,
                          .special = true};
}

/* Under the lock that guards it: describe the node if it is such a block. */
static onuma_result describe_if(const onuma__node *node, uintptr_t address, bool held, onuma__block *out) {
    if (address - node->base >= node->size ||
        !(held ? node->state == ONUMA__NODE_HELD && node->base == address : onuma__node_claimable(node)))
        return ONUMA_ERROR_INVALID_POINTER;
    onuma__node_describe(node, out);
    return ONUMA_OK;
}

static onuma_result find_in_segment(onuma__segment *segment, uintptr_t address, bool held, onuma__block *out) {
    onuma__engine *engine = atomic_load_explicit(&segment->engine, memory_order_acquire);
    if (engine == NULL) return ONUMA_ERROR_INVALID_POINTER;
    onuma_result r = ONUMA_ERROR_INVALID_POINTER;
    onuma__os_lock_acquire(&engine->lock);
    /* Still this engine's, and linked into it: `first` is cleared under the lock when a segment goes. */
    if (atomic_load_explicit(&segment->engine, memory_order_relaxed) == engine && segment->first != NULL) {
        const onuma__node *node = onuma__node_holding(segment, address);
        if (node != NULL) r = describe_if(node, address, held, out);
    }
    onuma__os_lock_release(&engine->lock);
    return r;
}

/* The start of a large block leads straight to its node. */
static onuma_result find_at_start(const onuma__node *node, uintptr_t address, bool held, onuma__block *out) {
    onuma__os_lock *lock;
    if (onuma__node_lock(node, &lock) == NULL) return ONUMA_ERROR_INVALID_POINTER;
    const onuma_result r = describe_if(node, address, held, out);
    onuma__os_lock_release(lock);
    return r;
}

static onuma_result find_in_chunk(const onuma__chunk *chunk, uintptr_t address, bool held, onuma__block *out) {
    onuma__arena *arena = atomic_load_explicit(&chunk->arena, memory_order_acquire);
    if (arena == NULL) return ONUMA_ERROR_INVALID_POINTER;
    onuma_result r = ONUMA_ERROR_INVALID_POINTER;
    onuma__os_lock_acquire(&arena->lock);
    /* Still this arena's, and still there. */
    if (atomic_load_explicit(&chunk->arena, memory_order_relaxed) == arena &&
        address - chunk->base < chunk->units * ONUMA__UNIT) {
        const onuma__node *node = onuma__chunk_holding(chunk, address);
        if (node != NULL) r = describe_if(node, address, held, out);
    }
    onuma__os_lock_release(&arena->lock);
    return r;
}

static onuma_result find_in_directory(uintptr_t address, bool held, onuma__block *out) {
    const onuma__place place = onuma__directory_find(address);
    if (place.segment != NULL) return find_in_segment(place.segment, address, held, out);
    if (!place.is_import || place.import.held != held || (held && place.import.base != address))
        return ONUMA_ERROR_INVALID_POINTER;
    describe_import(&place.import, out);
    return ONUMA_OK;
}

static onuma_result find(uintptr_t address, bool held, onuma__block *out) {
    const onuma__entry entry = onuma__pagemap_get(address);
    if ((entry & ONUMA__ENTRY_SORT) == ONUMA__ENTRY_SLAB)
        return onuma__slab_find(onuma__entry_slab(entry), address, held, out);
    if ((entry & ONUMA__ENTRY_SORT) == ONUMA__ENTRY_NODE)
        return find_at_start(onuma__entry_node(entry), address, held, out);
    if ((entry & ONUMA__ENTRY_SORT) == ONUMA__ENTRY_CHUNK)
        return find_in_chunk(onuma__entry_chunk(entry), address, held, out);
    return find_in_directory(address, held, out);
}

onuma_result onuma__engine_find(const void *ptr, onuma__block *out) {
    const onuma_result r = find((uintptr_t)ptr, false, out);
    if (r != ONUMA_OK) return onuma__fail(r, "%p: no live block holds that address", ptr);
    return r;
}

onuma_result onuma__engine_find_held(const void *base, onuma__block *out) {
    const onuma_result r = find((uintptr_t)base, true, out);
    if (r != ONUMA_OK) return onuma__fail(r, "%p: no block that is being freed starts there", base);
    return r;
}

static bool walk_chunk(const onuma__chunk *chunk, bool (*fn)(void *user, const onuma__block *block), void *user) {
    for (const onuma__node *node = NULL; (node = onuma__chunk_next(chunk, node)) != NULL;) {
        if (!onuma__node_claimable(node)) continue;
        onuma__block block;
        onuma__node_describe(node, &block);
        if (!fn(user, &block)) return false;
    }
    return true;
}

void onuma__engine_walk(onuma__engine *engine, bool (*fn)(void *user, const onuma__block *block), void *user) {
    for (onuma__segment *segment = engine->segments; segment != NULL; segment = segment->next) {
        for (onuma__node *node = segment->first; node != NULL; node = node->after) {
            if (node->state == ONUMA__NODE_SLAB) {
                if (!onuma__slab_walk(node->slab, fn, user)) return;
            } else if (node->state == ONUMA__NODE_CHUNK) {
                if (!walk_chunk(node->chunk, fn, user)) return;
            } else if (onuma__node_claimable(node)) {
                onuma__block block;
                onuma__node_describe(node, &block);
                if (!fn(user, &block)) return;
            }
        }
    }
}
