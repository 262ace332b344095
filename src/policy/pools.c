/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every pool of the process, so that decay, budgets and pressure reach those
 * that nobody calls at the moment.
 *
 * Who looks after a pool visits it: it cannot be destroyed meanwhile, and there
 * is one visitor at a time, to whom belongs what is said to be the visitor's.
 * No lock is held during a visit. The list is gone through by serial numbers, so
 * that it may change in any way between two visits.
 */
#include "policy/private.h"

#include <stddef.h>

#define WAIT_NS 20000
#define PATIENCE UINT64_C(50000000) /* ns: of a step of decay, which is over sooner */

/* These under the policy lock. */
static onuma__pool *first, *last; /* by serial */
static uint64_t last_serial;

void onuma__pools_enter(onuma__pool *pool) {
    onuma__policy_lock();
    pool->serial = ++last_serial;
    pool->previous = last;
    pool->next = NULL;
    if (last != NULL)
        last->next = pool;
    else
        first = pool;
    last = pool;
    onuma__policy_unlock();
}

/* Called and returns with the policy lock held. */
static void wait_for_visitor(const onuma__pool *pool) {
    const uint64_t self = onuma__os_thread_get()->number;
    while (pool->visit != NULL && pool->visit->thread != self) {
        onuma__policy_unlock();
        onuma__os_sleep(WAIT_NS);
        onuma__policy_lock();
    }
    if (pool->visit != NULL) pool->visit->gone = true;
}

void onuma__pools_leave(onuma__pool *pool) {
    if (pool->serial == 0) return;
    onuma__policy_lock();
    wait_for_visitor(pool);
    if (pool->previous != NULL)
        pool->previous->next = pool->next;
    else
        first = pool->next;
    if (pool->next != NULL)
        pool->next->previous = pool->previous;
    else
        last = pool->previous;
    pool->serial = 0;
    onuma__policy_unlock();
}

static bool is_usable(const onuma__pool *pool) {
    const onuma__device *device = pool->owner.device;
    return device->generation == onuma__os_process_generation() || device->ops->api == ONUMA_API_HOST;
}

/* Under the policy lock: the next that may be visited. *left_out: others that might have been have a visitor. */
static onuma__pool *next_to_visit(uint64_t after, bool *left_out) {
    onuma__pool *pool = first;
    for (; pool != NULL; pool = pool->next) {
        if (pool->serial <= after || !is_usable(pool)) continue;
        if (pool->visit == NULL) break;
        *left_out = true;
    }
    return pool;
}

bool onuma__pools_visit(void (*fn)(onuma__visit *visit, void *user), void *user) {
    onuma__visit visit = {.thread = onuma__os_thread_get()->number};
    if (visit.thread == 0) return false; /* whoever leaves could not tell this thread from another */
    uint64_t after = 0;
    bool left_out = false;
    for (;;) {
        onuma__policy_lock();
        onuma__pool *pool = next_to_visit(after, &left_out);
        if (pool != NULL) {
            after = pool->serial;
            visit.pool = pool;
            visit.gone = false;
            pool->visit = &visit;
        }
        onuma__policy_unlock();
        if (pool == NULL) return !left_out;
        fn(&visit, user);
        onuma__policy_lock();
        if (!visit.gone) pool->visit = NULL;
        onuma__policy_unlock();
    }
}

void onuma__pools_begin(onuma__visit *visit, onuma__pool *pool) {
    *visit = (onuma__visit){.thread = onuma__os_thread_get()->number};
    const uint64_t deadline = onuma__os_now() + PATIENCE;
    onuma__policy_lock();
    while (pool->visit != NULL && pool->visit->thread != visit->thread && onuma__os_now() < deadline) {
        onuma__policy_unlock();
        onuma__os_sleep(WAIT_NS);
        onuma__policy_lock();
    }
    if (pool->visit == NULL && visit->thread != 0) {
        visit->pool = pool;
        pool->visit = visit;
    }
    onuma__policy_unlock();
}

void onuma__pools_end(onuma__visit *visit) {
    onuma__policy_lock();
    if (visit->pool != NULL && !visit->gone) visit->pool->visit = NULL;
    onuma__policy_unlock();
}

/* ------------------------------------------------- what pools do for others */

typedef struct helped {
    const onuma__pool *pool;
    size_t bytes;
} helped;

static void trim_other(onuma__visit *visit, void *user) {
    helped *h = user;
    onuma__pool *other = visit->pool;
    if (other != h->pool && other->owner.device->budget == h->pool->owner.device->budget)
        h->bytes += onuma__engine_trim(other->owner.engine, 0);
}

size_t onuma__pools_trim_others(const onuma__pool *pool) {
    helped h = {pool, 0};
    if (pool->owner.device->budget != NULL) (void)onuma__pools_visit(trim_other, &h);
    return h.bytes;
}

typedef struct cached {
    const onuma__device *device;
    uint64_t bytes;
} cached;

static bool has_own_memory(const onuma__device *device) {
    return device->info.type == ONUMA_DEVICE_DISCRETE;
}

static void add_cached(onuma__visit *visit, void *user) {
    cached *c = user;
    const onuma__pool *pool = visit->pool;
    const bool same = has_own_memory(c->device)
                          ? pool->owner.device == c->device && pool->owner.kind == ONUMA_KIND_DEVICE
                          : !has_own_memory(pool->owner.device);
    if (pool->simulate || !same) return;
    onuma_pool_stats stats = ONUMA_POOL_STATS_INIT;
    onuma__engine_get_stats(pool->owner.engine, &stats);
    c->bytes += stats.cached_bytes;
}

uint64_t onuma__pools_cached(const onuma__device *device) {
    cached c = {device, 0};
    (void)onuma__pools_visit(add_cached, &c);
    return c.bytes;
}

/* -------------------------------------------------------------------- fork */

void onuma__pools_in_child(void) {
    const uint64_t self = onuma__os_thread_get()->number;
    for (onuma__pool *pool = first; pool != NULL; pool = pool->next)
        if (pool->visit != NULL && pool->visit->thread != self) pool->visit = NULL;
}
