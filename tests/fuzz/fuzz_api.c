/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequences of public calls, decoded from bytes, against a simple model: one
 * pool with memory and one without, on the host; three queues on timelines that
 * the input steps, two of them in order. After each call its result must be the
 * model's, and in the end everything must be back.
 *
 * The library waits for queues before it fails an allocation, trims or destroys.
 * Nobody else finishes their work here, so that it is finished before such calls.
 */
#include "api_model.h"

#include <stdatomic.h>

static onuma_device *host;
static onuma_host_timeline timelines[QUEUES]; /* of the whole process: they only grow */

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv) {
    onuma_runtime_desc desc = ONUMA_RUNTIME_DESC_INIT;
    onuma_runtime *rt;
    (void)argc;
    (void)argv;
    desc.config = "backends:host";
    FUZZ_CHECK(onuma_runtime_create(&desc, &rt) == ONUMA_OK, "%s", onuma_last_error());
    FUZZ_CHECK(onuma_device_find(rt, "host", &host) == ONUMA_OK, "%s", onuma_last_error());
    return 0;
}

#define MUST(call) FUZZ_CHECK((call) == ONUMA_OK, "%s", onuma_last_error())
#define MUST_BE(result, expected)                                                                                      \
    FUZZ_CHECK((result) == (expected), "%s instead of %s: %s", onuma_result_name(result), onuma_result_name(expected), \
               onuma_last_error())

/* ----------------------------------------------------------------- choosing */

static model_block *choose_block(model *m, fuzz_bytes *from) {
    size_t first = fuzz_byte(from) % BLOCKS;
    for (size_t i = 0; i < BLOCKS; i++)
        if (m->blocks[(first + i) % BLOCKS].base != NULL) return &m->blocks[(first + i) % BLOCKS];
    return NULL;
}

static model_block *choose_place(model *m) {
    for (size_t i = 0; i < BLOCKS; i++)
        if (m->blocks[i].base == NULL) return &m->blocks[i];
    return NULL;
}

static void wrap(model_queue *q) {
    onuma_queue_desc desc = ONUMA_QUEUE_DESC_INIT;
    desc.order = q->in_order ? ONUMA_QUEUE_IN_ORDER : ONUMA_QUEUE_UNORDERED;
    if (q->queue == NULL)
        MUST(onuma_queue_wrap(host, ONUMA_API_HOST, (uint64_t)(uintptr_t)q->timeline, &desc, &q->queue));
}

/* A queue, or with half the bytes none: -1. */
static int choose_queue(model *m, fuzz_bytes *from, onuma_queue **queue) {
    uint8_t choice = fuzz_byte(from);
    *queue = NULL;
    if (choice < 128) return -1;
    wrap(&m->queues[choice % QUEUES]);
    *queue = m->queues[choice % QUEUES].queue;
    return choice % QUEUES;
}

static size_t choose_size(const model_pool *p, fuzz_bytes *from) {
    switch (fuzz_byte(from) % 8) {
    case 0:
        return fuzz_byte(from);
    case 1:
    case 2:
        return (size_t)fuzz_number(from, 2) % 4096;
    case 3:
    case 4:
        return (size_t)fuzz_number(from, 2);
    case 5:
        return (size_t)fuzz_number(from, 3) % (p->simulated ? 1u << 24 : 1u << 22);
    case 6:
        return p->simulated ? (size_t)fuzz_number(from, 4) : (size_t)1 << fuzz_byte(from) % 23;
    default:
        return fuzz_byte(from) < 240 ? (size_t)fuzz_byte(from) * 64 : SIZE_MAX - (size_t)fuzz_number(from, 2);
    }
}

/* 0, a power of two, or seldom 3, which is none. */
static size_t choose_align(fuzz_bytes *from) {
    uint8_t choice = fuzz_byte(from);
    return choice < 192 ? 0 : choice == 255 ? 3 : (size_t)1 << choice % 17;
}

