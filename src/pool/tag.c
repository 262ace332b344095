/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine keeps for each tag, and how waiting memory comes free. */
#include "pool/heap.h"
#include "pool/index.h"
#include "pool/node.h"

#include <stdlib.h>

static onuma__tag_state **bucket(onuma__engine *engine, onuma__tag tag) {
    return &engine->tags[(tag * 0x9e3779b9u) >> 26];
}

static void free_state(onuma__tag_state *state) {
    for (unsigned sort = 0; sort < ONUMA__SORTS; sort++)
        free(state->indexes[sort]);
    free(state);
}

onuma__tag_state *onuma__tag_get(onuma__engine *engine, onuma__tag tag, bool make) {
    if (tag == 0) return &engine->zero;
    onuma__tag_state **head = bucket(engine, tag);
    for (onuma__tag_state *state = *head; state != NULL; state = state->next)
        if (state->tag == tag) return state;
    if (!make) return NULL;
    onuma__tag_state *state = calloc(1, sizeof *state);
    if (state == NULL) goto fail;
    state->tag = tag;
    for (unsigned sort = 0; sort < (engine->range ? 1u : (unsigned)ONUMA__SORTS); sort++) {
        state->indexes[sort] = calloc(1, sizeof *state->indexes[sort]);
        if (state->indexes[sort] == NULL) goto fail;
    }
    state->next = *head;
    *head = state;
    engine->tag_count++;
    return state;

fail:
    if (state != NULL) free_state(state);
    onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "out of memory for the book-keeping of a queue");
    return NULL;
}

void onuma__tag_drop(onuma__engine *engine, onuma__tag_state *state) {
    if (state->tag == 0 || state->users != 0) return;
    onuma__tag_state **link = bucket(engine, state->tag);
    while (*link != state)
        link = &(*link)->next;
    *link = state->next;
    engine->tag_count--;
    free_state(state);
}

void onuma__tags_finish(onuma__engine *engine) {
    for (unsigned i = 0; i < ONUMA__TAG_BUCKETS; i++) {
        while (engine->tags[i] != NULL) {
            onuma__tag_state *state = engine->tags[i];
            engine->tags[i] = state->next;
            free_state(state);
        }
    }
    for (unsigned sort = 0; sort < ONUMA__SORTS; sort++)
        free(engine->zero.indexes[sort]);
}

/*
 * Memory that one queue freed comes to serve others, or the source, when a marker has passed that was taken after
 * the free. Taken only when memory is missing it comes too late: then a pool holds idle what another queue grows it by.
 * So one is asked for whenever a thirty-second of the pool has been freed; but only if there is a use for it, since
 * a marker may cost milliseconds: other queues share the pool, or it grew lately.
 */
void onuma__tag_freed(onuma__engine *engine, size_t bytes) {
    engine->alert = engine->alert > bytes ? engine->alert - bytes : 0;
    engine->freed_unnoted += bytes;
    if (engine->tag_count < 2 && engine->alert == 0) return;
    if (engine->freed_unnoted < atomic_load_explicit(&engine->reserved.now, memory_order_relaxed) / 32) return;
    engine->freed_unnoted = 0;
    atomic_store_explicit(&engine->due, true, memory_order_relaxed);
}

_Atomic bool *onuma__engine_due(onuma__engine *engine) {
    return &engine->due;
}

bool onuma__engine_tag_close(onuma__engine *engine, onuma__tag tag, uint64_t *epoch) {
    /* What this thread keeps of the tag is to wait with the rest. */
    onuma__heap *heap = onuma__heap_find(engine, tag);
    if (heap != NULL) {
        onuma__heap_enter(heap);
        (void)onuma__front_flush(heap, 0);
        onuma__heap_leave(heap);
    }
    onuma__os_lock_acquire(&engine->lock);
    const onuma__tag_state *state = tag != 0 ? onuma__tag_get(engine, tag, false) : NULL;
    const bool waits = state != NULL && state->earliest != NULL;
    if (waits) *epoch = engine->epoch++;
    onuma__os_lock_release(&engine->lock);
    return waits;
}

bool onuma__engine_tag_passed(onuma__engine *engine, onuma__tag tag, uint64_t epoch) {
    onuma__os_lock_acquire(&engine->lock);
    onuma__tag_state *state = tag != 0 ? onuma__tag_get(engine, tag, false) : NULL;
    bool any = false;
    if (state != NULL) {
        any = onuma__node_pass(engine, state, epoch, 0);
        onuma__tag_drop(engine, state);
    }
    onuma__os_lock_release(&engine->lock);
    return any;
}

bool onuma__engine_tag_waits(onuma__engine *engine, onuma__tag tag, uint64_t epoch) {
    onuma__os_lock_acquire(&engine->lock);
    const onuma__tag_state *state = tag != 0 ? onuma__tag_get(engine, tag, false) : NULL;
    const bool waits = state != NULL && state->earliest != NULL && state->earliest->epoch <= epoch;
    onuma__os_lock_release(&engine->lock);
    return waits;
}

bool onuma__engine_tag_move(onuma__engine *engine, onuma__tag tag, uint64_t epoch, onuma__tag to) {
    bool any = false;
    onuma__os_lock_acquire(&engine->lock);
    onuma__tag_state *state = tag != 0 ? onuma__tag_get(engine, tag, false) : NULL;
    onuma__tag_state *other = state != NULL && to != 0 && to != tag ? onuma__tag_get(engine, to, true) : NULL;
    if (other != NULL) {
        any = onuma__node_pass(engine, state, epoch, to);
        onuma__tag_drop(engine, state);
        onuma__tag_drop(engine, other);
    }
    onuma__os_lock_release(&engine->lock);
    return any;
}

bool onuma__engine_tag_known(onuma__engine *engine, onuma__tag tag) {
    onuma__os_lock_acquire(&engine->lock);
    const bool known = onuma__tag_get(engine, tag, false) != NULL;
    onuma__os_lock_release(&engine->lock);
    return known;
}
