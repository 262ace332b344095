/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who keeps what alive, in plain C.
 *
 * A block's bytes live while any alias does: our own objects, a PyTorch tensor made through DLPack, a buffer that NumPy
 * exports further. Other frameworks drop their aliases on threads of their own, without the interpreter's lock, and even
 * after the interpreter is gone. So none of this touches Python: references are atomic counters, and what they keep is
 * C memory.
 *
 *     Block, DLPack capsule ──► holding ──► pool ──► device
 *
 * Each arrow is one counted reference. The last holding of a pool whose Pool object is gone takes the pool with it.
 * Destroying a pool may wait for queues; dropping a holding therefore only says which pool nobody needs any more.
 */
#ifndef ONUMAPY_LIFETIME_H
#define ONUMAPY_LIFETIME_H

#include "opennuma/opennuma.h"

#include <stdatomic.h>

/* The runtime is never destroyed: late frees at the end of the process still find it. So devices of its own need no count. */
typedef struct onumapy_device {
    atomic_size_t references;
    onuma_device *device;
    onuma_device_type type;
    bool adopted; /* ours to release */
} onumapy_device;

typedef struct onumapy_pool {
    atomic_size_t references;
    onuma_pool *pool;
    onumapy_device *device;
    onuma_kind kind;
} onumapy_pool;

/* Bytes that live as long as somebody holds them. Only `references` and `next` change after it is made. */
typedef struct onumapy_holding {
    atomic_size_t references;
    struct onumapy_holding *next; /* in the table of holdings, under its lock */
    void *base;
    size_t size;
    onuma_kind kind;
    bool read_only;
    onumapy_pool *pool;     /* NULL for imports */
    onumapy_device *device; /* of imports, which have no pool to keep it: a reference; else the pool's */
} onumapy_holding;

/* Once per process, with the interpreter's lock held. False if memory is short. */
bool onumapy_lifetime_init(void);

/* Each takes over what the caller has: on failure the caller still has it. NULL if memory is short. */
onumapy_device *onumapy_device_new(onuma_device *device, onuma_device_type type, bool adopted);
onumapy_pool *onumapy_pool_new(onuma_pool *pool, onumapy_device *device, onuma_kind kind);
onumapy_holding *onumapy_holding_new(const onumapy_holding *model);

onumapy_device *onumapy_device_keep(onumapy_device *device);
void onumapy_device_drop(onumapy_device *device);
onumapy_pool *onumapy_pool_keep(onumapy_pool *pool);

/* True if this was the last reference: the caller then destroys it with onumapy_pool_destroy. */
bool onumapy_pool_drop(onumapy_pool *pool);
/* May wait a second for queues, so not with the interpreter's lock held where that can be helped. */
void onumapy_pool_destroy(onumapy_pool *pool);

onumapy_holding *onumapy_holding_keep(onumapy_holding *holding);
/* The pool that nobody needs any more, to be destroyed by the caller; NULL if there is none. */
onumapy_pool *onumapy_holding_drop(onumapy_holding *holding);
/* The same where waiting does no harm, or cannot be helped: any thread, no interpreter needed. */
void onumapy_holding_drop_anywhere(onumapy_holding *holding);

/* The live holding whose block contains the address, with a reference for the caller; NULL if there is none. */
onumapy_holding *onumapy_holding_find(const void *address);

/* How many are alive, for tests. */
size_t onumapy_holding_count(void);

/* Does the CPU reach memory of that kind? Device memory without a CPU address is named by addresses with nothing behind. */
bool onumapy_cpu_reaches(const onumapy_device *device, onuma_kind kind);

#endif
