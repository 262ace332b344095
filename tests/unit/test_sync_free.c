/* SPDX-License-Identifier: Apache-2.0 */
/* Frees ordered with queues: what is reused when, and what never is. */
#include "sync_support.h"

#include <string.h>

#define BLOCK ((size_t)1 << 16)

static void a_plain_free_asks_no_driver(void **state) {
    fixture *f = *state;
    void *p = take(f, BLOCK, NULL);
    assert_int_equal(onuma__sync_free(p, NULL), ONUMA_OK);
    assert_int_equal(onuma__sync_pending(f->engine), 0);
    assert_true(serves(f, BLOCK, NULL, p));
    assert_int_equal(fake.records + fake.polls, 0);
}

static void a_used_block_is_parked_until_the_use_has_passed(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    void *p = take(f, BLOCK, NULL);
    assert_int_equal(use(q, p, ONUMA_ACCESS_WRITE), ONUMA_OK);
    submit(&f->a);
    assert_int_equal(onuma__sync_submitted(q, NULL), ONUMA_OK);
    assert_int_equal(onuma__sync_free(p, NULL), ONUMA_OK);
    int32_t again = onuma__sync_free(p, NULL);
    assert_true(again == ONUMA_ERROR_DOUBLE_FREE || again == ONUMA_ERROR_INVALID_POINTER);
    assert_int_equal(use(q, p, ONUMA_ACCESS_READ), ONUMA_ERROR_INVALID_POINTER);
    assert_int_equal(onuma__sync_host_acquire(p, 1, ONUMA_ACCESS_READ, 0), ONUMA_ERROR_INVALID_POINTER);
    poll_gives(f, false);
    assert_int_equal(onuma__sync_pending(f->engine), 1);
    assert_false(serves(f, BLOCK, NULL, p));
    complete(&f->a);
    poll_gives(f, true);
    assert_int_equal(onuma__sync_pending(f->engine), 0);
    assert_true(serves(f, BLOCK, NULL, p));
}

static void free_it(void *p) {
    assert_int_equal(onuma__sync_free(p, NULL), ONUMA_OK);
}

static void an_open_use_of_another_thread_is_waited_for_until_sealed(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    void *p = take(f, BLOCK, NULL);
    assert_int_equal(use(q, p, ONUMA_ACCESS_READ), ONUMA_OK);
    join(start(free_it, p));
    poll_gives(f, false); /* nothing is submitted, and yet */
    assert_int_equal(onuma__sync_pending(f->engine), 1);
    submit(&f->a);
    poll_gives(f, false);
    assert_int_equal(onuma__sync_submitted(q, NULL), ONUMA_OK);
    poll_gives(f, false);
    complete(&f->a);
    poll_gives(f, true);
    assert_true(serves(f, BLOCK, NULL, p));
}

static void an_open_use_of_the_freeing_thread_is_sealed_by_the_free(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    void *p = take(f, BLOCK, NULL);
    assert_int_equal(use(q, p, ONUMA_ACCESS_WRITE), ONUMA_OK);
    submit(&f->a);
    assert_int_equal(onuma__sync_free(p, NULL), ONUMA_OK);
    poll_gives(f, false);
    complete(&f->a);
    poll_gives(f, true);
}

static void an_event_ends_the_wait_of_a_parked_free(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_UNORDERED);
    onuma_native_event event = event_at(3);
    void *p = take(f, BLOCK, NULL);
    assert_int_equal(use(q, p, ONUMA_ACCESS_WRITE), ONUMA_OK);
    atomic_store(&f->a.submitted, 9);
    assert_int_equal(onuma__sync_submitted(q, &event), ONUMA_OK);
    assert_int_equal(onuma__sync_free(p, NULL), ONUMA_OK);
    atomic_store(&f->a.completed, 2);
    poll_gives(f, false);
    atomic_store(&f->a.completed, 3);
    poll_gives(f, true);
}

