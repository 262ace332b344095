/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frees. Most end in the engine. Those it holds come here:
 *
 *   - the block has a side record: uses, views, host accesses;
 *   - it was allocated under another tag than it is freed under, so a second
 *     queue may still use it;
 *   - it is freed on an unordered queue, where nothing may be reused before a
 *     marker has passed;
 *   - it is an import.
 *
 * The record, now out of the table, becomes the parked free. It waits for its
 * uses (those of other threads first for their seal), for a marker of the queue
 * it is freed on, and for one of the queue it was allocated on, which counts as
 * using it until now. Then it is unmapped (an import mapped once more, so that
 * the program has what the device wrote), its views are dropped, and the block
 * goes back.
 *
 * A free ends the CPU's holds on the block, since nobody can release them
 * afterwards. What they mapped is unmapped only at the very end, after all
 * markers: until then a queue or a late reader may still be at the memory.
 *
 * A free must not fail for lack of memory, must not be early either, and no
 * block may be lost by it. A marker that there is no memory for is tried again
 * whenever somebody looks (later, it covers more). An import has memory for its
 * record from the start. Of any other block the engine remembers meanwhile that
 * it is held; which queues it waits for is then no longer known, but for a mark
 * on each that is one of them, and it waits for all with the mark.
 */
#include "sync/internal.h"

static void give_block_back(onuma__engine *engine, onuma__owner *owner, void *base) {
    if (engine) {
        onuma__engine_release(engine, base);
        return;
    }
    /* In this order: once its owner is told, the addresses may become another import at once. */
    onuma__import_remove(base);
    if (owner->retired) owner->retired(owner);
}

/*
 * An import's memory goes back to the program, which expects in it what the device wrote. Where memory is not coherent,
 * or the driver works on a copy, that is not so before a map. Without a view no device has seen it.
 */
static void fetch_import(const onuma__record *record, uint64_t handle) {
    if (record->engine || record->owner->read_only || !record->segment->needs_map || handle == 0) return;
    onuma_result r = ONUMA_ERROR_INTERNAL;
    for (int i = 0; i < 2 && r != ONUMA_OK; i++) /* there is nobody else who could try again */
        r = onuma__record_map(record, handle, ONUMA_ACCESS_READ);
    if (r != ONUMA_OK) {
        onuma__log_write(record->owner->device->log, ONUMA_LOG_ERROR,
                         "import %p: what the device wrote last may be missing: %s", record->base, onuma_last_error());
        return;
    }
    (void)onuma__record_unmap(record, handle, ONUMA_ACCESS_READ); /* nothing was written; the handle goes now */
}

static void unmap(onuma__record *record) {
    uint64_t handle = 0;
    if (record->generation != onuma__os_process_generation()) return;
    for (onuma__block_view *view = record->views; view; view = view->next)
        if (view->ready && view->size == record->size) handle = view->handle;
    if (record->mapped == 0) {
        fetch_import(record, handle);
        return;
    }
    (void)onuma__record_unmap(record, handle, record->mapped); /* the block goes either way: nobody looks at it again */
}

void onuma__free_finish(onuma__record *record) {
    onuma__dead dead = {0};
    unmap(record);
    onuma__views_destroy(record);
    if (record->own)
        onuma__engine_release_own(record->engine, record->base);
    else if (!record->orphan)
        give_block_back(record->engine, record->owner, record->base);
    onuma__record_destroy(record, &dead);
    onuma__dead_bury(&dead);
}

static onuma__free_state worse(onuma__free_state state, onuma__marker *marker, uint64_t pass) {
    uint32_t at = pass ? onuma__marker_poll(marker, pass) : onuma__marker_state(marker);
    onuma__free_state its = at == ONUMA__MARKER_PASSED ? ONUMA__FREE_NOW
                            : at == ONUMA__MARKER_LOST ? ONUMA__FREE_LOST
                                                       : ONUMA__FREE_WAITS;
    return its > state ? its : state;
}

