/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas: who gets chunks, what a block in one is to everybody, and how chunks go back. */
#include "pool_support.h"

#include "pool/heap.h"

#include <pthread.h>
#include <string.h>

#define KIB ((size_t)1024)
#define MIB (KIB * KIB)

enum { PLAIN = 31, BLOCKS = 60 }; /* blocks after which a thread may have an arena, and more that may come from it */
#define SIZE (48 * KIB)

/* What a thread has allocated that did not, and that did come from an arena. */
typedef struct filled {
    char *plain[PLAIN], *blocks[BLOCKS];
} filled;

static void open_small_chunks(pool *p) {
    close_pool(p);
    p->desc.chunk_bytes = 256 * KIB;
    p->desc.cache_bytes = MIB;
    if (p->desc.mode == ONUMA_SOURCE_SEGMENTS) p->desc.segment_bytes = 16 * MIB; /* blocks and chunks share them */
    open_pool(p);
}

static onuma__heap *own_heap(pool *p) {
    return onuma__heap_get(p->engine, 0);
}

/* More than 2 MiB are in use before, of which a chunk is at most an eighth. */
static void fill(pool *p, filled *f) {
    for (size_t i = 0; i < PLAIN; i++)
        f->plain[i] = take(p, 100 * KIB, 0, 0);
    for (size_t i = 0; i < BLOCKS; i++)
        f->blocks[i] = take(p, SIZE - i, 0, 0);
    check(p);
}

static bool in_chunk(const void *block) {
    return (onuma__pagemap_get((uintptr_t)block + ONUMA__UNIT) & ONUMA__ENTRY_SORT) == ONUMA__ENTRY_CHUNK;
}

static size_t count_in_chunks(const filled *f) {
    size_t count = 0;
    for (size_t i = 0; i < BLOCKS; i++)
        count += in_chunk(f->blocks[i]);
    return count;
}

static void empty(pool *p, filled *f) {
    for (size_t i = 0; i < PLAIN; i++)
        if (f->plain[i] != NULL) assert_int_equal(drop(p, f->plain[i], 0), ONUMA_OK);
    for (size_t i = 0; i < BLOCKS; i++)
        if (f->blocks[i] != NULL) assert_int_equal(drop(p, f->blocks[i], 0), ONUMA_OK);
    check(p);
}

static void expect_all_back(pool *p) {
    assert_int_equal(stats(p).in_use_bytes, 0);
    onuma__engine_trim(p->engine, 0);
    check(p);
    assert_int_equal(stats(p).reserved_bytes, 0);
}

static void test_who_gets_one(void **state) {
    pool *p = *state;
    void *few[PLAIN];
    for (size_t i = 0; i < PLAIN; i++) { /* little is in use: no part of that would be a small one */
        few[i] = take(p, SIZE, 0, 0);
        assert_false(in_chunk(few[i]));
    }
    for (size_t i = 0; i < PLAIN; i++)
        assert_int_equal(drop(p, few[i], 0), ONUMA_OK);
    open_small_chunks(p);
    filled f;
    fill(p, &f);
    assert_in_range(count_in_chunks(&f), BLOCKS / 2, BLOCKS);
    void *others[] = {take(p, SIZE, 0, 7), take(p, SIZE, 64 * KIB, 0), take(p, 2 * MIB, 0, 0), take(p, 100, 0, 0)};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(in_chunk(others[i])); /* a queue's, of strict alignment, too large, too small */
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(drop(p, others[i], i == 0 ? 7 : 0), ONUMA_OK);
    empty(p, &f);
    uint64_t epoch;
    if (onuma__engine_tag_close(p->engine, 7, &epoch)) onuma__engine_tag_passed(p->engine, 7, epoch);
    expect_all_back(p);
    assert_int_equal(own_heap(p)->arena.count, 0);
}

