/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA backend's table alone: what it makes of a driver, and each call of that driver failing once. */
#include "backend/device.h"
#include "cuda_fixture.h"

#define GRANULE (2 * MIB)

/* ------------------------------------------------------------ a host for it */

static const char *share;
static char logged[512];

static void log_line(const onuma_backend_host *host, onuma_log_level level, const char *format, ...) {
    (void)host;
    (void)level;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(logged, sizeof logged, format, arguments);
    va_end(arguments);
}
static const char *config(const onuma_backend_host *host, const char *key) {
    (void)host;
    return strcmp(key, "cuda.share") == 0 ? share : NULL;
}
static const onuma_backend_host host = {
    .struct_size = sizeof host, .fail = onuma__fail, .log = log_line, .config = config};
static const onuma_backend *const ops = &onuma__backend_cuda;

typedef struct opened {
    onuma_backend_instance *instance;
    onuma_backend_device *device;
    onuma_backend_device_info info;
} opened;

static onuma_result open_first(opened *o) {
    *o = (opened){.info = {.struct_size = sizeof o->info}};
    onuma_result r = ops->open(&host, &o->instance);
    if (r == ONUMA_OK) r = ops->device_open(o->instance, 0, &o->device);
    return r == ONUMA_OK ? ops->device_info(o->device, &o->info) : r;
}
static void close_all(opened *o) {
    if (o->device != NULL) ops->device_close(o->device);
    if (o->instance != NULL) ops->close(o->instance);
}

static int set_up(void **state) {
    (void)state;
    share = "auto";
    logged[0] = '\0';
    driver()->reset(&usual);
    return 0;
}
static int tear_down(void **state) {
    (void)state;
    driver()->refuse(0, 0, false);
    expect_nothing_alive("at the end");
    return 0;
}

/* ------------------------------------------------------- drivers of all sorts */

static void expect_refusal(onuma_result result, const char *words) {
    opened o = {0};
    assert_int_equal(ops->open(&host, &o.instance), result);
    assert_null(o.instance);
    if (strstr(onuma_last_error(), words) == NULL) fail_msg("\"%s\" does not say \"%s\"", onuma_last_error(), words);
}

static void drivers_that_have_nothing_are_absent(void **state) {
    (void)state;
    standin_settings settings = usual;
    settings.init = 100;
    driver()->reset(&settings);
    expect_refusal(ONUMA_ERROR_NOT_FOUND, "CUDA_ERROR_NO_DEVICE (100); the driver finds no GPU");
    settings.init = 34;
    driver()->reset(&settings);
    expect_refusal(ONUMA_ERROR_NOT_FOUND, "toolkit's stand-in");
    settings.init = 803;
    driver()->reset(&settings);
    expect_refusal(ONUMA_ERROR_INTERNAL, "restart the machine");
    settings.init = 12345;
    driver()->reset(&settings);
    expect_refusal(ONUMA_ERROR_INTERNAL, "CUDA error 12345");
    settings.init = settings.devices = 0;
    driver()->reset(&settings);
    expect_refusal(ONUMA_ERROR_NOT_FOUND, "none of its 0 devices");
}

static void devices_are_described_without_a_context(void **state) {
    (void)state;
    standin_settings settings = usual;
    settings.devices = 3;
    driver()->reset(&settings);
    onuma_backend_instance *instance;
    assert_int_equal(ops->open(&host, &instance), ONUMA_OK);
    assert_int_equal(ops->device_count(instance), 3);
    for (size_t i = 0; i < 3; i++) {
        onuma_backend_device_info info = {.struct_size = sizeof info};
        char name[32];
        (void)snprintf(name, sizeof name, "Stand-in %zu", i);
        assert_int_equal(ops->device_query(instance, i, &info), ONUMA_OK);
        assert_string_equal(info.name, name);
        (void)snprintf(name, sizeof name, "pci:0000:%02zx:00.0", 7 + i);
        assert_string_equal(info.physical, name);
        assert_int_equal(info.type, ONUMA_DEVICE_DISCRETE);
        assert_int_equal(info.memory_total, 64 * MIB);
        assert_int_equal(info.proof, ONUMA_PROOF_NONE);
    }
    char text[128];
    ops->describe(instance, text, sizeof text);
    assert_string_equal(text, "CUDA 13.0, 3 devices");
    assert_int_equal(alive().contexts, 0);
    ops->close(instance);
}

