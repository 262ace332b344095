/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share among themselves. */
#ifndef ONUMA_POLICY_PRIVATE_H
#define ONUMA_POLICY_PRIVATE_H

#include "policy/policy.h"

/*
 * The policy lock guards what is small and rarely touched: handlers, the list
 * of imports, the quarantine. Of other layers only the engine may be called
 * while it is held. One for all pools, so that fork() has one to care for.
 */
void onuma__policy_lock(void);
void onuma__policy_unlock(void);

/* A pool is there for all to see; and is not: returns when nobody is at it any more (but the caller, see onuma__visit). */
void onuma__pools_enter(onuma__pool *pool);
void onuma__pools_leave(onuma__pool *pool);

/*
 * Someone at a pool that is not his: it stays while he is there, and nobody else visits. But what he calls may run a
 * function of the user's (a deleter, say) that destroys this very pool: after calls that might, `gone` tells.
 */
typedef struct onuma__visit {
    onuma__pool *pool;
    uint64_t thread; /* number of the visitor's */
    bool gone;
} onuma__visit;

/* Call fn for each pool that has no visitor and may be used in this process, with no lock held. false: some had one. */
bool onuma__pools_visit(void (*fn)(onuma__visit *visit, void *user), void *user);
/*
 * Visit one's own pool: what others have in hand of it for a moment, a trim would miss. Waits a little for a visitor,
 * who may be in a function of the user's, and then goes on beside him (visit->pool is NULL).
 */
void onuma__pools_begin(onuma__visit *visit, onuma__pool *pool);
void onuma__pools_end(onuma__visit *visit);
/* Around fork(), in the child, under the policy lock: the visitors that it does not have are gone. */
void onuma__pools_in_child(void);

void onuma__decay_start(onuma__pool *pool, uint64_t now);
/* The pool's steps up to `now`, in a visit. */
void onuma__decay_step(onuma__visit *visit, uint64_t now);
/* The steps of all pools that are due. When the next is, in ns of onuma__os_now; UINT64_MAX: never. */
uint64_t onuma__decay_round(uint64_t now);
/* In a visit: all that is idle goes now, however lately it was in use; caches stay. */
void onuma__decay_now(onuma__visit *visit);

/* The library learnt at `now` that memory is short: see pressure.c. The keeper's thread, or a test. */
void onuma__pressure_answer(onuma__os_pressure how, uint64_t now);

/* Times between steps; 0: the pool does not decay. */
uint64_t onuma__decay_tick(const onuma__pool *pool);

/* The library's own thread: runs while there is a pool that wants it. Join by leaving. */
void onuma__keeper_want(onuma__pool *pool);
void onuma__keeper_leave(onuma__pool *pool);
/* A fork may have taken it away. */
void onuma__keeper_check(void);
void onuma__keeper_in_child(void);

/* Whether the pool, or the pools of its runtime together, hold more than their soft limit, or will with so many bytes more. */
bool onuma__pool_is_over_soft(const onuma__pool *pool, size_t more);
/* All that is free in the other pools of the runtime goes back. Bytes. */
size_t onuma__pools_trim_others(const onuma__pool *pool);

/* Count bytes about to be asked for; LIMIT, and nothing counted, if they would pass the limit. */
onuma_result onuma__pool_admit(onuma__pool *pool, size_t size);
/* The source's answer about admitted bytes: they are held now, or not admitted any more. Returns r. */
onuma_result onuma__pool_settle(onuma__pool *pool, size_t size, onuma_result r);
/* Bytes were given back. */
void onuma__pool_dismiss(onuma__pool *pool, size_t size);

/* The pool's source: the backend's segments, or addresses with nothing behind them. */
onuma__source onuma__backend_source(onuma__pool *pool, bool range);
onuma__source onuma__simulated_source(onuma__pool *pool);
const onuma_segment *onuma__backend_segment(const onuma__span *span);
const onuma_segment *onuma__simulated_segment(const onuma__span *span);

/* After ONUMA__MISS: climb until the allocation succeeds or nothing is left to try. */
onuma_result onuma__ladder_climb(onuma__pool *pool, size_t size, size_t align, onuma__tag tag, void **out);

/* A pool with call sites was made (or is gone): frees look for sites while there is one. */
void onuma__tracking_changed(bool more);

/* Whether an import in quarantine needs this device. */
bool onuma__imports_kept(const onuma__device *device);

/* Bytes the device has free now, as the driver says; 0 if it does not tell. */
uint64_t onuma__pool_device_free(onuma__pool *pool);

#endif
