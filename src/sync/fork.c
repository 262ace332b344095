/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork: this layer's locks are taken before, outermost first, and released on
 * both sides after, so that a child finds its tables whole. The drivers' objects
 * it finds there are its parent's: markers count as lost in the child, and no
 * view or queue is given back to a driver.
 */
#include "sync/internal.h"

static void each(onuma__fork_step step) {
    onuma__shards_fork(step);
    onuma__ledgers_fork(step);
    onuma__queues_fork(step);
    onuma__views_fork(step);
}

static void each_backwards(onuma__fork_step step) {
    onuma__views_fork(step);
    onuma__queues_fork(step);
    onuma__ledgers_fork(step);
    onuma__shards_fork(step);
}

void onuma__sync_fork_before(void) {
    each(ONUMA__FORK_BEFORE);
}

void onuma__sync_fork_parent(void) {
    each_backwards(ONUMA__FORK_PARENT);
}

void onuma__sync_fork_child(void) {
    each_backwards(ONUMA__FORK_CHILD);
}
