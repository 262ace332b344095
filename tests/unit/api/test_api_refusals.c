/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bad calls: each is refused with the right result and a text that names the
 * value, and leaves everything as it was. The count at the end holds that no
 * line fell out of the loops.
 */
#include "api.h"

static onuma_runtime *rt;
static onuma_device *device;
static onuma_pool *pool;
static onuma_queue *queue;
static onuma_host_timeline timeline;
static char *block;

static int set_up(void **state) {
    (void)state;
    rt = api_runtime("backends:host", NULL);
    device = api_host(rt);
    pool = api_pool(device, 64 << 20);
    OK(onuma_queue_wrap(device, ONUMA_API_HOST, (uint64_t)(uintptr_t)&timeline, NULL, &queue));
    OK(onuma_alloc(pool, 1000, 0, NULL, (void **)&block));
    api_fill(block, 1000, 0x5a);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    api_check(block, 1000, 0x5a); /* nothing that was refused touched it */
    OK(onuma_free(block, NULL));
    OK(onuma_queue_release(queue));
    OK(onuma_pool_destroy(pool));
    onuma_runtime_destroy(rt);
    return 0;
}

/* Every function that takes a handle, with one that is none. `text` is what the detail says of it. */
static void call_with_runtime(onuma_runtime *bad, const char *text) {
    onuma_device *d;
    onuma_native_device native = ONUMA_NATIVE_DEVICE_INIT;
    onuma_backend_info info = ONUMA_BACKEND_INFO_INIT;
    FAILS(INVALID_ARGUMENT, text, onuma_device_find(bad, "host", &d));
    FAILS(INVALID_ARGUMENT, text, onuma_device_adopt(bad, ONUMA_API_OPENCL, &native, &d));
    FAILS(INVALID_ARGUMENT, text, onuma_device_from_queue(bad, ONUMA_API_OPENCL, 1, &d));
    FAILS(INVALID_ARGUMENT, text, onuma_backend_get_info(bad, 0, &info));
    assert_null(d);
    assert_int_equal(onuma_device_count(bad), 0);
    assert_int_equal(onuma_backend_count(bad), 0);
    assert_null(onuma_device_at(bad, 0));
    onuma_runtime_destroy(bad);
}

static void call_with_device(onuma_device *bad, const char *text) {
    onuma_device_info info = ONUMA_DEVICE_INFO_INIT;
    onuma_pool *p;
    onuma_queue *q;
    onuma_view view = ONUMA_VIEW_INIT;
    void *out;
    static _Alignas(4096) char memory[4096];
    FAILS(INVALID_ARGUMENT, text, onuma_device_get_info(bad, &info));
    FAILS(INVALID_ARGUMENT, text, onuma_device_release(bad));
    FAILS(INVALID_ARGUMENT, text, onuma_pool_create(bad, NULL, &p));
    FAILS(INVALID_ARGUMENT, text, onuma_import(bad, memory, 4096, NULL, &out));
    FAILS(INVALID_ARGUMENT, text, onuma_view_get(block, bad, ONUMA_API_HOST, &view));
    FAILS(INVALID_ARGUMENT, text, onuma_queue_wrap(bad, ONUMA_API_HOST, 1, NULL, &q));
    assert_true(p == NULL && q == NULL && out == NULL);
}

