/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions on a real stack: blocks of every kind and size, their views and contents, and imports. */
#define _GNU_SOURCE /* system.h */
#include "api_fixture.h"

#include "system.h"

static const size_t sizes[] = {0, 1, 127, 4097, (1 << 20) + 3, 64 << 20};
static const size_t alignments[] = {0, 256, 4096, 2 << 20};
enum { SIZES = sizeof sizes / sizeof *sizes, ALIGNMENTS = sizeof alignments / sizeof *alignments };

static size_t size_at(size_t i) {
    return slow() && sizes[i] > 16 << 20 ? 16 << 20 : sizes[i];
}

/* ------------------------------------------------------------------- blocks */

static void expect_block(const fixture *f, onuma_pool *pool, onuma_kind kind, char *block, size_t size) {
    onuma_block_info info = ONUMA_BLOCK_INFO_INIT;
    OK(onuma_block_get_info(size > 1 ? block + size - 1 : block, &info));
    assert_ptr_equal(info.base, block);
    assert_true(info.size >= size);
    assert_int_equal(info.requested, size);
    assert_ptr_equal(info.pool, pool);
    assert_int_equal(info.kind, kind);
    assert_int_equal((uintptr_t)block % f->info.alignment, 0);
}

static void seen_by_both(fixture *f, char **blocks, cl_uint seed) {
    for (size_t i = 0; i < SIZES; i++)
        if (size_at(i) != 0) cpu_stamps(blocks[i], size_at(i), seed + (cl_uint)i);
    for (size_t i = 0; i < SIZES; i++) {
        assert_int_equal(device_differs(f, blocks[i], size_at(i), seed + (cl_uint)i), 0);
        device_stamps(f, blocks[i], size_at(i), seed + 10 + (cl_uint)i);
    }
    for (size_t i = 0; i < SIZES; i++)
        assert_int_equal(cpu_differs(blocks[i], size_at(i), seed + 10 + (cl_uint)i), 0);
}

static void seen_by_device(fixture *f, char **blocks, cl_uint seed) {
    for (size_t i = 0; i < SIZES; i++)
        device_stamps(f, blocks[i], size_at(i), seed + (cl_uint)i);
    for (size_t i = 0; i < SIZES; i++) {
        assert_int_equal(device_differs(f, blocks[i], size_at(i), seed + (cl_uint)i), 0);
        if (size_at(i) != 0) assert_int_not_equal(device_differs(f, blocks[i], size_at(i), seed + 100), 0);
    }
}

/* All sizes live at once, so that blocks that overlap would show in each other's bytes. */
static void of_every_size_and_alignment(void **state) {
    fixture *f = *state;
    for (onuma_kind kind = ONUMA_KIND_HOST; kind <= ONUMA_KIND_DEVICE; kind++) {
        onuma_pool *pool = pool_of(f, kind);
        uint64_t requested = 0;
        for (size_t a = 0; a < ALIGNMENTS; a++) {
            char *blocks[SIZES];
            for (size_t i = 0; i < SIZES; i++) {
                OK(onuma_alloc(pool, size_at(i), alignments[a], NULL, (void **)&blocks[i]));
                expect_block(f, pool, kind, blocks[i], size_at(i));
                if (alignments[a] != 0) assert_int_equal((uintptr_t)blocks[i] % alignments[a], 0);
                requested += size_at(i);
            }
            if (kind == ONUMA_KIND_DEVICE)
                seen_by_device(f, blocks, (cl_uint)(1 + 20 * a));
            else
                seen_by_both(f, blocks, (cl_uint)(1 + 20 * a));
            const onuma_pool_stats stats = api_stats(pool);
            assert_int_equal(stats.in_use_blocks, SIZES);
            assert_int_equal(stats.requested_bytes, requested);
            assert_true(stats.in_use_bytes >= requested && stats.reserved_bytes >= stats.in_use_bytes);
            for (size_t i = 0; i < SIZES; i++)
                OK(onuma_free(blocks[i], NULL));
            requested = 0;
        }
        drain(f);
        assert_int_equal(api_stats(pool).alloc_count, SIZES * ALIGNMENTS);
        size_t released = 0;
        const uint64_t reserved = api_stats(pool).reserved_bytes;
        assert_true(reserved > 0);
        OK(onuma_pool_trim(pool, 0, &released));
        assert_int_equal(released, reserved);
        expect_empty(pool);
        OK(onuma_pool_destroy(pool));
    }
}

/* ------------------------------------------------------------------- views */

