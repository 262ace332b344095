/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/stable.h"

#define CHUNK ((size_t)256 * 1024)

static void **link_of(const onuma__stable *stable, void *item) {
    return (void **)(void *)((unsigned char *)item + stable->link);
}

void *onuma__stable_take(onuma__stable *stable) {
    onuma__os_lock_acquire(&stable->lock);
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
    onuma__os_lock_release(&stable->lock);
    return item;
}

void onuma__stable_give(onuma__stable *stable, void *item) {
    onuma__os_lock_acquire(&stable->lock);
    *link_of(stable, item) = stable->free;
    stable->free = item;
    onuma__os_lock_release(&stable->lock);
}
