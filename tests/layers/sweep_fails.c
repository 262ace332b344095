/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library on a driver that fails: a program's whole life is gone through once for every call that the library
 * makes to the driver, and that call fails (layer `fails`). Each of the library's calls then either succeeds, or tells
 * why and does the same thing rightly when it is asked again; statistics do not move by a failure; and in the end the
 * driver has back every object. What the test itself asks of the driver neither counts nor fails.
 */
#include "control.h"
#include "fails.h"
#include "kernel.h"

#include "../unit/api/api.h"

#include <stdbool.h>
#include <time.h>

#define BYTES (32u << 10)
#define SOON 5000000000ull

static const fails_table *fails;
static unsigned told; /* failures that the library has told of since the last arm */

typedef struct life {
    bool stubborn; /* the driver goes on failing: nothing can be asked again */
    onuma_runtime *rt;
    onuma_device *device;
    onuma_pool *pool;
    onuma_queue *queue;
    cl_command_queue native;
    cl_context context;
    void *block, *other;
    bool held;
} life;

/* ------------------------------------------------------------- one step */

static onuma_pool_stats stats_of(const life *l) {
    onuma_pool_stats stats = ONUMA_POOL_STATS_INIT;
    if (l->pool) OK(onuma_pool_get_stats(l->pool, &stats));
    return stats;
}

static void check_told(const char *what, onuma_result r) {
    if (!fails->failed())
        fail_msg("%s: %s (%s), and no call had failed", what, onuma_result_name(r), onuma_last_error());
    if (strlen(onuma_last_error()) < 20) fail_msg("%s: says only \"%s\"", what, onuma_last_error());
    if (r != ONUMA_ERROR_OUT_OF_MEMORY && r != ONUMA_ERROR_DEVICE_LOST && r != ONUMA_ERROR_INTERNAL &&
        r != ONUMA_ERROR_NOT_SUPPORTED && r != ONUMA_ERROR_NOT_FOUND && r != ONUMA_ERROR_INVALID_ARGUMENT &&
        r != ONUMA_ERROR_BUSY)
        fail_msg("%s: %s is no answer to %s failing (%s)", what, onuma_result_name(r), fails->failed(),
                 onuma_last_error());
    told++;
}

static void check_unmoved(const char *what, const onuma_pool_stats *before, const onuma_pool_stats *after) {
    if (before->in_use_bytes != after->in_use_bytes || before->in_use_blocks != after->in_use_blocks ||
        before->requested_bytes != after->requested_bytes ||
        before->alloc_count - before->free_count != after->alloc_count - after->free_count)
        fail_msg("%s failed and yet moved the statistics: %llu blocks of %llu bytes became %llu of %llu", what,
                 (unsigned long long)before->in_use_blocks, (unsigned long long)before->in_use_bytes,
                 (unsigned long long)after->in_use_blocks, (unsigned long long)after->in_use_bytes);
}

