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

/* Large, so that what is freed lies where all can find it once it is theirs. */
#define LARGE ((size_t)2 << 20)

static void a_queue_that_waits_on_the_device_takes_over(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER), *other = wrap(f, &f->b, ONUMA_QUEUE_IN_ORDER);
    void *p = take(f, LARGE, q);
    void *own = take(f, LARGE, other); /* so that it is known to the engine */
    submit(&f->a);
    submit(&f->b);
    assert_int_equal(onuma__sync_free(p, q), ONUMA_OK);
    assert_false(onuma__sync_go_behind(f->engine, other->tag)); /* the host's queues cannot */
    f->device->info.abilities |= ONUMA_ABILITY_WAIT;
    assert_false(onuma__sync_go_behind(f->engine, other->tag)); /* no marker is on its way */
    assert_int_equal(fake.waits, 0);
    poll_gives(f, false);
    assert_false(onuma__sync_go_behind(f->engine, 0));
    assert_false(onuma__sync_go_behind(f->engine, q->tag));
    assert_true(onuma__sync_go_behind(f->engine, other->tag));
    assert_int_equal(fake.waits, 1);
    assert_int_equal(onuma__engine_check(f->engine), ONUMA_OK);
    assert_false(onuma__sync_go_behind(f->engine, other->tag)); /* there is no more */
    assert_int_equal(fake.waits, 1);
    assert_false(serves(f, LARGE, NULL, p));
    assert_false(serves(f, LARGE, q, p));
    assert_true(serves(f, LARGE, other, p));
    assert_int_equal(onuma__sync_free(p, other), ONUMA_OK);
    /* For all the others it is the second queue's now, whose end is behind the first one's. */
    complete(&f->a);
    poll_gives(f, false);
    assert_false(serves(f, LARGE, NULL, p));
    complete(&f->b);
    poll_gives(f, true);
    assert_true(serves(f, LARGE, NULL, p));
    assert_int_equal(onuma__sync_free(own, other), ONUMA_OK);
}

static void what_cannot_wait_takes_nothing_over(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER), *other = wrap(f, &f->b, ONUMA_QUEUE_UNORDERED);
    f->device->info.abilities |= ONUMA_ABILITY_WAIT;
    void *p = take(f, LARGE, q);
    submit(&f->a);
    assert_int_equal(onuma__sync_free(p, q), ONUMA_OK);
    poll_gives(f, false);
    assert_false(onuma__sync_go_behind(f->engine, other->tag));
    assert_int_equal(fake.waits, 0);
    complete(&f->a);
    poll_gives(f, true);
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

/* ------------------------------------------------------------ the CPU's first access */

static onuma_result first_access(void *p) {
    const onuma_result r = onuma__sync_host_acquire(p, 1, ONUMA_ACCESS_WRITE, 0);
    if (r == ONUMA_OK) assert_int_equal(onuma__sync_host_release(p, 1, ONUMA_ACCESS_WRITE), ONUMA_OK);
    return r;
}

/* Small blocks, large ones that threads keep, and ones too large for that. */
static const size_t sizes[] = {200, BLOCK, (size_t)3 << 20};

static void fresh_memory_is_the_cpus_at_once(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    submit(&f->a);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(first_access(take(f, sizes[i], q)), ONUMA_OK);
        assert_int_equal(fake.records + fake.polls, 0);
    }
}

static void recycled_memory_is_the_cpus_when_its_queue_has_passed(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    for (size_t i = 0; i < 3; i++) {
        void *p = take(f, sizes[i], q);
        submit(&f->a);
        assert_int_equal(onuma__sync_free(p, q), ONUMA_OK);
        assert_ptr_equal(take(f, sizes[i], q), p);
        assert_int_equal(first_access(p), ONUMA_ERROR_TIMEOUT);
        complete(&f->a);
        assert_int_equal(first_access(p), ONUMA_OK);
    }
}

static void memory_that_has_passed_is_fresh_again(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    for (size_t i = 1; i < 3; i++) {
        void *p = take(f, sizes[i], q);
        submit(&f->a);
        assert_int_equal(onuma__sync_free(p, q), ONUMA_OK);
        complete(&f->a);
        poll_gives(f, true);
        submit(&f->a);
        assert_ptr_equal(take(f, sizes[i], q), p);
        assert_int_equal(first_access(p), ONUMA_OK);
    }
}

