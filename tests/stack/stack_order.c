/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions on a real stack: frees follow their queues, and all comes back, to the system too. */
#define _GNU_SOURCE /* nanosleep, system.h */
#include "api_fixture.h"

#include "system.h"

static bool overlap(const char *a, const char *b, size_t size) {
    return a < b + size && b < a + size;
}

/* ------------------------------------------------------------ one in-order queue */

/*
 * Blocks of a pointer have no side record, so their place serves the queue again at once: one is enough for all
 * rounds. A small block with a handle comes back to its slab on the way of foreign frees, and other slots of the slab
 * serve first; there the memory only needs to stay the same.
 */
static void one_queue_reuses_what_it_freed(void **state) {
    fixture *f = *state;
    const int rounds = slow() ? 100 : on_stack("rusticl") ? 500 : 2000; /* milliseconds for each kernel there */
    const size_t size = 515;
    char *first = NULL;
    uint64_t reserved = 0;
    int moved = 0;
    for (int round = 0; round < rounds; round++) {
        const cl_uint seed = 1 + (cl_uint)round % 255;
        char *block = alloc(f->pool, size, f->queue);
        const onuma_view view = view_of(f, block);
        stamp_submit(&f->kernels, &view, size, 1, seed, NULL);
        differ_submit(&f->kernels, &view, size, 1, seed, NULL);
        OK(onuma_free(block, f->queue));
        if (round == 0) {
            first = block;
            reserved = api_stats(f->pool).reserved_bytes;
        }
        moved += block != first;
        if (round % 50 == 49) assert_int_equal(kernel_wrong(&f->kernels), 0);
    }
    if (by_pointer()) assert_int_equal(moved, 0);
    const onuma_pool_stats stats = api_stats(f->pool);
    assert_int_equal(stats.reserved_bytes, reserved);
    assert_int_equal(stats.alloc_count, rounds);
    assert_int_equal(stats.free_count, rounds);
    assert_int_equal(stats.in_use_bytes, 0);
}

/* Two sizes that share their memory in turns: a kernel that came late would stamp the next owner. */
static void large_and_small_take_turns(void **state) {
    fixture *f = *state;
    const size_t large = 900001, small = 20480;
    for (int round = 0; round < (slow() ? 1 : 60); round++) {
        char *block = alloc(f->pool, large, f->queue);
        device_stamps(f, block, large, 200);
        OK(onuma_free(block, f->queue));
        char *parts[8];
        for (cl_uint i = 0; i < 8; i++) {
            parts[i] = alloc(f->pool, small, f->queue);
            device_stamps(f, parts[i], small, 1 + i);
        }
        for (cl_uint i = 0; i < 8; i++)
            assert_int_equal(cpu_differs(parts[i], small, 1 + i), 0);
        for (cl_uint i = 0; i < 8; i++)
            OK(onuma_free(parts[i], i % 2 == 0 ? f->queue : NULL));
    }
    drain(f);
}

/* Memory that the queue still uses is right for its next kernel, but not yet for the CPU. */
static void the_cpu_waits_for_the_last_owner(void **state) {
    fixture *f = *state;
    const size_t sizes[] = {127, 4097, (1 << 20) + 3};
    for (size_t s = 0; s < 3; s++) {
        cl_event gate = gate_close(f, f->kernels.queue);
        char *last = alloc(f->pool, sizes[s], f->queue);
        const onuma_view view = view_of(f, last);
        stamp_submit(&f->kernels, &view, sizes[s], step_for(sizes[s]), 250, NULL);
        OK(onuma_free(last, f->queue));
        char *block = alloc(f->pool, sizes[s], f->queue);
        if (by_pointer()) assert_ptr_equal(block, last);
        if (by_pointer() && has_gates()) FAILS(TIMEOUT, "", onuma_host_acquire(block, sizes[s], ONUMA_ACCESS_WRITE, 0));
        gate_open(gate);
        cpu_stamps(block, sizes[s], 7);
        drain(f);
        assert_int_equal(cpu_differs(block, sizes[s], 7), 0);
        OK(onuma_free(block, f->queue));
    }
    drain(f);
}

/* ------------------------------------------------------- frees before the work is through */

typedef enum { ANNOUNCED, ALLOCATED_FOR, FREED_ON, HOWS } how;

/* Work that waits at a gate uses a block, which is freed meanwhile. */
static char *free_in_use(fixture *f, how h, size_t size) {
    char *block = alloc(f->pool, size, h == ALLOCATED_FOR ? f->queue : NULL);
    const onuma_view view = view_of(f, block);
    if (h == ANNOUNCED) OK(onuma_use(f->queue, block, ONUMA_ACCESS_WRITE));
    stamp_submit(&f->kernels, &view, size, step_for(size), 250, NULL);
    if (h == ANNOUNCED) OK(onuma_submitted(f->queue, NULL));
    OK(onuma_free(block, h == FREED_ON ? f->queue : NULL));
    return block;
}

static void expect_untouched(fixture *f, char **blocks, size_t count, size_t size) {
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(cpu_differs(blocks[i], size, (cl_uint)(1 + i)), 0);
        OK(onuma_free(blocks[i], NULL));
    }
    drain(f);
}

