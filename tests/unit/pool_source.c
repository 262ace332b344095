/* SPDX-License-Identifier: Apache-2.0 */
#include "pool_source.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define PAGE ((size_t)65536)
#define ADDRESSES ((uintptr_t)0x700000000000 >> 1)

/* What stands behind a span. */
typedef struct backing {
    void *memory; /* NULL: only addresses */
    size_t size;
    bool range;
    unsigned char *committed; /* by page */
    size_t pages;
} backing;

static void complain(test_source *source, const char *what) {
    fprintf(stderr, "test source: %s\n", what);
    source->broken = true;
}

/* Under the lock: whether this call may succeed. */
static onuma_result begin(test_source *source, size_t bytes) {
    source->calls++;
    if (source->fail_at != 0 && source->calls == source->fail_at)
        return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "call %llu was to fail", (unsigned long long)source->calls);
    if (source->limit != 0 && source->held + bytes > source->limit)
        return onuma__fail(ONUMA_ERROR_LIMIT, "the source's limit");
    return ONUMA_OK;
}

static void wait(const test_source *source) {
    if (source->delay_ns != 0) onuma__os_sleep(source->delay_ns);
}

static onuma_result provide(test_source *source, size_t size, bool range, onuma__span *out) {
    backing *b = calloc(1, sizeof *b);
    b->size = size + source->misalign;
    b->range = range;
    const size_t page = onuma__os_abilities_get()->page_size;
    b->size = (b->size + page - 1) / page * page;
    if (range) {
        b->pages = size / PAGE;
        b->committed = calloc(b->pages + 1, 1);
    }
    uintptr_t base;
    if (source->real) {
        b->memory = range ? onuma__os_reserve(b->size, 0) : onuma__os_map(b->size, 0);
        if (b->memory == NULL) {
            free(b->committed);
            free(b);
            return ONUMA_ERROR_OUT_OF_MEMORY;
        }
        base = (uintptr_t)b->memory;
    } else {
        /* Each test program has its own addresses, no two spans the same: nothing is behind them. */
        static _Atomic uintptr_t addresses = ADDRESSES;
        base = source->next != 0 ? source->next : atomic_fetch_add(&addresses, b->size + (1u << 20));
        if (source->next != 0) source->next += b->size + (1u << 20);
        base = (base + page - 1) / page * page;
    }
    *out = (onuma__span){.base = (void *)(base + source->misalign), .size = size, .own = b};
    source->spans++;
    return ONUMA_OK;
}

static onuma_result acquire(void *self, size_t size, onuma__span *out) {
    test_source *source = self;
    wait(source);
    onuma__os_lock_acquire(&source->lock);
    onuma_result r = begin(source, size);
    if (r == ONUMA_OK) r = provide(source, size, false, out);
    if (r == ONUMA_OK) {
        source->held += size;
        source->acquires++;
    }
    onuma__os_lock_release(&source->lock);
    return r;
}

static onuma_result reserve(void *self, size_t size, onuma__span *out) {
    test_source *source = self;
    wait(source);
    onuma__os_lock_acquire(&source->lock);
    onuma_result r = begin(source, 0);
    if (r == ONUMA_OK && source->most_address != 0 && size > source->most_address)
        r = onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no such stretch of addresses");
    if (r == ONUMA_OK) r = provide(source, size, true, out);
    source->reserves += r == ONUMA_OK;
    onuma__os_lock_release(&source->lock);
    return r;
}

/* Under the lock: the pages asked for must all be in the state they are to leave. */
static void turn(test_source *source, const onuma__span *span, size_t offset, size_t size, bool committed) {
    backing *b = span->own;
    const size_t whole = source->page != 0 ? source->page : PAGE;
    if (!b->range || offset % whole != 0 || size % whole != 0 || size == 0 || offset + size > span->size) {
        complain(source, "not whole pages of a range");
        return;
    }
    for (size_t page = offset / PAGE; page < (offset + size) / PAGE; page++) {
        if (b->committed[page] == committed) complain(source, committed ? "committed twice" : "decommitted twice");
        b->committed[page] = committed;
    }
    source->held = committed ? source->held + size : source->held - size;
}

static onuma_result commit(void *self, const onuma__span *span, size_t offset, size_t size) {
    test_source *source = self;
    wait(source);
    onuma__os_lock_acquire(&source->lock);
    onuma_result r = begin(source, size);
    if (r == ONUMA_OK && source->real) r = onuma__os_commit((char *)span->base + offset, size);
    if (r == ONUMA_OK) {
        turn(source, span, offset, size, true);
        source->commits++;
    }
    onuma__os_lock_release(&source->lock);
    return r;
}

static onuma_result decommit(void *self, const onuma__span *span, size_t offset, size_t size) {
    test_source *source = self;
    wait(source);
    onuma__os_lock_acquire(&source->lock);
    onuma_result r = ONUMA_OK;
    if (source->real) r = onuma__os_decommit((char *)span->base + offset, size);
    if (r == ONUMA_OK) {
        turn(source, span, offset, size, false);
        source->decommits++;
    }
    onuma__os_lock_release(&source->lock);
    return r;
}

static void release(void *self, const onuma__span *span, size_t committed) {
    test_source *source = self;
    wait(source);
    backing *b = span->own;
    onuma__os_lock_acquire(&source->lock);
    size_t pages = 0;
    for (size_t page = 0; b->range && page < b->pages; page++)
        pages += b->committed[page];
    if (committed != pages * PAGE) complain(source, "released with another number of committed bytes");
    source->held -= b->range ? pages * PAGE : span->size;
    source->spans--;
    source->releases++;
    onuma__os_lock_release(&source->lock);
    if (b->memory != NULL) onuma__os_release(b->memory, b->size);
    free(b->committed);
    free(b);
}

onuma__source test_source_of(test_source *source) {
    return (onuma__source){.self = source,
                           .acquire = acquire,
                           .reserve = reserve,
                           .commit = commit,
                           .decommit = decommit,
                           .release = release,
                           .page = source->page,
                           .longest_range =
                               source->real ? (size_t)(onuma__os_abilities_get()->address_space / 512) : 0};
}
