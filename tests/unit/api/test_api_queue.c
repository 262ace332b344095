/* SPDX-License-Identifier: Apache-2.0 */
/* Queues, uses, host accesses and views, as far as the public functions go: on the host's timeline, stepped by hand. */
#include "api.h"

typedef struct fixture {
    onuma_runtime *rt;
    onuma_device *host;
    onuma_pool *pool;
    onuma_queue *queue;
    onuma_host_timeline timeline;
} fixture;

static uint64_t native(onuma_host_timeline *timeline) {
    return (uint64_t)(uintptr_t)timeline;
}

static int set_up(void **state) {
    static fixture f;
    memset(&f, 0, sizeof f);
    f.rt = api_runtime(NULL, NULL);
    f.host = api_host(f.rt);
    f.pool = api_pool(f.host, 0);
    OK(onuma_queue_wrap(f.host, ONUMA_API_HOST, native(&f.timeline), NULL, &f.queue));
    *state = &f;
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    f->timeline.completed = f->timeline.submitted;
    OK(onuma_queue_release(f->queue));
    OK(onuma_pool_destroy(f->pool));
    onuma_runtime_destroy(f->rt);
    return 0;
}

static void wrapping_twice_gives_the_same(void **state) {
    fixture *f = *state;
    onuma_queue *again, *other;
    onuma_host_timeline second = {0, 0};
    OK(onuma_queue_wrap(f->host, ONUMA_API_HOST, native(&f->timeline), NULL, &again));
    assert_ptr_equal(again, f->queue);
    OK(onuma_queue_wrap(f->host, ONUMA_API_HOST, native(&second), NULL, &other));
    assert_ptr_not_equal(other, f->queue);
    OK(onuma_queue_release(other));
    FAILS(INVALID_ARGUMENT, "not a live queue", onuma_queue_release(other));
    OK(onuma_queue_release(again));
    void *block;
    OK(onuma_alloc(f->pool, 10, 0, f->queue, &block)); /* one reference is left */
    OK(onuma_free(block, f->queue));
    OK(onuma_queue_release(NULL));
}

static void freed_memory_follows_its_queue(void **state) {
    fixture *f = *state;
    void *block, *other;
    OK(onuma_alloc(f->pool, 3 << 20, 0, f->queue, &block));
    f->timeline.submitted = 1;
    OK(onuma_free(block, f->queue));
    OK(onuma_alloc(f->pool, 3 << 20, 0, NULL, &other)); /* the CPU may not have it yet */
    assert_true((char *)other + (3 << 20) <= (char *)block || (char *)block + (3 << 20) <= (char *)other);
    OK(onuma_free(other, NULL));
    OK(onuma_alloc(f->pool, 3 << 20, 0, f->queue, &other));
    OK(onuma_free(other, f->queue));
    f->timeline.completed = 1;
    OK(onuma_pool_trim(f->pool, 0, NULL));
    assert_int_equal(api_stats(f->pool).reserved_bytes, 0);
}

/* What the CPU writes for a queue must not be memory that the queue still uses. */
static void zeroed_and_moved_blocks_are_the_queues(void **state) {
    fixture *f = *state;
    unsigned char *used, *fresh, *moved;
    OK(onuma_alloc(f->pool, 5000, 0, f->queue, (void **)&used));
    memset(used, 0xaa, 5000);
    f->timeline.submitted = 1; /* work that reads `used` */
    OK(onuma_free(used, f->queue));
    OK(onuma_alloc_zeroed(f->pool, 5000, 0, f->queue, (void **)&fresh));
    assert_ptr_not_equal(fresh, used);
    for (size_t i = 0; i < 5000; i++) {
        assert_int_equal(used[i], 0xaa);
        assert_int_equal(fresh[i], 0);
    }
    memset(fresh, 0xbb, 5000);
    OK(onuma_realloc(fresh, 900000, f->queue, (void **)&moved));
    for (size_t i = 0; i < 5000; i++)
        assert_true(used[i] == 0xaa && moved[i] == 0xbb);

    /* And it counts as used by the queue until it is freed, whatever it is freed on. */
    f->timeline.submitted = 2;
    OK(onuma_free(moved, NULL));
    assert_true(api_stats(f->pool).pending_bytes >= 900000);
    f->timeline.completed = 2;
    OK(onuma_pool_trim(f->pool, 0, NULL));
    assert_int_equal(api_stats(f->pool).pending_bytes, 0);
}

