/* SPDX-License-Identifier: Apache-2.0 */
#include "script.h"

#include "api/handle.h"
#include "policy/policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* How often a call may fail before it works again: some faults are met more than once in one call. */
#define MOST_TRIES 8u

bool script_lost(const script *s) {
    const fault_plan *plan = s->plan;
    if (plan == NULL || fault_fired() == 0) return false;
    return plan->times == UINT64_MAX || (plan->manner == FAULT_FAIL && plan->result == ONUMA_ERROR_DEVICE_LOST);
}

/* Every byte of a small block, some of a large one: the script is run very often. */
static size_t stride(size_t at) {
    return at < 8192 ? 1 : 509;
}

static unsigned char pattern(const script_block *b, size_t i) {
    return (unsigned char)(b->number * 31u + i * 7u + (i >> 8));
}

/* Statistics are what the script and the decorators know. */
static void check_pool(script *s, unsigned i, const char *when, uint64_t *reserved) {
    onuma_pool_stats stats = ONUMA_POOL_STATS_INIT;
    uint64_t count = 0, requested = 0;
    if (s->pools[i] == NULL) return;
    for (unsigned b = 0; b < SCRIPT_BLOCKS; b++)
        if (s->blocks[b].base != NULL && s->blocks[b].pool == i) {
            count++;
            requested += s->blocks[b].size;
        }
    if (onuma_pool_get_stats(s->pools[i], &stats) != ONUMA_OK) fail_msg("%s: no statistics", when);
    onuma__pool *pool = onuma__handle_get(ONUMA__HANDLE_POOL, s->pools[i]);
    if (!pool->simulate) *reserved += stats.reserved_bytes;
    if (stats.in_use_blocks != count || stats.requested_bytes != requested)
        fail_msg("%s: pool %u says %llu blocks of %llu bytes asked for, there are %llu of %llu", when, i,
                 (unsigned long long)stats.in_use_blocks, (unsigned long long)stats.requested_bytes,
                 (unsigned long long)count, (unsigned long long)requested);
    if (stats.alloc_count - stats.free_count != stats.in_use_blocks)
        fail_msg("%s: pool %u says %llu allocations, %llu frees, %llu blocks", when, i,
                 (unsigned long long)stats.alloc_count, (unsigned long long)stats.free_count,
                 (unsigned long long)stats.in_use_blocks);
    if (stats.reserved_bytes > stats.reserved_bytes_peak || stats.in_use_bytes > stats.reserved_bytes)
        fail_msg("%s: pool %u has %llu in use, %llu reserved, and %llu at most ever", when, i,
                 (unsigned long long)stats.in_use_bytes, (unsigned long long)stats.reserved_bytes,
                 (unsigned long long)stats.reserved_bytes_peak);
}

/* The engine's own check and every byte, where something has happened. */
static void check_deeply(const script *s, const char *when) {
    for (unsigned i = 0; i < SCRIPT_POOLS; i++) {
        onuma__pool *pool = onuma__handle_get(ONUMA__HANDLE_POOL, s->pools[i]);
        if (pool != NULL && onuma__engine_check(pool->owner.engine) != ONUMA_OK)
            fail_msg("%s: pool %u is broken: %s", when, i, onuma_last_error());
    }
    if (s->native->api != ONUMA_API_HOST) return; /* elsewhere the CPU must ask first */
    for (unsigned i = 0; i < SCRIPT_BLOCKS; i++) {
        const script_block *b = &s->blocks[i];
        for (size_t at = 0; b->base != NULL && b->filled && at < b->size; at += stride(at))
            if (b->base[at] != pattern(b, at)) fail_msg("%s: byte %zu of block %u has changed", when, at, i);
    }
}

void script_check(script *s, const char *when) {
    const char *violation = fault_violation();
    if (violation != NULL) fail_msg("%s: %s", when, violation);
    uint64_t reserved = 0;
    for (unsigned i = 0; i < SCRIPT_POOLS; i++)
        check_pool(s, i, when, &reserved);
    const uint64_t held = fault_books_now().segment_bytes - s->held_before;
    if (reserved != held)
        fail_msg("%s: the pools say %llu bytes reserved, the driver gave %llu", when, (unsigned long long)reserved,
                 (unsigned long long)held);
    if (fault_fired() != s->fired_before) check_deeply(s, when);
}