static void the_queue_it_was_allocated_on_counts_when_freed_without_one(void **state) {
    fixture *f = *state;
    for (onuma_queue_order order = ONUMA_QUEUE_IN_ORDER; order <= ONUMA_QUEUE_UNORDERED; order++) {
        onuma__queue *q = wrap(f, order == ONUMA_QUEUE_IN_ORDER ? &f->a : &f->b, order);
        onuma_host_timeline *timeline = (onuma_host_timeline *)(uintptr_t)q->native;
        void *p = take(f, BLOCK, q);
        submit(timeline);
        assert_int_equal(onuma__sync_free(p, NULL), ONUMA_OK);
        assert_false(serves(f, BLOCK, NULL, p));
        poll_gives(f, false);
        complete(timeline);
        poll_gives(f, true);
        assert_true(serves(f, BLOCK, NULL, p));
    }
}

static void freed_on_another_queue_both_must_pass(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER), *other = wrap(f, &f->b, ONUMA_QUEUE_IN_ORDER);
    for (int first = 0; first < 2; first++) {
        void *p = take(f, BLOCK, q);
        submit(&f->a);
        submit(&f->b);
        assert_int_equal(onuma__sync_free(p, other), ONUMA_OK);
        poll_gives(f, false);
        complete(first == 0 ? &f->a : &f->b);
        poll_gives(f, false);
        assert_false(serves(f, BLOCK, other, p));
        complete(first == 0 ? &f->b : &f->a);
        poll_gives(f, true);
        assert_true(serves(f, BLOCK, other, p));
    }
}

static void a_bound_block_waits_for_its_queue_however_it_is_freed(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    void *p = take(f, BLOCK, NULL);
    assert_int_equal(onuma__sync_bind(q, p), ONUMA_OK);
    submit(&f->a);
    assert_int_equal(onuma__sync_host_acquire(p, BLOCK, ONUMA_ACCESS_WRITE, 0), ONUMA_OK); /* it is no access */
    assert_int_equal(onuma__sync_host_release(p, BLOCK, ONUMA_ACCESS_WRITE), ONUMA_OK);
    assert_int_equal(onuma__sync_free(p, NULL), ONUMA_OK);
    poll_gives(f, false);
    complete(&f->a);
    poll_gives(f, true);
    assert_true(serves(f, BLOCK, NULL, p));
}

static void frees_on_one_queue_share_a_marker(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_UNORDERED);
    void *p[31];
    for (size_t i = 0; i < 31; i++)
        p[i] = take(f, BLOCK, NULL);
    submit(&f->a);
    for (size_t i = 0; i < 31; i++)
        assert_int_equal(onuma__sync_free(p[i], q), ONUMA_OK);
    assert_int_equal(fake.records, 0); /* lazy */
    poll_gives(f, false);
    assert_int_equal(fake.records, 1);
    assert_int_equal(fake.polls, 1);
    complete(&f->a);
    poll_gives(f, true);
    assert_int_equal(onuma__sync_pending(f->engine), 0);
    assert_int_equal(fake.records, 1);
    assert_int_equal(fake.polls, 2);
}

static void many_parked_frees_are_polled_by_themselves(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_UNORDERED);
    for (size_t i = 0; i < 200; i++) {
        void *p = take(f, BLOCK, NULL);
        submit(&f->a);
        assert_int_equal(onuma__sync_free(p, q), ONUMA_OK);
        complete(&f->a);
    }
    assert_in_range(fake.records, 1, 200 / 32);
    onuma__ledger *ledger = onuma__ledger_get(f->engine, f->engine, false);
    assert_non_null(ledger);
    assert_in_range(atomic_load(&ledger->pending), 0, 64);
    onuma__ledger_put(ledger);
}

/* ----------------------------------------------------------------------- queues */

static void wrapping_twice_gives_the_same_counted_queue(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_DETECT), *same = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER), *other;
    bool last;
    assert_ptr_equal(q, same);
    assert_int_equal(fake.opens, 1);
    assert_int_equal(f->device->users, 1);
    assert_int_equal(onuma__queue_wrap(f->device, ONUMA_API_HOST, q->native, NULL, &other), ONUMA_OK);
    assert_ptr_equal(q, other);
    onuma_queue_desc desc = ONUMA_QUEUE_DESC_INIT;
    desc.order = ONUMA_QUEUE_UNORDERED;
    assert_int_equal(onuma__queue_wrap(f->device, ONUMA_API_HOST, q->native, &desc, &other),
                     ONUMA_ERROR_INVALID_ARGUMENT);
    assert_null(other);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(onuma__queue_release(q, &last), ONUMA_OK);
        assert_int_equal(last, i == 2);
    }
    onuma__queues_tidy();
    assert_int_equal(fake.closes, 1);
    assert_int_equal(f->device->users, 0);
}

