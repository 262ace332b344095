/* SPDX-License-Identifier: Apache-2.0 */
/* The pool object's life: made of an engine and a source, given back whole, or kept in quarantine. */
#include "policy/private.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"

/* ---------------------------------------------------------------- creating */

static const char *kind_name(onuma_kind kind) {
    static const char *const names[] = {"host", "shared", "device"};
    return kind < sizeof names / sizeof *names ? names[kind] : "?";
}

static onuma_result check_desc(const onuma__device *device, const onuma_pool_desc *desc) {
    if (desc->kind > ONUMA_KIND_DEVICE)
        return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "pool: kind %" PRIu32 " is not one of ONUMA_KIND_*",
                           desc->kind);
    if (desc->source > ONUMA_SOURCE_SEGMENTS)
        return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "pool: source %" PRIu32 " is not one of ONUMA_SOURCE_*",
                           desc->source);
    if (desc->alignment != 0 && !onuma__is_power_of_two(desc->alignment))
        return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "pool: alignment %zu is not a power of two", desc->alignment);
    const bool missing = (device->info.kinds & 1u << desc->kind) == 0;
    if (missing && device->info.sharing_detail[0] != '\0')
        return onuma__fail(ONUMA_ERROR_NOT_SUPPORTED,
                           "device %s has no memory of kind %s: %s (opennuma doctor says more; kind device works)",
                           device->id, kind_name(desc->kind), device->info.sharing_detail);
    if (missing)
        return onuma__fail(ONUMA_ERROR_NOT_SUPPORTED,
                           "device %s has no memory of kind %s; the bits of onuma_device_info.kinds say which it has",
                           device->id, kind_name(desc->kind));
    return ONUMA_OK;
}

/* RANGE or SEGMENTS. */
static onuma_result choose_mode(const onuma__device *device, const onuma_pool_desc *desc, onuma_source *mode) {
    const bool reserves = (device->info.abilities & ONUMA_ABILITY_RESERVE) != 0 &&
                          (device->info.unreserved_kinds & 1u << desc->kind) == 0;
    const bool can_reserve = desc->simulate || reserves;
    if (desc->source == ONUMA_SOURCE_RANGE && !can_reserve)
        return onuma__fail(ONUMA_ERROR_NOT_SUPPORTED,
                           "device %s cannot reserve addresses apart from memory of kind %s, so it has no ranges; ask "
                           "for ONUMA_SOURCE_SEGMENTS or _AUTO",
                           device->id, kind_name(desc->kind));
    *mode = desc->source != ONUMA_SOURCE_AUTO ? desc->source : can_reserve ? ONUMA_SOURCE_RANGE : ONUMA_SOURCE_SEGMENTS;
    return ONUMA_OK;
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

static onuma__engine_desc engine_desc(onuma__pool *pool, const onuma_pool_desc *desc, onuma_source mode) {
    const onuma__device *device = pool->owner.device;
    size_t max_segment = (size_t)device->info.max_segment;
    size_t segment = desc->segment_bytes != 0 ? desc->segment_bytes : (size_t)device->config->pool_segment;
    if (max_segment != 0 && segment > max_segment) segment = max_segment;
    return (onuma__engine_desc){
        .source =
            pool->simulate ? onuma__simulated_source(pool) : onuma__backend_source(pool, mode == ONUMA_SOURCE_RANGE),
        .mode = mode,
        .alignment = larger(larger(device->info.alignment, desc->alignment), 16),
        .segment_bytes = segment,
        .max_segment = pool->simulate ? 0 : max_segment,
        .cache_bytes = (size_t)device->config->pool_cache,
        .exact_peaks = device->config->track == ONUMA__TRACK_FULL,
        .owner = pool,
    };
}

static void set_name(onuma__pool *pool, const char *name) {
    if (name != NULL)
        (void)snprintf(pool->name, sizeof pool->name, "%s", name);
    else
        (void)snprintf(pool->name, sizeof pool->name, "%s %s", pool->owner.device->id, kind_name(pool->owner.kind));
}

onuma_result onuma__pool_create(onuma__device *device, const onuma_pool_desc *desc, onuma__pool **out) {
    onuma_result r = onuma__device_open(device);
    if (r != ONUMA_OK) return r;
    r = check_desc(device, desc);
    if (r != ONUMA_OK) return r;
    onuma_source mode = ONUMA_SOURCE_AUTO;
    r = choose_mode(device, desc, &mode);
    if (r != ONUMA_OK) return r;

    onuma__pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL) return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for a pool's record");
    pool->owner.device = device;
    pool->owner.kind = desc->kind;
    pool->owner.segment = desc->simulate ? onuma__simulated_segment : onuma__backend_segment;
    pool->simulate = desc->simulate;
    pool->wait = device->config->pool_wait;
    pool->device_wait = device->config->pool_device_wait != 0;
    atomic_init(&pool->limit, desc->limit_bytes);
    set_name(pool, desc->name);
    if (device->config->track == ONUMA__TRACK_FULL) {
        pool->sites = onuma__sites_create();
        if (pool->sites == NULL) {
            r = ONUMA_ERROR_OUT_OF_MEMORY;
            goto free_pool;
        }
    }
    onuma__engine_desc engine = engine_desc(pool, desc, mode);
    r = onuma__engine_create(&engine, &pool->owner.engine);
    if (r != ONUMA_OK) goto destroy_sites;
    r = onuma__sync_begin_engine(pool->owner.engine);
    if (r != ONUMA_OK) goto destroy_engine;
    pool->due = onuma__engine_due(pool->owner.engine);
    atomic_fetch_add_explicit(&device->users, 1, memory_order_relaxed);
    onuma__decay_start(pool, onuma__os_now());
    onuma__pools_enter(pool);
    onuma__keeper_want(pool);
    if (pool->sites != NULL) onuma__tracking_changed(true);
    *out = pool;
    return ONUMA_OK;

destroy_engine:
    onuma__engine_destroy(pool->owner.engine);
destroy_sites:
    onuma__sites_destroy(pool->sites);
free_pool:
    free(pool);
    return r;
}

