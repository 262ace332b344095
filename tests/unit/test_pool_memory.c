/* SPDX-License-Identifier: Apache-2.0 */
/* Where memory comes from and to whom it may go: tags and epochs, ranges, segments, sources that fail, statistics. */
#include "pool_support.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* -------------------------------------------------------------------- tags */

/* Allocate without growing: NULL if it would miss. */
static void *only_free_memory(pool *p, size_t size, onuma__tag tag) {
    void *out;
    const onuma_result r = onuma__engine_alloc(p->engine, size, 0, tag, &out);
    assert_true(r == ONUMA_OK || r == ONUMA__MISS);
    return out;
}

static void test_tag_rules(void **state) {
    pool *p = *state;
    char *block = take(p, MIB, 0, 1);
    /* The rest of a segment must not answer for it. */
    void *rest[64];
    size_t count = 0;
    while (count < 64 && (rest[count] = only_free_memory(p, MIB, 0)) != NULL)
        count++;
    assert_int_equal(drop(p, block, 1), ONUMA_OK);
    assert_int_equal(stats(p).pending_bytes, MIB);
    assert_null(only_free_memory(p, MIB, 0));
    assert_null(only_free_memory(p, MIB, 2));
    assert_ptr_equal(only_free_memory(p, MIB, 1), block); /* its own queue, at once */
    assert_int_equal(stats(p).pending_bytes, 0);
    assert_int_equal(drop(p, block, 0), ONUMA_OK); /* without a queue: still only its queue's */
    assert_null(only_free_memory(p, MIB, 2));
    uint64_t first, second;
    assert_false(onuma__engine_tag_close(p->engine, 2, &first));
    assert_false(onuma__engine_tag_close(p->engine, 0, &first));
    assert_true(onuma__engine_tag_close(p->engine, 1, &first));
    assert_true(onuma__engine_tag_close(p->engine, 1, &second));
    assert_true(second > first);
    assert_false(onuma__engine_tag_passed(p->engine, 1, first - 1));
    assert_null(only_free_memory(p, MIB, 0));
    assert_true(onuma__engine_tag_passed(p->engine, 1, first));
    assert_false(onuma__engine_tag_passed(p->engine, 1, second));
    assert_int_equal(stats(p).pending_bytes, 0);
    assert_ptr_equal(only_free_memory(p, MIB, 2), block);
    check(p);
    while (count-- > 0)
        assert_int_equal(drop(p, rest[count], 0), ONUMA_OK);
    check(p);
}

static void test_tag_epochs_are_kept_apart(void **state) {
    pool *p = *state;
    void *early = take(p, MIB, 0, 1), *gap = take(p, MIB, 0, 0), *late = take(p, MIB, 0, 1);
    uint64_t epoch;
    assert_int_equal(drop(p, early, 1), ONUMA_OK);
    assert_true(onuma__engine_tag_close(p->engine, 1, &epoch));
    assert_int_equal(drop(p, late, 1), ONUMA_OK);
    assert_true(onuma__engine_tag_passed(p->engine, 1, epoch));
    assert_int_equal(stats(p).pending_bytes, MIB); /* late still waits */
    assert_int_equal(drop(p, gap, 0), ONUMA_OK);
    check(p);
    assert_true(onuma__engine_tag_close(p->engine, 1, &epoch));
    assert_true(onuma__engine_tag_passed(p->engine, 1, epoch));
    assert_int_equal(stats(p).pending_bytes, 0);
    check(p);
    /* A tag that was forgotten meanwhile goes on counting where it was: an old number passes nothing new. */
    void *again = take(p, MIB, 0, 1);
    assert_int_equal(drop(p, again, 1), ONUMA_OK);
    assert_false(onuma__engine_tag_passed(p->engine, 1, epoch));
    assert_int_equal(stats(p).pending_bytes, MIB);
}

