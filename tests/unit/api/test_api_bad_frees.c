/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bad frees and foreign owners, table by table: blocks of every sort (small, medium, large, of their own segment,
 * imported, addresses with nothing behind them) freed twice, inside, and after their owner's end, by the thread that
 * allocated them and by another, with a queue and without; objects of another runtime; structs of every version. Each
 * call is refused with the right result and a text that names the value, and the bytes of all that lives stay as they
 * were. test_api_refusals.c has the rest of the interface.
 */
#include "api.h"

#include <pthread.h>

typedef struct sort {
    const char *name;
    size_t size;
    bool simulated, imported;
} sort;

static const sort sorts[] = {
    {"small", 100, false, false},          {"of a whole unit", 4096, false, false},   {"medium", 40000, false, false},
    {"large", 1 << 20, false, false},      {"of its own", 9 << 20, false, false},     {"imported", 8192, false, true},
    {"small addresses", 100, true, false}, {"large addresses", 1 << 20, true, false},
};
enum { SORTS = sizeof sorts / sizeof sorts[0] };

static onuma_runtime *rt, *other_rt;
static onuma_device *host;
static onuma_queue *queue;
static onuma_host_timeline timeline;
static onuma_pool *pools[2]; /* with memory, and without */
static char *watched;        /* lives through it all */
enum { WATCHED = 5000 };

static int set_up(void **state) {
    (void)state;
    rt = api_runtime("backends:host", NULL);
    other_rt = api_runtime("backends:host", NULL);
    host = api_host(rt);
    pools[0] = api_pool(host, 0);
    onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
    desc.simulate = true;
    OK(onuma_pool_create(host, &desc, &pools[1]));
    OK(onuma_queue_wrap(host, ONUMA_API_HOST, (uint64_t)(uintptr_t)&timeline, NULL, &queue));
    OK(onuma_alloc(pools[0], WATCHED, 0, NULL, (void **)&watched));
    api_fill(watched, WATCHED, 0x77);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    api_check(watched, WATCHED, 0x77);
    OK(onuma_free(watched, NULL));
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(api_stats(pools[i]).in_use_blocks, 0);
        OK(onuma_pool_destroy(pools[i]));
    }
    OK(onuma_queue_release(queue));
    onuma_runtime_destroy(other_rt);
    onuma_runtime_destroy(rt);
    return 0;
}

static char *imported_memory(void) {
    static _Alignas(4096) char memory[8192];
    return memory;
}

static char *make(const sort *s, onuma_pool *pool) {
    void *block;
    if (s->imported)
        OK(onuma_import(host, imported_memory(), s->size, NULL, &block));
    else
        OK(onuma_alloc(pool, s->size, 0, NULL, &block));
    if (!s->simulated) api_fill(block, s->size, 0x33);
    return block;
}

/* ------------------------------------------------------------ one bad free */

typedef struct attempt {
    void *ptr;
    onuma_queue *queue;
    onuma_result result;
    char text[512];
} attempt;

static void *try_free(void *argument) {
    attempt *a = argument;
    a->result = onuma_free(a->ptr, a->queue);
    snprintf(a->text, sizeof a->text, "%s", onuma_last_error());
    return NULL;
}

/* Refused as `expected` (or as `or_else`) here and on another thread, with a queue and without. */
static void refused(void *ptr, onuma_result expected, onuma_result or_else) {
    char value[40];
    snprintf(value, sizeof value, "%p", ptr);
    for (unsigned way = 0; way < 4; way++) {
        attempt a = {.ptr = ptr, .queue = way / 2 != 0 ? queue : NULL};
        pthread_t thread;
        if (way % 2 != 0) {
            assert_int_equal(pthread_create(&thread, NULL, try_free, &a), 0);
            pthread_join(thread, NULL);
        } else {
            try_free(&a);
        }
        if (a.result != expected && a.result != or_else)
            fail_msg("freeing %p: %s (%s)", ptr, onuma_result_name(a.result), a.text);
        if (strstr(a.text, value) == NULL) fail_msg("no \"%s\" in \"%s\"", value, a.text);
        api_refusals++;
    }
}

static void frees_inside(void **state) {
    (void)state;
    for (size_t i = 0; i < SORTS; i++) {
        const sort *s = &sorts[i];
        char *block = make(s, pools[s->simulated]);
        const size_t inside[] = {1, 16, s->size / 2, s->size - 1};
        for (size_t k = 0; k < 4; k++)
            refused(block + inside[k], ONUMA_ERROR_INVALID_POINTER, ONUMA_ERROR_INVALID_POINTER);
        if (!s->simulated) api_check(block, s->size, 0x33);
        OK(onuma_free(block, NULL));
    }
}

