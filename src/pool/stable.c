/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/stable.h"

#define CHUNK ((size_t)256 * 1024)

static onuma__os_lock lock;

void onuma__stable_lock(void) {
    onuma__os_lock_acquire(&lock);
}

void onuma__stable_unlock(void) {
    onuma__os_lock_release(&lock);
}

void onuma__stable_set_up(onuma__stable *stable, size_t item, size_t link) {
    onuma__stable_lock();
    if (stable->item == 0) {
        stable->item = item;
        stable->link = link;
    }
    onuma__stable_unlock();
}

static void **link_of(const onuma__stable *stable, void *item) {
    return (void **)(void *)((unsigned char *)item + stable->link);
}

void *onuma__stable_take(onuma__stable *stable) {
    onuma__stable_lock();
    void *item = stable->free;
    if (item != NULL) {
        stable->free = *link_of(stable, item);
    } else {
        if (stable->fresh == stable->end) {
            unsigned char *chunk = onuma__os_map(CHUNK, 0);
            if (chunk != NULL) {
                onuma__os_leak_roots(chunk, CHUNK);
                stable->fresh = chunk;
                stable->end = chunk + CHUNK / stable->item * stable->item;
            }
        }
        if (stable->fresh != stable->end) {
            item = stable->fresh;
            stable->fresh += stable->item;
        }
    }
    onuma__stable_unlock();
    return item;
}

void onuma__stable_give(onuma__stable *stable, void *item) {
    onuma__stable_lock();
    *link_of(stable, item) = stable->free;
    stable->free = item;
    onuma__stable_unlock();
}
