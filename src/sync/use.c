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
    free(batch);
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

/* What is in the way of a use; told after the locks are gone. */
typedef struct obstacle {
    const onuma__device *device;
    const void *base;
    onuma_access mode, held;
} obstacle;

static onuma_result prepare(onuma__queue_object *queue, void *ptr, onuma_access mode, target *out) {
    if (mode == 0 || mode > ONUMA_ACCESS_READ_WRITE)
        return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "access mode %u: use ONUMA_ACCESS_READ, _WRITE or _READ_WRITE",
                           mode);
    onuma_result r = onuma__engine_find(ptr, &out->block);
    if (r != ONUMA_OK) return r;
    const onuma__owner *owner = out->block.owner;
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
        onuma_result r = onuma__record_open(onuma__shard_at(onuma__shard_index(t->block.base)), &t->block, &t->record);
        if (r != ONUMA_OK) return r;
        onuma_access held = onuma__record_held(t->record);
        if (held && onuma__access_conflicts(held, t->mode)) {
            clash->device = t->record->owner->device;
            clash->base = t->record->base;
            clash->mode = t->mode;
            clash->held = held;
            return ONUMA_ERROR_CONFLICT;
        }
    }
    return ONUMA_OK;
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

/* The queue's open batch, counted; *fresh becomes it if there is none. NULL: the queue is released. */
static onuma__batch *join_batch(onuma__queue_object *queue, onuma__batch **fresh) {
    onuma__batch *batch = NULL;
    onuma__os_lock_acquire(&queue->lock);
    if (!queue->released) {
        if (!queue->batches) {
            queue->batches = *fresh;
            *fresh = NULL;
        }
        batch = queue->batches;
        atomic_fetch_add_explicit(&batch->references, 1, memory_order_relaxed);
    }
    onuma__os_lock_release(&queue->lock);
    return batch;
}

static onuma_result announce(onuma__queue_object *queue, target *targets, size_t n, onuma__batch **fresh,
                             obstacle *clash, onuma__dead *dead) {
    uint64_t mask = 0;
    for (size_t i = 0; i < n; i++)
        mask |= UINT64_C(1) << onuma__shard_index(targets[i].block.base);
    for (size_t s = 0; s < ONUMA__SHARDS; s++) /* in rising order, as everyone who takes several */
        if (mask >> s & 1) onuma__os_lock_acquire(&onuma__shard_at(s)->lock);

    onuma_result r = open_records(targets, n, clash);
    if (r == ONUMA_OK) {
        onuma__batch *batch = join_batch(queue, fresh);
        if (!batch)
            r = onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "queue 0x%llx of %s is released",
                            (unsigned long long)queue->shared.native, queue->shared.device->id);
        for (size_t i = 0; batch && i < n; i++)
            add_use(&targets[i], queue, batch, dead);
        onuma__batch_release(batch, dead);
    }
    for (size_t s = ONUMA__SHARDS; s-- > 0;)
        if (mask >> s & 1) onuma__os_lock_release(&onuma__shard_at(s)->lock);
    return r;
}

static onuma_result report_clash(const onuma__queue_object *queue, const obstacle *clash) {
    onuma__hazard(clash->device, "queue 0x%llx of %s announces %s block %p while the CPU holds it for %s",
                  (unsigned long long)queue->shared.native, queue->shared.device->id, onuma__access_name(clash->mode),
                  clash->base, onuma__access_name(clash->held));
    return onuma__fail(ONUMA_ERROR_CONFLICT,
                       "the CPU holds block %p for %s: call onuma_host_release before a queue's %s", clash->base,
                       onuma__access_name(clash->held), onuma__access_name(clash->mode));
}

