/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses: announced accesses of queues to blocks.
 *
 * A use is open from onuma_use, before its work is submitted, until it is
 * sealed: only then is there a point in the queue behind which the work is
 * done. Sealing walks no list. Every use holds its queue's batch, and
 * onuma_submitted stores the marker there once. The thread that opened a use
 * may also seal it alone, by acquiring or freeing the block (`implied`); should
 * the batch be sealed later, that marker counts, since it covers more.
 *
 * A record would collect one use a step for as long as nobody waits. So
 * adding one drops those that have passed, and on an in-order queue those that
 * the new one outlasts: at most the last writing and the last reading use
 * remain. On an unordered queue the sealed ones melt into one that waits for
 * everything submitted so far, once there are many.
 */
#include <stdlib.h>

#include "sync/internal.h"

#define ON_STACK 16u /* blocks of one onuma_use_many that need no memory for the call */
#define SUSPECTS 8u  /* hazards looked into in one call */
#define MANY 16u     /* uses of one block by one unordered queue, before they melt */

onuma__marker *onuma__use_marker(const onuma__use *use) {
    /* Acquire: pairs with the seal's release, which made the marker. */
    onuma__marker *sealed = use->batch ? atomic_load_explicit(&use->batch->marker, memory_order_acquire) : NULL;
    return sealed ? sealed : use->implied;
}

onuma__join onuma__use_imply(onuma__use *use) {
    return onuma__marker_join(use->queue, &use->implied);
}

void onuma__use_destroy(onuma__use *use, onuma__dead *dead) {
    onuma__marker_release(use->implied, dead);
    onuma__batch_release(use->batch, dead);
    onuma__queue_drop(use->queue, dead);
    free(use);
}

void onuma__batch_release(onuma__batch *batch, onuma__dead *dead) {
    if (!batch) return;
    /* As in onuma__marker_release. */
    if (atomic_fetch_sub_explicit(&batch->references, 1, memory_order_acq_rel) != 1) return;
    onuma__marker_release(atomic_load_explicit(&batch->marker, memory_order_relaxed), dead);
    free(atomic_exchange_explicit(&batch->queue->spare_batch, batch, memory_order_acq_rel));
}

onuma__batch *onuma__batch_create(onuma__queue_object *queue) {
    onuma__batch *batch = atomic_exchange_explicit(&queue->spare_batch, NULL, memory_order_acquire);
    if (!batch) batch = malloc(sizeof *batch);
    if (!batch) return NULL;
    atomic_init(&batch->references, 1);
    atomic_init(&batch->marker, NULL);
    batch->queue = queue;
    batch->next = NULL;
    return batch;
}

/* ------------------------------------------------- keeping a record's list short */

static bool has_passed(const onuma__use *use) {
    onuma__marker *marker = onuma__use_marker(use);
    return marker && onuma__marker_state(marker) == ONUMA__MARKER_PASSED;
}

/* Does waiting for a later use of `mode` on the same in-order queue include waiting for this one, whoever waits? */
static bool outlasted(const onuma__use *use, const onuma__queue_object *queue, onuma_access mode) {
    return queue->in_order && use->queue == queue && use->mode != 0 && onuma__use_marker(use) &&
           ((mode & ONUMA_ACCESS_WRITE) || !(use->mode & ONUMA_ACCESS_WRITE));
}

static void prune(onuma__record *record, const onuma__queue_object *queue, onuma_access mode, onuma__dead *dead) {
    for (onuma__use **at = &record->uses; *at;) {
        onuma__use *use = *at;
        if (use->mode != 0 && (has_passed(use) || outlasted(use, queue, mode))) {
            *at = use->next;
            onuma__use_destroy(use, dead);
        } else {
            at = &use->next;
        }
    }
}

static bool melts(const onuma__use *use, const onuma__queue_object *queue) {
    return use->queue == queue && use->mode != 0 && onuma__use_marker(use);
}

