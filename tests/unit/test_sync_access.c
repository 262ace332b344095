/* SPDX-License-Identifier: Apache-2.0 */
/* Uses and host accesses: who waits for whom, who is refused, what is mapped. */
#include "sync_support.h"

#include <string.h>

#define BLOCK ((size_t)1 << 16)
#define READ ONUMA_ACCESS_READ
#define WRITE ONUMA_ACCESS_WRITE
#define BOTH ONUMA_ACCESS_READ_WRITE

static onuma_result acquire(void *p, onuma_access mode, uint64_t timeout) {
    return onuma__sync_host_acquire(p, BLOCK, mode, timeout);
}

static onuma_result release(void *p, onuma_access mode) {
    return onuma__sync_host_release(p, BLOCK, mode);
}

static void take_turn(void *p, onuma_access mode) {
    assert_int_equal(acquire(p, mode, 0), ONUMA_OK);
    assert_int_equal(release(p, mode), ONUMA_OK);
}

/* How many uses the library remembers of a block. */
static size_t remembered(void *p) {
    size_t count = 0;
    onuma__shard *shard = onuma__shard_lock(p);
    onuma__record *record = onuma__record_find(shard, p);
    for (onuma__use *u = record ? record->uses : NULL; u; u = u->next)
        count++;
    onuma__shard_unlock(shard);
    return count;
}

/* ------------------------------------------------------------ who is in whose way */

static void a_use_conflicts_with_a_hold_unless_both_read(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    for (onuma_access host = READ; host <= BOTH; host++)
        for (onuma_access device = READ; device <= BOTH; device++) {
            void *p = take(f, BLOCK, NULL);
            bool both_read = host == READ && device == READ;
            assert_int_equal(acquire(p, host, 0), ONUMA_OK);
            assert_int_equal(use(q, p, device), both_read ? ONUMA_OK : ONUMA_ERROR_CONFLICT);
            assert_int_equal(release(p, host), ONUMA_OK);
            assert_int_equal(use(q, p, device), ONUMA_OK);
        }
}

static void a_hold_waits_for_a_use_unless_both_read(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    for (onuma_access host = READ; host <= BOTH; host++)
        for (onuma_access device = READ; device <= BOTH; device++) {
            void *p = take(f, BLOCK, NULL);
            bool both_read = host == READ && device == READ;
            assert_int_equal(use(q, p, device), ONUMA_OK);
            submit(&f->a);
            assert_int_equal(onuma__sync_submitted(q, NULL), ONUMA_OK);
            assert_int_equal(acquire(p, host, 0), both_read ? ONUMA_OK : ONUMA_ERROR_TIMEOUT);
            if (both_read) assert_int_equal(release(p, host), ONUMA_OK);
            complete(&f->a);
            take_turn(p, host);
        }
}

static void a_time_out_leaves_everything_as_it_was(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER), *other = wrap(f, &f->b, ONUMA_QUEUE_IN_ORDER);
    void *p = take(f, BLOCK, NULL);
    assert_int_equal(use(q, p, WRITE), ONUMA_OK);
    submit(&f->a);
    assert_int_equal(onuma__sync_submitted(q, NULL), ONUMA_OK);
    assert_int_equal(acquire(p, WRITE, 0), ONUMA_ERROR_TIMEOUT);
    assert_int_equal(acquire(p, WRITE, 2000000), ONUMA_ERROR_TIMEOUT);
    assert_int_equal(release(p, WRITE), ONUMA_ERROR_INVALID_ARGUMENT);
    assert_int_equal(use(other, p, WRITE), ONUMA_OK); /* no hold is in its way */
    complete(&f->a);
    assert_int_equal(acquire(p, READ, 0), ONUMA_OK); /* this thread's own use, sealed: nothing was submitted for it */
}