static void host_access_waits_for_uses(void **state) {
    fixture *f = *state;
    void *block;
    OK(onuma_alloc(f->pool, 4096, 0, NULL, &block));
    OK(onuma_use(f->queue, block, ONUMA_ACCESS_WRITE));
    f->timeline.submitted = 1;
    OK(onuma_submitted(f->queue, NULL));
    FAILS(TIMEOUT, "", onuma_host_acquire(block, 4096, ONUMA_ACCESS_READ, 0));
    f->timeline.completed = 1;
    OK(onuma_host_acquire(block, 4096, ONUMA_ACCESS_WRITE, 0));
    FAILS(CONFLICT, "", onuma_use(f->queue, block, ONUMA_ACCESS_READ));
    OK(onuma_host_release(block, 4096, ONUMA_ACCESS_WRITE));
    OK(onuma_use(f->queue, block, ONUMA_ACCESS_READ));
    onuma_native_event event = ONUMA_NATIVE_EVENT_INIT;
    event.handle = 2;
    f->timeline.submitted = 2;
    OK(onuma_submitted(f->queue, &event));
    OK(onuma_host_acquire(block, 4096, ONUMA_ACCESS_READ, 0)); /* two readers are never in each other's way */
    OK(onuma_host_release(block, 4096, ONUMA_ACCESS_READ));
    FAILS(TIMEOUT, "", onuma_host_acquire(block, 4096, ONUMA_ACCESS_WRITE, 0));
    f->timeline.completed = 2;
    OK(onuma_host_acquire(block, 4096, ONUMA_ACCESS_WRITE, 0));
    OK(onuma_host_release(block, 4096, ONUMA_ACCESS_WRITE));
    OK(onuma_free(block, NULL));
}

/* Memory that the queue still uses is right for what the queue does next, and not yet for the CPU. */
static void host_access_waits_for_the_last_owner(void **state) {
    fixture *f = *state;
    void *last, *block;
    OK(onuma_alloc(f->pool, 4096, 0, f->queue, &last));
    f->timeline.submitted = 1;
    OK(onuma_free(last, f->queue));
    OK(onuma_alloc(f->pool, 4096, 0, f->queue, &block));
    assert_ptr_equal(block, last);
    FAILS(TIMEOUT, "", onuma_host_acquire(block, 4096, ONUMA_ACCESS_WRITE, 0));
    f->timeline.submitted = 2; /* later work is none of its business */
    f->timeline.completed = 1;
    OK(onuma_host_acquire(block, 4096, ONUMA_ACCESS_WRITE, 0));
    OK(onuma_host_release(block, 4096, ONUMA_ACCESS_WRITE));
    OK(onuma_host_acquire(block, 4096, ONUMA_ACCESS_WRITE, 0)); /* once is enough */
    OK(onuma_host_release(block, 4096, ONUMA_ACCESS_WRITE));
    OK(onuma_free(block, f->queue));

    /* A use that the queue has announced passes after its earlier work, so it is enough to wait for that. */
    OK(onuma_alloc(f->pool, 4096, 0, f->queue, &block));
    OK(onuma_use(f->queue, block, ONUMA_ACCESS_WRITE));
    onuma_native_event event = ONUMA_NATIVE_EVENT_INIT;
    event.handle = 3;
    f->timeline.submitted = 3;
    OK(onuma_submitted(f->queue, &event));
    f->timeline.submitted = 4;
    FAILS(TIMEOUT, "", onuma_host_acquire(block, 4096, ONUMA_ACCESS_WRITE, 0));
    f->timeline.completed = 3;
    OK(onuma_host_acquire(block, 4096, ONUMA_ACCESS_WRITE, 0));
    OK(onuma_host_release(block, 4096, ONUMA_ACCESS_WRITE));
    OK(onuma_free(block, f->queue));
}

static void use_many_is_all_or_none(void **state) {
    fixture *f = *state;
    void *blocks[3];
    const onuma_access modes[3] = {ONUMA_ACCESS_READ, ONUMA_ACCESS_WRITE, ONUMA_ACCESS_READ_WRITE};
    for (size_t i = 0; i < 3; i++)
        OK(onuma_alloc(f->pool, 100, 0, NULL, &blocks[i]));
    OK(onuma_host_acquire(blocks[2], 100, ONUMA_ACCESS_WRITE, 0));
    FAILS(CONFLICT, "", onuma_use_many(f->queue, 3, blocks, modes));
    OK(onuma_host_acquire(blocks[1], 100, ONUMA_ACCESS_WRITE, 0)); /* no use was left behind */
    OK(onuma_host_release(blocks[1], 100, ONUMA_ACCESS_WRITE));
    OK(onuma_host_release(blocks[2], 100, ONUMA_ACCESS_WRITE));
    OK(onuma_use_many(f->queue, 3, blocks, modes));
    OK(onuma_submitted(f->queue, NULL));
    OK(onuma_use_many(f->queue, 0, NULL, NULL));
    for (size_t i = 0; i < 3; i++)
        OK(onuma_free(blocks[i], NULL));
}

static void views_are_pointers_on_the_host(void **state) {
    fixture *f = *state;
    char *block;
    onuma_view view = ONUMA_VIEW_INIT;
    OK(onuma_alloc(f->pool, 1000, 0, NULL, (void **)&block));
    OK(onuma_view_get(block + 10, f->host, ONUMA_API_HOST, &view));
    assert_int_equal(view.via, ONUMA_VIA_POINTER);
    assert_true(view.pointer == (uintptr_t)block + 10);
    assert_true(view.size >= 990);
    FAILS(INVALID_ARGUMENT, "", onuma_view_release(&view));
    OK(onuma_free(block, NULL));
}

