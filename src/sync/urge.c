/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bringing queues on. Some advance only if the program does something for them, and say how (the desc's `wait`). Whoever
 * waits collects the queues that are in the way while it has them in hand, and calls them when it has let go of
 * everything: such a function may block until its queue has got further.
 */
#include "sync/internal.h"

void onuma__urge_add(onuma__urge *urge, onuma__queue_object *queue) {
    if (!queue->wait_native || urge->count == ONUMA__URGED) return;
    for (size_t i = 0; i < urge->count; i++)
        if (urge->queues[i] == queue) return;
    urge->queues[urge->count++] = onuma__queue_retain(queue);
}

void onuma__urge_call(onuma__urge *urge, bool call, onuma__dead *dead) {
    for (size_t i = 0; i < urge->count; i++) {
        if (call) urge->queues[i]->wait_native(urge->queues[i]->user);
        onuma__queue_drop(urge->queues[i], dead);
    }
    urge->count = 0;
}