/* `some`: the handle is not NULL, which destroying ignores. */
static void call_with_pool(onuma_pool *bad, const char *text, bool some) {
    void *out = block;
    size_t released = 7;
    onuma_pool_stats stats = ONUMA_POOL_STATS_INIT;
    FAILS(INVALID_ARGUMENT, text, onuma_alloc(bad, 10, 0, NULL, &out));
    assert_null(out);
    FAILS(INVALID_ARGUMENT, text, onuma_alloc_zeroed(bad, 10, 0, NULL, &out));
    FAILS(INVALID_ARGUMENT, text, onuma_pool_trim(bad, 0, &released));
    assert_int_equal(released, 0);
    FAILS(INVALID_ARGUMENT, text, onuma_pool_set_limit(bad, 0));
    FAILS(INVALID_ARGUMENT, text, onuma_pool_set_oom_handler(bad, NULL, NULL));
    FAILS(INVALID_ARGUMENT, text, onuma_pool_get_stats(bad, &stats));
    FAILS(INVALID_ARGUMENT, text, onuma_pool_reset_peak(bad));
    if (!some) return;
    FAILS(INVALID_ARGUMENT, text, onuma_pool_destroy(bad));
    FAILS(INVALID_ARGUMENT, text, onuma_pool_destroy_forced(bad, 0));
}

/* `some`: the handle is not NULL, which is no queue at all where one is optional. */
static void call_with_queue(onuma_queue *bad, const char *text, bool some) {
    void *out, *ptr = block;
    onuma_access mode = ONUMA_ACCESS_READ;
    FAILS(INVALID_ARGUMENT, text, onuma_use(bad, block, mode));
    FAILS(INVALID_ARGUMENT, text, onuma_use_many(bad, 1, &ptr, &mode));
    FAILS(INVALID_ARGUMENT, text, onuma_submitted(bad, NULL));
    FAILS(INVALID_ARGUMENT, text, onuma_queue_wait(bad, queue, NULL));
    FAILS(INVALID_ARGUMENT, text, onuma_queue_wait(queue, bad, NULL));
    if (!some) return;
    FAILS(INVALID_ARGUMENT, text, onuma_queue_release(bad));
    FAILS(INVALID_ARGUMENT, text, onuma_alloc(pool, 10, 0, bad, &out));
    FAILS(INVALID_ARGUMENT, text, onuma_alloc_zeroed(pool, 10, 0, bad, &out));
    FAILS(INVALID_ARGUMENT, text, onuma_free(block, bad));
    FAILS(INVALID_ARGUMENT, text, onuma_realloc(block, 10, bad, &out));
    assert_null(out);
}

static void handles_that_are_none(void **state) {
    (void)state;
    onuma_runtime *dead_rt = api_runtime("backends:host", NULL);
    onuma_device *dead_device = api_host(dead_rt);
    onuma_pool *dead_pool = api_pool(dead_device, 0);
    onuma_queue *dead_queue;
    onuma_host_timeline other = {0, 0};
    OK(onuma_queue_wrap(dead_device, ONUMA_API_HOST, (uint64_t)(uintptr_t)&other, NULL, &dead_queue));
    onuma_runtime_destroy(dead_rt);
    int mine;

    /* NULL, destroyed, each of the other types, the program's own memory, and numbers. */
    void *const bad[] = {NULL,
                         dead_rt,
                         dead_device,
                         dead_pool,
                         dead_queue,
                         rt,
                         device,
                         pool,
                         queue,
                         &mine,
                         block,
                         (void *)UINTPTR_MAX,
                         (void *)(uintptr_t)1,
                         (void *)(uintptr_t)0x1000013};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[64];
        snprintf(text, sizeof text, "(%p) is not a live", bad[i]);
        const char *says = bad[i] != NULL ? text : "is NULL";
        if (bad[i] != rt) call_with_runtime(bad[i], says);
        if (bad[i] != device) call_with_device(bad[i], says);
        if (bad[i] != pool) call_with_pool(bad[i], says, bad[i] != NULL);
        if (bad[i] != queue) call_with_queue(bad[i], says, bad[i] != NULL);
    }
}