/* Neighbours of tag t and of tag 0 are joined for t when nothing else would do, and for nobody else. */
static void test_tag_joins_neighbours(void **state) {
    pool *p = *state;
    char *blocks[3];
    blocks[0] = take(p, 2 * MIB, 0, 0);
    for (int i = 1; i < 3; i++)
        blocks[i] = take(p, 2 * MIB, 0, 5);
    void *rest[64];
    size_t count = 0;
    while (count < 64 && (rest[count] = only_free_memory(p, 2 * MIB, 0)) != NULL)
        count++;
    assert_ptr_equal(blocks[1], blocks[0] + 2 * MIB);
    assert_int_equal(drop(p, blocks[0], 0), ONUMA_OK);
    assert_int_equal(drop(p, blocks[1], 5), ONUMA_OK);
    assert_null(only_free_memory(p, 3 * MIB, 0));
    assert_null(only_free_memory(p, 3 * MIB, 6));
    assert_ptr_equal(only_free_memory(p, 3 * MIB, 5), blocks[0]);
    check(p);
    assert_int_equal(drop(p, blocks[0], 5), ONUMA_OK);
    assert_int_equal(drop(p, blocks[2], 5), ONUMA_OK);
    while (count-- > 0)
        assert_int_equal(drop(p, rest[count], 0), ONUMA_OK);
    check(p);
}

static void test_tag_slabs(void **state) {
    pool *p = *state;
    void *mine = take(p, 64, 0, 1);
    assert_int_equal(drop(p, mine, 1), ONUMA_OK);
    void *other = take(p, 64, 0, 2), *none = take(p, 64, 0, 0);
    assert_ptr_not_equal(other, mine);
    assert_ptr_not_equal(none, mine);
    assert_ptr_equal(take(p, 64, 0, 1), mine);
    assert_int_equal(drop(p, mine, 1), ONUMA_OK);
    /* A slab of a tag that goes back is freed under that tag. */
    assert_int_equal(stats(p).pending_bytes, 0);
    assert_true(onuma__engine_take_caches(p->engine));
    const uint64_t pending = stats(p).pending_bytes;
    assert_true(pending >= 40 * KIB);
    onuma__engine_trim(p->engine, 0);
    assert_int_equal(stats(p).pending_bytes, pending);
    assert_true(stats(p).reserved_bytes >= pending);
    uint64_t epoch;
    assert_true(onuma__engine_tag_close(p->engine, 1, &epoch));
    assert_true(onuma__engine_tag_passed(p->engine, 1, epoch));
    assert_int_equal(stats(p).pending_bytes, 0);
    check(p);
}

/* What an unordered queue's blocks leave behind was held until markers had passed: it serves anyone, slabs too. */
static void test_unordered_tag(void **state) {
    pool *p = *state;
    const onuma__tag tag = 3 | ONUMA__TAG_UNORDERED;
    void *small = take(p, 64, 0, tag), *large = take(p, MIB, 0, tag);
    onuma__block found;
    assert_int_equal(onuma__engine_resize(large, 5000), ONUMA_OK); /* nothing of it is cut off */
    assert_int_equal(onuma__engine_find(large, &found), ONUMA_OK);
    assert_int_equal(found.size, MIB);
    assert_int_equal(drop(p, small, 0), ONUMA__HELD);
    assert_int_equal(drop(p, large, tag), ONUMA__HELD);
    onuma__engine_trim(p->engine, 0);
    assert_true(stats(p).reserved_bytes >= MIB);
    onuma__engine_release(p->engine, small);
    onuma__engine_release(p->engine, large);
    onuma__engine_trim(p->engine, 0);
    assert_int_equal(stats(p).pending_bytes, 0);
    assert_int_equal(stats(p).reserved_bytes, 0);
    check(p);
}

static void test_many_tags(void **state) {
    pool *p = *state;
    for (onuma__tag tag = 1; tag < 500; tag++) {
        uint64_t epoch;
        void *large = take(p, 100 * KIB, 0, tag), *small = take(p, 100, 0, tag);
        assert_int_equal(drop(p, large, tag), ONUMA_OK);
        assert_int_equal(drop(p, small, tag), ONUMA_OK);
        onuma__engine_take_caches(p->engine);
        assert_true(onuma__engine_tag_close(p->engine, tag, &epoch));
        assert_true(onuma__engine_tag_passed(p->engine, tag, epoch));
    }
    check(p);
    assert_true(stats(p).reserved_bytes <= 64 * MIB);  /* the same memory again and again */
    assert_true(stats(p).metadata_bytes <= 512 * KIB); /* nothing is kept for queues that are done with */
}

