/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queues that go behind others. What a queue freed would serve another one only when a marker has passed; unless the
 * other waits for that marker itself, on the device, where nobody's CPU is held up. Then its work comes after, and the
 * memory is its own as if it had freed it.
 *
 * That puts an order between two queues that the program did not make, so it has to allow it (pool.device_wait): a
 * program that holds back work of one queue by hand until something of the other is done would hang, and work that
 * fails may take along what waits for it.
 */
#include "sync/internal.h"

/* The poller's: the last epoch of a note that waits behind a marker which its driver has, with something still in it; NULL. */
static onuma__marker *last_recorded(const onuma__ledger *ledger, const onuma__note *note, uint64_t *number) {
    onuma__marker *found = NULL;
    for (size_t i = 0; i < ONUMA__EPOCHS; i++) {
        onuma__marker *marker = note->epochs[i].waits ? note->epochs[i].marker : NULL;
        if (!marker || onuma__marker_state(marker) != ONUMA__MARKER_RECORDED) continue;
        if (found && note->epochs[i].number < *number) continue;
        found = marker;
        *number = note->epochs[i].number;
    }
    const bool any = found && onuma__engine_tag_waits(ledger->engine, note->queue->shared.tag, *number);
    return any ? found : NULL;
}

/*
 * A marker of the waiter is behind its wait, and so behind the other queue's: that is why what changes over may count
 * as freed on the waiter. The wait goes first, so that nobody gets the memory without it.
 */
static bool go_behind(onuma__ledger *ledger, onuma__queue_object *waiter) {
    bool any = false;
    if (!onuma__ledger_claim(ledger)) return false;
    onuma__os_lock_acquire(&ledger->lock);
    onuma__note *note = ledger->notes;
    onuma__os_lock_release(&ledger->lock);
    for (; note && !any; note = note->next) {
        const onuma__queue *other = &note->queue->shared;
        uint64_t number = 0;
        if (note->queue == waiter || other->device != waiter->shared.device) continue;
        const onuma__marker *marker = last_recorded(ledger, note, &number);
        if (!marker || onuma__queue_wait_marker(waiter, marker) != ONUMA_OK) continue;
        any = onuma__engine_tag_move(ledger->engine, other->tag, number, waiter->shared.tag);
    }
    onuma__ledger_unclaim(ledger);
    return any;
}

bool onuma__sync_go_behind(onuma__engine *engine, onuma__tag tag) {
    onuma__queue_object *waiter = tag != 0 ? onuma__queue_by_tag(tag) : NULL;
    onuma__dead dead = {0};
    bool any = false;
    if (waiter && waiter->in_order && (waiter->shared.device->info.abilities & ONUMA_ABILITY_WAIT) != 0) {
        onuma__ledger *ledger = onuma__ledger_get(engine, engine, false);
        any = ledger && go_behind(ledger, waiter);
        if (ledger) onuma__ledger_put(ledger);
    }
    onuma__queue_drop(waiter, &dead);
    onuma__dead_bury(&dead);
    return any;
}