static void sizes_and_alignments(void **state) {
    (void)state;
    void *out = block;
    const size_t odd[] = {3, 5, 6, 48, 4097, SIZE_MAX, SIZE_MAX - 1, ((size_t)1 << 63) + 1};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        char text[64];
        snprintf(text, sizeof text, "%zu is not a power of two", odd[i]);
        FAILS(INVALID_ARGUMENT, text, onuma_alloc(pool, 10, odd[i], NULL, &out));
        FAILS(INVALID_ARGUMENT, text, onuma_alloc_zeroed(pool, 10, odd[i], NULL, &out));
        onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
        onuma_pool *p;
        desc.alignment = odd[i];
        FAILS(INVALID_ARGUMENT, text, onuma_pool_create(device, &desc, &p));
    }
    const size_t huge[] = {SIZE_MAX,        SIZE_MAX - 1,    SIZE_MAX - 63,   SIZE_MAX - 4096, SIZE_MAX / 2,
                           (size_t)1 << 63, (size_t)1 << 48, (size_t)1 << 40, (size_t)65 << 20};
    for (size_t i = 0; i < sizeof huge / sizeof *huge; i++) {
        onuma_result r = onuma_alloc(pool, huge[i], 0, NULL, &out);
        assert_true(r == ONUMA_ERROR_OUT_OF_MEMORY || r == ONUMA_ERROR_LIMIT);
        assert_true(strlen(onuma_last_error()) > 20);
        assert_null(out);
        r = onuma_alloc_zeroed(pool, huge[i], 64, queue, &out);
        assert_true(r == ONUMA_ERROR_OUT_OF_MEMORY || r == ONUMA_ERROR_LIMIT);
        r = onuma_realloc(block, huge[i], NULL, &out);
        assert_true(r == ONUMA_ERROR_OUT_OF_MEMORY || r == ONUMA_ERROR_LIMIT);
        api_refusals += 3;
    }
    for (size_t align = (size_t)1 << 28; align != 0; align <<= 1) { /* 256 MiB to 2^63, past any limit or range */
        onuma_result r = onuma_alloc(pool, 10, align, NULL, &out);
        if (r == ONUMA_OK) {
            assert_int_equal((uintptr_t)out % align, 0);
            OK(onuma_free(out, NULL));
            continue;
        }
        assert_true(r == ONUMA_ERROR_OUT_OF_MEMORY || r == ONUMA_ERROR_LIMIT);
        assert_null(out);
        api_refusals++;
    }
    assert_true(api_stats(pool).reserved_bytes <= 64 << 20);
}

static void pool_descs(void **state) {
    (void)state;
    onuma_pool *p;
    onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
    desc.kind = 3;
    FAILS(INVALID_ARGUMENT, "kind 3", onuma_pool_create(device, &desc, &p));
    desc.kind = UINT32_MAX;
    FAILS(INVALID_ARGUMENT, "kind 4294967295", onuma_pool_create(device, &desc, &p));
    desc.kind = ONUMA_KIND_DEVICE;
    FAILS(NOT_SUPPORTED, "no memory of kind device", onuma_pool_create(device, &desc, &p));
    desc = (onuma_pool_desc)ONUMA_POOL_DESC_INIT;
    desc.source = 3;
    FAILS(INVALID_ARGUMENT, "source 3", onuma_pool_create(device, &desc, &p));
    FAILS(INVALID_ARGUMENT, "out is NULL", onuma_pool_create(device, NULL, NULL));
    assert_null(p);
}