onuma_result onuma__sync_use_many(onuma__queue *shared, size_t n, void *const *ptrs, const onuma_access *modes) {
    onuma__queue_object *queue = onuma__queue_of(shared);
    target few[ON_STACK], *targets = few;
    onuma__batch *fresh = NULL;
    onuma__dead dead = {0};
    obstacle clash = {0};
    size_t made = 0;
    onuma_result r = ONUMA_OK;
    if (n == 0) return ONUMA_OK;
    if (n > ON_STACK) targets = n <= SIZE_MAX / sizeof *targets ? malloc(n * sizeof *targets) : NULL;
    if (!targets) return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory to announce %zu uses at once", n);
    fresh = calloc(1, sizeof *fresh);
    if (!fresh) {
        r = onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for a batch of uses");
        goto cleanup;
    }
    atomic_init(&fresh->references, 1);
    for (; made < n; made++) {
        targets[made].use = NULL;
        r = prepare(queue, ptrs[made], modes[made], &targets[made]);
        if (r != ONUMA_OK) goto cleanup;
    }
    r = announce(queue, targets, n, &fresh, &clash, &dead);
    if (r == ONUMA_ERROR_CONFLICT) r = report_clash(queue, &clash);

cleanup:
    for (size_t i = 0; i < made; i++)
        if (targets[i].use) onuma__use_destroy(targets[i].use, &dead);
    onuma__batch_release(fresh, &dead);
    onuma__dead_bury(&dead);
    if (targets != few) free(targets);
    return r;
}

onuma_result onuma__sync_bind(onuma__queue *shared, void *base) {
    onuma__queue_object *queue = onuma__queue_of(shared);
    onuma__block block;
    onuma__record *record;
    onuma_result r = onuma__engine_find(base, &block);
    if (r != ONUMA_OK || block.tag == shared->tag) return r; /* the tag says it */
    onuma__use *use = calloc(1, sizeof *use);
    if (!use) return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for a use");
    use->queue = onuma__queue_retain(queue);
    onuma__shard *shard = onuma__shard_lock(block.base);
    r = onuma__record_open(shard, &block, &record);
    if (r == ONUMA_OK) {
        use->next = record->uses;
        record->uses = use;
        use = NULL;
    }
    onuma__shard_unlock(shard);
    if (use) {
        onuma__dead dead = {0};
        onuma__use_destroy(use, &dead);
        onuma__dead_bury(&dead);
    }
    return r;
}

/* ----------------------------------------------------------------------- sealing */

/* The marker for a seal now. */
static onuma_result mark(onuma__queue_object *queue, const onuma_native_event *done, onuma__marker **out) {
    if (done) return onuma__marker_wrap(queue, done, out);
    switch (onuma__marker_join(queue, out)) {
    case ONUMA__JOINED:
        return onuma__marker_record(*out);
    case ONUMA__ALL_PASSED:
        return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "queue 0x%llx of %s is released",
                           (unsigned long long)queue->shared.native, queue->shared.device->id);
    default:
        return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for a marker");
    }
}

/* Batches that could not be sealed are open as before, with what was opened meanwhile. false: the queue is released. */
static bool reopen(onuma__queue_object *queue, onuma__batch *batches) {
    onuma__os_lock_acquire(&queue->lock);
    bool live = !queue->released;
    if (live) {
        onuma__batch **end = &batches;
        while (*end)
            end = &(*end)->next;
        *end = queue->batches;
        queue->batches = batches;
    }
    onuma__os_lock_release(&queue->lock);
    return live;
}

onuma_result onuma__sync_submitted(onuma__queue *shared, const onuma_native_event *done) {
    onuma__queue_object *queue = onuma__queue_of(shared);
    onuma__marker *marker = NULL, *last = NULL;
    onuma__dead dead = {0};
    if (done && done->api != shared->api)
        return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "the event is of api %u, the queue of api %u", done->api,
                           shared->api);
    onuma__os_lock_acquire(&queue->lock);
    onuma__batch *taken = queue->batches;
    queue->batches = NULL;
    if (taken && queue->last) last = onuma__marker_retain(queue->last);
    onuma__os_lock_release(&queue->lock);
    if (!taken) return ONUMA_OK;

    onuma_result r = mark(queue, done, &marker);
    if (r != ONUMA_OK) {
        onuma__marker_release(marker, &dead);
        marker = NULL;
        if (!reopen(queue, taken)) marker = last; /* released meanwhile: nobody will seal it later */
        if (marker) last = NULL;
    }
    while (marker && taken) {
        onuma__batch *batch = taken;
        taken = batch->next;
        atomic_store_explicit(&batch->marker, onuma__marker_retain(marker), memory_order_release);
        onuma__batch_release(batch, &dead);
    }
    onuma__marker_release(marker, &dead);
    onuma__marker_release(last, &dead);
    onuma__dead_bury(&dead);
    onuma__sync_tidy();
    return r;
}