static onuma__free_state check_use(onuma__use *use, onuma__free_state state, uint64_t pass) {
    if (use->owed) {
        onuma__join joined = onuma__use_imply(use);
        use->owed = joined == ONUMA__NO_MEMORY;
        if (joined == ONUMA__ALL_PASSED) return state;
    }
    onuma__marker *marker = onuma__use_marker(use);
    if (marker) return worse(state, marker, pass);
    return state == ONUMA__FREE_NOW ? ONUMA__FREE_WAITS : state;
}

static onuma__free_state check_need(onuma__need *need, onuma__free_state state, uint64_t pass) {
    if (!need->queue) return state;
    onuma__join joined = need->marker ? ONUMA__JOINED : onuma__marker_join(need->queue, &need->marker);
    if (joined == ONUMA__JOINED) return worse(state, need->marker, pass);
    return joined == ONUMA__NO_MEMORY && state == ONUMA__FREE_NOW ? ONUMA__FREE_WAITS : state;
}

onuma__free_state onuma__free_check(onuma__record *record, uint64_t pass) {
    onuma__free_state state = ONUMA__FREE_NOW;
    /* Acquire: what the last pinning thread did to the record is seen, views above all. */
    if (atomic_load_explicit(&record->pins, memory_order_acquire) != 0) return ONUMA__FREE_WAITS;
    /* All of them, so that each marker is on its way after the first look. */
    for (onuma__use *use = record->uses; use && ONUMA__RULE(FREE_USES); use = use->next)
        state = check_use(use, state, pass);
    for (size_t i = 0; i < 2; i++)
        state = check_need(&record->need[i], state, pass);
    return state;
}

void onuma__free_seal(onuma__record *record, onuma__dead *dead) {
    uint64_t self = onuma__os_thread_get()->number;
    for (onuma__use **at = &record->uses; *at;) {
        onuma__use *use = *at;
        bool ours = use->mode == 0 || (use->thread == self && self != 0) || !ONUMA__RULE(OPEN_USES);
        onuma__join joined = ours && !onuma__use_marker(use) ? onuma__use_imply(use) : ONUMA__JOINED;
        use->owed = joined == ONUMA__NO_MEMORY;
        if (joined == ONUMA__ALL_PASSED) {
            *at = use->next;
            onuma__use_destroy(use, dead);
        } else {
            at = &use->next;
        }
    }
}

/* ------------------------------------------------------------------------ parking */

/* The queues that a free waits for whatever was announced. */
typedef struct must_pass {
    onuma__need needs[2];
} must_pass;

/* Whether anything of them has not passed. */
static bool collect_needs(onuma__queue *freed_on, onuma__tag allocated_on, must_pass *out) {
    *out = (must_pass){0};
    if (freed_on) out->needs[0].queue = onuma__queue_retain(onuma__queue_of(freed_on));
    if (allocated_on != 0 && ONUMA__RULE(FREE_OWNER) && (!freed_on || freed_on->tag != allocated_on))
        out->needs[1].queue = onuma__queue_by_tag(allocated_on);
    return check_need(&out->needs[0], check_need(&out->needs[1], ONUMA__FREE_NOW, 0), 0) != ONUMA__FREE_NOW;
}

/* Takes the record out of the table and ends the CPU's holds. */
static onuma__record *take_record(const void *base) {
    onuma_access held = 0;
    onuma__shard *shard = onuma__shard_lock(base);
    onuma__record *record = onuma__record_remove(shard, base);
    if (record) {
        held = onuma__record_held(record);
        for (onuma_access mode = 0; mode <= ONUMA_ACCESS_READ_WRITE; mode++)
            record->holds[mode] = 0;
    }
    onuma__shard_unlock(shard);
    if (held)
        onuma__hazard(record->owner->device, "block %p is freed while the CPU holds it for %s", base,
                      onuma__access_name(held));
    return record;
}