static void struct_sizes(void **state) {
    (void)state;
    union {
        size_t struct_size;
        onuma_device_info device;
        onuma_block_info block;
        onuma_pool_stats stats;
        onuma_view view;
        onuma_backend_info backend;
        onuma_native_event event;
        onuma_native_device native;
        onuma_queue_desc queue;
        onuma_import_desc import;
        onuma_pool_desc pool;
        onuma_runtime_desc runtime;
        char bytes[2048];
    } s = {0};
    const size_t wrong[] = {0, 1, 7, 8, 4097, SIZE_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        onuma_runtime *r;
        onuma_device *d;
        onuma_pool *p;
        onuma_queue *q;
        void *out;
        char text[64];
        snprintf(text, sizeof text, "struct_size %zu,", wrong[i]);
        s.struct_size = wrong[i];
        FAILS(INVALID_ARGUMENT, text, onuma_device_get_info(device, &s.device));
        FAILS(INVALID_ARGUMENT, text, onuma_block_get_info(block, &s.block));
        FAILS(INVALID_ARGUMENT, text, onuma_pool_get_stats(pool, &s.stats));
        FAILS(INVALID_ARGUMENT, text, onuma_view_get(block, device, ONUMA_API_HOST, &s.view));
        FAILS(INVALID_ARGUMENT, text, onuma_view_release(&s.view));
        FAILS(INVALID_ARGUMENT, text, onuma_backend_get_info(rt, 0, &s.backend));
        FAILS(INVALID_ARGUMENT, text, onuma_submitted(queue, &s.event));
        FAILS(INVALID_ARGUMENT, text, onuma_queue_wait(queue, queue, &s.event));
        FAILS(INVALID_ARGUMENT, text, onuma_device_adopt(rt, ONUMA_API_OPENCL, &s.native, &d));
        FAILS(INVALID_ARGUMENT, text, onuma_queue_wrap(device, ONUMA_API_HOST, 1, &s.queue, &q));
        FAILS(INVALID_ARGUMENT, text, onuma_import(device, &s, 64, &s.import, &out));
        FAILS(INVALID_ARGUMENT, text, onuma_pool_create(device, &s.pool, &p));
        FAILS(INVALID_ARGUMENT, text, onuma_runtime_create(&s.runtime, &r));
        assert_true(r == NULL && d == NULL && p == NULL && q == NULL && out == NULL);
    }
    /* Larger, and what is beyond our knowledge asks for something. */
    onuma_queue *q;
    s.struct_size = 1024;
    s.bytes[1000] = 1;
    FAILS(NOT_SUPPORTED, "byte 1000", onuma_queue_wrap(device, ONUMA_API_HOST, 1, &s.queue, &q));
    FAILS(NOT_SUPPORTED, "byte 1000 of onuma_native_event is 1", onuma_submitted(queue, &s.event));
}

static void null_pointers(void **state) {
    (void)state;
    onuma_access mode = ONUMA_ACCESS_READ;
    void *out, *ptr = block;
    FAILS(INVALID_ARGUMENT, "out is NULL", onuma_alloc(pool, 10, 0, NULL, NULL));
    FAILS(INVALID_ARGUMENT, "out is NULL", onuma_alloc_zeroed(pool, 10, 0, NULL, NULL));
    FAILS(INVALID_ARGUMENT, "out is NULL", onuma_realloc(block, 10, NULL, NULL));
    FAILS(INVALID_ARGUMENT, "out is NULL", onuma_import(device, block, 10, NULL, NULL));
    FAILS(INVALID_ARGUMENT, "out is NULL", onuma_runtime_create(NULL, NULL));
    FAILS(INVALID_ARGUMENT, "out is NULL", onuma_device_find(rt, "host", NULL));
    FAILS(INVALID_ARGUMENT, "out is NULL", onuma_device_from_queue(rt, ONUMA_API_OPENCL, 1, NULL));
    FAILS(INVALID_ARGUMENT, "out is NULL", onuma_queue_wrap(device, ONUMA_API_HOST, 1, NULL, NULL));
    onuma_device *d;
    FAILS(INVALID_ARGUMENT, "id is NULL", onuma_device_find(rt, NULL, &d));
    FAILS(INVALID_ARGUMENT, "onuma_native_device is NULL", onuma_device_adopt(rt, ONUMA_API_OPENCL, NULL, &d));
    FAILS(INVALID_ARGUMENT, "NULL", onuma_device_get_info(device, NULL));
    FAILS(INVALID_ARGUMENT, "NULL", onuma_block_get_info(block, NULL));
    FAILS(INVALID_ARGUMENT, "NULL", onuma_pool_get_stats(pool, NULL));
    FAILS(INVALID_ARGUMENT, "NULL", onuma_view_get(block, device, ONUMA_API_HOST, NULL));
    FAILS(INVALID_ARGUMENT, "NULL", onuma_view_release(NULL));
    FAILS(INVALID_ARGUMENT, "NULL", onuma_backend_get_info(rt, 0, NULL));
    FAILS(INVALID_ARGUMENT, "ptrs is NULL", onuma_use_many(queue, 1, NULL, &mode));
    FAILS(INVALID_ARGUMENT, "modes is NULL", onuma_use_many(queue, 1, &ptr, NULL));
    FAILS(INVALID_POINTER, "NULL", onuma_realloc(NULL, 10, NULL, &out));
    onuma_backend_info info = ONUMA_BACKEND_INFO_INIT;
    FAILS(INVALID_ARGUMENT, "i is 99", onuma_backend_get_info(rt, 99, &info));
}

