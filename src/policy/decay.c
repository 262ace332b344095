/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decay: what a pool holds in vain goes back by and by.
 *
 * A pool may hold what was in use at most, but its memory of that fades: `high`
 * falls towards what is in use now, half of the way in each half-life, and the
 * rest of it after two. Steps are a sixteenth of a half-life apart.
 *
 *     high   |----.                        in use falls at 0
 *            |     '-._
 *     past   |--------.'-._                `high` half a half-life ago
 *            |         '-._ '--.
 *     in use |----+--------+---'----+----
 *                 0        1        2      half-lives
 *
 * Free pages beyond `high` are discarded: the system may take them when it is
 * short, and taking them again costs the pool nothing. What has been beyond it
 * for half a half-life goes back: so all has by two and a half, and three
 * allow for steps that come late. Where nothing can be discarded the same goes
 * back at the same time.
 *
 * In use counts with its peak since the last step, so a program whose need goes
 * up and down within one loses nothing. Steps are made on the long ways of
 * allocations and frees, and by the keeper's thread (keeper.c) where one is
 * wanted. Simulated pools do not decay: their figures would depend on how fast
 * the machine is.
 */
#include "policy/private.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define STEPS 16u                /* in a half-life */
#define STEP_FACTOR 0.9576032807 /* the sixteenth root of a half */
#define LONGEST (2 * STEPS)      /* steps until nothing is left */
#define AGAIN UINT64_C(1000000)  /* ns */
/* More steps at once come to the same as so many. */
#define MOST_STEPS (LONGEST + ONUMA__DECAY_DELAY)

/* When some pool's next step may be due, ns. Relaxed: looked at again with the pool in hand. */
static _Atomic uint64_t next_due;

uint64_t onuma__decay_tick(const onuma__pool *pool) {
    const uint64_t tick = pool->decay.half_life / STEPS;
    return pool->decay.half_life != 0 && tick == 0 ? 1 : tick;
}

void onuma__decay_start(onuma__pool *pool, uint64_t now) {
    const onuma__config *config = pool->owner.device->config;
    pool->decay = (onuma__decay){.at = now};
    if (pool->simulate) return;
    pool->decay.half_life = config->decay_half_life;
    pool->decay.floor = (size_t)config->decay_floor;
    atomic_store_explicit(&next_due, 0, memory_order_relaxed);
}

/* One step, with so many bytes in use since the last. */
static void fade(onuma__decay *decay, uint64_t in_use) {
    uint64_t excess = decay->high > in_use ? decay->high - in_use : 0;
    if (excess > 2 * decay->excess) decay->age = 0; /* most of it is idle only now */
    decay->age++;
    excess = decay->age < LONGEST ? (uint64_t)((double)excess * STEP_FACTOR) : 0;
    decay->excess = excess;
    decay->high = in_use + excess;
    for (unsigned i = ONUMA__DECAY_DELAY - 1; i > 0; i--)
        decay->past[i] = decay->past[i - 1];
    decay->past[0] = decay->high;
}

/* Nothing of the past counts. */
static void forget(onuma__decay *decay, uint64_t in_use) {
    decay->high = in_use;
    decay->excess = 0;
    for (unsigned i = 0; i < ONUMA__DECAY_DELAY; i++)
        decay->past[i] = in_use;
}

static size_t with_floor(const onuma__decay *decay, uint64_t bytes) {
    const size_t most = SIZE_MAX - decay->floor;
    return bytes < most ? (size_t)bytes + decay->floor : SIZE_MAX;
}

static uint64_t largest_past(const onuma__decay *decay) {
    uint64_t largest = decay->high;
    for (unsigned i = 0; i < ONUMA__DECAY_DELAY; i++)
        if (decay->past[i] > largest) largest = decay->past[i];
    return largest;
}

/* Caches are taken only where the pool itself has too little to give: their owners would have to fill them again. */
static void shrink(onuma__pool *pool, size_t filled, size_t keep) {
    onuma__engine *engine = pool->owner.engine;
    (void)onuma__engine_shrink(engine, filled, keep);
    if (atomic_load_explicit(&pool->reserved, memory_order_relaxed) <= keep) return;
    if (onuma__engine_take_caches(engine)) (void)onuma__engine_shrink(engine, filled, keep);
}

void onuma__decay_step(onuma__visit *visit, uint64_t now) {
    onuma__pool *pool = visit->pool;
    onuma__decay *decay = &pool->decay;
    const uint64_t tick = onuma__decay_tick(pool);
    if (tick == 0 || now < decay->at + tick) return;
    uint64_t steps = (now - decay->at) / tick;
    decay->at += steps * tick;
    /* What queues have done with is free only once somebody asks. */
    (void)onuma__sync_poll(pool->owner.engine);
    if (visit->gone) return;
    onuma_pool_stats stats = ONUMA_POOL_STATS_INIT;
    const uint64_t peak = onuma__engine_peak_lately(pool->owner.engine);
    onuma__engine_get_stats(pool->owner.engine, &stats);
    for (; steps > 0; steps = steps > MOST_STEPS ? MOST_STEPS : steps - 1)
        fade(decay, peak + stats.pending_bytes);
    if (onuma__pool_is_over_soft(pool, 0)) forget(decay, stats.in_use_bytes + stats.pending_bytes);
    const size_t keep = with_floor(decay, largest_past(decay));
    shrink(pool, with_floor(decay, decay->high), keep);
}

void onuma__decay_now(onuma__visit *visit) {
    onuma__pool *pool = visit->pool;
    (void)onuma__sync_poll(pool->owner.engine);
    if (visit->gone) return;
    onuma_pool_stats stats = ONUMA_POOL_STATS_INIT;
    onuma__engine_get_stats(pool->owner.engine, &stats);
    const uint64_t in_use = stats.in_use_bytes + stats.pending_bytes;
    forget(&pool->decay, in_use);
    (void)onuma__engine_shrink(pool->owner.engine, (size_t)in_use, (size_t)in_use);
}

/* ------------------------------------------------------------------ upkeep */

typedef struct round {
    uint64_t now, next;
} round;

static void look_after(onuma__visit *visit, void *user) {
    round *r = user;
    onuma__decay_step(visit, r->now);
    if (visit->gone) return;
    const uint64_t tick = onuma__decay_tick(visit->pool);
    const uint64_t due = visit->pool->decay.at + tick;
    if (tick != 0 && due < r->next) r->next = due;
}

uint64_t onuma__decay_round(uint64_t now) {
    round r = {now, UINT64_MAX};
    /* Somebody else is at a pool, and knows when it is due again; it is looked at once he has left it. */
    if (!onuma__pools_visit(look_after, &r) && r.next > now + AGAIN) r.next = now + AGAIN;
    atomic_store_explicit(&next_due, r.next, memory_order_relaxed);
    return r.next;
}

void onuma__upkeep(void) {
    onuma__keeper_check();
    const uint64_t now = onuma__os_now();
    if (now < atomic_load_explicit(&next_due, memory_order_relaxed)) return;
    /* What a driver refuses here is no failure of the call that the program made, whose own text stays. */
    char detail[ONUMA__DETAIL_BYTES];
    (void)snprintf(detail, sizeof detail, "%s", onuma_last_error());
    (void)onuma__decay_round(now);
    char *text = onuma__thread_text();
    if (text != NULL) memcpy(text, detail, sizeof detail);
}