typedef struct expectation {
    standin_settings settings;
    const char *share, *via;
    uint32_t kinds, unreserved, notes;
    bool ranges, imports;
    onuma_proof proof;
} expectation;

/* Ways that are announced and do not hold are turned down, for the next. */
static void ways_to_share(void **state) {
    (void)state;
    const uint32_t all = 7, device = 1u << ONUMA_KIND_DEVICE, others = 3;
    standin_settings no_host = usual, none = usual, liar = usual, chip = usual, plain = usual;
    no_host.host_virtual = false;
    none.virtual_memory = none.managed = none.registers = false;
    liar.incoherent = true;
    chip.integrated = true;
    plain.managed = false;
    const expectation table[] = {
        {usual, "auto", "vmm", all, 0, 0, true, true, ONUMA_PROOF_MEASURED},
        {chip, "auto", "vmm", all, 0, 0, true, true, ONUMA_PROOF_MEASURED},
        {usual, "pinned", "pinned", all, others, 0, true, true, ONUMA_PROOF_MEASURED},
        {usual, "managed", "managed", all, others, 0, true, true, ONUMA_PROOF_MEASURED},
        {no_host, "auto", "pinned", all, others, 0, true, true, ONUMA_PROOF_MEASURED},
        {none, "auto", "pinned", all, others, 0, false, false, ONUMA_PROOF_MEASURED},
        {liar, "auto", "pinned", all, others, ONUMA_SHARING_SLOWER, true, true, ONUMA_PROOF_MEASURED},
        {liar, "vmm", "", device, others, 0, true, true, ONUMA_PROOF_FAILED},
        {plain, "managed", "", device, others, ONUMA_SHARING_NOT_OFFERED, true, true, ONUMA_PROOF_FAILED},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const expectation *e = &table[i];
        driver()->reset(&e->settings);
        share = e->share;
        opened o;
        assert_int_equal(open_first(&o), ONUMA_OK);
        assert_string_equal(o.info.shared_via, e->via);
        assert_int_equal(o.info.kinds, e->kinds);
        assert_int_equal(o.info.unreserved_kinds, e->unreserved);
        assert_int_equal(o.info.sharing_notes, e->notes);
        assert_int_equal(o.info.proof, e->proof);
        assert_int_equal(o.info.type, e->settings.integrated ? ONUMA_DEVICE_INTEGRATED : ONUMA_DEVICE_DISCRETE);
        assert_int_equal((o.info.abilities & ONUMA_ABILITY_RESERVE) != 0, e->ranges);
        assert_int_equal((o.info.abilities & ONUMA_ABILITY_IMPORT) != 0, e->imports);
        assert_int_equal(o.info.import_zero_copy, e->imports);
        assert_int_equal(o.info.page_size, e->ranges ? GRANULE : 4096);
        onuma_segment segment = {.struct_size = sizeof segment};
        if (e->proof == ONUMA_PROOF_FAILED)
            assert_int_equal(ops->segment_create(o.device, ONUMA_KIND_SHARED, 1, &segment), ONUMA_ERROR_NOT_SUPPORTED);
        if (e->unreserved != 0)
            assert_int_equal(ops->segment_reserve(o.device, ONUMA_KIND_SHARED, 1, &segment), ONUMA_ERROR_NOT_SUPPORTED);
        close_all(&o);
        expect_nothing_alive(e->via);
    }
}

