/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frees that must wait for a queue while there is no memory at all, for anything: none is refused, none is early, and
 * when there is memory again each comes back, small blocks and large ones, imports too.
 */
#include "fault.h"

#include <opennuma/opennuma.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BLOCKS = 200, IMPORTS = 3, IMPORT_BYTES = 4096 };

typedef struct fixture {
    onuma_runtime *rt;
    onuma_device *host;
    onuma_pool *pool;
    onuma_host_timeline at[2];
    onuma_queue *ordered, *unordered;
    void *blocks[BLOCKS];
    unsigned errors, deleted;
} fixture;

static const size_t sizes[] = {32, 500, 4096, 70000, 1 << 20};

static void hear(void *user, onuma_log_level level, const char *line) {
    (void)line;
    if (level <= ONUMA_LOG_ERROR) ((fixture *)user)->errors++;
}

static int set_up(void **state) {
    fixture *f = calloc(1, sizeof *f);
    onuma_runtime_desc runtime = ONUMA_RUNTIME_DESC_INIT;
    onuma_pool_desc pool = ONUMA_POOL_DESC_INIT;
    onuma_queue_desc queue = ONUMA_QUEUE_DESC_INIT;
    assert_non_null(f);
    runtime.config = "backends:host,log:error";
    runtime.log = hear;
    runtime.log_user = f;
    assert_int_equal(onuma_runtime_create(&runtime, &f->rt), ONUMA_OK);
    assert_int_equal(onuma_device_find(f->rt, "host", &f->host), ONUMA_OK);
    assert_int_equal(onuma_pool_create(f->host, &pool, &f->pool), ONUMA_OK);
    queue.order = ONUMA_QUEUE_IN_ORDER;
    assert_int_equal(onuma_queue_wrap(f->host, ONUMA_API_HOST, (uintptr_t)&f->at[0], &queue, &f->ordered), ONUMA_OK);
    queue.order = ONUMA_QUEUE_UNORDERED;
    assert_int_equal(onuma_queue_wrap(f->host, ONUMA_API_HOST, (uintptr_t)&f->at[1], &queue, &f->unordered), ONUMA_OK);
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    fault_arm(NULL);
    assert_int_equal(onuma_pool_destroy(f->pool), ONUMA_OK); /* everything has come back */
    assert_int_equal(onuma_queue_release(f->ordered), ONUMA_OK);
    assert_int_equal(onuma_queue_release(f->unordered), ONUMA_OK);
    onuma_runtime_destroy(f->rt);
    assert_int_equal(f->errors, 0);
    free(f);
    return 0;
}

static void memory_is_out(bool out) {
    static const fault_plan nothing_left = {
        .site = FAULT_memory, .nth = 1, .times = UINT64_MAX, .result = ONUMA_ERROR_OUT_OF_MEMORY};
    fault_arm(out ? &nothing_left : NULL);
}

static void submit(fixture *f) {
    for (int i = 0; i < 2; i++)
        atomic_fetch_add(&f->at[i].submitted, 1);
}

static void finish(fixture *f, int i) {
    atomic_store(&f->at[i].completed, atomic_load(&f->at[i].submitted));
}

static onuma_pool_stats stats_of(const fixture *f) {
    onuma_pool_stats stats = ONUMA_POOL_STATS_INIT;
    assert_int_equal(onuma_pool_get_stats(f->pool, &stats), ONUMA_OK);
    return stats;
}

static void take_blocks(fixture *f) {
    for (size_t i = 0; i < BLOCKS; i++) {
        const size_t size = sizes[i % (sizeof sizes / sizeof sizes[0])];
        assert_int_equal(onuma_alloc(f->pool, size, 0, i % 2 ? f->unordered : NULL, &f->blocks[i]), ONUMA_OK);
    }
}

/* Nobody but the CPU has them, and they are freed on a queue; or a queue has, and they are freed on another. */
static void free_without_memory(fixture *f) {
    memory_is_out(true);
    for (size_t i = 0; i < BLOCKS; i++) {
        assert_int_equal(onuma_free(f->blocks[i], f->ordered), ONUMA_OK);
        assert_int_not_equal(onuma_free(f->blocks[i], f->ordered), ONUMA_OK);
    }
    assert_int_not_equal(fault_fired(), 0);
}

static bool is_one(const fixture *f, const void *p) {
    for (size_t i = 0; i < BLOCKS; i++)
        if (f->blocks[i] == p) return true;
    return false;
}

