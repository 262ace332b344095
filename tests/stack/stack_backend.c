/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OpenCL backend against a real driver, through its table alone: no pool, no queue rules. Runs once per stack and
 * way to share; kernels do the device's side.
 */
#define _DEFAULT_SOURCE /* madvise */
#include "backend/device.h"
#include "kernel.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

typedef struct fixture {
    onuma__config config;
    onuma__registry registry;
    onuma__device *device;
    const onuma_backend *ops;
    onuma_backend_device *backend;
    kernel_set kernels;
} fixture;

static const char *way(void) {
    return getenv("ONUMA_TEST_WAY");
}

static bool on_stack(const char *name) {
    return strcmp(getenv("ONUMA_TEST_STACK"), name) == 0;
}

/* A size for everyone, and a smaller one for the simulator. */
static size_t scaled(size_t size) {
    return on_stack("oclgrind") ? size / 32 : size;
}

static void ok(onuma_result r) {
    if (r != ONUMA_OK) fail_msg("%s: %s", onuma_result_name(r), onuma_last_error());
}

static int open_registry(void **state) {
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    onuma__config_init(&f->config);
    ok(onuma__config_parse(&f->config, getenv("OPENNUMA_CONF"), "OPENNUMA_CONF"));
    ok(onuma__registry_open(&f->config, NULL, &f->registry));
    for (size_t i = 0; i < f->registry.device_count; i++)
        if (strcmp(f->registry.devices[i]->id, "opencl:0") == 0) f->device = f->registry.devices[i];
    assert_non_null(f->device);
    *state = f;
    return 0;
}

static int set_up(void **state) {
    open_registry(state);
    fixture *f = *state;
    ok(onuma__device_open(f->device));
    f->ops = f->device->ops;
    f->backend = atomic_load(&f->device->backend);
    kernel_set_open(&f->kernels, f->device->info.native_context, f->device->info.native_device, 0);
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    if (f->kernels.queue != NULL) kernel_set_close(&f->kernels);
    onuma__registry_close(&f->registry);
    free(f);
    return 0;
}

/* ------------------------------------------------------- blocks of a segment */

/* What the upper layers keep of a block: its place and its view. */
typedef struct block {
    onuma_segment *segment;
    size_t offset, size;
    onuma_view view;
} block;

static block block_at(const fixture *f, onuma_segment *segment, size_t offset, size_t size) {
    block b = {.segment = segment, .offset = offset, .size = size, .view = ONUMA_VIEW_INIT};
    b.view.size = size;
    if (segment->address != 0) {
        b.view.via = f->device->info.via;
        b.view.pointer = segment->address + offset;
    } else {
        b.view.via = ONUMA_VIA_HANDLE;
        ok(f->ops->view_create(f->backend, segment, offset, size, &b.view.handle));
        assert_int_not_equal(b.view.handle, segment->handle); /* never the parent */
    }
    return b;
}

static void block_drop(const fixture *f, block *b) {
    if (b->view.handle != 0) f->ops->view_release(f->backend, b->view.handle);
}

static void *map(const fixture *f, block *b, onuma_access mode) {
    if (b->segment->needs_map) ok(f->ops->host_map(f->backend, b->segment, b->view.handle, b->offset, b->size, mode));
    return (char *)b->segment->base + b->offset;
}

static void unmap(const fixture *f, block *b, onuma_access mode) {
    if (b->segment->needs_map) ok(f->ops->host_unmap(f->backend, b->segment, b->view.handle, b->offset, b->size, mode));
}

static void cpu_fills(const fixture *f, block *b, cl_uint seed) {
    pattern_fill(map(f, b, ONUMA_ACCESS_WRITE), b->size / 4, seed);
    unmap(f, b, ONUMA_ACCESS_WRITE);
}

static size_t cpu_finds_wrong(const fixture *f, block *b, cl_uint seed) {
    size_t wrong = pattern_wrong(map(f, b, ONUMA_ACCESS_READ), b->size / 4, seed);
    unmap(f, b, ONUMA_ACCESS_READ);
    return wrong;
}

