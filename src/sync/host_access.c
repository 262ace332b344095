/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU's turn: acquire and release of a block.
 *
 * Holds are counted per block and mode. The count goes up before memory is
 * mapped and down after it is unmapped, so that no use slips in between; any
 * use that conflicts is refused meanwhile, and host threads never exclude each
 * other.
 *
 * Where memory is not coherent a block is mapped as a whole, for what all its
 * holders together want: by the first, wider by one who wants more, narrower
 * when the last writer leaves (queues may then read), and unmapped by the last.
 * One thread at a time changes that (`mapping`), in the driver, with the record
 * pinned; others that need it changed wait for it.
 *
 * Between two modes memory is unmapped, and the driver may then refuse to map
 * it. What keeps that harmless to those who hold it already: while anybody
 * holds it for writing it is mapped for writing, which covers reading, so it
 * never changes under a writer, whose bytes would be lost. It does change under
 * readers; but no device writes to what the CPU holds, so what they have mapped
 * once stays true. When the map fails
 *   - that a writer wanted, it alone is refused, and it was to be the first;
 *   - after the last writer, its bytes are with the device already: it is done.
 * Readers are then at memory that is not mapped; the next to come maps it.
 *
 * The calling thread's own open uses are sealed by its acquire, for good: after
 * a TIMEOUT too it may submit nothing more under them, for they may be gone.
 */
#include <stdlib.h>

#include "sync/internal.h"

#define BLOCKERS 16u /* markers waited for at once; the rest in the next round */

typedef struct span {
    onuma__block block;
    const onuma__owner *owner;
} span;

static onuma_result find_span(void *ptr, size_t size, onuma_access mode, span *out) {
    if (mode == 0 || mode > ONUMA_ACCESS_READ_WRITE)
        return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "access mode %u: use ONUMA_ACCESS_READ, _WRITE or _READ_WRITE",
                           mode);
    onuma_result r = onuma__engine_find(ptr, &out->block);
    if (r != ONUMA_OK) return r;
    const onuma__block *block = &out->block;
    out->owner = block->owner;
    size_t within = (size_t)((uintptr_t)ptr - (uintptr_t)block->base);
    if (size > block->size - within)
        return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT,
                           "%zu bytes at %p end beyond their block, which has %zu bytes at %p", size, ptr, block->size,
                           block->base);
    if (out->owner->read_only && (mode & ONUMA_ACCESS_WRITE))
        return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT,
                           "block %p was imported read-only: acquire it with ONUMA_ACCESS_READ", block->base);
    return ONUMA_OK;
}

/* The CPU has memory at the block's address. */
static onuma_result check_reachable(const span *at) {
    if (at->owner->kind == ONUMA_KIND_DEVICE)
        return onuma__fail(ONUMA_ERROR_NOT_SUPPORTED,
                           "block %p is device memory, which the CPU cannot reach: use a pool of kind shared",
                           at->block.base);
    if (!at->owner->segment || !at->owner->segment(at->block.span))
        return onuma__fail(ONUMA_ERROR_NOT_SUPPORTED, "block %p is simulated: there is no memory behind it",
                           at->block.base);
    return ONUMA_OK;
}

/* ------------------------------------------------------------------------- mapping */

/* Imports may need mapping on a device whose own shared memory does not. */
static bool coherent(const onuma__owner *owner, const onuma_segment *segment) {
    return (owner->device->info.abilities & ONUMA_ABILITY_COHERENT) != 0 && !segment->needs_map;
}

bool onuma__sync_is_plain(const void *base) {
    onuma__block block;
    if (onuma__engine_find(base, &block) != ONUMA_OK || block.tag != 0 || block.special) return false;
    const onuma__owner *owner = block.owner;
    const onuma_segment *segment = owner->segment ? owner->segment(block.span) : NULL;
    return segment && owner->kind != ONUMA_KIND_DEVICE && coherent(owner, segment);
}

/* From one mapped mode to another, 0 being unmapped. *now: what it is after, also on failure. No lock is held. */
static onuma_result remap(onuma__record *record, onuma_access from, onuma_access to, onuma_access *now) {
    onuma_result r = ONUMA_OK;
    uint64_t view = 0;
    *now = from;
    if (record->segment->address == 0 && (record->owner->device->info.abilities & ONUMA_ABILITY_HANDLES)) {
        onuma__record *pinned;
        r = onuma__view_handle(record->base, &view, &pinned);
        if (r != ONUMA_OK) return r;
        onuma__record_unpin(pinned);
    }
    if (from != 0) r = onuma__record_unmap(record, view, from);
    if (r != ONUMA_OK) return r;
    *now = 0;
    if (to == 0) return ONUMA_OK;
    r = onuma__record_map(record, view, to);
    if (r == ONUMA_OK)
        *now = to;
    else if (from & ONUMA_ACCESS_WRITE)
        r = ONUMA_OK;
    else if (from != 0 && onuma__record_map(record, view, from) == ONUMA_OK)
        *now = from;
    return r;
}