/* Of managed memory no more is taken than the card has free, though none of it has come there yet. */
static void managed_memory_has_a_bound(void **state) {
    (void)state;
    share = "managed";
    opened o;
    assert_int_equal(open_first(&o), ONUMA_OK);
    onuma_segment first = {.struct_size = sizeof first}, second = first;
    assert_int_equal(ops->segment_create(o.device, ONUMA_KIND_SHARED, 65 * MIB, &second), ONUMA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(ops->segment_create(o.device, ONUMA_KIND_SHARED, 40 * MIB, &first), ONUMA_OK);
    assert_int_equal(ops->segment_create(o.device, ONUMA_KIND_SHARED, 25 * MIB, &second), ONUMA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(ops->segment_create(o.device, ONUMA_KIND_SHARED, 24 * MIB, &second), ONUMA_OK);
    ops->segment_destroy(o.device, &second);
    ops->segment_destroy(o.device, &first);
    assert_int_equal(ops->segment_create(o.device, ONUMA_KIND_SHARED, 64 * MIB, &first), ONUMA_OK);
    ops->segment_destroy(o.device, &first);
    close_all(&o);
}

static void contexts_stay_while_memory_lives(void **state) {
    (void)state;
    opened o;
    onuma_segment segment = {.struct_size = sizeof segment};
    assert_int_equal(open_first(&o), ONUMA_OK);
    assert_int_equal(ops->segment_create(o.device, ONUMA_KIND_DEVICE, MIB, &segment), ONUMA_OK);
    onuma_backend_instance *instance = o.instance;
    onuma_backend_device *again;
    ops->device_close(o.device);
    assert_int_equal(alive().contexts, 1);
    assert_non_null(strstr(logged, "1 segments"));
    assert_int_equal(ops->device_open(instance, 0, &again), ONUMA_OK);
    ops->segment_destroy(again, &segment); /* counts wrongly there, for this test alone */
    assert_int_equal(alive().allocated, 0);
    driver()->reset(&usual);
    free(again);
    ops->close(instance);
}

/* ---------------------------------------------------------------- all of a life */

static onuma_result use_range(opened *o, onuma_kind kind) {
    onuma_segment range = {.struct_size = sizeof range};
    onuma_result r = ops->segment_reserve(o->device, kind, 5 * GRANULE - 1, &range);
    if (r != ONUMA_OK) return r;
    assert_int_equal(range.size, 5 * GRANULE);
    assert_int_equal(range.address, (uintptr_t)range.base);
    const size_t before = alive().mapped; /* what was lost to a fault, if anything */
    r = ops->segment_commit(o->device, &range, GRANULE, 3 * GRANULE);
    if (r == ONUMA_OK) {
        memset((char *)range.base + GRANULE, 1, 3 * GRANULE);
        r = ops->segment_decommit(o->device, &range, 2 * GRANULE, GRANULE); /* a part of what came in one call */
    }
    if (r == ONUMA_OK) assert_int_equal(alive().mapped, before + 2 * GRANULE);
    if (r == ONUMA_OK) r = ops->segment_commit(o->device, &range, 4 * GRANULE, GRANULE);
    ops->segment_destroy(o->device, &range);
    return r;
}

static onuma_result use_segments(opened *o) {
    static _Alignas(4096) char mine[8192];
    onuma_segment segment = {.struct_size = sizeof segment};
    uint64_t available = 0;
    onuma_result r = ops->memory_free(o->device, &available);
    for (onuma_kind kind = ONUMA_KIND_HOST; r == ONUMA_OK && kind <= ONUMA_KIND_DEVICE; kind++) {
        r = ops->segment_create(o->device, kind, 3 * MIB, &segment);
        if (r != ONUMA_OK) return r;
        memset(segment.base, 1, 3 * MIB);
        ops->segment_destroy(o->device, &segment);
    }
    if (r == ONUMA_OK) r = ops->import_host(o->device, mine, sizeof mine, false, &segment);
    if (r != ONUMA_OK) return r;
    assert_ptr_equal(segment.base, mine);
    ops->segment_destroy(o->device, &segment);
    return ONUMA_OK;
}

static onuma_result use_markers(onuma_backend_queue *queue) {
    onuma_backend_marker *marker = NULL;
    bool passed = false;
    onuma_result r = ops->marker_record(queue, &marker);
    if (r != ONUMA_OK) return r;
    r = ops->marker_poll(marker, &passed);
    if (r == ONUMA_OK) assert_true(passed);
    if (r == ONUMA_OK) r = ops->queue_wait_marker(queue, marker);
    ops->marker_destroy(marker);
    return r;
}

static onuma_result use_queue(opened *o, void *stream) {
    onuma_backend_queue *queue = NULL;
    onuma_queue_order order = ONUMA_QUEUE_DETECT;
    onuma_result r = ops->queue_open(o->device, (uintptr_t)stream, &order, &queue);
    if (r != ONUMA_OK) return r;
    assert_int_equal(order, ONUMA_QUEUE_IN_ORDER);
    r = use_markers(queue);
    ops->queue_close(queue);
    return r;
}

static onuma_result live(void *stream) {
    opened o;
    onuma_result r = open_first(&o);
    const bool vmm = r == ONUMA_OK && strcmp(o.info.shared_via, "vmm") == 0;
    if (vmm) r = use_range(&o, ONUMA_KIND_SHARED);
    if (r == ONUMA_OK && (o.info.abilities & ONUMA_ABILITY_RESERVE) != 0) r = use_range(&o, ONUMA_KIND_DEVICE);
    if (r == ONUMA_OK && (o.info.kinds & 1u << ONUMA_KIND_SHARED) != 0 &&
        (o.info.abilities & ONUMA_ABILITY_IMPORT) != 0)
        r = use_segments(&o);
    if (r == ONUMA_OK) r = use_queue(&o, stream);
    close_all(&o);
    return r;
}

/* What cannot be given back because the driver refuses to take it is lost, and nobody's fault. */
static bool gives_back(const char *name) {
    static const char *const names[] = {"cuMemUnmap",         "cuMemRelease",
                                        "cuMemAddressFree",   "cuMemFree_v2",
                                        "cuMemFreeHost",      "cuMemHostUnregister",
                                        "cuCtxPopCurrent_v2", "cuStreamDestroy_v2",
                                        "cuEventDestroy_v2",  "cuDevicePrimaryCtxRelease"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

/* Each call of the driver fails, once: that is told in words, nothing is lost, and the next life is as if nothing had been. */
static void each_call_fails(void **state) {
    (void)state;
    static const struct {
        int code;
        onuma_result result;
        const char *words;
    } codes[] = {{2, ONUMA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY (2)"},
                 {700, ONUMA_ERROR_DEVICE_LOST, "CUDA_ERROR_ILLEGAL_ADDRESS (700)"},
                 {801, ONUMA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED (801)"},
                 {999, ONUMA_ERROR_INTERNAL, "CUDA error 999"}};
    for (size_t c = 0; c < sizeof codes / sizeof codes[0]; c++) {
        size_t refused = 0;
        for (size_t n = 1;; n++) {
            driver()->reset(&usual);
            void *stream = driver()->stream(false);
            driver()->refuse(n, codes[c].code, false);
            const onuma_result r = live(stream);
            const char *name = driver()->failed();
            char when[128];
            (void)snprintf(when, sizeof when, "call %zu, %s, answers %d", n, name == NULL ? "none" : name,
                           codes[c].code);
            if (r != ONUMA_OK && r != codes[c].result && r != ONUMA_ERROR_NOT_FOUND)
                fail_msg("%s: %s: %s", when, onuma_result_name(r), onuma_last_error());
            if (r == codes[c].result && strstr(onuma_last_error(), codes[c].words) == NULL)
                fail_msg("%s: \"%s\"", when, onuma_last_error());
            refused += r != ONUMA_OK;
            driver()->refuse(0, 0, false);
            const bool lost = name != NULL && (gives_back(name) || (r == ONUMA_OK && strstr(name, "Push") != NULL));
            if (!lost) expect_nothing_alive(when);
            while (alive().current != 0) /* of a pop that failed; later tests have this thread too */
                driver()->unwind();
            driver()->drop_stream(stream);
            if (name != NULL) continue;
            assert_int_equal(r, ONUMA_OK); /* the last life had no fault */
            assert_true(n > 80 && refused > 30);
            break;
        }
    }
    driver()->reset(&usual);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(drivers_that_have_nothing_are_absent),
        TEST(devices_are_described_without_a_context),
        TEST(ways_to_share),
        TEST(managed_memory_has_a_bound),
        TEST(contexts_stay_while_memory_lives),
        TEST(each_call_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
