/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenCL backend against a real driver: devices, and each side seeing what the other wrote; kernels do the device's. */
#define _GNU_SOURCE /* system.h */
#include "backend_fixture.h"

#include <pthread.h>

#include "system.h"

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

/* Half of a device is a device too, unknown to the list that the driver gave. */
static void sub_devices_are_adopted(void **state) {
    fixture *f = *state;
    const cl_device_partition_property one[] = {CL_DEVICE_PARTITION_BY_COUNTS, 1,
                                                CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0};
    cl_device_id part;
    cl_uint count = 0;
    kernel_ok(clCreateSubDevices((cl_device_id)(uintptr_t)f->device->info.native_device, one, 1, &part, &count),
              "clCreateSubDevices");
    cl_int code;
    cl_context context = clCreateContext(NULL, 1, &part, NULL, NULL, &code);
    kernel_ok(code, "clCreateContext");
    onuma_native_device native = ONUMA_NATIVE_DEVICE_INIT;
    native.context = (uintptr_t)context; /* its only device goes without saying */
    onuma__device *adopted = NULL;
    ok(onuma__registry_adopt(&f->registry, ONUMA_API_OPENCL, &native, &adopted));
    clReleaseContext(context);
    assert_int_equal(adopted->info.native_device, (uintptr_t)part);
    assert_string_equal(adopted->info.shared_via, way());
    assert_string_equal(adopted->info.physical, "cpu");

    onuma_backend_device *backend = atomic_load(&adopted->backend);
    onuma_segment segment = {.struct_size = sizeof segment};
    ok(adopted->ops->segment_create(backend, ONUMA_KIND_SHARED, 4096, &segment));
    memset(segment.base, 1, segment.size);
    adopted->ops->segment_destroy(backend, &segment);
    bool last = false;
    ok(onuma__registry_release(&f->registry, adopted, &last));
    assert_true(last);
    clReleaseDevice(part);
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
        size_t offset = first_offset(f, &segment);
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
    const size_t start = first_offset(f, &segment);
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
    block b = block_at(f, &segment, first_offset(f, &segment) + align, 8192);
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
    const size_t start = first_offset(f, &segment);
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
    char *memory = system_pages(4 * page);
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
    system_pages_free(memory, 4 * page);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        DESCRIBED(device_is_described_without_a_context),
        DESCRIBED(racing_threads_open_one_device),
        OPENED(contexts_of_the_program_are_adopted),
        OPENED(each_side_sees_what_the_other_wrote),
        OPENED(neighbours_are_left_alone),
        OPENED(maps_nest_and_may_be_partial),
        OPENED(device_memory_is_named_by_addresses),
        OPENED(imports_are_the_programs_own_bytes),
    };
    const struct CMUnitTest divided[] = {OPENED(sub_devices_are_adopted)};
    const struct CMUnitTest threaded[] = {OPENED(threads_map_blocks_at_once)};
    int failed = cmocka_run_group_tests_name("devices and sharing", tests, NULL, NULL);
    if (on_stack("intel")) /* PoCL puts the whole device into a context of a part; the others cannot divide theirs */
        failed += cmocka_run_group_tests_name("sub-devices", divided, NULL, NULL);
    if (!on_stack("oclgrind")) /* which runs a queue on whatever thread waits, with no lock: two at once crash it */
        failed += cmocka_run_group_tests_name("threads", threaded, NULL, NULL);
    return failed;
}