static onuma_segment segment_of(const fixture *f, onuma_kind kind, size_t size) {
    onuma_segment segment = {.struct_size = sizeof segment};
    ok(f->ops->segment_create(f->backend, kind, size, &segment));
    assert_true(segment.size >= size);
    assert_int_equal(segment.kind, kind);
    assert_non_null(segment.base);
    return segment;
}

/* ------------------------------------------------------------------- devices */

static void device_is_described_without_a_context(void **state) {
    fixture *f = *state;
    onuma_backend_device_info info;
    onuma__device_info(f->device, &info);
    assert_string_equal(info.shared_via, way());
    assert_int_equal(info.kinds, 7);
    assert_true(strlen(info.name) > 0 && strlen(info.driver) > 0 && strlen(info.physical) > 0);
    assert_int_equal(info.type, on_stack("oclgrind") ? ONUMA_DEVICE_DISCRETE : ONUMA_DEVICE_CPU);
    assert_int_equal(info.simulator, on_stack("oclgrind"));
    assert_true(info.memory_total > 0 && info.max_segment > 0 && info.max_segment <= info.memory_total);
    assert_true(info.alignment >= 64 && info.alignment <= 4096);
    assert_int_equal(info.native_context, 0); /* asking made none */
    assert_null(atomic_load(&f->device->backend));
    const bool pointers = strcmp(way(), "import") != 0;
    const bool coherent = pointers && strcmp(way(), "svm_coarse") != 0;
    assert_int_equal((info.abilities & ONUMA_ABILITY_COHERENT) != 0, coherent);
    assert_int_equal(info.via, !pointers                   ? ONUMA_VIA_HANDLE
                               : strcmp(way(), "usm") == 0 ? ONUMA_VIA_USM
                                                           : ONUMA_VIA_SVM);
    assert_string_equal(f->registry.devices[f->registry.device_count - 1]->id, "host"); /* last */

    ok(onuma__device_open(f->device));
    ok(onuma__device_open(f->device));
    onuma__device_info(f->device, &info);
    assert_int_not_equal(info.native_context, 0);
    assert_int_not_equal(info.native_device, 0);
    uint64_t bytes = 1;
    ok(f->device->ops->memory_free(atomic_load(&f->device->backend), &bytes));
    assert_true(bytes <= info.memory_total);
    assert_int_equal(bytes == 0, on_stack("oclgrind")); /* its memory is not the CPU's, it says */
}

static void *open_it(void *argument) {
    return onuma__device_open(argument) == ONUMA_OK ? argument : NULL;
}

static void racing_threads_open_one_device(void **state) {
    fixture *f = *state;
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_it, f->device), 0);
    for (size_t i = 0; i < 4; i++) {
        void *result;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_ptr_equal(result, f->device);
    }
    assert_non_null(atomic_load(&f->device->backend));
}

static void contexts_of_the_program_are_adopted(void **state) {
    fixture *f = *state;
    cl_device_id id = (cl_device_id)(uintptr_t)f->device->info.native_device;
    cl_int code;
    cl_context context = clCreateContext(NULL, 1, &id, NULL, NULL, &code);
    kernel_ok(code, "clCreateContext");
    cl_command_queue queue = clCreateCommandQueue(context, id, 0, &code);
    kernel_ok(code, "clCreateCommandQueue");

    onuma_native_device native = ONUMA_NATIVE_DEVICE_INIT;
    onuma__device *adopted = NULL, *again = NULL, *own = NULL;
    assert_int_equal(onuma__registry_adopt(&f->registry, ONUMA_API_OPENCL, &native, &adopted),
                     ONUMA_ERROR_INVALID_ARGUMENT);
    native.context = (uintptr_t)context;
    native.device = (uintptr_t)context; /* none of its devices */
    assert_int_equal(onuma__registry_adopt(&f->registry, ONUMA_API_OPENCL, &native, &adopted),
                     ONUMA_ERROR_INVALID_ARGUMENT);
    assert_null(adopted);
    native.device = (uintptr_t)id;
    ok(onuma__registry_adopt(&f->registry, ONUMA_API_OPENCL, &native, &adopted));
    assert_true(adopted->adopted);
    assert_ptr_not_equal(adopted, f->device);
    assert_int_equal(adopted->info.native_context, native.context);
    assert_string_equal(adopted->info.physical, f->device->info.physical);
    ok(onuma__registry_from_queue(&f->registry, ONUMA_API_OPENCL, (uintptr_t)queue, &again));
    assert_ptr_equal(again, adopted); /* counted */
    ok(onuma__registry_from_queue(&f->registry, ONUMA_API_OPENCL, (uintptr_t)f->kernels.queue, &own));
    assert_ptr_equal(own, f->device); /* the context that the library made */

    /* Our reference keeps the context. */
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    onuma_segment segment = {.struct_size = sizeof segment};
    onuma_backend_device *backend = atomic_load(&adopted->backend);
    ok(adopted->ops->segment_create(backend, ONUMA_KIND_SHARED, 4096, &segment));
    adopted->ops->segment_destroy(backend, &segment);

    bool last = true;
    ok(onuma__registry_release(&f->registry, again, &last));
    assert_false(last);
    atomic_fetch_add(&adopted->users, 1);
    assert_int_equal(onuma__registry_release(&f->registry, adopted, &last), ONUMA_ERROR_BUSY);
    atomic_fetch_sub(&adopted->users, 1);
    ok(onuma__registry_release(&f->registry, adopted, &last));
    assert_true(last);
    ok(onuma__registry_release(&f->registry, own, &last));
    assert_false(last);
}