void script_before(script *s) {
    s->fired_before = fault_fired();
}

/* A failure that a fault explains, or the test fails. */
static void explain(script *s, const char *call, onuma_result r) {
    const char *text = onuma_last_error();
    if (text[0] == '\0') fail_msg("%s fails with %s and no text", call, onuma_result_name(r));
    if (fault_fired() == s->fired_before && !script_lost(s) && !s->excused)
        fail_msg("%s fails with %s, though no fault fired in it: %s", call, onuma_result_name(r), text);
}

bool script_again(script *s, const char *call, onuma_result r) {
    script_check(s, call);
    if (r == ONUMA_OK) {
        s->tries = 0;
        return false;
    }
    explain(s, call, r);
    if (script_lost(s) || s->excused) {
        s->tries = 0;
        return false;
    }
    if (++s->tries > MOST_TRIES) fail_msg("%s does not work again: %s", call, onuma_last_error());
    return true;
}

void script_expect(script *s, const char *call, onuma_result r, onuma_result expected) {
    script_check(s, call);
    if (r == expected) {
        if (r != ONUMA_OK && onuma_last_error()[0] == '\0') fail_msg("%s: no text", call);
        return;
    }
    if (r == ONUMA_OK) fail_msg("%s succeeds, expected %s", call, onuma_result_name(expected));
    explain(s, call, r);
}

/* ------------------------------------------------------------------ blocks */

static script_block *place(script *s) {
    for (unsigned i = 0; i < SCRIPT_BLOCKS; i++)
        if (s->blocks[i].base == NULL) return &s->blocks[i];
    fail_msg("the script has too many blocks");
    return NULL;
}

static script_block *enter(script *s, unsigned pool, void *base, size_t size) {
    if (base == NULL) return NULL;
    script_block *b = place(s);
    *b = (script_block){.base = base, .size = size, .pool = pool, .number = ++s->numbers};
    return b;
}

static void fill(script *s, script_block *b) {
    if (b == NULL || b->size == 0) return;
    CALL(s, onuma_host_acquire(b->base, b->size, ONUMA_ACCESS_WRITE, UINT64_C(20000000000)));
    if (s->result != ONUMA_OK) return;
    for (size_t i = 0; i < b->size; i += stride(i))
        b->base[i] = pattern(b, i);
    b->filled = true;
    CALL(s, onuma_host_release(b->base, b->size, ONUMA_ACCESS_WRITE));
}

/* The first `size` bytes are as they were filled. */
static void verify_bytes(script *s, const script_block *b, size_t size) {
    if (size == 0) return;
    CALL(s, onuma_host_acquire(b->base, size, ONUMA_ACCESS_READ, UINT64_C(20000000000)));
    if (s->result != ONUMA_OK) return;
    for (size_t i = 0; i < size; i += stride(i))
        if (b->base[i] != pattern(b, i)) fail_msg("byte %zu of a block of %zu has changed", i, b->size);
    CALL(s, onuma_host_release(b->base, size, ONUMA_ACCESS_READ));
}

static void verify(script *s, const script_block *b) {
    if (b != NULL && b->filled) verify_bytes(s, b, b->size);
}

static script_block *alloc(script *s, unsigned pool, size_t size, size_t align, onuma_queue *q) {
    if (s->pools[pool] == NULL) return NULL;
    void *base;
    /* Entered before the books are compared. */
    script_block *b = place(s);
    do {
        script_before(s);
        base = SENTINEL;
        s->result = onuma_alloc(s->pools[pool], size, align, q, &base);
        if (s->result != ONUMA_OK && base != NULL) fail_msg("onuma_alloc fails and leaves %p", base);
        if (s->result == ONUMA_OK) b = enter(s, pool, base, size);
    } while (script_again(s, "onuma_alloc", s->result));
    if (s->result != ONUMA_OK) return NULL;
    if (align != 0 && (uintptr_t)base % align != 0) fail_msg("%p is not aligned to %zu", base, align);
    return b;
}

