/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of side records: a hash over block bases, in shards with a lock
 * each, so that threads at work on different blocks rarely meet.
 *
 * A record and its block's special mark are made together under the shard's
 * lock, and a free of a special block comes to the same lock before the block
 * can be reused. So a record is either seen by the free, or was refused
 * because the block was already dead; a new block never inherits an old record.
 */
#include <stdlib.h>

#include "sync/internal.h"

static onuma__shard shards[ONUMA__SHARDS];

/* Bases share their low bits (alignment) and often their high ones: mix all. */
static uint64_t mix(const void *base) {
    uint64_t x = (uint64_t)(uintptr_t)base;
    x ^= x >> 32;
    x *= 0x9e3779b97f4a7c15u;
    return x ^ (x >> 29);
}

size_t onuma__shard_index(const void *base) {
    return (size_t)(mix(base) % ONUMA__SHARDS);
}

onuma__shard *onuma__shard_at(size_t index) {
    return &shards[index];
}

static onuma__record **bucket(const onuma__shard *shard, const void *base) {
    return &shard->buckets[(mix(base) / ONUMA__SHARDS) & (shard->bucket_count - 1)];
}

onuma__record *onuma__record_find(const onuma__shard *shard, const void *base) {
    if (shard->count == 0) return NULL;
    onuma__record *record = *bucket(shard, base);
    while (record && record->base != base)
        record = record->next;
    return record;
}

/* Twice the buckets; when memory is out the chains just grow longer, but for the first ones. */
static bool grow(onuma__shard *shard) {
    /* Without the lock, which others may be trying meanwhile. */
    onuma__shard wider = {.bucket_count = shard->bucket_count ? shard->bucket_count * 2 : 16};
    wider.buckets = calloc(wider.bucket_count, sizeof *wider.buckets);
    if (!wider.buckets) return shard->bucket_count != 0;
    for (size_t i = 0; i < shard->bucket_count; i++)
        for (onuma__record *record = shard->buckets[i], *next; record; record = next) {
            onuma__record **to = bucket(&wider, record->base);
            next = record->next;
            record->next = *to;
            *to = record;
        }
    free(shard->buckets);
    shard->buckets = wider.buckets;
    shard->bucket_count = wider.bucket_count;
    return true;
}

static void fill(onuma__record *record, const onuma__block *block) {
    record->base = block->base;
    record->size = block->size;
    record->offset = block->offset;
    record->engine = block->engine;
    record->owner = block->owner;
    record->segment = record->owner->segment ? record->owner->segment(block->span) : NULL;
    if (block->tag == 0 || (!block->recycled && ONUMA__RULE(FRESH))) record->settled = true;
}

onuma__record *onuma__record_create(const onuma__block *block, onuma__record *memory) {
    onuma__record *record = memory ? memory : calloc(1, sizeof *record);
    if (!record) return NULL;
    record->generation = onuma__os_process_generation();
    fill(record, block);
    return record;
}

bool onuma__shard_room(onuma__shard *shard) {
    return shard->count < shard->bucket_count || grow(shard);
}

onuma_result onuma__record_open(onuma__shard *shard, const onuma__block *block, onuma__record **memory,
                                onuma__record **out) {
    onuma__record *record = onuma__record_find(shard, block->base);
    if (record) {
        record->size = block->size; /* it may have been resized in place */
        *out = record;
        return ONUMA_OK;
    }
    if (!onuma__shard_room(shard))
        return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for the table of side records");
    record = memory ? *memory : calloc(1, sizeof *record);
    if (!record) return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for a side record");
    onuma_result r = onuma__engine_set_special(block->base, true);
    /* What was found before may be another, older block of the same address; while it is special it cannot change. */
    onuma__block now;
    if (r == ONUMA_OK) r = onuma__engine_find(block->base, &now);
    if (r == ONUMA_OK && now.base != block->base)
        r = onuma__fail(ONUMA_ERROR_INVALID_POINTER, "block %p was freed by another thread meanwhile", block->base);
    if (r != ONUMA_OK) {
        if (!memory) free(record);
        return r;
    }
    if (memory) *memory = NULL;
    record->generation = onuma__os_process_generation();
    fill(record, &now);
    onuma__record **to = bucket(shard, record->base);
    record->next = *to;
    *to = record;
    shard->count++;
    *out = record;
    return ONUMA_OK;
}