/* ------------------------------------------------------------------- sharing */

static void each_side_sees_what_the_other_wrote(void **state) {
    fixture *f = *state;
    const size_t align = f->device->info.alignment;
    const size_t sizes[] = {4, 64, align, 3 * align + 4, 4096, scaled(65536) + 4, scaled(1 << 20)};
    for (onuma_kind kind = ONUMA_KIND_HOST; kind <= ONUMA_KIND_SHARED; kind++) {
        onuma_segment segment = segment_of(f, kind, 4u << 20);
        cl_uint seed = 1 + kind;
        /* Blocks lie one behind the other, as the engine places them: aligned, at odd multiples. */
        size_t offset = (align - (uintptr_t)segment.base % align) % align;
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++, offset += align) {
            block b = block_at(f, &segment, offset, sizes[i]);
            const size_t words = b.size / 4;
            for (int round = 0; round < 3; round++) {
                cpu_fills(f, &b, ++seed);
                assert_int_equal(kernel_run(&f->kernels, KERNEL_CHECK, &b.view, words, seed), 0);
                assert_int_equal(kernel_run(&f->kernels, KERNEL_CHECK, &b.view, words, ~seed),
                                 words); /* it does look */
                kernel_run(&f->kernels, KERNEL_FILL, &b.view, words, ++seed);
                assert_int_equal(cpu_finds_wrong(f, &b, seed), 0);
            }
            block_drop(f, &b);
            offset += (sizes[i] + align - 1) / align * align;
        }
        f->ops->segment_destroy(f->backend, &segment);
    }
}

/* Work on one block leaves its neighbours alone, whichever side writes. */
static void neighbours_are_left_alone(void **state) {
    fixture *f = *state;
    enum { COUNT = 8 };
    const size_t step = f->device->info.alignment;
    onuma_segment segment = segment_of(f, ONUMA_KIND_SHARED, 1 << 16);
    const size_t start = (step - (uintptr_t)segment.base % step) % step;
    block blocks[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        blocks[i] = block_at(f, &segment, start + i * step, step);
        cpu_fills(f, &blocks[i], (cl_uint)i);
    }
    for (size_t i = 1; i < COUNT; i += 2)
        kernel_run(&f->kernels, KERNEL_FILL, &blocks[i].view, step / 4, (cl_uint)(100 + i));
    for (size_t i = 0; i < COUNT; i += 4)
        cpu_fills(f, &blocks[i], (cl_uint)(200 + i));
    for (size_t i = 0; i < COUNT; i++) {
        const cl_uint seed = (cl_uint)(i % 2 == 1 ? 100 + i : i % 4 == 0 ? 200 + i : i);
        assert_int_equal(cpu_finds_wrong(f, &blocks[i], seed), 0);
        assert_int_equal(kernel_run(&f->kernels, KERNEL_CHECK, &blocks[i].view, step / 4, seed), 0);
        block_drop(f, &blocks[i]);
    }
    f->ops->segment_destroy(f->backend, &segment);
}

