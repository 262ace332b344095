/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool object, and what to do when memory is short.
 *
 * A pool is an engine with a source. The source here wraps the backend's
 * segments and holds the limit; the ladder climbs when the engine misses.
 */
#ifndef ONUMA_POLICY_POLICY_H
#define ONUMA_POLICY_POLICY_H

#include "sync/sync.h"
#include "track/track.h"

typedef struct onuma__pool onuma__pool;
struct onuma__pool {
    onuma__owner owner; /* first: sync sees the pool through it */
    char name[64];
    bool simulate;
    bool device_wait; /* queues may be made to wait for others rather than grow the pool */
    uint64_t wait;    /* ns that an allocation may wait for queues rather than grow the pool for nothing */
    _Atomic uint32_t waits_skipped; /* relaxed: growths still to go without, because waiting did not help lately */
    _Atomic uint32_t waits_in_vain; /* relaxed: in a row */
    _Atomic bool *due;              /* the engine's (onuma__engine_due) */
    onuma__sites *sites;            /* NULL unless track:full */
    _Atomic size_t limit;           /* bytes; 0: none. Relaxed: a changed limit may be seen late */
    /* Bytes: reserved <= admitted <= limit at every moment (unless the limit was lowered). */
    _Atomic size_t admitted; /* held, or about to be asked for */
    _Atomic size_t reserved; /* held from the backend */
    _Atomic size_t reserved_peak;
    _Atomic uint64_t oom_retry_count, alloc_failure_count; /* relaxed counters */
    onuma_oom_handler *handler; /* these two under the policy lock; it is not held while the handler runs */
    void *handler_user;
    onuma__pool *next_kept; /* in quarantine; under the policy lock */
};

/* `desc` is complete: every member has a value. Not checked before: what it asks for. */
onuma_result onuma__pool_create(onuma__device *device, const onuma_pool_desc *desc, onuma__pool **out);

/* BUSY while blocks live or frees wait; then nothing has changed. */
onuma_result onuma__pool_check_idle(onuma__pool *pool);
/* Of an idle pool. */
void onuma__pool_destroy(onuma__pool *pool);

/* See onuma_pool_destroy_forced. The object is gone afterwards in any case; what may still be used stays mapped. */
void onuma__pool_destroy_forced(onuma__pool *pool, uint64_t timeout_ns);

/* At the end of a runtime: reports what leaked; the pool is gone, or, if blocks live or may be used, in quarantine
 * with all it holds, its device included. false: in quarantine. */
bool onuma__pool_retire(onuma__pool *pool, uint64_t timeout_ns);

/* Put the pool in quarantine as it is: nothing in it is given back or touched again. */
void onuma__pool_keep(onuma__pool *pool);

/* Whether a pool or an import in quarantine needs this device to stay open. */
bool onuma__device_is_kept(const onuma__device *device);

/* caller: return address into the program, for the leak report. */
onuma_result onuma__pool_alloc(onuma__pool *pool, size_t size, size_t align, onuma__queue *queue, void *caller,
                               void **out);
onuma_result onuma__pool_alloc_zeroed(onuma__pool *pool, size_t size, size_t align, onuma__queue *queue, void *caller,
                                      void **out);
onuma_result onuma__pool_realloc(void *ptr, size_t size, onuma__queue *queue, void *caller, void **out);
/* Of any pool's block, or an import. */
onuma_result onuma__pool_free(void *ptr, onuma__queue *queue);

size_t onuma__pool_trim(onuma__pool *pool, size_t keep);
void onuma__pool_set_limit(onuma__pool *pool, size_t limit);
void onuma__pool_set_handler(onuma__pool *pool, onuma_oom_handler *handler, void *user);
void onuma__pool_get_stats(onuma__pool *pool, onuma_pool_stats *out);
void onuma__pool_reset_peak(onuma__pool *pool);
/* Live blocks to the log. Returns how many there are. No other thread may use the pool meanwhile. */
uint64_t onuma__pool_report_leaks(onuma__pool *pool);

onuma_result onuma__import(onuma__device *device, void *host, size_t size, const onuma_import_desc *desc, void **out);

/* At the end of a runtime: the device's imports that are left go into quarantine, those that live reported. Returns how
 * many are left. */
uint64_t onuma__imports_keep(onuma__device *device);

#endif