static void use_many_announces_all_or_none(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    void *p[40];
    onuma_access modes[40];
    for (size_t i = 0; i < 40; i++) {
        p[i] = take(f, BLOCK, NULL);
        modes[i] = WRITE;
    }
    submit(&f->a);
    assert_int_equal(acquire(p[20], READ, 0), ONUMA_OK);
    assert_int_equal(onuma__sync_use_many(q, 40, p, modes), ONUMA_ERROR_CONFLICT);
    assert_int_equal(release(p[20], READ), ONUMA_OK);
    modes[39] = 0;
    assert_int_equal(onuma__sync_use_many(q, 40, p, modes), ONUMA_ERROR_INVALID_ARGUMENT);
    modes[39] = 4;
    assert_int_equal(onuma__sync_use_many(q, 40, p, modes), ONUMA_ERROR_INVALID_ARGUMENT);
    modes[39] = WRITE;
    void *last = p[39];
    p[39] = &last;
    assert_int_equal(onuma__sync_use_many(q, 40, p, modes), ONUMA_ERROR_INVALID_POINTER);
    for (size_t i = 0; i < 39; i++)
        take_turn(p[i], WRITE);
    p[39] = last;
    assert_int_equal(onuma__sync_use_many(q, 40, p, modes), ONUMA_OK);
    for (size_t i = 0; i < 40; i++)
        assert_int_equal(acquire(p[i], READ, 0), ONUMA_ERROR_TIMEOUT);
    assert_int_equal(onuma__sync_use_many(q, 0, NULL, NULL), ONUMA_OK);
}

static void the_same_block_may_be_named_twice(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    char *p = take(f, BLOCK, NULL);
    void *twice[2] = {p, p + 100};
    onuma_access modes[2] = {READ, WRITE};
    assert_int_equal(onuma__sync_use_many(q, 2, twice, modes), ONUMA_OK);
    assert_int_equal(remembered(p), 1);
    submit(&f->a);
    assert_int_equal(acquire(p, READ, 0), ONUMA_ERROR_TIMEOUT); /* it counts as writing */
}

static void hosts_do_not_exclude_each_other(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    void *p = take(f, BLOCK, NULL);
    assert_int_equal(acquire(p, WRITE, 0), ONUMA_OK);
    assert_int_equal(acquire(p, WRITE, 0), ONUMA_OK);
    assert_int_equal(acquire(p, READ, 0), ONUMA_OK);
    assert_int_equal(release(p, WRITE), ONUMA_OK);
    assert_int_equal(use(q, p, READ), ONUMA_ERROR_CONFLICT); /* one writer is left */
    assert_int_equal(release(p, WRITE), ONUMA_OK);
    assert_int_equal(use(q, p, READ), ONUMA_OK);
    assert_int_equal(use(q, p, WRITE), ONUMA_ERROR_CONFLICT); /* and a reader */
    assert_int_equal(release(p, READ), ONUMA_OK);
    assert_int_equal(use(q, p, WRITE), ONUMA_OK);
}

static void releases_that_match_no_hold_are_refused(void **state) {
    fixture *f = *state;
    void *p = take(f, BLOCK, NULL);
    assert_int_equal(release(p, READ), ONUMA_ERROR_INVALID_ARGUMENT);
    assert_int_equal(acquire(p, READ, 0), ONUMA_OK);
    assert_int_equal(release(p, WRITE), ONUMA_ERROR_INVALID_ARGUMENT);
    assert_int_equal(release(p, READ), ONUMA_OK);
    assert_int_equal(release(p, READ), ONUMA_ERROR_INVALID_ARGUMENT);
    assert_int_equal(release(p, 0), ONUMA_ERROR_INVALID_ARGUMENT);
}

static void spans_beyond_the_block_are_refused(void **state) {
    fixture *f = *state;
    char *p = take(f, BLOCK, NULL);
    onuma__block block;
    assert_int_equal(onuma__engine_find(p, &block), ONUMA_OK);
    assert_int_equal(onuma__sync_host_acquire(p, block.size + 1, READ, 0), ONUMA_ERROR_INVALID_ARGUMENT);
    assert_int_equal(onuma__sync_host_acquire(p + 1, block.size, READ, 0), ONUMA_ERROR_INVALID_ARGUMENT);
    assert_int_equal(onuma__sync_host_acquire(p + 1, SIZE_MAX, READ, 0), ONUMA_ERROR_INVALID_ARGUMENT);
    assert_int_equal(onuma__sync_host_acquire(p, 1, 0, 0), ONUMA_ERROR_INVALID_ARGUMENT);
    assert_int_equal(onuma__sync_host_acquire(p, 1, 4, 0), ONUMA_ERROR_INVALID_ARGUMENT);
    assert_int_equal(onuma__sync_host_acquire(&block, 1, READ, 0), ONUMA_ERROR_INVALID_POINTER);
    assert_int_equal(onuma__sync_host_acquire(p + block.size - 1, 1, WRITE, 0), ONUMA_OK);
    assert_int_equal(onuma__sync_host_release(p + block.size - 1, 1, WRITE), ONUMA_OK);
    assert_int_equal(onuma__sync_host_acquire(p, 0, READ, 0), ONUMA_OK);
    assert_int_equal(onuma__sync_host_release(p, 0, READ), ONUMA_OK);
}

