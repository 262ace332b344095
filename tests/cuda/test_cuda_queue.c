/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools and streams through the public functions, on the stand-in: threads that have another context or none, captures,
 * default streams, memory that is used up, a device that is lost.
 */
#include "../unit/api/api.h"
#include "cuda_fixture.h"

#include <pthread.h>

typedef struct fixture {
    api_lines lines;
    onuma_runtime *rt;
    onuma_device *device;
    onuma_pool *pool; /* of kind device */
    void *stream;
    onuma_queue *queue;
} fixture;

static int set_up(void **state) {
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    driver()->reset(&usual);
    f->rt = api_runtime(NULL, &f->lines);
    OK(onuma_device_find(f->rt, "cuda:0", &f->device));
    onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
    desc.kind = ONUMA_KIND_DEVICE;
    OK(onuma_pool_create(f->device, &desc, &f->pool));
    f->stream = driver()->stream(false);
    OK(onuma_queue_wrap(f->device, ONUMA_API_CUDA, (uintptr_t)f->stream, NULL, &f->queue));
    *state = f;
    return 0;
}
static int tear_down(void **state) {
    fixture *f = *state;
    OK(onuma_pool_trim(f->pool, 0, NULL));
    OK(onuma_pool_destroy(f->pool));
    OK(onuma_queue_release(f->queue));
    onuma_runtime_destroy(f->rt);
    if (f->lines.count != 0) fail_msg("%zu lines, first: %s", (size_t)f->lines.count, f->lines.text[0]);
    driver()->drop_stream(f->stream);
    expect_nothing_alive("at the end");
    free(f);
    return 0;
}

static void *take(onuma_pool *pool, size_t size, onuma_queue *queue) {
    void *block = NULL;
    OK(onuma_alloc(pool, size, 0, queue, &block));
    return block;
}

static uint64_t pending(onuma_pool *pool) {
    return api_stats(pool).pending_bytes;
}

/* --------------------------------------------------------------------- memory */

/* Pages come as they are wanted and go back to the card, which then has them. */
static void memory_comes_and_goes(void **state) {
    fixture *f = *state;
    onuma_device_info before = ONUMA_DEVICE_INFO_INIT, amid = before, after = before;
    OK(onuma_device_get_info(f->device, &before));
    void *large = take(f->pool, 20 * MIB, NULL), *small = take(f->pool, 100, NULL);
    OK(onuma_device_get_info(f->device, &amid));
    assert_true(amid.memory_free < before.memory_free);
    assert_int_equal(alive().mapped, api_stats(f->pool).reserved_bytes);
    assert_int_equal(api_stats(f->pool).reserved_bytes % (2 * MIB), 0);
    OK(onuma_free(large, NULL));
    OK(onuma_pool_trim(f->pool, 0, NULL));
    assert_int_equal(api_stats(f->pool).reserved_bytes, 2 * MIB);
    OK(onuma_free(small, NULL));
    OK(onuma_pool_trim(f->pool, 0, NULL));
    OK(onuma_device_get_info(f->device, &after));
    assert_int_equal(after.memory_free, before.memory_free);
    assert_int_equal(alive().mapped, 0);
}

static void memory_ends(void **state) {
    fixture *f = *state;
    void *blocks[16], *more = NULL;
    size_t count = 0;
    while (count < 16 && onuma_alloc(f->pool, 8 * MIB, 0, NULL, &blocks[count]) == ONUMA_OK)
        count++;
    assert_int_equal(count, 8);
    assert_int_equal(onuma_alloc(f->pool, 8 * MIB, 0, NULL, &more), ONUMA_ERROR_OUT_OF_MEMORY);
    assert_null(more);
    assert_non_null(strstr(onuma_last_error(), "CUDA_ERROR_OUT_OF_MEMORY (2)"));
    OK(onuma_free(blocks[--count], NULL));
    blocks[count++] = take(f->pool, 8 * MIB, NULL);
    while (count > 0)
        OK(onuma_free(blocks[--count], NULL));
}

static void imports_are_pinned(void **state) {
    fixture *f = *state;
    static _Alignas(4096) char mine[3 * 4096], others[4096];
    void *block = NULL, *again = NULL;
    OK(onuma_import(f->device, mine, sizeof mine, NULL, &block));
    assert_int_equal(alive().registered, sizeof mine);
    FAILS(CONFLICT, "another import", onuma_import(f->device, mine + 4096, 4096, NULL, &again));
    onuma_view view = ONUMA_VIEW_INIT;
    OK(onuma_view_get(mine + 5, f->device, ONUMA_API_CUDA, &view));
    assert_int_equal(view.pointer, (uintptr_t)mine + 5);
    assert_int_equal(view.via, ONUMA_VIA_POINTER);
    OK(onuma_free(block, NULL));
    assert_int_equal(alive().registered, 0);
    /* What somebody else has pinned already. */
    driver()->refuse(2, 712, false);
    FAILS(CONFLICT, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED (712)",
          onuma_import(f->device, others, sizeof others, NULL, &again));
    driver()->refuse(0, 0, false);
}

