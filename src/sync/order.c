/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order between queues, as far as the library was told of it: for reports of check:hazards alone. Nothing else
 * relies on it, since a program that made an order wrongly must not lose memory by it.
 *
 * Each queue counts its batches. What a queue waits for is a list of (other queue, batch): its later work comes
 * after the other's work up to that batch, and after whatever the other's had been ordered behind. Where the list is
 * not known (memory was out), everything counts as ordered: a report that is missing harms less than one that is wrong.
 * The same holds for batches: one that is not sealed yet counts with those before it, and an event stands for all
 * that the queue had been given when it was announced.
 */
#include <stdlib.h>

#include "sync/internal.h"

typedef struct entry {
    onuma__tag tag;
    uint64_t batch;
} entry;

struct onuma__order {
    size_t count, capacity;
    entry entries[];
};

static entry *find(const onuma__queue_object *queue, onuma__tag tag) {
    onuma__order *order = queue->order;
    for (size_t i = 0; order && i < order->count; i++)
        if (order->entries[i].tag == tag) return &order->entries[i];
    return NULL;
}

/* The queue's lock is held. */
static void add(onuma__queue_object *queue, onuma__tag tag, uint64_t batch) {
    entry *known = find(queue, tag);
    if (known) {
        if (known->batch < batch) known->batch = batch;
        return;
    }
    onuma__order *order = queue->order;
    if (!order || order->count == order->capacity) {
        size_t capacity = order ? order->capacity * 2 : 4;
        onuma__order *wider = realloc(order, sizeof *wider + capacity * sizeof wider->entries[0]);
        if (!wider) {
            queue->order_unknown = true;
            return;
        }
        if (!order) wider->count = 0;
        wider->capacity = capacity;
        queue->order = order = wider;
    }
    order->entries[order->count++] = (entry){tag, batch};
}

void onuma__order_note(onuma__queue_object *queue, onuma__queue_object *on) {
    /* A copy, so that never two queues are locked at once. */
    onuma__order *copy = NULL;
    onuma__os_lock_acquire(&on->lock);
    const uint64_t batch = on->batch_count + (on->batches != NULL);
    bool unknown = on->order_unknown;
    if (on->order && on != queue) {
        copy = malloc(sizeof *copy + on->order->count * sizeof copy->entries[0]);
        unknown = unknown || !copy;
        if (copy) {
            copy->count = on->order->count;
            for (size_t i = 0; i < copy->count; i++)
                copy->entries[i] = on->order->entries[i];
        }
    }
    onuma__os_lock_release(&on->lock);
    onuma__os_lock_acquire(&queue->lock);
    queue->order_unknown = queue->order_unknown || unknown;
    add(queue, on->shared.tag, batch);
    for (size_t i = 0; copy && i < copy->count; i++)
        add(queue, copy->entries[i].tag, copy->entries[i].batch);
    onuma__os_lock_release(&queue->lock);
    free(copy);
}

bool onuma__order_covers(onuma__queue_object *queue, const onuma__queue_object *on, uint64_t batch) {
    onuma__os_lock_acquire(&queue->lock);
    const entry *known = find(queue, on->shared.tag);
    const bool covers = queue->order_unknown || (known && known->batch >= batch);
    onuma__os_lock_release(&queue->lock);
    return covers;
}

void onuma__order_forget(onuma__queue_object *queue) {
    free(queue->order);
    queue->order = NULL;
}