static void memory_that_the_cpu_cannot_reach_or_write_is_refused(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    void *p = take(f, BLOCK, NULL);
    f->owner.kind = ONUMA_KIND_DEVICE;
    assert_int_equal(acquire(p, READ, 0), ONUMA_ERROR_NOT_SUPPORTED);
    f->owner.kind = ONUMA_KIND_SHARED;
    f->owner.read_only = true;
    assert_int_equal(acquire(p, WRITE, 0), ONUMA_ERROR_INVALID_ARGUMENT);
    assert_int_equal(use(q, p, WRITE), ONUMA_ERROR_INVALID_ARGUMENT);
    assert_int_equal(use(q, p, READ), ONUMA_OK);
    take_turn(p, READ);
    f->owner.read_only = false;
    f->owner.segment = NULL; /* as a simulated pool */
    assert_int_equal(acquire(p, READ, 0), ONUMA_ERROR_NOT_SUPPORTED);
}

/* ----------------------------------------------------------------------- sealing */

static void acquire_seals_the_uses_of_its_own_thread(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    void *p = take(f, BLOCK, NULL);
    assert_int_equal(use(q, p, WRITE), ONUMA_OK);
    submit(&f->a);
    assert_int_equal(acquire(p, READ, 0), ONUMA_ERROR_TIMEOUT);
    complete(&f->a);
    take_turn(p, READ);
}

typedef struct attempt {
    void *p;
    onuma_access mode;
    uint64_t timeout;
    onuma_result result;
} attempt;

static void try_to_acquire(void *user) {
    attempt *a = user;
    a->result = acquire(a->p, a->mode, a->timeout);
    if (a->result == ONUMA_OK) assert_int_equal(release(a->p, a->mode), ONUMA_OK);
}

static onuma_result elsewhere(void *p, onuma_access mode, uint64_t timeout) {
    attempt a = {p, mode, timeout, ONUMA_ERROR_INTERNAL};
    join(start(try_to_acquire, &a));
    return a.result;
}

static void other_threads_wait_for_the_seal_and_then_for_the_work(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    void *p = take(f, BLOCK, NULL);
    assert_int_equal(use(q, p, WRITE), ONUMA_OK);
    assert_int_equal(elsewhere(p, READ, 0), ONUMA_ERROR_TIMEOUT); /* a marker now would pass: nothing is submitted */
    submit(&f->a);
    complete(&f->a);
    assert_int_equal(elsewhere(p, READ, 0), ONUMA_ERROR_TIMEOUT);
    assert_int_equal(onuma__sync_submitted(q, NULL), ONUMA_OK);
    assert_int_equal(elsewhere(p, READ, 0), ONUMA_OK);
}

static void submit_it(void *queue) {
    assert_int_equal(onuma__sync_submitted(queue, NULL), ONUMA_OK);
}

static void any_thread_may_seal_what_another_has_opened(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    void *p = take(f, BLOCK, NULL);
    assert_int_equal(use(q, p, WRITE), ONUMA_OK);
    submit(&f->a);
    join(start(submit_it, q));
    complete(&f->a);
    assert_int_equal(elsewhere(p, READ, 0), ONUMA_OK);
}

static void a_later_seal_of_the_batch_counts_beyond_an_implied_one(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    void *p = take(f, BLOCK, NULL);
    assert_int_equal(use(q, p, WRITE), ONUMA_OK);
    submit(&f->a);
    assert_int_equal(acquire(p, READ, 0), ONUMA_ERROR_TIMEOUT); /* implies a seal at 1 */
    submit(&f->a);
    assert_int_equal(onuma__sync_submitted(q, NULL), ONUMA_OK); /* and this one is at 2 */
    atomic_store(&f->a.completed, 1);
    assert_int_equal(acquire(p, READ, 0), ONUMA_ERROR_TIMEOUT);
    atomic_store(&f->a.completed, 2);
    take_turn(p, READ);
}