static void expect_handle(const fixture *f, const onuma_view *view, char *block, size_t at) {
    onuma_block_info info = ONUMA_BLOCK_INFO_INIT;
    cl_mem memory = (cl_mem)(uintptr_t)view->handle, parent = NULL;
    size_t size = 0;
    OK(onuma_block_get_info(block, &info));
    assert_int_equal(view->via, ONUMA_VIA_HANDLE);
    assert_int_equal(view->pointer, 0);
    assert_int_equal(view->offset, at);
    kernel_ok(clGetMemObjectInfo(memory, CL_MEM_SIZE, sizeof size, &size, NULL), "clGetMemObjectInfo");
    kernel_ok(clGetMemObjectInfo(memory, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof parent, &parent, NULL),
              "clGetMemObjectInfo");
    assert_int_equal(size, info.size); /* this block and no more */
    assert_non_null(parent);           /* never the segment itself */
    assert_int_equal(view_of(f, block).handle, view->handle);
}

static void name_their_byte(void **state) {
    fixture *f = *state;
    for (onuma_kind kind = ONUMA_KIND_HOST; kind <= ONUMA_KIND_DEVICE; kind++) {
        onuma_pool *pool = pool_of(f, kind);
        char *other = alloc(pool, 4097, NULL), *block = alloc(pool, 4097, NULL);
        const size_t at[] = {0, 1, 127, 4096};
        for (size_t i = 0; i < 4; i++) {
            const onuma_view view = view_of(f, block + at[i]);
            onuma_block_info info = ONUMA_BLOCK_INFO_INIT;
            OK(onuma_block_get_info(block, &info));
            assert_int_equal(view.size, info.size - at[i]);
            if (kind == ONUMA_KIND_DEVICE || !by_pointer()) {
                expect_handle(f, &view, block, at[i]);
                assert_int_not_equal(view.handle, view_of(f, other).handle);
            } else {
                assert_int_equal(view.via, way_via());
                assert_int_equal(view.pointer, (uintptr_t)block + at[i]);
                assert_int_equal(view.handle, 0);
                assert_int_equal(view.offset, 0);
            }
        }
        /* Through a view of an inner byte a kernel reaches just what it names. */
        device_stamps(f, block, 4097, 1);
        device_stamps(f, block + 127, 1001, 2);
        assert_int_equal(device_differs(f, block, 127, 1), 0);
        assert_int_equal(device_differs(f, block + 127, 1001, 2), 0);
        device_stamps(f, block, 4097, 3);
        assert_int_equal(device_differs(f, block, 4097, 3), 0);
        OK(onuma_free(block, f->queue));
        OK(onuma_free(other, NULL));
        drain(f);
        expect_empty(pool);
        OK(onuma_pool_destroy(pool));
    }
}

static void are_refused(void **state) {
    fixture *f = *state;
    onuma_view view = ONUMA_VIEW_INIT;
    char *block = alloc(f->pool, 4097, NULL);
    int mine = 0;
    FAILS(NOT_SUPPORTED, "api", onuma_view_get(block, f->device, ONUMA_API_HOST, &view));
    FAILS(NOT_SUPPORTED, "api", onuma_view_get(block, f->device, ONUMA_API_CUDA, &view));
    FAILS(NOT_SUPPORTED, "opencl:0", onuma_view_get(block, api_host(f->rt), ONUMA_API_HOST, &view));
    FAILS(INVALID_POINTER, "", onuma_view_get(&mine, f->device, ONUMA_API_OPENCL, &view));
    view.flags = 6;
    FAILS(INVALID_ARGUMENT, "flags", onuma_view_get(block, f->device, ONUMA_API_OPENCL, &view));
    view = view_of(f, block);
    FAILS(INVALID_ARGUMENT, "RETAIN", onuma_view_release(&view));
    OK(onuma_free(block, NULL));
    FAILS(INVALID_POINTER, "", onuma_view_get(block, f->device, ONUMA_API_OPENCL, &view));
}