/* ------------------------------------------------------------------ ranges */

static void test_range_commits_what_it_uses(void **state) {
    pool *p = *state;
    void *block = take(p, 10 * MIB, 0, 0);
    assert_in_range(stats(p).reserved_bytes, 10 * MIB, 10 * MIB + 10 * MIB / 64); /* some pages beyond it in one call */
    assert_int_equal(p->source.commits, 1);
    onuma__engine_trim(p->engine, 0);
    assert_int_equal(stats(p).reserved_bytes, 10 * MIB);
    assert_int_equal(drop(p, block, 0), ONUMA_OK);
    assert_ptr_equal(only_free_memory(p, 10 * MIB, 0), block); /* kept, and used again without a call */
    assert_int_equal(drop(p, block, 0), ONUMA_OK);
    assert_null(only_free_memory(p, 11 * MIB, 0));
    block = take(p, 11 * MIB, 0, 0); /* one more is enough */
    onuma__engine_trim(p->engine, 0);
    assert_int_equal(stats(p).reserved_bytes, 11 * MIB);
    char *second = take(p, MIB, 0, 0), *third = take(p, MIB, 0, 0);
    onuma__engine_trim(p->engine, 0);
    assert_int_equal(drop(p, second, 0), ONUMA_OK);
    assert_int_equal(onuma__engine_trim(p->engine, 12 * MIB + 512 * KIB), 512 * KIB);
    assert_int_equal(stats(p).reserved_bytes, 12 * MIB + 512 * KIB);
    check(p);
    /* A decommitted hole is filled again, and costs what was given back. */
    assert_ptr_equal(take(p, MIB, 0, 0), second);
    assert_int_equal(stats(p).reserved_bytes, 13 * MIB);
    assert_int_equal(drop(p, second, 0), ONUMA_OK);
    assert_int_equal(drop(p, third, 0), ONUMA_OK);
    assert_int_equal(drop(p, block, 0), ONUMA_OK);
    assert_int_equal(stats(p).commit_count, p->source.commits);
    assert_int_equal(stats(p).decommit_count, p->source.decommits);
}

static void test_range_is_as_long_as_addresses_allow(void **state) {
    pool *p = *state;
    close_pool(p);
    p->source.most_address = 5 * MIB;
    open_pool(p);
    void *blocks[20];
    for (size_t i = 0; i < 20; i++)
        blocks[i] = take(p, MIB, 0, 0); /* ranges are chained */
    assert_true(p->source.spans >= 4);
    check(p);
    void *out;
    assert_int_equal(try_take(p, 6 * MIB, 0, 0, &out), ONUMA_ERROR_OUT_OF_MEMORY);
    assert_null(out);
    for (size_t i = 0; i < 20; i++)
        assert_int_equal(drop(p, blocks[i], 0), ONUMA_OK);
    assert_int_equal(onuma__engine_trim(p->engine, 0), 20 * MIB);
    assert_int_equal(stats(p).reserved_bytes, 0);
    check(p);
}

/* Where addresses are few, ranges are short, but for a block that needs more. */
static void test_range_is_as_long_as_the_source_likes(void **state) {
    pool *p = *state;
    close_pool(p);
    p->desc.source = test_source_of(&p->source);
    p->desc.source.longest_range = 64 * MIB + 5;
    assert_int_equal(onuma__engine_create(&p->desc, &p->engine), ONUMA_OK);
    const uint64_t before = p->source.reserves;
    void *first = take(p, 40 * MIB, 0, 0), *second = take(p, 40 * MIB, 0, 0);
    assert_int_equal(p->source.reserves - before, 2);
    void *small = take(p, 20 * MIB, 0, 0); /* beside one of them */
    assert_int_equal(p->source.reserves - before, 2);
    void *large = take(p, 100 * MIB, 0, 0);
    assert_int_equal(p->source.reserves - before, 3);
    check(p);
    void *const all[] = {first, second, small, large};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(drop(p, all[i], 0), ONUMA_OK);
}

