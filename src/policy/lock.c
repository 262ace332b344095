/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/private.h"

static onuma__os_lock lock;

static void take(void) {
    onuma__os_lock_acquire(&lock);
}

static void give(void) {
    onuma__os_lock_release(&lock);
}

static void give_in_child(void) {
    onuma__pools_in_child();
    onuma__keeper_in_child();
    give();
}

static void watch_forks(void) {
    onuma__os_at_fork(3, take, give, give_in_child);
}

void onuma__policy_lock(void) {
    static onuma__os_once once;
    onuma__os_once_run(&once, watch_forks);
    take();
}

void onuma__policy_unlock(void) {
    give();
}