static void melt(onuma__record *record, onuma__queue_object *queue, onuma__dead *dead) {
    onuma__marker *covering;
    size_t count = 0;
    for (onuma__use *use = record->uses; use; use = use->next)
        count += melts(use, queue);
    if (count < MANY || onuma__marker_join(queue, &covering) != ONUMA__JOINED) return;
    onuma__use *kept = NULL;
    for (onuma__use **at = &record->uses; *at;) {
        onuma__use *use = *at;
        if (!melts(use, queue)) {
            at = &use->next;
        } else if (!kept) {
            kept = use;
            onuma__marker_release(kept->implied, dead);
            onuma__batch_release(kept->batch, dead);
            kept->batch = NULL;
            kept->implied = covering;
            at = &use->next;
        } else {
            kept->mode |= use->mode;
            if (kept->number < use->number) kept->number = use->number;
            *at = use->next;
            onuma__use_destroy(use, dead);
        }
    }
}

/* -------------------------------------------------------------------- announcing */

typedef struct target {
    onuma__block block;
    onuma_access mode;
    onuma__record *record;
    onuma__use *use; /* made in advance, so that nothing can fail once the first is added */
} target;

/* Another queue's access that nothing is known to order with a new one. Looked into, and told, after the locks are gone. */
typedef struct suspect {
    onuma__queue_object *queue; /* counted */
    onuma__marker *marker;      /* counted */
    const void *base;
    onuma_access mode, earlier;
    uint64_t number;
} suspect;

typedef struct suspects {
    bool wanted;
    size_t count;
    suspect list[SUSPECTS];
} suspects;

/* What is in the way of a use; told after the locks are gone. */
typedef struct obstacle {
    const onuma__device *device;
    const void *base;
    onuma_access mode, held;
} obstacle;

onuma_result onuma__sync_refuse_queue(const onuma__queue *queue, const onuma__owner *owner) {
    return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT,
                       "queue 0x%llx of device %s cannot use memory of device %s; wrap a queue of %s, or allocate from "
                       "a pool of %s",
                       (unsigned long long)queue->native, queue->device->id, owner->device->id, owner->device->id,
                       queue->device->id);
}

static onuma_result prepare(onuma__queue_object *queue, void *ptr, onuma_access mode, target *out) {
    if (mode == 0 || mode > ONUMA_ACCESS_READ_WRITE)
        return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "access mode %u: use ONUMA_ACCESS_READ, _WRITE or _READ_WRITE",
                           mode);
    onuma_result r = onuma__engine_find(ptr, &out->block);
    if (r != ONUMA_OK) return r;
    const onuma__owner *owner = out->block.owner;
    r = onuma__sync_check_queue(&queue->shared, owner);
    if (r != ONUMA_OK) return r;
    if (owner->read_only && (mode & ONUMA_ACCESS_WRITE))
        return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "block %p was imported read-only: announce ONUMA_ACCESS_READ",
                           out->block.base);
    out->use = calloc(1, sizeof *out->use);
    if (!out->use) return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for a use");
    out->mode = mode;
    out->use->mode = mode;
    out->use->thread = onuma__os_thread_get()->number;
    out->use->queue = onuma__queue_retain(queue);
    return ONUMA_OK;
}

/* All locks of the shards are held. */
static onuma_result open_records(target *targets, size_t n, obstacle *clash) {
    for (size_t i = 0; i < n; i++) {
        target *t = &targets[i];
        onuma_result r =
            onuma__record_open(onuma__shard_at(onuma__shard_index(t->block.base)), &t->block, NULL, &t->record);
        if (r != ONUMA_OK) return r;
        onuma_access held = onuma__record_held(t->record);
        if (held && onuma__access_conflicts(held, t->mode) && ONUMA__RULE(CONFLICT)) {
            clash->device = t->record->owner->device;
            clash->base = t->record->base;
            clash->mode = t->mode;
            clash->held = held;
            return ONUMA_ERROR_CONFLICT;
        }
    }
    return ONUMA_OK;
}