/* A driver's pages may be larger than those that the engine prefers: blocks share them, and they come and go whole. */
static void test_range_of_large_pages(void **state) {
    pool *p = *state;
    close_pool(p);
    p->source.page = 2 * MIB;
    open_pool(p);
    void *blocks[40];
    for (size_t i = 0; i < 40; i++)
        blocks[i] = take(p, i % 2 == 0 ? 300 * KIB : 3 * MIB, 0, 0);
    const uint64_t reserved = stats(p).reserved_bytes;
    assert_int_equal(reserved % (2 * MIB), 0);
    assert_int_equal(reserved, p->source.held);
    assert_in_range(reserved, 20 * (300 * KIB + 3 * MIB), 20 * (300 * KIB + 3 * MIB) + 4 * MIB);
    check(p);
    /* What of the large ones is whole pages goes back, and is there again when it is wanted. */
    for (size_t i = 1; i < 40; i += 2)
        assert_int_equal(drop(p, blocks[i], 0), ONUMA_OK);
    assert_true(onuma__engine_trim(p->engine, 0) >= 10 * 2 * MIB);
    assert_int_equal(stats(p).reserved_bytes, p->source.held);
    check(p);
    for (size_t i = 1; i < 40; i += 2)
        blocks[i] = take(p, 3 * MIB, 0, 0);
    check(p);
    for (size_t i = 0; i < 40; i++)
        assert_int_equal(drop(p, blocks[i], 0), ONUMA_OK);
    onuma__engine_trim(p->engine, 0);
    assert_int_equal(stats(p).reserved_bytes, 0);
    assert_int_equal(p->source.held, 0);
}

static void test_range_high_addresses(void **state) {
    pool *p = *state;
    close_pool(p);
    p->source.next = 0xff007fffffde0000;
    open_pool(p);
    void *small = take(p, 100, 0, 0), *large = take(p, 5 * MIB, 0, 0);
    assert_true((uintptr_t)small >= 0xff007fffffde0000);
    onuma__block found;
    assert_int_equal(onuma__engine_find((char *)large + 4 * MIB, &found), ONUMA_OK);
    assert_ptr_equal(found.base, large);
    assert_int_equal(drop(p, small, 0), ONUMA_OK);
    assert_int_equal(drop(p, large, 0), ONUMA_OK);
    check(p);
}

static void test_large_alignment(void **state) {
    pool *p = *state;
    close_pool(p);
    p->desc.alignment = 64 * KIB;
    open_pool(p);
    for (size_t size = 0; size < 300 * KIB; size += 37 * KIB) {
        void *a = take(p, size, 0, 0), *b = take(p, size, 0, 0);
        assert_int_equal((uintptr_t)a % (64 * KIB), 0);
        assert_int_equal((uintptr_t)b % (64 * KIB), 0);
        check(p);
        assert_int_equal(drop(p, a, 0), ONUMA_OK);
        assert_int_equal(drop(p, b, 0), ONUMA_OK);
    }
    onuma__engine_trim(p->engine, 0);
    assert_int_equal(stats(p).reserved_bytes, 0);
}

/* ---------------------------------------------------------------- segments */