static void test_block(void **state) {
    pool *p = *state;
    open_small_chunks(p);
    filled f;
    fill(p, &f);
    char *block = f.blocks[BLOCKS - 1];
    assert_true(in_chunk(block));
    const size_t requested = SIZE - (BLOCKS - 1);
    onuma__block found;
    for (size_t at = 0; at < SIZE; at += ONUMA__UNIT - 1) {
        assert_int_equal(onuma__engine_find(block + at, &found), ONUMA_OK);
        assert_ptr_equal(found.base, block);
        assert_int_equal(found.size, SIZE);
        assert_int_equal(found.requested, requested);
        assert_ptr_equal(found.owner, p);
        assert_ptr_equal((char *)found.span->base + found.offset, block);
    }
    assert_int_equal(drop(p, block + 16, 0), ONUMA_ERROR_INVALID_POINTER);
    assert_int_equal(drop(p, block + ONUMA__UNIT, 0), ONUMA_ERROR_INVALID_POINTER);
    const uint64_t in_use = stats(p).in_use_bytes;
    assert_int_equal(drop(p, block, 0), ONUMA_OK);
    assert_int_equal(stats(p).in_use_bytes, in_use - SIZE);
    assert_int_equal(drop(p, block, 0), ONUMA_ERROR_DOUBLE_FREE); /* kept by the front */
    assert_int_equal(onuma__engine_find(block + 5000, &found), ONUMA_ERROR_INVALID_POINTER);
    (void)onuma__engine_take_caches(p->engine);
    check(p);
    assert_int_equal(drop(p, block, 0), ONUMA_ERROR_INVALID_POINTER); /* free memory of the chunk */
    assert_int_equal(onuma__engine_find(block, &found), ONUMA_ERROR_INVALID_POINTER);
    assert_int_equal(stats(p).in_use_bytes, in_use - SIZE);
    f.blocks[BLOCKS - 1] = NULL;
    empty(p, &f);
    expect_all_back(p);
}

/* Freed under a queue, or with side records: dead, and not reused before its release. */
static void test_held(void **state) {
    pool *p = *state;
    open_small_chunks(p);
    filled f;
    fill(p, &f);
    char *of_queue = f.blocks[BLOCKS - 1], *special = f.blocks[BLOCKS - 2];
    assert_true(in_chunk(of_queue) && in_chunk(special));
    const uint64_t in_use = stats(p).in_use_bytes;
    assert_int_equal(onuma__engine_set_special(special, true), ONUMA_OK);
    assert_int_equal(onuma__engine_resize(special, 2 * SIZE), ONUMA__MISS);
    assert_int_equal(drop(p, of_queue, 7), ONUMA__HELD);
    assert_int_equal(drop(p, special, 0), ONUMA__HELD);
    assert_int_equal(drop(p, special, 0), ONUMA_ERROR_DOUBLE_FREE);
    check(p);
    onuma__block found;
    assert_int_equal(onuma__engine_find_held(special, &found), ONUMA_OK);
    assert_ptr_equal(found.base, special);
    assert_int_equal(onuma__engine_find_held(special + ONUMA__UNIT, &found), ONUMA_ERROR_INVALID_POINTER);
    assert_int_equal(onuma__engine_find(special, &found), ONUMA_ERROR_INVALID_POINTER);
    onuma__engine_strand(p->engine, special);
    assert_int_equal(onuma__engine_take_stranded(p->engine, &found, 1), 1);
    assert_ptr_equal(found.base, special);
    assert_int_equal(onuma__engine_take_stranded(p->engine, &found, 1), 0);
    assert_int_equal(stats(p).pending_bytes, 2 * SIZE);
    assert_int_equal(stats(p).in_use_bytes, in_use - 2 * SIZE);
    onuma__engine_release(p->engine, of_queue);
    onuma__engine_release(p->engine, special);
    assert_int_equal(stats(p).pending_bytes, 0);
    assert_int_equal(stats(p).in_use_bytes, in_use - 2 * SIZE);
    f.blocks[BLOCKS - 1] = f.blocks[BLOCKS - 2] = NULL;
    empty(p, &f);
    expect_all_back(p);
}

