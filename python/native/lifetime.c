/* SPDX-License-Identifier: Apache-2.0 */
#include "lifetime.h"

#include <Python.h> /* its locks alone, which need no interpreter */
#include <stdlib.h>
#if !defined(_WIN32)
#include <pthread.h>
#endif

/* Long enough for work that is on its way, short enough for an interpreter that wants to end. */
static const uint64_t pool_patience_ns = 1000000000u;

/* ------------------------------------------------------------ table of holdings */

/*
 * From a block's first byte to its holding, so that a tensor or array made elsewhere over our bytes finds them again.
 * A holding leaves the table before its block is freed, so no two of one address are ever in it. One whose count has
 * reached 0 may still be seen there, and is passed over.
 */
enum { BUCKETS = 4096 };
static onumapy_holding *buckets[BUCKETS]; /* under table_lock */
static size_t holding_count;              /* under table_lock */
static PyThread_type_lock table_lock;     /* leaf: nothing is called while it is held */

static void lock_table(void) {
    PyThread_acquire_lock(table_lock, WAIT_LOCK);
}

static void unlock_table(void) {
    PyThread_release_lock(table_lock);
}

bool onumapy_lifetime_init(void) {
    if (table_lock) return true;
    table_lock = PyThread_allocate_lock();
    if (!table_lock) return false;
#if !defined(_WIN32)
    /* Else a child could inherit the lock from a thread that it does not have. */
    pthread_atfork(lock_table, unlock_table, unlock_table);
#endif
    return true;
}

static onumapy_holding **bucket_of(const void *base) {
    /* Blocks start at multiples of 64 at least; above that bits are spread by Fibonacci hashing. */
    return &buckets[((uint64_t)(uintptr_t)base >> 6) * 0x9E3779B97F4A7C15u >> 52];
}

static void enter_table(onumapy_holding *holding) {
    lock_table();
    onumapy_holding **bucket = bucket_of(holding->base);
    holding->next = *bucket;
    *bucket = holding;
    holding_count++;
    unlock_table();
}

static void leave_table(onumapy_holding *holding) {
    lock_table();
    onumapy_holding **link = bucket_of(holding->base);
    while (*link != holding)
        link = &(*link)->next;
    *link = holding->next;
    holding_count--;
    unlock_table();
}

size_t onumapy_holding_count(void) {
    lock_table();
    size_t count = holding_count;
    unlock_table();
    return count;
}

/* --------------------------------------------------------------------- counting */

/* A reference is only copied by somebody who has one, so nothing need be ordered. */
static void keep(atomic_size_t *references) {
    atomic_fetch_add_explicit(references, 1, memory_order_relaxed);
}

/* Release: what this holder did to the object comes before; acquire: the last one sees it all before taking it down. */
static bool drop(atomic_size_t *references) {
    return atomic_fetch_sub_explicit(references, 1, memory_order_acq_rel) == 1;
}

/* For those who found the object without having a reference: none is taken of one that is already dying. */
static bool keep_living(atomic_size_t *references) {
    size_t seen = atomic_load_explicit(references, memory_order_relaxed);
    while (seen && !atomic_compare_exchange_weak_explicit(references, &seen, seen + 1, memory_order_relaxed,
                                                          memory_order_relaxed))
        continue;
    return seen != 0;
}

/* ---------------------------------------------------------------------- devices */

onumapy_device *onumapy_device_new(onuma_device *device, onuma_device_type type, bool adopted) {
    onumapy_device *made = malloc(sizeof *made);
    if (!made) return NULL;
    atomic_init(&made->references, 1);
    made->device = device;
    made->type = type;
    made->adopted = adopted;
    return made;
}

onumapy_device *onumapy_device_keep(onumapy_device *device) {
    keep(&device->references);
    return device;
}

void onumapy_device_drop(onumapy_device *device) {
    if (!drop(&device->references)) return;
    /* Pools and queues hold references of their own, so BUSY cannot be; what a lost device answers helps nobody here. */
    if (device->adopted) (void)onuma_device_release(device->device);
    free(device);
}

bool onumapy_cpu_reaches(const onumapy_device *device, onuma_kind kind) {
    return kind != ONUMA_KIND_DEVICE || device->type == ONUMA_DEVICE_HOST;
}

/* ------------------------------------------------------------------------ pools */

onumapy_pool *onumapy_pool_new(onuma_pool *pool, onumapy_device *device, onuma_kind kind) {
    onumapy_pool *made = malloc(sizeof *made);
    if (!made) return NULL;
    atomic_init(&made->references, 1);
    made->pool = pool;
    made->device = device;
    made->kind = kind;
    return made;
}

onumapy_pool *onumapy_pool_keep(onumapy_pool *pool) {
    keep(&pool->references);
    return pool;
}

bool onumapy_pool_drop(onumapy_pool *pool) {
    return drop(&pool->references);
}

void onumapy_pool_destroy(onumapy_pool *pool) {
    /* Nothing lives in it. What a queue still uses after the wait goes into the library's quarantine. */
    (void)onuma_pool_destroy_forced(pool->pool, pool_patience_ns);
    onumapy_device_drop(pool->device);
    free(pool);
}

/* --------------------------------------------------------------------- holdings */

onumapy_holding *onumapy_holding_new(const onumapy_holding *model) {
    onumapy_holding *made = malloc(sizeof *made);
    if (!made) return NULL;
    *made = (onumapy_holding){.base = model->base,
                              .size = model->size,
                              .kind = model->kind,
                              .read_only = model->read_only,
                              .pool = model->pool,
                              .device = model->device};
    atomic_init(&made->references, 1);
    enter_table(made);
    return made;
}

onumapy_holding *onumapy_holding_keep(onumapy_holding *holding) {
    keep(&holding->references);
    return holding;
}

onumapy_pool *onumapy_holding_drop(onumapy_holding *holding) {
    if (!drop(&holding->references)) return NULL;
    leave_table(holding);
    /* In a child made by fork, memory of a driver is refused here, and stays with the parent. */
    (void)onuma_free(holding->base, NULL);
    onumapy_pool *pool = holding->pool;
    if (!pool) onumapy_device_drop(holding->device);
    free(holding);
    return pool && onumapy_pool_drop(pool) ? pool : NULL;
}

void onumapy_holding_drop_anywhere(onumapy_holding *holding) {
    onumapy_pool *pool = onumapy_holding_drop(holding);
    if (pool) onumapy_pool_destroy(pool);
}

onumapy_holding *onumapy_holding_find(const void *address) {
    onuma_block_info info = ONUMA_BLOCK_INFO_INIT;
    if (onuma_block_get_info(address, &info) != ONUMA_OK) return NULL;
    lock_table();
    onumapy_holding *found = *bucket_of(info.base);
    while (found && found->base != info.base)
        found = found->next;
    if (found && !keep_living(&found->references)) found = NULL;
    unlock_table();
    return found;
}