/* Submitted work of another queue (of an unordered one: its own, too) that conflicts and has not been seen to pass. */
static void suspect_uses(const target *t, const onuma__queue_object *queue, suspects *out) {
    for (const onuma__use *use = t->record->uses; use && out->count < SUSPECTS; use = use->next) {
        onuma__marker *marker = onuma__use_marker(use);
        if (!marker || use->mode == 0 || !onuma__access_conflicts(use->mode, t->mode)) continue;
        if ((use->queue == queue && queue->in_order) || onuma__marker_state(marker) == ONUMA__MARKER_PASSED) continue;
        out->list[out->count++] = (suspect){onuma__queue_retain(use->queue),
                                            onuma__marker_retain(marker),
                                            t->record->base,
                                            t->mode,
                                            use->mode,
                                            use->number};
    }
}

static void judge_suspects(suspects *all, onuma__queue_object *queue, onuma__dead *dead) {
    for (size_t i = 0; i < all->count; i++) {
        const suspect *s = &all->list[i];
        const onuma__queue *other = &s->queue->shared;
        if (!onuma__order_covers(queue, s->queue, s->number) &&
            onuma__marker_poll(s->marker, 0) != ONUMA__MARKER_PASSED)
            onuma__hazard(
                queue->shared.device,
                "queue 0x%llx of %s announces %s block %p while queue 0x%llx of %s is still %s it, and nothing "
                "is known to order them: see onuma_queue_wait",
                (unsigned long long)queue->shared.native, queue->shared.device->id, onuma__access_name(s->mode),
                s->base, (unsigned long long)other->native, other->device->id, onuma__access_name(s->earlier));
        onuma__marker_release(s->marker, dead);
        onuma__queue_drop(s->queue, dead);
    }
}

static void add_use(target *t, onuma__queue_object *queue, onuma__batch *batch, onuma__dead *dead) {
    onuma__record *record = t->record;
    prune(record, queue, t->mode, dead);
    if (!queue->in_order) melt(record, queue, dead);
    if (queue->in_order && t->block.tag == queue->shared.tag) record->settled = true;
    for (onuma__use *use = record->uses; use; use = use->next)
        if (use->batch == batch && use->thread == t->use->thread && !use->implied) {
            use->mode |= t->mode;
            return;
        }
    atomic_fetch_add_explicit(&batch->references, 1, memory_order_relaxed);
    t->use->batch = batch;
    t->use->next = record->uses;
    record->uses = t->use;
    t->use = NULL;
}

/* The queue's open batch, counted, and its number; *fresh becomes it if there is none. NULL: the queue is released. */
static onuma__batch *join_batch(onuma__queue_object *queue, onuma__batch **fresh, uint64_t *number) {
    onuma__batch *batch = NULL;
    onuma__os_lock_acquire(&queue->lock);
    if (!queue->released) {
        if (!queue->batches) {
            queue->batches = batch = *fresh;
            *fresh = NULL;
            atomic_store_explicit(&batch->references, 2, memory_order_relaxed); /* nobody else has it yet */
        } else {
            batch = queue->batches;
            atomic_fetch_add_explicit(&batch->references, 1, memory_order_relaxed);
        }
        *number = queue->batch_count + 1;
    }
    onuma__os_lock_release(&queue->lock);
    return batch;
}

/* In rising order, as everyone who takes several. */
static void lock_shards(uint64_t mask) {
    for (; mask != 0; mask &= mask - 1)
        onuma__os_lock_acquire(&onuma__shard_at((size_t)__builtin_ctzll(mask))->lock);
}

static void unlock_shards(uint64_t mask) {
    for (; mask != 0; mask &= mask - 1)
        onuma__os_lock_release(&onuma__shard_at((size_t)__builtin_ctzll(mask))->lock);
}

