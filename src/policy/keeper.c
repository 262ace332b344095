/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper: one thread of the library's own for all pools whose runtime wants
 * one (decay.thread, pressure). It lets memory decay while the program makes no
 * calls, and answers when the system is short of memory.
 *
 * It runs while there is such a pool. Whoever ends the last one waits until it
 * is gone, unless he is the keeper himself, in a function of the user's that the
 * library called: then the next one who starts or ends it does.
 *
 * A forked child has no such thread. It gets one at its next pool, or when its
 * calls come to upkeep.
 */
#include "policy/private.h"

#include <stdatomic.h>

#define LEAST_SLEEP UINT64_C(1000000)
#define WAIT_NS 50000

/* These under the policy lock. */
static size_t wanted; /* by so many pools */
static bool running;  /* false from the moment that it has decided to end */
static bool broken;   /* it could not be started, and that was told */
static onuma__os_worker *worker;
static onuma__os_watch *watch;
static const char *deaf;       /* why this system does not tell of pressure; NULL: it does */
static uint64_t keeper_thread; /* number of the thread; 0: none yet */

static _Atomic bool missing; /* relaxed: wanted and not running, after a fork */

static bool is_wanted_by(const onuma__pool *pool) {
    const onuma__config *config = pool->owner.device->config;
    return (pool->decay.half_life != 0 && config->decay_thread != 0) || config->pressure != 0;
}

/* Whether to go on; if not, nobody may count on the thread any more. */
static bool go_on(void) {
    onuma__policy_lock();
    keeper_thread = onuma__os_thread_get()->number;
    const bool on = wanted != 0;
    if (!on) running = false;
    onuma__policy_unlock();
    return on;
}

static void keep(void *argument) {
    onuma__os_watch *mine = argument;
    while (go_on()) {
        const uint64_t next = onuma__decay_round(onuma__os_now()), now = onuma__os_now();
        const uint64_t time = next > now ? next - now : 0;
        const onuma__os_pressure how = onuma__os_watch_sleep(mine, time > LEAST_SLEEP ? time : LEAST_SLEEP);
        if (how != ONUMA__OS_QUIET) onuma__pressure_answer(how, onuma__os_now());
    }
}

/* Under the lock: what the last keeper has left, if it is over; the caller ends it with no lock held. */
typedef struct remains {
    onuma__os_worker *worker;
    onuma__os_watch *watch;
} remains;

static remains take_remains(void) {
    const remains old = {worker, watch};
    worker = NULL;
    watch = NULL;
    keeper_thread = 0;
    return old;
}

static void bury(const remains *old) {
    onuma__os_worker_join(old->worker);
    onuma__os_watch_destroy(old->watch);
}

/* The caller has set `running`. */
static void start(const onuma__log *log) {
    onuma__os_watch *new_watch;
    onuma__os_worker *new_worker = NULL;
    const char *why;
    onuma_result r = onuma__os_watch_create(true, &new_watch, &why);
    if (r == ONUMA_OK) r = onuma__os_worker_start(keep, new_watch, &new_worker);
    onuma__policy_lock();
    const bool first = r != ONUMA_OK && !broken;
    broken = r != ONUMA_OK;
    if (r == ONUMA_OK) {
        worker = new_worker;
        watch = new_watch;
        deaf = why;
    } else {
        running = false;
    }
    onuma__policy_unlock();
    if (r == ONUMA_OK) return;
    onuma__os_watch_destroy(new_watch);
    if (first && log != NULL)
        onuma__log_write(log, ONUMA_LOG_WARN, "decay.thread, pressure: %s; memory decays when the program makes calls",
                         onuma_last_error());
}

static void start_if_missing(const onuma__log *log) {
    onuma__policy_lock();
    const bool must = wanted != 0 && !running;
    remains old = {NULL, NULL};
    if (must) {
        running = true;
        old = take_remains();
    }
    onuma__policy_unlock();
    if (!must) return;
    bury(&old);
    start(log);
}

void onuma__keeper_want(onuma__pool *pool) {
    if (!is_wanted_by(pool)) return;
    onuma__policy_lock();
    wanted++;
    pool->kept = true;
    if (watch != NULL) onuma__os_watch_wake(watch); /* to hear of the pool's times */
    onuma__policy_unlock();
    start_if_missing(pool->owner.device->log);
    onuma__policy_lock();
    const char *why = watch != NULL && pool->owner.device->config->pressure != 0 ? deaf : NULL;
    onuma__policy_unlock();
    if (why != NULL)
        onuma__log_write(pool->owner.device->log, ONUMA_LOG_WARN, "pressure: nothing is heard of it: %s", why);
}

void onuma__keeper_leave(onuma__pool *pool) {
    const uint64_t self = onuma__os_thread_get()->number;
    onuma__policy_lock();
    if (pool->kept) wanted--;
    const bool last = pool->kept && wanted == 0;
    pool->kept = false;
    if (last && watch != NULL) onuma__os_watch_wake(watch);
    /* A keeper that is just being started has not said who it is, nor is it known what it sleeps on. */
    while (last && wanted == 0 && running && keeper_thread != self) {
        if (watch != NULL) onuma__os_watch_wake(watch);
        onuma__policy_unlock();
        onuma__os_sleep(WAIT_NS);
        onuma__policy_lock();
    }
    remains old = {NULL, NULL};
    if (last && !running && keeper_thread != self) old = take_remains();
    onuma__policy_unlock();
    bury(&old);
}

void onuma__keeper_check(void) {
    if (!atomic_exchange_explicit(&missing, false, memory_order_relaxed)) return;
    start_if_missing(NULL);
}

void onuma__keeper_in_child(void) {
    if (wanted == 0) return;
    running = false;
    worker = NULL; /* the thread is not here to be joined: what describes it is left */
    keeper_thread = 0;
    atomic_store_explicit(&missing, true, memory_order_relaxed);
}
