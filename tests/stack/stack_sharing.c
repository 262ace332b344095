/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An inference loop on a real stack: the CPU fills an input, a kernel reads it, and the CPU goes on to the next input in
 * the same block while that kernel may still be at it. Without the rules the kernel reads what was meant for the step
 * after it: that is asserted, too, or the rest would prove nothing. With them it never does.
 *
 *     test_stack_sharing [STEPS]
 *
 * Each step has a pattern of its own, and its kernel counts the bytes that are not of it. Before it looks, the kernel
 * takes some time, of which the compiler cannot know that nothing comes of it.
 */
#define _GNU_SOURCE /* nanosleep, clock_gettime */
#include "api_fixture.h"

enum { INPUT = 8192, GROUP = 64 };

static long steps = 300;

static const char late_source[] =
    "kernel void late(global const uchar *from, ulong first, uint seed, uint spins, global int *wrong) {\n"
    "    uint x = seed | 1;\n"
    "    for (uint i = 0; i < spins; i++) { x ^= x << 13; x ^= x >> 17; x ^= x << 5; }\n"
    "    uint i = get_global_id(0) + (x == 0);\n" /* never, for that x is none that these steps lead to */
    "    if (from[first + i] != (uchar)(seed ^ (i * 2654435761u >> 24))) atomic_inc(wrong);\n"
    "}\n";

typedef struct loop {
    fixture *f;
    kernel_set kernels; /* the queue that the steps run on, and the counter */
    onuma_queue *queue;
    cl_program program;
    cl_kernel late;
    cl_uint spins;
    char *input;
    onuma_view view;
    cl_event previous; /* NULL: none */
} loop;

static void open_loop(fixture *f, loop *l, cl_command_queue_properties properties) {
    const char *source = late_source;
    cl_int code;
    *l = (loop){.f = f};
    kernel_set_open(&l->kernels, f->info.native_context, f->info.native_device, properties);
    l->queue = wrap(f, l->kernels.queue);
    l->program = clCreateProgramWithSource(l->kernels.context, 1, &source, NULL, &code);
    kernel_ok(code, "clCreateProgramWithSource");
    kernel_ok(clBuildProgram(l->program, 1, &l->kernels.device, "", NULL, NULL), "clBuildProgram");
    l->late = clCreateKernel(l->program, "late", &code);
    kernel_ok(code, "clCreateKernel");
    l->input = alloc(f->pool, INPUT, NULL);
    l->view = view_of(f, l->input);
}

static void close_loop(loop *l) {
    kernel_ok(clSetKernelArg(l->late, 0, sizeof l->kernels.wrong, &l->kernels.wrong), "clSetKernelArg");
    OK(onuma_free(l->input, NULL));
    OK(onuma_queue_release(l->queue));
    clReleaseKernel(l->late);
    clReleaseProgram(l->program);
    kernel_set_close(&l->kernels);
}

