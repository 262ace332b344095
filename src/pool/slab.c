/* SPDX-License-Identifier: Apache-2.0 */
/* Slabs as their heap sees them: making, allocating, draining, retiring. What anyone may do to a slot is in slot.c. */
#include "pool/slab.h"

#include "pool/node.h"
#include "pool/slot.h"
#include "pool/stable.h"
#include "pool/stats.h"

#include <stddef.h>

/* -------------------------------------------------------------- descriptors */

#define CAPACITY_LEAST 32u
#define CAPACITIES 8u /* 32, 64, ... 4096 slots */
_Static_assert(CAPACITY_LEAST << (CAPACITIES - 1) == ONUMA__SLAB_SLOTS_MAX, "the largest capacity is the most slots");

/* 64-bit words of each array, for a capacity. */
static size_t bit_words(size_t capacity) {
    return (capacity + 63) / 64;
}

static size_t header_bytes(size_t capacity) {
    return (sizeof(onuma__slab) + (capacity + 1) * sizeof(uint16_t) + 7) / 8 * 8;
}

static size_t descriptor_bytes(size_t capacity) {
    const size_t arrays = 3 * bit_words(capacity) * 8 + capacity / 32 * 8;
    return (header_bytes(capacity) + arrays + 63) / 64 * 64;
}

static onuma__stable *descriptors(size_t capacity) {
    static onuma__stable pools[CAPACITIES];
    size_t i = 0;
    while ((CAPACITY_LEAST << i) < capacity)
        i++;
    onuma__stable_set_up(&pools[i], descriptor_bytes(CAPACITY_LEAST << i), offsetof(onuma__slab, next));
    return &pools[i];
}

static onuma__slab *take_descriptor(size_t slots) {
    size_t capacity = CAPACITY_LEAST;
    while (capacity < slots)
        capacity *= 2;
    onuma__slab *slab = onuma__stable_take(descriptors(capacity));
    if (slab != NULL && slab->capacity == 0) {
        unsigned char *at = (unsigned char *)slab + header_bytes(capacity);
        slab->free_words = (_Atomic uint64_t *)(void *)at;
        slab->special_words = slab->free_words + bit_words(capacity);
        slab->held_words = slab->special_words + bit_words(capacity);
        slab->dead_words = slab->held_words + bit_words(capacity);
        slab->capacity = (uint32_t)capacity;
    }
    return slab;
}

size_t onuma__slab_metadata(const onuma__slab *slab) {
    return descriptor_bytes(slab->capacity);
}

/* ------------------------------------------------------------ a heap's lists */

static void list_add(onuma__slab **list, onuma__slab *slab) {
    slab->previous = NULL;
    slab->next = *list;
    if (*list != NULL) (*list)->previous = slab;
    *list = slab;
}

static void list_remove(onuma__slab **list, onuma__slab *slab) {
    if (slab->previous != NULL)
        slab->previous->next = slab->next;
    else
        *list = slab->next;
    if (slab->next != NULL) slab->next->previous = slab->previous;
}

/* ------------------------------------------------------------------- making */

