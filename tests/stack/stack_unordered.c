/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory on a queue whose work may overtake: alloc, kernel, free, alloc, round after round, with checks that no
 * kernel of a former owner writes into a block. Now and then a former owner's kernel is held back by a gate until the
 * next owner's has run, so that the case does not depend on luck.
 *
 *     test_stack_unordered [ROUNDS [--without-rule]]
 *
 * With --without-rule, of a build in which rules can be switched off, memory serves the queue again at once, as it may
 * on a queue in order; then there must be foreign writes, or the test would not notice them either.
 */
#define _GNU_SOURCE /* nanosleep */
#include "api_fixture.h"

enum { MOST = 6000, GATED_EVERY = 50, CHECK_EVERY = 50 };

/* Always as many, of which those beyond the block do nothing: PoCL 3.1 mixes up the code that it compiled for grids of
 * different sizes when kernels end in another order than they came in. */
enum { GROUP = 64, ITEMS = (MOST + GROUP - 1) / GROUP * GROUP };

static long rounds = 2000;
static bool expect_foreign;

#ifdef ONUMA_TEST_RULES
#include "sync/rules.h"
uint32_t onuma__rules_off;
#endif

typedef struct world {
    fixture *f;
    kernel_set kernels; /* on the unordered queue */
    onuma_queue *queue;
} world;

static size_t size_of(long round) {
    return 200 + (size_t)round * 37 % (MOST - 200);
}

static void stamp_after(world *w, char *block, size_t size, cl_uint seed, cl_event gate, cl_event *event) {
    const onuma_view view = view_of(w->f, block);
    const size_t group = GROUP, items = ITEMS;
    stamp_arguments(&w->kernels, w->kernels.stamp, &view, size, 1, seed);
    kernel_ok(clEnqueueNDRangeKernel(w->kernels.queue, w->kernels.stamp, 1, NULL, &items, &group, gate != NULL,
                                     gate ? &gate : NULL, event),
              "clEnqueueNDRangeKernel");
}

static void check_after(world *w, char *block, size_t size, cl_uint seed, cl_event event) {
    const onuma_view view = view_of(w->f, block);
    const size_t group = GROUP, items = ITEMS;
    stamp_arguments(&w->kernels, w->kernels.differ, &view, size, 1, seed);
    kernel_ok(clSetKernelArg(w->kernels.differ, 5, sizeof w->kernels.wrong, &w->kernels.wrong), "clSetKernelArg");
    kernel_ok(clEnqueueNDRangeKernel(w->kernels.queue, w->kernels.differ, 1, NULL, &items, &group, 1, &event, NULL),
              "clEnqueueNDRangeKernel");
}

/* The first owner's kernel is submitted, its block freed; the second owner's runs, and is looked at. */
static void play_round(world *w, long round) {
    const size_t size = size_of(round);
    const cl_uint first = 1 + (cl_uint)round % 120, second = first + 121;
    cl_event gate = NULL, late, written;
    cl_int code;
    if (round % GATED_EVERY == 0) {
        gate = clCreateUserEvent(w->kernels.context, &code);
        kernel_ok(code, "clCreateUserEvent");
    }
    char *block = alloc(w->f->pool, size, w->queue);
    stamp_after(w, block, size, first, gate, &late);
    OK(onuma_free(block, w->queue));
    block = alloc(w->f->pool, size, w->queue);
    stamp_after(w, block, size, second, NULL, &written);
    if (gate) {
        kernel_ok(clWaitForEvents(1, &written), "clWaitForEvents");
        kernel_ok(clSetUserEventStatus(gate, CL_COMPLETE), "clSetUserEventStatus");
        clReleaseEvent(gate);
        clReleaseEvent(written);
        written = late;
        clRetainEvent(written);
    }
    check_after(w, block, size, second, written);
    OK(onuma_free(block, w->queue));
    clReleaseEvent(late);
    clReleaseEvent(written);
}

/* kernel_wrong's transfers have no order on this queue: all else is done before, and each is waited for. */
static cl_int count_wrong(world *w) {
    cl_event all;
    kernel_ok(clEnqueueMarkerWithWaitList(w->kernels.queue, 0, NULL, &all), "clEnqueueMarkerWithWaitList");
    kernel_ok(clWaitForEvents(1, &all), "clWaitForEvents");
    clReleaseEvent(all);
    return kernel_wrong(&w->kernels);
}

static void no_former_owner_writes(void **state) {
    fixture *f = *state;
    world w = {.f = f};
    long wrong = 0;
    kernel_set_open(&w.kernels, f->info.native_context, f->info.native_device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    w.queue = wrap(f, w.kernels.queue);
    for (long round = 0; round < rounds; round++) {
        play_round(&w, round);
        if (round % CHECK_EVERY == CHECK_EVERY - 1) wrong += count_wrong(&w);
    }
    wrong += count_wrong(&w);
    print_message("%ld rounds, %ld bytes of former owners\n", rounds, wrong);
    if (expect_foreign)
        assert_true(wrong > 0);
    else
        assert_int_equal(wrong, 0);
    stamps_forget(&w.kernels);
    OK(onuma_queue_release(w.queue));
    kernel_set_close(&w.kernels);
}

/* Without the rule the pool waits for the queue as for one in order, whose epochs nobody closes. */
static int leave(void **state) {
    fixture *f = *state;
    if (!expect_foreign) return tear_down(state);
    (void)onuma_pool_destroy_forced(f->pool, 0);
    OK(onuma_queue_release(f->queue));
    kernel_set_close(&f->kernels);
    onuma_runtime_destroy(f->rt);
    free(f);
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1) rounds = strtol(argv[1], NULL, 10);
    expect_foreign = argc > 2 && strcmp(argv[2], "--without-rule") == 0;
#ifdef ONUMA_TEST_RULES
    if (expect_foreign) onuma__rules_off = 1u << ONUMA__RULE_UNORDERED;
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_former_owner_writes, set_up, leave),
    };
    return cmocka_run_group_tests_name("stack_unordered", tests, NULL, NULL);
}