static onuma_result announce(onuma__queue_object *queue, target *targets, size_t n, onuma__batch **fresh,
                             obstacle *clash, suspects *doubtful, onuma__dead *dead) {
    uint64_t mask = 0, number = 0;
    for (size_t i = 0; i < n; i++)
        mask |= UINT64_C(1) << onuma__shard_index(targets[i].block.base);
    lock_shards(mask);
    onuma_result r = open_records(targets, n, clash);
    if (r == ONUMA_OK) {
        onuma__batch *batch = join_batch(queue, fresh, &number);
        if (!batch)
            r = onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "queue 0x%llx of %s is released",
                            (unsigned long long)queue->shared.native, queue->shared.device->id);
        for (size_t i = 0; batch && i < n; i++) {
            if (doubtful->wanted) suspect_uses(&targets[i], queue, doubtful);
            targets[i].use->number = number;
            add_use(&targets[i], queue, batch, dead);
        }
        onuma__batch_release(batch, dead);
    }
    unlock_shards(mask);
    return r;
}

/*
 * The common case of a loop: the block has a record, and on it a sealed use of this in-order queue, which waiting for the
 * new one includes. That use becomes the new one, with nothing to allocate. The shard is locked. NULL: none such, or
 * there is an open one, of which the new one may have to become a part.
 */
static onuma__use *find_outlasted(const onuma__record *record, const onuma__queue_object *queue, onuma_access mode) {
    onuma__use *found = NULL;
    for (onuma__use *use = record->uses; use; use = use->next) {
        if (use->queue == queue && use->mode != 0 && !onuma__use_marker(use)) return NULL;
        if (!found && outlasted(use, queue, mode)) found = use;
    }
    return found;
}

static bool may_use(const onuma__record *record, const onuma__queue_object *queue, onuma_access mode) {
    const onuma__owner *owner = record->owner;
    const onuma_access held = onuma__record_held(record);
    return onuma__sync_reaches(&queue->shared, owner) && (!owner->read_only || mode == ONUMA_ACCESS_READ) &&
           !(held && onuma__access_conflicts(held, mode));
}

/*
 * A batch for the use's next turn: its own of the last one, if that has come to be nobody else's, else another; and the
 * marker that sealed its own, which then has to be given back. NULL when memory is out.
 */
static onuma__batch *batch_again(onuma__use *use, onuma__marker **seal) {
    onuma__batch *batch = use->batch;
    *seal = NULL;
    /* Acquire: as the last to let go of it would. */
    if (!batch || atomic_load_explicit(&batch->references, memory_order_acquire) != 1)
        return onuma__batch_create(use->queue);
    *seal = atomic_load_explicit(&batch->marker, memory_order_relaxed);
    batch->next = NULL;
    atomic_store_explicit(&batch->marker, NULL, memory_order_relaxed);
    return batch;
}

static void renew_use(onuma__record *record, onuma__use *use, onuma__batch *batch, onuma_access mode, uint64_t number,
                      onuma__dead *dead) {
    onuma__marker_release(use->implied, dead);
    use->implied = NULL;
    use->batch = batch;
    use->mode = mode;
    use->thread = onuma__os_thread_get()->number;
    use->number = number;
    if (use->next || record->uses != use) prune(record, use->queue, mode, dead);
}

/* false: nothing happened, take the long way. */
static bool use_at_once(onuma__queue_object *queue, void *ptr, onuma_access mode, onuma__dead *dead) {
    if (!queue->in_order || mode - 1u >= ONUMA_ACCESS_READ_WRITE) return false;
    onuma__shard *shard = onuma__shard_lock(ptr);
    onuma__record *record = onuma__record_find(shard, ptr);
    onuma__use *use = record && may_use(record, queue, mode) ? find_outlasted(record, queue, mode) : NULL;
    uint64_t number;
    onuma__marker *seal = NULL;
    onuma__batch *batch = NULL, *fresh = use ? batch_again(use, &seal) : NULL;
    const bool same = fresh && fresh == use->batch;
    if (fresh) batch = join_batch(queue, &fresh, &number);
    if (batch) {
        if (!same) onuma__batch_release(use->batch, dead);
        renew_use(record, use, batch, mode, number, dead);
        onuma__marker_release(seal, dead);
    } else if (same) { /* the queue is released: all is as it was */
        atomic_store_explicit(&use->batch->marker, seal, memory_order_relaxed);
        fresh = NULL;
    }
    onuma__shard_unlock(shard);
    onuma__batch_release(fresh, dead);
    return batch != NULL;
}