static void test_segments_by_size(void **state) {
    pool *p = *state;
    void *small = take(p, 100, 0, 0);
    assert_int_equal(stats(p).reserved_bytes, 4 * MIB);
    void *medium = take(p, MIB, 0, 0);
    assert_int_equal(stats(p).reserved_bytes, 12 * MIB);
    void *inside = take(p, 6 * MIB, 0, 0); /* what is free serves larger blocks too */
    assert_int_equal(stats(p).reserved_bytes, 12 * MIB);
    assert_int_equal(drop(p, inside, 0), ONUMA_OK);
    void *large = take(p, 70 * MIB + 1, 0, 0);
    assert_int_equal(stats(p).reserved_bytes, 82 * MIB + 64 * KIB);
    assert_int_equal(stats(p).segment_alloc_count, 3);
    assert_int_equal(drop(p, large, 0), ONUMA_OK);
    assert_ptr_equal(take(p, 70 * MIB, 0, 0), large); /* kept a while */
    assert_int_equal(drop(p, large, 0), ONUMA_OK);
    assert_int_equal(onuma__engine_trim(p->engine, 12 * MIB), 70 * MIB + 64 * KIB);
    assert_int_equal(stats(p).segment_free_count, 1);
    assert_int_equal(drop(p, small, 0), ONUMA_OK);
    assert_int_equal(drop(p, medium, 0), ONUMA_OK);
    check(p);
    assert_int_equal(onuma__engine_trim(p->engine, 0), 12 * MIB);
    check(p);
}

/* Free segments that do not serve a request are dropped rather than kept beside a new one. */
static void test_segments_are_dropped_at_a_miss(void **state) {
    pool *p = *state;
    for (size_t i = 1; i < 40; i++) {
        void *block = take(p, 10 * MIB + i * MIB, 0, 0);
        assert_int_equal(drop(p, block, 0), ONUMA_OK);
        assert_true(stats(p).reserved_bytes <= 11 * MIB + i * MIB);
        check(p);
    }
}

/* A wholly free segment of a block's own is broken up only if nothing else fits. */
static void test_segments_are_broken_up_last(void **state) {
    pool *p = *state;
    char *wide = take(p, 30 * MIB, 0, 0);
    void *whole = take(p, 8 * MIB, 0, 0);
    assert_int_equal(drop(p, wide, 0), ONUMA_OK);
    void *first = take(p, 3 * MIB, 0, 0); /* there is nothing else */
    assert_ptr_equal(first, wide);
    assert_int_equal(drop(p, whole, 0), ONUMA_OK);
    char *second = take(p, 4 * MIB, 0, 0); /* the whole one would be tighter */
    assert_true(second > wide && second < wide + 30 * MIB);
    assert_ptr_equal(take(p, 15 * MIB / 2, 0, 0), whole); /* nearly all of it */
    check(p);
    const void *const blocks[] = {first, second, whole};
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(drop(p, (void *)blocks[i], 0), ONUMA_OK);
    assert_int_equal(stats(p).segment_alloc_count, 2);
}

/* Not even then while the program makes few calls of the source; but rather than fail. */
static void test_segments_are_kept_whole(void **state) {
    pool *p = *state;
    close_pool(p);
    p->desc.exact_peaks = true; /* operations are counted at once */
    open_pool(p);
    assert_int_equal(drop(p, take(p, 100 * MIB, 0, 0), 0), ONUMA_OK); /* so that there is room below the peak */
    onuma__engine_trim(p->engine, 0);
    assert_int_equal(drop(p, take(p, 100, 0, 0), 0), ONUMA_OK);
    void *wide = take(p, 30 * MIB, 0, 0);
    assert_int_equal(drop(p, wide, 0), ONUMA_OK);
    for (int i = 0; i < 2000; i++)
        assert_int_equal(drop(p, take(p, 100, 0, 0), 0), ONUMA_OK);
    p->source.limit = stats(p).reserved_bytes;
    void *narrow = take(p, 5 * MIB, 0, 0);
    assert_ptr_equal(narrow, wide);
    assert_int_equal(drop(p, narrow, 0), ONUMA_OK);
    p->source.limit = 0;
    narrow = take(p, 5 * MIB, 0, 0);
    assert_int_equal(stats(p).segment_alloc_count, 4);
    check(p);
    assert_int_equal(drop(p, narrow, 0), ONUMA_OK);
}