/* -------------------------------------------------------------- destroying */

/* Of a pool whose memory nobody uses any more. */
static void give_back(onuma__pool *pool) {
    onuma__device *device = pool->owner.device;
    onuma__pools_leave(pool);
    onuma__keeper_leave(pool);
    onuma__engine_destroy(pool->owner.engine);
    if (pool->sites != NULL) onuma__tracking_changed(false);
    onuma__sites_destroy(pool->sites);
    free(pool);
    /* release: our calls to the driver come before the device's end, which reads this. */
    atomic_fetch_sub_explicit(&device->users, 1, memory_order_release);
}

/*
 * How long to wait for queues that still use what was freed. Not zero: their last marker may be recorded only now,
 * and a driver needs a moment to say that it has passed, even of a queue that finished long ago.
 */
#define TRIM_PATIENCE (UINT64_C(50) * 1000 * 1000)
#define DESTROY_PATIENCE (UINT64_C(1000) * 1000 * 1000)

/* Rounds that finish what has passed already, even when a slow machine has used up the patience; other threads may make
 * progress for ever. */
#define LEAST_ROUNDS 16

/* Finish all that is freed. What caches hold for a queue waits for that queue once it has left the cache, and frees that
 * are finished may go into a cache first. */
static void settle_frees(onuma__pool *pool, uint64_t patience_ns) {
    onuma__engine *engine = pool->owner.engine;
    const uint64_t deadline = onuma__os_now() + patience_ns;
    bool progress = true;
    for (int round = 0; progress; round++) {
        progress = onuma__engine_take_caches(engine);
        if (onuma__sync_poll(engine)) progress = true;
        const uint64_t now = onuma__os_now();
        if (now >= deadline)
            progress = progress && round < LEAST_ROUNDS;
        else if (!progress) /* returns at once when nothing waits */
            progress = onuma__sync_wait(engine, deadline - now);
    }
}

onuma_result onuma__pool_check_idle(onuma__pool *pool) {
    settle_frees(pool, DESTROY_PATIENCE);
    onuma_pool_stats stats = ONUMA_POOL_STATS_INIT;
    onuma__engine_get_stats(pool->owner.engine, &stats);
    if (stats.in_use_blocks != 0)
        return onuma__fail(ONUMA_ERROR_BUSY,
                           "pool \"%s\": %" PRIu64 " blocks of %" PRIu64
                           " bytes live; free them, or use onuma_pool_destroy_forced",
                           pool->name, stats.in_use_blocks, stats.in_use_bytes);
    uint64_t waiting = onuma__sync_pending(pool->owner.engine);
    if (waiting != 0 || stats.pending_bytes != 0)
        return onuma__fail(ONUMA_ERROR_BUSY,
                           "pool \"%s\": queues still use %" PRIu64 " freed bytes (%" PRIu64
                           " frees wait); finish the queues first, or use onuma_pool_destroy_forced",
                           pool->name, stats.pending_bytes, waiting);
    return ONUMA_OK;
}

void onuma__pool_destroy(onuma__pool *pool) {
    /* Looked at again: a call that raced with this one may have made it busy, and then its memory must stay. */
    if (onuma__pool_check_idle(pool) == ONUMA_OK && onuma__sync_drop_idle_engine(pool->owner.engine))
        give_back(pool);
    else
        onuma__pool_keep(pool);
}

