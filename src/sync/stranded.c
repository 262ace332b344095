/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frees that must wait while there is no memory for a record of them. The engine remembers the blocks (pool/strand.c),
 * a mark on each queue that they wait for, and the ledger how many there are. The next poll that finds memory makes
 * records that wait for all queues with the mark: which of them each block waited for is not known any more.
 */
#include <stdlib.h>

#include "sync/internal.h"

#define RECALLED_AT_ONCE 16u

void onuma__ledger_strand(onuma__ledger *ledger, void *base, const onuma__need needs[2]) {
    for (size_t i = 0; i < 2; i++)
        if (needs[i].queue) atomic_store_explicit(&needs[i].queue->strands, true, memory_order_relaxed);
    atomic_fetch_add_explicit(&ledger->pending, 1, memory_order_relaxed);
    onuma__os_lock_acquire(&ledger->lock);
    ledger->stranded++;
    onuma__os_lock_release(&ledger->lock);
    onuma__engine_strand(ledger->engine, base);
}

/* A bound use, as it were, of each queue that may be at the block: their markers are made when somebody asks. NULL: memory is
 * out. */
static onuma__record *remember(const onuma__block *block, onuma__dead *dead) {
    onuma__record *record = onuma__record_create(block, NULL);
    onuma__tag after = 0;
    if (!record) return NULL;
    for (onuma__queue_object *queue; (queue = onuma__queue_next_stranding(after, record->owner)) != NULL;) {
        onuma__use *use = calloc(1, sizeof *use);
        after = queue->shared.tag;
        if (!use) {
            onuma__queue_drop(queue, dead);
            onuma__record_destroy(record, dead);
            return NULL;
        }
        use->queue = queue;
        use->owed = true;
        use->next = record->uses;
        record->uses = use;
    }
    return record;
}

/* The poller's: what the engine remembers gets records, if there is memory again. */
void onuma__ledger_recall(onuma__ledger *ledger, onuma__dead *dead) {
    onuma__block blocks[RECALLED_AT_ONCE];
    bool more = true;
    while (more) {
        onuma__os_lock_acquire(&ledger->lock);
        more = ledger->stranded != 0;
        onuma__os_lock_release(&ledger->lock);
        const size_t count = more ? onuma__engine_take_stranded(ledger->engine, blocks, RECALLED_AT_ONCE) : 0;
        more = count == RECALLED_AT_ONCE;
        for (size_t i = 0; i < count; i++) {
            onuma__record *record = remember(&blocks[i], dead);
            if (!record) onuma__engine_strand(ledger->engine, blocks[i].base);
            more = more && record;
            if (!record) continue;
            onuma__os_lock_acquire(&ledger->lock);
            ledger->stranded--;
            record->next = ledger->waiting;
            ledger->waiting = record;
            onuma__os_lock_release(&ledger->lock);
        }
    }
}