/* Where the library would wait for queues, their work is finished first. */
static void finish_if_short(model *m, unsigned pool, size_t size) {
    const model_pool *p = &m->pools[pool];
    onuma_pool_stats s = ONUMA_POOL_STATS_INIT;
    MUST(onuma_pool_get_stats(p->pool, &s));
    bool fits = size < (size_t)1 << 40 && (p->limit == 0 || s.reserved_bytes + 2 * size + (4 << 20) <= p->limit);
    if (s.pending_bytes != 0 && !fits) model_finish_queues(m);
}

/* Failing is allowed for want of room alone. */
static void check_failure(model *m, unsigned pool, size_t size, onuma_result r) {
    model_pool *p = &m->pools[pool];
    bool huge = size >= (size_t)1 << 40;
    FUZZ_CHECK((r == ONUMA_ERROR_LIMIT && p->limit != 0) || (r == ONUMA_ERROR_OUT_OF_MEMORY && huge),
               "%zu bytes: %s: %s", size, onuma_result_name(r), onuma_last_error());
    FUZZ_CHECK(huge || p->blocks != 0 || m->pending_count != 0 || !model_all_reached(m) ||
                   2 * size + (4 << 20) > p->limit,
               "%zu bytes do not fit an empty pool: %s", size, onuma_last_error());
    p->failures++;
}

/* --------------------------------------------------------------- operations */

static void do_alloc(model *m, fuzz_bytes *from, bool zeroed) {
    unsigned pool = fuzz_byte(from) % POOLS;
    size_t size = choose_size(&m->pools[pool], from), align = choose_align(from);
    onuma_queue *queue;
    int q = choose_queue(m, from, &queue);
    model_block *block = choose_place(m);
    void *base = &base;
    if (block == NULL) return;
    if (zeroed && size > 1u << 18 && size < (size_t)1 << 40) size %= 1u << 18;
    finish_if_short(m, pool, size);
    onuma_result r = zeroed ? onuma_alloc_zeroed(m->pools[pool].pool, size, align, queue, &base)
                            : onuma_alloc(m->pools[pool].pool, size, align, queue, &base);
    FUZZ_CHECK(r == ONUMA_OK || base == NULL, "*out is not NULL after a failure");
    if (align == 3) {
        MUST_BE(r, ONUMA_ERROR_INVALID_ARGUMENT);
    } else if (zeroed && m->pools[pool].simulated) {
        MUST_BE(r, ONUMA_ERROR_NOT_SUPPORTED);
    } else if (r != ONUMA_OK) {
        check_failure(m, pool, size, r);
    } else {
        /* Zeroed by the CPU, so that no queue may still use it; only then it is the queue's. */
        model_allocated(m, block, pool, base, size, align, zeroed ? -1 : q);
        if (q >= 0) block->bound[q] = true;
        for (size_t i = 0; zeroed && i < size; i++)
            FUZZ_CHECK(block->base[i] == 0, "byte %zu of %zu is not zero", i, size);
        model_fill(m, block);
    }
}

static void op_alloc(model *m, fuzz_bytes *from) {
    do_alloc(m, from, false);
}

static void op_alloc_zeroed(model *m, fuzz_bytes *from) {
    do_alloc(m, from, true);
}

static void op_free(model *m, fuzz_bytes *from) {
    model_block *block = choose_block(m, from);
    onuma_queue *queue;
    int q = choose_queue(m, from, &queue);
    if (block == NULL) return;
    void *base = block->base;
    model_check_contents(m, block, block->requested);
    model_freed(m, block, q);
    MUST(onuma_free(base, queue));
}

/* The CPU moves the contents, so work that writes them, or wrote what lay there before, is finished first. */
static void finish_writers(model *m, const model_block *block) {
    bool written = false;
    for (size_t i = 0; i < block->use_count; i++)
        written = written || (block->uses[i].mode & ONUMA_ACCESS_WRITE) != 0;
    for (unsigned q = 0; q < QUEUES; q++)
        written = written || block->bound[q] || !model_reached(m, q, block->until[q]);
    if (written) model_finish_queues(m);
}