static void pointers_that_name_no_block(void **state) {
    (void)state;
    int mine;
    void *freed, *beside, *out;
    char *large;
    OK(onuma_alloc(pool, 2000, 0, NULL, &freed));
    OK(onuma_alloc(pool, 2000, 0, NULL, &beside)); /* or the memory of both may be another block's at once */
    OK(onuma_free(freed, NULL));
    OK(onuma_alloc(pool, 2 << 20, 0, NULL, (void **)&large));
    void *const bad[] = {
        NULL,        &mine, freed, (void *)(uintptr_t)1, (void *)UINTPTR_MAX, (void *)(uintptr_t)0xff007fffffde0000,
        (void *)pool};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        onuma_block_info info = ONUMA_BLOCK_INFO_INIT;
        onuma_view view = ONUMA_VIEW_INIT;
        FAILS(INVALID_POINTER, "", onuma_block_get_info(bad[i], &info));
        FAILS(INVALID_POINTER, "", onuma_view_get(bad[i], device, ONUMA_API_HOST, &view));
        FAILS(INVALID_POINTER, "", onuma_use(queue, bad[i], ONUMA_ACCESS_READ));
        FAILS(INVALID_POINTER, "", onuma_host_acquire(bad[i], 1, ONUMA_ACCESS_READ, 0));
        FAILS(INVALID_POINTER, "", onuma_host_release(bad[i], 1, ONUMA_ACCESS_READ));
        FAILS(INVALID_POINTER, "", onuma_realloc(bad[i], 10, NULL, &out));
        if (bad[i] != NULL && bad[i] != freed) FAILS(INVALID_POINTER, "", onuma_free(bad[i], NULL));
        if (bad[i] != NULL && bad[i] != freed) FAILS(INVALID_POINTER, "", onuma_free(bad[i], queue));
    }
    FAILS(DOUBLE_FREE, "", onuma_free(freed, NULL));
    FAILS(DOUBLE_FREE, "", onuma_free(freed, queue));
    const size_t inside[] = {1, 8, 64, 999};
    for (size_t i = 0; i < 4; i++) {
        FAILS(INVALID_POINTER, "", onuma_free(block + inside[i], NULL));
        FAILS(INVALID_POINTER, "", onuma_free(large + inside[i] * 2000, NULL));
        FAILS(INVALID_POINTER, "inside", onuma_realloc(block + inside[i], 10, NULL, &out));
    }
    onuma_pool *gone = api_pool(device, 0);
    void *orphan;
    OK(onuma_alloc(gone, 100, 0, NULL, &orphan));
    OK(onuma_pool_destroy_forced(gone, 0));
    FAILS(INVALID_POINTER, "", onuma_free(orphan, NULL));
    OK(onuma_free(beside, NULL));
    OK(onuma_free(large, NULL));
    assert_int_not_equal(onuma_free(large, NULL), ONUMA_OK);
}

