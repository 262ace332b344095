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

/* What all pools of a runtime may hold together. Limits in bytes, 0: none; relaxed: a changed one may be seen late. */
typedef struct onuma__budget {
    _Atomic size_t limit, soft_limit;
    _Atomic size_t admitted;         /* held by pools, or about to be asked for; <= limit, unless that was lowered */
    onuma_pressure_handler *handler; /* these three under the policy lock; it is not held while the handler runs */
    void *handler_user;
    onuma_runtime *runtime;
    uint64_t answered; /* the last sign of pressure that the handler was called for: the keeper's */
} onuma__budget;

/* How much a pool may hold: see decay.c. `half_life` and `floor` are constant, the rest is the visitor's (pools.c). */
#define ONUMA__DECAY_DELAY 8u
typedef struct onuma__decay {
    uint64_t half_life; /* ns; 0: nothing decays */
    size_t floor;
    uint64_t at;                       /* the last step, in ns of onuma__os_now */
    uint64_t high;                     /* bytes: what was in use, with what has not decayed of its past */
    uint64_t excess;                   /* high less what was in use at the last step */
    unsigned age;                      /* steps since most of the excess became idle */
    uint64_t past[ONUMA__DECAY_DELAY]; /* `high` at the last steps, the latest first */
} onuma__decay;

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
    _Atomic size_t soft_limit;      /* likewise */
    /* Bytes: reserved <= admitted <= limit at every moment (unless the limit was lowered). */
    _Atomic size_t admitted; /* held, or about to be asked for */
    _Atomic size_t reserved; /* held from the backend */
    _Atomic size_t reserved_peak;
    _Atomic uint64_t oom_retry_count, alloc_failure_count; /* relaxed counters */
    onuma_oom_handler *handler; /* these two under the policy lock; it is not held while the handler runs */
    void *handler_user;
    onuma__pool *next_kept; /* in quarantine; under the policy lock */
    /* In the list of pools.c, under the policy lock. */
    onuma__pool *previous, *next;
    uint64_t serial;            /* in order of entering; 0: not in the list */
    struct onuma__visit *visit; /* of whoever looks after the pool at the moment */
    bool kept;                  /* the keeper looks after it (keeper.c) */
    onuma__decay decay;
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
void onuma__pool_set_soft_limit(onuma__pool *pool, size_t limit);

void onuma__budget_set_handler(onuma__budget *budget, onuma_runtime *runtime, onuma_pressure_handler *handler,
                               void *user);

/* Bytes that pools hold and have free, of those whose memory is the device's: its own, or the system's where it has none. */
uint64_t onuma__pools_cached(const onuma__device *device);
void onuma__pool_set_handler(onuma__pool *pool, onuma_oom_handler *handler, void *user);
void onuma__pool_get_stats(onuma__pool *pool, onuma_pool_stats *out);
void onuma__pool_reset_peak(onuma__pool *pool);
/* Live blocks to the log. Returns how many there are. No other thread may use the pool meanwhile. */
uint64_t onuma__pool_report_leaks(onuma__pool *pool);

/*
 * Called now and then on the long ways of allocations and frees: lets memory decay that is due. Nearly free, and no
 * look at the clock, but for one call in so many.
 */
#define ONUMA__UPKEEP_EVERY 64u
void onuma__upkeep(void);
static inline void onuma__upkeep_count(void) {
    onuma__os_thread *thread = onuma__os_thread_get();
    if (ONUMA__UNLIKELY(++thread->long_ways % ONUMA__UPKEEP_EVERY == 0)) onuma__upkeep();
}

onuma_result onuma__import(onuma__device *device, void *host, size_t size, const onuma_import_desc *desc, void **out);

/* At the end of a runtime: the device's imports that are left go into quarantine, those that live reported. Returns how
 * many are left. */
uint64_t onuma__imports_keep(onuma__device *device);

#endif
