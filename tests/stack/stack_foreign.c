/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts of the program's own, as frameworks bring them. That:
 *
 *   - a segment costs one cl_mem in its context, however many blocks and views it has (calls of clCreateBuffer are
 *     counted in the driver's place);
 *   - two contexts of one chip are two devices that share `physical`, and refuse each other's blocks and queues by name;
 *   - the same memory, mapped twice and imported in two contexts, shows each the other's writes;
 *   - the program may release its context and queue first, and everything is released in the end;
 *   - sub-devices and contexts of several devices work;
 *   - what is no handle is refused without a crash.
 */
#define _GNU_SOURCE /* memfd_create, RTLD_NEXT */
#include "../unit/api/api.h"
#include "kernel.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static bool on_stack(const char *name) {
    return strcmp(getenv("ONUMA_TEST_STACK"), name) == 0;
}

/* ------------------------------------------------------- counting buffers */

static atomic_uint buffers_made;

/* In the driver's place for the library, which asks the process first. */
__attribute__((visibility("default"))) CL_API_ENTRY cl_mem CL_API_CALL clCreateBuffer(cl_context context,
                                                                                      cl_mem_flags flags, size_t size,
                                                                                      void *host, cl_int *code) {
    cl_mem (*next)(cl_context, cl_mem_flags, size_t, void *, cl_int *);
    *(void **)&next = dlsym(RTLD_NEXT, "clCreateBuffer");
    atomic_fetch_add(&buffers_made, 1);
    return next(context, flags, size, host, code);
}

/* ----------------------------------------------------------------- contexts */

typedef struct world {
    cl_platform_id platform;
    cl_device_id chip;
    onuma_runtime *rt;
} world;

/* A context of the program's and what the library makes of it. */
typedef struct place {
    cl_context context;
    cl_command_queue native;
    onuma_device *device;
    onuma_queue *queue;
    onuma_pool *pool;
} place;

static uint64_t number(const void *handle) {
    return (uint64_t)(uintptr_t)handle;
}

static int set_up(void **state) {
    world *w = calloc(1, sizeof *w);
    kernel_ok(clGetPlatformIDs(1, &w->platform, NULL), "clGetPlatformIDs");
    kernel_ok(clGetDeviceIDs(w->platform, CL_DEVICE_TYPE_ALL, 1, &w->chip, NULL), "clGetDeviceIDs");
    OK(onuma_runtime_create(NULL, &w->rt));
    *state = w;
    return 0;
}

static int tear_down(void **state) {
    world *w = *state;
    onuma_runtime_destroy(w->rt);
    free(w);
    return 0;
}

static onuma_pool *pool_on(onuma_device *device, onuma_kind kind) {
    onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
    onuma_pool *pool;
    desc.kind = kind;
    OK(onuma_pool_create(device, &desc, &pool));
    return pool;
}

static place enter(const world *w, cl_context context, cl_device_id chip) {
    place p = {.context = context};
    cl_int code;
    p.native = clCreateCommandQueue(context, chip, 0, &code);
    kernel_ok(code, "clCreateCommandQueue");
    OK(onuma_device_from_queue(w->rt, ONUMA_API_OPENCL, number(p.native), &p.device));
    OK(onuma_queue_wrap(p.device, ONUMA_API_OPENCL, number(p.native), NULL, &p.queue));
    p.pool = pool_on(p.device, ONUMA_KIND_SHARED);
    return p;
}

static cl_context context_of(const cl_device_id *chips, cl_uint count) {
    cl_int code;
    cl_context context = clCreateContext(NULL, count, chips, NULL, NULL, &code);
    kernel_ok(code, "clCreateContext");
    return context;
}