static void memory_that_a_block_grew_by_counts(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    char *p = take(f, (size_t)2 << 20, q), *next = take(f, (size_t)2 << 20, q);
    submit(&f->a);
    char *low = p < next ? p : next, *high = p < next ? next : p;
    assert_ptr_equal(low + ((size_t)2 << 20), high);
    assert_int_equal(onuma__sync_free(high, q), ONUMA_OK);
    assert_int_equal(onuma__engine_resize(low, (size_t)3 << 20), ONUMA_OK);
    assert_int_equal(first_access(low), ONUMA_ERROR_TIMEOUT);
    complete(&f->a);
    assert_int_equal(first_access(low), ONUMA_OK);
}

/* -------------------------------------------------------------------------- markers */

/* As a pool does: asks the queues before it grows. */
static void *take_asking(fixture *f, size_t size, onuma__queue *queue) {
    void *out = NULL;
    onuma__tag tag = queue ? queue->tag : 0;
    if (onuma__engine_alloc(f->engine, size, 0, tag, &out) == ONUMA_OK) return out;
    (void)onuma__sync_poll(f->engine);
    if (onuma__engine_alloc(f->engine, size, 0, tag, &out) == ONUMA_OK) return out;
    return take(f, size, queue);
}

/*
 * A training loop: in each step activations come and go on the queue that computes; batches are made by the CPU, handed
 * to the queue that copies, and freed on it; and gradients wander from one queue to the other. The queues lag a step.
 */
static void a_training_loop_takes_few_markers(void **state) {
    fixture *f = *state;
    onuma__queue *compute = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER), *copying = wrap(f, &f->b, ONUMA_QUEUE_UNORDERED);
    uint64_t frees = 0;
    assert_int_equal(onuma__sync_note(f->engine, compute), ONUMA_OK);
    for (int step = 0; step < 200; step++) {
        void *activations[60], *batches[16], *gradients[16];
        const uint64_t before_a = atomic_load(&f->a.submitted), before_b = atomic_load(&f->b.submitted);
        for (size_t i = 0; i < 16; i++)
            batches[i] = take_asking(f, 3000 + 500 * i, NULL);
        for (size_t i = 0; i < 60; i++) {
            activations[i] = take_asking(f, (size_t)1000 << (i % 8), compute);
            submit(&f->a);
        }
        submit(&f->b);
        for (size_t i = 0; i < 16; i++, frees++)
            assert_int_equal(onuma__sync_free(batches[i], copying), ONUMA_OK);
        for (size_t i = 0; i < 16; i++)
            gradients[i] = take_asking(f, (size_t)1000 << (i % 8), compute);
        for (size_t i = 60; i-- > 0; frees++)
            assert_int_equal(onuma__sync_free(activations[i], compute), ONUMA_OK);
        submit(&f->b);
        for (size_t i = 0; i < 16; i++, frees++)
            assert_int_equal(onuma__sync_free(gradients[i], copying), ONUMA_OK);
        atomic_store(&f->a.completed, before_a);
        atomic_store(&f->b.completed, before_b);
    }
    print_message("%u markers for %u frees\n", (unsigned)fake.records, (unsigned)frees);
    assert_true(fake.records > 0);
    assert_true(frees >= 32 * (uint64_t)fake.records);
    complete(&f->a);
    complete(&f->b);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, sync_set_up, sync_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_same_queue_reuses_at_once),
        TEST(another_queue_reuses_after_the_first_has_passed),
        TEST(work_after_the_epoch_is_not_waited_for),
        TEST(a_queue_that_waits_on_the_device_takes_over),
        TEST(what_cannot_wait_takes_nothing_over),
        TEST(an_unordered_queue_never_reuses_before_its_marker),
        TEST(an_acquired_block_is_its_queues_again_at_once),
        TEST(an_announced_block_is_its_queues_again_at_once),
        TEST(an_unsealed_use_of_the_freeing_thread_counts_as_submitted),
        TEST(a_training_loop_takes_few_markers),
        TEST(fresh_memory_is_the_cpus_at_once),
        TEST(recycled_memory_is_the_cpus_when_its_queue_has_passed),
        TEST(memory_that_has_passed_is_fresh_again),
        TEST(memory_that_a_block_grew_by_counts),
        TEST(another_queues_use_is_waited_for),
        TEST(an_unsealed_use_of_another_thread_is_waited_for),
        TEST(a_view_goes_with_a_block_reused_at_once_where_the_driver_counts),
    };
    return cmocka_run_group_tests_name("sync_reuse", tests, NULL, NULL);
}
