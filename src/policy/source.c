/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backend's segments as an engine's source, with the limits of the pool and
 * of its runtime around them.
 *
 * Bytes are admitted, by compare-exchange, before the driver is asked; they
 * count as reserved once it gave them, and stop to before it gets them back. So
 * threads that grow at once cannot pass the limit together, and nobody ever
 * reads more reserved bytes than the limit allows.
 */
#include "policy/private.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Add to a sum unless it would pass `most`; then what the sum was comes back as *held. */
static bool add_within(_Atomic size_t *sum, size_t size, size_t most, size_t *held) {
    *held = atomic_load_explicit(sum, memory_order_relaxed);
    do {
        if (*held > most || size > most - *held) return false;
        /* acquire: what was given back to make room left `reserved` before we add to it. */
    } while (
        !atomic_compare_exchange_weak_explicit(sum, held, *held + size, memory_order_acquire, memory_order_relaxed));
    return true;
}

static size_t most_of(const _Atomic size_t *limit) {
    const size_t bytes = atomic_load_explicit(limit, memory_order_relaxed);
    return bytes != 0 ? bytes : SIZE_MAX;
}

/* release: whoever is admitted in our place counts as reserved after we no longer do. */
static void retract(onuma__pool *pool, size_t size) {
    onuma__budget *budget = pool->owner.device->budget;
    atomic_fetch_sub_explicit(&pool->admitted, size, memory_order_release);
    if (budget != NULL) atomic_fetch_sub_explicit(&budget->admitted, size, memory_order_release);
}

onuma_result onuma__pool_admit(onuma__pool *pool, size_t size) {
    onuma__budget *budget = pool->owner.device->budget;
    const size_t most = most_of(&pool->limit), most_of_all = budget != NULL ? most_of(&budget->limit) : SIZE_MAX;
    size_t held;
    if (!add_within(&pool->admitted, size, most, &held))
        return onuma__fail(ONUMA_ERROR_LIMIT,
                           "pool \"%s\": %zu bytes more than the %zu reserved would pass its limit of %zu; free "
                           "blocks or raise it with onuma_pool_set_limit",
                           pool->name, size, held, most);
    if (budget == NULL || add_within(&budget->admitted, size, most_of_all, &held)) return ONUMA_OK;
    atomic_fetch_sub_explicit(&pool->admitted, size, memory_order_release);
    return onuma__fail(ONUMA_ERROR_LIMIT,
                       "pool \"%s\": %zu bytes more than the %zu that all pools reserve would pass the runtime's limit "
                       "of %zu; free blocks or raise it with onuma_runtime_set_limits",
                       pool->name, size, held, most_of_all);
}

static bool passes(const _Atomic size_t *sum, size_t more, const _Atomic size_t *limit) {
    const size_t most = most_of(limit), held = atomic_load_explicit(sum, memory_order_relaxed);
    return held > most || more > most - held;
}

bool onuma__pool_is_over_soft(const onuma__pool *pool, size_t more) {
    const onuma__budget *budget = pool->owner.device->budget;
    return passes(&pool->admitted, more, &pool->soft_limit) ||
           (budget != NULL && passes(&budget->admitted, more, &budget->soft_limit));
}

onuma_result onuma__pool_settle(onuma__pool *pool, size_t size, onuma_result r) {
    if (r != ONUMA_OK) {
        retract(pool, size);
        return r;
    }
    size_t now = atomic_fetch_add_explicit(&pool->reserved, size, memory_order_relaxed) + size;
    size_t peak = atomic_load_explicit(&pool->reserved_peak, memory_order_relaxed);
    while (now > peak && !atomic_compare_exchange_weak_explicit(&pool->reserved_peak, &peak, now, memory_order_relaxed,
                                                                memory_order_relaxed))
        continue;
    return ONUMA_OK;
}

void onuma__pool_dismiss(onuma__pool *pool, size_t size) {
    atomic_fetch_sub_explicit(&pool->reserved, size, memory_order_relaxed);
    retract(pool, size);
}

/* ---------------------------------------------------------------- segments */

/* Behind each span. */
typedef struct holding {
    onuma_segment segment;
    bool range; /* counted by what is committed, not by its size */
} holding;

const onuma_segment *onuma__backend_segment(const onuma__span *span) {
    return &((const holding *)span->own)->segment;
}

static onuma_backend_device *backend_of(const onuma__pool *pool) {
    return atomic_load_explicit(&pool->owner.device->backend, memory_order_acquire);
}

/* What a driver says it gave, checked: a lie here would become a block beyond the memory's end. */
static onuma_result check_segment(const onuma__pool *pool, const onuma_segment *segment, size_t asked) {
    uintptr_t base = (uintptr_t)segment->base;
    if (base != 0 && segment->size >= asked && segment->size <= UINTPTR_MAX - base) return ONUMA_OK;
    return onuma__fail(ONUMA_ERROR_INTERNAL, "device %s: asked for %zu bytes, the driver gave %zu at %p",
                       pool->owner.device->id, asked, segment->size, segment->base);
}

