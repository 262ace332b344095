/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that allocate, share with queues and free, on queues whose workers
 * really read and write the memory. Whatever comes too early is a wrong byte
 * here and a data race under the thread sanitizer.
 *
 * The rules of the program: a thread opens, submits and seals under the queue's
 * turn, since onuma_submitted seals whatever is open on the queue; and the CPU
 * touches blocks only between acquire and release.
 */
#include "sync_support.h"

#include <stdlib.h>
#include <string.h>

#define THREADS 3
#define QUEUES 3
#define ROUNDS 2000
#define JOBS 4096u /* a ring; never full, since each thread has few in flight */
#define MOST_BYTES ((size_t)64 << 20)

typedef struct job {
    unsigned char *p;
    size_t size;
    unsigned char expected, written; /* what it reads, and then writes; equal: it only reads */
} job;

typedef struct device_queue {
    onuma_host_timeline timeline;
    onuma__queue *queue;
    onuma__os_lock turn;
    job jobs[JOBS];
    _Atomic bool stop;
    _Atomic uint32_t wrong;
} device_queue;

typedef struct world {
    fixture *f;
    device_queue queues[QUEUES];
    _Atomic uint32_t failures;
    _Atomic uint64_t reserved;
} world;

typedef struct player {
    world *w;
    uint32_t seed;
} player;

static void check_at(world *w, bool ok, int line) {
    if (ok) return;
    print_error("line %d: %s\n", line, onuma__thread_text());
    atomic_fetch_add(&w->failures, 1);
}
#define CHECK(ok) check_at(w, ok, __LINE__)

static void run_job(device_queue *q, const job *j) {
    for (size_t i = 0; i < j->size; i += 61)
        if (j->p[i] != j->expected) atomic_fetch_add(&q->wrong, 1);
    if (j->written != j->expected) memset(j->p, j->written, j->size);
}

static void serve(void *user) {
    device_queue *q = user;
    for (uint64_t done = 0;; done++) {
        while (atomic_load_explicit(&q->timeline.submitted, memory_order_acquire) == done) {
            if (atomic_load(&q->stop)) return;
            onuma__os_yield();
        }
        run_job(q, &q->jobs[done % JOBS]);
        atomic_store_explicit(&q->timeline.completed, done + 1, memory_order_release);
    }
}

static uint32_t next(player *p) {
    p->seed ^= p->seed << 13;
    p->seed ^= p->seed >> 17;
    return p->seed ^= p->seed << 5;
}

static void *alloc(world *w, size_t size, onuma__queue *queue) {
    onuma__engine *engine = w->f->engine;
    onuma__tag tag = queue ? queue->tag : 0;
    void *out = NULL;
    for (;;) {
        int32_t r = onuma__engine_alloc(engine, size, 0, tag, &out);
        if (r == ONUMA__MISS && !onuma__sync_poll(engine)) {
            onuma_pool_stats stats = ONUMA_POOL_STATS_INIT;
            onuma__engine_get_stats(engine, &stats);
            if (stats.reserved_bytes < MOST_BYTES)
                r = onuma__engine_grow(engine, size, 0, tag, &out);
            else
                (void)onuma__sync_wait(engine, 1000000);
        }
        if (out) break;
        if (r != ONUMA_OK && r != ONUMA__MISS) return NULL;
    }
    if (queue) onuma__sync_note(engine, queue);
    return out;
}

static void submit_job(world *w, device_queue *q, job j, player *p) {
    onuma_access mode = j.written == j.expected ? ONUMA_ACCESS_READ : ONUMA_ACCESS_READ_WRITE;
    onuma__os_lock_acquire(&q->turn);
    CHECK(use(q->queue, j.p, mode) == ONUMA_OK);
    uint64_t number = atomic_load(&q->timeline.submitted);
    q->jobs[number % JOBS] = j;
    atomic_store_explicit(&q->timeline.submitted, number + 1, memory_order_release);
    onuma_native_event event = event_at(number + 1);
    /* Now and then left open: the acquire or free of this thread seals it, or another thread's submitted does. */
    if (next(p) % 8) CHECK(onuma__sync_submitted(q->queue, next(p) % 2 ? &event : NULL) == ONUMA_OK);
    onuma__os_lock_release(&q->turn);
}

static void touch(world *w, unsigned char *p, size_t size, unsigned char expected, onuma_access mode,
                  unsigned char written) {
    onuma_result r;
    while ((r = onuma__sync_host_acquire(p, size, mode, 50000000)) == ONUMA_ERROR_TIMEOUT)
        continue;
    CHECK(r == ONUMA_OK);
    for (size_t i = 0; i < size; i += 61)
        CHECK(p[i] == expected);
    if (mode & ONUMA_ACCESS_WRITE) memset(p, written, size);
    CHECK(onuma__sync_host_release(p, size, mode) == ONUMA_OK);
}

