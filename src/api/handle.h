/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the user holds instead of pointers.
 *
 * A handle is a token: generation, index and type packed into a pointer value.
 * The table maps it to the object, so a handle that was destroyed, is of
 * another type, or never was one is told apart without touching memory that
 * may be gone. No pair of index and generation is ever used twice.
 *
 *     handle  generation:40 | index:20      | type:4
 *     state   generation:40 | references:20 | type:4      (the slot's one word)
 *
 * The two words differ only in the middle, so one exclusive-or compares
 * generation and type at once. Every change of a slot is one compare-exchange
 * of its state, which makes the table lock-free: look-ups are on the path of
 * every allocation, and a child made by fork() cannot find a lock held.
 *
 *     free       no references, type 0
 *     filling    no references, type 15: one thread is writing object and owner
 *     live       one reference or more
 *     claimed    live, and the highest reference bit is set: one thread is about
 *                to destroy the object; others may still look it up
 */
#ifndef ONUMA_API_HANDLE_H
#define ONUMA_API_HANDLE_H

#include <stdatomic.h>

#include "base/result.h"

typedef enum onuma__handle_type {
    ONUMA__HANDLE_RUNTIME = 1,
    ONUMA__HANDLE_DEVICE,
    ONUMA__HANDLE_POOL,
    ONUMA__HANDLE_QUEUE
} onuma__handle_type;

enum { ONUMA__HANDLE_SLOTS = 1024, ONUMA__HANDLE_CHUNKS = 1024 };
#define ONUMA__HANDLE_MIDDLE (UINT64_C(0xFFFFF) << 4)

typedef struct onuma__handle_slot {
    _Atomic uint64_t state;
    /* Written while filling and published by the release of `state`. Atomic because a look-up of a stale handle may
     * read them while the slot is filled anew; it then finds that the state changed and drops what it read. */
    _Atomic(void *) object;
    _Atomic(void *) owner;
} onuma__handle_slot;

/* Made on demand, zeroed, never freed. */
extern _Atomic(onuma__handle_slot *) onuma__handle_chunks[ONUMA__HANDLE_CHUNKS];

_Static_assert(sizeof(void *) == 8, "handles pack 64 bits into a pointer");

static inline onuma__handle_slot *onuma__handle_slot_of(uint64_t handle) {
    uint64_t index = (handle & ONUMA__HANDLE_MIDDLE) >> 4;
    /* acquire: pairs with the release that published the zeroed chunk. */
    onuma__handle_slot *chunk =
        atomic_load_explicit(&onuma__handle_chunks[index / ONUMA__HANDLE_SLOTS], memory_order_acquire);
    return chunk == NULL ? NULL : &chunk[index % ONUMA__HANDLE_SLOTS];
}

/* Whether a slot in this state is what the handle means. */
static inline bool onuma__handle_matches(uint64_t handle, uint64_t state) {
    return ((handle ^ state) & ~ONUMA__HANDLE_MIDDLE) == 0 && (state & ONUMA__HANDLE_MIDDLE) != 0;
}

/* The live object of that type, or NULL. Any value may be asked. */
static inline void *onuma__handle_get(onuma__handle_type type, const void *handle) {
    uint64_t token = (uint64_t)(uintptr_t)handle;
    onuma__handle_slot *slot = onuma__handle_slot_of(token);
    if (ONUMA__UNLIKELY(slot == NULL) || ONUMA__UNLIKELY((token & 15) != (uint64_t)type)) return NULL;
    /* acquire on the state: sees the object that was published with it. acquire on the object: if it is a later
     * one's, the second look at the state sees that too. */
    if (ONUMA__UNLIKELY(!onuma__handle_matches(token, atomic_load_explicit(&slot->state, memory_order_acquire))))
        return NULL;
    void *object = atomic_load_explicit(&slot->object, memory_order_acquire);
    if (ONUMA__UNLIKELY(!onuma__handle_matches(token, atomic_load_explicit(&slot->state, memory_order_relaxed))))
        return NULL;
    return object;
}

/* What `put` was given as owner; NULL if the handle is not live. */
void *onuma__handle_owner(const void *handle);

/* A handle for the object, with one reference. NULL and a detail when there is no room. */
void *onuma__handle_put(onuma__handle_type type, void *object, void *owner);

/* One reference more; false if the handle is not live, or claimed. */
bool onuma__handle_retain(const void *handle);

/*
 * Let go of one reference: the object, or NULL if the handle is not live or someone else holds its last reference
 * already. *last: it was the last, and the caller is now the one who destroys: the handle is claimed until the caller
 * ends that with unclaim or remove. The others' look-ups go on finding the object meanwhile, as for a call that is
 * refused with BUSY it must be.
 */
void *onuma__handle_drop(onuma__handle_type type, const void *handle, bool *last);
void onuma__handle_unclaim(const void *handle); /* the object stays, with the reference */
void onuma__handle_remove(const void *handle);  /* the handle is dead */

/*
 * The one handle of an object that several may ask for at once: `field`, its member, gets it. One reference more if
 * there is one, else a new one. NULL and a detail when there is no room.
 */
void *onuma__handle_share(onuma__handle_type type, void *object, void *owner, _Atomic(void *) *field);

/* Kill the next live handle of this type and owner from *cursor (at first 0) on, references or not. NULL: no more. */
void *onuma__handle_take_next(onuma__handle_type type, const void *owner, size_t *cursor);

/* Record that `parameter` of `function` is no live object of this type; returns INVALID_ARGUMENT. */
onuma_result onuma__handle_refuse(onuma__handle_type type, const void *handle, const char *function,
                                  const char *parameter) ONUMA__COLD;

#endif
