/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What to do when an allocation finds nothing free. From the cheapest to the
 * dearest:
 *
 *     poll      markers that have passed make freed blocks reusable
 *     behind    if the program allows it, and the pool would otherwise grow beyond what it ever needed: the queue
 *               waits, on the device, for another one, and takes over what that freed
 *     patience  a moment for queues, if the pool would otherwise grow beyond what it ever needed
 *     grow      a new segment, or more pages of the range, within the limits; beyond a soft one, caches and free memory
 *               go back first
 *     --- only when limit or driver refuse:
 *     caches    free blocks that other threads keep come back to the pool
 *     trim      wholly free segments go back, so that one that fits may come
 *     others    the same of the runtime's other pools
 *     behind    as above
 *     wait      a bounded time, if bytes that queues still use would be enough
 *     handler   the user's, and then all of this again
 *     fail      with all figures in the text
 *
 * Taking every thread's caches before each new segment would be slow in every
 * program that grows, and would gain it little: the caches are bounded. So they
 * are taken only when there is no other way to get memory.
 */
#include "policy/private.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

/* How long one allocation waits for queues in all. Work on a device is usually done in milliseconds; what takes
 * longer than this is rather stuck, and the user's handler can do more about it than we. */
#define LONGEST_WAIT UINT64_C(1000000000)

/* How often a handler may say "try again" in one allocation: one that always does must not hang the program. */
#define HANDLER_ROUNDS 16

/* New memory that other threads took before we could, so often in a row, is a defect and not bad luck. */
#define GROW_ROUNDS 1000

typedef struct request {
    onuma__pool *pool;
    size_t size, align;
    onuma__tag tag;
    void **out;
} request;

static bool is_short(onuma_result r) {
    return r == ONUMA_ERROR_LIMIT || r == ONUMA_ERROR_OUT_OF_MEMORY;
}

static onuma_result serve(const request *q) {
    return onuma__engine_alloc(q->pool->owner.engine, q->size, q->align, q->tag, q->out);
}

/* What no growth can ever serve is refused before the engine reserves addresses and books for it. */
static onuma_result check_possible(const request *q) {
    size_t limit = atomic_load_explicit(&q->pool->limit, memory_order_relaxed);
    uint64_t total = q->pool->simulate ? 0 : q->pool->owner.device->info.memory_total;
    const onuma__budget *budget = q->pool->owner.device->budget;
    const size_t limit_of_all = budget != NULL ? atomic_load_explicit(&budget->limit, memory_order_relaxed) : 0;
    if ((limit != 0 && q->size > limit) || (limit_of_all != 0 && q->size > limit_of_all))
        return onuma__fail(ONUMA_ERROR_LIMIT, "the block alone is larger than the limit");
    if (total != 0 && (q->size > total || q->align > total))
        return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY,
                           "size or alignment (%zu) is more than the %" PRIu64 " bytes that device %s has in all",
                           q->align, total, q->pool->owner.device->id);
    return ONUMA_OK;
}

/* From new memory. Never ONUMA__MISS. */
static onuma_result grow(const request *q) {
    onuma_result possible = check_possible(q);
    if (possible != ONUMA_OK) return possible;
    for (int i = 0; i < GROW_ROUNDS; i++) {
        *q->out = NULL;
        onuma_result r = onuma__engine_grow(q->pool->owner.engine, q->size, q->align, q->tag, q->out);
        if (r != ONUMA_OK || *q->out != NULL) return r;
        r = serve(q);
        if (r != ONUMA__MISS) return r;
    }
    return onuma__fail(ONUMA_ERROR_INTERNAL, "pool \"%s\": %d new segments and still no place for %zu bytes",
                       q->pool->name, GROW_ROUNDS, q->size);
}

static onuma_result serve_or_grow(const request *q) {
    onuma_result r = serve(q);
    return r == ONUMA__MISS ? grow(q) : r;
}