/* A kernel may go on through a view that it retained, whatever becomes of block and pool. */
static void outlive_their_block_if_retained(void **state) {
    fixture *f = *state;
    for (onuma_kind kind = ONUMA_KIND_HOST; kind <= ONUMA_KIND_DEVICE; kind++) {
        onuma_pool *pool = pool_of(f, kind);
        const bool handles = kind == ONUMA_KIND_DEVICE || !by_pointer();
        onuma_view first = ONUMA_VIEW_INIT, second = ONUMA_VIEW_INIT;
        char *block = alloc(pool, 3001, NULL);
        device_stamps(f, block, 3001, 7);
        first.flags = second.flags = ONUMA_VIEW_RETAIN;
        OK(onuma_view_get(block, f->device, ONUMA_API_OPENCL, &first));
        OK(onuma_view_get(block, f->device, ONUMA_API_OPENCL, &second));
        assert_int_equal(first.handle, second.handle);
        OK(onuma_free(block, NULL));
        OK(onuma_view_release(&second));
        FAILS(INVALID_ARGUMENT, "once", onuma_view_release(&second));
        drain(f);
        expect_empty(pool);
        OK(onuma_pool_destroy(pool));
        if (handles) {
            unsigned char bytes[3001];
            kernel_ok(clEnqueueReadBuffer(f->kernels.queue, (cl_mem)(uintptr_t)first.handle, CL_TRUE, 0, sizeof bytes,
                                          bytes, 0, NULL, NULL),
                      "clEnqueueReadBuffer");
            assert_int_equal(stamp_differs(bytes, sizeof bytes, 1, 7), 0);
            differ_submit(&f->kernels, &first, 3001, 1, 7, NULL);
            assert_int_equal(kernel_wrong(&f->kernels), 0);
            stamps_forget(&f->kernels);
        }
        OK(onuma_view_release(&first));
    }
}

/* ---------------------------------------------------------------- contents */

/* Parts of odd size at odd places go back and forth, and what lies around them stays. */
static void go_back_and_forth(void **state) {
    fixture *f = *state;
    const size_t size = (1 << 20) + 3;
    const struct { size_t at, size; } parts[] = {{0, 1}, {1, 126}, {127, 4097}, {4224, 65539}, {69763, size - 69763}};
    enum { PARTS = sizeof parts / sizeof *parts };
    char *block = alloc(f->pool, size, NULL);
    for (cl_uint round = 0; round < 4; round++) {
        const cl_uint seed = 1 + 20 * round;
        for (cl_uint i = 0; i < PARTS; i++)
            cpu_stamps(block + parts[i].at, parts[i].size, seed + i);
        for (cl_uint i = 0; i < PARTS; i++)
            assert_int_equal(device_differs(f, block + parts[i].at, parts[i].size, seed + i), 0);
        for (cl_uint i = round % 2; i < PARTS; i += 2)
            device_stamps(f, block + parts[i].at, parts[i].size, seed + 10 + i);
        for (cl_uint i = 0; i < PARTS; i++)
            assert_int_equal(cpu_differs(block + parts[i].at, parts[i].size, seed + i + (i % 2 == round % 2 ? 10 : 0)),
                             0);
    }
    FAILS(INVALID_ARGUMENT, "beyond", onuma_host_acquire(block + 1, SIZE_MAX, ONUMA_ACCESS_READ, 0));
    FAILS(INVALID_ARGUMENT, "hold", onuma_host_release(block, 1, ONUMA_ACCESS_WRITE));
    OK(onuma_free(block, f->queue));
    drain(f);
}

static void take_turns_by_rule(void **state) {
    fixture *f = *state;
    char *block = alloc(f->pool, 4097, NULL);
    cpu_stamps(block, 4097, 1);
    OK(onuma_host_acquire(block, 4097, ONUMA_ACCESS_WRITE, 0));
    FAILS(CONFLICT, "onuma_host_release", onuma_use(f->queue, block, ONUMA_ACCESS_READ));
    OK(onuma_host_release(block, 4097, ONUMA_ACCESS_WRITE));

    /* Readers on both sides are not in each other's way. */
    OK(onuma_host_acquire(block, 4097, ONUMA_ACCESS_READ, 0));
    FAILS(CONFLICT, "onuma_host_release", onuma_use(f->queue, block, ONUMA_ACCESS_WRITE));
    assert_int_equal(device_differs(f, block, 4097, 1), 0);
    OK(onuma_host_release(block, 4097, ONUMA_ACCESS_READ));

    /* The CPU waits for work that is not through, and for no other. */
    const onuma_view view = view_of(f, block);
    for (int with_event = 0; with_event < 2; with_event++) {
        const cl_uint seed = (cl_uint)(2 + with_event);
        cl_event gate = gate_close(f, f->kernels.queue), work;
        onuma_native_event event = ONUMA_NATIVE_EVENT_INIT;
        OK(onuma_use(f->queue, block, ONUMA_ACCESS_WRITE));
        stamp_submit(&f->kernels, &view, 4097, 1, seed, &work);
        event.api = ONUMA_API_OPENCL;
        event.handle = (uintptr_t)work;
        OK(onuma_submitted(f->queue, with_event ? &event : NULL));
        clReleaseEvent(work);
        if (has_gates()) {
            FAILS(TIMEOUT, "", onuma_host_acquire(block, 4097, ONUMA_ACCESS_READ, 0));
            FAILS(TIMEOUT, "", onuma_host_acquire(block, 1, ONUMA_ACCESS_WRITE, 20000000));
        }
        gate_open(gate);
        assert_int_equal(cpu_differs(block, 4097, seed), 0);
    }
    OK(onuma_free(block, NULL));
}