static void frees_twice(void **state) {
    (void)state;
    for (size_t i = 0; i < SORTS; i++) {
        const sort *s = &sorts[i];
        char *block = make(s, pools[s->simulated]);
        OK(onuma_free(block, NULL));
        refused(block, ONUMA_ERROR_DOUBLE_FREE, ONUMA_ERROR_INVALID_POINTER);
        if (s->size <= 4096 && !s->imported) FAILS(DOUBLE_FREE, "already free", onuma_free(block, NULL));
        void *out;
        onuma_block_info info = ONUMA_BLOCK_INFO_INIT;
        FAILS(INVALID_POINTER, "", onuma_realloc(block, 10, NULL, &out));
        FAILS(INVALID_POINTER, "", onuma_block_get_info(block, &info));
        FAILS(INVALID_POINTER, "", onuma_use(queue, block, ONUMA_ACCESS_READ));
    }
}

/* While a queue holds the free back it is a free already. */
static void frees_twice_while_parked(void **state) {
    (void)state;
    for (size_t i = 0; i < SORTS; i++) {
        const sort *s = &sorts[i];
        char *block = make(s, pools[s->simulated]);
        atomic_fetch_add(&timeline.submitted, 1);
        OK(onuma_use(queue, block, ONUMA_ACCESS_READ));
        OK(onuma_submitted(queue, NULL));
        OK(onuma_free(block, NULL));
        refused(block, ONUMA_ERROR_DOUBLE_FREE, ONUMA_ERROR_DOUBLE_FREE);
        if (s->imported) {
            void *none;
            FAILS(CONFLICT, "in use by a queue", onuma_import(host, block, s->size, NULL, &none));
        }
        atomic_store(&timeline.completed, atomic_load(&timeline.submitted));
        for (unsigned turns = 0; turns < 1000 && onuma_free(block, NULL) == ONUMA_ERROR_DOUBLE_FREE; turns++)
            OK(onuma_pool_trim(pools[s->simulated], 0, NULL));
    }
}

static void frees_after_their_owner(void **state) {
    (void)state;
    for (size_t i = 0; i < SORTS; i++) {
        const sort *s = &sorts[i];
        if (s->imported) continue;
        onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
        onuma_pool *pool;
        desc.simulate = s->simulated;
        OK(onuma_pool_create(host, &desc, &pool));
        char *block = make(s, pool);
        FAILS(BUSY, "", onuma_pool_destroy(pool));
        OK(onuma_pool_destroy_forced(pool, 0));
        refused(block, ONUMA_ERROR_INVALID_POINTER, ONUMA_ERROR_INVALID_POINTER);
        void *out;
        FAILS(INVALID_POINTER, "", onuma_realloc(block, 10, NULL, &out));
        FAILS(INVALID_POINTER, "", onuma_host_acquire(block, 1, ONUMA_ACCESS_READ, 0));
        FAILS(INVALID_ARGUMENT, "not a live pool", onuma_alloc(pool, 10, 0, NULL, &out));
    }
}

static void frees_what_never_was(void **state) {
    (void)state;
    int mine;
    void *bad[] = {&mine,
                   (void *)(uintptr_t)1,
                   (void *)(uintptr_t)8,
                   (void *)(uintptr_t)4096,
                   (void *)UINTPTR_MAX,
                   (void *)(uintptr_t)0xff007fffffde0000,
                   (void *)(uintptr_t)&frees_inside,
                   (void *)rt,
                   (void *)pools[0],
                   (void *)(uintptr_t)INT64_MIN};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refused(bad[i], ONUMA_ERROR_INVALID_POINTER, ONUMA_ERROR_INVALID_POINTER);
}

/* ------------------------------------------------------- of another runtime */

static void objects_of_another_runtime(void **state) {
    (void)state;
    onuma_device *theirs = api_host(other_rt);
    onuma_queue *their_queue;
    onuma_host_timeline line = {0, 0};
    onuma_view view = ONUMA_VIEW_INIT;
    onuma_device *none;
    OK(onuma_queue_wrap(theirs, ONUMA_API_HOST, (uint64_t)(uintptr_t)&line, NULL, &their_queue));
    FAILS(NOT_SUPPORTED, "cannot see", onuma_view_get(watched, theirs, ONUMA_API_HOST, &view));
    FAILS(NOT_SUPPORTED, "cannot wait", onuma_queue_wait(queue, their_queue, NULL));
    FAILS(NOT_FOUND, "77", onuma_device_from_queue(other_rt, 77, 1, &none));
    OK(onuma_queue_release(their_queue));
}