/* The call succeeds, or says why not and succeeds when it is repeated. False: it cannot, since the driver keeps failing. */
#define STEP(l, call)                                                                                                  \
    do {                                                                                                               \
        const onuma_pool_stats before_ = stats_of(l);                                                                  \
        onuma_result step_ = (call);                                                                                   \
        if (step_ != ONUMA_OK) {                                                                                       \
            const onuma_pool_stats after_ = stats_of(l);                                                               \
            check_told(#call, step_);                                                                                  \
            check_unmoved(#call, &before_, &after_);                                                                   \
            if ((l)->stubborn) return false;                                                                           \
            step_ = (call);                                                                                            \
            if (step_ != ONUMA_OK)                                                                                     \
                fail_msg("%s: again %s after %s had failed: %s", #call, onuma_result_name(step_), fails->failed(),     \
                         onuma_last_error());                                                                          \
        }                                                                                                              \
    } while (0)

/* --------------------------------------------------- the test's own driver calls */

static cl_command_queue make_queue(cl_context context, cl_device_id device) {
    cl_int code;
    fails->spare(true);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &code);
    fails->spare(false);
    kernel_ok(code, "clCreateCommandQueue");
    return queue;
}

static void device_fills(life *l, const onuma_view *view, unsigned char value, cl_event *event) {
    fails->spare(true);
    kernel_ok(view->via == ONUMA_VIA_HANDLE
                  ? clEnqueueFillBuffer(l->native, (cl_mem)(uintptr_t)view->handle, &value, 1, view->offset, BYTES, 0,
                                        NULL, event)
                  : clEnqueueSVMMemFill(l->native, (void *)(uintptr_t)view->pointer, &value, 1, BYTES, 0, NULL, event),
              "filling");
    fails->spare(false);
}

static void device_checks(life *l, const onuma_view *view, unsigned char value) {
    static unsigned char bytes[BYTES];
    memset(bytes, 0, sizeof bytes);
    fails->spare(true);
    kernel_ok(
        view->via == ONUMA_VIA_HANDLE
            ? clEnqueueReadBuffer(l->native, (cl_mem)(uintptr_t)view->handle, CL_TRUE, view->offset, BYTES, bytes, 0,
                                  NULL, NULL)
            : clEnqueueSVMMemcpy(l->native, CL_TRUE, bytes, (void *)(uintptr_t)view->pointer, BYTES, 0, NULL, NULL),
        "reading");
    fails->spare(false);
    for (size_t i = 0; i < BYTES; i++)
        assert_int_equal(bytes[i], value);
}

static void release_event(cl_event event) {
    fails->spare(true);
    clReleaseEvent(event);
    fails->spare(false);
}

static void assert_filled(const void *block, size_t size, unsigned char value) {
    for (size_t i = 0; i < size; i++)
        if (((const unsigned char *)block)[i] != value)
            fail_msg("byte %zu is %u instead of %u", i, ((const unsigned char *)block)[i], value);
}

/* ------------------------------------------------------------- a whole life */

/* A driver that does not even say which devices it has leaves the runtime without them: then it is opened again. */
static bool opens(life *l) {
    onuma_runtime_desc desc = ONUMA_RUNTIME_DESC_INIT;
    desc.config = "backends:all";
    STEP(l, onuma_runtime_create(&desc, &l->rt));
    onuma_result r = onuma_device_find(l->rt, "opencl:0", &l->device);
    if (r == ONUMA_OK) return true;
    check_told("onuma_device_find", r);
    if (l->stubborn) return false;
    onuma_runtime_destroy(l->rt);
    STEP(l, onuma_runtime_create(&desc, &l->rt));
    STEP(l, onuma_device_find(l->rt, "opencl:0", &l->device));
    return true;
}

static bool makes_pool(life *l) {
    onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
    onuma_device_info info = ONUMA_DEVICE_INFO_INIT;
    desc.kind = ONUMA_KIND_SHARED;
    STEP(l, onuma_pool_create(l->device, &desc, &l->pool));
    OK(onuma_device_get_info(l->device, &info));
    assert_string_equal(info.shared_via, getenv("ONUMA_TEST_WAY"));
    l->context = (cl_context)(uintptr_t)info.native_context;
    l->native = make_queue(l->context, (cl_device_id)(uintptr_t)info.native_device);
    STEP(l, onuma_queue_wrap(l->device, ONUMA_API_OPENCL, (uintptr_t)l->native, NULL, &l->queue));
    return true;
}

/* The CPU's turn. */
static bool takes_turn(life *l, void *block, onuma_access mode) {
    (void)l;
    STEP(l, onuma_host_acquire(block, BYTES, mode, SOON));
    l->held = true;
    return true;
}

static bool ends_turn(life *l, void *block, onuma_access mode) {
    STEP(l, onuma_host_release(block, BYTES, mode));
    l->held = false;
    return true;
}

static bool works(life *l, bool with_event) {
    onuma_view view = ONUMA_VIEW_INIT;
    onuma_native_event done = ONUMA_NATIVE_EVENT_INIT;
    cl_event event = NULL;
    STEP(l, onuma_view_get(l->block, l->device, ONUMA_API_OPENCL, &view));
    STEP(l, onuma_use(l->queue, l->block, ONUMA_ACCESS_WRITE));
    device_fills(l, &view, 7, &event);
    done.api = ONUMA_API_OPENCL;
    done.handle = (uintptr_t)event;
    STEP(l, onuma_submitted(l->queue, with_event ? &done : NULL));
    release_event(event);
    if (!takes_turn(l, l->block, ONUMA_ACCESS_READ)) return false;
    assert_filled(l->block, BYTES, 7);
    if (!ends_turn(l, l->block, ONUMA_ACCESS_READ)) return false;
    if (!takes_turn(l, l->block, ONUMA_ACCESS_WRITE)) return false;
    memset(l->block, 9, BYTES);
    if (!ends_turn(l, l->block, ONUMA_ACCESS_WRITE)) return false;
    STEP(l, onuma_use(l->queue, l->block, ONUMA_ACCESS_READ));
    device_checks(l, &view, 9);
    STEP(l, onuma_submitted(l->queue, NULL));
    return true;
}

static bool moves(life *l) {
    STEP(l, onuma_alloc_zeroed(l->pool, BYTES, 0, NULL, &l->other));
    if (!takes_turn(l, l->other, ONUMA_ACCESS_READ_WRITE)) return false;
    assert_filled(l->other, BYTES, 0);
    memset(l->other, 3, BYTES);
    if (!ends_turn(l, l->other, ONUMA_ACCESS_READ_WRITE)) return false;
    void *moved = NULL;
    STEP(l, onuma_realloc(l->other, 9 * BYTES, l->queue, &moved));
    l->other = moved;
    if (!takes_turn(l, l->other, ONUMA_ACCESS_READ)) return false;
    assert_filled(l->other, BYTES, 3);
    return ends_turn(l, l->other, ONUMA_ACCESS_READ);
}

static bool imports(life *l) {
    static _Alignas(65536) unsigned char memory[BYTES];
    api_deletion d = {0};
    onuma_import_desc desc = ONUMA_IMPORT_DESC_INIT;
    onuma_view view = ONUMA_VIEW_INIT;
    void *block = NULL;
    desc.deleter = api_count_deletion;
    desc.user = &d;
    memset(memory, 1, sizeof memory);
    STEP(l, onuma_import(l->device, memory, sizeof memory, &desc, &block));
    onuma_result r = onuma_view_get(block, l->device, ONUMA_API_OPENCL, &view);
    if (r != ONUMA_OK && !l->stubborn) r = onuma_view_get(block, l->device, ONUMA_API_OPENCL, &view);
    if (r == ONUMA_OK) device_checks(l, &view, 1);
    STEP(l, onuma_free(block, NULL));
    assert_int_equal(d.calls, 1);
    return r == ONUMA_OK;
}

static bool frees(life *l) {
    STEP(l, onuma_free(l->block, l->queue));
    l->block = NULL;
    STEP(l, onuma_free(l->other, NULL));
    l->other = NULL;
    STEP(l, onuma_pool_trim(l->pool, 0, NULL));
    return true;
}

static bool lives(life *l) {
    if (!opens(l) || !makes_pool(l)) return false;
    STEP(l, onuma_alloc(l->pool, BYTES, 0, l->queue, &l->block));
    return works(l, true) && works(l, false) && moves(l) && imports(l) && frees(l);
}

/* Everything goes back; the driver's objects too. What was left behind when a life broke off is freed first. */
static void ends(life *l, onuma_result *destroyed) {
    if (l->held) (void)onuma_host_release(l->block, BYTES, ONUMA_ACCESS_READ);
    if (l->block) OK(onuma_free(l->block, NULL));
    if (l->other) OK(onuma_free(l->other, NULL));
    if (l->queue) OK(onuma_queue_release(l->queue));
    *destroyed = onuma_pool_destroy(l->pool);
}

static void closes(life *l) {
    onuma_runtime_destroy(l->rt);
    fails->spare(true);
    if (l->native) clReleaseCommandQueue(l->native);
    fails->spare(false);
}

static void check_live(const fails_live *before) {
    fails_live now = fails->live();
    /* The driver may be at the last command still, which holds what it works on. */
    for (int i = 0; i < 1000 && memcmp(&now, before, sizeof now) != 0; i++) {
        const struct timespec moment = {0, 1000000};
        nanosleep(&moment, NULL);
        now = fails->live();
    }
    if (memcmp(&now, before, sizeof now) != 0)
        fail_msg("after %s had failed the library keeps %+ld contexts, %+ld queues, %+ld buffers, %+ld events, %+ld "
                 "pointers",
                 fails->failed() ? fails->failed() : "nothing", now.contexts - before->contexts,
                 now.queues - before->queues, now.buffers - before->buffers, now.events - before->events,
                 now.pointers - before->pointers);
}

/* One life, to its end. *answers: whether the library has told of a failure. */
static uint64_t live_through(const char *what) {
    life l = {0};
    onuma_result destroyed;
    told = 0;
    const fails_live before = fails->live();
    if (!lives(&l)) fail_msg("%s: a life broke off", what);
    const onuma_pool_stats stats = stats_of(&l);
    assert_int_equal(stats.in_use_bytes, 0);
    assert_int_equal(stats.alloc_count, stats.free_count);
    ends(&l, &destroyed);
    if (destroyed != ONUMA_OK) {
        check_told("onuma_pool_destroy", destroyed);
        OK(onuma_pool_destroy(l.pool));
    }
    closes(&l);
    const uint64_t calls = fails->calls();
    check_live(&before);
    return calls;
}

/* ------------------------------------------------------------------ the tests */

static void every_call_fails_once(void **state) {
    (void)state;
    static const int32_t codes[] = {CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY, CL_INVALID_OPERATION};
    fails->arm(NULL, 0, 0, false);
    const uint64_t calls = live_through("nothing fails");
    assert_in_range(calls, 50, 2000);
    assert_int_equal(told, 0);
    unsigned silent = 0, loud = 0;
    for (uint64_t n = 1; n <= calls; n++) {
        char what[64];
        snprintf(what, sizeof what, "call %llu fails", (unsigned long long)n);
        fails->arm(NULL, n, codes[n % 3], false);
        live_through(what);
        if (told == 0)
            silent++;
        else
            loud++;
    }
    print_message("%llu calls: %u failures were told, %u did no harm\n", (unsigned long long)calls, loud, silent);
    assert_true(loud > calls / 4);
    fails->arm(NULL, 0, 0, false);
    live_through("after all");
    assert_int_equal(told, 0);
}

/* ---- work and maps that end with an error, after the driver has taken them */
static void every_event_fails_late(void **state) {
    (void)state;
    unsigned loud = 0, n = 0;
    bool more = true;
    while (more) {
        char what[64];
        snprintf(what, sizeof what, "event %u fails late", ++n);
        fails->arm_event(n, n % 2 ? CL_OUT_OF_RESOURCES : CL_INVALID_OPERATION);
        live_through(what);
        loud += told != 0;
        more = fails->events() >= n;
    }
    print_message("%u events: %u failures were told\n", n - 1, loud);
    const bool maps = strcmp(getenv("ONUMA_TEST_WAY"), "svm_fine") != 0;
    assert_in_range(n - 1, maps ? 10 : 2, 200);
    assert_true(!maps || loud != 0); /* a marker that fails is made anew, and nobody need know */
}

/* ---- a device that is lost, from each call on: told apart, and nothing hangs */
static void life_on_lost_device(bool *told_lost) {
    life l = {.stubborn = true};
    onuma_result destroyed = ONUMA_OK;
    told = 0;
    if (lives(&l)) assert_int_equal(told, 0); /* lost in the moment that everything was done */
    if (told && fails->failed() && strstr(onuma_last_error(), "is gone or was reset")) *told_lost = true;
    ends(&l, &destroyed);
    if (destroyed != ONUMA_OK) {
        if (destroyed != ONUMA_ERROR_BUSY && destroyed != ONUMA_ERROR_DEVICE_LOST)
            fail_msg("onuma_pool_destroy: %s (%s)", onuma_result_name(destroyed), onuma_last_error());
        OK(onuma_pool_destroy_forced(l.pool, 1000000));
    }
    closes(&l);
}

static void a_lost_device_ends_everything(void **state) {
    (void)state;
    fails->arm(NULL, 0, 0, false);
    const uint64_t calls = live_through("nothing fails");
    unsigned lost = 0;
    for (uint64_t n = 1; n <= calls; n += 1 + n / 40) {
        bool told_lost = false;
        fails->arm(NULL, n, CL_DEVICE_NOT_AVAILABLE, true);
        life_on_lost_device(&told_lost);
        lost += told_lost;
    }
    print_message("%llu calls: %u times the device was told to be lost\n", (unsigned long long)calls, lost);
    assert_true(lost > 10);
    fails->arm(NULL, 0, 0, false);
    live_through("after all");
}

/* ---- a driver that counts wrongly */
static void wrong_counts_are_survived(void **state) {
    (void)state;
    static const char *const names[] = {"clGetPlatformIDs", "clGetDeviceIDs", "clGetDeviceInfo", "clGetPlatformInfo"};
    static const int32_t off[] = {-1, 1, 7, 1000};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        for (size_t k = 0; k < sizeof off / sizeof *off; k++) {
            for (uint64_t n = 1; n <= 4; n++) {
                onuma_runtime_desc desc = ONUMA_RUNTIME_DESC_INIT;
                onuma_runtime *rt;
                desc.config = "backends:all";
                fails->arm_lie(names[i], n, off[k]);
                OK(onuma_runtime_create(&desc, &rt));
                assert_in_range(onuma_device_count(rt), 1, 2); /* the host, and PoCL unless it cannot be made out */
                onuma_runtime_destroy(rt);
            }
        }
    }
    fails->arm(NULL, 0, 0, false);
    live_through("after all");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_fails_once),
        cmocka_unit_test(every_event_fails_late),
        cmocka_unit_test(a_lost_device_ends_everything),
        cmocka_unit_test(wrong_counts_are_survived),
    };
    cl_uint number;
    if (clGetPlatformIDs(0, NULL, &number) != CL_SUCCESS) return 1; /* which loads the layer */
    fails = layer_symbol("layer_fails");
    if (!fails) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