/* ------------------------------------------------------------------- streams */

/* What a stream still works on serves that stream at once, and others when it is done. */
static void frees_follow_the_stream(void **state) {
    fixture *f = *state;
    void *block = take(f->pool, 4 * MIB, f->queue);
    driver()->hold(f->stream);
    OK(onuma_free(block, f->queue));
    void *other = take(f->pool, 4 * MIB, NULL);
    assert_ptr_not_equal(other, block);
    assert_ptr_equal(take(f->pool, 4 * MIB, f->queue), block);
    OK(onuma_free(block, f->queue));
    OK(onuma_pool_trim(f->pool, 0, NULL));
    assert_int_equal(pending(f->pool), 4 * MIB);
    driver()->let_go(f->stream);
    OK(onuma_free(other, NULL));
    OK(onuma_pool_trim(f->pool, 0, NULL));
    assert_int_equal(api_stats(f->pool).reserved_bytes, 0);
}

/* Nothing of the library's own harms a capture, and what is freed in it stays until it has ended. */
static void captures_hold_frees_back(void **state) {
    fixture *f = *state;
    void *block = take(f->pool, 4 * MIB, f->queue), *other = NULL;
    driver()->capture(f->stream, true);
    OK(onuma_free(block, f->queue));
    block = take(f->pool, 4 * MIB, f->queue); /* within the graph memory goes round */
    void *grown = take(f->pool, 6 * MIB, f->queue);
    OK(onuma_free(grown, f->queue));
    OK(onuma_free(block, f->queue));
    OK(onuma_pool_trim(f->pool, 0, NULL));
    OK(onuma_alloc(f->pool, 4 * MIB, 0, NULL, &other));
    assert_int_equal(pending(f->pool), 10 * MIB);
    assert_int_equal(alive().broken, 0);
    driver()->capture(f->stream, false);
    OK(onuma_free(other, NULL));
    OK(onuma_pool_trim(f->pool, 0, NULL));
    assert_int_equal(api_stats(f->pool).reserved_bytes, 0);
}

/* Within a capture one stream joins it by waiting for another. */
static void captures_spread_by_waiting(void **state) {
    fixture *f = *state;
    void *stream = driver()->stream(false);
    onuma_queue *second;
    OK(onuma_queue_wrap(f->device, ONUMA_API_CUDA, (uintptr_t)stream, NULL, &second));
    driver()->capture(f->stream, true);
    OK(onuma_queue_wait(second, f->queue, NULL));
    void *block = take(f->pool, MIB, second);
    OK(onuma_free(block, second));
    OK(onuma_pool_trim(f->pool, 0, NULL));
    assert_int_not_equal(pending(f->pool), 0);
    driver()->capture(f->stream, false);
    driver()->capture(stream, false);
    OK(onuma_pool_trim(f->pool, 0, NULL));
    assert_int_equal(pending(f->pool), 0);
    OK(onuma_queue_release(second));
    driver()->drop_stream(stream);
}

static void default_streams_are_streams(void **state) {
    fixture *f = *state;
    for (uint64_t native = 0; native <= 2; native++) {
        onuma_queue *queue;
        OK(onuma_queue_wrap(f->device, ONUMA_API_CUDA, native, NULL, &queue));
        void *block = take(f->pool, MIB, queue);
        OK(onuma_free(block, queue));
        /* The per-thread one is another in each thread, so nothing is reused unseen. */
        void *again = take(f->pool, MIB, queue);
        OK(onuma_free(again, queue));
        driver()->capture(f->stream, true); /* which the legacy stream may not be asked beside */
        void *third = take(f->pool, MIB, queue);
        OK(onuma_free(third, queue));
        OK(onuma_pool_trim(f->pool, 0, NULL));
        driver()->capture(f->stream, false);
        OK(onuma_pool_trim(f->pool, 0, NULL));
        assert_int_equal(api_stats(f->pool).reserved_bytes, 0);
        OK(onuma_queue_release(queue));
    }
    onuma_queue_desc desc = ONUMA_QUEUE_DESC_INIT;
    onuma_queue *queue;
    desc.order = ONUMA_QUEUE_IN_ORDER;
    OK(onuma_queue_wrap(f->device, ONUMA_API_CUDA, 2, NULL, &queue));
    onuma_queue *same;
    assert_int_equal(onuma_queue_wrap(f->device, ONUMA_API_CUDA, 2, &desc, &same), ONUMA_ERROR_INVALID_ARGUMENT);
    OK(onuma_queue_release(queue));
}