/* What is mapped for writing is mapped for reading, too. */
static bool covers(onuma_access mapped, onuma_access want) {
    return (mapped & ONUMA_ACCESS_WRITE) || (mapped & want) == want;
}

/* The record is pinned with `mapping` set. Leaves the shard locked and `mapping` cleared. */
static onuma_result change_mapping(onuma__record *record, onuma_access to, onuma__shard **shard) {
    onuma_access now;
    onuma_result r = remap(record, record->mapped, to, &now);
    if (now == 0 && to != 0 && record->mapped != 0)
        onuma__log_write(record->owner->device->log, ONUMA_LOG_WARN,
                         "block %p stays unmapped under those who read it, which is harmless as long as no queue "
                         "writes it: %s",
                         record->base, onuma_last_error());
    *shard = onuma__shard_lock(record->base);
    record->mapped = now;
    record->mapping = false;
    return r;
}

/* Whether nothing but the record has to change when the CPU comes to hold the block so, or goes. Its shard is locked. */
static inline bool is_common(const onuma__record *record, size_t size, onuma_access mode) {
    const onuma__owner *owner = record->owner;
    return mode - 1u < ONUMA_ACCESS_READ_WRITE && size <= record->size && record->mapped == 0 && !record->mapping &&
           record->segment && owner->kind != ONUMA_KIND_DEVICE && (!owner->read_only || mode == ONUMA_ACCESS_READ) &&
           coherent(owner, record->segment);
}

/* ------------------------------------------------------------------------- acquiring */

typedef struct blockers {
    onuma__marker *markers[BLOCKERS]; /* counted */
    size_t count;
    bool unsealed;               /* another thread's use is open */
    bool mapping;                /* another thread is mapping or unmapping */
    const onuma__device *device; /* of a queue whose use is open */
    onuma__urge queues;
} blockers;

/* But for the lists' unused places, which are many. */
static void clear(blockers *b) {
    b->count = b->queues.count = 0;
    b->unsealed = b->mapping = false;
    b->device = NULL;
}

typedef enum { NOT_IN_THE_WAY, IN_THE_WAY, HAS_PASSED, NO_MEMORY } verdict;

/* Seals the use if this thread opened it. *marker: what ends it, NULL while it is open. */
static verdict judge(onuma__use *use, onuma_access mode, onuma__marker **marker) {
    *marker = NULL;
    if (use->mode == 0 || !onuma__access_conflicts(use->mode, mode) || !ONUMA__RULE(ACQUIRE_USES))
        return NOT_IN_THE_WAY;
    uint64_t self = onuma__os_thread_get()->number;
    *marker = onuma__use_marker(use);
    const bool ours = (use->thread == self && self != 0) || !ONUMA__RULE(OPEN_USES);
    if (!*marker && ours) { /* number 0 is shared by threads made when memory was out */
        onuma__join joined = onuma__use_imply(use);
        if (joined == ONUMA__NO_MEMORY) return NO_MEMORY;
        if (joined == ONUMA__ALL_PASSED) return HAS_PASSED;
        *marker = use->implied;
    }
    return *marker && onuma__marker_state(*marker) == ONUMA__MARKER_PASSED ? HAS_PASSED : IN_THE_WAY;
}

/* The shard is locked. Removes conflicting uses that have passed; collects what is in the way. */
static onuma_result collect(onuma__record *record, onuma_access mode, blockers *out, onuma__dead *dead) {
    clear(out);
    out->mapping = record->mapping;
    for (onuma__use **at = &record->uses; *at;) {
        onuma__use *use = *at;
        onuma__marker *marker;
        verdict v = judge(use, mode, &marker);
        if (v == NO_MEMORY) return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for a marker");
        if (v == HAS_PASSED) {
            *at = use->next;
            onuma__use_destroy(use, dead);
            continue;
        }
        if (v == IN_THE_WAY) onuma__urge_add(&out->queues, use->queue);
        if (v == IN_THE_WAY && !marker) {
            out->unsealed = true;
            out->device = use->queue->shared.device;
        }
        if (v == IN_THE_WAY && marker && out->count < BLOCKERS)
            out->markers[out->count++] = onuma__marker_retain(marker);
        at = &use->next;
    }
    return ONUMA_OK;
}