static void blocks_in_use_are_not_served_again(void **state) {
    fixture *f = *state;
    const size_t sizes[] = {127, 4097, (1 << 20) + 3};
    enum { COUNT = 12 };
    cl_int code;
    cl_command_queue native = clCreateCommandQueue(f->kernels.context, f->kernels.device, 0, &code);
    kernel_ok(code, "clCreateCommandQueue");
    onuma_queue *other = wrap(f, native);
    for (size_t s = 0; s < 3; s++)
        for (how h = 0; h < HOWS; h++) {
            char *blocks[COUNT];
            cl_event gate = gate_close(f, f->kernels.queue);
            const char *used = free_in_use(f, h, sizes[s]);
            if (has_gates() && h != ALLOCATED_FOR) assert_true(api_stats(f->pool).pending_bytes >= sizes[s]);
            for (size_t i = 0; i < COUNT; i++) {
                blocks[i] = alloc(f->pool, sizes[s], i % 3 == 2 ? other : NULL);
                if (has_gates()) assert_false(overlap(blocks[i], used, sizes[s]));
                cpu_stamps(blocks[i], sizes[s], (cl_uint)(1 + i));
            }
            gate_open(gate);
            drain(f); /* the kernel writes what it was bound to, now */
            expect_untouched(f, blocks, COUNT, sizes[s]);
            expect_empty(f->pool);
        }
    OK(onuma_queue_release(other));
    clReleaseCommandQueue(native);
}

/*
 * A pool with room for one block: another queue gets it while the first one's kernel is still held back, and its own
 * kernel, which waits on the device, has the last word. Without that order the first one's would write last.
 */
static void a_queue_goes_behind_another_for_its_memory(void **state) {
    (void)state;
    if (!has_gates() || !by_pointer()) return; /* blocks with a handle are parked: they wait for a marker */
    const size_t size = (size_t)8 << 20;
    api_lines lines;
    onuma_runtime *rt = api_runtime("pool.device_wait:on", &lines);
    fixture g = {.rt = rt, .device = api_device(rt)};
    g.pool = pool_of(&g, ONUMA_KIND_SHARED);
    g.info = (onuma_device_info)ONUMA_DEVICE_INFO_INIT;
    OK(onuma_device_get_info(g.device, &g.info));
    kernel_set first, second;
    kernel_set_open(&first, g.info.native_context, g.info.native_device, 0);
    kernel_set_open(&second, g.info.native_context, g.info.native_device, 0);
    onuma_queue *q = wrap(&g, first.queue), *other = wrap(&g, second.queue);

    char *block = alloc(g.pool, size, q);
    OK(onuma_pool_set_limit(g.pool, api_stats(g.pool).reserved_bytes));
    g.kernels = first;
    cl_event gate = gate_close(&g, first.queue);
    onuma_view view = view_of(&g, block);
    stamp_submit(&first, &view, size, step_for(size), 250, NULL);
    OK(onuma_free(block, q));
    char *next = alloc(g.pool, size, other);
    assert_ptr_equal(next, block);
    view = view_of(&g, next);
    stamp_submit(&second, &view, size, step_for(size), 9, NULL);
    clFlush(second.queue);
    nap(); /* a kernel that does not wait is through */
    gate_open(gate);
    (void)kernel_wrong(&first);
    assert_int_equal(cpu_differs(next, size, 9), 0);
    OK(onuma_free(next, other));
    (void)kernel_wrong(&second);

    expect_empty(g.pool);
    OK(onuma_pool_destroy(g.pool));
    OK(onuma_queue_release(q));
    OK(onuma_queue_release(other));
    kernel_set_close(&first);
    kernel_set_close(&second);
    onuma_runtime_destroy(rt);
    assert_int_equal(lines.count, 0);
}

static void pools_in_use_are_neither_trimmed_nor_destroyed(void **state) {
    fixture *f = *state;
    const size_t sizes[] = {4097, (1 << 20) + 3};
    for (size_t s = 0; s < 2; s++)
        for (how h = 0; h < HOWS; h++) {
            size_t released = 0;
            cl_event gate = gate_close(f, f->kernels.queue);
            free_in_use(f, h, sizes[s]);
            if (has_gates()) {
                const uint64_t reserved = api_stats(f->pool).reserved_bytes;
                OK(onuma_pool_trim(f->pool, 0, &released));
                assert_int_equal(released, 0);
                assert_int_equal(api_stats(f->pool).reserved_bytes, reserved);
                if (s == 0 && h == ANNOUNCED) FAILS(BUSY, "", onuma_pool_destroy(f->pool)); /* takes a second */
            }
            gate_open(gate);
            drain(f);
            expect_empty(f->pool);
        }
}

static void pools_with_blocks_are_not_destroyed(void **state) {
    fixture *f = *state;
    onuma_pool *pool = pool_of(f, ONUMA_KIND_SHARED);
    char *block = alloc(pool, 4097, NULL);
    device_stamps(f, block, 4097, 1);
    FAILS(BUSY, "", onuma_pool_destroy(pool));
    assert_int_equal(cpu_differs(block, 4097, 1), 0);
    OK(onuma_free(block, f->queue));
    drain(f);
    OK(onuma_pool_destroy(pool));
    FAILS(INVALID_ARGUMENT, "not a live pool", onuma_pool_trim(pool, 0, NULL));
}

