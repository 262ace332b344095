/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where each live block was allocated: an open-addressed hash table keyed by
 * the block's address, with linear probing.
 *
 * Removing shifts the entries that follow back into the gap instead of leaving
 * a tombstone: blocks come and go by the million while few live at once, and
 * tombstones would fill the table with the dead. The invariant that makes a
 * look-up right is that no empty slot lies between an entry's home and its
 * place; every change keeps it.
 *
 * One lock for all tables, so that fork() has one lock to care for. It is taken
 * on every allocation and free of a pool with track:full, which costs what that
 * key's help text says.
 */
#include "track/track.h"

#include <stdlib.h>

#include "base/checked.h"

#define FIRST_CAPACITY 256u /* a power of two, as every capacity */

typedef struct entry {
    const void *block; /* NULL: empty */
    onuma__site site;
} entry;

static onuma__os_lock lock; /* guards the contents of every table */

struct onuma__sites {
    entry *entries;
    size_t capacity, used;
    uint64_t unknown; /* blocks that had no room */
};

static size_t home_of(const onuma__sites *sites, const void *block) {
    /* Fibonacci hashing: blocks are aligned, so the low bits alone say nothing. */
    uint64_t mixed = (uint64_t)(uintptr_t)block * UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(mixed >> 32) & (sites->capacity - 1);
}

/* The block's slot, or the empty one where it would go. There always is an empty one. */
static size_t slot_of(const onuma__sites *sites, const void *block) {
    size_t i = home_of(sites, block);
    while (sites->entries[i].block != NULL && sites->entries[i].block != block)
        i = (i + 1) & (sites->capacity - 1);
    return i;
}

static bool grow(onuma__sites *sites) {
    size_t capacity;
    if (!onuma__multiply(sites->capacity, 2, &capacity)) return false;
    entry *entries = calloc(capacity, sizeof *entries);
    if (entries == NULL) return false;
    onuma__sites old = *sites;
    sites->entries = entries;
    sites->capacity = capacity;
    for (size_t i = 0; i < old.capacity; i++)
        if (old.entries[i].block != NULL) entries[slot_of(sites, old.entries[i].block)] = old.entries[i];
    free(old.entries);
    return true;
}

static void take_lock(void) {
    onuma__os_lock_acquire(&lock);
}

static void give_lock(void) {
    onuma__os_lock_release(&lock);
}

static void watch_forks(void) {
    onuma__os_at_fork(2, take_lock, give_lock, give_lock);
}

onuma__sites *onuma__sites_create(void) {
    static onuma__os_once once;
    onuma__os_once_run(&once, watch_forks);
    onuma__sites *sites = calloc(1, sizeof *sites);
    entry *entries = calloc(FIRST_CAPACITY, sizeof *entries);
    if (sites == NULL || entries == NULL) {
        free(sites);
        free(entries);
        (void)onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for the table of call sites (track:full)");
        return NULL;
    }
    sites->entries = entries;
    sites->capacity = FIRST_CAPACITY;
    return sites;
}

void onuma__sites_destroy(onuma__sites *sites) {
    if (sites == NULL) return;
    free(sites->entries);
    free(sites);
}

void onuma__sites_add(onuma__sites *sites, const void *block, const onuma__site *site) {
    onuma__os_lock_acquire(&lock);
    /* At most three quarters full, so that runs stay short; a table that cannot grow is filled to its last but one
     * slot. */
    bool room = sites->used < sites->capacity / 4 * 3 || grow(sites) || sites->used + 1 < sites->capacity;
    size_t i = slot_of(sites, block);
    if (sites->entries[i].block != NULL) {
        sites->entries[i].site = *site;
    } else if (room) {
        sites->entries[i] = (entry){block, *site};
        sites->used++;
    } else {
        sites->unknown++;
    }
    onuma__os_lock_release(&lock);
}

void onuma__sites_remove(onuma__sites *sites, const void *block) {
    onuma__os_lock_acquire(&lock);
    size_t mask = sites->capacity - 1;
    size_t gap = slot_of(sites, block);
    if (sites->entries[gap].block != NULL) {
        sites->used--;
        for (size_t i = (gap + 1) & mask; sites->entries[i].block != NULL; i = (i + 1) & mask) {
            size_t distance_home = (i - home_of(sites, sites->entries[i].block)) & mask;
            size_t distance_gap = (i - gap) & mask;
            if (distance_home < distance_gap) continue; /* its home lies behind the gap: it must not move before it */
            sites->entries[gap] = sites->entries[i];
            gap = i;
        }
        sites->entries[gap].block = NULL;
    }
    onuma__os_lock_release(&lock);
}

bool onuma__sites_find(onuma__sites *sites, const void *block, onuma__site *out) {
    onuma__os_lock_acquire(&lock);
    const entry *found = &sites->entries[slot_of(sites, block)];
    bool known = found->block != NULL;
    if (known) *out = found->site;
    onuma__os_lock_release(&lock);
    return known;
}

uint64_t onuma__sites_unknown(onuma__sites *sites) {
    onuma__os_lock_acquire(&lock);
    uint64_t unknown = sites->unknown;
    onuma__os_lock_release(&lock);
    return unknown;
}