static void bad_wraps_are_refused(void **state) {
    fixture *f = *state;
    onuma__queue *q;
    onuma_queue_desc desc = ONUMA_QUEUE_DESC_INIT;
    assert_int_equal(onuma__queue_wrap(f->device, ONUMA_API_HOST, 0, NULL, &q), ONUMA_ERROR_INVALID_ARGUMENT);
    assert_int_equal(onuma__queue_wrap(f->device, ONUMA_API_OPENCL, 1, NULL, &q), ONUMA_ERROR_INVALID_ARGUMENT);
    desc.order = 3;
    assert_int_equal(onuma__queue_wrap(f->device, ONUMA_API_HOST, 64, &desc, &q), ONUMA_ERROR_INVALID_ARGUMENT);
    assert_null(q);
    assert_int_equal(f->device->users, 0);
}

static void a_queue_wrapped_again_after_its_end_has_another_number(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    onuma__tag tag = q->tag;
    submit(&f->a);
    drop(q); /* drains: nothing has completed */
    q = wrap(f, &f->a, ONUMA_QUEUE_UNORDERED);
    assert_int_not_equal(q->tag, tag);
    assert_int_not_equal(q->tag, 0);
    assert_int_not_equal(q->tag, ONUMA__TAG_HOLD);
    assert_int_equal(fake.opens, 2);
    complete(&f->a);
    onuma__queues_tidy();
    assert_int_equal(fake.closes, 1);
}

static void a_queue_may_go_with_frees_waiting_for_it(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    void *p = take(f, BLOCK, NULL), *tagged = take(f, BLOCK, q), *later = take(f, BLOCK, q);
    submit(&f->a);
    assert_int_equal(onuma__sync_free(p, q), ONUMA_OK);
    assert_int_equal(onuma__sync_free(tagged, q), ONUMA_OK);
    drop(q);
    assert_int_equal(fake.closes, 0);
    assert_int_equal(f->device->users, 1);
    assert_int_equal(onuma__sync_free(later, NULL), ONUMA_OK);
    poll_gives(f, false);
    uint32_t records = fake.records;
    assert_int_not_equal(onuma__sync_pending(f->engine), 0);
    complete(&f->a);
    poll_gives(f, true);
    assert_int_equal(onuma__sync_pending(f->engine), 0);
    assert_int_equal(fake.records, records); /* the last marker was the last */
    poll_gives(f, false);
    assert_int_equal(fake.closes, 1);
    assert_int_equal(fake.live_markers, 0);
    assert_int_equal(f->device->users, 0);
    assert_true(serves(f, BLOCK, NULL, p));
}

static void release_seals_what_nobody_can_seal_any_more(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    void *p = take(f, BLOCK, NULL);
    assert_int_equal(use(q, p, ONUMA_ACCESS_WRITE), ONUMA_OK);
    submit(&f->a);
    join(start(free_it, p));
    poll_gives(f, false);
    drop(q);
    poll_gives(f, false);
    complete(&f->a);
    poll_gives(f, true);
}

static void lock_it(void *user) {
    atomic_fetch_add((_Atomic uint32_t *)user, 1);
}

static void unlock_it(void *user) {
    atomic_fetch_sub((_Atomic uint32_t *)user, 1);
}

static void native_calls_on_a_queue_are_inside_its_lock_functions(void **state) {
    fixture *f = *state;
    onuma_queue_desc desc = ONUMA_QUEUE_DESC_INIT;
    onuma__queue *q, *other;
    desc.lock = lock_it;
    assert_int_equal(onuma__queue_wrap(f->device, ONUMA_API_HOST, (uint64_t)(uintptr_t)&f->a, &desc, &q),
                     ONUMA_ERROR_INVALID_ARGUMENT);
    desc.unlock = unlock_it;
    desc.user = &fake.locked;
    assert_int_equal(onuma__queue_wrap(f->device, ONUMA_API_HOST, (uint64_t)(uintptr_t)&f->a, &desc, &q), ONUMA_OK);
    desc.user = NULL;
    assert_int_equal(onuma__queue_wrap(f->device, ONUMA_API_HOST, q->native, &desc, &other),
                     ONUMA_ERROR_INVALID_ARGUMENT);
    fake.wants_lock = true;
    void *p = take(f, BLOCK, NULL);
    assert_int_equal(use(q, p, ONUMA_ACCESS_WRITE), ONUMA_OK);
    submit(&f->a);
    assert_int_equal(onuma__sync_submitted(q, NULL), ONUMA_OK);
    assert_int_equal(onuma__sync_free(p, q), ONUMA_OK);
    poll_gives(f, false);
    assert_int_equal(onuma__queue_wait(q, q, NULL), ONUMA_OK);
    drop(q);
    assert_true(fake.records > 0);
    assert_int_equal(fake.unlocked_calls, 0);
    assert_int_equal(fake.locked, 0);
}