static void a_use_after_an_implied_seal_is_open_again(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_UNORDERED);
    void *p = take(f, BLOCK, NULL);
    assert_int_equal(use(q, p, WRITE), ONUMA_OK);
    submit(&f->a);
    assert_int_equal(acquire(p, READ, 0), ONUMA_ERROR_TIMEOUT);
    assert_int_equal(use(q, p, WRITE), ONUMA_OK);
    complete(&f->a);
    assert_int_equal(elsewhere(p, READ, 0), ONUMA_ERROR_TIMEOUT);
    submit(&f->a);
    assert_int_equal(onuma__sync_submitted(q, NULL), ONUMA_OK);
    assert_int_equal(elsewhere(p, READ, 0), ONUMA_ERROR_TIMEOUT);
    complete(&f->a);
    assert_int_equal(elsewhere(p, READ, 0), ONUMA_OK);
}

static void with_an_event_exactly_that_work_is_waited_for(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    onuma_native_event event = event_at(5), foreign = event_at(5);
    void *p = take(f, BLOCK, NULL);
    assert_int_equal(use(q, p, WRITE), ONUMA_OK);
    atomic_store(&f->a.submitted, 9); /* unrelated, never to complete */
    foreign.api = ONUMA_API_CUDA;
    assert_int_equal(onuma__sync_submitted(q, &foreign), ONUMA_ERROR_INVALID_ARGUMENT);
    assert_int_equal(onuma__sync_submitted(q, &event), ONUMA_OK);
    assert_int_equal(fake.records, 0);
    atomic_store(&f->a.completed, 4);
    assert_int_equal(acquire(p, READ, 0), ONUMA_ERROR_TIMEOUT);
    atomic_store(&f->a.completed, 5);
    take_turn(p, READ);
}

static void without_one_what_was_submitted_until_then(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    void *p = take(f, BLOCK, NULL), *gated = take(f, BLOCK, NULL);
    assert_int_equal(use(q, p, WRITE), ONUMA_OK);
    submit(&f->a);
    assert_int_equal(onuma__sync_submitted(q, NULL), ONUMA_OK);
    assert_int_equal(use(q, gated, WRITE), ONUMA_OK);
    submit(&f->a);
    assert_int_equal(onuma__sync_submitted(q, NULL), ONUMA_OK);
    atomic_store(&f->a.completed, 1);
    take_turn(p, WRITE);
    assert_int_equal(acquire(gated, READ, 0), ONUMA_ERROR_TIMEOUT);
}

static void a_seal_that_fails_leaves_the_uses_open(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    void *p = take(f, BLOCK, NULL), *second = take(f, BLOCK, NULL);
    assert_int_equal(use(q, p, WRITE), ONUMA_OK);
    atomic_store(&fake.record, ONUMA_ERROR_INTERNAL);
    assert_int_equal(onuma__sync_submitted(q, NULL), ONUMA_ERROR_INTERNAL);
    assert_int_equal(elsewhere(p, READ, 0), ONUMA_ERROR_TIMEOUT);
    assert_int_equal(acquire(p, READ, 0), ONUMA_ERROR_INTERNAL); /* says why, rather than wait for ever */
    atomic_store(&fake.record, ONUMA_OK);
    assert_int_equal(use(q, second, WRITE), ONUMA_OK);
    assert_int_equal(onuma__sync_submitted(q, NULL), ONUMA_OK);
    assert_int_equal(elsewhere(p, READ, 0), ONUMA_OK);
    assert_int_equal(elsewhere(second, READ, 0), ONUMA_OK);
}

static void complete_soon(void *timeline) {
    onuma__os_sleep(3000000);
    complete(timeline);
}

static void acquire_waits_until_the_work_is_done(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    void *p = take(f, BLOCK, NULL);
    assert_int_equal(use(q, p, WRITE), ONUMA_OK);
    submit(&f->a);
    helper *worker = start(complete_soon, &f->a);
    assert_int_equal(acquire(p, READ, ONUMA_TIMEOUT_INFINITE), ONUMA_OK);
    assert_int_equal(atomic_load(&f->a.completed), 1);
    join(worker);
}