/* Some room was made: try, dropping empty segments if need be: first as many as the request takes, then all. */
static onuma_result try_with_trim(const request *q) {
    onuma_result r = serve_or_grow(q);
    size_t reserved = atomic_load_explicit(&q->pool->reserved, memory_order_relaxed);
    const size_t keep[] = {reserved > q->size ? reserved - q->size : 0, 0};
    for (size_t i = 0; i < sizeof keep / sizeof *keep && is_short(r); i++)
        if (onuma__engine_trim(q->pool->owner.engine, keep[i]) != 0) r = grow(q);
    return r;
}

/* Whether frees that wait for queues could make the request fit. */
static bool wait_could_help(const request *q) {
    onuma_pool_stats stats = ONUMA_POOL_STATS_INIT;
    onuma__engine_get_stats(q->pool->owner.engine, &stats);
    if (stats.pending_bytes == 0) return false;
    size_t limit = atomic_load_explicit(&q->pool->limit, memory_order_relaxed);
    return limit == 0 || (stats.in_use_bytes <= limit && q->size <= limit - stats.in_use_bytes);
}

static onuma_result wait_for_queues(const request *q, uint64_t deadline, onuma_result r) {
    while (is_short(r) && wait_could_help(q)) {
        uint64_t now = onuma__os_now();
        if (now >= deadline || !onuma__sync_wait(q->pool->owner.engine, deadline - now)) break;
        r = try_with_trim(q);
    }
    return r;
}

/* From what other queues freed, with this one behind them from now on. ONUMA__MISS: there is no such memory. */
static onuma_result go_behind(const request *q) {
    onuma_result r = ONUMA__MISS;
    while (q->pool->device_wait && r == ONUMA__MISS && onuma__sync_go_behind(q->pool->owner.engine, q->tag))
        r = serve(q);
    return r;
}

/* What the library can do by itself. A request that can never be served must cost the others nothing. */
static onuma_result make_room(const request *q, uint64_t deadline) {
    onuma_result possible = check_possible(q);
    if (possible != ONUMA_OK) return possible;
    (void)onuma__engine_take_caches(q->pool->owner.engine);
    onuma__visit visit;
    onuma__pools_begin(&visit, q->pool);
    onuma_result r = try_with_trim(q);
    onuma__pools_end(&visit);
    if (is_short(r) && onuma__pools_trim_others(q->pool) != 0) r = serve_or_grow(q);
    const onuma_result behind = is_short(r) ? go_behind(q) : ONUMA__MISS;
    return behind != ONUMA__MISS ? behind : wait_for_queues(q, deadline, r);
}

/* Above a soft limit a pool grows, but keeps nothing in vain: what cannot serve the request goes back before. */
static onuma_result grow_softly(const request *q) {
    onuma__engine *engine = q->pool->owner.engine;
    if (!onuma__pool_is_over_soft(q->pool, q->size)) return grow(q);
    onuma_result r = onuma__engine_take_caches(engine) ? serve(q) : ONUMA__MISS;
    if (r != ONUMA__MISS) return r;
    (void)onuma__engine_trim(engine, 0);
    if (onuma__pool_is_over_soft(q->pool, q->size)) (void)onuma__pools_trim_others(q->pool);
    return grow(q);
}

/* Whether the user's handler says that another try is worth it. */
static bool ask_handler(const request *q) {
    onuma__os_thread *thread = onuma__os_thread_get();
    if (thread->number == 0 || thread->in_handler != 0) return false;
    onuma__policy_lock();
    onuma_oom_handler *handler = q->pool->handler;
    void *user = q->pool->handler_user;
    onuma__policy_unlock();
    if (handler == NULL) return false;
    thread->in_handler++;
    bool again = handler(user, q->pool->owner.handle, q->size);
    thread->in_handler--;
    return again;
}

