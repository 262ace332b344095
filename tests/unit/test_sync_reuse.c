/* SPDX-License-Identifier: Apache-2.0 */
/* Who may reuse freed memory, and when: the same queue at once, with or without side records, others behind it. */
#include "sync_support.h"

#define BLOCK ((size_t)1 << 16)

static void the_same_queue_reuses_at_once(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    void *p = take(f, BLOCK, q);
    submit(&f->a);
    assert_int_equal(onuma__sync_free(p, q), ONUMA_OK);
    assert_true(serves(f, BLOCK, q, p));
    assert_int_equal(fake.records, 0);
}

static void another_queue_reuses_after_the_first_has_passed(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER), *other = wrap(f, &f->b, ONUMA_QUEUE_IN_ORDER);
    void *p = take(f, BLOCK, q);
    submit(&f->a);
    assert_int_equal(onuma__sync_free(p, q), ONUMA_OK);
    assert_false(serves(f, BLOCK, other, p));
    assert_false(serves(f, BLOCK, NULL, p));
    poll_gives(f, false);
    assert_int_not_equal(onuma__sync_pending(f->engine), 0);
    assert_false(serves(f, BLOCK, other, p));
    complete(&f->a);
    poll_gives(f, true);
    assert_int_equal(onuma__sync_pending(f->engine), 0);
    assert_true(serves(f, BLOCK, other, p));
}

static void work_after_the_epoch_is_not_waited_for(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    void *p = take(f, BLOCK, q);
    submit(&f->a);
    assert_int_equal(onuma__sync_free(p, q), ONUMA_OK);
    poll_gives(f, false); /* the marker is behind step 1 */
    atomic_store(&f->a.submitted, 7);
    atomic_store(&f->a.completed, 1);
    poll_gives(f, true);
    assert_true(serves(f, BLOCK, NULL, p));
}

static void an_unordered_queue_never_reuses_before_its_marker(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_UNORDERED);
    void *p = take(f, BLOCK, q);
    submit(&f->a);
    assert_int_equal(onuma__sync_free(p, q), ONUMA_OK);
    assert_false(serves(f, BLOCK, q, p));
    poll_gives(f, false);
    complete(&f->a);
    poll_gives(f, true);
    assert_true(serves(f, BLOCK, q, p));
}

/* Freed on q, its own queue: q gets it at once and nobody else before q has passed. */
static void expect_own_reuse(fixture *f, onuma__queue *q, void *p) {
    assert_int_equal(onuma__sync_free(p, q), ONUMA_OK);
    assert_false(serves(f, BLOCK, NULL, p));
    assert_true(serves(f, BLOCK, q, p));
    complete(&f->a);
}

static void an_acquired_block_is_its_queues_again_at_once(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    void *p = take(f, BLOCK, q);
    assert_int_equal(onuma__sync_host_acquire(p, BLOCK, ONUMA_ACCESS_WRITE, 0), ONUMA_OK);
    assert_int_equal(onuma__sync_host_release(p, BLOCK, ONUMA_ACCESS_WRITE), ONUMA_OK);
    submit(&f->a);
    expect_own_reuse(f, q, p);
}

static void an_announced_block_is_its_queues_again_at_once(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    void *p = take(f, BLOCK, q);
    assert_int_equal(use(q, p, ONUMA_ACCESS_WRITE), ONUMA_OK);
    submit(&f->a);
    assert_int_equal(onuma__sync_submitted(q, NULL), ONUMA_OK);
    expect_own_reuse(f, q, p);
}

static void an_unsealed_use_of_the_freeing_thread_counts_as_submitted(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    void *p = take(f, BLOCK, q);
    assert_int_equal(use(q, p, ONUMA_ACCESS_READ), ONUMA_OK);
    submit(&f->a);
    expect_own_reuse(f, q, p);
}

static void another_queues_use_is_waited_for(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER), *other = wrap(f, &f->b, ONUMA_QUEUE_IN_ORDER);
    void *p = take(f, BLOCK, q);
    assert_int_equal(use(other, p, ONUMA_ACCESS_READ), ONUMA_OK);
    submit(&f->b);
    assert_int_equal(onuma__sync_submitted(other, NULL), ONUMA_OK);
    assert_int_equal(onuma__sync_free(p, q), ONUMA_OK);
    assert_false(serves(f, BLOCK, q, p));
    complete(&f->b);
    poll_gives(f, true);
    assert_true(serves(f, BLOCK, q, p));
}

typedef struct foreign_use {
    onuma__queue *queue;
    void *block;
} foreign_use;

static void open_use(void *argument) {
    const foreign_use *what = argument;
    assert_int_equal(use(what->queue, what->block, ONUMA_ACCESS_WRITE), ONUMA_OK);
}

/* That thread may submit its work after whatever the queue is given by the block's next owner. */
static void an_unsealed_use_of_another_thread_is_waited_for(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    void *p = take(f, BLOCK, q);
    join(start(open_use, &(foreign_use){q, p}));
    assert_int_equal(onuma__sync_free(p, q), ONUMA_OK);
    assert_false(serves(f, BLOCK, q, p));
    submit(&f->a);
    assert_int_equal(onuma__sync_submitted(q, NULL), ONUMA_OK);
    complete(&f->a);
    poll_gives(f, true);
    assert_true(serves(f, BLOCK, q, p));
}

static void a_view_goes_with_a_block_reused_at_once_where_the_driver_counts(void **state) {
    fixture *f = *state;
    gives_handles(f);
    f->device->info.abilities |= ONUMA_ABILITY_COUNTED;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    void *p = take(f, BLOCK, q);
    onuma_view view = ONUMA_VIEW_INIT;
    assert_int_equal(onuma__view_get(p, f->device, ONUMA_API_HOST, &view), ONUMA_OK);
    submit(&f->a);
    expect_own_reuse(f, q, p);
    assert_int_equal(fake.views_made, 1);
    assert_int_equal(fake.views_released, 1);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, sync_set_up, sync_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_same_queue_reuses_at_once),
        TEST(another_queue_reuses_after_the_first_has_passed),
        TEST(work_after_the_epoch_is_not_waited_for),
        TEST(an_unordered_queue_never_reuses_before_its_marker),
        TEST(an_acquired_block_is_its_queues_again_at_once),
        TEST(an_announced_block_is_its_queues_again_at_once),
        TEST(an_unsealed_use_of_the_freeing_thread_counts_as_submitted),
        TEST(another_queues_use_is_waited_for),
        TEST(an_unsealed_use_of_another_thread_is_waited_for),
        TEST(a_view_goes_with_a_block_reused_at_once_where_the_driver_counts),
    };
    return cmocka_run_group_tests_name("sync_reuse", tests, NULL, NULL);
}