static void both_queues_are_waited_for(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER), *other = wrap(f, &f->b, ONUMA_QUEUE_UNORDERED);
    void *p = take(f, BLOCK, NULL);
    assert_int_equal(use(q, p, READ), ONUMA_OK);
    assert_int_equal(use(other, p, READ), ONUMA_OK);
    submit(&f->a);
    submit(&f->b);
    assert_int_equal(onuma__sync_submitted(q, NULL), ONUMA_OK);
    assert_int_equal(onuma__sync_submitted(other, NULL), ONUMA_OK);
    take_turn(p, READ);
    assert_int_equal(acquire(p, WRITE, 0), ONUMA_ERROR_TIMEOUT);
    complete(&f->a);
    assert_int_equal(acquire(p, WRITE, 0), ONUMA_ERROR_TIMEOUT);
    complete(&f->b);
    take_turn(p, WRITE);
}

static void a_reader_waits_for_the_last_writer_alone(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    void *p = take(f, BLOCK, NULL);
    const onuma_access steps[] = {READ, WRITE, WRITE, READ, READ};
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(use(q, p, steps[i]), ONUMA_OK);
        submit(&f->a);
        assert_int_equal(onuma__sync_submitted(q, NULL), ONUMA_OK);
    }
    assert_int_equal(remembered(p), 2);
    atomic_store(&f->a.completed, 2);
    assert_int_equal(acquire(p, READ, 0), ONUMA_ERROR_TIMEOUT);
    atomic_store(&f->a.completed, 3);
    take_turn(p, READ);
    assert_int_equal(acquire(p, WRITE, 0), ONUMA_ERROR_TIMEOUT);
    atomic_store(&f->a.completed, 4);
    assert_int_equal(acquire(p, WRITE, 0), ONUMA_ERROR_TIMEOUT);
    atomic_store(&f->a.completed, 5);
    take_turn(p, WRITE);
}

static void uses_that_nobody_waits_for_do_not_pile_up(void **state) {
    fixture *f = *state;
    for (onuma_queue_order order = ONUMA_QUEUE_IN_ORDER; order <= ONUMA_QUEUE_UNORDERED; order++) {
        onuma_host_timeline *timeline = order == ONUMA_QUEUE_IN_ORDER ? &f->a : &f->b;
        onuma__queue *q = wrap(f, timeline, order);
        void *p = take(f, BLOCK, NULL);
        for (uint64_t i = 1; i <= 1000; i++) {
            onuma_native_event event = event_at(i);
            assert_int_equal(use(q, p, i % 3 ? READ : WRITE), ONUMA_OK);
            submit(timeline);
            assert_int_equal(onuma__sync_submitted(q, i % 2 ? &event : NULL), ONUMA_OK);
        }
        assert_in_range(remembered(p), 1, 18);
        assert_in_range(fake.live_markers, 1, 40);
        assert_int_equal(acquire(p, READ, 0), ONUMA_ERROR_TIMEOUT);
        atomic_store(&timeline->completed, 998);
        assert_int_equal(acquire(p, READ, 0), ONUMA_ERROR_TIMEOUT);
        complete(timeline);
        take_turn(p, WRITE);
        assert_int_equal(remembered(p), 0);
    }
}

/* ---------------------------------------------------------------------- mapping */

static void coherent_memory_with_nothing_in_flight_asks_no_driver(void **state) {
    fixture *f = *state;
    void *p = take(f, BLOCK, NULL);
    take_turn(p, BOTH);
    take_turn(p, READ);
    assert_int_equal(fake.records + fake.polls + fake.maps + fake.unmaps + fake.views_made, 0);
}

static void memory_is_mapped_by_the_first_and_unmapped_by_the_last(void **state) {
    fixture *f = *state;
    needs_mapping(f);
    void *p = take(f, BLOCK, NULL);
    assert_int_equal(acquire(p, READ, 0), ONUMA_OK);
    assert_int_equal(fake.mapped_mode, READ);
    assert_int_equal(acquire(p, READ, 0), ONUMA_OK);
    assert_int_equal(fake.maps, 1);
    assert_int_equal(release(p, READ), ONUMA_OK);
    assert_int_equal(fake.unmaps, 0);
    assert_int_equal(release(p, READ), ONUMA_OK);
    assert_int_equal(fake.unmaps, 1);
    assert_int_equal(fake.mapped_mode, 0);
    take_turn(p, WRITE);
    assert_int_equal(fake.maps, 2);
    assert_int_equal(fake.mapped_mode, 0);
}

