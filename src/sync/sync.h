/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queues, the accesses they and the CPU announce, and the frees that wait for
 * them.
 *
 * Everything known of one block beyond its place (views, uses, host accesses)
 * is its *side record*, in a table keyed by the block's base; the engine marks
 * such blocks special, so that blocks without one pay nothing when freed.
 */
#ifndef ONUMA_SYNC_SYNC_H
#define ONUMA_SYNC_SYNC_H

#include "backend/device.h"
#include "pool/pool.h"

/* What sync must know of a block's owner. The pool object and the import object begin with it. */
typedef struct onuma__owner {
    onuma__device *device;
    onuma__engine *engine; /* NULL for an import */
    onuma_kind kind;
    bool read_only;
    onuma_pool *handle; /* NULL for an import */
    void *reserve;      /* of an import: memory for its free's record, until that takes it; sync's */
    /* The backend's segment behind a span of this owner; NULL if there is no memory behind (simulation). */
    const onuma_segment *(*segment)(const onuma__span *span);
    /* A held block of this owner is gone for good; NULL for pools. Called with no locks held. */
    void (*retired)(struct onuma__owner *owner);
} onuma__owner;

/* A wrapped native queue. One object for each (device, api, native); counted. */
typedef struct onuma__queue onuma__queue;
struct onuma__queue {
    onuma__device *device;
    onuma_api api;
    uint64_t native;
    _Atomic(void *) handle; /* the onuma_queue that the user holds; set by the api layer */
    onuma__tag tag;         /* its own number, never 0: blocks are allocated under it. Only an in-order queue's is freed
                            under; what is freed on an unordered one is held until a marker has passed */
    /* the rest is src/sync/queue.c's */
};

/* The workers of a host queue are the CPU, which reaches what has pointers of any device. */
static inline bool onuma__sync_reaches(const onuma__queue *queue, const onuma__owner *owner) {
    return ONUMA__LIKELY(queue->device == owner->device) || queue->device->ops->api == ONUMA_API_HOST;
}
/*
 * Whether work of the queue may use the owner's memory: INVALID_ARGUMENT if it does not reach it. */
onuma_result onuma__sync_refuse_queue(const onuma__queue *queue, const onuma__owner *owner) ONUMA__COLD;
static inline onuma_result onuma__sync_check_queue(const onuma__queue *queue, const onuma__owner *owner) {
    return onuma__sync_reaches(queue, owner) ? ONUMA_OK : onuma__sync_refuse_queue(queue, owner);
}

onuma_result onuma__queue_wrap(onuma__device *device, onuma_api api, uint64_t native, const onuma_queue_desc *desc,
                               onuma__queue **out);
/* *last: the last reference went, and the handle with it. */
onuma_result onuma__queue_release(onuma__queue *queue, bool *last);
onuma_result onuma__queue_wait(onuma__queue *queue, onuma__queue *on, const onuma_native_event *done);
/* Before a device is closed, its pools being gone: its queues and imports' records are dropped, with their last markers
 * waited for up to the time. */
void onuma__queues_drop_device(onuma__device *device, uint64_t timeout_ns);
/* Before asking whether a device still has users: a released queue is one until it has passed its last marker. */
void onuma__queues_drain_device(onuma__device *device, uint64_t timeout_ns);

/*
 * The live block at `base` (just allocated, its pointer not yet given to anyone) counts as used by `queue` until it
 * is freed, whatever queue it is freed on: the free is parked behind a marker of `queue` taken then. For blocks whose
 * tag does not say so by itself: the queue is unordered, or the block was allocated under tag 0 because the CPU
 * writes to it first. It announces no access: host accesses and uses never wait for it.
 */
onuma_result onuma__sync_bind(onuma__queue *queue, void *base);

/* The same in two steps, of which only the first can lack memory. Cancelling is for what was not finished; zero ok. */
typedef struct onuma__binding {
    struct onuma__use *use; /* NULL: nothing to do */
    struct onuma__record *record;
} onuma__binding;
onuma_result onuma__sync_bind_prepare(onuma__queue *queue, void *base, onuma__binding *out);
onuma_result onuma__sync_bind_finish(onuma__binding *binding, void *base); /* INVALID_POINTER if it was freed since */
void onuma__sync_bind_cancel(onuma__binding *binding);

/* ---- frees */

/* The whole way of a free. DOUBLE_FREE, INVALID_POINTER as from the engine. Never blocks. */
onuma_result onuma__sync_free(void *ptr, onuma__queue *queue);
/* Before the engine serves anything, before an import can be freed: what frees will need of memory, so that none fails
 * for want of it. OUT_OF_MEMORY. */
onuma_result onuma__sync_begin_engine(onuma__engine *engine);
onuma_result onuma__sync_begin_import(onuma__owner *owner);
void onuma__sync_end_import(onuma__owner *owner);
void onuma__sync_end_imports(onuma__device *device); /* none lives and no free of one waits */
/* Before an allocation with a queue: frees on the queue will need markers. Nearly free once known. OUT_OF_MEMORY. */
onuma_result onuma__sync_note(onuma__engine *engine, onuma__queue *queue);
/* Ask the drivers how far they are, finish what has passed for this engine. Returns whether anything became reusable. No lock may be held. */
bool onuma__sync_poll(onuma__engine *engine);
/*
 * Let the in-order queue of that tag wait, on its device, for another queue that freed memory of this engine: what it
 * did from there on serves the first at once. Returns whether any memory changed over; each call takes one queue. No lock
 * may be held.
 */
bool onuma__sync_go_behind(onuma__engine *engine, onuma__tag tag);
/* As poll, but waits until something does or the time is over. */
bool onuma__sync_wait(onuma__engine *engine, uint64_t timeout_ns);
/* Frees of this engine that still wait, and epochs of tags that do. Polls, so no lock may be held. */
uint64_t onuma__sync_pending(onuma__engine *engine);
/* Before an engine dies: waits up to the time; then forgets its records. false: some queue may still use its memory. */
bool onuma__sync_drop_engine(onuma__engine *engine, uint64_t timeout_ns);
/* The same for an engine in which no block lives and nothing waits: what its queues do by now is none of its business. */
bool onuma__sync_drop_idle_engine(onuma__engine *engine);

/*
 * fork(): called by whoever sets onuma__os_at_fork's hooks, `before` ahead of the engine's own (its locks are the inner
 * ones), the others after the engine's. In the child nothing asks a driver any more.
 */
void onuma__sync_fork_before(void);
void onuma__sync_fork_parent(void);
void onuma__sync_fork_child(void);

/* ---- announced accesses */
onuma_result onuma__sync_use_many(onuma__queue *queue, size_t n, void *const *ptrs, const onuma_access *modes);
onuma_result onuma__sync_submitted(onuma__queue *queue, const onuma_native_event *done);
onuma_result onuma__sync_host_acquire(void *ptr, size_t size, onuma_access mode, uint64_t timeout_ns);
onuma_result onuma__sync_host_release(void *ptr, size_t size, onuma_access mode);
/* Whether the CPU may touch a block that was just allocated under tag 0, whose pointer nobody else has, with neither
 * of the two: no queue is at it, and nothing has to be mapped. */
bool onuma__sync_is_plain(const void *base);

/* ---- views */
onuma_result onuma__view_get(void *ptr, onuma__device *device, onuma_api api, onuma_view *out);
onuma_result onuma__view_release(onuma_view *view);

#endif
