/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine keeps for each tag, and how waiting memory comes free. */
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

bool onuma__engine_tag_close(onuma__engine *engine, onuma__tag tag, uint64_t *epoch) {
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
        any = onuma__node_pass(engine, state, epoch);
        onuma__tag_drop(engine, state);
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