static void resized_in_place(model *m, model_block *block, size_t size, int q) {
    onuma_block_info info = ONUMA_BLOCK_INFO_INIT;
    model_pool *p = &m->pools[block->pool];
    MUST(onuma_block_get_info(block->base, &info));
    FUZZ_CHECK(info.base == block->base && info.size >= size && info.requested == size, "%zu: %zu, %zu", size,
               info.size, info.requested);
    p->in_use = p->in_use - block->size + info.size;
    p->requested = p->requested - block->requested + size;
    block->size = info.size;
    block->requested = size;
    if (q >= 0) block->bound[q] = true;
}

static void op_realloc(model *m, fuzz_bytes *from) {
    model_block *block = choose_block(m, from), *place = choose_place(m);
    onuma_queue *queue;
    void *moved;
    if (block == NULL || place == NULL) return;
    size_t size = choose_size(&m->pools[block->pool], from);
    int q = choose_queue(m, from, &queue);
    finish_writers(m, block);
    finish_if_short(m, block->pool, size);
    model_check_contents(m, block, block->requested);
    onuma_result r = onuma_realloc(block->base, size, queue, &moved);
    if (r != ONUMA_OK) {
        check_failure(m, block->pool, size, r);
        model_check_contents(m, block, block->requested);
        return;
    }
    size_t kept = size < block->requested ? size : block->requested;
    if (moved == block->base) {
        resized_in_place(m, block, size, q);
    } else {
        const model_block old = *block;
        model_allocated(m, place, block->pool, moved, size, 0, -1);
        if (q >= 0) place->bound[q] = true;
        model_freed(m, block, q);
        block = place;
        block->number = old.number;
        block->filled = old.filled;
    }
    model_check_contents(m, block, kept);
    model_fill(m, block);
}

static void op_find(model *m, fuzz_bytes *from) {
    onuma_block_info info = ONUMA_BLOCK_INFO_INIT;
    const model_block *block = choose_block(m, from);
    if (block == NULL || block->size == 0) return;
    size_t within = (size_t)fuzz_number(from, 3) % block->size;
    MUST(onuma_block_get_info(block->base + within, &info));
    FUZZ_CHECK(info.base == block->base && info.size == block->size && info.requested == block->requested &&
                   info.pool == m->pools[block->pool].pool,
               "byte %zu of %p is found in %p", within, (void *)block->base, info.base);
}

/* Interior, foreign, and what is free already. */
static void op_bad_free(model *m, fuzz_bytes *from) {
    uint8_t choice = fuzz_byte(from);
    onuma_queue *queue;
    const model_block *block = choose_block(m, from);
    (void)choose_queue(m, from, &queue);
    if (choice % 4 == 0) {
        MUST_BE(onuma_free(&choice, queue), ONUMA_ERROR_INVALID_POINTER);
    } else if (choice % 4 == 1 && m->pending_count != 0) {
        const model_pending *old = &m->pending[choice % m->pending_count];
        for (size_t i = 0; i < BLOCKS; i++)
            if (m->blocks[i].base == old->base) return;
        onuma_result r = onuma_free(old->base, queue);
        if (r != ONUMA_ERROR_DOUBLE_FREE) MUST_BE(r, ONUMA_ERROR_INVALID_POINTER);
    } else if (block != NULL && block->size > 1) {
        size_t within = (size_t)fuzz_number(from, 3) % (block->size - 1) + 1;
        MUST_BE(onuma_free(block->base + within, queue), ONUMA_ERROR_INVALID_POINTER);
    }
}

static void op_trim(model *m, fuzz_bytes *from) {
    unsigned pool = fuzz_byte(from) % POOLS;
    size_t keep = (size_t)fuzz_byte(from) << 16, released;
    onuma_pool_stats before = ONUMA_POOL_STATS_INIT, after = ONUMA_POOL_STATS_INIT;
    model_finish_queues(m);
    MUST(onuma_pool_get_stats(m->pools[pool].pool, &before));
    MUST(onuma_pool_trim(m->pools[pool].pool, keep, &released));
    MUST(onuma_pool_get_stats(m->pools[pool].pool, &after));
    FUZZ_CHECK(before.reserved_bytes - after.reserved_bytes == released, "%zu released", released);
    FUZZ_CHECK(m->pools[pool].blocks != 0 || after.reserved_bytes <= keep, "%llu left of nothing live",
               (unsigned long long)after.reserved_bytes);
}