static void one_queue_waits_for_another_on_the_device(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER), *on = wrap(f, &f->b, ONUMA_QUEUE_IN_ORDER);
    onuma_native_event event = event_at(1);
    submit(&f->b);
    assert_int_equal(onuma__queue_wait(q, on, NULL), ONUMA_OK);
    assert_int_equal(fake.records, 1);
    assert_int_equal(fake.waits, 1);
    assert_int_equal(onuma__queue_wait(q, on, &event), ONUMA_OK); /* made by the program */
    assert_int_equal(fake.waits, 1);
    event.api = ONUMA_API_CUDA;
    assert_int_equal(onuma__queue_wait(q, on, &event), ONUMA_ERROR_INVALID_ARGUMENT);
    atomic_store(&fake.record, ONUMA_ERROR_INTERNAL);
    assert_int_equal(onuma__queue_wait(q, on, NULL), ONUMA_ERROR_INTERNAL);
    assert_int_equal(fake.waits, 1);
    atomic_store(&fake.record, ONUMA_OK);
}

typedef struct step {
    onuma_host_timeline *timeline;
    _Atomic uint32_t calls;
    uint32_t useless; /* calls after which the queue has got no further */
} step;

static void bring_on(void *user) {
    step *s = user;
    if (atomic_fetch_add(&s->calls, 1) >= s->useless) complete(s->timeline);
}

static onuma__queue *wrap_with_wait(fixture *f, step *s, onuma_queue_order order) {
    onuma_queue_desc desc = ONUMA_QUEUE_DESC_INIT;
    onuma__queue *queue = NULL;
    desc.order = order;
    desc.wait = bring_on;
    desc.user = s;
    assert_int_equal(onuma__queue_wrap(f->device, ONUMA_API_HOST, (uint64_t)(uintptr_t)s->timeline, &desc, &queue),
                     ONUMA_OK);
    return queue;
}

static void the_program_is_asked_to_bring_its_queues_on(void **state) {
    fixture *f = *state;
    step a = {.timeline = &f->a, .useless = 2}, b = {.timeline = &f->b, .useless = 2};
    onuma__queue *in_order = wrap_with_wait(f, &a, ONUMA_QUEUE_IN_ORDER);
    onuma__queue *unordered = wrap_with_wait(f, &b, ONUMA_QUEUE_UNORDERED);
    /* Nobody else completes anything, so each wait ends by the function alone. */
    void *tagged = take(f, BLOCK, in_order), *parked = take(f, BLOCK, unordered);
    submit(&f->a);
    submit(&f->b);
    assert_int_equal(onuma__sync_free(tagged, in_order), ONUMA_OK);
    poll_gives(f, false);
    assert_int_equal(a.calls + b.calls, 0); /* a poll is no wait */
    assert_true(onuma__sync_wait(f->engine, ONUMA_TIMEOUT_INFINITE));
    assert_int_equal(a.calls, 3);
    assert_int_equal(onuma__sync_free(parked, unordered), ONUMA_OK);
    assert_true(onuma__sync_wait(f->engine, ONUMA_TIMEOUT_INFINITE));
    assert_int_equal(b.calls, 3);

    void *used = take(f, BLOCK, NULL);
    assert_int_equal(use(unordered, used, ONUMA_ACCESS_WRITE), ONUMA_OK);
    submit(&f->b);
    assert_int_equal(onuma__sync_submitted(unordered, NULL), ONUMA_OK);
    assert_int_equal(onuma__sync_host_acquire(used, 1, ONUMA_ACCESS_READ, 0), ONUMA_ERROR_TIMEOUT);
    assert_int_equal(b.calls, 3);
    b.useless = 5;
    assert_int_equal(onuma__sync_host_acquire(used, 1, ONUMA_ACCESS_READ, ONUMA_TIMEOUT_INFINITE), ONUMA_OK);
    assert_int_equal(b.calls, 6);
}