static void of_the_device_stay_there(void **state) {
    fixture *f = *state;
    onuma_pool *pool = pool_of(f, ONUMA_KIND_DEVICE);
    const size_t size = (1 << 20) + 3;
    void *block, *zeroed;
    OK(onuma_alloc(pool, size, 0, f->queue, &block));
    unsigned char *bytes = malloc(size);
    assert_non_null(bytes);
    device_stamps(f, block, size, 9);
    onuma_view view = view_of(f, (char *)block + 129);
    cl_mem memory = (cl_mem)(uintptr_t)view.handle;
    kernel_ok(clEnqueueReadBuffer(f->kernels.queue, memory, CL_TRUE, 0, size, bytes, 0, NULL, NULL), "read");
    assert_int_equal(stamp_differs(bytes, size, step_for(size), 9), 0);
    stamp_bytes(bytes, 4097, 1, 10);
    kernel_ok(clEnqueueWriteBuffer(f->kernels.queue, memory, CL_TRUE, view.offset, 4097, bytes, 0, NULL, NULL),
              "write");
    assert_int_equal(device_differs(f, (char *)block + 129, 4097, 10), 0);
    free(bytes);
    FAILS(NOT_SUPPORTED, "device memory", onuma_host_acquire(block, 1, ONUMA_ACCESS_READ, 0));
    FAILS(NOT_SUPPORTED, "zero", onuma_alloc_zeroed(pool, 100, 0, NULL, &zeroed));
    assert_null(zeroed);
    OK(onuma_free(block, f->queue));
    drain(f);
    expect_empty(pool);
    OK(onuma_pool_destroy(pool));
}

static void are_zero_for_the_device(void **state) {
    fixture *f = *state;
    for (size_t i = 1; i < SIZES - 1; i++) {
        char *dirty = alloc(f->pool, sizes[i], f->queue), *block;
        device_stamps(f, dirty, sizes[i], 99);
        OK(onuma_free(dirty, f->queue));
        OK(onuma_alloc_zeroed(f->pool, sizes[i], 0, f->queue, (void **)&block));
        const onuma_view view = view_of(f, block);
        differ_submit(&f->kernels, &view, sizes[i], step_for(sizes[i]), 0, NULL);
        assert_int_equal(kernel_wrong(&f->kernels), 0);
        OK(onuma_free(block, f->queue));
    }
    drain(f);
}

/* What a kernel wrote is there after growing and shrinking, in place or not. */
static void survive_resizing(void **state) {
    fixture *f = *state;
    const size_t steps[] = {1, 127, 90, 4097, 100000, 4097, (1 << 20) + 3, 64};
    char *block = alloc(f->pool, steps[0], f->queue), *moved;
    for (size_t i = 1; i < sizeof steps / sizeof *steps; i++) {
        const size_t kept = steps[i] < steps[i - 1] ? steps[i] : steps[i - 1];
        onuma_block_info info = ONUMA_BLOCK_INFO_INIT;
        device_stamps(f, block, kept, (cl_uint)i);
        OK(onuma_realloc(block, steps[i], f->queue, (void **)&moved));
        OK(onuma_block_get_info(moved, &info));
        assert_ptr_equal(info.base, moved);
        assert_int_equal(info.requested, steps[i]);
        const onuma_view view = view_of(f, moved);
        differ_submit(&f->kernels, &view, kept, step_for(kept), (cl_uint)i, NULL);
        assert_int_equal(kernel_wrong(&f->kernels), 0);
        assert_int_equal(cpu_differs(moved, kept, (cl_uint)i), 0);
        device_stamps(f, moved, steps[i], 200); /* all of it is ours */
        block = moved;
    }
    OK(onuma_free(block, f->queue));
    drain(f);
}