static void park(onuma__record *record, const onuma__block *block, must_pass *needs) {
    onuma__owner *owner = block->owner;
    /* There is one: see onuma__sync_begin_engine. */
    onuma__ledger *ledger =
        onuma__ledger_get(block->engine ? (void *)block->engine : owner->device, block->engine, false);
    if (!record) {
        record = onuma__record_create(block, owner->reserve);
        owner->reserve = NULL;
    }
    if (record) {
        for (size_t i = 0; i < 2; i++)
            record->need[i] = needs->needs[i];
        *needs = (must_pass){0};
        onuma__ledger_park(ledger, record);
    } else {
        onuma__ledger_strand(ledger, block->base, needs->needs);
    }
    onuma__ledger_put(ledger);
}

/*
 * Whether all that can still be at the block is work of the in-order queue that it was allocated for, and submitted
 * by now. Whatever that queue is given later comes after it, so the block may serve the queue at once, as one that
 * never had a record would: a program that announces what it does must not pay for it with memory.
 */
static bool is_queues_own(const onuma__record *record, const onuma__block *block, const onuma__queue *freed_on) {
    if (!block->engine || block->tag == 0 || (block->tag & ONUMA__TAG_UNORDERED) != 0) return false;
    if (freed_on && freed_on->tag != block->tag) return false;
    if (record->mapped != 0) return false;
    if (record->views && (record->owner->device->info.abilities & ONUMA_ABILITY_COUNTED) == 0) return false;
    /* Acquire: as in onuma__free_check. */
    if (atomic_load_explicit(&record->pins, memory_order_acquire) != 0) return false;
    const uint64_t self = onuma__os_thread_get()->number;
    for (const onuma__use *use = record->uses; use; use = use->next) {
        const bool submitted = onuma__use_marker(use) || use->mode == 0 || (use->thread == self && self != 0);
        if (use->queue->shared.tag != block->tag || !submitted) return false;
    }
    return true;
}

static onuma_result free_held(void *base, onuma__queue *queue) {
    onuma__block block;
    onuma__dead dead = {0};
    onuma__record *record = take_record(base);
    onuma_result r = onuma__engine_find_held(base, &block);
    if (r != ONUMA_OK) {
        onuma__ledgers_lose_track();
        return onuma__fail(ONUMA_ERROR_INTERNAL, "the engine holds block %p but does not know it", base);
    }
    if (record && ONUMA__RULE(OWN_RECORD) && is_queues_own(record, &block, queue)) {
        record->own = true;
        onuma__free_finish(record);
        return ONUMA_OK;
    }
    must_pass needs;
    bool waits = collect_needs(queue, block.tag, &needs);
    if (record) {
        onuma__free_seal(record, &dead);
        waits = waits || onuma__free_check(record, 0) != ONUMA__FREE_NOW;
    }
    if (waits)
        park(record, &block, &needs);
    else if (record)
        onuma__free_finish(record);
    else
        give_block_back(block.engine, block.owner, base);
    for (size_t i = 0; i < 2; i++) {
        onuma__marker_release(needs.needs[i].marker, &dead);
        onuma__queue_drop(needs.needs[i].queue, &dead);
    }
    onuma__dead_bury(&dead);
    onuma__sync_tidy();
    return ONUMA_OK;
}

onuma_result onuma__sync_free(void *ptr, onuma__queue *queue) {
    onuma__engine *engine = NULL;
    onuma__tag tag = 0;
    if (queue) tag = onuma__queue_of(queue)->in_order || !ONUMA__RULE(UNORDERED) ? queue->tag : ONUMA__TAG_HOLD;
    if (!ONUMA__RULE(OWN_REUSE)) tag = ONUMA__TAG_HOLD;
    int32_t r = onuma__engine_free(ptr, tag, &engine);
    if (ONUMA__LIKELY(r != ONUMA__HELD)) return r;
    return free_held(ptr, queue);
}
