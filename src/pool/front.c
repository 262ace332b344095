/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/front.h"

#include "pool/keep.h"
#include "pool/node.h"

#define LOOKED_AT 4u /* nodes of one bin */

uint8_t onuma__front_bins[ONUMA__FRONT_UNITS];

/* Eight bins for each doubling from eight units on; below, one for each unit. */
void onuma__front_start(void) {
    for (unsigned units = 0; units < ONUMA__FRONT_UNITS; units++) {
        const unsigned top = 31u - (unsigned)__builtin_clz(units | 8);
        onuma__front_bins[units] = (uint8_t)((top - 3) * 8 + (units >> (top - 3)));
    }
}

static onuma__node *unlink_after(onuma__front *front, onuma__node *before) {
    onuma__node *node = before->next;
    before->next = node->next;
    onuma__heap_add(&front->bytes, -(int64_t)node->size);
    return node;
}

onuma__node *onuma__front_take(onuma__heap *heap, size_t size) {
    onuma__front *front = &heap->front;
    const unsigned bin = onuma__front_bin_of(size);
    const bool exactly = bin == ONUMA__FRONT_LARGER;
    const onuma__front_bin *of_size = &front->bins[bin];
    if (of_size->size == size || (of_size->size > size && !exactly)) return onuma__front_pop(front, bin);
    onuma__node *before = of_size->first;
    for (unsigned seen = 1; before != NULL && before->next != NULL && seen < LOOKED_AT; before = before->next, seen++)
        if (before->next->size == size || (before->next->size > size && !exactly)) return unlink_after(front, before);
    /* Any of the next bin is large enough; the last bin is for exact sizes. */
    if (bin + 1 >= ONUMA__FRONT_LARGER || front->bins[bin + 1].first == NULL) return NULL;
    return onuma__front_pop(front, bin + 1);
}

bool onuma__front_put(onuma__heap *heap, onuma__node *node) {
    const onuma__engine *engine = heap->engine;
    if (node->size > engine->front_bytes || node->align_shift != engine->classes.shift) return false;
    if ((size_t)atomic_load_explicit(&heap->front.bytes, memory_order_relaxed) + node->size > engine->front_bytes)
        onuma__front_flush(heap, 0);
    onuma__front_push(heap, node);
    return true;
}

/* Under the lock that guards it, which is exchanged for the one held; neighbours in a list mostly have the same. The free
 * itself, and what was requested, were counted when the block was freed. */
static void send_back(onuma__engine *engine, onuma__node *node, onuma__os_lock **held) {
    onuma__arena *arena = onuma__node_arena(node);
    onuma__os_lock *lock = onuma__arena_lock_or(arena, engine);
    if (lock != *held) {
        if (*held != NULL) onuma__os_lock_release(*held);
        onuma__os_lock_acquire(lock);
        *held = lock;
    }
    if (arena != NULL) {
        onuma__arena_give(arena, node);
        return;
    }
    onuma__count(engine, -(int64_t)node->size, 0, 0, 0);
    onuma__node_withdraw(node);
    onuma__node_give(engine, node, false);
}

bool onuma__front_flush(onuma__heap *heap, unsigned first) {
    onuma__front *front = &heap->front;
    onuma__engine *engine = heap->engine;
    while (first < ONUMA__FRONT_BINS && front->bins[first].first == NULL)
        first++;
    if (first == ONUMA__FRONT_BINS) return false;
    onuma__os_lock *lock = NULL;
    for (unsigned bin = first; bin < ONUMA__FRONT_BINS; bin++) {
        while (front->bins[bin].first != NULL)
            send_back(engine, onuma__front_pop(front, bin), &lock);
    }
    onuma__os_lock_release(lock);
    return true;
}
