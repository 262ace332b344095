/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_fault_model [--full]
 *
 * The engine's model (tests/model/), with one call of the system or of the source of segments failing in each run. An
 * operation that failed has said why, left an engine that is whole, and works when it is made again; so the reference
 * never notices. Without --full the calls that fail lie further apart the further on.
 */
#include "fault.h"
#include "model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define OPERATIONS 1500u

static bool full;
static model m;
static uint64_t seen; /* faults that were accounted for */
static uint64_t runs;

static uint64_t fired(void) {
    const bool by_source = m.source.fail_at != 0 && m.source.calls >= m.source.fail_at;
    return fault_fired() + by_source;
}

/* Whether the call failed by a fault, and is to be made again. */
static bool again(const char *call, onuma_result r) {
    const uint64_t now = fired();
    const bool faulty = now != seen;
    seen = now;
    if (faulty && onuma__engine_check(m.engine) != ONUMA_OK) {
        model_fail(&m, "after a fault in %s the engine is broken: %s", call, onuma__thread_text());
        return false;
    }
    if (!faulty || r != ONUMA_ERROR_OUT_OF_MEMORY) return false; /* the model judges what it is */
    if (onuma__thread_text()[0] == '\0') model_fail(&m, "%s fails without a word", call);
    return true;
}

static onuma_result alloc(onuma__engine *engine, size_t size, size_t align, onuma__tag tag, void **out) {
    onuma_result r;
    do
        r = onuma__engine_alloc(engine, size, align, tag, out);
    while (again("alloc", r));
    return r;
}

static onuma_result grow(onuma__engine *engine, size_t size, size_t align, onuma__tag tag, void **out) {
    for (;;) {
        onuma_result r = onuma__engine_grow(engine, size, align, tag, out);
        if (!again("grow", r)) {
            if (r == ONUMA_OK && *out == NULL) r = onuma__engine_alloc(engine, size, align, tag, out);
            if (r != ONUMA__MISS) return r;
        }
    }
}

static onuma_result free_block(void *ptr, onuma__tag tag, onuma__engine **engine) {
    const onuma_result r = onuma__engine_free(ptr, tag, engine);
    (void)again("free", ONUMA_OK);
    return r;
}

static void release(onuma__engine *engine, void *base) {
    onuma__engine_release(engine, base);
    (void)again("release", ONUMA_OK);
}

static onuma_result resize(void *base, size_t size) {
    onuma_result r;
    do
        r = onuma__engine_resize(base, size);
    while (again("resize", r));
    return r;
}

static size_t trim(onuma__engine *engine, size_t keep) {
    size_t released = onuma__engine_trim(engine, keep);
    if (again("trim", ONUMA_ERROR_OUT_OF_MEMORY)) released += onuma__engine_trim(engine, keep);
    return released;
}

static const engine_calls calls = {
    "failing", alloc, grow, free_block, release, onuma__engine_find, resize, trim, onuma__engine_get_stats};

/* Whether the fault was met. */
static bool run(onuma_source mode, uint64_t seed, const fault_plan *plan, uint64_t source_call) {
    fault_arm(plan);
    runs++;
    seen = 0;
    uint64_t random = seed;
    while (!model_open(&m, &calls, mode, 1, seed)) {
        if (fault_fired() == seen) fail_msg("no engine: %s", m.failure);
        seen = fault_fired();
        model_close(&m);
    }
    seen = fired();
    m.source.fail_at = source_call;
    worker *w = &m.workers[0];
    for (size_t i = 0; i < OPERATIONS && !atomic_load(&m.failed); i++) {
        const operation o = operation_draw(&random);
        operation_run(w, &o);
    }
    worker_receive_all(w);
    if (!atomic_load(&m.failed)) reference_compare(&m);
    if (!atomic_load(&m.failed)) worker_finish(w);
    model_close(&m);
    const bool met = fired() != 0;
    fault_arm(NULL);
    const char *violation = fault_violation();
    if (violation != NULL) model_fail(&m, "%s", violation);
    if (atomic_load(&m.failed))
        fail_msg("%s, seed %llu, with call %llu of %s failing: %s", mode == ONUMA_SOURCE_RANGE ? "range" : "segments",
                 (unsigned long long)seed, (unsigned long long)(plan != NULL ? plan->nth : source_call),
                 plan != NULL ? fault_site_name(plan->site) : "the source", m.failure);
    return met;
}

static uint64_t next(uint64_t n) {
    return full || n < 64 ? n + 1 : n + 1 + n / 16;
}

static void sweep_site(fault_site site) {
    for (onuma_source mode = ONUMA_SOURCE_RANGE; mode <= ONUMA_SOURCE_SEGMENTS; mode++)
        for (uint64_t seed = 1; seed <= (full ? 4 : 1); seed++)
            for (uint64_t n = 1;; n = next(n)) {
                const fault_plan plan = {.site = site, .nth = n, .times = 1, .result = ONUMA_ERROR_OUT_OF_MEMORY};
                if (!run(mode, seed, &plan, 0)) break;
            }
}

static void memory_is_out(void **state) {
    (void)state;
    sweep_site(FAULT_memory);
}

static void the_system_maps_nothing(void **state) {
    (void)state;
    sweep_site(FAULT_os_map);
}

static void threads_cannot_be_stopped(void **state) {
    (void)state;
    sweep_site(FAULT_os_barrier);
}

static void the_source_fails(void **state) {
    (void)state;
    for (onuma_source mode = ONUMA_SOURCE_RANGE; mode <= ONUMA_SOURCE_SEGMENTS; mode++)
        for (uint64_t seed = 1; seed <= (full ? 4 : 1); seed++)
            for (uint64_t n = 1; run(mode, seed, NULL, n); n = next(n))
                continue;
}

int main(int argc, char **argv) {
    full = argc > 1 && strcmp(argv[1], "--full") == 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_out),
        cmocka_unit_test(the_system_maps_nothing),
        cmocka_unit_test(threads_cannot_be_stopped),
        cmocka_unit_test(the_source_fails),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    printf("%llu runs\n", (unsigned long long)runs);
    return failed;
}