static void free_block(script *s, script_block *b, onuma_queue *q) {
    if (b == NULL || b->base == NULL) return;
    void *base = b->base;
    for (;;) {
        script_before(s);
        s->result = onuma_free(base, q);
        if (s->result == ONUMA_OK) b->base = NULL;
        if (!script_again(s, "onuma_free", s->result)) return;
    }
}

static void alloc_zeroed(script *s, unsigned pool, size_t size, onuma_queue *q) {
    if (s->pools[pool] == NULL) return;
    void *base;
    script_block *b = NULL;
    do {
        script_before(s);
        base = SENTINEL;
        s->result = onuma_alloc_zeroed(s->pools[pool], size, 0, q, &base);
        if (s->result != ONUMA_OK && base != NULL) fail_msg("onuma_alloc_zeroed fails and leaves %p", base);
        if (s->result == ONUMA_OK) b = enter(s, pool, base, size);
    } while (script_again(s, "onuma_alloc_zeroed", s->result));
    if (s->result != ONUMA_OK) return;
    CALL(s, onuma_host_acquire(b->base, size, ONUMA_ACCESS_READ, UINT64_C(20000000000)));
    if (s->result == ONUMA_OK) {
        for (size_t i = 0; i < size; i++)
            if (b->base[i] != 0) fail_msg("byte %zu of a zeroed block is %u", i, b->base[i]);
        CALL(s, onuma_host_release(b->base, size, ONUMA_ACCESS_READ));
    }
    free_block(s, b, q);
}

static void resize(script *s, script_block *b, size_t size, onuma_queue *q) {
    if (b == NULL || b->base == NULL) return;
    const size_t kept = b->size < size ? b->size : size;
    const bool filled = b->filled;
    void *moved;
    do {
        script_before(s);
        moved = SENTINEL;
        s->result = onuma_realloc(b->base, size, q, &moved);
        if (s->result != ONUMA_OK && moved != NULL) fail_msg("onuma_realloc fails and leaves %p", moved);
        if (s->result == ONUMA_OK) {
            b->base = moved;
            b->size = size;
            b->filled = false;
        }
    } while (script_again(s, "onuma_realloc", s->result));
    if (s->result != ONUMA_OK) return;
    if (filled) verify_bytes(s, b, kept);
    fill(s, b);
}

/* ------------------------------------------------------------- the program */

static void hear(void *user, onuma_log_level level, const char *line) {
    script *s = user;
    (void)level;
    if (fault_locks_held() != 0) fault_violate("a log line comes with a lock held: %s", line);
    if (strstr(line, "stays mapped") != NULL) s->excused = true;
}

/* A driver that lacks a function may share no memory. */
static bool has_shared_memory(script *s) {
    onuma_device_info info = ONUMA_DEVICE_INFO_INIT;
    return onuma_device_get_info(s->device, &info) == ONUMA_OK && (info.kinds & 1u << ONUMA_KIND_SHARED) != 0;
}

/* A driver that could not be opened is absent until the next runtime. */
static void start(script *s) {
    onuma_runtime_desc desc = ONUMA_RUNTIME_DESC_INIT;
    desc.config = s->native->config;
    desc.log = hear;
    desc.log_user = s;
    for (unsigned i = 0; i < MOST_TRIES; i++) {
        const uint64_t fired = fault_fired();
        MAKE(s, s->rt, onuma_runtime_create(&desc, &s->rt));
        if (s->result != ONUMA_OK) {
            s->rt = NULL;
            return;
        }
        s->result = onuma_device_find(s->rt, s->native->device_id, &s->device);
        if (s->result == ONUMA_OK && has_shared_memory(s)) return;
        if (s->result == ONUMA_OK && fault_fired() == fired) return;
        if (s->result != ONUMA_OK && (s->device != NULL || onuma_last_error()[0] == '\0'))
            fail_msg("a device is not found, without a word");
        if (fault_fired() == fired && !script_lost(s)) fail_msg("no device: %s", onuma_last_error());
        onuma_runtime_destroy(s->rt);
        s->rt = NULL;
        script_check(s, "onuma_runtime_destroy");
        if (script_lost(s)) return;
    }
}

