/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What pools do when the system is short of memory. The first sign lets all that
 * is idle decay at once; a second within some seconds trims the pools, caches
 * included; from the third on the program's handler is asked too. A limit of
 * this very process that was reached leaves no time for that: then all of it at
 * once. Where no sign has come for a while it begins anew.
 */
#include "policy/private.h"

#define CALM UINT64_C(10000000000) /* ns without a sign */

typedef enum { DECAY = 1, TRIM, ASK } step;

/* Only the keeper's thread, of which there is one at a time, answers. */
static struct {
    uint64_t number, last; /* signs ever; when the last came */
    step reached;
} signs;

void onuma__budget_set_handler(onuma__budget *budget, onuma_runtime *runtime, onuma_pressure_handler *handler,
                               void *user) {
    onuma__policy_lock();
    budget->handler = handler;
    budget->handler_user = user;
    budget->runtime = runtime;
    onuma__policy_unlock();
}

static bool listens(const onuma__pool *pool) {
    return pool->owner.device->config->pressure != 0 && !pool->simulate;
}

static void decay(onuma__visit *visit, void *user) {
    (void)user;
    if (listens(visit->pool)) onuma__decay_now(visit);
}

static void trim(onuma__visit *visit, void *user) {
    (void)user;
    onuma__engine *engine = visit->pool->owner.engine;
    if (!listens(visit->pool)) return;
    (void)onuma__engine_take_caches(engine);
    (void)onuma__sync_poll(engine);
    if (!visit->gone) (void)onuma__engine_trim(engine, 0);
}

/* Once for each runtime: its pools share a budget. In a visit, so that the runtime stays meanwhile. */
static void ask(onuma__visit *visit, void *user) {
    (void)user;
    onuma__budget *budget = visit->pool->owner.device->budget;
    if (!listens(visit->pool) || budget == NULL || budget->answered == signs.number) return;
    budget->answered = signs.number;
    onuma__policy_lock();
    onuma_pressure_handler *handler = budget->handler;
    void *handler_user = budget->handler_user;
    onuma_runtime *runtime = budget->runtime;
    onuma__policy_unlock();
    if (handler != NULL) handler(handler_user, runtime);
}

void onuma__pressure_answer(onuma__os_pressure how, uint64_t now) {
    if (how == ONUMA__OS_QUIET) return;
    step next = signs.reached != 0 && now - signs.last < CALM ? signs.reached + 1 : DECAY;
    if (how == ONUMA__OS_STARVED || next > ASK) next = ASK;
    signs.number++;
    signs.last = now;
    signs.reached = next;
    if (next == DECAY)
        (void)onuma__pools_visit(decay, NULL);
    else
        (void)onuma__pools_visit(trim, NULL);
    if (next == ASK) (void)onuma__pools_visit(ask, NULL);
}
