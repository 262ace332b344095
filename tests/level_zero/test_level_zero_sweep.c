/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program's whole life on Level Zero, through the public functions, once for each call to the driver, which then
 * fails: the library says so in words, does the same thing rightly when asked again, and gives every object back. And
 * once for each call from which on the device is lost: nothing crashes or hangs, and the losses are told apart.
 */
#include "between.h"

#include "opennuma/opennuma.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define IMPORT_BYTES 65536
#define SECOND UINT64_C(1000000000)

typedef struct life {
    onuma_runtime *rt;
    onuma_device *device;
    onuma_device_info info;
    onuma_pool *pools[3];
    onuma_queue *queues[2];
    uint64_t native[2];
    ze_event_handle_t gate, done;
    void *memory; /* of the program, to import */
    bool lossy;   /* failures go on for good */
    bool lost;    /* one was told */
} life;

static void discard(void *user, onuma_log_level level, const char *line) {
    (void)user, (void)level, (void)line;
}

/* Whether the call is to be made again. Fails the test where no fault explains the failure. */
static bool again(life *l, const char *call, onuma_result r, uint64_t fired_before, int *tries) {
    if (r == ONUMA_OK) return false;
    if (between_fired() == 0)
        fail_msg("%s: %s: %s, and no fault was meant for it", call, onuma_result_name(r), onuma_last_error());
    if (strlen(onuma_last_error()) < 10) fail_msg("%s: no words for %s", call, onuma_result_name(r));
    if (l->lossy) {
        l->lost |= r == ONUMA_ERROR_DEVICE_LOST;
        return false;
    }
    if (between_fired() == fired_before && *tries > 0)
        fail_msg("%s: %s again, though %s works: %s", call, onuma_result_name(r), between_fired_in(),
                 onuma_last_error());
    return ++*tries < 3;
}