static void look_around(script *s) {
    const size_t backends = onuma_backend_count(s->rt);
    assert_int_equal(backends, 3);
    for (size_t i = 0; i < backends; i++) {
        onuma_backend_info info = ONUMA_BACKEND_INFO_INIT;
        CALL(s, onuma_backend_get_info(s->rt, i, &info));
        if (info.status != ONUMA_BACKEND_OK) assert_string_not_equal(info.detail, "");
    }
    assert_true(onuma_device_count(s->rt) >= 1);
    assert_non_null(onuma_device_at(s->rt, 0));
    assert_non_null(onuma_config_key_at(0));
    assert_string_not_equal(onuma_version(), "");
    s->info = (onuma_device_info)ONUMA_DEVICE_INFO_INIT;
    CALL(s, onuma_device_get_info(s->device, &s->info));
}

static void make_pool(script *s, unsigned i, onuma_pool_desc desc) {
    onuma_pool *pool;
    MAKE(s, pool, onuma_pool_create(s->device, &desc, &pool));
    s->pools[i] = pool;
}

/* 0: as it comes. 1: small segments, with a limit. 2: another kind. 3: simulated. */
static void make_pools(script *s) {
    onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
    make_pool(s, 0, desc);
    desc.source = ONUMA_SOURCE_SEGMENTS;
    desc.segment_bytes = (size_t)1 << 20;
    desc.limit_bytes = (size_t)8 << 20;
    desc.name = "small";
    make_pool(s, 1, desc);
    desc = (onuma_pool_desc)ONUMA_POOL_DESC_INIT;
    desc.kind = (s->info.kinds & 1u << ONUMA_KIND_DEVICE) != 0 ? ONUMA_KIND_DEVICE : ONUMA_KIND_HOST;
    make_pool(s, 2, desc);
    desc = (onuma_pool_desc)ONUMA_POOL_DESC_INIT;
    desc.simulate = true;
    make_pool(s, 3, desc);
}

static void wrap_queues(script *s) {
    for (unsigned i = 0; i < SCRIPT_QUEUES; i++) {
        onuma_queue_desc desc = ONUMA_QUEUE_DESC_INIT;
        onuma_queue *q;
        desc.order = i == 0 ? ONUMA_QUEUE_DETECT : ONUMA_QUEUE_UNORDERED;
        MAKE(s, q, onuma_queue_wrap(s->device, s->native->api, s->native->queue(i), &desc, &q));
        s->queues[i] = q;
        if (q == NULL) continue;
        MAKE(s, q, onuma_queue_wrap(s->device, s->native->api, s->native->queue(i), NULL, &q));
        if (q != NULL) assert_ptr_equal(q, s->queues[i]);
        if (q != NULL) CALL(s, onuma_queue_release(q));
    }
}

static void use_pool(script *s, unsigned pool) {
    static const size_t sizes[] = {1, 24, 100, 1000, 5000, 40000, 300000, 3000000};
    script_block *blocks[8];
    for (unsigned i = 0; i < 8; i++) {
        blocks[i] = alloc(s, pool, sizes[i], i == 4 ? 4096 : 0, i % 3 == 1 ? s->queues[0] : NULL);
        if (pool < 2) fill(s, blocks[i]);
    }
    for (unsigned i = 0; i < 8 && pool < 2; i++)
        verify(s, blocks[i]);
    if (pool < 2) {
        alloc_zeroed(s, pool, 70000, s->queues[0]);
        resize(s, blocks[3], 9000, NULL);
        resize(s, blocks[6], 100000, s->queues[0]);
        resize(s, blocks[6], 600000, s->queues[1]);
    }
    for (unsigned i = 0; i < 8; i++) {
        onuma_block_info info = ONUMA_BLOCK_INFO_INIT;
        if (blocks[i] == NULL) continue;
        CALL(s, onuma_block_get_info(blocks[i]->base, &info));
        if (s->result == ONUMA_OK && (info.base != blocks[i]->base || info.requested != blocks[i]->size))
            fail_msg("a block's information is wrong");
    }
    for (unsigned i = 0; i < 8; i += 2)
        free_block(s, blocks[i], i == 4 ? s->queues[1] : NULL);
    blocks[0] = alloc(s, pool, 2000000, 0, NULL);
    if (pool < 2) fill(s, blocks[0]);
    free_block(s, blocks[0], NULL);
    for (unsigned i = 1; i < 8; i += 2)
        free_block(s, blocks[i], s->queues[0]);
}