/* --------------------------------------------------------------------- failures */

static void a_marker_that_cannot_be_recorded_is_tried_again(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_UNORDERED);
    void *p = take(f, BLOCK, NULL);
    submit(&f->a);
    complete(&f->a);
    atomic_store(&fake.record, ONUMA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(onuma__sync_free(p, q), ONUMA_OK);
    poll_gives(f, false);
    assert_false(onuma__sync_wait(f->engine, 1000000));
    assert_int_equal(onuma__sync_pending(f->engine), 1);
    assert_false(serves(f, BLOCK, NULL, p));
    atomic_store(&fake.record, ONUMA_OK);
    poll_gives(f, true);
    assert_true(serves(f, BLOCK, NULL, p));
}

static void a_poll_that_fails_once_is_followed_by_a_marker_behind_the_failure(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_UNORDERED);
    void *p = take(f, BLOCK, NULL);
    submit(&f->a);
    assert_int_equal(onuma__sync_free(p, q), ONUMA_OK);
    atomic_store(&fake.poll, ONUMA_ERROR_INTERNAL);
    poll_gives(f, false);
    submit(&f->a);
    atomic_store(&fake.poll, ONUMA_OK);
    poll_gives(f, false);
    assert_int_equal(fake.records, 2);
    complete(&f->a);
    poll_gives(f, true);
    assert_true(serves(f, BLOCK, NULL, p));
}

static void what_waits_for_a_queue_that_keeps_failing_is_never_reused(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_UNORDERED);
    void *p = take(f, BLOCK, NULL);
    assert_int_equal(onuma__sync_free(p, q), ONUMA_OK); /* nothing submitted: would pass at once */
    atomic_store(&fake.poll, ONUMA_ERROR_INTERNAL);
    for (int i = 0; i < 8; i++)
        poll_gives(f, false);
    assert_int_equal(fake.records, ONUMA__MARKER_TRIES);
    atomic_store(&fake.poll, ONUMA_OK);
    poll_gives(f, false);
    assert_int_equal(onuma__sync_pending(f->engine), 1);
    assert_false(serves(f, BLOCK, NULL, p));
}

static void a_lost_device_keeps_its_memory_and_is_not_asked_again(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    void *p = take(f, BLOCK, NULL), *tagged = take(f, BLOCK, q), *used = take(f, BLOCK, NULL);
    assert_int_equal(use(q, used, ONUMA_ACCESS_WRITE), ONUMA_OK);
    submit(&f->a);
    assert_int_equal(onuma__sync_free(p, q), ONUMA_OK);
    assert_int_equal(onuma__sync_free(tagged, q), ONUMA_OK);
    atomic_store(&fake.poll, ONUMA_ERROR_DEVICE_LOST);
    poll_gives(f, false);
    poll_gives(f, false);
    assert_true(f->device->lost);
    uint32_t polls = fake.polls;
    poll_gives(f, false);
    assert_int_equal(fake.polls, polls);
    assert_int_equal(onuma__sync_host_acquire(used, 1, ONUMA_ACCESS_READ, ONUMA_TIMEOUT_INFINITE),
                     ONUMA_ERROR_DEVICE_LOST);
    atomic_store(&fake.poll, ONUMA_OK);
    complete(&f->a);
    poll_gives(f, false);
    assert_false(serves(f, BLOCK, NULL, p));
    assert_false(onuma__sync_wait(f->engine, 1000000));
    assert_false(onuma__sync_drop_engine(f->engine, ONUMA_TIMEOUT_INFINITE)); /* hopeless, so it does not wait */
}

/* ------------------------------------------------------------------ waiting, ending */

static void complete_soon(void *timeline) {
    onuma__os_sleep(3000000);
    complete(timeline);
}