/* Two readers at once, and a block mapped in part. */
static void maps_nest_and_may_be_partial(void **state) {
    fixture *f = *state;
    onuma_segment segment = segment_of(f, ONUMA_KIND_SHARED, 1 << 16);
    const size_t align = f->device->info.alignment;
    block b = block_at(f, &segment, (align - (uintptr_t)segment.base % align) % align + align, 8192);
    kernel_run(&f->kernels, KERNEL_FILL, &b.view, 2048, 5);
    map(f, &b, ONUMA_ACCESS_READ);
    const void *second = map(f, &b, ONUMA_ACCESS_READ);
    assert_int_equal(pattern_wrong(second, 2048, 5), 0);
    unmap(f, &b, ONUMA_ACCESS_READ);
    assert_int_equal(pattern_wrong(second, 2048, 5), 0);
    unmap(f, &b, ONUMA_ACCESS_READ);

    cl_uint *words = (cl_uint *)((char *)segment.base + b.offset);
    if (segment.needs_map)
        ok(f->ops->host_map(f->backend, &segment, b.view.handle, b.offset + 4096, 4, ONUMA_ACCESS_READ_WRITE));
    words[1024] ^= 1;
    if (segment.needs_map)
        ok(f->ops->host_unmap(f->backend, &segment, b.view.handle, b.offset + 4096, 4, ONUMA_ACCESS_READ_WRITE));
    assert_int_equal(kernel_run(&f->kernels, KERNEL_CHECK, &b.view, 2048, 5), 1);
    if (segment.needs_map && segment.address == 0)
        assert_int_equal(f->ops->host_map(f->backend, &segment, 0, b.offset, 4, ONUMA_ACCESS_READ),
                         ONUMA_ERROR_INTERNAL); /* without its view */
    block_drop(f, &b);
    f->ops->segment_destroy(f->backend, &segment);
}

typedef struct worker {
    const fixture *f;
    block *block;
    cl_uint seed;
    size_t wrong;
} worker;

static void *map_many_times(void *argument) {
    worker *w = argument;
    for (cl_uint i = 0; i < 50; i++) {
        cpu_fills(w->f, w->block, w->seed + i);
        w->wrong += cpu_finds_wrong(w->f, w->block, w->seed + i);
    }
    return NULL;
}