/* Work that uses blocks while they are freed, waited for and reused. */
static void share(script *s) {
    script_block *a = alloc(s, 0, 10000, 0, NULL), *b = alloc(s, 1, 20000, 0, NULL), *c = alloc(s, 0, 200, 0, NULL);
    onuma_queue *q0 = s->queues[0], *q1 = s->queues[1];
    onuma_native_event done = ONUMA_NATIVE_EVENT_INIT;
    fill(s, a);
    fill(s, b);
    if (a == NULL || b == NULL || c == NULL || q0 == NULL || q1 == NULL) return;
    CALL(s, onuma_use(q0, a->base, ONUMA_ACCESS_READ));
    void *const both[] = {a->base, b->base};
    const onuma_access modes[] = {ONUMA_ACCESS_READ, ONUMA_ACCESS_READ_WRITE};
    CALL(s, onuma_use_many(q1, 2, both, modes));
    s->native->begin(0, &done);
    CALL(s, onuma_submitted(q0, &done));
    s->native->begin(1, &done);
    CALL(s, onuma_submitted(q1, NULL));
    if (s->result == ONUMA_OK && !script_lost(s) && !s->excused)
        EXPECT(s, ONUMA_ERROR_TIMEOUT, onuma_host_acquire(b->base, b->size, ONUMA_ACCESS_READ, 0));
    if (s->native->api != ONUMA_API_HOST) CALL(s, onuma_queue_wait(q0, q1, NULL));
    free_block(s, b, q0); /* parked */
    free_block(s, c, q1);
    script_block *d = alloc(s, 1, 20000, 0, q0);
    s->native->end(1);
    s->native->end(0);
    fill(s, d);
    verify(s, a);
    free_block(s, d, NULL);
    free_block(s, a, NULL);
}

static void see(script *s) {
    script_block *b = alloc(s, 0, 5000, 0, NULL);
    if (b == NULL) return;
    fill(s, b);
    onuma_view kept = ONUMA_VIEW_INIT, inner = ONUMA_VIEW_INIT;
    kept.flags = ONUMA_VIEW_RETAIN;
    CALL(s, onuma_view_get(b->base, s->device, s->native->api, &kept));
    const bool got = s->result == ONUMA_OK;
    CALL(s, onuma_view_get(b->base + 100, s->device, s->native->api, &inner));
    if (got && s->result == ONUMA_OK) assert_int_equal(inner.size + 100, kept.size);
    verify(s, b);
    free_block(s, b, NULL);
    if (got) CALL(s, onuma_view_release(&kept));
}

#define IMPORT_BYTES ((size_t)65536)

static void deleted(void *user, void *ptr) {
    script *s = user;
    onuma__os_release(ptr, IMPORT_BYTES);
    if (fault_locks_held() != 0) fault_violate("a deleter is called with a lock held");
    s->deleted++;
}