static void test_resize(void **state) {
    pool *p = *state;
    open_small_chunks(p);
    filled f;
    fill(p, &f);
    char *block = NULL;
    for (size_t i = 0; i < BLOCKS && block == NULL; i++)
        if (in_chunk(f.blocks[i]) && in_chunk(f.blocks[i] + SIZE - ONUMA__UNIT)) block = f.blocks[i];
    assert_non_null(block);
    const uint64_t in_use = stats(p).in_use_bytes;
    assert_int_equal(onuma__engine_resize(block, 3 * ONUMA__UNIT - 5), ONUMA_OK);
    check(p);
    assert_int_equal(stats(p).in_use_bytes, in_use - SIZE + 3 * ONUMA__UNIT);
    onuma__block found;
    assert_int_equal(onuma__engine_find(block + 4 * ONUMA__UNIT, &found), ONUMA_ERROR_INVALID_POINTER);
    assert_int_equal(onuma__engine_resize(block, SIZE), ONUMA_OK); /* what it gave up is still free */
    check(p);
    assert_int_equal(onuma__engine_find(block + 4 * ONUMA__UNIT, &found), ONUMA_OK);
    assert_int_equal(found.requested, SIZE);
    assert_int_equal(onuma__engine_resize(block, 8 * MIB), ONUMA__MISS); /* longer than any chunk */
    assert_int_equal(stats(p).in_use_bytes, in_use);
    empty(p, &f);
    expect_all_back(p);
}

/* Memory comes together again whatever the order of frees, and serves what is longer. */
static void test_random(void **state) {
    pool *p = *state;
    open_small_chunks(p);
    filled f;
    fill(p, &f);
    uint64_t random = 42;
    for (int i = 0; i < 20000; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        char **slot = &f.blocks[(random >> 33) % BLOCKS];
        assert_int_equal(drop(p, *slot, 0), ONUMA_OK);
        *slot = take(p, 33 * KIB + (random >> 40) % (90 * KIB), 0, 0);
        if (i % 500 == 0) check(p);
    }
    /* a front, an arena, what engines keep of peaks, and the rest of a segment */
    const size_t most = (size_t)stats(p).in_use_bytes + 3 * MIB + p->desc.segment_bytes;
    assert_true(stats(p).reserved_bytes < most + most / 4);
    empty(p, &f);
    expect_all_back(p);
}

/* --------------------------------------------------------------- other threads */

typedef struct job {
    pool *p;
    filled f;
} job;

static void *fill_and_leave(void *argument) {
    job *j = argument;
    fill(j->p, &j->f);
    return NULL;
}

static void *empty_and_leave(void *argument) {
    job *j = argument;
    for (size_t i = 0; i < PLAIN + BLOCKS; i++) {
        onuma__engine *engine;
        void *block = i < PLAIN ? j->f.plain[i] : j->f.blocks[i - PLAIN];
        assert_int_equal(onuma__engine_free(block, 0, &engine), ONUMA_OK);
        assert_int_equal(onuma__engine_free(block, 0, &engine) == ONUMA_OK, false);
    }
    return NULL;
}

static void in_thread(void *(*fn)(void *), job *j) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, fn, j), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* A heap outlives its thread while blocks are in its arena; then others free them, and another thread takes it over. */
static void test_threads_leave(void **state) {
    pool *p = *state;
    open_small_chunks(p);
    static job j;
    j = (job){.p = p};
    in_thread(fill_and_leave, &j);
    assert_in_range(count_in_chunks(&j.f), BLOCKS / 2, BLOCKS);
    in_thread(empty_and_leave, &j);
    check(p);
    in_thread(fill_and_leave, &j);
    check(p);
    in_thread(empty_and_leave, &j);
    expect_all_back(p);
}

enum { SHARED = 64, SWAPS = 3000, SWAPPERS = 3 };

/* Blocks that threads hand to one another, so that most are freed by another than allocated them. */
typedef struct swaps {
    pool *p;
    _Atomic(char *) shared[SHARED];
    _Atomic uint64_t seed;
    _Atomic int faults, left;
} swaps;

