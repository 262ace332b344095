/* SPDX-License-Identifier: Apache-2.0 */
#include "api/handle.h"

#include <inttypes.h>
#include <stdlib.h>

#define ONE_REFERENCE (UINT64_C(1) << 4)
#define CLAIMED (UINT64_C(1) << 23)
#define FILLING UINT64_C(15)
#define GENERATION_SHIFT 24
#define LAST_GENERATION (UINT64_MAX >> GENERATION_SHIFT)

_Atomic(onuma__handle_slot *) onuma__handle_chunks[ONUMA__HANDLE_CHUNKS];

static uint64_t free_state(uint64_t state) {
    return state >> GENERATION_SHIFT << GENERATION_SHIFT;
}

/* Chunk c, made if it is not there yet. NULL when memory is out. */
static onuma__handle_slot *chunk_of(size_t c) {
    onuma__handle_slot *chunk = atomic_load_explicit(&onuma__handle_chunks[c], memory_order_acquire);
    if (chunk != NULL) return chunk;
    onuma__handle_slot *fresh = calloc(ONUMA__HANDLE_SLOTS, sizeof *fresh);
    if (fresh == NULL) return NULL;
    /* release: publishes the zeroes. acquire on failure: the winner's zeroes. */
    if (atomic_compare_exchange_strong_explicit(&onuma__handle_chunks[c], &chunk, fresh, memory_order_acq_rel,
                                                memory_order_acquire))
        return fresh;
    free(fresh);
    return chunk;
}

/* Make the slot ours to fill, under its next generation. A slot that has used up its generations is never ours. */
static bool fill(onuma__handle_slot *slot, uint64_t *generation) {
    uint64_t state = atomic_load_explicit(&slot->state, memory_order_relaxed);
    if (state != free_state(state) || state >> GENERATION_SHIFT == LAST_GENERATION) return false;
    *generation = (state >> GENERATION_SHIFT) + 1;
    /* acquire: what we write to the slot comes after the release of whoever freed it. */
    return atomic_compare_exchange_strong_explicit(&slot->state, &state, *generation << GENERATION_SHIFT | FILLING,
                                                   memory_order_acquire, memory_order_relaxed);
}

void *onuma__handle_put(onuma__handle_type type, void *object, void *owner) {
    for (size_t c = 0; c < ONUMA__HANDLE_CHUNKS; c++) {
        onuma__handle_slot *chunk = chunk_of(c);
        if (chunk == NULL) {
            (void)onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for the table of handles");
            return NULL;
        }
        for (size_t i = 0; i < ONUMA__HANDLE_SLOTS; i++) {
            uint64_t generation;
            if (!fill(&chunk[i], &generation)) continue;
            uint64_t number = generation << GENERATION_SHIFT | (uint64_t)type;
            /* release: a stale look-up that reads these also sees that the slot is no longer what it was. */
            atomic_store_explicit(&chunk[i].object, object, memory_order_release);
            atomic_store_explicit(&chunk[i].owner, owner, memory_order_release);
            atomic_store_explicit(&chunk[i].state, number | ONE_REFERENCE, memory_order_release);
            return (void *)(uintptr_t)(number | (uint64_t)(c * ONUMA__HANDLE_SLOTS + i) << 4);
        }
    }
    (void)onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "there are %d live runtimes, devices, pools and queues; release some",
                      ONUMA__HANDLE_CHUNKS * ONUMA__HANDLE_SLOTS);
    return NULL;
}

void *onuma__handle_owner(const void *handle) {
    uint64_t token = (uint64_t)(uintptr_t)handle;
    onuma__handle_slot *slot = onuma__handle_slot_of(token);
    if (slot == NULL) return NULL;
    void *owner = atomic_load_explicit(&slot->owner, memory_order_acquire);
    return onuma__handle_matches(token, atomic_load_explicit(&slot->state, memory_order_acquire)) ? owner : NULL;
}

/*
 * What retaining (+1) or dropping (-1) makes of a state; false if it is not allowed. The last reference is not
 * counted down but claimed.
 */
static bool changed(uint64_t state, int change, uint64_t *after) {
    if ((state & CLAIMED) != 0) return false;
    bool only_one = (state & ONUMA__HANDLE_MIDDLE) == ONE_REFERENCE;
    if (change > 0)
        *after = state + ONE_REFERENCE;
    else
        *after = only_one ? state | CLAIMED : state - ONE_REFERENCE;
    return change < 0 || (*after & CLAIMED) == 0;
}