static void op_set_limit(model *m, fuzz_bytes *from) {
    model_pool *p = &m->pools[fuzz_byte(from) % POOLS];
    onuma_pool_stats s = ONUMA_POOL_STATS_INIT;
    uint8_t choice = fuzz_byte(from);
    p->limit = choice < 64 ? 0 : (size_t)choice << 18;
    MUST(onuma_pool_set_limit(p->pool, p->limit));
    MUST(onuma_pool_get_stats(p->pool, &s));
    p->most_reserved = p->limit == 0 ? UINT64_MAX : p->limit > s.reserved_bytes ? p->limit : s.reserved_bytes;
}

static void op_release_queue(model *m, fuzz_bytes *from) {
    unsigned q = fuzz_byte(from) % QUEUES;
    model_release_queue(m, q);
    MUST(onuma_queue_release(m->queues[q].queue));
    m->queues[q].queue = NULL;
}

static void op_hand_in(model *m, fuzz_bytes *from) {
    uint8_t choice = fuzz_byte(from);
    atomic_fetch_add(&m->queues[choice % QUEUES].timeline->submitted, choice / QUEUES % 4 + 1);
}

static void op_complete(model *m, fuzz_bytes *from) {
    uint8_t choice = fuzz_byte(from);
    onuma_host_timeline *t = m->queues[choice % QUEUES].timeline;
    uint64_t left = atomic_load(&t->submitted) - atomic_load(&t->completed), step = choice / QUEUES % 4 + 1;
    model_settle(m); /* until now nothing may have touched what is in use */
    atomic_fetch_add(&t->completed, step < left ? step : left);
    model_settle(m);
}

static void op_use(model *m, fuzz_bytes *from) {
    uint8_t choice = fuzz_byte(from);
    onuma_access mode = choice / QUEUES % ONUMA_ACCESS_READ_WRITE + 1;
    model_block *block = choose_block(m, from);
    if (block == NULL || block->use_count == USES) return;
    wrap(&m->queues[choice % QUEUES]);
    onuma_result r = onuma_use(m->queues[choice % QUEUES].queue, block->base, mode);
    if (model_use_conflicts(block, mode)) {
        MUST_BE(r, ONUMA_ERROR_CONFLICT);
    } else {
        MUST_BE(r, ONUMA_OK);
        model_used(m, block, choice % QUEUES, mode);
    }
}

static void op_submitted(model *m, fuzz_bytes *from) {
    uint8_t choice = fuzz_byte(from);
    unsigned q = choice % QUEUES;
    const onuma_host_timeline *t = m->queues[q].timeline;
    uint64_t submitted = atomic_load(&t->submitted), completed = atomic_load(&t->completed), until = submitted;
    onuma_native_event event = ONUMA_NATIVE_EVENT_INIT;
    /* On a queue in order, later work ends last. */
    if (!m->queues[q].in_order && submitted != completed) until = completed + choice % (submitted - completed) + 1;
    event.handle = until;
    wrap(&m->queues[q]);
    bool with_event = choice >= 128;
    MUST(onuma_submitted(m->queues[q].queue, with_event ? &event : NULL));
    model_submitted(m, q, with_event ? until : submitted);
}

static void op_acquire(model *m, fuzz_bytes *from) {
    uint8_t choice = fuzz_byte(from);
    onuma_access mode = choice % ONUMA_ACCESS_READ_WRITE + 1;
    model_block *block = choose_block(m, from);
    if (block == NULL) return;
    bool beyond = choice >= 240;
    bool waits = !beyond && !m->pools[block->pool].simulated && model_acquire_waits(m, block, mode);
    onuma_result r = onuma_host_acquire(block->base, block->size + beyond, mode, 0);
    if (beyond) {
        MUST_BE(r, ONUMA_ERROR_INVALID_ARGUMENT);
    } else if (m->pools[block->pool].simulated) {
        MUST_BE(r, ONUMA_ERROR_NOT_SUPPORTED);
    } else if (waits || (r == ONUMA_ERROR_TIMEOUT && !model_all_reached(m))) {
        MUST_BE(r, ONUMA_ERROR_TIMEOUT);
    } else {
        MUST_BE(r, ONUMA_OK);
        model_acquired(block, mode);
    }
}

