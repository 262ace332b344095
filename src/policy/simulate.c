/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source of addresses with nothing behind them: the engine works as always,
 * no memory is used, and a touch crashes at once. So a trace of terabytes
 * replays on a laptop. Bytes are counted, and limited, as if they were real.
 *
 * The addresses are not the system's but of the kernel's half, where no program
 * has any, handed out from the bottom up and reused size by size. Sizes are
 * rounded by a number of our own. So the figures of a replay are the same on
 * every system, whatever its pages and wherever it would have put things.
 */
#include "policy/private.h"

#include "base/checked.h"

#define GRANULE ((size_t)64 * 1024)     /* of sizes: no system has larger pages */
#define START ((size_t)2 * 1024 * 1024) /* spans start on it: blocks aligned to more are rare */
/* Bit 55 is set too: Arm leaves the highest eight bits out of an address. */
#define FIRST ((uintptr_t)0xff80 << 48)
#define LAST ((uintptr_t)0xfff0 << 48)
#define SPARES 64

static onuma__os_lock lock;
/* Guarded by lock. */
static uintptr_t next = FIRST;
static onuma__span spares[SPARES]; /* given back; size 0: no entry. What finds no place is not used again */

const onuma_segment *onuma__simulated_segment(const onuma__span *span) {
    (void)span;
    return NULL;
}

/* Addresses of `size` bytes, whole granules; NULL if there are no more. */
static void *take_addresses(size_t size) {
    uintptr_t base = 0;
    onuma__os_lock_acquire(&lock);
    for (size_t i = 0; base == 0 && i < SPARES; i++) {
        if (spares[i].size != size) continue;
        base = (uintptr_t)spares[i].base;
        spares[i].size = 0;
    }
    size_t length;
    if (base == 0 && onuma__align_up(size, START, &length) && length < LAST - next) {
        base = next;
        next += length;
    }
    onuma__os_lock_release(&lock);
    return (void *)base;
}

static void give_addresses(void *base, size_t size) {
    onuma__os_lock_acquire(&lock);
    for (size_t i = 0; i < SPARES; i++) {
        if (spares[i].size != 0) continue;
        spares[i] = (onuma__span){.base = base, .size = size};
        break;
    }
    onuma__os_lock_release(&lock);
}

static onuma_result reserve(void *self, size_t size, onuma__span *out) {
    const onuma__pool *pool = self;
    void *base = size != 0 && onuma__align_up(size, GRANULE, &size) ? take_addresses(size) : NULL;
    if (base == NULL)
        return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "pool \"%s\": %zu bytes are more than there are addresses",
                           pool->name, size);
    *out = (onuma__span){.base = base, .size = size};
    return ONUMA_OK;
}

static onuma_result acquire(void *self, size_t size, onuma__span *out) {
    onuma__pool *pool = self;
    onuma__span span = {0};
    onuma_result r = reserve(self, size, &span);
    if (r != ONUMA_OK) return r;
    r = onuma__pool_admit(pool, span.size);
    if (r != ONUMA_OK) {
        give_addresses(span.base, span.size);
        return r;
    }
    *out = (onuma__span){.base = span.base, .size = span.size, .own = pool}; /* own: not a range */
    return onuma__pool_settle(pool, span.size, ONUMA_OK);
}

static onuma_result commit(void *self, const onuma__span *span, size_t offset, size_t size) {
    (void)span;
    (void)offset;
    onuma_result r = onuma__pool_admit(self, size);
    return r != ONUMA_OK ? r : onuma__pool_settle(self, size, ONUMA_OK);
}

static onuma_result decommit(void *self, const onuma__span *span, size_t offset, size_t size) {
    (void)span;
    (void)offset;
    onuma__pool_dismiss(self, size);
    return ONUMA_OK;
}

static void release(void *self, const onuma__span *span, size_t committed) {
    onuma__pool_dismiss(self, span->own != NULL ? span->size : committed);
    give_addresses(span->base, span->size);
}

onuma__source onuma__simulated_source(onuma__pool *pool) {
    return (onuma__source){
        .self = pool,
        .acquire = acquire,
        .reserve = reserve,
        .commit = commit,
        .decommit = decommit,
        .release = release,
    };
}