static void test_segments_misaligned(void **state) {
    pool *p = *state;
    close_pool(p);
    p->source.misalign = 128;
    open_pool(p);
    static const size_t sizes[] = {10, 5000, 100 * KIB, 3 * MIB, 5 * MIB, 64 * MIB, 80 * MIB};
    void *blocks[7];
    for (size_t i = 0; i < 7; i++) {
        blocks[i] = take(p, sizes[i], 0, 0);
        check(p);
        assert_int_equal((uintptr_t)blocks[i] % 16, 0);
        onuma__block found;
        assert_int_equal(onuma__engine_find((char *)blocks[i] + sizes[i] - 1, &found), ONUMA_OK);
        assert_ptr_equal((char *)found.span->base + found.offset, blocks[i]);
        assert_true(found.offset + found.size <= found.span->size);
    }
    void *aligned = take(p, 5 * MIB, MIB, 0);
    assert_int_equal((uintptr_t)aligned % MIB, 0);
    assert_int_equal(drop(p, aligned, 0), ONUMA_OK);
    for (size_t i = 0; i < 7; i++)
        assert_int_equal(drop(p, blocks[i], 0), ONUMA_OK);
    onuma__engine_trim(p->engine, 0);
    assert_int_equal(stats(p).reserved_bytes, 0);
    check(p);
}

static void test_segments_sizes_given(void **state) {
    pool *p = *state;
    close_pool(p);
    p->desc.segment_bytes = 8 * MIB;
    p->desc.max_segment = 20 * MIB;
    open_pool(p);
    void *block = take(p, 100, 0, 0);
    assert_int_equal(stats(p).reserved_bytes, 8 * MIB);
    void *large = take(p, 15 * MIB, 0, 0), *out;
    assert_int_equal(stats(p).reserved_bytes, 23 * MIB);
    assert_int_equal(try_take(p, 21 * MIB, 0, 0, &out), ONUMA_ERROR_OUT_OF_MEMORY);
    assert_null(out);
    check(p);
    assert_int_equal(drop(p, block, 0), ONUMA_OK);
    assert_int_equal(drop(p, large, 0), ONUMA_OK);
}

/* What was to be taken of a queue's memory and of such as has no pages yet goes back as both when there are none. */
static void test_range_under_a_limit(void **state) {
    pool *p = *state;
    void *out, *held = take(p, 3 * MIB, 0, 1);
    assert_int_equal(drop(p, held, 1), ONUMA_OK);
    const onuma_pool_stats before = stats(p);
    assert_int_equal(before.pending_bytes, 3 * MIB);
    p->source.limit = 4 * MIB;
    assert_int_equal(try_take(p, 8 * MIB, 0, 1, &out), ONUMA_ERROR_LIMIT);
    assert_int_equal(stats(p).pending_bytes, 3 * MIB);
    assert_int_equal(stats(p).pending_bytes_peak, 3 * MIB);
    check(p);
    assert_int_equal(try_take(p, 2 * MIB, 0, 0, &out), ONUMA_ERROR_LIMIT); /* still the queue's */
    p->source.limit = 0;
    char *all = take(p, 8 * MIB, 0, 1);
    assert_ptr_equal(all, held);
    check(p);
    assert_int_equal(drop(p, all, 1), ONUMA_OK);
}

/* Where a whole shared segment does not fit under the limit, one of just the needed size may. */
static void test_segments_under_a_limit(void **state) {
    pool *p = *state;
    p->source.limit = 3 * MIB;
    void *out, *block = take(p, 2 * MIB, 0, 0);
    assert_int_equal(stats(p).reserved_bytes, 2 * MIB);
    assert_int_equal(try_take(p, 5 * MIB / 2, 0, 0, &out), ONUMA_ERROR_LIMIT);
    check(p);
    assert_int_equal(drop(p, block, 0), ONUMA_OK);
    block = take(p, 5 * MIB / 2, 0, 0); /* the empty one makes room */
    assert_int_equal(drop(p, block, 0), ONUMA_OK);
}

/* --------------------------------------------------------- sources that fail */