static bool count_leak(void *user, const onuma__block *block) {
    onuma__leaks_add(user, block->base, block->requested);
    return true;
}

uint64_t onuma__pool_report_leaks(onuma__pool *pool) {
    onuma__leaks leaks = {.pool = pool->name, .log = pool->owner.device->log, .sites = pool->sites};
    if (leaks.sites == NULL) leaks.hint = " (OPENNUMA_CONF=track:full tells where they were allocated)";
    onuma__engine_walk(pool->owner.engine, count_leak, &leaks);
    onuma__leaks_report(&leaks);
    return leaks.count;
}

typedef struct batch {
    size_t count;
    void *blocks[64];
} batch;

static bool add_to_batch(void *user, const onuma__block *block) {
    batch *to = user;
    to->blocks[to->count++] = block->base;
    return to->count < sizeof to->blocks / sizeof *to->blocks;
}

/* Every live block becomes held for ever: a later free of it is refused, and nothing reuses it. In batches, because
 * the engine must not be called from within its walk. */
static void invalidate_blocks(onuma__pool *pool) {
    batch some;
    do {
        some.count = 0;
        onuma__engine_walk(pool->owner.engine, add_to_batch, &some);
        for (size_t i = 0; i < some.count; i++) {
            onuma__engine *engine;
            /* Whatever it says: another thread may have freed it since, and that is as well. */
            (void)onuma__engine_free(some.blocks[i], ONUMA__TAG_HOLD, &engine);
        }
    } while (some.count != 0);
}

void onuma__pool_destroy_forced(onuma__pool *pool, uint64_t timeout_ns) {
    (void)onuma__pool_report_leaks(pool);
    if (onuma__sync_drop_engine(pool->owner.engine, timeout_ns)) {
        give_back(pool);
        return;
    }
    onuma__log_write(pool->owner.device->log, ONUMA_LOG_WARN,
                     "pool \"%s\": queues still use its memory, so it stays mapped until the process ends", pool->name);
    invalidate_blocks(pool);
    onuma__pool_keep(pool);
}

bool onuma__pool_retire(onuma__pool *pool, uint64_t timeout_ns) {
    bool leaked = onuma__pool_report_leaks(pool) != 0;
    bool unused = onuma__sync_drop_engine(pool->owner.engine, timeout_ns);
    if (!leaked && unused) {
        give_back(pool);
        return true;
    }
    onuma__pool_keep(pool);
    return false;
}

/* --------------------------------------------------------------- the rest */

uint64_t onuma__pool_device_free(onuma__pool *pool) {
    const onuma__device *device = pool->owner.device;
    onuma_backend_device *backend = atomic_load_explicit(&device->backend, memory_order_acquire);
    uint64_t bytes = 0;
    if (pool->simulate || backend == NULL || device->ops->memory_free(backend, &bytes) != ONUMA_OK) return 0;
    return bytes;
}

size_t onuma__pool_trim(onuma__pool *pool, size_t keep) {
    settle_frees(pool, TRIM_PATIENCE);
    onuma__visit visit;
    onuma__pools_begin(&visit, pool);
    const size_t given = onuma__engine_trim(pool->owner.engine, keep);
    onuma__pools_end(&visit);
    return given;
}

void onuma__pool_set_limit(onuma__pool *pool, size_t limit) {
    atomic_store_explicit(&pool->limit, limit, memory_order_relaxed);
}

void onuma__pool_set_soft_limit(onuma__pool *pool, size_t limit) {
    atomic_store_explicit(&pool->soft_limit, limit, memory_order_relaxed);
}

void onuma__pool_set_handler(onuma__pool *pool, onuma_oom_handler *handler, void *user) {
    onuma__policy_lock();
    pool->handler = handler;
    pool->handler_user = user;
    onuma__policy_unlock();
}

void onuma__pool_get_stats(onuma__pool *pool, onuma_pool_stats *out) {
    onuma__engine_get_stats(pool->owner.engine, out);
    /* Ours keep to the limit at every moment, while the engine counts only after its source has answered. */
    out->reserved_bytes = atomic_load_explicit(&pool->reserved, memory_order_relaxed);
    out->reserved_bytes_peak = atomic_load_explicit(&pool->reserved_peak, memory_order_relaxed);
    out->oom_retry_count = atomic_load_explicit(&pool->oom_retry_count, memory_order_relaxed);
    out->alloc_failure_count = atomic_load_explicit(&pool->alloc_failure_count, memory_order_relaxed);
}

void onuma__pool_reset_peak(onuma__pool *pool) {
    onuma__engine_reset_peak(pool->owner.engine);
    atomic_store_explicit(&pool->reserved_peak, atomic_load_explicit(&pool->reserved, memory_order_relaxed),
                          memory_order_relaxed);
}