/* Blocks small enough to share a slab too: what an unordered queue leaves free is everybody's again. */
static void unordered_queues_leave_nothing_behind(void **state) {
    fixture *f = *state;
    onuma_host_timeline timeline = {0, 0};
    onuma_queue_desc desc = ONUMA_QUEUE_DESC_INIT;
    desc.order = ONUMA_QUEUE_UNORDERED;
    onuma_queue *queue;
    OK(onuma_queue_wrap(f->host, ONUMA_API_HOST, native(&timeline), &desc, &queue));
    const size_t sizes[] = {64, 3 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int by_queue = 0; by_queue < 2; by_queue++) {
            void *blocks[8];
            for (size_t b = 0; b < 8; b++)
                OK(onuma_alloc(f->pool, sizes[i], 0, queue, &blocks[b]));
            timeline.submitted++;
            for (size_t b = 0; b < 8; b++)
                OK(onuma_free(blocks[b], by_queue ? queue : NULL));
            timeline.completed = timeline.submitted;
            OK(onuma_pool_trim(f->pool, 0, NULL));
            onuma_pool_stats stats = api_stats(f->pool);
            assert_int_equal(stats.pending_bytes, 0);
            assert_int_equal(stats.reserved_bytes, 0);
        }
    OK(onuma_queue_release(queue));
}

/* Growing in place takes in what the block's own queue has freed beside it, which that queue alone may have yet. */
static void growing_for_another_queue_moves(void **state) {
    fixture *f = *state;
    onuma_host_timeline timeline = {0, 0};
    onuma_queue *other;
    void *blocks[2], *grown;
    OK(onuma_queue_wrap(f->host, ONUMA_API_HOST, native(&timeline), NULL, &other));
    for (size_t i = 0; i < 2; i++)
        OK(onuma_alloc(f->pool, 8 << 20, 0, f->queue, &blocks[i]));
    char *low = blocks[0] < blocks[1] ? blocks[0] : blocks[1], *high = low == blocks[0] ? blocks[1] : blocks[0];
    f->timeline.submitted++;
    OK(onuma_free(high, f->queue));
    f->timeline.completed =
        f->timeline.submitted; /* the move waits for it; that it has passed nobody has noticed yet */
    OK(onuma_realloc(low, 12 << 20, other, &grown));
    assert_ptr_not_equal(grown, low);
    OK(onuma_free(grown, NULL));
    OK(onuma_queue_release(other));
}

/* In one call, though a free that is finished goes into its thread's cache first. */
static void trimming_settles_announced_frees(void **state) {
    fixture *f = *state;
    for (int by_queue = 0; by_queue < 2; by_queue++) {
        void *block;
        OK(onuma_alloc(f->pool, 64, 0, f->queue, &block));
        OK(onuma_use(f->queue, block, ONUMA_ACCESS_WRITE));
        f->timeline.submitted++;
        OK(onuma_submitted(f->queue, NULL));
        OK(onuma_free(block, by_queue ? f->queue : NULL));
        f->timeline.completed = f->timeline.submitted;
        OK(onuma_pool_trim(f->pool, 0, NULL));
        assert_int_equal(api_stats(f->pool).reserved_bytes, 0);
    }
}

/* A queue that is released and has passed everything, before what was allocated on it is freed or leaves its cache. */
static void memory_of_gone_queues_comes_back(void **state) {
    fixture *f = *state;
    const size_t sizes[] = {64, 3 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int early = 0; early < 2; early++) {
            onuma_host_timeline timeline = {0, 0};
            onuma_queue *queue;
            void *block;
            OK(onuma_queue_wrap(f->host, ONUMA_API_HOST, native(&timeline), NULL, &queue));
            OK(onuma_alloc(f->pool, sizes[i], 0, queue, &block));
            OK(onuma_use(queue, block, ONUMA_ACCESS_WRITE));
            timeline.submitted = 1;
            OK(onuma_submitted(queue, NULL));
            if (early) OK(onuma_free(block, queue));
            OK(onuma_queue_release(queue));
            timeline.completed = 1;
            OK(onuma_pool_trim(f->pool, 0, NULL)); /* learns that the queue is gone */
            if (!early) OK(onuma_free(block, NULL));
            OK(onuma_pool_trim(f->pool, 0, NULL));
            onuma_pool_stats stats = api_stats(f->pool);
            assert_int_equal(stats.pending_bytes, 0);
            assert_int_equal(stats.reserved_bytes, 0);
        }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(wrapping_twice_gives_the_same),          TEST(freed_memory_follows_its_queue),
        TEST(zeroed_and_moved_blocks_are_the_queues), TEST(host_access_waits_for_uses),
        TEST(host_access_waits_for_the_last_owner),   TEST(use_many_is_all_or_none),
        TEST(views_are_pointers_on_the_host),         TEST(unordered_queues_leave_nothing_behind),
        TEST(growing_for_another_queue_moves),        TEST(trimming_settles_announced_frees),
        TEST(memory_of_gone_queues_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