onuma_result onuma__slab_make(onuma__heap *heap, onuma__node *node, unsigned class_index) {
    onuma__engine *engine = heap->engine;
    const size_t size = onuma__class_size(&engine->classes, class_index);
    size_t slots = node->size / size;
    if (slots > ONUMA__SLAB_SLOTS_MAX) slots = ONUMA__SLAB_SLOTS_MAX;
    onuma__slab *slab = take_descriptor(slots);
    if (slab == NULL) return ONUMA_ERROR_OUT_OF_MEMORY;
    slab->node = node;
    slab->bytes = (uint32_t)node->size;
    slab->class_index = class_index;
    slab->tray = &heap->trays[class_index];
    slab->used = 0;
    slab->summary = 0;
    for (size_t w = 0; w < bit_words(slab->capacity); w++) {
        const size_t here = slots > w * 64 ? slots - w * 64 : 0;
        const uint64_t bits = here >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << here) - 1;
        atomic_store_explicit(&slab->free_words[w], bits, memory_order_relaxed);
        atomic_store_explicit(&slab->special_words[w], 0, memory_order_relaxed);
        atomic_store_explicit(&slab->held_words[w], 0, memory_order_relaxed);
        if (bits != 0) slab->summary |= (uint64_t)1 << w;
    }
    for (size_t slot = 0; slot <= slots; slot++)
        atomic_store_explicit(&slab->notes[slot], ONUMA__NOTE_NONE, memory_order_relaxed);
    atomic_store_explicit(&slab->attention, 0, memory_order_relaxed);
    atomic_store_explicit(&slab->recycled, node->epoch != 0, memory_order_relaxed);
    atomic_store_explicit(&slab->slot_size, (uint32_t)size, memory_order_release);
    atomic_store_explicit(&slab->tag, node->tag, memory_order_release);
    atomic_store_explicit(&slab->reciprocal, (((uint64_t)1 << 40) + size - 1) / size, memory_order_release);
    atomic_store_explicit(&slab->base, node->base, memory_order_release);
    atomic_store_explicit(&slab->heap, heap, memory_order_release);
    atomic_store_explicit(&slab->segment, node->segment, memory_order_release);
    /* Last: who sees the slots sees the rest. */
    atomic_store_explicit(&slab->slots, (uint32_t)slots, memory_order_release);
    list_add(&heap->open[class_index], slab);
    heap->empty_bytes += node->size;
    node->state = ONUMA__NODE_SLAB;
    node->slab = slab;
    engine->slab_bytes += onuma__slab_metadata(slab);
    onuma__note_metadata(engine);
    onuma__pagemap_fill(node->base, node->size, (onuma__entry)slab | ONUMA__ENTRY_SLAB);
    return ONUMA_OK;
}

/* ----------------------------------------------------------------- retiring */

static size_t dead_words(const onuma__slab *slab) {
    return (atomic_load_explicit(&slab->slots, memory_order_relaxed) + 31) / 32;
}

/* The free bits of the slots of one word of dead bits. */
static uint32_t free_of(const onuma__slab *slab, size_t w) {
    return (uint32_t)(atomic_load_explicit(&slab->free_words[w / 2], memory_order_relaxed) >> (w % 2 * 32));
}

/* Raise the generation in every word that others change; false, and nothing changed, if one of them is at it. */
static bool raise_generation(onuma__slab *slab) {
    const uint32_t old = atomic_load_explicit(&slab->generation, memory_order_relaxed);
    const uint32_t raised = old + 1;
    const size_t words = slab->capacity / 32;
    uint64_t before[ONUMA__SLAB_SLOTS_MAX / 32];
    size_t w = 0;
    for (; w < words; w++) {
        before[w] = atomic_load_explicit(&slab->dead_words[w], memory_order_relaxed);
        if (((uint32_t)before[w] & ~free_of(slab, w)) != 0) break; /* a free that no drain has seen */
        uint64_t expected = before[w];
        if (!atomic_compare_exchange_strong(&slab->dead_words[w], &expected, (uint64_t)raised << 32)) break;
    }
    uint64_t unlisted = (uint64_t)old << 1;
    if (w == words && atomic_compare_exchange_strong(&slab->queued, &unlisted, (uint64_t)raised << 1)) {
        atomic_store_explicit(&slab->generation, raised, memory_order_release);
        return true;
    }
    while (w-- > 0)
        atomic_store(&slab->dead_words[w], before[w]);
    return false;
}

/* The descriptor is dead and goes back. Under the engine's lock. */
static void bury(onuma__engine *engine, onuma__slab *slab) {
    engine->slab_bytes -= onuma__slab_metadata(slab);
    onuma__pagemap_fill(slab->node->base, slab->node->size, 0);
    atomic_store_explicit(&slab->slots, 0, memory_order_release);
    atomic_store_explicit(&slab->heap, NULL, memory_order_release);
    slab->node->slab = NULL;
    slab->node = NULL;
    onuma__stable_give(descriptors(slab->capacity), slab);
}