/* ----------------------------------------------------------------- imports */

static void share_the_programs_pages(void **state) {
    fixture *f = *state;
    const size_t size = 5 * 4096;
    api_deletion d = {0};
    onuma_import_desc desc = ONUMA_IMPORT_DESC_INIT;
    desc.deleter = api_count_deletion;
    desc.user = &d;
    char *memory = system_pages(size);
    void *block;
    assert_non_null(memory);
    FAILS(NOT_SUPPORTED, "whole pages", onuma_import(f->device, memory + 64, 4096, &desc, &block));
    FAILS(NOT_SUPPORTED, "whole pages", onuma_import(f->device, memory, 4097, &desc, &block));
    assert_null(block);
    stamp_bytes(memory, size, step_for(size), 1);
    OK(onuma_import(f->device, memory, size, &desc, &block));
    assert_ptr_equal(block, memory);
    FAILS(CONFLICT, "", onuma_import(f->device, memory + 4096, 4096, &desc, &block));
    assert_int_equal(view_of(f, memory).via, ONUMA_VIA_HANDLE); /* not the driver's memory, whatever way it has */
    assert_int_equal(device_differs(f, memory, size, 1), 0);
    device_stamps(f, memory + 127, 9001, 2);
    assert_int_equal(cpu_differs(memory + 127, 9001, 2), 0);
    cpu_stamps(memory + 5, 777, 3);
    assert_int_equal(device_differs(f, memory + 5, 777, 3), 0);

    /* Gone only when the queue is through with it. */
    cl_event gate = gate_close(f, f->kernels.queue);
    device_stamps(f, memory, size, 4);
    stamps_forget(&f->kernels);
    OK(onuma_free(memory, NULL));
    if (has_gates()) assert_int_equal(d.calls, 0);
    gate_open(gate);
    drain(f);
    for (int i = 0; i < 5000 && d.calls == 0; i++) {
        OK(onuma_free(alloc(f->pool, 1 << 20, f->queue), NULL)); /* the library looks after its queues on such calls */
        nap();
    }
    assert_int_equal(d.calls, 1);
    assert_ptr_equal(d.memory, memory);
    assert_int_equal(stamp_differs(memory, size, step_for(size), 4), 0);
    assert_int_not_equal(onuma_free(memory, NULL), ONUMA_OK);
    assert_int_equal(d.calls, 1);
    system_pages_free(memory, size);
}

static void read_files_in_place(void **state) {
    fixture *f = *state;
    const size_t size = 3 * 4096;
    unsigned char bytes[3 * 4096];
    stamp_bytes(bytes, size, step_for(size), 5);
    char *memory = system_map_file(bytes, size);
    assert_non_null(memory);

    onuma_import_desc desc = ONUMA_IMPORT_DESC_INIT;
    void *block;
    desc.read_only = true;
    OK(onuma_import(f->device, memory, size, &desc, &block));
    assert_int_equal(device_differs(f, block, size, 5), 0);
    assert_int_equal(device_differs(f, block, size, 6), stamp_items(size, step_for(size))); /* it does look */
    assert_int_equal(cpu_differs(block, size, 5), 0);
    FAILS(INVALID_ARGUMENT, "read-only", onuma_host_acquire(block, 1, ONUMA_ACCESS_WRITE, 0));
    FAILS(INVALID_ARGUMENT, "read-only", onuma_use(f->queue, block, ONUMA_ACCESS_READ_WRITE));
    stamps_forget(&f->kernels);
    OK(onuma_free(block, NULL));
    system_unmap_file(memory, size);
}

int main(void) {
    const struct CMUnitTest blocks[] = {TEST(of_every_size_and_alignment)};
    const struct CMUnitTest views[] = {TEST(name_their_byte), TEST(are_refused), TEST(outlive_their_block_if_retained)};
    const struct CMUnitTest contents[] = {TEST(go_back_and_forth), TEST(take_turns_by_rule),
                                          TEST(of_the_device_stay_there), TEST(are_zero_for_the_device),
                                          TEST(survive_resizing)};
    const struct CMUnitTest imports[] = {TEST(share_the_programs_pages), TEST(read_files_in_place)};
    return cmocka_run_group_tests_name("blocks", blocks, NULL, NULL) +
           cmocka_run_group_tests_name("views", views, NULL, NULL) +
           cmocka_run_group_tests_name("contents", contents, NULL, NULL) +
           cmocka_run_group_tests_name("imports", imports, NULL, NULL);
}