/* What is allocated now is none of them. */
static void nobody_gets_one(fixture *f) {
    void *others[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        assert_int_equal(onuma_alloc(f->pool, sizes[i % (sizeof sizes / sizeof sizes[0])], 0, NULL, &others[i]),
                         ONUMA_OK);
        assert_false(is_one(f, others[i]));
    }
    for (size_t i = 0; i < BLOCKS; i++)
        assert_int_equal(onuma_free(others[i], NULL), ONUMA_OK);
}

static void frees_without_memory_wait_and_come_back(void **state) {
    fixture *f = *state;
    take_blocks(f);
    submit(f);
    free_without_memory(f);
    const uint64_t pending = stats_of(f).pending_bytes;
    assert_true(pending >= 40u << 20);
    (void)onuma_pool_trim(f->pool, 0, NULL); /* polls, still without memory */
    assert_int_equal(stats_of(f).pending_bytes, pending);

    memory_is_out(false);
    nobody_gets_one(f);
    assert_int_equal(stats_of(f).pending_bytes, pending);
    finish(f, 1); /* of the ones that the unordered queue had, the other queue is still to pass */
    nobody_gets_one(f);
    assert_int_equal(stats_of(f).pending_bytes, pending);
    finish(f, 0);
    (void)onuma_pool_trim(f->pool, 0, NULL);
    assert_int_equal(stats_of(f).pending_bytes, 0);
    assert_int_equal(stats_of(f).reserved_bytes, 0);
}

static void queues_go_while_frees_are_without_memory(void **state) {
    fixture *f = *state;
    onuma_queue_desc desc = ONUMA_QUEUE_DESC_INIT;
    onuma_host_timeline timeline = {0};
    onuma_queue *passing;
    void *block;
    assert_int_equal(onuma_queue_wrap(f->host, ONUMA_API_HOST, (uintptr_t)&timeline, &desc, &passing), ONUMA_OK);
    assert_int_equal(onuma_alloc(f->pool, 4096, 0, NULL, &block), ONUMA_OK);
    atomic_store(&timeline.submitted, 1);
    memory_is_out(true);
    assert_int_equal(onuma_free(block, passing), ONUMA_OK);
    assert_int_equal(onuma_queue_release(passing), ONUMA_OK);
    memory_is_out(false);
    (void)onuma_pool_trim(f->pool, 0, NULL);
    assert_int_not_equal(stats_of(f).pending_bytes, 0);
    atomic_store(&timeline.completed, 1);
    (void)onuma_pool_trim(f->pool, 0, NULL);
    assert_int_equal(stats_of(f).pending_bytes, 0);
}

static _Alignas(IMPORT_BYTES) unsigned char programs_own[IMPORTS][IMPORT_BYTES];

static void count_deleted(void *user, void *host) {
    (void)host;
    ((fixture *)user)->deleted++;
}

static void imports_wait_without_memory_too(void **state) {
    fixture *f = *state;
    onuma_import_desc desc = ONUMA_IMPORT_DESC_INIT;
    void *imports[IMPORTS];
    desc.deleter = count_deleted;
    desc.user = f;
    for (size_t i = 0; i < IMPORTS; i++) {
        assert_int_equal(onuma_import(f->host, programs_own[i], IMPORT_BYTES, &desc, &imports[i]), ONUMA_OK);
    }
    submit(f);
    memory_is_out(true);
    for (size_t i = 0; i < IMPORTS; i++)
        assert_int_equal(onuma_free(imports[i], f->ordered), ONUMA_OK);
    memory_is_out(false);
    take_blocks(f);
    for (size_t i = 0; i < BLOCKS; i++) /* frees that wait: they look after imports as well */
        assert_int_equal(onuma_free(f->blocks[i], f->ordered), ONUMA_OK);
    assert_int_equal(f->deleted, 0);
    finish(f, 0);
    finish(f, 1);
    take_blocks(f);
    for (size_t i = 0; i < BLOCKS; i++)
        assert_int_equal(onuma_free(f->blocks[i], f->ordered), ONUMA_OK);
    assert_int_equal(f->deleted, IMPORTS);
}

int main(void) {
    fault_start();
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(frees_without_memory_wait_and_come_back),
        TEST(queues_go_while_frees_are_without_memory),
        TEST(imports_wait_without_memory_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