/* The object if the handle is live and the change was made; *after is then the slot's state. */
static void *change_slot(const void *handle, int change, uint64_t *after) {
    uint64_t token = (uint64_t)(uintptr_t)handle;
    onuma__handle_slot *slot = onuma__handle_slot_of(token);
    if (slot == NULL) return NULL;
    uint64_t state = atomic_load_explicit(&slot->state, memory_order_acquire);
    for (;;) {
        if (!onuma__handle_matches(token, state) || !changed(state, change, after)) return NULL;
        void *object = atomic_load_explicit(&slot->object, memory_order_acquire);
        /* acq_rel: what other holders did to the object before they let go comes before what the last one does. */
        if (atomic_compare_exchange_weak_explicit(&slot->state, &state, *after, memory_order_acq_rel,
                                                  memory_order_acquire))
            return object;
    }
}

bool onuma__handle_retain(const void *handle) {
    uint64_t after;
    return change_slot(handle, 1, &after) != NULL;
}

void *onuma__handle_drop(onuma__handle_type type, const void *handle, bool *last) {
    uint64_t after;
    *last = false;
    if (((uint64_t)(uintptr_t)handle & 15) != (uint64_t)type) return NULL;
    void *object = change_slot(handle, -1, &after);
    *last = object != NULL && (after & CLAIMED) != 0;
    return object;
}

void *onuma__handle_share(onuma__handle_type type, void *object, void *owner, _Atomic(void *) *field) {
    void *seen = atomic_load_explicit(field, memory_order_acquire);
    while (seen == NULL || !onuma__handle_retain(seen)) {
        void *fresh = onuma__handle_put(type, object, owner);
        if (fresh == NULL) return NULL;
        if (atomic_compare_exchange_strong_explicit(field, &seen, fresh, memory_order_acq_rel, memory_order_acquire))
            return fresh;
        onuma__handle_remove(fresh); /* another thread's was first */
    }
    return seen;
}

/* A claimed slot has no other writer, so plain read and release store do. */
void onuma__handle_unclaim(const void *handle) {
    onuma__handle_slot *slot = onuma__handle_slot_of((uint64_t)(uintptr_t)handle);
    uint64_t state = atomic_load_explicit(&slot->state, memory_order_relaxed);
    atomic_store_explicit(&slot->state, state & ~CLAIMED, memory_order_release);
}

void onuma__handle_remove(const void *handle) {
    onuma__handle_slot *slot = onuma__handle_slot_of((uint64_t)(uintptr_t)handle);
    uint64_t state = atomic_load_explicit(&slot->state, memory_order_relaxed);
    atomic_store_explicit(&slot->state, free_state(state), memory_order_release);
}

void *onuma__handle_take_next(onuma__handle_type type, const void *owner, size_t *cursor) {
    for (; *cursor < (size_t)ONUMA__HANDLE_CHUNKS * ONUMA__HANDLE_SLOTS; ++*cursor) {
        onuma__handle_slot *chunk =
            atomic_load_explicit(&onuma__handle_chunks[*cursor / ONUMA__HANDLE_SLOTS], memory_order_acquire);
        if (chunk == NULL) return NULL; /* chunks are made in order */
        onuma__handle_slot *slot = &chunk[*cursor % ONUMA__HANDLE_SLOTS];
        uint64_t state = atomic_load_explicit(&slot->state, memory_order_acquire);
        if ((state & 15) != (uint64_t)type || (state & ONUMA__HANDLE_MIDDLE) == 0 || (state & CLAIMED) != 0 ||
            atomic_load_explicit(&slot->owner, memory_order_acquire) != owner)
            continue;
        void *object = atomic_load_explicit(&slot->object, memory_order_acquire);
        if (atomic_compare_exchange_strong_explicit(&slot->state, &state, free_state(state), memory_order_acq_rel,
                                                    memory_order_relaxed))
            return object;
    }
    return NULL;
}

onuma_result onuma__handle_refuse(onuma__handle_type type, const void *handle, const char *function,
                                  const char *parameter) {
    static const char *const names[] = {
        [ONUMA__HANDLE_RUNTIME] = "runtime",
        [ONUMA__HANDLE_DEVICE] = "device",
        [ONUMA__HANDLE_POOL] = "pool",
        [ONUMA__HANDLE_QUEUE] = "queue",
    };
    if (handle == NULL)
        return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "%s: %s is NULL; a %s is wanted", function, parameter,
                           names[type]);
    return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "%s: %s (%p) is not a live %s: it was destroyed, or never was one",
                       function, parameter, handle, names[type]);
}