static void *swap(void *argument) {
    swaps *s = argument;
    uint64_t random = atomic_fetch_add(&s->seed, 1);
    for (int i = 0; i < SWAPS; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        void *block;
        onuma__engine *engine;
        if (try_take(s->p, 33 * KIB + (random >> 40) % (90 * KIB), 0, 0, &block) != ONUMA_OK) s->faults++;
        void *old = atomic_exchange(&s->shared[(random >> 33) % SHARED], block);
        if (old != NULL && onuma__engine_free(old, 0, &engine) != ONUMA_OK) s->faults++;
    }
    s->left--;
    return NULL;
}

/* Looks at blocks that live and die meanwhile, and takes what others keep. */
static void *meddle(void *argument) {
    swaps *s = argument;
    for (size_t i = 0; s->left != 0; i++) {
        char *block = s->shared[i % SHARED];
        onuma__block found;
        if (block != NULL && onuma__engine_find(block + 5000, &found) == ONUMA_OK &&
            (found.requested > 123 * KIB || (char *)found.base > block + 5000))
            s->faults++;
        if (i % 64 == 0) (void)onuma__engine_take_caches(s->p->engine);
        if (i % 64 == 32) (void)stats(s->p);
    }
    return NULL;
}

static void test_blocks_are_handed_over(void **state) {
    pool *p = *state;
    open_small_chunks(p);
    static swaps s;
    memset(&s, 0, sizeof s);
    s.p = p;
    s.left = SWAPPERS;
    pthread_t threads[SWAPPERS + 1];
    for (int i = 0; i <= SWAPPERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, i < SWAPPERS ? swap : meddle, &s), 0);
    for (int i = 0; i <= SWAPPERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(s.faults, 0);
    check(p);
    for (int i = 0; i < SHARED; i++)
        if (s.shared[i] != NULL) assert_int_equal(drop(p, s.shared[i], 0), ONUMA_OK);
    check(p);
    expect_all_back(p);
}

/* Whatever lives in chunks: the source gets all back, and the pages say so. */
static void test_engine_dies(void **state) {
    pool *p = *state;
    open_small_chunks(p);
    filled f;
    fill(p, &f);
    assert_int_equal(drop(p, f.blocks[BLOCKS - 3], 0), ONUMA_OK);
    close_pool(p);
    onuma__block found;
    assert_int_equal(onuma__engine_find(f.blocks[BLOCKS - 1], &found), ONUMA_ERROR_INVALID_POINTER);
    assert_int_equal(onuma__engine_find(f.blocks[BLOCKS - 1] + ONUMA__UNIT, &found), ONUMA_ERROR_INVALID_POINTER);
    open_pool(p);
    fill(p, &f);
    empty(p, &f);
    expect_all_back(p);
}

/* Where there is no room for a chunk there may be for the block. */
static void test_no_room_for_a_chunk(void **state) {
    pool *p = *state;
    open_small_chunks(p);
    void *plain[PLAIN], *block;
    for (size_t i = 0; i < PLAIN; i++)
        plain[i] = take(p, 100 * KIB, 0, 0);
    (void)onuma__engine_trim(p->engine, 0); /* nothing is left to serve the next */
    p->source.limit = p->source.held + 192 * KIB;
    assert_int_equal(try_take(p, 100 * KIB, 0, 0, &block), ONUMA_OK);
    assert_int_equal(own_heap(p)->arena.count, 0);
    check(p);
    p->source.limit = 0;
    assert_int_equal(drop(p, block, 0), ONUMA_OK);
    for (size_t i = 0; i < PLAIN; i++)
        assert_int_equal(drop(p, plain[i], 0), ONUMA_OK);
    expect_all_back(p);
}

#define BOTH(test)                                                                                                     \
    cmocka_unit_test_setup_teardown(test, range_pool, end_pool),                                                       \
        cmocka_unit_test_setup_teardown(test, segments_pool, end_pool)

int main(void) {
    const struct CMUnitTest tests[] = {
        BOTH(test_who_gets_one),
        BOTH(test_block),
        BOTH(test_held),
        BOTH(test_resize),
        BOTH(test_random),
        BOTH(test_threads_leave),
        BOTH(test_blocks_are_handed_over),
        BOTH(test_engine_dies),
        cmocka_unit_test_setup_teardown(test_no_room_for_a_chunk, range_pool, end_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
