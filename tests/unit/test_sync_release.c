/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a queue, while others are at it. */
#include "sync_support.h"

#include <stdlib.h>

#define BLOCK ((size_t)1 << 16)

static void poll_engine(void *engine) {
    (void)onuma__sync_poll(engine);
}

typedef struct releasing {
    onuma__queue *queue;
    _Atomic bool done;
} releasing;

static void release_queue(void *argument) {
    releasing *r = argument;
    drop(r->queue);
    atomic_store(&r->done, true);
}

/* Once a queue's work is done and its release has returned, the program may take away what it is: so nobody is in the
 * driver with it any more. */
static void release_waits_for_who_is_inside(void **state) {
    fixture *f = *state;
    releasing r = {.queue = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER)};
    void *p = take(f, BLOCK, NULL);
    submit(&f->a);
    assert_int_equal(onuma__sync_free(p, r.queue), ONUMA_OK);
    atomic_store(&fake.poll_gate, true);
    helper *poller = start(poll_engine, f->engine);
    while (!atomic_load(&fake.poll_waits))
        onuma__os_yield();
    complete(&f->a);
    helper *releaser = start(release_queue, &r);
    for (int i = 0; i < 20; i++) /* time enough for a release that does not wait */
        onuma__os_sleep(1000000);
    const bool early = atomic_load(&r.done);
    atomic_store(&fake.poll_gate, false);
    join(releaser);
    join(poller);
    assert_false(early);
    assert_true(atomic_load(&r.done));
    const uint32_t polls = fake.polls;
    (void)onuma__sync_poll(f->engine);
    assert_int_equal(fake.polls, polls); /* nothing asks about it any more */
    assert_int_equal(onuma__sync_pending(f->engine), 0);
}

/* Asked about, released and taken away by threads that know nothing of each other; sanitizers see a late look. */
static void timelines_die_while_others_poll(void **state) {
    enum { ROUNDS = 300 };
    fixture *f = *state;
    for (int i = 0; i < ROUNDS; i++) {
        onuma_host_timeline *timeline = calloc(1, sizeof *timeline);
        assert_non_null(timeline);
        onuma__queue *q = wrap(f, timeline, i % 2 ? ONUMA_QUEUE_IN_ORDER : ONUMA_QUEUE_UNORDERED);
        void *p = take(f, BLOCK, q);
        submit(timeline);
        assert_int_equal(onuma__sync_free(p, q), ONUMA_OK);
        helper *poller = start(poll_engine, f->engine);
        complete(timeline);
        drop(q);
        free(timeline);
        join(poller);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, sync_set_up, sync_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(release_waits_for_who_is_inside),
        TEST(timelines_die_while_others_poll),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