static void bad_handles_are_refused(void **state) {
    fixture *f = *state;
    onuma_queue *queue = NULL;
    void *foreign = driver()->stream(true);
    assert_int_equal(onuma_queue_wrap(f->device, ONUMA_API_CUDA, 4711, NULL, &queue), ONUMA_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(onuma_last_error(), "0x1267 is no CUstream"));
    assert_int_equal(onuma_queue_wrap(f->device, ONUMA_API_CUDA, (uintptr_t)foreign, NULL, &queue),
                     ONUMA_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(onuma_last_error(), "primary context"));
    assert_null(queue);
    onuma_native_event event = ONUMA_NATIVE_EVENT_INIT;
    event.api = ONUMA_API_CUDA;
    event.handle = 4711;
    void *block = take(f->pool, MIB, NULL);
    OK(onuma_use(f->queue, block, ONUMA_ACCESS_READ));
    assert_int_equal(onuma_submitted(f->queue, &event), ONUMA_ERROR_INVALID_ARGUMENT);
    OK(onuma_submitted(f->queue, NULL));
    OK(onuma_free(block, NULL));
    driver()->drop_stream(foreign);
}

/* ------------------------------------------------------------------- threads */

static void *work(void *argument) {
    fixture *f = argument;
    for (int i = 0; i < 200; i++) {
        void *block = NULL;
        if (onuma_alloc(f->pool, (size_t)(1 + i % 5) * MIB, 0, i % 2 ? f->queue : NULL, &block) != ONUMA_OK)
            return "no block";
        if (onuma_free(block, i % 3 ? f->queue : NULL) != ONUMA_OK) return "no free";
        if (i % 20 == 0 && onuma_pool_trim(f->pool, 0, NULL) != ONUMA_OK) return "no trim";
    }
    const standin_live now = alive();
    return now.current != 0 || now.mode != 0 ? "the thread's context or mode is another" : NULL;
}

static void threads_need_no_context(void **state) {
    fixture *f = *state;
    pthread_t threads[2];
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, f), 0);
    for (size_t i = 0; i < 2; i++) {
        void *complaint;
        assert_int_equal(pthread_join(threads[i], &complaint), 0);
        if (complaint != NULL) fail_msg("%s", (const char *)complaint);
    }
    assert_int_equal(alive().broken, 0);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

/* Memory that work may still be using is never taken from under it: it stays mapped. */
static void lost_devices_keep_their_memory(void **state) {
    (void)state;
    fixture f = {0};
    driver()->reset(&usual);
    f.rt = api_runtime(NULL, &f.lines);
    OK(onuma_device_find(f.rt, "cuda:0", &f.device));
    onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
    OK(onuma_pool_create(f.device, &desc, &f.pool));
    f.stream = driver()->stream(false);
    OK(onuma_queue_wrap(f.device, ONUMA_API_CUDA, (uintptr_t)f.stream, NULL, &f.queue));
    void *block = take(f.pool, 4 * MIB, f.queue), *other = NULL;
    OK(onuma_free(block, f.queue));
    driver()->refuse(1, 700, true);
    (void)onuma_pool_trim(f.pool, 0, NULL);
    assert_true(alive().mapped >= 4 * MIB);
    assert_int_equal(onuma_alloc(f.pool, 64 * MIB, 0, NULL, &other), ONUMA_ERROR_DEVICE_LOST);
    assert_true(f.lines.count > 0 && strstr(f.lines.text[0], "CUDA_ERROR_ILLEGAL_ADDRESS") != NULL);
    OK(onuma_queue_release(f.queue));
    onuma_runtime_destroy(f.rt);
    assert_true(alive().mapped >= 4 * MIB);
    assert_int_equal(alive().current, 0);
    driver()->refuse(0, 0, false);
    driver()->drop_stream(f.stream);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(memory_comes_and_goes),
        TEST(memory_ends),
        TEST(imports_are_pinned),
        TEST(frees_follow_the_stream),
        TEST(captures_hold_frees_back),
        TEST(captures_spread_by_waiting),
        TEST(default_streams_are_streams),
        TEST(bad_handles_are_refused),
        TEST(threads_need_no_context),
        cmocka_unit_test(lost_devices_keep_their_memory), /* last: something of it stays */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
