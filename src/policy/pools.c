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

void onuma__pools_visit(void (*fn)(onuma__visit *visit, void *user), void *user) {
    onuma__visit visit = {.thread = onuma__os_thread_get()->number};
    if (visit.thread == 0) return; /* whoever leaves could not tell this thread from another */
    uint64_t after = 0;
    for (;;) {
        onuma__policy_lock();
        onuma__pool *pool = first;
        while (pool != NULL && (pool->serial <= after || pool->visit != NULL || !is_usable(pool)))
            pool = pool->next;
        if (pool != NULL) {
            after = pool->serial;
            visit.pool = pool;
            visit.gone = false;
            pool->visit = &visit;
        }
        onuma__policy_unlock();
        if (pool == NULL) return;
        fn(&visit, user);
        onuma__policy_lock();
        if (!visit.gone) pool->visit = NULL;
        onuma__policy_unlock();
    }
}

void onuma__pools_in_child(void) {
    const uint64_t self = onuma__os_thread_get()->number;
    for (onuma__pool *pool = first; pool != NULL; pool = pool->next)
        if (pool->visit != NULL && pool->visit->thread != self) pool->visit = NULL;
}
