/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory: every span of addresses that the process's engines and
 * imports hold, for what the page map cannot answer: pointers into the middle
 * of large blocks, imports, and whether two spans overlap.
 *
 * A sorted array under a lock of its own: some hundreds of entries at most in
 * practice, searched only off the fast path, so nothing cleverer pays.
 */
#ifndef ONUMA_POOL_DIRECTORY_H
#define ONUMA_POOL_DIRECTORY_H

#include "pool/engine.h"

typedef struct onuma__import {
    uintptr_t base;
    size_t size;
    const onuma__span *span;
    void *owner;
    bool held; /* dead to the user */
} onuma__import;

/* Insert a segment's span. CONFLICT if it overlaps another entry, OUT_OF_MEMORY. */
onuma_result onuma__directory_add(onuma__segment *segment);
void onuma__directory_remove(onuma__segment *segment);

typedef struct onuma__place {
    onuma__segment *segment; /* or NULL: then an import (copied out) or nothing */
    bool is_import;
    onuma__import import;
} onuma__place;

/* What holds this address. A segment found may die at once: check under its engine's lock. */
onuma__place onuma__directory_find(uintptr_t address);

/* Around fork(): hold the lock. */
void onuma__directory_lock(void);
void onuma__directory_unlock(void);

/* Free of an import at `base`: HELD if it was live, DOUBLE_FREE if held. INVALID_POINTER if none starts there. */
onuma_result onuma__import_hold(uintptr_t base);

#endif