/* ------------------------------------------------------------------ over and over */

/* What the library asks of the driver in one cycle, without the library. */
static void plain_cycle(cl_device_id device) {
    cl_int code;
    static _Alignas(4096) unsigned char bytes[1 << 21];
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    kernel_ok(code, "clCreateContext");
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &code), maps;
    kernel_ok(code, "clCreateCommandQueue");
    maps = clCreateCommandQueue(context, device, 0, &code);
    kernel_ok(code, "clCreateCommandQueue");
    cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, sizeof bytes, bytes, &code);
    kernel_ok(code, "clCreateBuffer");
    const cl_buffer_region region = {0, 65536};
    cl_mem part = clCreateSubBuffer(memory, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    kernel_ok(code, "clCreateSubBuffer");
    for (int i = 0; i < 2; i++) {
        void *mapped =
            clEnqueueMapBuffer(maps, part, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, 65536, 0, NULL, NULL, &code);
        kernel_ok(code, "clEnqueueMapBuffer");
        cl_event event;
        kernel_ok(clEnqueueUnmapMemObject(maps, part, mapped, 0, NULL, &event), "clEnqueueUnmapMemObject");
        kernel_ok(clWaitForEvents(1, &event), "clWaitForEvents");
        clReleaseEvent(event);
    }
    clReleaseMemObject(part);
    clReleaseMemObject(memory);
    clReleaseCommandQueue(maps);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
}

static void full_cycle(void) {
    api_lines lines;
    onuma_runtime *rt = api_runtime(NULL, &lines);
    onuma_device *device = api_device(rt);
    onuma_pool *pool = api_pool(device, 0);
    onuma_device_info info = ONUMA_DEVICE_INFO_INIT;
    OK(onuma_device_get_info(device, &info));
    cl_int code;
    cl_command_queue native = clCreateCommandQueue((cl_context)(uintptr_t)info.native_context,
                                                   (cl_device_id)(uintptr_t)info.native_device, 0, &code);
    kernel_ok(code, "clCreateCommandQueue");
    onuma_queue *queue;
    onuma_view view = ONUMA_VIEW_INIT;
    OK(onuma_queue_wrap(device, ONUMA_API_OPENCL, (uintptr_t)native, NULL, &queue));
    void *block = alloc(pool, 65536, queue), *other = alloc(pool, 100, NULL);
    OK(onuma_view_get(block, device, ONUMA_API_OPENCL, &view));
    OK(onuma_use(queue, block, ONUMA_ACCESS_READ));
    OK(onuma_submitted(queue, NULL));
    api_fill(block, 65536, 3);
    api_check(block, 65536, 3);
    OK(onuma_free(block, queue));
    OK(onuma_free(other, NULL));
    expect_empty(pool);
    OK(onuma_pool_destroy(pool));
    OK(onuma_queue_release(queue));
    clReleaseCommandQueue(native);
    onuma_runtime_destroy(rt);
    assert_int_equal(lines.count, 0);
}

/* Whether a hundred cycles with the library take no more memory than without, and a little. */
#if defined(__SANITIZE_THREAD__)
enum { ALLOWED = 65536 }; /* in a cycle; the sanitizer's own memory grows by a third of that */
#else
enum { ALLOWED = 8192 };
#endif

static bool grows(cl_device_id device) {
    const int cycles = 100;
    const size_t start = system_resident();
    for (int i = 0; i < cycles; i++)
        plain_cycle(device);
    const size_t between = system_resident();
    for (int i = 0; i < cycles; i++)
        full_cycle();
    const size_t end = system_resident();
    const size_t plain = between > start ? between - start : 0, full = end > between ? end - between : 0;
    print_message("%d cycles: plain OpenCL grew by %zu KiB, with the library by %zu KiB\n", cycles, plain >> 10,
                  full >> 10);
    return full > 2 * plain + (size_t)cycles * ALLOWED;
}

/*
 * Drivers leak with every context, so the library is held to what they leak without it, and a little. What it may
 * lose itself, 8 KiB in a cycle, is far below the smallest thing that could be left behind: a segment. A leak shows
 * in every round; an allocator that has found its size does not.
 */
static void nothing_grows(void **state) {
    fixture *f = *state;
    cl_device_id device = (cl_device_id)(uintptr_t)f->info.native_device;
    for (int i = 0; i < 10; i++) {
        plain_cycle(device);
        full_cycle();
    }
    for (int round = 1; grows(device); round++)
        assert_true(round < 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(one_queue_reuses_what_it_freed),
        TEST(large_and_small_take_turns),
        TEST(the_cpu_waits_for_the_last_owner),
        TEST(blocks_in_use_are_not_served_again),
        TEST(a_queue_goes_behind_another_for_its_memory),
        TEST(pools_in_use_are_neither_trimmed_nor_destroyed),
        TEST(pools_with_blocks_are_not_destroyed),
        TEST(nothing_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
