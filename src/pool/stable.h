/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Type-stable memory: items of one type whose memory is never unmapped and
 * never becomes an item of another type.
 *
 * The engine is asked about any pointer at any time, also about one whose
 * block, slab or whole engine is being taken down by another thread. A reader
 * that still holds the address of a descriptor may then read it safely: it
 * finds a dead or a recycled item of the same type, which it recognises by a
 * generation or by checking again under the lock.
 */
#ifndef ONUMA_POOL_STABLE_H
#define ONUMA_POOL_STABLE_H

#include "os/os.h"

typedef struct onuma__stable {
    size_t item;                /* bytes of one, a multiple of 64 */
    size_t link;                /* where in a free item the list's pointer may lie: no racing reader looks there */
    void *free;                 /* from here on under the lock of all of them, of which fork() has to take but one */
    unsigned char *fresh, *end; /* never used yet, zero */
} onuma__stable;

/* One item: zero if fresh, else as it was given back. NULL and a detail when memory is out. */
void *onuma__stable_take(onuma__stable *stable);
void onuma__stable_give(onuma__stable *stable, void *item);

/* Set one up whose sizes are not known when compiling; nothing if it is. */
void onuma__stable_set_up(onuma__stable *stable, size_t item, size_t link);

/* Around fork(): hold the lock. */
void onuma__stable_lock(void);
void onuma__stable_unlock(void);

#endif