static void play_round(world *w, player *p) {
    size_t size = next(p) % 4 ? 64 + next(p) % 2000 : 64 + next(p) % 200000;
    device_queue *q = &w->queues[next(p) % QUEUES], *other = &w->queues[next(p) % QUEUES];
    unsigned char value = (unsigned char)(1 + next(p) % 250), changed = (unsigned char)(value ^ 1);
    unsigned char *block = alloc(w, size, NULL);
    CHECK(block != NULL);
    if (!block) return;
    CHECK(onuma__sync_host_acquire(block, size, ONUMA_ACCESS_WRITE, 0) == ONUMA_OK);
    memset(block, value, size);
    CHECK(onuma__sync_host_release(block, size, ONUMA_ACCESS_WRITE) == ONUMA_OK);

    submit_job(w, q, (job){block, size, value, changed}, p);
    for (uint32_t again = next(p) % 3; again > 0;
         again--) /* in order only: the next may overtake the first elsewhere */
        if (q != &w->queues[2]) submit_job(w, q, (job){block, size, changed, changed}, p);
    if (next(p) % 2) touch(w, block, size, changed, ONUMA_ACCESS_READ, 0);
    if (next(p) % 2) {
        touch(w, block, size, changed, ONUMA_ACCESS_READ_WRITE, value);
        submit_job(w, other, (job){block, size, value, value}, p);
        submit_job(w, q, (job){block, size, value, value}, p);
    }
    onuma__queue *freed_on[] = {NULL, q->queue, other->queue};
    CHECK(onuma__sync_free(block, freed_on[next(p) % 3]) == ONUMA_OK);
}

static void play(void *user) {
    player *p = user;
    for (int i = 0; i < ROUNDS; i++)
        play_round(p->w, p);
    /* What is left open by this thread is sealed by the queues' release. */
}

static void nothing_comes_too_early(void **state) {
    fixture *f = *state;
    world *w = calloc(1, sizeof *w);
    player players[THREADS];
    helper *threads[THREADS], *workers[QUEUES];
    assert_non_null(w);
    w->f = f;
    for (size_t i = 0; i < QUEUES; i++) {
        w->queues[i].queue = wrap(f, &w->queues[i].timeline, i == 2 ? ONUMA_QUEUE_UNORDERED : ONUMA_QUEUE_IN_ORDER);
        workers[i] = start(serve, &w->queues[i]);
    }
    for (size_t i = 0; i < THREADS; i++) {
        players[i] = (player){w, (uint32_t)(i + 1) * 2654435761u};
        threads[i] = start(play, &players[i]);
    }
    for (size_t i = 0; i < THREADS; i++)
        join(threads[i]);
    for (size_t i = 0; i < QUEUES; i++) {
        drop(w->queues[i].queue);
        atomic_store(&w->queues[i].stop, true);
        join(workers[i]);
        assert_int_equal(atomic_load(&w->queues[i].wrong), 0);
    }
    assert_int_equal(atomic_load(&w->failures), 0);
    (void)onuma__sync_poll(f->engine);
    assert_int_equal(onuma__sync_pending(f->engine), 0);
    (void)onuma__engine_take_caches(f->engine);
    assert_int_equal(onuma__engine_check(f->engine), ONUMA_OK);
    onuma_pool_stats stats = ONUMA_POOL_STATS_INIT;
    onuma__engine_get_stats(f->engine, &stats);
    assert_int_equal(stats.in_use_blocks, 0);
    assert_int_equal(stats.pending_bytes, 0);
    assert_true(onuma__sync_drop_engine(f->engine, 0));
    onuma__queues_tidy();
    assert_int_equal(atomic_load(&fake.live_markers), 0);
    assert_int_equal(atomic_load(&fake.closes), QUEUES);
    assert_int_equal(atomic_load(&f->device->users), 0);
    free(w);
}

/* Where nobody asked for reports, accesses are announced on a shorter way. */
static void nor_without_checks(void **state) {
    fixture *f = *state;
    f->config.check = ONUMA__CHECK_NONE;
    nothing_comes_too_early(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_comes_too_early, sync_set_up, sync_tear_down),
        cmocka_unit_test_setup_teardown(nor_without_checks, sync_set_up, sync_tear_down),
    };
    return cmocka_run_group_tests_name("sync_stress", tests, NULL, NULL);
}