/* ------------------------------------------------------------------- structs */

/* Of every version: all functions that take one, with one byte beyond what is known. */
static void structs_of_later_versions(void **state) {
    (void)state;
    union {
        size_t struct_size;
        onuma_view view;
        onuma_device_info device;
        onuma_pool_stats stats;
        onuma_block_info block;
        onuma_backend_info backend;
        onuma_native_event event;
        onuma_native_device native;
        onuma_queue_desc queue;
        onuma_import_desc import;
        onuma_pool_desc pool;
        onuma_runtime_desc runtime;
        unsigned char bytes[4096];
    } s;
    for (size_t size = 1024; size <= 4096; size *= 2)
        for (unsigned tail = 0; tail < 2; tail++) {
            void *out;
            onuma_pool *p;
            onuma_queue *q;
            onuma_runtime *r;
            onuma_device *d;
            char text[32];
            snprintf(text, sizeof text, "byte %zu", size - 1);
#define FRESH(member, init)                                                                                            \
    do {                                                                                                               \
        memset(&s, 0, sizeof s);                                                                                       \
        s.member = init;                                                                                               \
        s.struct_size = size;                                                                                          \
        s.bytes[size - 1] = (unsigned char)tail;                                                                       \
    } while (0)
#define ASKS(call)                                                                                                     \
    do {                                                                                                               \
        if (tail != 0) FAILS(NOT_SUPPORTED, text, call);                                                               \
    } while (0)
            FRESH(pool, (onuma_pool_desc)ONUMA_POOL_DESC_INIT);
            ASKS(onuma_pool_create(host, &s.pool, &p));
            if (tail == 0) {
                OK(onuma_pool_create(host, &s.pool, &p));
                OK(onuma_pool_destroy(p));
            }
            FRESH(queue, (onuma_queue_desc)ONUMA_QUEUE_DESC_INIT);
            ASKS(onuma_queue_wrap(host, ONUMA_API_HOST, (uint64_t)(uintptr_t)&timeline, &s.queue, &q));
            FRESH(import, (onuma_import_desc)ONUMA_IMPORT_DESC_INIT);
            ASKS(onuma_import(host, imported_memory(), 4096, &s.import, &out));
            FRESH(runtime, (onuma_runtime_desc)ONUMA_RUNTIME_DESC_INIT);
            ASKS(onuma_runtime_create(&s.runtime, &r));
            FRESH(event, (onuma_native_event)ONUMA_NATIVE_EVENT_INIT);
            ASKS(onuma_submitted(queue, &s.event));
            ASKS(onuma_queue_wait(queue, queue, &s.event));
            FRESH(native, (onuma_native_device)ONUMA_NATIVE_DEVICE_INIT);
            ASKS(onuma_device_adopt(rt, ONUMA_API_OPENCL, &s.native, &d));
            /* What is written is not asked for anything, and keeps its end. */
            FRESH(stats, (onuma_pool_stats)ONUMA_POOL_STATS_INIT);
            OK(onuma_pool_get_stats(pools[0], &s.stats));
            assert_int_equal(s.bytes[size - 1], tail);
            FRESH(block, (onuma_block_info)ONUMA_BLOCK_INFO_INIT);
            OK(onuma_block_get_info(watched, &s.block));
            assert_int_equal(s.bytes[size - 1], tail);
            FRESH(device, (onuma_device_info)ONUMA_DEVICE_INFO_INIT);
            OK(onuma_device_get_info(host, &s.device));
            assert_int_equal(s.bytes[size - 1], tail);
            FRESH(backend, (onuma_backend_info)ONUMA_BACKEND_INFO_INIT);
            OK(onuma_backend_get_info(rt, 0, &s.backend));
            assert_int_equal(s.bytes[size - 1], tail);
            FRESH(view, (onuma_view)ONUMA_VIEW_INIT);
            OK(onuma_view_get(watched, host, ONUMA_API_HOST, &s.view));
            assert_int_equal(s.bytes[size - 1], tail);
        }
}

static void enough_calls_were_made(void **state) {
    (void)state;
    print_message("%u calls were refused as they must be\n", api_refusals);
    assert_true(api_refusals >= 300);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(frees_inside),
        TEST(frees_twice),
        TEST(frees_twice_while_parked),
        TEST(frees_after_their_owner),
        TEST(frees_what_never_was),
        TEST(objects_of_another_runtime),
        TEST(structs_of_later_versions),
        cmocka_unit_test(enough_calls_were_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