/* An empty slab's memory goes back to the range; false if someone is still at it. */
static bool retire(onuma__heap *heap, onuma__slab *slab) {
    if (!raise_generation(slab)) return false;
    onuma__engine *engine = heap->engine;
    onuma__node *node = slab->node;
    list_remove(&heap->open[slab->class_index], slab);
    heap->empty_bytes -= node->size;
    onuma__os_lock_acquire(&engine->lock);
    bury(engine, slab);
    node->state = ONUMA__NODE_TAKEN;
    /* Every free under an unordered tag was held until its marker had passed, so nothing is left to wait for: and
     * nobody would ever tell the engine that such a tag has passed an epoch. */
    onuma__node_give(engine, node, (node->tag & ONUMA__TAG_UNORDERED) != 0);
    onuma__os_lock_release(&engine->lock);
    return true;
}

bool onuma__slab_retire_empty(onuma__heap *heap) {
    bool any = false;
    for (unsigned c = 0; c < heap->engine->classes.count && heap->empty_bytes != 0; c++) {
        for (onuma__slab *slab = heap->open[c], *next; slab != NULL; slab = next) {
            next = slab->next;
            if (slab->used == 0) any |= retire(heap, slab);
        }
    }
    return any;
}

void onuma__slab_forget(onuma__engine *engine, onuma__slab *slab) {
    const uint32_t raised = atomic_load_explicit(&slab->generation, memory_order_relaxed) + 1;
    for (size_t w = 0; w < slab->capacity / 32; w++)
        atomic_store(&slab->dead_words[w], (uint64_t)raised << 32);
    atomic_store(&slab->queued, (uint64_t)raised << 1);
    atomic_store_explicit(&slab->generation, raised, memory_order_release);
    bury(engine, slab);
}

/* --------------------------------------------------------------- allocating */

void onuma__slab_revive(onuma__slab *slab, size_t slot) {
    atomic_fetch_and(&slab->dead_words[slot / 32], ~((uint64_t)1 << (slot % 32)));
}

void onuma__slab_filled(onuma__heap *heap, onuma__slab *slab) {
    list_remove(&heap->open[slab->class_index], slab);
    list_add(&heap->full, slab);
}

/* ------------------------------------------------------------------ freeing */

void onuma__slab_reopen(onuma__heap *heap, onuma__slab *slab) {
    list_remove(&heap->full, slab);
    list_add(&heap->open[slab->class_index], slab);
}

void onuma__slab_emptied(onuma__heap *heap, onuma__slab *slab) {
    heap->empty_bytes += slab->bytes;
    if (ONUMA__UNLIKELY(heap->empty_bytes > heap->engine->cache_bytes)) retire(heap, slab);
}

static void put_back_many(onuma__heap *heap, onuma__slab *slab, size_t word, uint64_t bits) {
    onuma__slab_put_back(heap, slab, word, bits, (uint32_t)__builtin_popcountll(bits));
}

static void drain_slab(onuma__heap *heap, onuma__slab *slab) {
    const size_t words = dead_words(slab);
    uint64_t fresh[ONUMA__SLAB_SLOTS_MAX / 64] = {0};
    for (size_t w = 0; w < words; w++) {
        uint32_t bits = (uint32_t)atomic_load(&slab->dead_words[w]) & ~free_of(slab, w);
        if (bits == 0) continue;
        /* Whoever holds a slot sets its held bit before its dead bit. */
        bits &= ~(uint32_t)(atomic_load(&slab->held_words[w / 2]) >> (w % 2 * 32));
        fresh[w / 2] |= (uint64_t)bits << (w % 2 * 32);
    }
    size_t last = SIZE_MAX;
    for (size_t w = 0; w < bit_words(slab->capacity); w++) {
        if (fresh[w] == 0) continue;
        if (last != SIZE_MAX) put_back_many(heap, slab, last, fresh[last]);
        last = w;
    }
    /* The last word's slots may empty the slab, after which it may be gone. */
    if (last != SIZE_MAX) put_back_many(heap, slab, last, fresh[last]);
}

void onuma__slab_drain(onuma__heap *heap) {
    onuma__slab *slab = atomic_exchange_explicit(&heap->remote, NULL, memory_order_acq_rel);
    while (slab != NULL) {
        onuma__slab *next = atomic_load_explicit(&slab->remote_next, memory_order_relaxed);
        /* Before the bits are read: a bit set after that finds the slab unlisted and lists it again. */
        atomic_fetch_and(&slab->queued, ~(uint64_t)1);
        drain_slab(heap, slab);
        slab = next;
    }
}