static onuma_result report_clash(const onuma__queue_object *queue, const obstacle *clash) {
    onuma__hazard(clash->device, "queue 0x%llx of %s announces %s block %p while the CPU holds it for %s",
                  (unsigned long long)queue->shared.native, queue->shared.device->id, onuma__access_name(clash->mode),
                  clash->base, onuma__access_name(clash->held));
    return onuma__fail(ONUMA_ERROR_CONFLICT,
                       "the CPU holds block %p for %s: call onuma_host_release before a queue's %s", clash->base,
                       onuma__access_name(clash->held), onuma__access_name(clash->mode));
}

static onuma_result use_slowly(onuma__queue *shared, size_t n, void *const *ptrs, const onuma_access *modes) {
    onuma__queue_object *queue = onuma__queue_of(shared);
    target few[ON_STACK], *targets = few;
    onuma__batch *fresh = NULL;
    onuma__dead dead = {0};
    obstacle clash = {0};
    suspects doubtful = {.wanted = onuma__hazards_wanted(shared->device)};
    size_t made = 0;
    onuma_result r = ONUMA_OK;
    if (n == 0) return ONUMA_OK;
    if (n > ON_STACK) targets = n <= SIZE_MAX / sizeof *targets ? malloc(n * sizeof *targets) : NULL;
    if (!targets) return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory to announce %zu uses at once", n);
    fresh = onuma__batch_create(queue);
    if (!fresh) {
        r = onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for a batch of uses");
        goto cleanup;
    }
    for (; made < n; made++) {
        targets[made].use = NULL;
        r = prepare(queue, ptrs[made], modes[made], &targets[made]);
        if (r != ONUMA_OK) goto cleanup;
    }
    r = announce(queue, targets, n, &fresh, &clash, &doubtful, &dead);
    judge_suspects(&doubtful, queue, &dead);
    if (r == ONUMA_ERROR_CONFLICT) r = report_clash(queue, &clash);

cleanup:
    for (size_t i = 0; i < made; i++)
        if (targets[i].use) onuma__use_destroy(targets[i].use, &dead);
    onuma__batch_release(fresh, &dead);
    onuma__dead_bury(&dead);
    if (targets != few) free(targets);
    return r;
}

onuma_result onuma__sync_use_many(onuma__queue *shared, size_t n, void *const *ptrs, const onuma_access *modes) {
    onuma__queue_object *queue = onuma__queue_of(shared);
    if (n == 1 && !onuma__hazards_wanted(shared->device)) {
        onuma__dead dead = {0};
        const bool done = use_at_once(queue, ptrs[0], modes[0], &dead);
        onuma__dead_bury(&dead);
        if (ONUMA__LIKELY(done)) return ONUMA_OK;
    }
    return use_slowly(shared, n, ptrs, modes);
}

onuma_result onuma__sync_bind_prepare(onuma__queue *shared, void *base, onuma__binding *out) {
    onuma__queue_object *queue = onuma__queue_of(shared);
    onuma__block block;
    *out = (onuma__binding){0};
    onuma_result r = onuma__engine_find(base, &block);
    if (r != ONUMA_OK || block.tag == shared->tag) return r; /* the tag says it */
    out->use = calloc(1, sizeof *out->use);
    out->record = onuma__record_create(&block, NULL);
    if (out->use) out->use->queue = onuma__queue_retain(queue);
    onuma__shard *shard = onuma__shard_lock(base);
    bool room = onuma__shard_room(shard);
    onuma__shard_unlock(shard);
    if (out->use && out->record && room) return ONUMA_OK;
    onuma__sync_bind_cancel(out);
    return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for a use");
}