static void import(script *s) {
    onuma_import_desc desc = ONUMA_IMPORT_DESC_INIT;
    void *base;
    desc.deleter = deleted;
    desc.user = s;
    unsigned char *imported = onuma__os_map(IMPORT_BYTES, IMPORT_BYTES);
    assert_non_null(imported);
    memset(imported, 7, IMPORT_BYTES);
    const unsigned before = s->deleted;
    MAKE(s, base, onuma_import(s->device, imported, IMPORT_BYTES, &desc, &base));
    if (s->result != ONUMA_OK) {
        assert_int_equal(s->deleted, before);
        onuma__os_release(imported, IMPORT_BYTES);
        return;
    }
    s->imports++;
    CALL(s, onuma_host_acquire(base, 100, ONUMA_ACCESS_READ, UINT64_C(20000000000)));
    if (s->result == ONUMA_OK) {
        assert_int_equal(imported[99], 7);
        CALL(s, onuma_host_release(base, 100, ONUMA_ACCESS_READ));
    }
    if (s->queues[0] != NULL) {
        CALL(s, onuma_use(s->queues[0], base, ONUMA_ACCESS_READ));
        CALL(s, onuma_submitted(s->queues[0], NULL));
    }
    CALL(s, onuma_free(base, s->queues[0]));
}

typedef struct reserve {
    script *s;
    script_block *block;
    unsigned asked;
} reserve;

static bool on_oom(void *user, onuma_pool *p, size_t size) {
    (void)p, (void)size;
    reserve *r = user;
    if (fault_locks_held() != 0) fault_violate("the handler is called with a lock held");
    r->asked++;
    if (r->block == NULL || onuma_free(r->block->base, NULL) != ONUMA_OK) return false;
    r->block->base = NULL;
    r->block = NULL;
    return true;
}

static void run_out(script *s) {
    if (s->pools[1] == NULL) return;
    reserve r = {s, alloc(s, 1, (size_t)3 << 20, 0, NULL), 0};
    const bool reserved = r.block != NULL;
    CALL(s, onuma_pool_set_limit(s->pools[1], (size_t)4 << 20));
    CALL(s, onuma_pool_set_oom_handler(s->pools[1], on_oom, &r));
    script_block *big = alloc(s, 1, (size_t)3 << 20, 0, NULL);
    if (big != NULL && reserved && r.asked == 0) fail_msg("the handler was not asked");
    CALL(s, onuma_pool_set_oom_handler(s->pools[1], NULL, NULL));
    void *none = SENTINEL;
    EXPECT(s, ONUMA_ERROR_LIMIT, onuma_alloc(s->pools[1], (size_t)5 << 20, 0, NULL, &none));
    assert_null(none);
    free_block(s, r.block, NULL);
    free_block(s, big, NULL);
    CALL(s, onuma_pool_set_limit(s->pools[1], 0));
}

static void trim(script *s) {
    for (unsigned i = 0; i < SCRIPT_POOLS; i++) {
        size_t released;
        if (s->pools[i] == NULL) continue;
        CALL(s, onuma_pool_trim(s->pools[i], (size_t)1 << 20, &released));
        CALL(s, onuma_pool_trim(s->pools[i], 0, &released));
        CALL(s, onuma_pool_reset_peak(s->pools[i]));
    }
}

static void adopt(script *s) {
    onuma_native_device native = ONUMA_NATIVE_DEVICE_INIT;
    onuma_device *device = NULL;
    if (s->native->api == ONUMA_API_HOST) {
        EXPECT(s, ONUMA_ERROR_NOT_SUPPORTED, onuma_device_adopt(s->rt, s->native->api, &native, &device));
        EXPECT(s, ONUMA_ERROR_NOT_SUPPORTED, onuma_device_from_queue(s->rt, s->native->api, 0, &device));
        return;
    }
    native.context = s->info.native_context;
    native.device = s->info.native_device;
    MAKE(s, device, onuma_device_adopt(s->rt, s->native->api, &native, &device));
    if (device != NULL) CALL(s, onuma_device_release(device));
    MAKE(s, device, onuma_device_from_queue(s->rt, s->native->api, s->native->queue(0), &device));
    if (device != NULL) CALL(s, onuma_device_release(device));
}

/* -------------------------------------------------------------------- the end */

static void give_up_blocks(script *s, unsigned pool) {
    for (unsigned i = 0; i < SCRIPT_BLOCKS; i++)
        if (s->blocks[i].pool == pool) s->blocks[i].base = NULL;
}