static void wait_returns_when_something_comes_free(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_UNORDERED);
    void *p = take(f, BLOCK, NULL);
    submit(&f->a);
    assert_false(onuma__sync_wait(f->engine, ONUMA_TIMEOUT_INFINITE)); /* nothing to wait for */
    assert_int_equal(onuma__sync_free(p, q), ONUMA_OK);
    assert_false(onuma__sync_wait(f->engine, 1000000));
    helper *worker = start(complete_soon, &f->a);
    assert_true(onuma__sync_wait(f->engine, ONUMA_TIMEOUT_INFINITE));
    join(worker);
    assert_true(serves(f, BLOCK, NULL, p));
}

/* The program may take its queue away once that is released and done, whatever has not been asked about by then. */
static void a_queue_that_is_released_and_done_is_not_asked_again(void **state) {
    fixture *f = *state;
    static onuma_host_timeline own;
    onuma__queue *q = wrap(f, &own, ONUMA_QUEUE_IN_ORDER);
    void *freed = take(f, BLOCK, NULL), *kept = take(f, BLOCK, NULL), *of_queue = take(f, BLOCK, q);
    assert_int_equal(use(q, freed, ONUMA_ACCESS_WRITE), ONUMA_OK);
    assert_int_equal(use(q, kept, ONUMA_ACCESS_WRITE), ONUMA_OK);
    submit(&own);
    const onuma_native_event event = event_at(1);
    assert_int_equal(onuma__sync_submitted(q, &event), ONUMA_OK);
    assert_int_equal(onuma__sync_free(freed, NULL), ONUMA_OK);
    assert_int_equal(onuma__sync_free(of_queue, q), ONUMA_OK);
    poll_gives(f, false);
    complete(&own);
    drop(q);
    atomic_store(&own.completed, 0); /* who still asks is told the wrong thing */
    assert_int_equal(onuma__sync_host_acquire(kept, BLOCK, ONUMA_ACCESS_READ, 0), ONUMA_OK);
    assert_int_equal(onuma__sync_host_release(kept, BLOCK, ONUMA_ACCESS_READ), ONUMA_OK);
    poll_gives(f, true);
    assert_int_equal(onuma__sync_pending(f->engine), 0);
    assert_true(serves(f, BLOCK, NULL, freed));
}

static void an_engine_is_in_use_until_all_its_queues_have_passed(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    (void)take(f, BLOCK, q); /* lives, and nothing but its tag tells who may be at it */
    submit(&f->a);
    assert_false(onuma__sync_drop_engine(f->engine, 1000000));
    assert_int_equal(onuma__sync_pending(f->engine), 0); /* forgotten */
    (void)take(f, BLOCK, q);
    helper *worker = start(complete_soon, &f->a);
    assert_true(onuma__sync_drop_engine(f->engine, ONUMA_TIMEOUT_INFINITE));
    join(worker);
    assert_true(onuma__sync_drop_engine(f->engine, 0)); /* nothing is known of it */
}

static void an_engine_with_an_unsealed_use_is_in_use(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    void *p = take(f, BLOCK, NULL);
    assert_int_equal(use(q, p, ONUMA_ACCESS_READ), ONUMA_OK);
    join(start(free_it, p));
    assert_false(onuma__sync_drop_engine(f->engine, 1000000));
}

/* ---------------------------------------------------------------------- imports */

typedef struct import {
    onuma__owner owner; /* first */
    onuma_segment segment;
    onuma__span span;
    _Atomic uint32_t retired;
    void *next; /* another import, freed by the retiring of this one */
} import;

static const onuma_segment *import_segment(const onuma__span *span) {
    return &((const import *)span->own)->segment;
}

static void retire(onuma__owner *owner) {
    import *one = (import *)owner;
    onuma__block block;
    assert_int_equal(onuma__engine_find(one->span.base, &block), ONUMA_ERROR_INVALID_POINTER);
    atomic_fetch_add(&one->retired, 1);
    onuma__sync_end_import(owner);
    if (one->next) assert_int_equal(onuma__sync_free(one->next, NULL), ONUMA_OK);
}

static _Alignas(4096) unsigned char outside[2][4096];