/*
 * A block allocated for an in-order queue may be recycled memory that earlier work of that queue still uses: right for
 * what the queue does next, wrong for the CPU. So unless the queue has announced a use of the block, which passes after
 * all of that, the CPU's first access counts as behind what was submitted so far. The shard is locked.
 */
static onuma_result settle(onuma__record *record, const onuma__block *block, onuma__dead *dead) {
    if (record->settled || !ONUMA__RULE(RECYCLED)) return ONUMA_OK;
    onuma__queue_object *queue = onuma__queue_by_tag(block->tag);
    if (queue && queue->in_order) {
        onuma__use *use = calloc(1, sizeof *use);
        onuma__join joined = ONUMA__NO_MEMORY;
        if (use) {
            *use = (onuma__use){.queue = queue, .mode = ONUMA_ACCESS_READ_WRITE};
            queue = NULL;
            joined = onuma__use_imply(use);
        }
        if (joined == ONUMA__JOINED) {
            use->next = record->uses;
            record->uses = use;
        } else if (use) {
            onuma__use_destroy(use, dead);
        }
        if (joined == ONUMA__NO_MEMORY) {
            onuma__queue_drop(queue, dead);
            return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for a marker");
        }
    }
    onuma__queue_drop(queue, dead);
    record->settled = true;
    return ONUMA_OK;
}

static bool blocked(const blockers *b) {
    return b->count != 0 || b->unsealed || b->mapping;
}

/* Ask the drivers. *progress: some have passed. */
static onuma_result poll_blockers(blockers *b, bool *progress, onuma__dead *dead) {
    onuma_result r = ONUMA_OK;
    *progress = false;
    for (size_t i = 0; i < b->count; i++) {
        onuma__marker *marker = b->markers[i];
        const onuma__device *device = marker->queue->shared.device;
        if (onuma__marker_state(marker) == ONUMA__MARKER_PENDING && r == ONUMA_OK) r = onuma__marker_record(marker);
        uint32_t state = r == ONUMA_OK ? onuma__marker_poll(marker, 0) : ONUMA__MARKER_PENDING;
        if (state == ONUMA__MARKER_PASSED) *progress = true;
        if (state == ONUMA__MARKER_LOST)
            r = onuma__fail(ONUMA_ERROR_DEVICE_LOST,
                            "device %s is lost or its queue keeps failing: the work that uses the block may never end",
                            device->id);
        onuma__marker_release(marker, dead);
    }
    b->count = 0;
    if (r == ONUMA_OK && b->unsealed && atomic_load_explicit(&b->device->lost, memory_order_relaxed))
        r = onuma__fail(ONUMA_ERROR_DEVICE_LOST, "device %s was lost before the use of the block was submitted",
                        b->device->id);
    return r;
}

/* Unblocked, the shard locked: count the hold and map if need be. Unlocks. */
static onuma_result hold(onuma__shard *shard, onuma__record *record, onuma_access mode) {
    record->holds[mode]++;
    onuma_access want = onuma__record_held(record);
    if (coherent(record->owner, record->segment) || covers(record->mapped, want)) {
        onuma__shard_unlock(shard);
        return ONUMA_OK;
    }
    record->mapping = true;
    onuma__record_pin(record);
    onuma__shard_unlock(shard);
    onuma_result r = change_mapping(record, want, &shard);
    if (r != ONUMA_OK && record->holds[mode] != 0) record->holds[mode]--; /* 0: freed meanwhile, which ended it */
    onuma__record_unpin(record);
    onuma__shard_unlock(shard);
    return r;
}

static onuma_result time_out(const blockers *b, const void *ptr, onuma_access mode) {
    return onuma__fail(ONUMA_ERROR_TIMEOUT, "%p is not ready for %s: %s", ptr, onuma__access_name(mode),
                       b->unsealed  ? "a use is announced and not yet submitted: call onuma_submitted, or acquire on "
                                      "the thread that announced it"
                       : b->mapping ? "another thread is mapping it"
                                    : "a queue's work on it has not ended");
}

