/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared_access: CPU and device take turns on one tensor, each adding 1 to a
 * part of it, for many rounds; in each the CPU compares every number with what
 * it must be. The device's work is on three queues in turn, of which one may
 * overtake; in every fourth round all three are at the tensor, one after the
 * other, and only the last is waited for.
 *
 * Before that, the CPU must not be let in while the device's work is held back,
 * on any of the queues, nor may a queue begin that waits for another: that proves
 * the waiting also where memory is coherent and kernels are too quick to be
 * caught. (A simulator has one queue and none of this: Oclgrind runs work when it
 * is flushed, on the caller's thread, and would wait there for ever.)
 */
#include "demo/demo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUEUES = 3 };
#define MOMENT_NS UINT64_C(20000000) /* in which a queue that does not wait has long begun */

typedef struct shared {
    demo *d;
    runner *queues[QUEUES];
    runner others[QUEUES - 1];
    size_t count; /* of queues */
    uint32_t *tensor, *copy, *expected;
    size_t numbers;
} shared;

/* What went wrong on another queue is told by the demo's own. */
static bool fail_of(shared *s, const runner *r) {
    if (r != &s->d->run) memcpy(s->d->run.error, r->error, sizeof r->error);
    return false;
}

static size_t bytes_of(const shared *s) {
    return s->numbers * sizeof(uint32_t);
}

static bool clear(shared *s, uint32_t *tensor) {
    runner *r = &s->d->run;
    if (!runner_acquire(r, tensor, bytes_of(s), ONUMA_ACCESS_WRITE)) return false;
    memset(tensor, 0, bytes_of(s));
    return runner_release(r, tensor, bytes_of(s), ONUMA_ACCESS_WRITE);
}

/* The last number of the tensor, as the CPU sees it once the device has ended; it must be 1. */
static bool expect_one(shared *s, uint32_t *tensor, const char *who) {
    runner *r = &s->d->run;
    if (!runner_acquire(r, tensor, bytes_of(s), ONUMA_ACCESS_READ)) return false;
    const uint32_t seen = tensor[s->numbers - 1];
    if (!runner_release(r, tensor, bytes_of(s), ONUMA_ACCESS_READ)) return false;
    return seen == 1 ? true : runner_fail(r, "%s waited for the device and still read %u, not 1", who, (unsigned)seen);
}

static bool queue_is_waited_for(shared *s, runner *r) {
    if (!clear(s, s->tensor)) return false;
    if (!runner_finish(r) || !r->ops->gate_close(r)) return fail_of(s, r);
    const bool good = runner_launch(r, KERNEL_increment, s->numbers, ARGUMENTS(BLOCK(s->tensor)));
    const onuma_result early =
        good ? runner_try_acquire(r, s->tensor, sizeof *s->tensor, ONUMA_ACCESS_READ, 0) : ONUMA_OK;
    const uint32_t seen = early == ONUMA_OK ? s->tensor[0] : 1;
    r->ops->gate_open(r);
    if (!good) return fail_of(s, r);
    if (early != ONUMA_ERROR_TIMEOUT) {
        runner_finish(r);
        return runner_fail(&s->d->run, "the CPU was let in (%s) while the device had still to write, and read %u",
                           onuma_result_name(early), (unsigned)seen);
    }
    return expect_one(s, s->tensor, "the CPU");
}

/* A queue copies what another, which is held back, has yet to write. */
static bool queues_wait_for_each_other(shared *s, runner *first, runner *second) {
    if (!clear(s, s->tensor) || !clear(s, s->copy)) return false;
    if (!runner_finish(first) || !first->ops->gate_close(first)) return fail_of(s, first);
    const bool begun = runner_launch(first, KERNEL_increment, s->numbers, ARGUMENTS(BLOCK(s->tensor)));
    const bool good = begun && runner_wait_for(second, first) &&
                      runner_launch(second, KERNEL_copy, s->numbers, ARGUMENTS(BLOCK(s->tensor), BLOCK(s->copy)));
    const onuma_result early =
        good ? runner_try_acquire(second, s->copy, sizeof *s->copy, ONUMA_ACCESS_READ, MOMENT_NS) : ONUMA_OK;
    first->ops->gate_open(first);
    if (!good) return fail_of(s, begun ? second : first);
    if (early != ONUMA_ERROR_TIMEOUT) {
        runner_finish(first);
        runner_finish(second);
        return runner_fail(&s->d->run, "a queue that waits for another went on (%s) while that was held back",
                           onuma_result_name(early));
    }
    return expect_one(s, s->copy, "a queue");
}

static bool waits_are_right(shared *s) {
    for (size_t i = 0; i < s->count; i++)
        if (!queue_is_waited_for(s, s->queues[i])) return false;
    for (size_t i = 1; i < s->count; i++)
        if (!queues_wait_for_each_other(s, s->queues[i - 1], s->queues[i])) return false;
    return true;
}

/* Half of the tensor, from `from` on. */
static bool device_adds(shared *s, runner *r, size_t from) {
    for (size_t i = 0; i < s->numbers / 2; i++)
        s->expected[from + i]++;
    return runner_launch(r, KERNEL_increment, s->numbers / 2, ARGUMENTS(BLOCK(s->tensor + from))) || fail_of(s, r);
}

static bool play_round(shared *s, size_t round) {
    runner *r = &s->d->run;
    const size_t half = s->numbers / 2, cpu_from = round * 7 % half, device_from = round * 13 % half;
    if (!runner_acquire(r, s->tensor, bytes_of(s), ONUMA_ACCESS_READ_WRITE)) return false;
    size_t wrong = 0;
    while (wrong < s->numbers && s->tensor[wrong] == s->expected[wrong])
        wrong++;
    const uint32_t seen = wrong < s->numbers ? s->tensor[wrong] : 0;
    for (size_t i = 0; i < half; i++)
        s->tensor[cpu_from + i]++, s->expected[cpu_from + i]++;
    if (!runner_release(r, s->tensor, bytes_of(s), ONUMA_ACCESS_READ_WRITE)) return false;
    if (wrong < s->numbers)
        return runner_fail(r, "round %zu: number %zu is %u, not %u", round, wrong, (unsigned)seen,
                           (unsigned)s->expected[wrong]);
    if (round % 4 != 3) return device_adds(s, s->queues[round % s->count], device_from);
    for (size_t i = 0; i < s->count; i++) {
        if (i != 0 && !runner_wait_for(s->queues[i], s->queues[i - 1])) return fail_of(s, s->queues[i]);
        if (!device_adds(s, s->queues[i], (device_from + i * 11) % half)) return false;
    }
    return true;
}

static bool play(shared *s) {
    const size_t rounds = s->d->load->rounds;
    if (!s->d->info.simulator && !waits_are_right(s)) return false;
    if (!clear(s, s->tensor)) return false;
    /* The last round is there for its comparison. */
    for (size_t round = 0; round <= rounds; round++)
        if (!play_round(s, round)) return false;
    for (size_t i = 0; i < s->count; i++)
        if (!runner_finish(s->queues[i])) return fail_of(s, s->queues[i]);
    return true;
}

static bool open_queues(shared *s) {
    s->queues[s->count++] = &s->d->run;
    for (size_t i = 1; i < QUEUES && !s->d->info.simulator; i++) {
        runner *r = &s->others[i - 1];
        if (!runner_open_beside(r, &s->d->run, i == QUEUES - 1)) return fail_of(s, r);
        s->queues[s->count++] = r;
    }
    return true;
}

bool demo_check_shared_access(demo *d, char *detail, size_t detail_size) {
    shared s = {.d = d, .numbers = d->load->numbers};
    void *tensor = NULL, *copy = NULL;
    bool good = demo_alloc(d, bytes_of(&s), &tensor) && demo_alloc(d, bytes_of(&s), &copy);
    s.tensor = tensor;
    s.copy = copy;
    s.expected = cli_allocate(bytes_of(&s));
    memset(s.expected, 0, bytes_of(&s));
    good = good && open_queues(&s) && play(&s);
    free(s.expected);
    onuma_free(copy, d->run.queue);
    onuma_free(tensor, d->run.queue);
    const bool unordered = s.others[QUEUES - 2].unordered;
    for (size_t i = 0; i < QUEUES - 1; i++)
        runner_close(&s.others[i]);
    if (s.count == 1)
        snprintf(detail, detail_size,
                 "%zu rounds of CPU and device in turn on %zu numbers, each number right in every round",
                 d->load->rounds, s.numbers);
    else
        snprintf(detail, detail_size,
                 "%zu rounds of CPU and %zu queues in turn on %zu numbers, %s, each number right in every round; the "
                 "CPU and other queues waited for a queue that was held back",
                 d->load->rounds, s.count, s.numbers, unordered ? "one of them out of order" : "all in order");
    return good;
}