onuma_result onuma__sync_bind_finish(onuma__binding *binding, void *base) {
    onuma__block block;
    onuma__record *record;
    if (!binding->use) return ONUMA_OK;
    onuma_result r = onuma__engine_find(base, &block);
    if (r != ONUMA_OK) return r;
    onuma__shard *shard = onuma__shard_lock(block.base);
    r = onuma__record_open(shard, &block, &binding->record, &record);
    if (r == ONUMA_OK) {
        binding->use->next = record->uses;
        record->uses = binding->use;
        binding->use = NULL;
    }
    onuma__shard_unlock(shard);
    return r;
}

void onuma__sync_bind_cancel(onuma__binding *binding) {
    onuma__dead dead = {0};
    if (binding->use) onuma__use_destroy(binding->use, &dead);
    if (binding->record) onuma__record_destroy(binding->record, &dead);
    onuma__dead_bury(&dead);
    *binding = (onuma__binding){0};
}

onuma_result onuma__sync_bind(onuma__queue *queue, void *base) {
    onuma__binding binding;
    onuma_result r = onuma__sync_bind_prepare(queue, base, &binding);
    if (r == ONUMA_OK) r = onuma__sync_bind_finish(&binding, base);
    onuma__sync_bind_cancel(&binding);
    return r;
}

/* ----------------------------------------------------------------------- sealing */

/* The marker for a seal now. *open: the queue's open marker, taken off it; NULL if there was none. */
static onuma_result mark(onuma__queue_object *queue, const onuma_native_event *done, onuma__marker *open,
                         onuma__marker **out) {
    *out = open;
    if (done && ONUMA__RULE(EVENT)) return onuma__marker_wrap(queue, done, out);
    if (open) return onuma__marker_record_apart(open);
    *out = onuma__marker_create(queue);
    if (*out) return onuma__marker_record_new(*out);
    return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for a marker");
}

/* Batches that could not be sealed are open as before, with what was opened meanwhile. NULL; or, since the queue was
 * released meanwhile and nobody will seal them later, its last marker, counted. */
static onuma__marker *reopen(onuma__queue_object *queue, onuma__batch **batches) {
    onuma__marker *last = NULL;
    onuma__os_lock_acquire(&queue->lock);
    if (!queue->released) {
        onuma__batch **end = batches;
        while (*end)
            end = &(*end)->next;
        *end = queue->batches;
        queue->batches = *batches;
        *batches = NULL;
    } else if (queue->last) {
        last = onuma__marker_retain(queue->last);
    }
    onuma__os_lock_release(&queue->lock);
    return last;
}

/* Takes the caller's reference to the marker. */
static void seal(onuma__batch *batches, onuma__marker *marker, onuma__dead *dead) {
    while (batches) {
        onuma__batch *batch = batches;
        batches = batch->next;
        onuma__marker *its = marker && batches ? onuma__marker_retain(marker) : marker; /* the last has the caller's */
        /* Without a marker it stays open for good, which is safe: no memory to mark a queue that has gone meanwhile. */
        if (its) atomic_store_explicit(&batch->marker, its, memory_order_release);
        if (!batches) marker = NULL;
        onuma__batch_release(batch, dead);
    }
    onuma__marker_release(marker, dead);
}

onuma_result onuma__sync_submitted(onuma__queue *shared, const onuma_native_event *done) {
    onuma__queue_object *queue = onuma__queue_of(shared);
    onuma__marker *marker = NULL, *open = NULL;
    onuma__dead dead = {0};
    if (done && done->api != shared->api)
        return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "the event is of api %u, the queue of api %u", done->api,
                           shared->api);
    onuma__os_lock_acquire(&queue->lock);
    onuma__batch *taken = queue->batches;
    queue->batches = NULL;
    queue->batch_count += taken != NULL;
    if (taken && !done) {
        open = queue->open;
        queue->open = NULL;
    }
    onuma__os_lock_release(&queue->lock);
    if (!taken) return ONUMA_OK;

    onuma_result r = mark(queue, done, open, &marker);
    if (r != ONUMA_OK) {
        onuma__marker_release(marker, &dead);
        marker = reopen(queue, &taken);
    }
    seal(taken, marker, &dead);
    onuma__dead_bury(&dead);
    onuma__sync_tidy();
    return r;
}