static void op_release(model *m, fuzz_bytes *from) {
    onuma_access mode = fuzz_byte(from) % ONUMA_ACCESS_READ_WRITE + 1;
    model_block *block = choose_block(m, from);
    if (block == NULL) return;
    MUST_BE(onuma_host_release(block->base, block->requested, mode),
            block->holds[mode] != 0 ? ONUMA_OK : ONUMA_ERROR_INVALID_ARGUMENT);
    if (block->holds[mode] != 0) block->holds[mode]--;
}

static void op_statistics(model *m, fuzz_bytes *from) {
    (void)from;
    model_check_statistics(m);
}

/* New ones go to the end: the kept inputs choose by number. */
static void (*const operations[])(model *m, fuzz_bytes *from) = {
    op_alloc,   op_free,     op_realloc,       op_alloc_zeroed, op_find,      op_bad_free, op_trim,    op_set_limit,
    op_hand_in, op_complete, op_release_queue, op_use,          op_submitted, op_acquire,  op_release, op_statistics,
};

/* ------------------------------------------------------------ a whole input */

static void open_pool(model_pool *p, fuzz_bytes *from, bool simulated) {
    uint8_t choice = fuzz_byte(from);
    onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
    desc.kind = choice % 2 ? ONUMA_KIND_HOST : ONUMA_KIND_SHARED;
    desc.source = choice / 2 % 3;
    desc.simulate = simulated;
    desc.segment_bytes = choice & 64 ? (size_t)1 << 20 : 0;
    desc.alignment = choice & 128 ? 256 : 0;
    p->simulated = simulated;
    p->alignment = desc.alignment != 0 ? desc.alignment : 64;
    p->most_reserved = UINT64_MAX;
    MUST(onuma_pool_create(host, &desc, &p->pool));
}

static void close_all(model *m) {
    for (size_t i = 0; i < BLOCKS; i++) {
        void *base = m->blocks[i].base;
        if (base == NULL) continue;
        model_check_contents(m, &m->blocks[i], m->blocks[i].requested);
        model_freed(m, &m->blocks[i], -1);
        MUST(onuma_free(base, NULL));
    }
    model_finish_queues(m);
    for (unsigned q = 0; q < QUEUES; q++)
        MUST(onuma_queue_release(m->queues[q].queue));
    model_check_statistics(m);
    for (size_t i = 0; i < POOLS; i++) {
        onuma_pool_stats s = ONUMA_POOL_STATS_INIT;
        MUST(onuma_pool_trim(m->pools[i].pool, 0, NULL));
        MUST(onuma_pool_get_stats(m->pools[i].pool, &s));
        FUZZ_CHECK(s.in_use_bytes == 0 && s.pending_bytes == 0 && s.reserved_bytes == 0,
                   "at the end %llu bytes are in use, %llu pending, %llu reserved", (unsigned long long)s.in_use_bytes,
                   (unsigned long long)s.pending_bytes, (unsigned long long)s.reserved_bytes);
        MUST(onuma_pool_destroy(m->pools[i].pool));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    enum { OPERATIONS = sizeof operations / sizeof *operations };
    static model m;
    static uint32_t ran; /* which of them, over all inputs so far */
    fuzz_bytes from = {data, size};
    memset(&m, 0, sizeof m);
    for (unsigned q = 0; q < QUEUES; q++)
        m.queues[q] = (model_queue){.timeline = &timelines[q], .in_order = q != QUEUES - 1};
    for (size_t i = 0; i < POOLS; i++)
        open_pool(&m.pools[i], &from, i == 1);
    while (from.left != 0) {
        const unsigned choice = fuzz_byte(&from) % OPERATIONS;
        operations[choice](&m, &from);
        ran |= 1u << choice;
    }
    close_all(&m);
    if (ran == (1u << OPERATIONS) - 1) fuzz_reached_the_end();
    return 0;
}