static void bring(fixture *f, import *one, void *memory) {
    memset(one, 0, sizeof *one);
    one->segment = (onuma_segment){.struct_size = sizeof one->segment, .base = memory, .size = 4096};
    one->segment.address = (uintptr_t)memory;
    one->span = (onuma__span){memory, 4096, one};
    one->owner =
        (onuma__owner){.device = f->device, .kind = ONUMA_KIND_SHARED, .segment = import_segment, .retired = retire};
    assert_int_equal(onuma__sync_begin_import(&one->owner), ONUMA_OK);
    assert_int_equal(onuma__import_add(memory, 4096, &one->span, &one->owner), ONUMA_OK);
}

static void an_import_is_retired_once_no_queue_uses_it(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
import one, two;
    bring(f, &one, outside[0]);
    bring(f, &two, outside[1]);
    one.next = outside[1];
    assert_int_equal(use(q, outside[0] + 100, ONUMA_ACCESS_READ), ONUMA_OK);
    assert_int_equal(use(q, outside[1], ONUMA_ACCESS_READ), ONUMA_OK);
    submit(&f->a);
    assert_int_equal(onuma__sync_submitted(q, NULL), ONUMA_OK);
    assert_int_equal(onuma__sync_free(outside[0], NULL), ONUMA_OK);
    onuma__sync_tidy();
    assert_int_equal(one.retired, 0);
    complete(&f->a);
    onuma__sync_tidy(); /* retires one, which frees two, which parks or ends */
    onuma__sync_tidy();
    assert_int_equal(one.retired, 1);
    assert_int_equal(two.retired, 1);
}

static void an_import_nobody_uses_is_retired_by_its_free(void **state) {
    fixture *f = *state;
import one;
    bring(f, &one, outside[0]);
    assert_int_equal(onuma__sync_free(outside[0] + 64, NULL), ONUMA_ERROR_INVALID_POINTER);
    assert_int_equal(onuma__sync_free(outside[0], NULL), ONUMA_OK);
    assert_int_equal(one.retired, 1);
    bring(f, &one, outside[0]); /* the addresses are free again */
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    submit(&f->a);
    assert_int_equal(onuma__sync_free(outside[0], q), ONUMA_OK);
    assert_int_equal(one.retired, 0);
    onuma__queues_drop_device(f->device, 1000000); /* gives up on the work, and leaves the memory alone */
    assert_int_equal(one.retired, 0);
    onuma__import_remove(outside[0]);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, sync_set_up, sync_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_plain_free_asks_no_driver),
        TEST(a_used_block_is_parked_until_the_use_has_passed),
        TEST(an_open_use_of_another_thread_is_waited_for_until_sealed),
        TEST(an_open_use_of_the_freeing_thread_is_sealed_by_the_free),
        TEST(an_event_ends_the_wait_of_a_parked_free),
        TEST(the_queue_it_was_allocated_on_counts_when_freed_without_one),
        TEST(freed_on_another_queue_both_must_pass),
        TEST(a_bound_block_waits_for_its_queue_however_it_is_freed),
        TEST(frees_on_one_queue_share_a_marker),
        TEST(many_parked_frees_are_polled_by_themselves),
        TEST(wrapping_twice_gives_the_same_counted_queue),
        TEST(bad_wraps_are_refused),
        TEST(a_queue_wrapped_again_after_its_end_has_another_number),
        TEST(a_queue_may_go_with_frees_waiting_for_it),
        TEST(release_seals_what_nobody_can_seal_any_more),
        TEST(native_calls_on_a_queue_are_inside_its_lock_functions),
        TEST(one_queue_waits_for_another_on_the_device),
        TEST(the_program_is_asked_to_bring_its_queues_on),
        TEST(a_marker_that_cannot_be_recorded_is_tried_again),
        TEST(a_poll_that_fails_once_is_followed_by_a_marker_behind_the_failure),
        TEST(what_waits_for_a_queue_that_keeps_failing_is_never_reused),
        TEST(a_lost_device_keeps_its_memory_and_is_not_asked_again),
        TEST(wait_returns_when_something_comes_free),
        TEST(a_queue_that_is_released_and_done_is_not_asked_again),
        TEST(an_engine_is_in_use_until_all_its_queues_have_passed),
        TEST(an_engine_with_an_unsealed_use_is_in_use),
        TEST(an_import_is_retired_once_no_queue_uses_it),
        TEST(an_import_nobody_uses_is_retired_by_its_free),
    };
    return cmocka_run_group_tests_name("sync_free", tests, NULL, NULL);
}