static onuma_result acquire_slowly(void *ptr, size_t size, onuma_access mode, uint64_t timeout_ns) {
    onuma__backoff backoff = {0};
    bool started = false; /* reads the clock only if there is something to wait for */
    for (;;) {
        span at;
        onuma__record *record;
        blockers b;
        onuma__dead dead = {0};
        clear(&b);
        bool progress;
        onuma_result r = find_span(ptr, size, mode, &at);
        if (r == ONUMA_OK) r = check_reachable(&at);
        if (r != ONUMA_OK) return r;
        onuma__shard *shard = onuma__shard_lock(at.block.base);
        r = onuma__record_open(shard, &at.block, NULL, &record);
        if (r == ONUMA_OK) r = settle(record, &at.block, &dead);
        if (r == ONUMA_OK) r = collect(record, mode, &b, &dead);
        if (r == ONUMA_OK && !blocked(&b)) {
            r = hold(shard, record, mode);
            onuma__dead_bury(&dead);
            return r;
        }
        onuma__shard_unlock(shard);
        onuma_result polled = poll_blockers(&b, &progress, &dead);
        const bool waits = r == ONUMA_OK && polled == ONUMA_OK && !progress;
        onuma__urge_call(&b.queues, waits && timeout_ns != 0, &dead);
        onuma__dead_bury(&dead);
        if (r != ONUMA_OK) return r;
        if (polled != ONUMA_OK) return polled;
        if (progress) continue;
        if (!started) onuma__backoff_start(&backoff, timeout_ns);
        started = true;
        if (!onuma__backoff_pause(&backoff)) return time_out(&b, ptr, mode);
    }
}

/*
 * The common case: a whole block that is known already, with nothing in flight, on coherent memory. A record in the table
 * means that the block lives, so the engine need not be asked. false: nothing happened, take the long way.
 */
static bool acquire_at_once(void *ptr, size_t size, onuma_access mode) {
    onuma__shard *shard = onuma__shard_lock(ptr);
    onuma__record *record = onuma__record_find(shard, ptr);
    const bool good = record && is_common(record, size, mode) && record->settled && !record->uses;
    if (good) record->holds[mode]++;
    onuma__shard_unlock(shard);
    return good;
}

onuma_result onuma__sync_host_acquire(void *ptr, size_t size, onuma_access mode, uint64_t timeout_ns) {
    if (ONUMA__LIKELY(acquire_at_once(ptr, size, mode))) return ONUMA_OK;
    return acquire_slowly(ptr, size, mode, timeout_ns);
}

/* ------------------------------------------------------------------------- releasing */

/* What stays mapped when the holders left want `want`. Wider than wanted only for reading, which queues may do too. */
static onuma_access narrowed(onuma_access mapped, onuma_access want) {
    if (want == 0) return 0;
    return (mapped & ONUMA_ACCESS_WRITE) && !(want & ONUMA_ACCESS_WRITE) ? want : mapped;
}

static onuma_result release_slowly(void *ptr, size_t size, onuma_access mode) {
    onuma__backoff backoff;
    onuma__backoff_start(&backoff, ONUMA_TIMEOUT_INFINITE);
    for (;;) {
        span at;
        onuma_result r = find_span(ptr, size, mode, &at);
        if (r != ONUMA_OK) return r;
        onuma__shard *shard = onuma__shard_lock(at.block.base);
        onuma__record *record = onuma__record_find(shard, at.block.base);
        if (!record || record->holds[mode] == 0) {
            onuma__shard_unlock(shard);
            return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT,
                               "the CPU does not hold block %p for %s: release what was acquired, in the same mode",
                               at.block.base, onuma__access_name(mode));
        }
        if (record->mapping) {
            onuma__shard_unlock(shard);
            (void)onuma__backoff_pause(&backoff);
            continue;
        }
        record->holds[mode]--;
        onuma_access to = narrowed(record->mapped, onuma__record_held(record));
        if (to == record->mapped) {
            onuma__shard_unlock(shard);
            return ONUMA_OK;
        }
        record->holds[mode]++; /* held until the driver is done */
        record->mapping = true;
        onuma__record_pin(record);
        onuma__shard_unlock(shard);
        r = change_mapping(record, to, &shard);
        if (r == ONUMA_OK && record->holds[mode] != 0) record->holds[mode]--;
        onuma__record_unpin(record);
        onuma__shard_unlock(shard);
        return r;
    }
}

/* As acquire_at_once. */
static bool release_at_once(void *ptr, size_t size, onuma_access mode) {
    onuma__shard *shard = onuma__shard_lock(ptr);
    onuma__record *record = onuma__record_find(shard, ptr);
    const bool good = record && is_common(record, size, mode) && record->holds[mode] != 0;
    if (good) record->holds[mode]--;
    onuma__shard_unlock(shard);
    return good;
}

onuma_result onuma__sync_host_release(void *ptr, size_t size, onuma_access mode) {
    if (ONUMA__LIKELY(release_at_once(ptr, size, mode))) return ONUMA_OK;
    return release_slowly(ptr, size, mode);
}