static onuma_result check_size(const onuma__pool *pool, size_t size) {
    uint64_t most = pool->owner.device->info.max_segment;
    if (most == 0 || size <= most) return ONUMA_OK;
    return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY,
                       "device %s: %zu bytes in one piece, and its driver allows %" PRIu64 "; use smaller blocks",
                       pool->owner.device->id, size, most);
}

static void destroy(const onuma__pool *pool, holding *held) {
    pool->owner.device->ops->segment_destroy(backend_of(pool), &held->segment);
    free(held);
}

typedef onuma_result make_segment(onuma_backend_device *device, onuma_kind kind, size_t size, onuma_segment *out);

/* A checked segment from one of the driver's two functions that make them; else NULL, and *r says why. */
static holding *make(const onuma__pool *pool, make_segment *from, bool range, size_t size, onuma_result *r) {
    *r = check_size(pool, size);
    if (*r != ONUMA_OK) return NULL;
    holding *made = calloc(1, sizeof *made);
    if (made == NULL) {
        *r = onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "pool \"%s\": no memory for a segment's record", pool->name);
        return NULL;
    }
    made->segment.struct_size = sizeof made->segment;
    made->range = range;
    *r = onuma__device_note(pool->owner.device, from(backend_of(pool), pool->owner.kind, size, &made->segment));
    if (*r != ONUMA_OK) {
        free(made);
        return NULL;
    }
    *r = check_segment(pool, &made->segment, size);
    if (*r == ONUMA_OK) return made;
    destroy(pool, made);
    return NULL;
}

static void describe(holding *held, onuma__span *out) {
    *out = (onuma__span){.base = held->segment.base, .size = held->segment.size, .own = held};
}

/* Drivers may give more than was asked for, and what is held counts. */
static onuma_result admit_surplus(onuma__pool *pool, size_t surplus) {
    onuma_result r = onuma__pool_admit(pool, surplus);
    return r != ONUMA_OK ? r : onuma__pool_settle(pool, surplus, ONUMA_OK);
}

static onuma_result acquire(void *self, size_t size, onuma__span *out) {
    onuma__pool *pool = self;
    onuma_result r = onuma__pool_admit(pool, size);
    if (r != ONUMA_OK) return r;
    holding *made = make(pool, pool->owner.device->ops->segment_create, false, size, &r);
    if (made == NULL) return onuma__pool_settle(pool, size, r);
    r = onuma__pool_settle(pool, size, admit_surplus(pool, made->segment.size - size));
    if (r == ONUMA_OK)
        describe(made, out);
    else
        destroy(pool, made);
    return r;
}

/* ------------------------------------------------------------------- range */

static onuma_result reserve(void *self, size_t size, onuma__span *out) {
    onuma__pool *pool = self;
    onuma_result r;
    holding *made = make(pool, pool->owner.device->ops->segment_reserve, true, size, &r);
    if (made != NULL) describe(made, out);
    return r;
}

static onuma_result commit(void *self, const onuma__span *span, size_t offset, size_t size) {
    onuma__pool *pool = self;
    holding *held = span->own;
    onuma_result r = onuma__pool_admit(pool, size);
    if (r != ONUMA_OK) return r;
    r = pool->owner.device->ops->segment_commit(backend_of(pool), &held->segment, offset, size);
    return onuma__device_note(pool->owner.device, onuma__pool_settle(pool, size, r));
}

static onuma_result decommit(void *self, const onuma__span *span, size_t offset, size_t size) {
    onuma__pool *pool = self;
    holding *held = span->own;
    onuma_result r = pool->owner.device->ops->segment_decommit(backend_of(pool), &held->segment, offset, size);
    if (r == ONUMA_OK) onuma__pool_dismiss(pool, size);
    return onuma__device_note(pool->owner.device, r);
}

static onuma_result discard(void *self, const onuma__span *span, size_t offset, size_t size) {
    onuma__pool *pool = self;
    holding *held = span->own;
    onuma_result r = pool->owner.device->ops->segment_discard(backend_of(pool), &held->segment, offset, size);
    return onuma__device_note(pool->owner.device, r);
}

static void release(void *self, const onuma__span *span, size_t committed) {
    onuma__pool *pool = self;
    holding *held = span->own;
    size_t counted = held->range ? committed : span->size;
    destroy(pool, held);
    onuma__pool_dismiss(pool, counted);
}

/* A pool leaves room for hundreds like it, and for the rest of the program, where addresses are few. */
#define RANGES_IN_ADDRESS_SPACE 512u

onuma__source onuma__backend_source(onuma__pool *pool, bool range) {
    return (onuma__source){
        .self = pool,
        .acquire = acquire,
        .reserve = range ? reserve : NULL,
        .commit = range ? commit : NULL,
        .decommit = range ? decommit : NULL,
        .discard = range ? discard : NULL,
        .release = release,
        .page = pool->owner.device->info.page_size,
        .longest_range = (size_t)(onuma__os_abilities_get()->address_space / RANGES_IN_ADDRESS_SPACE),
    };
}