static void a_map_widens_for_a_writer_and_narrows_after_the_last(void **state) {
    fixture *f = *state;
    needs_mapping(f);
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    void *p = take(f, BLOCK, NULL);
    assert_int_equal(acquire(p, READ, 0), ONUMA_OK);
    assert_int_equal(acquire(p, WRITE, 0), ONUMA_OK);
    assert_int_equal(fake.mapped_mode, BOTH);
    assert_int_equal(acquire(p, BOTH, 0), ONUMA_OK);
    assert_int_equal(fake.maps, 2);
    assert_int_equal(release(p, WRITE), ONUMA_OK);
    assert_int_equal(fake.mapped_mode, BOTH);
    assert_int_equal(release(p, BOTH), ONUMA_OK);
    assert_int_equal(fake.mapped_mode, READ); /* a queue may read now, and must see what was written */
    assert_int_equal(use(q, p, READ), ONUMA_OK);
    assert_int_equal(release(p, READ), ONUMA_OK);
    assert_int_equal(fake.mapped_mode, 0);
    assert_int_equal(fake.maps, fake.unmaps);
}

static void a_failed_map_leaves_no_hold_and_a_failed_unmap_leaves_it(void **state) {
    fixture *f = *state;
    needs_mapping(f);
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    void *p = take(f, BLOCK, NULL);
    atomic_store(&fake.map, ONUMA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(acquire(p, WRITE, 0), ONUMA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(release(p, WRITE), ONUMA_ERROR_INVALID_ARGUMENT);
    assert_int_equal(use(q, p, WRITE), ONUMA_OK);
    atomic_store(&fake.map, ONUMA_OK);
    assert_int_equal(acquire(p, WRITE, 0), ONUMA_OK);
    atomic_store(&fake.unmap, ONUMA_ERROR_INTERNAL);
    assert_int_equal(release(p, WRITE), ONUMA_ERROR_INTERNAL);
    assert_int_equal(use(q, p, READ), ONUMA_ERROR_CONFLICT);
    atomic_store(&fake.unmap, ONUMA_OK);
    assert_int_equal(release(p, WRITE), ONUMA_OK);
    assert_int_equal(use(q, p, READ), ONUMA_OK);
}

static void a_map_stays_under_a_writer(void **state) {
    fixture *f = *state;
    needs_mapping(f);
    void *p = take(f, BLOCK, NULL);
    assert_int_equal(acquire(p, WRITE, 0), ONUMA_OK);
    assert_int_equal(acquire(p, READ, 0), ONUMA_OK);
    assert_int_equal(acquire(p, BOTH, 0), ONUMA_OK);
    assert_int_equal(fake.mapped_mode, WRITE); /* which covers reading */
    assert_int_equal(fake.maps, 1);
    assert_int_equal(fake.unmaps, 0);
    assert_int_equal(release(p, WRITE), ONUMA_OK);
    assert_int_equal(fake.unmaps, 0);
    assert_int_equal(release(p, BOTH), ONUMA_OK);
    assert_int_equal(fake.mapped_mode, READ);
    assert_int_equal(release(p, READ), ONUMA_OK);
    assert_int_equal(fake.mapped_mode, 0);
}

/* Unmapped, and then the driver refuses to map: who holds the block already loses nothing by it. */
static void a_change_of_maps_that_fails_harms_no_holder(void **state) {
    fixture *f = *state;
    needs_mapping(f);
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    void *p = take(f, BLOCK, NULL);
    assert_int_equal(acquire(p, READ, 0), ONUMA_OK);
    atomic_store(&fake.map, ONUMA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(acquire(p, WRITE, 0), ONUMA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(use(q, p, WRITE), ONUMA_ERROR_CONFLICT); /* the reader's hold is there */
    assert_int_equal(acquire(p, READ, 0), ONUMA_ERROR_OUT_OF_MEMORY);
    atomic_store(&fake.map, ONUMA_OK);
    assert_int_equal(acquire(p, READ, 0), ONUMA_OK); /* maps it again */
    assert_int_equal(fake.mapped_mode, READ);
    assert_int_equal(acquire(p, WRITE, 0), ONUMA_OK);
    atomic_store(&fake.map, ONUMA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(release(p, WRITE), ONUMA_OK); /* its bytes are with the device */
    assert_int_equal(fake.mapped_mode, 0);
    assert_int_equal(use(q, p, READ), ONUMA_OK);
    assert_int_equal(release(p, READ), ONUMA_OK);
    assert_int_equal(release(p, READ), ONUMA_OK);
    assert_int_equal(release(p, READ), ONUMA_ERROR_INVALID_ARGUMENT);
    assert_int_equal(fake.maps, fake.unmaps);
}

static void one_segment_may_need_mapping_on_a_coherent_device(void **state) {
    fixture *f = *state;
    void *p = take(f, BLOCK, NULL);
    onuma__block block;
    assert_int_equal(onuma__engine_find(p, &block), ONUMA_OK);
    ((onuma_segment *)block.span->own)->needs_map = true;
    take_turn(p, WRITE);
    assert_int_equal(fake.maps, 1);
    assert_int_equal(fake.unmaps, 1);
}

static void mapping_goes_through_the_blocks_own_handle(void **state) {
    fixture *f = *state;
    needs_mapping(f);
    gives_handles(f);
    void *p = take(f, BLOCK, NULL);
    take_turn(p, WRITE);
    take_turn(p, READ);
    assert_int_equal(fake.views_made, 1);
    assert_int_equal(fake.maps, 2);
    atomic_store(&fake.view, ONUMA_ERROR_OUT_OF_MEMORY);
    void *other = take(f, BLOCK, NULL);
    assert_int_equal(acquire(other, READ, 0), ONUMA_ERROR_OUT_OF_MEMORY);
    atomic_store(&fake.view, ONUMA_OK);
    take_turn(other, READ);
}

static void freeing_a_held_block_ends_the_hold_and_is_a_hazard(void **state) {
    fixture *f = *state;
    needs_mapping(f);
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_UNORDERED);
    void *p = take(f, BLOCK, NULL);
    assert_int_equal(acquire(p, WRITE, 0), ONUMA_OK);
    submit(&f->a);
    assert_int_equal(onuma__sync_free(p, q), ONUMA_OK);
    assert_non_null(strstr(f->lines, "opennuma: hazard: block"));
    assert_non_null(strstr(f->lines, "freed while the CPU holds it for writing"));
    assert_int_equal(fake.unmaps, 0); /* not before its queue has passed */
    assert_int_equal(release(p, WRITE), ONUMA_ERROR_INVALID_POINTER);
    complete(&f->a);
    assert_true(onuma__sync_poll(f->engine));
    assert_int_equal(fake.unmaps, 1);
    assert_int_equal(fake.mapped_mode, 0);
}

static void a_conflicting_use_is_reported_with_both_sides(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    void *p = take(f, BLOCK, NULL);
    assert_int_equal(acquire(p, READ, 0), ONUMA_OK);
    assert_int_equal(use(q, p, READ), ONUMA_OK);
    assert_int_equal(f->lines[0], 0);
    assert_int_equal(use(q, p, WRITE), ONUMA_ERROR_CONFLICT);
    assert_non_null(strstr(f->lines, "opennuma: hazard: queue"));
    assert_non_null(strstr(f->lines, "writing"));
    assert_non_null(strstr(f->lines, "CPU holds it for reading"));
    f->lines[0] = 0;
    f->config.check = ONUMA__CHECK_NONE;
    assert_int_equal(use(q, p, WRITE), ONUMA_ERROR_CONFLICT);
    assert_int_equal(f->lines[0], 0);
}

static void expect_hazard(fixture *f, bool expected) {
    assert_int_equal(strstr(f->lines, "hazard: queue") != NULL, expected);
    f->lines[0] = 0;
}

static void submit_use(onuma__queue *queue, void *p, onuma_access mode) {
    assert_int_equal(use(queue, p, mode), ONUMA_OK);
    submit((onuma_host_timeline *)(uintptr_t)queue->native);
    assert_int_equal(onuma__sync_submitted(queue, NULL), ONUMA_OK);
}

/* Only what is announced can be known to be ordered. */
static void queues_in_each_others_way_are_reported(void **state) {
    fixture *f = *state;
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER), *other = wrap(f, &f->b, ONUMA_QUEUE_IN_ORDER);
    void *p = take(f, BLOCK, NULL);
    submit_use(q, p, WRITE);
    submit_use(q, p, WRITE); /* in order by itself */
    expect_hazard(f, false);
    assert_int_equal(use(other, p, READ), ONUMA_OK);
    assert_non_null(strstr(f->lines, "announces reading block"));
    assert_non_null(strstr(f->lines, "is still writing it"));
    expect_hazard(f, true);
    complete(&f->a);
    complete(&f->b);
    submit_use(other, p, WRITE); /* q's work is done, as is found by asking */
    expect_hazard(f, false);
}

static void no_hazard_where_queues_are_ordered(void **state) {
    fixture *f = *state;
    static onuma_host_timeline c; /* looked at until the engine is gone, after this */
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER), *other = wrap(f, &f->b, ONUMA_QUEUE_UNORDERED);
    onuma__queue *third = wrap(f, &c, ONUMA_QUEUE_IN_ORDER);
    onuma_native_event event = event_at(1);
    void *p = take(f, BLOCK, NULL);
    submit_use(q, p, READ);
    submit_use(other, p, READ); /* readers need no order */
    expect_hazard(f, false);
    assert_int_equal(onuma__queue_wait(other, q, &event), ONUMA_OK); /* made by the program */
    submit_use(other, p, WRITE);
    expect_hazard(f, true);                                            /* with its own reading: it is unordered */
    assert_int_equal(onuma__queue_wait(third, other, NULL), ONUMA_OK); /* by the library, and after q by that */
    submit_use(third, p, WRITE);
    expect_hazard(f, false);
    submit_use(q, p, WRITE); /* the other way round nothing is ordered */
    expect_hazard(f, true);
    drop(third);
    complete(&f->a);
    complete(&f->b);
    complete(&c);
    onuma__queues_tidy();
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, sync_set_up, sync_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_use_conflicts_with_a_hold_unless_both_read),
        TEST(a_hold_waits_for_a_use_unless_both_read),
        TEST(a_time_out_leaves_everything_as_it_was),
        TEST(use_many_announces_all_or_none),
        TEST(the_same_block_may_be_named_twice),
        TEST(hosts_do_not_exclude_each_other),
        TEST(releases_that_match_no_hold_are_refused),
        TEST(spans_beyond_the_block_are_refused),
        TEST(memory_that_the_cpu_cannot_reach_or_write_is_refused),
        TEST(acquire_seals_the_uses_of_its_own_thread),
        TEST(other_threads_wait_for_the_seal_and_then_for_the_work),
        TEST(any_thread_may_seal_what_another_has_opened),
        TEST(a_later_seal_of_the_batch_counts_beyond_an_implied_one),
        TEST(a_use_after_an_implied_seal_is_open_again),
        TEST(with_an_event_exactly_that_work_is_waited_for),
        TEST(without_one_what_was_submitted_until_then),
        TEST(a_seal_that_fails_leaves_the_uses_open),
        TEST(acquire_waits_until_the_work_is_done),
        TEST(both_queues_are_waited_for),
        TEST(a_reader_waits_for_the_last_writer_alone),
        TEST(uses_that_nobody_waits_for_do_not_pile_up),
        TEST(coherent_memory_with_nothing_in_flight_asks_no_driver),
        TEST(memory_is_mapped_by_the_first_and_unmapped_by_the_last),
        TEST(a_map_widens_for_a_writer_and_narrows_after_the_last),
        TEST(a_failed_map_leaves_no_hold_and_a_failed_unmap_leaves_it),
        TEST(a_map_stays_under_a_writer),
        TEST(a_change_of_maps_that_fails_harms_no_holder),
        TEST(one_segment_may_need_mapping_on_a_coherent_device),
        TEST(mapping_goes_through_the_blocks_own_handle),
        TEST(freeing_a_held_block_ends_the_hold_and_is_a_hazard),
        TEST(a_conflicting_use_is_reported_with_both_sides),
        TEST(queues_in_each_others_way_are_reported),
        TEST(no_hazard_where_queues_are_ordered),
    };
    return cmocka_run_group_tests_name("sync_access", tests, NULL, NULL);
}
