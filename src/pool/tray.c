/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/tray.h"

#include "pool/heap.h"
#include "pool/slot.h"
#include "pool/stats.h"

static uint32_t most_of(const onuma__engine *engine, size_t size) {
    if (engine->exact_peaks) return 0;
    const size_t bytes = engine->cache_bytes / 64 < ONUMA__TRAY_BYTES ? engine->cache_bytes / 64 : ONUMA__TRAY_BYTES;
    const size_t most = bytes / size < ONUMA__TRAY_MOST ? bytes / size : ONUMA__TRAY_MOST;
    return (uint32_t)(most * ONUMA__TRAY_ITEM);
}

void onuma__trays_reset(onuma__heap *heap) {
    const onuma__engine *engine = heap->engine;
    for (unsigned c = 0; c < engine->classes.count; c++) {
        onuma__tray *tray = &heap->trays[c];
        tray->size = (uint32_t)onuma__class_size(&engine->classes, c);
        tray->most = most_of(engine, tray->size);
        atomic_store_explicit(&tray->state, 0, memory_order_relaxed);
    }
}

static void put_back(onuma__heap *heap, uintptr_t block) {
    onuma__slab *slab = onuma__entry_slab(onuma__pagemap_get(block));
    const size_t slot = onuma__slot_of(slab, block);
    onuma__slab_put_back(heap, slab, slot / 64, (uint64_t)1 << (slot % 64), 1);
}

bool onuma__trays_flush(onuma__heap *heap) {
    bool any = false;
    for (unsigned c = 0; c < heap->engine->classes.count; c++) {
        onuma__tray *tray = &heap->trays[c];
        const unsigned count = onuma__tray_count(tray);
        if (count == 0) continue;
        any = true;
        for (unsigned i = 0; i < count; i++)
            put_back(heap, tray->items[i].block);
        atomic_fetch_sub_explicit(&tray->state, count * ONUMA__TRAY_ITEM, memory_order_relaxed);
        /* Not into the heap's counters, which the owner may be at: it counts for other heaps' blocks without the guard. */
        onuma__count(heap->engine, -(int64_t)count * tray->size, 0, 0, count);
    }
    return any;
}
