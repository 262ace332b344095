/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools that cannot be given back, because blocks in them live or a queue may
 * still use their memory. They are never touched again; the list only keeps
 * them reachable, so that a leak checker does not report them a second time,
 * and tells which devices must stay open. What is here no longer counts among
 * its device's users: the user has let go of it.
 */
#include "policy/private.h"

#include <stdatomic.h>

static onuma__pool *kept_pools; /* under the policy lock */

void onuma__pool_keep(onuma__pool *pool) {
    onuma__pools_leave(pool);
    onuma__keeper_leave(pool);
    onuma__engine_forget_keys(pool->owner.engine); /* its handle is dead, and no thread may go on allocating */
    onuma__policy_lock();
    pool->handler = NULL;
    pool->next_kept = kept_pools;
    kept_pools = pool;
    onuma__policy_unlock();
    atomic_fetch_sub_explicit(&pool->owner.device->users, 1, memory_order_release);
}

bool onuma__device_is_kept(const onuma__device *device) {
    onuma__policy_lock();
    const onuma__pool *pool = kept_pools;
    while (pool != NULL && pool->owner.device != device)
        pool = pool->next_kept;
    onuma__policy_unlock();
    return pool != NULL || onuma__imports_kept(device);
}