/* Whatever call fails: the result is the source's, the statistics are right, nothing is lost, the next one works. */
static void test_source_fails(void **state) {
    pool *p = *state;
    static const size_t sizes[] = {10, 5000, 40 * KIB, 3 * MIB, 20 * MIB, 100};
    for (uint64_t n = 1; n < 12; n++) {
        p->source.calls = 0;
        p->source.fail_at = n;
        void *blocks[6] = {NULL};
        for (size_t i = 0; i < 6; i++) {
            const onuma_result r = try_take(p, sizes[i], i == 3 ? MIB : 0, (onuma__tag)(i % 2), &blocks[i]);
            assert_true(r == ONUMA_OK || r == ONUMA_ERROR_OUT_OF_MEMORY);
            assert_int_equal(r == ONUMA_OK, blocks[i] != NULL);
            check(p);
            if (blocks[i] == NULL) blocks[i] = take(p, sizes[i], i == 3 ? MIB : 0, (onuma__tag)(i % 2));
        }
        for (size_t i = 0; i < 6; i++)
            assert_int_equal(drop(p, blocks[i], 0), ONUMA_OK);
        p->source.fail_at = 0;
        onuma__engine_take_caches(p->engine);
        uint64_t epoch;
        if (onuma__engine_tag_close(p->engine, 1, &epoch)) onuma__engine_tag_passed(p->engine, 1, epoch);
        onuma__engine_trim(p->engine, 0);
        assert_int_equal(stats(p).reserved_bytes, 0);
        check(p);
    }
}

/* -------------------------------------------------------------- statistics */

static void test_statistics(void **state) {
    pool *p = *state;
    void *blocks[100];
    for (size_t i = 0; i < 100; i++)
        blocks[i] = take(p, 1000, 0, 0);
    onuma_pool_stats s = stats(p);
    assert_int_equal(s.in_use_blocks, 100);
    assert_int_equal(s.requested_bytes, 100000);
    assert_int_equal(s.in_use_bytes, 102400);
    assert_int_equal(s.alloc_count, 100);
    assert_true(s.metadata_bytes > 0 && s.metadata_bytes < 512 * KIB);
    assert_int_equal(s.cached_bytes, s.reserved_bytes - s.in_use_bytes);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(drop(p, blocks[i], 0), ONUMA_OK);
    s = stats(p);
    assert_int_equal(s.free_count, 100);
    assert_int_equal(s.in_use_bytes, 0);
    assert_true(s.in_use_bytes_peak <= 102400 && s.in_use_bytes_peak >= 102400 - 65536);
    onuma__engine_reset_peak(p->engine);
    assert_int_equal(stats(p).in_use_bytes_peak, 0);
    assert_int_equal(stats(p).reserved_bytes_peak, stats(p).reserved_bytes);
}

/* What lies in trays is dead to everybody, is counted as free, and comes back with the caches. */
static void test_trays(void **state) {
    pool *p = *state;
    enum { BLOCKS = 40, SIZE = 112 };
    char *blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++)
        blocks[i] = take(p, SIZE - i % 9, 0, 0);
    for (size_t i = 0; i < BLOCKS; i += 2) {
        assert_int_equal(drop(p, blocks[i], 0), ONUMA_OK);
        onuma__block found;
        assert_int_equal(onuma__engine_find(blocks[i] + 5, &found), ONUMA_ERROR_INVALID_POINTER);
        assert_int_equal(onuma__engine_resize(blocks[i], 100), ONUMA_ERROR_INVALID_POINTER);
        assert_int_equal(onuma__engine_set_special(blocks[i], true), ONUMA_ERROR_INVALID_POINTER);
        assert_int_equal(drop(p, blocks[i], 0), ONUMA_ERROR_DOUBLE_FREE);
        assert_int_equal(drop(p, blocks[i], ONUMA__TAG_HOLD), ONUMA_ERROR_DOUBLE_FREE);
        assert_int_equal(drop(p, blocks[i + 1] + 16, 0), ONUMA_ERROR_INVALID_POINTER);
        check(p);
    }
    assert_int_equal(stats(p).in_use_blocks, BLOCKS / 2);
    assert_int_equal(stats(p).in_use_bytes, BLOCKS / 2 * SIZE);
    assert_int_equal(stats(p).alloc_count, BLOCKS);
    assert_int_equal(stats(p).free_count, BLOCKS / 2);
    void *again = take(p, SIZE, 0, 0);
    assert_int_equal(stats(p).alloc_count, BLOCKS + 1);
    assert_int_equal(drop(p, again, 0), ONUMA_OK);
    for (size_t i = 1; i < BLOCKS; i += 2)
        assert_int_equal(drop(p, blocks[i], 0), ONUMA_OK);
    assert_true(onuma__engine_take_caches(p->engine));
    check(p);
    onuma__engine_trim(p->engine, 0);
    assert_int_equal(stats(p).reserved_bytes, 0);
    assert_int_equal(stats(p).in_use_blocks, 0);
}