/* What went into quarantine is no pool's any more. */
static void count_quarantine(script *s) {
    uint64_t reserved = 0;
    for (unsigned i = 0; i < SCRIPT_POOLS; i++) {
        onuma_pool_stats stats = ONUMA_POOL_STATS_INIT;
        if (s->pools[i] == NULL || i == 3) continue;
        if (onuma_pool_get_stats(s->pools[i], &stats) == ONUMA_OK) reserved += stats.reserved_bytes;
    }
    s->held_before = fault_books_now().segment_bytes - reserved;
}

static void destroy_pool(script *s, unsigned i) {
    onuma_pool *pool = s->pools[i];
    /* What is only slow, on a busy machine, is to get its time, or the pool goes into quarantine. */
    const uint64_t timeout = s->native->api == ONUMA_API_HOST ? UINT64_C(1000000000) : UINT64_C(20000000000);
    unsigned patience = 0;
    if (pool == NULL) return;
    for (;;) {
        script_before(s);
        s->result = i == 2 ? onuma_pool_destroy_forced(pool, timeout) : onuma_pool_destroy(pool);
        if (s->result == ONUMA_OK) {
            s->pools[i] = NULL;
            give_up_blocks(s, i);
            if (script_lost(s) || s->excused) count_quarantine(s);
        }
        /* The clock goes faster than the driver: see fault_shorten_sleep. */
        if (s->result == ONUMA_ERROR_BUSY && s->native->api != ONUMA_API_HOST && ++patience < 20) continue;
        if (!script_again(s, "onuma_pool_destroy", s->result)) break;
    }
    if (s->result == ONUMA_OK) return;
    if (onuma_pool_destroy_forced(pool, 1000000) != ONUMA_OK) fail_msg("forced destruction: %s", onuma_last_error());
    s->pools[i] = NULL;
    give_up_blocks(s, i);
    count_quarantine(s);
}

static void finish(script *s) {
    for (unsigned i = 0; i < SCRIPT_POOLS; i++) {
        if (i != 2)
            for (unsigned b = 0; b < SCRIPT_BLOCKS; b++)
                if (s->blocks[b].pool == i) free_block(s, &s->blocks[b], NULL);
        destroy_pool(s, i);
    }
    for (unsigned i = 0; i < SCRIPT_QUEUES; i++) {
        onuma_queue *q = s->queues[i];
        if (q != NULL) CALL(s, onuma_queue_release(q));
    }
    onuma_runtime_destroy(s->rt);
    if (script_lost(s) || s->excused) count_quarantine(s);
    script_check(s, "onuma_runtime_destroy");
}

void script_run(script *s, const native_calls *native, const fault_plan *plan) {
    static bool warm; /* what is made once for the process has been made */
    const fault_books before = fault_books_now();
    *s = (script){.native = native, .plan = plan, .held_before = before.segment_bytes};
    fault_arm(plan);
    start(s);
    if (s->rt != NULL) {
        look_around(s);
        make_pools(s);
        CALL(s, onuma_device_get_info(s->device, &s->info));
        native->open(s->info.native_context, s->info.native_device);
        wrap_queues(s);
        for (unsigned i = 0; i < SCRIPT_POOLS; i++)
            use_pool(s, i);
        share(s);
        see(s);
        import(s);
        run_out(s);
        adopt(s);
        trim(s);
        script_block *left = alloc(s, 2, 1000, 0, s->queues[0]); /* the forced destruction is for this one */
        (void)left;
        finish(s);
        native->close();
    }
    const fault_books after = fault_books_now();
    const bool kept = script_lost(s) || s->excused;
    fault_arm(NULL);
    if (!kept && warm) {
#define X(name)                                                                                                        \
    if (after.name != before.name)                                                                                     \
        print_error("%lld more %s than before\n", (long long)(after.name - before.name), #name);
        FAULT_BOOKS(X)
#undef X
        if (s->deleted != s->imports) fail_msg("%u imports, %u deleted", s->imports, s->deleted);
    }
    fault_driver_forget();
    warm = true;
}