static onuma__record *unlink_at(onuma__shard *shard, onuma__record **at) {
    onuma__record *record = *at;
    *at = record->next;
    record->next = NULL;
    shard->count--;
    return record;
}

onuma__record *onuma__record_remove(onuma__shard *shard, const void *base) {
    if (shard->count == 0) return NULL;
    onuma__record **at = bucket(shard, base);
    while (*at && (*at)->base != base)
        at = &(*at)->next;
    return *at ? unlink_at(shard, at) : NULL;
}

onuma__record *onuma__records_detach(const onuma__engine *engine, const onuma__device *device) {
    onuma__record *list = NULL;
    for (size_t i = 0; i < ONUMA__SHARDS; i++) {
        onuma__shard *shard = &shards[i];
        onuma__os_lock_acquire(&shard->lock);
        for (size_t b = 0; b < shard->bucket_count; b++)
            for (onuma__record **at = &shard->buckets[b]; *at;) {
                if ((*at)->engine != engine || (!engine && (*at)->owner->device != device)) {
                    at = &(*at)->next;
                    continue;
                }
                onuma__record *record = unlink_at(shard, at);
                record->orphan = true;
                record->next = list;
                list = record;
            }
        onuma__os_lock_release(&shard->lock);
    }
    return list;
}

static void prune(onuma__record *record, const onuma__device *device, onuma__dead *dead) {
    for (onuma__use **at = &record->uses; *at;) {
        onuma__use *use = *at;
        onuma__marker *marker = use->queue->shared.device == device ? onuma__use_marker(use) : NULL;
        if (marker && onuma__marker_state(marker) == ONUMA__MARKER_PASSED) {
            *at = use->next;
            onuma__use_destroy(use, dead);
        } else {
            at = &use->next;
        }
    }
}

void onuma__records_prune(const onuma__device *device) {
    for (size_t i = 0; i < ONUMA__SHARDS; i++) {
        onuma__dead dead = {0};
        onuma__shard *shard = &shards[i];
        onuma__os_lock_acquire(&shard->lock);
        for (size_t b = 0; b < shard->bucket_count; b++)
            for (onuma__record *record = shard->buckets[b]; record; record = record->next)
                prune(record, device, &dead);
        onuma__os_lock_release(&shard->lock);
        onuma__dead_bury(&dead);
    }
}

onuma_access onuma__record_held(const onuma__record *record) {
    onuma_access held = 0;
    for (onuma_access mode = ONUMA_ACCESS_READ; mode <= ONUMA_ACCESS_READ_WRITE; mode++)
        if (record->holds[mode]) held |= mode;
    return held;
}

onuma_result onuma__record_map(const onuma__record *record, uint64_t view, onuma_access mode) {
    onuma__device *device = record->owner->device;
    onuma_backend_device *backend = atomic_load_explicit(&device->backend, memory_order_acquire);
    return onuma__device_note(
        device, device->ops->host_map(backend, record->segment, view, record->offset, record->size, mode));
}

onuma_result onuma__record_unmap(const onuma__record *record, uint64_t view, onuma_access mode) {
    onuma__device *device = record->owner->device;
    onuma_backend_device *backend = atomic_load_explicit(&device->backend, memory_order_acquire);
    return onuma__device_note(
        device, device->ops->host_unmap(backend, record->segment, view, record->offset, record->size, mode));
}

void onuma__record_destroy(onuma__record *record, onuma__dead *dead) {
    while (record->uses) {
        onuma__use *use = record->uses;
        record->uses = use->next;
        onuma__use_destroy(use, dead);
    }
    while (record->views) {
        onuma__block_view *view = record->views;
        record->views = view->next;
        free(view);
    }
    for (size_t i = 0; i < 2; i++) {
        onuma__marker_release(record->need[i].marker, dead);
        onuma__queue_drop(record->need[i].queue, dead);
    }
    free(record);
}

void onuma__shards_fork(onuma__fork_step step) {
    for (size_t i = 0; i < ONUMA__SHARDS; i++) {
        if (step == ONUMA__FORK_BEFORE)
            onuma__os_lock_acquire(&shards[i].lock);
        else
            onuma__os_lock_release(&shards[i].lock);
    }
}
