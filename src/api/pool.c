/* SPDX-License-Identifier: Apache-2.0 */
#include "api/check.h"

onuma_result onuma_pool_create(onuma_device *d, const onuma_pool_desc *desc, onuma_pool **out) {
    onuma__device *device;
    onuma_pool_desc full = ONUMA_POOL_DESC_INIT;
    ONUMA__CHECK_OUT(out, __func__);
    onuma_result r = onuma__get_device(d, __func__, &device);
    if (r == ONUMA_OK) r = onuma__struct_read(ONUMA__STRUCT(onuma_pool_desc, kind), desc, &full, __func__);
    if (r != ONUMA_OK) return r;
    onuma__pool *pool;
    r = onuma__pool_create(device, &full, &pool);
    if (r != ONUMA_OK) return r;
    pool->owner.handle = onuma__handle_put(ONUMA__HANDLE_POOL, pool, onuma__handle_owner(d));
    if (pool->owner.handle == NULL) {
        onuma__pool_destroy(pool);
        return ONUMA_ERROR_OUT_OF_MEMORY;
    }
    *out = pool->owner.handle;
    return ONUMA_OK;
}

/* Be the one who destroys the pool; the handle is then claimed. */
static onuma_result claim(onuma_pool *p, const char *function, onuma__pool **out) {
    bool last;
    *out = onuma__handle_drop(ONUMA__HANDLE_POOL, p, &last);
    if (*out == NULL) return onuma__handle_refuse(ONUMA__HANDLE_POOL, p, function, "p");
    onuma_result r = onuma__check_fork((*out)->owner.device, function);
    if (r != ONUMA_OK) onuma__handle_unclaim(p);
    return r;
}

onuma_result onuma_pool_destroy(onuma_pool *p) {
    if (p == NULL) return ONUMA_OK;
    onuma__pool *pool;
    onuma_result r = claim(p, __func__, &pool);
    if (r != ONUMA_OK) return r;
    r = onuma__pool_check_idle(pool);
    if (r != ONUMA_OK) {
        onuma__handle_unclaim(p);
        return r;
    }
    onuma__handle_remove(p);
    onuma__pool_destroy(pool);
    return ONUMA_OK;
}

onuma_result onuma_pool_destroy_forced(onuma_pool *p, uint64_t timeout_ns) {
    if (p == NULL) return ONUMA_OK;
    onuma__pool *pool;
    onuma_result r = claim(p, __func__, &pool);
    if (r != ONUMA_OK) return r;
    onuma__handle_remove(p);
    onuma__pool_destroy_forced(pool, timeout_ns);
    return ONUMA_OK;
}

onuma_result onuma_pool_trim(onuma_pool *p, size_t keep_bytes, size_t *released) {
    onuma__pool *pool;
    onuma_result r = onuma__get_pool(p, __func__, &pool);
    size_t bytes = r == ONUMA_OK ? onuma__pool_trim(pool, keep_bytes) : 0;
    if (released != NULL) *released = bytes;
    return r;
}

onuma_result onuma_pool_set_limit(onuma_pool *p, size_t reserved_bytes) {
    onuma__pool *pool;
    onuma_result r = onuma__get_pool(p, __func__, &pool);
    if (r == ONUMA_OK) onuma__pool_set_limit(pool, reserved_bytes);
    return r;
}

onuma_result onuma_pool_set_soft_limit(onuma_pool *p, size_t reserved_bytes) {
    onuma__pool *pool;
    onuma_result r = onuma__get_pool(p, __func__, &pool);
    if (r == ONUMA_OK) onuma__pool_set_soft_limit(pool, reserved_bytes);
    return r;
}

onuma_result onuma_pool_set_oom_handler(onuma_pool *p, onuma_oom_handler *fn, void *user) {
    onuma__pool *pool;
    onuma_result r = onuma__get_pool(p, __func__, &pool);
    if (r == ONUMA_OK) onuma__pool_set_handler(pool, fn, user);
    return r;
}

onuma_result onuma_pool_get_stats(onuma_pool *p, onuma_pool_stats *out) {
    const onuma__struct *type = ONUMA__STRUCT(onuma_pool_stats, in_use_bytes);
    onuma__pool *pool;
    onuma_pool_stats stats = ONUMA_POOL_STATS_INIT;
    onuma_result r = onuma__get_pool(p, __func__, &pool);
    if (r == ONUMA_OK) r = onuma__struct_check(type, out, __func__);
    if (r != ONUMA_OK) return r;
    onuma__pool_get_stats(pool, &stats);
    onuma__struct_write(type, &stats, out);
    return ONUMA_OK;
}

onuma_result onuma_pool_reset_peak(onuma_pool *p) {
    onuma__pool *pool;
    onuma_result r = onuma__get_pool(p, __func__, &pool);
    if (r == ONUMA_OK) onuma__pool_reset_peak(pool);
    return r;
}