static void test_exact_peaks(void **state) {
    pool *p = *state;
    close_pool(p);
    p->desc.exact_peaks = true;
    open_pool(p);
    void *blocks[50];
    for (size_t i = 0; i < 50; i++)
        blocks[i] = take(p, 100, 0, (onuma__tag)(i % 3));
    for (size_t i = 0; i < 50; i++)
        assert_int_equal(drop(p, blocks[i], 0), ONUMA_OK);
    assert_int_equal(stats(p).in_use_bytes, 0);
    assert_int_equal(stats(p).in_use_bytes_peak, 50 * 112);
    assert_int_equal(stats(p).requested_bytes_peak, 5000);
    assert_int_equal(stats(p).in_use_blocks_peak, 50);
}

static void test_cache_bound(void **state) {
    pool *p = *state;
    close_pool(p);
    p->desc.cache_bytes = 0;
    open_pool(p);
    void *blocks[1000];
    for (size_t i = 0; i < 1000; i++)
        blocks[i] = take(p, 20 + i * 30, 0, 0);
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(drop(p, blocks[i], 0), ONUMA_OK);
    /* Nothing is kept in slabs, so all of it is one piece again, or whole segments. */
    assert_false(onuma__engine_take_caches(p->engine));
    check(p);
}

#define RANGE(test) cmocka_unit_test_setup_teardown(test, range_pool, end_pool)
#define SEGMENTS(test) cmocka_unit_test_setup_teardown(test, segments_pool, end_pool)

int main(void) {
    const struct CMUnitTest tests[] = {
        RANGE(test_tag_rules),
        SEGMENTS(test_tag_rules),
        RANGE(test_tag_epochs_are_kept_apart),
        SEGMENTS(test_tag_epochs_are_kept_apart),
        RANGE(test_tag_joins_neighbours),
        SEGMENTS(test_tag_joins_neighbours),
        RANGE(test_tag_slabs),
        SEGMENTS(test_tag_slabs),
        RANGE(test_unordered_tag),
        SEGMENTS(test_unordered_tag),
        RANGE(test_many_tags),
        SEGMENTS(test_many_tags),
        RANGE(test_range_commits_what_it_uses),
        RANGE(test_range_is_as_long_as_addresses_allow),
        RANGE(test_range_is_as_long_as_the_source_likes),
        RANGE(test_range_of_large_pages),
        RANGE(test_range_high_addresses),
        RANGE(test_large_alignment),
        SEGMENTS(test_large_alignment),
        SEGMENTS(test_segments_by_size),
        SEGMENTS(test_segments_are_dropped_at_a_miss),
        SEGMENTS(test_segments_are_broken_up_last),
        SEGMENTS(test_segments_are_kept_whole),
        SEGMENTS(test_segments_misaligned),
        SEGMENTS(test_segments_sizes_given),
        SEGMENTS(test_segments_under_a_limit),
        RANGE(test_range_under_a_limit),
        RANGE(test_source_fails),
        SEGMENTS(test_source_fails),
        RANGE(test_statistics),
        SEGMENTS(test_statistics),
        RANGE(test_trays),
        SEGMENTS(test_trays),
        RANGE(test_exact_peaks),
        SEGMENTS(test_exact_peaks),
        RANGE(test_cache_bound),
        SEGMENTS(test_cache_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
