/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source of addresses with nothing behind them: the engine works as always,
 * no memory is used, and a touch crashes at once. So a trace of terabytes
 * replays on a laptop. Bytes are counted, and limited, as if they were real.
 */
#include "policy/private.h"

#include "base/checked.h"

const onuma_segment *onuma__simulated_segment(const onuma__span *span) {
    (void)span;
    return NULL;
}

static onuma_result reserve(void *self, size_t size, onuma__span *out) {
    onuma__pool *pool = self;
    if (!onuma__align_up(size, onuma__os_abilities_get()->page_size, &size))
        return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "pool \"%s\": %zu bytes are more than there are addresses",
                           pool->name, size);
    void *base = onuma__os_reserve(size, 0);
    if (base == NULL) return ONUMA_ERROR_OUT_OF_MEMORY;
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
        onuma__os_release(span.base, span.size);
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
    onuma__os_release(span->base, span->size);
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