static void release_device(onuma_device *device) {
    onuma_result r;
    /* A queue's last marker may still have to be looked at. */
    for (unsigned i = 0; (r = onuma_device_release(device)) == ONUMA_ERROR_BUSY && i < 1000; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    OK(r);
}

static void leave(const place *p) {
    OK(onuma_queue_release(p->queue));
    OK(onuma_pool_destroy(p->pool));
    release_device(p->device);
}

static cl_uint references(cl_context context) {
    cl_uint count = 0;
    kernel_ok(clGetContextInfo(context, CL_CONTEXT_REFERENCE_COUNT, sizeof count, &count, NULL), "clGetContextInfo");
    return count;
}

/* Drivers let go of what they were using on threads of their own. */
static void expect_references(cl_context context, cl_uint expected) {
    for (unsigned i = 0; i < 2000 && references(context) != expected; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_int_equal(references(context), expected);
}

/* ------------------------------------------------------------------- kernels */

/* The device stamps the bytes, and the CPU sees them; the CPU stamps them, and the device sees that. */
static void both_ways(kernel_set *k, onuma_device *device, onuma_queue *queue, char *block, size_t size, cl_uint seed) {
    onuma_view view = ONUMA_VIEW_INIT;
    OK(onuma_view_get(block, device, ONUMA_API_OPENCL, &view));
    OK(onuma_use(queue, block, ONUMA_ACCESS_WRITE));
    stamp_submit(k, &view, size, 1, seed, NULL);
    OK(onuma_submitted(queue, NULL));
    OK(onuma_host_acquire(block, size, ONUMA_ACCESS_READ_WRITE, ONUMA_TIMEOUT_INFINITE));
    assert_int_equal(stamp_differs(block, size, 1, seed), 0);
    stamp_bytes(block, size, 1, seed + 1);
    OK(onuma_host_release(block, size, ONUMA_ACCESS_READ_WRITE));
    OK(onuma_use(queue, block, ONUMA_ACCESS_READ));
    differ_submit(k, &view, size, 1, seed + 1, NULL);
    OK(onuma_submitted(queue, NULL));
    assert_int_equal(kernel_wrong(k), 0);
}

/* Kernels that run on the place's own queue. */
static void open_kernels(kernel_set *k, const place *p, cl_device_id chip) {
    kernel_set_open(k, number(p->context), number(chip), 0);
    clReleaseCommandQueue(k->queue);
    k->queue = p->native;
    kernel_ok(clRetainCommandQueue(p->native), "clRetainCommandQueue");
}

static void works(const place *p, cl_device_id chip) {
    kernel_set k;
    void *block;
    open_kernels(&k, p, chip);
    OK(onuma_alloc(p->pool, 5001, 0, p->queue, &block));
    both_ways(&k, p->device, p->queue, block, 5001, 1);
    OK(onuma_free(block, p->queue));
    kernel_set_close(&k);
}

/* --------------------------------------------------------------------- tests */

static void a_segment_is_one_buffer(void **state) {
    const world *w = *state;
    place p = enter(w, context_of(&w->chip, 1), w->chip);
    const bool pointers = strcmp(getenv("ONUMA_TEST_WAY"), "import") != 0;
    for (onuma_kind kind = ONUMA_KIND_SHARED; kind <= ONUMA_KIND_DEVICE; kind++) {
        const unsigned before = buffers_made;
        onuma_pool *pool = pool_on(p.device, kind);
        enum { BLOCKS = 40 };
        void *blocks[BLOCKS];
        for (size_t i = 0; i < BLOCKS; i++) {
            onuma_view view = ONUMA_VIEW_INIT;
            OK(onuma_alloc(pool, i % 8 == 7 ? 6 << 20 : 3000, 0, p.queue, &blocks[i]));
            OK(onuma_view_get(blocks[i], p.device, ONUMA_API_OPENCL, &view));
            OK(onuma_view_get((char *)blocks[i] + 100, p.device, ONUMA_API_OPENCL, &view));
        }
        const uint64_t segments = api_stats(pool).segment_alloc_count;
        assert_true(segments >= 2 && segments < BLOCKS);
        assert_int_equal(buffers_made - before, kind == ONUMA_KIND_SHARED && pointers ? 0 : segments);
        for (size_t i = 0; i < BLOCKS; i++)
            OK(onuma_free(blocks[i], p.queue));
        OK(onuma_pool_destroy(pool));
    }
    leave(&p);
    clReleaseCommandQueue(p.native);
    expect_references(p.context, 1);
    clReleaseContext(p.context);
}

static void two_contexts_of_one_chip(void **state) {
    const world *w = *state;
    place a = enter(w, context_of(&w->chip, 1), w->chip), b = enter(w, context_of(&w->chip, 1), w->chip);
    onuma_device_info one = ONUMA_DEVICE_INFO_INIT, two = ONUMA_DEVICE_INFO_INIT;
    OK(onuma_device_get_info(a.device, &one));
    OK(onuma_device_get_info(b.device, &two));
    assert_ptr_not_equal(a.device, b.device);
    assert_string_not_equal(one.id, two.id);
    assert_string_equal(one.physical, two.physical);
    assert_true(one.physical[0] != '\0' && one.native_context != two.native_context);

    void *block, *none;
    onuma_view view = ONUMA_VIEW_INIT;
    onuma_queue *queue;
    OK(onuma_alloc(a.pool, 5000, 0, NULL, &block));
    api_fill(block, 5000, 9);
    FAILS(NOT_SUPPORTED, one.id, onuma_view_get(block, b.device, ONUMA_API_OPENCL, &view));
    assert_non_null(strstr(onuma_last_error(), two.id));
    char name[40];
    snprintf(name, sizeof name, "%p", (void *)b.context);
    FAILS(INVALID_ARGUMENT, name, onuma_queue_wrap(a.device, ONUMA_API_OPENCL, number(b.native), NULL, &queue));
    snprintf(name, sizeof name, "%p", (void *)a.context);
    assert_non_null(strstr(onuma_last_error(), name));
    assert_null(queue);
    FAILS(INVALID_ARGUMENT, one.id, onuma_use(b.queue, block, ONUMA_ACCESS_READ));
    assert_non_null(strstr(onuma_last_error(), two.id));
    FAILS(INVALID_ARGUMENT, one.id, onuma_alloc(a.pool, 100, 0, b.queue, &none));
    FAILS(INVALID_ARGUMENT, one.id, onuma_alloc_zeroed(a.pool, 100, 0, b.queue, &none));
    FAILS(INVALID_ARGUMENT, one.id, onuma_realloc(block, 100000, b.queue, &none));
    FAILS(NOT_SUPPORTED, one.id, onuma_queue_wait(a.queue, b.queue, NULL));
    assert_non_null(strstr(onuma_last_error(), two.id));
    api_check(block, 5000, 9);
    OK(onuma_free(block, b.queue)); /* waits for that queue too, and is no other harm */
    works(&a, w->chip);
    works(&b, w->chip);
    leave(&a);
    leave(&b);
    clReleaseCommandQueue(a.native);
    clReleaseCommandQueue(b.native);
    expect_references(a.context, 1);
    expect_references(b.context, 1);
    clReleaseContext(a.context);
    clReleaseContext(b.context);
}

static void the_same_memory_in_two_contexts(void **state) {
    const world *w = *state;
    enum { SIZE = 4 * 4096 };
    place p[2];
    kernel_set k[2];
    char *memory[2];
    api_deletion deleted[2] = {{0}};
    const int file = memfd_create("opennuma-test", 0);
    assert_true(file >= 0);
    assert_int_equal(ftruncate(file, SIZE), 0);
    for (size_t i = 0; i < 2; i++) {
        onuma_import_desc desc = ONUMA_IMPORT_DESC_INIT;
        void *block;
        p[i] = enter(w, context_of(&w->chip, 1), w->chip);
        open_kernels(&k[i], &p[i], w->chip);
        memory[i] = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        assert_ptr_not_equal(memory[i], MAP_FAILED);
        desc.deleter = api_count_deletion;
        desc.user = &deleted[i];
        OK(onuma_import(p[i].device, memory[i], SIZE, &desc, &block));
    }
    close(file);
    void *none; /* by one pointer it belongs to one of them */
    FAILS(CONFLICT, "map the memory a second time", onuma_import(p[1].device, memory[0], SIZE, NULL, &none));
    for (cl_uint round = 0; round < 4; round++) {
        const size_t from = round % 2, to = 1 - from;
        onuma_view view = ONUMA_VIEW_INIT;
        OK(onuma_view_get(memory[from], p[from].device, ONUMA_API_OPENCL, &view));
        OK(onuma_use(p[from].queue, memory[from], ONUMA_ACCESS_WRITE));
        stamp_submit(&k[from], &view, SIZE, 1, 30 + round, NULL);
        OK(onuma_submitted(p[from].queue, NULL));
        OK(onuma_host_acquire(memory[from], SIZE, ONUMA_ACCESS_READ, ONUMA_TIMEOUT_INFINITE));
        OK(onuma_host_release(memory[from], SIZE, ONUMA_ACCESS_READ));
        /* The CPU wrote, as far as the other context is to know. */
        OK(onuma_host_acquire(memory[to], SIZE, ONUMA_ACCESS_READ_WRITE, ONUMA_TIMEOUT_INFINITE));
        assert_int_equal(stamp_differs(memory[to], SIZE, 1, 30 + round), 0);
        OK(onuma_host_release(memory[to], SIZE, ONUMA_ACCESS_READ_WRITE));
        OK(onuma_view_get(memory[to], p[to].device, ONUMA_API_OPENCL, &view));
        OK(onuma_use(p[to].queue, memory[to], ONUMA_ACCESS_READ));
        differ_submit(&k[to], &view, SIZE, 1, 30 + round, NULL);
        OK(onuma_submitted(p[to].queue, NULL));
        assert_int_equal(kernel_wrong(&k[to]), 0);
    }
    for (size_t i = 0; i < 2; i++) {
        stamps_forget(&k[i]);
        kernel_set_close(&k[i]);
        OK(onuma_free(memory[i], NULL));
        assert_int_equal(deleted[i].calls, 1);
        munmap(memory[i], SIZE);
        leave(&p[i]);
        clReleaseCommandQueue(p[i].native);
        expect_references(p[i].context, 1);
        clReleaseContext(p[i].context);
    }
}

static void the_program_releases_its_context_first(void **state) {
    const world *w = *state;
    place p = enter(w, context_of(&w->chip, 1), w->chip);
    kernel_set k;
    void *block, *more, *imported, *memory = aligned_alloc(4096, 8192);
    api_deletion deleted = {0};
    onuma_import_desc desc = ONUMA_IMPORT_DESC_INIT;
    desc.deleter = api_count_deletion;
    desc.user = &deleted;
    open_kernels(&k, &p, w->chip);
    OK(onuma_alloc(p.pool, 5001, 0, p.queue, &block));
    OK(onuma_import(p.device, memory, 8192, &desc, &imported));
    clReleaseCommandQueue(p.native);
    clReleaseContext(p.context); /* what is left are ours, and those of the kernels */
    both_ways(&k, p.device, p.queue, block, 5001, 1);
    both_ways(&k, p.device, p.queue, imported, 8192, 3);
    stamps_forget(&k);
    kernel_set_close(&k); /* from here on ours alone */
    OK(onuma_alloc(p.pool, 9 << 20, 0, p.queue, &more));
    onuma_view view = ONUMA_VIEW_INIT;
    OK(onuma_view_get(more, p.device, ONUMA_API_OPENCL, &view));
    api_fill(more, 9 << 20, 4);
    api_check(more, 9 << 20, 4);
    OK(onuma_free(more, p.queue));
    OK(onuma_free(block, p.queue));
    OK(onuma_free(imported, NULL));
    assert_int_equal(deleted.calls, 1);
    assert_true(references(p.context) >= 1); /* alive, for ours is there */
    leave(&p);
    free(memory);
}

static cl_uint split(cl_device_id chip, cl_device_id parts[2]) {
    const cl_device_partition_property by_counts[] = {CL_DEVICE_PARTITION_BY_COUNTS, 1, 1,
                                                      CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0};
    cl_uint count = 0, most = 0;
    /* Rusticl, which cannot split, has no such function even. */
    kernel_ok(clGetDeviceInfo(chip, CL_DEVICE_PARTITION_MAX_SUB_DEVICES, sizeof most, &most, NULL), "clGetDeviceInfo");
    if (most < 2) return 0;
    return clCreateSubDevices(chip, by_counts, 2, parts, &count) == CL_SUCCESS ? count : 0;
}

static void sub_devices_and_several_devices(void **state) {
    const world *w = *state;
    cl_device_id parts[2];
    const cl_uint count = split(w->chip, parts);
    /* The stacks that can are known; with one processor there is nothing to split. */
    if (count == 0) {
        assert_true(!on_stack("pocl") || sysconf(_SC_NPROCESSORS_ONLN) < 2);
        print_message("this driver splits no devices\n");
        return;
    }
    cl_context alone = context_of(parts, 1);
    place p = enter(w, alone, parts[0]);
    onuma_device_info info = ONUMA_DEVICE_INFO_INIT;
    OK(onuma_device_get_info(p.device, &info));
    assert_true(info.native_device == number(parts[0]) && info.physical[0] != '\0');
    works(&p, parts[0]);
    leave(&p);
    clReleaseCommandQueue(p.native);
    clReleaseContext(alone);

    cl_context both = context_of(parts, count);
    onuma_native_device native = ONUMA_NATIVE_DEVICE_INIT;
    onuma_device *first, *second, *none;
    cl_uint known = 0;
    native.context = number(both);
    kernel_ok(clGetContextInfo(both, CL_CONTEXT_NUM_DEVICES, sizeof known, &known, NULL), "clGetContextInfo");
    if (!on_stack("pocl")) assert_int_equal(known, count); /* PoCL makes one of them, the whole */
    if (known > 1) {
        FAILS(INVALID_ARGUMENT, "devices of the context", onuma_device_adopt(w->rt, ONUMA_API_OPENCL, &native, &none));
        native.device = number(w->chip);
        FAILS(INVALID_ARGUMENT, "devices of the context", onuma_device_adopt(w->rt, ONUMA_API_OPENCL, &native, &none));
    }
    native.device = number(parts[0]);
    OK(onuma_device_adopt(w->rt, ONUMA_API_OPENCL, &native, &first));
    native.device = number(parts[1]);
    OK(onuma_device_adopt(w->rt, ONUMA_API_OPENCL, &native, &second));
    assert_ptr_not_equal(first, second);
    place q = {.context = both, .device = second, .pool = pool_on(second, ONUMA_KIND_SHARED)};
    cl_int code;
    q.native = clCreateCommandQueue(both, parts[1], 0, &code);
    kernel_ok(code, "clCreateCommandQueue");
    if (known > 1)
        FAILS(INVALID_ARGUMENT, "of device",
              onuma_queue_wrap(first, ONUMA_API_OPENCL, number(q.native), NULL, &q.queue));
    OK(onuma_queue_wrap(second, ONUMA_API_OPENCL, number(q.native), NULL, &q.queue));
    works(&q, parts[1]);
    OK(onuma_queue_release(q.queue));
    OK(onuma_pool_destroy(q.pool));
    release_device(second);
    release_device(first);
    clReleaseCommandQueue(q.native);
    clReleaseContext(both);
    clReleaseDevice(parts[0]);
    clReleaseDevice(parts[1]);
}

static void what_is_no_handle_is_refused(void **state) {
    const world *w = *state;
    place p = enter(w, context_of(&w->chip, 1), w->chip);
    static uint64_t mine[64];
    memset(mine, 0x5a, sizeof mine);
    const uint64_t bad[] = {0,
                            1,
                            7,
                            8,
                            4096,
                            0xdeadbeef,
                            0x7fffffffffff0000,
                            0xff007fffffde0000,
                            UINT64_MAX,
                            UINT64_MAX - 7,
                            number(mine),
                            number(mine) + 3,
                            number(bad),
                            number((const void *)(uintptr_t)&number)};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        onuma_native_device native = ONUMA_NATIVE_DEVICE_INIT;
        onuma_device *none;
        onuma_queue *queue;
        char value[32] = "";
        if (bad[i] != 0) snprintf(value, sizeof value, "0x%llx", (unsigned long long)bad[i]);
        native.context = bad[i];
        native.device = number(w->chip);
        FAILS(INVALID_ARGUMENT, value, onuma_device_adopt(w->rt, ONUMA_API_OPENCL, &native, &none));
        assert_null(none);
        FAILS(INVALID_ARGUMENT, value, onuma_device_from_queue(w->rt, ONUMA_API_OPENCL, bad[i], &none));
        assert_null(none);
        FAILS(INVALID_ARGUMENT, value, onuma_queue_wrap(p.device, ONUMA_API_OPENCL, bad[i], NULL, &queue));
        assert_null(queue);
        if (bad[i] == 0) continue; /* the context's only device */
        native.context = number(p.context);
        native.device = bad[i];
        FAILS(INVALID_ARGUMENT, value, onuma_device_adopt(w->rt, ONUMA_API_OPENCL, &native, &none));
        assert_null(none);
    }
    works(&p, w->chip);
    leave(&p);
    clReleaseCommandQueue(p.native);
    expect_references(p.context, 1);
    clReleaseContext(p.context);
}

/* ------------------------------------------------------------------- imports */

static void imports_that_fail_and_end(void **state) {
    const world *w = *state;
    place p = enter(w, context_of(&w->chip, 1), w->chip);
    enum { SIZE = 4 * 4096 };
    api_deletion deleted = {0}, never = {0};
    onuma_import_desc desc = ONUMA_IMPORT_DESC_INIT;
    void *block, *none;
    char *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    desc.deleter = api_count_deletion;
    desc.user = &never;
    FAILS(INVALID_ARGUMENT, "0 bytes", onuma_import(p.device, memory, 0, &desc, &none));
    FAILS(INVALID_ARGUMENT, "", onuma_import(p.device, NULL, SIZE, &desc, &none));
    FAILS(INVALID_ARGUMENT, "", onuma_import(p.device, memory, SIZE_MAX, &desc, &none));
    FAILS(INVALID_ARGUMENT, "", onuma_import(p.device, memory, SIZE_MAX - 4095, &desc, &none));
    FAILS(NOT_SUPPORTED, "whole pages", onuma_import(p.device, memory + 16, 4096, &desc, &none));
    FAILS(NOT_SUPPORTED, "whole pages", onuma_import(p.device, memory, 4095, &desc, &none));

    /* Of a pool's memory, live and free. */
    OK(onuma_alloc(p.pool, SIZE, 4096, NULL, &block));
    FAILS(CONFLICT, "a pool holds", onuma_import(p.device, block, SIZE, &desc, &none));
    OK(onuma_free(block, NULL));
    FAILS(CONFLICT, "a pool holds", onuma_import(p.device, block, SIZE, &desc, &none));

    /* Each way to overlap another import; then beside it. */
    desc.user = &deleted;
    OK(onuma_import(p.device, memory + 4096, 2 * 4096, &desc, &block));
    desc.user = &never;
    const struct {
        size_t at, size;
    } over[] = {{4096, 8192}, {4096, 4096}, {8192, 4096}, {0, 8192}, {8192, 8192}, {0, SIZE}};
    for (size_t i = 0; i < sizeof over / sizeof *over; i++)
        FAILS(CONFLICT, "another import", onuma_import(p.device, memory + over[i].at, over[i].size, &desc, &none));
    desc.deleter = NULL;
    void *before, *after;
    OK(onuma_import(p.device, memory, 4096, &desc, &before));
    OK(onuma_import(p.device, memory + 3 * 4096, 4096, &desc, &after));
    OK(onuma_free(before, NULL));
    OK(onuma_free(after, NULL));
    OK(onuma_free(block, p.queue));
    for (unsigned i = 0; i < 2000 && deleted.calls == 0; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        (void)onuma_pool_trim(p.pool, 0, NULL);
        OK(onuma_alloc(p.pool, 100, 0, p.queue, &none));
        OK(onuma_free(none, NULL));
    }
    assert_int_equal(deleted.calls, 1);
    assert_int_not_equal(onuma_free(block, NULL), ONUMA_OK);
    assert_int_equal(deleted.calls, 1);
    assert_int_equal(never.calls, 0);

    /* A file, privately and read-only. */
    char name[] = "/tmp/opennuma-foreign-XXXXXX";
    const int file = mkstemp(name);
    assert_true(file >= 0);
    unlink(name);
    unsigned char bytes[8192];
    stamp_bytes(bytes, sizeof bytes, 1, 5);
    assert_int_equal(write(file, bytes, sizeof bytes), sizeof bytes);
    kernel_set k;
    open_kernels(&k, &p, w->chip);
    const int flags[] = {MAP_PRIVATE, MAP_SHARED};
    for (size_t i = 0; i < 2; i++) {
        onuma_view view = ONUMA_VIEW_INIT;
        char *weights = mmap(NULL, sizeof bytes, PROT_READ, flags[i], file, 0);
        assert_ptr_not_equal(weights, MAP_FAILED);
        desc.read_only = true;
        OK(onuma_import(p.device, weights, sizeof bytes, &desc, &block));
        OK(onuma_view_get(block, p.device, ONUMA_API_OPENCL, &view));
        OK(onuma_use(p.queue, block, ONUMA_ACCESS_READ));
        differ_submit(&k, &view, sizeof bytes, 1, 5, NULL);
        OK(onuma_submitted(p.queue, NULL));
        assert_int_equal(kernel_wrong(&k), 0);
        FAILS(INVALID_ARGUMENT, "read-only", onuma_use(p.queue, block, ONUMA_ACCESS_WRITE));
        stamps_forget(&k);
        OK(onuma_free(block, NULL));
        munmap(weights, sizeof bytes);
    }
    close(file);
    kernel_set_close(&k);
    munmap(memory, SIZE);
    leave(&p);
    clReleaseCommandQueue(p.native);
    expect_references(p.context, 1);
    clReleaseContext(p.context);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_segment_is_one_buffer),         TEST(two_contexts_of_one_chip),
        TEST(the_same_memory_in_two_contexts), TEST(the_program_releases_its_context_first),
        TEST(sub_devices_and_several_devices), TEST(what_is_no_handle_is_refused),
        TEST(imports_that_fail_and_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