static onuma_result fail(const request *q, onuma_result r) {
    onuma_pool_stats stats = ONUMA_POOL_STATS_INIT;
    onuma__engine_get_stats(q->pool->owner.engine, &stats);
    char cause[160], device_free[64] = "";
    (void)snprintf(cause, sizeof cause, "%s", onuma_last_error());
    uint64_t bytes = onuma__pool_device_free(q->pool);
    if (bytes != 0) (void)snprintf(device_free, sizeof device_free, ", device has %" PRIu64 " free", bytes);
    return onuma__fail(r,
                       "pool \"%s\": no room for %zu bytes: reserved %" PRIu64 ", in use %" PRIu64
                       ", waiting for queues %" PRIu64 ", limit %zu%s; %s. Cause: %s",
                       q->pool->name, q->size, stats.reserved_bytes, stats.in_use_bytes, stats.pending_bytes,
                       atomic_load_explicit(&q->pool->limit, memory_order_relaxed), device_free,
                       r == ONUMA_ERROR_LIMIT ? "free blocks, or raise the limit with onuma_pool_set_limit"
                                              : "free blocks here or in other pools of the device",
                       cause);
}

/*
 * A program that runs ahead of its queue frees and allocates what the queue still holds: then the pool would grow by as
 * much as the program is ahead, for good. The queue needs a millisecond or so; as long as a segment may take.
 * Where it takes longer the waits are soon in vain, and then they come ever more rarely.
 */
static bool wait_rather_than_swell(const request *q) {
    onuma__pool *pool = q->pool;
    if (pool->wait == 0 || !onuma__engine_would_swell(pool->owner.engine, q->size)) return false;
    const uint32_t skip = atomic_load_explicit(&pool->waits_skipped, memory_order_relaxed);
    if (skip != 0) {
        atomic_store_explicit(&pool->waits_skipped, skip - 1, memory_order_relaxed);
        return false;
    }
    uint64_t now = onuma__os_now();
    const uint64_t deadline = now + pool->wait;
    bool any = false;
    while (now < deadline && onuma__engine_would_swell(pool->owner.engine, q->size) &&
           onuma__sync_wait(pool->owner.engine, deadline - now)) {
        any = true;
        now = onuma__os_now();
    }
    if (!any && onuma__os_now() < deadline) return false; /* nothing there to wait for, which took no time */
    const uint32_t in_vain = any ? 0 : atomic_load_explicit(&pool->waits_in_vain, memory_order_relaxed) + 1;
    atomic_store_explicit(&pool->waits_in_vain, in_vain, memory_order_relaxed);
    atomic_store_explicit(&pool->waits_skipped, in_vain != 0 ? 1u << (in_vain < 10 ? in_vain : 10) : 0,
                          memory_order_relaxed);
    return any;
}

onuma_result onuma__ladder_climb(onuma__pool *pool, size_t size, size_t align, onuma__tag tag, void **out) {
    const request q = {.pool = pool, .size = size, .align = align, .tag = tag, .out = out};
    onuma_result r = onuma__sync_poll(pool->owner.engine) ? serve(&q) : ONUMA__MISS;
    if (r == ONUMA__MISS && onuma__engine_would_swell(pool->owner.engine, size)) r = go_behind(&q);
    if (r == ONUMA__MISS && wait_rather_than_swell(&q)) r = serve(&q);
    if (r == ONUMA__MISS) r = grow_softly(&q);
    if (!is_short(r)) return r;

    uint64_t deadline = onuma__os_now() + LONGEST_WAIT;
    for (int round = 0; round <= HANDLER_ROUNDS; round++) {
        r = make_room(&q, deadline);
        if (r == ONUMA_OK) atomic_fetch_add_explicit(&pool->oom_retry_count, 1, memory_order_relaxed);
        if (!is_short(r)) return r;
        if (round == HANDLER_ROUNDS || !ask_handler(&q)) break;
    }
    return fail(&q, r);
}