static void threads_map_blocks_at_once(void **state) {
    fixture *f = *state;
    enum { THREADS = 4 };
    onuma_segment segment = segment_of(f, ONUMA_KIND_SHARED, 1 << 16);
    const size_t align = f->device->info.alignment;
    const size_t start = (align - (uintptr_t)segment.base % align) % align;
    block blocks[THREADS];
    worker workers[THREADS];
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        blocks[i] = block_at(f, &segment, start + i * 8192, 8192);
        workers[i] = (worker){.f = f, .block = &blocks[i], .seed = (cl_uint)(1000 * i)};
        assert_int_equal(pthread_create(&threads[i], NULL, map_many_times, &workers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(workers[i].wrong, 0);
        assert_int_equal(kernel_run(&f->kernels, KERNEL_CHECK, &blocks[i].view, 2048, workers[i].seed + 49), 0);
        block_drop(f, &blocks[i]);
    }
    f->ops->segment_destroy(f->backend, &segment);
}

static void device_memory_is_named_by_addresses(void **state) {
    fixture *f = *state;
    onuma_segment segment = segment_of(f, ONUMA_KIND_DEVICE, 100000), other = segment_of(f, ONUMA_KIND_DEVICE, 4096);
    assert_int_equal(segment.address, 0);
    assert_int_not_equal(segment.handle, 0);
    assert_ptr_not_equal(segment.base, other.base);
    const size_t align = f->device->info.alignment;
    block low = block_at(f, &segment, 0, align), high = block_at(f, &segment, 3 * align, 65536);
    cl_uint *words = malloc(65536);
    assert_non_null(words);
    pattern_fill(words, 16384, 7);
    kernel_ok(clEnqueueWriteBuffer(f->kernels.queue, (cl_mem)(uintptr_t)high.view.handle, CL_TRUE, 0, 65536, words, 0,
                                   NULL, NULL),
              "clEnqueueWriteBuffer");
    kernel_run(&f->kernels, KERNEL_FILL, &low.view, align / 4, 9);
    assert_int_equal(kernel_run(&f->kernels, KERNEL_CHECK, &high.view, 16384, 7), 0);
    kernel_run(&f->kernels, KERNEL_FILL, &high.view, 16384, 8);
    memset(words, 0, 65536);
    kernel_ok(clEnqueueReadBuffer(f->kernels.queue, (cl_mem)(uintptr_t)high.view.handle, CL_TRUE, 0, 65536, words, 0,
                                  NULL, NULL),
              "clEnqueueReadBuffer");
    assert_int_equal(pattern_wrong(words, 16384, 8), 0);
    free(words);
    block_drop(f, &low);
    block_drop(f, &high);
    f->ops->segment_destroy(f->backend, &segment);
    f->ops->segment_destroy(f->backend, &other);
}

static void imports_are_the_programs_own_bytes(void **state) {
    fixture *f = *state;
    const size_t page = f->device->info.page_size;
    char *memory = aligned_alloc(page, 4 * page);
    assert_non_null(memory);
    pattern_fill(memory, page, 11);
    onuma_segment segment = {.struct_size = sizeof segment};
    const struct { size_t offset, size; } bad[] = {{64, page}, {0, page - 64}, {0, 0}, {page - 1, 1}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(f->ops->import_host(f->backend, memory + bad[i].offset, bad[i].size, false, &segment),
                         ONUMA_ERROR_NOT_SUPPORTED);
        assert_non_null(strstr(onuma_last_error(), "whole pages"));
        assert_null(segment.base);
    }

    ok(f->ops->import_host(f->backend, memory, 4 * page, false, &segment));
    assert_ptr_equal(segment.base, memory);
    assert_true(segment.needs_map);
    block whole = block_at(f, &segment, 0, 4 * page);
    assert_int_equal(kernel_run(&f->kernels, KERNEL_CHECK, &whole.view, page, 11), 0);
    kernel_run(&f->kernels, KERNEL_FILL, &whole.view, page, 12);
    assert_int_equal(cpu_finds_wrong(f, &whole, 12), 0);
    cpu_fills(f, &whole, 13);
    assert_int_equal(kernel_run(&f->kernels, KERNEL_CHECK, &whole.view, page, 13), 0);
    block_drop(f, &whole);
    f->ops->segment_destroy(f->backend, &segment);
    assert_int_equal(pattern_wrong(memory, page, 13), 0); /* still there */

    ok(f->ops->import_host(f->backend, memory, page, true, &segment));
    assert_true(segment.read_only);
    block read = block_at(f, &segment, 0, page);
    assert_int_equal(kernel_run(&f->kernels, KERNEL_CHECK, &read.view, page / 4, 13), 0);
    assert_int_equal(cpu_finds_wrong(f, &read, 13), 0);
    assert_int_equal(f->ops->host_map(f->backend, &segment, read.view.handle, 0, page, ONUMA_ACCESS_WRITE),
                     ONUMA_ERROR_INVALID_ARGUMENT);
    block_drop(f, &read);
    f->ops->segment_destroy(f->backend, &segment);
    free(memory);
}

/* ----------------------------------------------------------------- lifetimes */

static bool is_mapped(const void *p) {
    return madvise((void *)(uintptr_t)p, 4096, MADV_NORMAL) == 0 || errno != ENOMEM;
}

/* Drivers drop their last reference on a thread of their own, a moment after the work. */
static void expect_unmapped(const void *p) {
    for (int i = 0; i < 2000 && is_mapped(p); i++)
        onuma__os_sleep(1000000);
    assert_false(is_mapped(p));
}

static void pages_go_with_the_last_view(void **state) {
    fixture *f = *state;
    onuma_segment segment = segment_of(f, ONUMA_KIND_SHARED, 1 << 20);
    if (segment.address != 0) { /* the memory is the driver's */
        f->ops->segment_destroy(f->backend, &segment);
        return;
    }
    char *base = segment.base;
    block b = block_at(f, &segment, 4096, 65536);
    cpu_fills(f, &b, 21);
    f->ops->view_retain(f->backend, b.view.handle);
    block_drop(f, &b);
    f->ops->segment_destroy(f->backend, &segment);
    assert_true(is_mapped(base));
    assert_int_equal(kernel_run(&f->kernels, KERNEL_CHECK, &b.view, 16384, 21), 0); /* the retained view is good */
    kernel_run(&f->kernels, KERNEL_FILL, &b.view, 16384, 22);
    f->ops->view_release(f->backend, b.view.handle);
    kernel_set_close(&f->kernels); /* Rusticl's kernels keep what was last bound to them */
    f->kernels.queue = NULL;
    expect_unmapped(base);

    segment = segment_of(f, ONUMA_KIND_SHARED, 1 << 20);
    base = segment.base;
    f->ops->segment_destroy(f->backend, &segment);
    expect_unmapped(base);
}

static void retained_views_outlive_the_runtime(void **state) {
    fixture *f = *state;
    onuma_segment segment = segment_of(f, ONUMA_KIND_DEVICE, 1 << 20);
    block b = block_at(f, &segment, 0, 65536);
    f->ops->view_retain(f->backend, b.view.handle);
    block_drop(f, &b);
    f->ops->segment_destroy(f->backend, &segment);
    onuma__registry_close(&f->registry);
    kernel_run(&f->kernels, KERNEL_FILL, &b.view, 16384, 31);
    assert_int_equal(kernel_run(&f->kernels, KERNEL_CHECK, &b.view, 16384, 31), 0);
    clReleaseMemObject((cl_mem)(uintptr_t)b.view.handle);
}

/* A leaked segment stays usable after its runtime. */
static void leaked_segments_stay_mapped(void **state) {
    fixture *f = *state;
    onuma_segment segment = segment_of(f, ONUMA_KIND_SHARED, 1 << 20);
    memset(segment.base, 0x5a, segment.size);
    onuma__registry_close(&f->registry);
    for (size_t i = 0; i < segment.size; i += 4096)
        assert_int_equal(((unsigned char *)segment.base)[i], 0x5a);
}

static void many_segments_come_and_go(void **state) {
    fixture *f = *state;
    const int rounds = on_stack("oclgrind") ? 20 : 200;
    for (int i = 0; i < rounds; i++) {
        onuma_segment segments[4];
        for (size_t k = 0; k < 4; k++)
            segments[k] = segment_of(f, (onuma_kind)(k % 3), (size_t)4096 << (size_t)(i % 8));
        ((char *)segments[0].base)[0] = 1; /* host */
        ((char *)segments[1].base)[segments[1].size - 1] = 1;
        for (size_t k = 0; k < 4; k++)
            f->ops->segment_destroy(f->backend, &segments[k]);
    }
}

static void impossible_sizes_are_refused(void **state) {
    fixture *f = *state;
    const size_t sizes[] = {0, SIZE_MAX, SIZE_MAX / 2, (size_t)1 << 50};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (onuma_kind kind = ONUMA_KIND_HOST; kind <= ONUMA_KIND_DEVICE; kind++) {
            onuma_segment segment = {.struct_size = sizeof segment};
            assert_int_equal(f->ops->segment_create(f->backend, kind, sizes[i], &segment), ONUMA_ERROR_OUT_OF_MEMORY);
            assert_true(strlen(onuma_last_error()) > 0);
            assert_null(segment.base);
        }
    onuma_segment segment = {.struct_size = sizeof segment};
    assert_int_equal(f->ops->segment_create(f->backend, 9, 4096, &segment), ONUMA_ERROR_NOT_SUPPORTED);
}

/* -------------------------------------------------------------------- queues */

static void wait_for(const fixture *f, onuma_backend_marker *marker) {
    bool passed = false;
    while (!passed) {
        ok(f->ops->marker_poll(marker, &passed));
        onuma__os_yield();
    }
}

static bool poll(const fixture *f, onuma_backend_marker *marker) {
    bool passed = false;
    ok(f->ops->marker_poll(marker, &passed));
    return passed;
}

static void markers_pass_after_the_work(void **state) {
    fixture *f = *state;
    const cl_command_queue_properties orders[] = {0, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE};
    onuma_segment segment = segment_of(f, ONUMA_KIND_SHARED, 1 << 20);
    const size_t align = f->device->info.alignment;
    block b = block_at(f, &segment, (align - (uintptr_t)segment.base % align) % align, scaled(1 << 19));
    for (size_t i = 0; i < 2; i++) {
        if (i == 1 && on_stack("rusticl")) break; /* it has none */
        cl_int code;
        cl_command_queue native = clCreateCommandQueue(f->kernels.context, f->kernels.device, orders[i], &code);
        kernel_ok(code, "clCreateCommandQueue");
        onuma_queue_order order = ONUMA_QUEUE_DETECT;
        onuma_backend_queue *queue;
        ok(f->ops->queue_open(f->backend, (uintptr_t)native, &order, &queue));
        assert_int_equal(order, i == 0 ? ONUMA_QUEUE_IN_ORDER : ONUMA_QUEUE_UNORDERED);

        /* A gate that only we open: the marker behind it cannot have passed. */
        cl_event gate = clCreateUserEvent(f->kernels.context, &code);
        kernel_ok(code, "clCreateUserEvent");
        kernel_set own = f->kernels;
        own.queue = native;
        kernel_ok(clEnqueueBarrierWithWaitList(native, 1, &gate, NULL), "clEnqueueBarrierWithWaitList");
        cl_event work;
        kernel_submit(&own, KERNEL_FILL, &b.view, b.size / 4, (cl_uint)(40 + i), &work);
        onuma_backend_marker *recorded, *wrapped;
        ok(f->ops->marker_record(queue, &recorded));
        onuma_native_event event = ONUMA_NATIVE_EVENT_INIT;
        event.api = ONUMA_API_OPENCL;
        event.handle = (uintptr_t)work;
        ok(f->ops->marker_wrap(queue, &event, &wrapped));
        clReleaseEvent(work);      /* the marker has its own reference */
        if (!on_stack("oclgrind")) /* runs queues when they are flushed, gates or not */
            for (int k = 0; k < 20; k++)
                assert_false(poll(f, recorded) || poll(f, wrapped));
        f->ops->queue_close(queue); /* markers outlive their queue */
        clReleaseCommandQueue(native);
        kernel_ok(clSetUserEventStatus(gate, CL_COMPLETE), "clSetUserEventStatus");
        wait_for(f, recorded);
        wait_for(f, wrapped);
        assert_int_equal(cpu_finds_wrong(f, &b, (cl_uint)(40 + i)), 0);
        f->ops->marker_destroy(recorded);
        f->ops->marker_destroy(wrapped);
        clReleaseEvent(gate);
    }
    block_drop(f, &b);
    f->ops->segment_destroy(f->backend, &segment);
}

static void one_queue_waits_for_another(void **state) {
    fixture *f = *state;
    onuma_segment segment = segment_of(f, ONUMA_KIND_SHARED, 1 << 20);
    const size_t align = f->device->info.alignment;
    block b = block_at(f, &segment, (align - (uintptr_t)segment.base % align) % align, scaled(1 << 18));
    kernel_set second = f->kernels;
    cl_int code;
    second.queue = clCreateCommandQueue(f->kernels.context, f->kernels.device, 0, &code);
    kernel_ok(code, "clCreateCommandQueue");
    onuma_queue_order order = ONUMA_QUEUE_DETECT;
    onuma_backend_queue *first_queue, *second_queue;
    ok(f->ops->queue_open(f->backend, (uintptr_t)f->kernels.queue, &order, &first_queue));
    ok(f->ops->queue_open(f->backend, (uintptr_t)second.queue, &order, &second_queue));
    for (cl_uint seed = 60; seed < 70; seed++) {
        onuma_backend_marker *marker;
        kernel_submit(&f->kernels, KERNEL_FILL, &b.view, b.size / 4, seed, NULL); /* not flushed by us */
        ok(f->ops->marker_record(first_queue, &marker));
        ok(f->ops->queue_wait_marker(second_queue, marker));
        f->ops->marker_destroy(marker);
        assert_int_equal(kernel_run(&second, KERNEL_CHECK, &b.view, b.size / 4, seed), 0);
    }
    f->ops->queue_close(first_queue);
    f->ops->queue_close(second_queue);
    clReleaseCommandQueue(second.queue);
    block_drop(f, &b);
    f->ops->segment_destroy(f->backend, &segment);
}

static void failed_work_is_an_error_and_bad_handles_are_refused(void **state) {
    fixture *f = *state;
    cl_int code;
    onuma_queue_order order = ONUMA_QUEUE_IN_ORDER;
    onuma_backend_queue *queue = NULL;
    assert_int_equal(f->ops->queue_open(f->backend, 0, &order, &queue), ONUMA_ERROR_INVALID_ARGUMENT);

    /* A queue of another context could not use this device's memory. */
    cl_context foreign = clCreateContext(NULL, 1, &f->kernels.device, NULL, NULL, &code);
    kernel_ok(code, "clCreateContext");
    cl_command_queue foreign_queue = clCreateCommandQueue(foreign, f->kernels.device, 0, &code);
    kernel_ok(code, "clCreateCommandQueue");
    assert_int_equal(f->ops->queue_open(f->backend, (uintptr_t)foreign_queue, &order, &queue),
                     ONUMA_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(onuma_last_error(), "onuma_device_from_queue"));
    assert_null(queue);
    clReleaseCommandQueue(foreign_queue);
    clReleaseContext(foreign);

    ok(f->ops->queue_open(f->backend, (uintptr_t)f->kernels.queue, &order, &queue));
    onuma_native_event event = ONUMA_NATIVE_EVENT_INIT;
    onuma_backend_marker *marker = NULL;
    event.api = ONUMA_API_OPENCL;
    assert_int_equal(f->ops->marker_wrap(queue, &event, &marker), ONUMA_ERROR_INVALID_ARGUMENT);
    cl_event user = clCreateUserEvent(f->kernels.context, &code);
    kernel_ok(code, "clCreateUserEvent");
    event.handle = (uintptr_t)user;
    event.api = ONUMA_API_HOST;
    assert_int_equal(f->ops->marker_wrap(queue, &event, &marker), ONUMA_ERROR_INVALID_ARGUMENT);
    assert_null(marker);
    event.api = ONUMA_API_OPENCL;
    ok(f->ops->marker_wrap(queue, &event, &marker));
    assert_false(poll(f, marker));
    kernel_ok(clSetUserEventStatus(user, CL_OUT_OF_RESOURCES), "clSetUserEventStatus");
    bool passed = false;
    assert_int_equal(f->ops->marker_poll(marker, &passed), ONUMA_ERROR_INTERNAL);
    assert_non_null(strstr(onuma_last_error(), "CL_OUT_OF_RESOURCES"));
    assert_false(passed);
    f->ops->marker_destroy(marker);
    clReleaseEvent(user);

    user = clCreateUserEvent(f->kernels.context, &code);
    event.handle = (uintptr_t)user;
    ok(f->ops->marker_wrap(queue, &event, &marker));
    kernel_ok(clSetUserEventStatus(user, CL_DEVICE_NOT_AVAILABLE), "clSetUserEventStatus");
    assert_int_equal(f->ops->marker_poll(marker, &passed), ONUMA_ERROR_DEVICE_LOST);
    f->ops->marker_destroy(marker);
    clReleaseEvent(user);
    f->ops->queue_close(queue);
}

int main(void) {
#define DESCRIBED(f) cmocka_unit_test_setup_teardown(f, open_registry, tear_down)
#define OPENED(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        DESCRIBED(device_is_described_without_a_context),
        DESCRIBED(racing_threads_open_one_device),
        OPENED(contexts_of_the_program_are_adopted),
        OPENED(each_side_sees_what_the_other_wrote),
        OPENED(neighbours_are_left_alone),
        OPENED(maps_nest_and_may_be_partial),
        OPENED(threads_map_blocks_at_once),
        OPENED(device_memory_is_named_by_addresses),
        OPENED(imports_are_the_programs_own_bytes),
        OPENED(pages_go_with_the_last_view),
        OPENED(retained_views_outlive_the_runtime),
        OPENED(leaked_segments_stay_mapped),
        OPENED(many_segments_come_and_go),
        OPENED(impossible_sizes_are_refused),
        OPENED(markers_pass_after_the_work),
        OPENED(one_queue_waits_for_another),
        OPENED(failed_work_is_an_error_and_bad_handles_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
