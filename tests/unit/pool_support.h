/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of the engine share: a pool on a test source, and calls that must work. */
#ifndef ONUMA_TESTS_POOL_SUPPORT_H
#define ONUMA_TESTS_POOL_SUPPORT_H

#include "pool_source.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

typedef struct pool {
    test_source source;
    onuma__engine_desc desc; /* what it is opened with */
    onuma__engine *engine;
} pool;

static inline void open_pool(pool *p) {
    p->desc.source = test_source_of(&p->source);
    p->desc.owner = p;
    assert_int_equal(onuma__engine_create(&p->desc, &p->engine), ONUMA_OK);
}

/* Everything must have gone back, and nothing been asked for that must not be. */
static inline void close_pool(pool *p) {
    onuma__engine_destroy(p->engine);
    p->engine = NULL;
    assert_int_equal(p->source.held, 0);
    assert_int_equal(p->source.spans, 0);
    assert_false(p->source.broken);
}

static inline pool *new_pool(onuma_source mode) {
    pool *p = calloc(1, sizeof *p);
    p->desc = (onuma__engine_desc){.mode = mode, .alignment = 16, .cache_bytes = (size_t)4 << 20};
    return p;
}

static inline int range_pool(void **state) {
    pool *p = new_pool(ONUMA_SOURCE_RANGE);
    open_pool(p);
    *state = p;
    return 0;
}

static inline int segments_pool(void **state) {
    pool *p = new_pool(ONUMA_SOURCE_SEGMENTS);
    open_pool(p);
    *state = p;
    return 0;
}

static inline int end_pool(void **state) {
    pool *p = *state;
    if (p->engine != NULL) close_pool(p);
    free(p);
    return 0;
}

/* Allocate as the layer above does: try, grow. */
static inline onuma_result try_take(pool *p, size_t size, size_t align, onuma__tag tag, void **out) {
    onuma_result r = onuma__engine_alloc(p->engine, size, align, tag, out);
    if (r == ONUMA__MISS) r = onuma__engine_grow(p->engine, size, align, tag, out);
    return r;
}

static inline void *take(pool *p, size_t size, size_t align, onuma__tag tag) {
    void *out;
    assert_int_equal(try_take(p, size, align, tag, &out), ONUMA_OK);
    assert_non_null(out);
    return out;
}

static inline onuma_result drop(pool *p, void *ptr, onuma__tag tag) {
    onuma__engine *engine;
    const onuma_result r = onuma__engine_free(ptr, tag, &engine);
    if (r == ONUMA_OK) assert_ptr_equal(engine, p->engine);
    return r;
}

static inline onuma_pool_stats stats(pool *p) {
    onuma_pool_stats s = ONUMA_POOL_STATS_INIT;
    onuma__engine_get_stats(p->engine, &s);
    return s;
}

/* Every invariant; reserved bytes are what the source has handed out. */
static inline void check(pool *p) {
    if (onuma__engine_check(p->engine) != ONUMA_OK) fail_msg("%s", onuma__thread_text());
    assert_int_equal(stats(p).reserved_bytes, p->source.held);
    assert_false(p->source.broken);
}

#endif