static void launch(loop *l, cl_uint seed, cl_event *event) {
    const size_t items = INPUT, group = GROUP;
    size_t offset;
    kernel_bind_bytes(&l->kernels, l->late, 0, &l->view, &offset);
    const cl_ulong first = offset;
    kernel_ok(clSetKernelArg(l->late, 1, sizeof first, &first), "clSetKernelArg");
    kernel_ok(clSetKernelArg(l->late, 2, sizeof seed, &seed), "clSetKernelArg");
    kernel_ok(clSetKernelArg(l->late, 3, sizeof l->spins, &l->spins), "clSetKernelArg");
    kernel_ok(clSetKernelArg(l->late, 4, sizeof l->kernels.wrong, &l->kernels.wrong), "clSetKernelArg");
    kernel_ok(clEnqueueNDRangeKernel(l->kernels.queue, l->late, 1, NULL, &items, &group, 0, NULL, event),
              "clEnqueueNDRangeKernel");
    kernel_ok(clFlush(l->kernels.queue), "clFlush");
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double time_launch(loop *l) {
    cl_event event;
    const double begin = seconds();
    launch(l, 1, &event);
    kernel_ok(clWaitForEvents(1, &event), "clWaitForEvents");
    clReleaseEvent(event);
    return seconds() - begin;
}

/* As many spins as make a kernel take about so long, also the fastest of a few. */
static void calibrate(loop *l, double wanted) {
    double fastest = 0;
    for (l->spins = 16; fastest < wanted && l->spins < 1u << 20; l->spins *= 2) {
        fastest = time_launch(l);
        for (int i = 0; i < 4 && fastest >= wanted; i++) {
            const double time = time_launch(l);
            if (time < fastest) fastest = time;
        }
    }
    (void)kernel_wrong(&l->kernels);
}

/* ------------------------------------------------------------- without the rules */

/* The CPU goes on as soon as the kernel is handed over, as a program does that knows of no rules. */
static void without_the_rules_the_output_is_wrong(void **state) {
    loop l;
    open_loop(*state, &l, 0);
    cpu_stamps(l.input, INPUT, 1);
    calibrate(&l, 0.02);
    cl_int wrong = 0;
    for (cl_uint step = 0; step < 10; step++) {
        cl_event event;
        cpu_stamps(l.input, INPUT, 1 + step);
        assert_int_equal(kernel_wrong(&l.kernels), 0);
        launch(&l, 1 + step, &event);
        stamp_bytes(l.input, INPUT, 1, 100 + step); /* the next input, too early */
        kernel_ok(clWaitForEvents(1, &event), "clWaitForEvents");
        clReleaseEvent(event);
        wrong += kernel_wrong(&l.kernels) != 0;
    }
    print_message("%d of 10 steps wrong\n", (int)wrong);
    assert_true(wrong >= 5);
    close_loop(&l);
}

/* ---------------------------------------------------------------- with the rules */

/* One in three steps tells the library its event, which it then waits for alone. Returns whether the CPU had to wait. */
static bool play_step(loop *l, cl_uint step) {
    const cl_uint seed = 1 + step % 255;
    onuma_native_event done = ONUMA_NATIVE_EVENT_INIT;
    cl_event event;
    onuma_result r = onuma_host_acquire(l->input, INPUT, ONUMA_ACCESS_WRITE, 0);
    const bool waited = r == ONUMA_ERROR_TIMEOUT;
    if (waited) r = onuma_host_acquire(l->input, INPUT, ONUMA_ACCESS_WRITE, FOREVER);
    OK(r);
    stamp_bytes(l->input, INPUT, 1, seed);
    OK(onuma_host_release(l->input, INPUT, ONUMA_ACCESS_WRITE));
    OK(onuma_use(l->queue, l->input, ONUMA_ACCESS_READ));
    launch(l, seed, &event);
    done.api = ONUMA_API_OPENCL;
    done.handle = (uintptr_t)event;
    OK(onuma_submitted(l->queue, step % 3 == 0 ? &done : NULL));
    clReleaseEvent(event);
    return waited;
}

static void play(fixture *f, cl_command_queue_properties properties) {
    loop l;
    long waits = 0;
    open_loop(f, &l, properties);
    cpu_stamps(l.input, INPUT, 1);
    calibrate(&l, 0.0002);
    for (long step = 0; step < steps; step++) {
        waits += play_step(&l, (cl_uint)step);
        if (step % 100 != 99) continue;
        OK(onuma_host_acquire(l.input, INPUT, ONUMA_ACCESS_WRITE, FOREVER));
        OK(onuma_host_release(l.input, INPUT, ONUMA_ACCESS_WRITE));
        assert_int_equal(kernel_wrong(&l.kernels), 0);
    }
    OK(onuma_host_acquire(l.input, INPUT, ONUMA_ACCESS_WRITE, FOREVER));
    OK(onuma_host_release(l.input, INPUT, ONUMA_ACCESS_WRITE));
    assert_int_equal(kernel_wrong(&l.kernels), 0);
    print_message("%ld steps, no wrong byte; the CPU came early and waited in %ld\n", steps, waits);
    assert_true(waits > 0); /* else nothing was tried */
    close_loop(&l);
}

static void with_the_rules_it_never_is(void **state) {
    play(*state, 0);
}

/* Rusticl and Oclgrind have no such queues. */
static void nor_on_an_unordered_queue(void **state) {
    if (on_stack("rusticl")) return;
    play(*state, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
}

int main(int argc, char **argv) {
    if (argc > 1) steps = strtol(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = {
        TEST(without_the_rules_the_output_is_wrong),
        TEST(with_the_rules_it_never_is),
        TEST(nor_on_an_unordered_queue),
    };
    return cmocka_run_group_tests_name("stack_sharing", tests, NULL, NULL);
}
