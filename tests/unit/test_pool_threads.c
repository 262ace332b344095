/* SPDX-License-Identifier: Apache-2.0 */
/* The engine under several threads: remote and racing frees, growth at once, threads that exit, engines that die first. */
#include "pool_support.h"

#include <pthread.h>
#include <stdatomic.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static pthread_t start(void *(*fn)(void *), void *argument) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, fn, argument), 0);
    return thread;
}

static void join(pthread_t thread) {
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* cmocka's asserts are for the main thread: others count what went wrong. */
static _Atomic int faults;

static void expect(bool condition) {
    if (!condition) atomic_fetch_add(&faults, 1);
}

static onuma_result quiet_drop(void *ptr, onuma__tag tag) {
    onuma__engine *engine;
    return onuma__engine_free(ptr, tag, &engine);
}

/* ------------------------------------------------------------------ growth */

typedef struct grower {
    pool *p;
    size_t size;
    void *block;
} grower;

static _Atomic int at_gate;

static void *grow_at_once(void *argument) {
    grower *g = argument;
    atomic_fetch_sub(&at_gate, 1);
    while (atomic_load(&at_gate) > 0)
        onuma__os_yield();
    expect(try_take(g->p, g->size, 0, 0, &g->block) == ONUMA_OK);
    return NULL;
}

static void test_growing_at_once(void **state) {
    pool *p = *state;
    static const size_t sizes[] = {100, 100 * KIB, MIB, 10 * MIB};
    p->source.delay_ns = 2000000;
    for (size_t s = 0; s < 4; s++) {
        grower growers[8];
        pthread_t threads[8];
        atomic_store(&at_gate, 8);
        for (int i = 0; i < 8; i++) {
            growers[i] = (grower){.p = p, .size = sizes[s]};
            threads[i] = start(grow_at_once, &growers[i]);
        }
        for (int i = 0; i < 8; i++)
            join(threads[i]);
        check(p);
        for (int i = 0; i < 8; i++)
            for (int j = 0; j < i; j++)
                assert_ptr_not_equal(growers[i].block, growers[j].block);
        for (int i = 0; i < 8; i++)
            assert_int_equal(quiet_drop(growers[i].block, 0), ONUMA_OK);
        onuma__engine_take_caches(p->engine);
        check(p);
    }
    assert_int_equal(atomic_load(&faults), 0);
    /* One segment of 4 MiB and one of 8 MiB do for all that share, however many missed at once. */
    if (p->desc.mode == ONUMA_SOURCE_SEGMENTS) assert_true(p->source.acquires <= 2 + 8);
    onuma__engine_trim(p->engine, 0);
    assert_int_equal(stats(p).reserved_bytes, 0);
}

/* ------------------------------------------------------------- remote frees */

enum { BATCH = 64, BATCHES = 400 };

typedef struct channel {
    pool *p;
    _Atomic(void **) full; /* a batch on its way */
    onuma__tag tag;
} channel;

static void *produce(void *argument) {
    channel *c = argument;
    for (int b = 0; b < BATCHES; b++) {
        void **batch = malloc(BATCH * sizeof *batch);
        for (int i = 0; i < BATCH; i++) {
            expect(try_take(c->p, (size_t)(i * 37 + 1), 0, c->tag, &batch[i]) == ONUMA_OK);
            if (c->p->source.real) *(unsigned char *)batch[i] = (unsigned char)i;
        }
        void **none = NULL;
        while (!atomic_compare_exchange_weak(&c->full, &none, batch)) {
            none = NULL;
            onuma__os_yield();
        }
    }
    return NULL;
}

static void *consume(void *argument) {
    channel *c = argument;
    for (int b = 0; b < BATCHES; b++) {
        void **batch;
        while ((batch = atomic_exchange(&c->full, NULL)) == NULL)
            onuma__os_yield();
        for (int i = 0; i < BATCH; i++) {
            if (c->p->source.real) expect(*(unsigned char *)batch[i] == (unsigned char)i);
            expect(quiet_drop(batch[i], c->tag) == ONUMA_OK);
            if (i % 8 == 0) {
                const onuma_result again = quiet_drop(batch[i], 0);
                /* refused, unless the producer has it again already: then it is a free like any other */
                if (again == ONUMA_OK) expect(true);
            }
        }
        free(batch);
    }
    return NULL;
}

/* The same without double frees, whose effect on blocks that live again would be a fault of the test. */
static void *consume_properly(void *argument) {
    channel *c = argument;
    for (int b = 0; b < BATCHES; b++) {
        void **batch;
        while ((batch = atomic_exchange(&c->full, NULL)) == NULL)
            onuma__os_yield();
        for (int i = 0; i < BATCH; i++) {
            if (c->p->source.real) expect(*(unsigned char *)batch[i] == (unsigned char)i);
            expect(quiet_drop(batch[i], i % 2 != 0 ? c->tag : 0) == ONUMA_OK);
        }
        free(batch);
    }
    return NULL;
}

static void test_producer_and_consumer(void **state) {
    pool *p = *state;
    close_pool(p);
    p->source.real = true;
    open_pool(p);
    channel channels[2] = {{.p = p, .tag = 0}, {.p = p, .tag = 9}};
    pthread_t threads[4];
    for (int i = 0; i < 2; i++) {
        threads[2 * i] = start(produce, &channels[i]);
        threads[2 * i + 1] = start(consume_properly, &channels[i]);
    }
    for (int i = 0; i < 4; i++)
        join(threads[i]);
    assert_int_equal(atomic_load(&faults), 0);
    assert_int_equal(stats(p).in_use_bytes, 0);
    assert_int_equal(stats(p).free_count, 2 * BATCH * BATCHES);
    check(p);
    onuma__engine_take_caches(p->engine);
    check(p);
    /* Freed memory was used again: far less than was allocated in all. */
    assert_true(stats(p).reserved_bytes_peak < 16 * MIB);
    uint64_t epoch;
    if (onuma__engine_tag_close(p->engine, 9, &epoch)) onuma__engine_tag_passed(p->engine, 9, epoch);
    onuma__engine_trim(p->engine, 0);
    assert_int_equal(stats(p).reserved_bytes, 0);
}

/* ------------------------------------------------------------ racing frees */

typedef struct racer {
    void **blocks;
    size_t count;
    _Atomic int done[2];
    size_t freed;
    onuma__tag tag;
} racer;

enum { RACERS = 3, RACED = 3000 };

static void *free_all(void *argument) {
    racer *r = argument;
    atomic_fetch_sub(&at_gate, 1);
    while (atomic_load(&at_gate) > 0)
        onuma__os_yield();
    for (size_t i = 0; i < r->count; i++) {
        const onuma_result got = quiet_drop(r->blocks[i], r->tag);
        expect(got == ONUMA_OK || got == ONUMA__HELD || got == ONUMA_ERROR_DOUBLE_FREE ||
               got == ONUMA_ERROR_INVALID_POINTER);
        r->freed += got == ONUMA_OK || got == ONUMA__HELD;
        if (got == ONUMA__HELD) {
            onuma__block block;
            if (onuma__engine_find_held(r->blocks[i], &block) == ONUMA_OK)
                onuma__engine_release(block.engine, r->blocks[i]);
        }
    }
    return NULL;
}

/* All free the same blocks at the same time, the owner too. Each block goes once, and none is ever handed out twice. */
static void race(pool *p, size_t size, onuma__tag block_tag, const onuma__tag *tags) {
    static void *blocks[RACED];
    const size_t count = size > 32 * KIB ? RACED / 10 : RACED;
    racer racers[RACERS];
    pthread_t threads[RACERS];
    for (size_t i = 0; i < count; i++)
        blocks[i] = take(p, size, 0, block_tag);
    atomic_store(&at_gate, RACERS);
    for (int i = 0; i < RACERS; i++) {
        racers[i] = (racer){.blocks = blocks, .count = count, .tag = tags[i]};
        if (i > 0) threads[i] = start(free_all, &racers[i]);
    }
    free_all(&racers[0]);
    for (int i = 1; i < RACERS; i++)
        join(threads[i]);
    assert_int_equal(atomic_load(&faults), 0);
    size_t freed = 0;
    for (int i = 0; i < RACERS; i++)
        freed += racers[i].freed;
    assert_int_equal(freed, count); /* each by one of them, the others were refused */
    assert_int_equal(stats(p).in_use_blocks, 0);
    onuma__engine_take_caches(p->engine);
    check(p);
    assert_int_equal(stats(p).in_use_blocks, 0);
    assert_int_equal(stats(p).pending_bytes, 0);
    /* What was freed twice is handed out once. */
    for (size_t i = 0; i < count; i++)
        blocks[i] = take(p, size, 0, block_tag);
    check(p);
    assert_int_equal(stats(p).in_use_blocks, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(drop(p, blocks[i], 0), ONUMA_OK);
    if (block_tag != 0) {
        uint64_t epoch;
        onuma__engine_take_caches(p->engine);
        if (onuma__engine_tag_close(p->engine, block_tag, &epoch))
            onuma__engine_tag_passed(p->engine, block_tag, epoch);
    }
}

static void test_racing_frees(void **state) {
    pool *p = *state;
    static const onuma__tag plain[] = {0, 0, 0}, held[] = {0, 5, 6};
    for (int round = 0; round < 20; round++) {
        race(p, 64, 0, plain);
        race(p, 64, 0, held);
        race(p, 100 * KIB, 0, plain);
        race(p, 100 * KIB, 0, held);
    }
}

static void test_double_frees_while_allocating(void **state) {
    pool *p = *state;
    channel c = {.p = p};
    pthread_t threads[2] = {start(produce, &c), start(consume, &c)};
    for (int i = 0; i < 2; i++)
        join(threads[i]);
    /* Blocks that lived again may have been freed under their holder, who then was refused: */
    atomic_store(&faults, 0);
    onuma__engine_take_caches(p->engine);
    check(p);
}

/* --------------------------------------------------- threads that come and go */

typedef struct visitor {
    pool *p;
    void *kept[4]; /* blocks it leaves behind */
} visitor;

static void *visit(void *argument) {
    visitor *v = argument;
    void *blocks[200];
    for (size_t i = 0; i < 200; i++)
        expect(try_take(v->p, i * 10, 0, 0, &blocks[i]) == ONUMA_OK);
    for (size_t i = 0; i < 200; i++)
        expect(quiet_drop(blocks[i], 0) == ONUMA_OK);
    for (size_t i = 0; i < 4; i++)
        expect(try_take(v->p, 100, 0, (onuma__tag)(i / 2), &v->kept[i]) == ONUMA_OK);
    return NULL;
}

static void test_threads_exit(void **state) {
    pool *p = *state;
    visitor visitors[6];
    uint64_t reserved = 0;
    for (int round = 0; round < 6; round++) {
        visitors[round] = (visitor){.p = p};
        join(start(visit, &visitors[round]));
        check(p);
        /* The next thread takes over what the last one left, rather than get memory of its own. */
        if (round == 0) reserved = stats(p).reserved_bytes;
        assert_int_equal(stats(p).reserved_bytes, reserved);
    }
    assert_int_equal(atomic_load(&faults), 0);
    assert_int_equal(stats(p).in_use_blocks, 24);
    for (int round = 0; round < 6; round++)
        for (int i = 0; i < 4; i++) {
            assert_int_equal(drop(p, visitors[round].kept[i], 0), ONUMA_OK);
            assert_int_equal(drop(p, visitors[round].kept[i], 0), ONUMA_ERROR_DOUBLE_FREE);
        }
    check(p);
    onuma__engine_take_caches(p->engine);
    uint64_t epoch;
    assert_true(onuma__engine_tag_close(p->engine, 1, &epoch));
    assert_true(onuma__engine_tag_passed(p->engine, 1, epoch));
    onuma__engine_trim(p->engine, 0);
    assert_int_equal(stats(p).reserved_bytes, 0);
    check(p);
}

/* Two threads meet twice: see `gate`. */
typedef struct sleeper {
    pool *p;
    _Atomic int step;
    void *block;
} sleeper;

static void wait_for(sleeper *s, int step) {
    while (atomic_load(&s->step) != step)
        onuma__os_yield();
}

static void *sleep_between(void *argument) {
    sleeper *s = argument;
    void *block;
    expect(try_take(s->p, 100, 0, 0, &block) == ONUMA_OK);
    expect(quiet_drop(block, 0) == ONUMA_OK);
    atomic_store(&s->step, 1);
    wait_for(s, 2);
    /* In a new engine, or in the old one after its cache was taken. */
    expect(try_take(s->p, 100, 0, 0, &s->block) == ONUMA_OK);
    atomic_store(&s->step, 3);
    wait_for(s, 4);
    return NULL;
}

static void test_idle_cache_is_taken(void **state) {
    pool *p = *state;
    sleeper s = {.p = p};
    pthread_t thread = start(sleep_between, &s);
    wait_for(&s, 1);
    assert_true(onuma__engine_take_caches(p->engine));
    assert_true(onuma__engine_trim(p->engine, 0) > 0);
    assert_int_equal(stats(p).reserved_bytes, 0);
    check(p);
    atomic_store(&s.step, 2);
    wait_for(&s, 3);
    assert_int_equal(drop(p, s.block, 0), ONUMA_OK);
    check(p);
    atomic_store(&s.step, 4);
    join(thread);
    assert_int_equal(atomic_load(&faults), 0);
}

static void test_engine_dies_before_the_thread(void **state) {
    pool *p = *state;
    sleeper s = {.p = p};
    pthread_t thread = start(sleep_between, &s);
    wait_for(&s, 1);
    for (int i = 0; i < 40; i++) { /* heaps, slabs and engines are recycled meanwhile */
        close_pool(p);
        open_pool(p);
        assert_int_equal(drop(p, take(p, 100, 0, 0), 0), ONUMA_OK);
    }
    atomic_store(&s.step, 2);
    wait_for(&s, 3);
    assert_int_equal(stats(p).in_use_blocks, 1);
    close_pool(p);
    atomic_store(&s.step, 4);
    join(thread); /* hands back a heap that is gone */
    open_pool(p);
    assert_int_equal(atomic_load(&faults), 0);
    check(p);
}

/* Queues come and go: heaps that have nothing left for one go from thread to thread, and each has but one at a time. */
enum { TAGS = 48, ROUNDS = 20000 };

static void *go_round(void *argument) {
    pool *p = argument;
    uint64_t x = (uintptr_t)&p | 1;
    for (int i = 0; i < ROUNDS; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        const onuma__tag tag = (onuma__tag)(1 + (x >> 32) % TAGS);
        void *block;
        expect(try_take(p, 100, 0, tag, &block) == ONUMA_OK);
        expect(quiet_drop(block, tag) == ONUMA_OK);
    }
    return NULL;
}

static void test_queues_come_and_go(void **state) {
    pool *p = *state;
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        threads[i] = start(go_round, p);
    for (int i = 0; i < 3; i++)
        join(threads[i]);
    assert_int_equal(atomic_load(&faults), 0);
    assert_int_equal(stats(p).in_use_blocks, 0);
    assert_int_equal(stats(p).free_count, 3 * ROUNDS);
    check(p);
    onuma__engine_take_caches(p->engine);
    for (onuma__tag tag = 1; tag <= TAGS; tag++) {
        uint64_t epoch;
        if (onuma__engine_tag_close(p->engine, tag, &epoch)) (void)onuma__engine_tag_passed(p->engine, tag, epoch);
    }
    onuma__engine_trim(p->engine, 0);
    assert_int_equal(stats(p).reserved_bytes, 0);
    check(p);
}

/* Trims and statistics from the side while others work. */
static _Atomic bool stop;

static void *meddle(void *argument) {
    pool *p = argument;
    uint64_t n = 0;
    while (!atomic_load(&stop)) {
        onuma__engine_take_caches(p->engine);
        onuma_pool_stats s = ONUMA_POOL_STATS_INIT;
        onuma__engine_get_stats(p->engine, &s);
        if (n++ % 4 == 0) onuma__engine_trim(p->engine, 0);
        onuma__os_yield();
    }
    return NULL;
}

static void *churn(void *argument) {
    pool *p = argument;
    void *blocks[64] = {NULL};
    uint64_t x = (uintptr_t)&blocks | 1;
    for (int i = 0; i < 20000; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        void **block = &blocks[x % 64];
        if (*block != NULL) {
            expect(quiet_drop(*block, 0) == ONUMA_OK);
            *block = NULL;
        } else {
            expect(try_take(p, (size_t)1 << (x >> 32) % 18, 0, 0, block) == ONUMA_OK);
            onuma__block found;
            expect(onuma__engine_find(*block, &found) == ONUMA_OK && found.base == *block);
        }
    }
    for (int i = 0; i < 64; i++)
        if (blocks[i] != NULL) expect(quiet_drop(blocks[i], 0) == ONUMA_OK);
    return NULL;
}

static void test_meddlers(void **state) {
    pool *p = *state;
    atomic_store(&stop, false);
    pthread_t meddler = start(meddle, p), threads[3];
    for (int i = 0; i < 3; i++)
        threads[i] = start(churn, p);
    for (int i = 0; i < 3; i++)
        join(threads[i]);
    atomic_store(&stop, true);
    join(meddler);
    assert_int_equal(atomic_load(&faults), 0);
    assert_int_equal(stats(p).in_use_bytes, 0);
    check(p);
    onuma__engine_trim(p->engine, 0);
    assert_int_equal(stats(p).reserved_bytes, 0);
    check(p);
}

#define BOTH(test)                                                                                                     \
    cmocka_unit_test_setup_teardown(test, range_pool, end_pool),                                                       \
        cmocka_unit_test_setup_teardown(test, segments_pool, end_pool)

int main(void) {
    const struct CMUnitTest tests[] = {
        BOTH(test_growing_at_once),    BOTH(test_producer_and_consumer),
        BOTH(test_racing_frees),       BOTH(test_double_frees_while_allocating),
        BOTH(test_threads_exit),       BOTH(test_idle_cache_is_taken),
        BOTH(test_meddlers),           BOTH(test_engine_dies_before_the_thread),
        BOTH(test_queues_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