#define TRY(l, call)                                                                                                   \
    do {                                                                                                               \
        int tries_ = 0;                                                                                                \
        uint64_t fired_;                                                                                               \
        do                                                                                                             \
            fired_ = between_fired();                                                                                  \
        while (again((l), #call, (call), fired_, &tries_));                                                            \
    } while (0)

/* A driver that failed when it was asked who it is counts as absent; a second runtime asks again. */
static void begin(life *l) {
    onuma_runtime_desc desc = ONUMA_RUNTIME_DESC_INIT;
    desc.log = discard;
    for (int i = 0; i < 2 && l->device == NULL; i++) {
        onuma_runtime_destroy(l->rt);
        l->rt = NULL;
        assert_int_equal(onuma_runtime_create(&desc, &l->rt), ONUMA_OK);
        const onuma_result r = onuma_device_find(l->rt, "level_zero:0", &l->device);
        if (r != ONUMA_OK && between_fired() == 0) fail_msg("%s", onuma_last_error());
    }
    if (l->device == NULL && !l->lossy) fail_msg("no device: %s", onuma_last_error());
}

static void wrap_queues(life *l) {
    const onuma_queue_desc desc = {.struct_size = sizeof desc, .order = ONUMA_QUEUE_IN_ORDER};
    ze_context_handle_t context = (ze_context_handle_t)(uintptr_t)l->info.native_context;
    ze_device_handle_t device = (ze_device_handle_t)(uintptr_t)l->info.native_device;
    if (context == NULL) return; /* the device never opened */
    l->native[0] = between_queue_create(context, device);
    l->native[1] = between_list_create(context, device);
    l->gate = between_event_create(context, device);
    l->done = between_event_create(context, device);
    for (int i = 0; i < 2; i++)
        TRY(l, onuma_queue_wrap(l->device, ONUMA_API_LEVEL_ZERO, l->native[i], &desc, &l->queues[i]));
}

static void use_pool(life *l, onuma_pool *pool, onuma_kind kind) {
    onuma_queue *q0 = l->queues[0], *q1 = l->queues[1];
    void *p = NULL, *big = NULL;
    TRY(l, onuma_alloc(pool, 1000, 0, NULL, &p));
    TRY(l, onuma_alloc(pool, 3u << 20, 0, NULL, &big));
    if (p == NULL || big == NULL || q0 == NULL || q1 == NULL) {
        (void)onuma_free(p, NULL);
        (void)onuma_free(big, NULL);
        return;
    }
    onuma_view view = ONUMA_VIEW_INIT;
    TRY(l, onuma_view_get((char *)p + 8, l->device, ONUMA_API_LEVEL_ZERO, &view));
    assert_int_equal(view.pointer, (uintptr_t)p + 8);
    /* Work of q0 on p that q1's work and the CPU wait for. */
    TRY(l, onuma_use(q0, p, ONUMA_ACCESS_WRITE));
    between_submit(l->native[0], l->gate, NULL);
    TRY(l, onuma_submitted(q0, NULL));
    TRY(l, onuma_queue_wait(q1, q0, NULL));
    between_submit(l->native[1], NULL, l->done);
    assert_false(!l->lossy && between_fired() == 0 && between_event_is_set(l->done));
    if (kind != ONUMA_KIND_DEVICE && !l->lossy)
        assert_int_equal(onuma_host_acquire(p, 1000, ONUMA_ACCESS_READ, 0), ONUMA_ERROR_TIMEOUT);
    TRY(l, onuma_free(big, q1)); /* waits for q1, and with it for q0 */
    between_event_set(l->gate);
    assert_true(between_event_is_set(l->gate)); /* and what waited has run */
    if (kind != ONUMA_KIND_DEVICE) {
        TRY(l, onuma_host_acquire(p, 1000, ONUMA_ACCESS_WRITE, SECOND));
        memset(p, 1, 1000);
        TRY(l, onuma_host_release(p, 1000, ONUMA_ACCESS_WRITE));
    }
    TRY(l, onuma_free(p, q0));
    assert_int_equal(zeEventHostReset(l->gate), ZE_RESULT_SUCCESS);
    assert_int_equal(zeEventHostReset(l->done), ZE_RESULT_SUCCESS);
}

static void import(life *l) {
    void *p = NULL;
    const onuma_result r = onuma_import(l->device, l->memory, IMPORT_BYTES, NULL, &p);
    /* A driver that did not tell how keeps to that. */
    if (r == ONUMA_ERROR_NOT_SUPPORTED && between_fired() != 0 &&
        strcmp(between_fired_in(), "zeDriverGetExtensionFunctionAddress") == 0)
        return;
    if (r != ONUMA_OK) TRY(l, onuma_import(l->device, l->memory, IMPORT_BYTES, NULL, &p));
    TRY(l, onuma_free(p, NULL));
}

static void end(life *l) {
    for (int i = 0; i < 3; i++) {
        if (l->pools[i] == NULL) continue;
        if (l->lossy) {
            (void)onuma_pool_destroy_forced(l->pools[i], SECOND / 100);
            continue;
        }
        TRY(l, onuma_pool_trim(l->pools[i], 0, NULL));
        TRY(l, onuma_pool_destroy(l->pools[i]));
    }
    for (int i = 0; i < 2; i++)
        (void)onuma_queue_release(l->queues[i]);
    /* The program's objects go before the context. */
    if (l->native[0] != 0) {
        between_event_destroy(l->gate);
        between_event_destroy(l->done);
        between_queue_destroy(l->native[0]);
        between_queue_destroy(l->native[1]);
    }
    onuma_runtime_destroy(l->rt);
}

static bool live(bool lossy) {
    const between_books before = between_books_now();
    life l = {.lossy = lossy, .info = ONUMA_DEVICE_INFO_INIT};
    l.memory = mmap(NULL, IMPORT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(l.memory, MAP_FAILED);
    begin(&l);
    if (l.device != NULL) {
        for (onuma_kind kind = 0; kind < 3; kind++) {
            onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
            desc.kind = kind;
            TRY(&l, onuma_pool_create(l.device, &desc, &l.pools[kind]));
        }
        TRY(&l, onuma_device_get_info(l.device, &l.info));
        wrap_queues(&l);
        for (onuma_kind kind = 0; kind < 3; kind++)
            if (l.pools[kind] != NULL) use_pool(&l, l.pools[kind], kind);
        import(&l);
    }
    end(&l);
    munmap(l.memory, IMPORT_BYTES);
    const between_books after = between_books_now();
    if (!lossy && memcmp(&before, &after, sizeof before) != 0)
        fail_msg("after %s failed: %d contexts, %d memory, %d pools, %d events, %d lists, %d imports are left",
                 between_fired() != 0 ? between_fired_in() : "nothing", after.contexts - before.contexts,
                 after.memory - before.memory, after.pools - before.pools, after.events - before.events,
                 after.lists - before.lists, after.imports - before.imports);
    return l.lost;
}

static void nothing_fails(void **state) {
    (void)state;
    live(false);
    between_stand_in(true, BETWEEN_SYSMAN_NEW, UINT64_C(1) << 34);
    live(false);
}

/* Until a life meets no fault. */
static void each_call_fails_once(void **state) {
    (void)state;
    static const ze_result_t codes[] = {ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY, ZE_RESULT_ERROR_UNKNOWN,
                                        ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY, ZE_RESULT_ERROR_UNSUPPORTED_FEATURE};
    uint64_t n = 0;
    do {
        n++;
        between_fail(NULL, n, 1, codes[n % 4]);
        live(false);
    } while (between_fired() != 0);
    print_message("%llu calls failed once\n", (unsigned long long)n - 1);
    assert_true(n > 100);
    between_fail_none();
}

static void the_device_is_lost_at_each_call(void **state) {
    (void)state;
    uint64_t n = 0, told = 0;
    do {
        n++;
        between_fail(NULL, n, UINT64_MAX / 2, ZE_RESULT_ERROR_DEVICE_LOST);
        told += live(true);
    } while (between_fired() != 0);
    assert_true(told > n / 4);
    between_fail_none();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_fails),
        cmocka_unit_test(each_call_fails_once),
        cmocka_unit_test(the_device_is_lost_at_each_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