static void accesses_and_queues(void **state) {
    (void)state;
    onuma_queue *q;
    void *ptr = block;
    const onuma_access odd[] = {0, 4, 8, UINT32_MAX};
    for (size_t i = 0; i < 4; i++) {
        FAILS(INVALID_ARGUMENT, "onuma_use: mode", onuma_use(queue, block, odd[i]));
        FAILS(INVALID_ARGUMENT, "ONUMA_ACCESS_", onuma_use_many(queue, 1, &ptr, &odd[i]));
        FAILS(INVALID_ARGUMENT, "ONUMA_ACCESS_", onuma_host_acquire(block, 10, odd[i], 0));
        FAILS(INVALID_ARGUMENT, "ONUMA_ACCESS_", onuma_host_release(block, 10, odd[i]));
    }
    onuma_block_info info = ONUMA_BLOCK_INFO_INIT;
    OK(onuma_block_get_info(block, &info));
    FAILS(INVALID_ARGUMENT, "", onuma_host_acquire(block, info.size + 1, ONUMA_ACCESS_READ, 0));
    FAILS(INVALID_ARGUMENT, "", onuma_host_acquire(block + 500, info.size - 499, ONUMA_ACCESS_READ, 0));
    FAILS(INVALID_ARGUMENT, "", onuma_host_acquire(block, SIZE_MAX, ONUMA_ACCESS_READ, 0));
    const onuma_api others[] = {ONUMA_API_OPENCL, ONUMA_API_CUDA, 99, UINT32_MAX};
    for (size_t i = 0; i < 4; i++) {
        onuma_view view = ONUMA_VIEW_INIT;
        onuma_device *d;
        FAILS(NOT_SUPPORTED, "", onuma_view_get(block, device, others[i], &view));
        assert_int_not_equal(onuma_queue_wrap(device, others[i], 1, NULL, &q), ONUMA_OK);
        assert_int_not_equal(onuma_device_from_queue(rt, others[i], 1, &d), ONUMA_OK);
        assert_true(q == NULL && d == NULL);
        api_refusals += 2;
    }
    onuma_queue_desc desc = ONUMA_QUEUE_DESC_INIT;
    desc.order = 3;
    FAILS(INVALID_ARGUMENT, "order", onuma_queue_wrap(device, ONUMA_API_HOST, 1, &desc, &q));
    FAILS(INVALID_ARGUMENT, "", onuma_queue_wrap(device, ONUMA_API_HOST, 0, NULL, &q));
    onuma_view view = ONUMA_VIEW_INIT;
    view.flags = 2;
    FAILS(INVALID_ARGUMENT, "flags", onuma_view_get(block, device, ONUMA_API_HOST, &view));
    view.flags = 0;
    OK(onuma_view_get(block, device, ONUMA_API_HOST, &view));
    FAILS(INVALID_ARGUMENT, "", onuma_view_release(&view));
    view.struct_size = offsetof(onuma_view, reserved);
    view.flags = ONUMA_VIEW_RETAIN;
    FAILS(INVALID_ARGUMENT, "no room", onuma_view_get(block, device, ONUMA_API_HOST, &view));
    onuma_native_event event = ONUMA_NATIVE_EVENT_INIT;
    event.api = ONUMA_API_OPENCL;
    OK(onuma_use(queue, block, ONUMA_ACCESS_READ));
    FAILS(INVALID_ARGUMENT, "", onuma_submitted(queue, &event));
    OK(onuma_submitted(queue, NULL));
}

static void enough_calls_were_made(void **state) {
    (void)state;
    assert_true(api_refusals >= 600);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(handles_that_are_none),
        TEST(sizes_and_alignments),
        TEST(pool_descs),
        TEST(struct_sizes),
        TEST(null_pointers),
        TEST(pointers_that_name_no_block),
        TEST(accesses_and_queues),
        cmocka_unit_test(enough_calls_were_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
