/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench sync: what it costs to follow the rules of sharing, on the host device, whose queues are a counter and whose
 * markers cost next to nothing, so that what is measured is the library.
 *
 * Every test is a loop; its turns are grouped in rounds, of which the median counts. Tests that belong together take
 * turns, so that what disturbs the machine for a while disturbs both.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/alloc/thread.h"
#include "bench/bench.h"
#include "bench/measured.h"

enum { MANY = 16, MOST_REPEATS = 10000 };

typedef struct world {
    onuma_runtime *runtime;
    onuma_pool *pool;
    onuma_queue *queue;
    onuma_host_timeline timeline;
    void *blocks[MANY];
    onuma_access modes[MANY];
    size_t size; /* of blocks that are allocated and freed */
    bool failed;
} world;

typedef struct test {
    const char *name, *help;
    void (*turn)(world *w);
    size_t size;
    unsigned calls; /* that a turn's time is divided by */
} test;

static void check(world *w, onuma_result r) {
    if (r != ONUMA_OK) w->failed = true;
}

/* -------------------------------------------------------------------- tests */

static void acquire_release(world *w) {
    check(w, onuma_host_acquire(w->blocks[0], 64, ONUMA_ACCESS_WRITE, 0));
    check(w, onuma_host_release(w->blocks[0], 64, ONUMA_ACCESS_WRITE));
}

/* A marker costs what a driver takes for it: here the submission of nothing. */
static void submit(world *w) {
    const uint64_t number = atomic_fetch_add_explicit(&w->timeline.submitted, 1, memory_order_relaxed);
    atomic_store_explicit(&w->timeline.completed, number + 1, memory_order_release);
}

static void use_submitted(world *w) {
    check(w, onuma_use(w->queue, w->blocks[0], ONUMA_ACCESS_READ));
    submit(w);
    check(w, onuma_submitted(w->queue, NULL));
}

static void use_submitted_event(world *w) {
    onuma_native_event event = ONUMA_NATIVE_EVENT_INIT;
    check(w, onuma_use(w->queue, w->blocks[0], ONUMA_ACCESS_READ));
    submit(w);
    event.api = ONUMA_API_HOST;
    event.handle = atomic_load_explicit(&w->timeline.submitted, memory_order_relaxed);
    check(w, onuma_submitted(w->queue, &event));
}

static void use_many_submitted(world *w) {
    check(w, onuma_use_many(w->queue, MANY, w->blocks, w->modes));
    submit(w);
    check(w, onuma_submitted(w->queue, NULL));
}

static void hand_over(world *w) {
    use_submitted(w);
    acquire_release(w);
}

static void alloc_free(world *w) {
    void *block = NULL;
    check(w, onuma_alloc(w->pool, w->size, 0, NULL, &block));
    check(w, onuma_free(block, NULL));
}

static void alloc_free_queue(world *w) {
    void *block = NULL;
    check(w, onuma_alloc(w->pool, w->size, 0, w->queue, &block));
    check(w, onuma_free(block, w->queue));
}

static const test tests[] = {
    {"acquire-release", "the CPU takes and gives back an idle block", acquire_release, 0, 1},
    {"use-submitted", "a queue's access announced and marked", use_submitted, 0, 1},
    {"use-submitted-event", "the same with an event", use_submitted_event, 0, 1},
    {"use-many-submitted", "one of 16 accesses announced and marked together", use_many_submitted, 0, MANY},
    {"hand-over", "a queue's access and then the CPU's", hand_over, 0, 1},
    {"alloc-free-256", "allocation and free without a queue", alloc_free, 256, 1},
    {"alloc-free-256-queue", "with one", alloc_free_queue, 256, 1},
    {"alloc-free-64K", "without", alloc_free, (size_t)1 << 16, 1},
    {"alloc-free-64K-queue", "with", alloc_free_queue, (size_t)1 << 16, 1},
    {"alloc-free-4M", "without", alloc_free, (size_t)1 << 22, 1},
    {"alloc-free-4M-queue", "with", alloc_free_queue, (size_t)1 << 22, 1},
};

enum { TESTS = sizeof tests / sizeof *tests };

/* ---------------------------------------------------------------- measuring */

static bool open_world(world *w) {
    onuma_device *device;
    onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
    onuma_result r = onuma_runtime_create(NULL, &w->runtime);
    if (r == ONUMA_OK) r = onuma_device_find(w->runtime, "host", &device);
    if (r == ONUMA_OK) r = onuma_pool_create(device, &desc, &w->pool);
    if (r == ONUMA_OK) r = onuma_queue_wrap(device, ONUMA_API_HOST, (uintptr_t)&w->timeline, NULL, &w->queue);
    for (size_t i = 0; i < MANY && r == ONUMA_OK; i++) {
        r = onuma_alloc(w->pool, 4096, 0, NULL, &w->blocks[i]);
        w->modes[i] = i % 2 ? ONUMA_ACCESS_READ : ONUMA_ACCESS_WRITE;
    }
    if (r != ONUMA_OK) cli_error("bench sync: %s: %s", onuma_result_name(r), onuma_last_error());
    return r == ONUMA_OK;
}

static void close_world(world *w) {
    for (size_t i = 0; i < MANY; i++)
        onuma_free(w->blocks[i], NULL);
    onuma_queue_release(w->queue);
    onuma_pool_destroy(w->pool);
    onuma_runtime_destroy(w->runtime);
}

typedef uint64_t clock_function(void);

static double time_turns(world *w, const test *t, uint64_t turns, clock_function *now) {
    w->size = t->size;
    const uint64_t begin = now();
    for (uint64_t i = 0; i < turns; i++)
        t->turn(w);
    return (double)(now() - begin) / ((double)turns * t->calls);
}

/* So many turns as take the time. */
static uint64_t count_turns(world *w, const test *t, double ns, clock_function *now) {
    uint64_t turns = 16;
    double took;
    while ((took = time_turns(w, t, turns, now) * (double)turns * t->calls) < ns && turns < UINT64_C(1) << 32)
        turns = took * 16 < ns ? turns * 8 : turns * 2;
    return turns;
}

typedef struct request {
    double repeat, milliseconds;
    const char *clock;
    bool json;
} request;

static bool measure(world *w, const request *q, bench_figures *out) {
    clock_function *now = strcmp(q->clock, "cpu") == 0 ? bench_thread_time : cli_now;
    const size_t repeat = (size_t)q->repeat;
    double *times = cli_allocate(TESTS * repeat * sizeof *times);
    uint64_t turns[TESTS];
    for (size_t i = 0; i < TESTS; i++)
        turns[i] = count_turns(w, &tests[i], q->milliseconds * 1e6, now);
    for (size_t round = 0; round < repeat && !w->failed; round++) {
        cli_progress("bench sync", round, repeat);
        for (size_t i = 0; i < TESTS; i++)
            times[i * repeat + round] = time_turns(w, &tests[i], turns[i], now);
    }
    cli_progress_end();
    for (size_t i = 0; i < TESTS; i++)
        out[i] = bench_figures_of(&times[i * repeat], repeat);
    free(times);
    if (w->failed) cli_error("bench sync: %s", onuma_last_error());
    return !w->failed;
}

/* ---------------------------------------------------------------- reporting */

static void report_json(const request *q, const bench_figures *all) {
    cJSON *object = cJSON_CreateObject();
    cli_json_text(object, "version", onuma_version());
    cli_json_text(object, "device", "host");
    cli_json_text(object, "clock", q->clock);
    cJSON *list = cJSON_AddArrayToObject(object, "tests");
    for (size_t i = 0; i < TESTS; i++) {
        cJSON *one = cJSON_CreateObject(), *result = cJSON_CreateObject();
        cli_json_text(one, "name", tests[i].name);
        cli_json_integer(one, "threads", 1);
        cli_json_text(one, "unit", "ns");
        cli_json_text(result, "allocator", "opennuma");
        cli_json_number(result, "median", all[i].median);
        cli_json_number(result, "min", all[i].min);
        cli_json_number(result, "max", all[i].max);
        cJSON_AddItemToArray(cJSON_AddArrayToObject(one, "results"), result);
        cJSON_AddItemToArray(list, one);
    }
    cli_json_print(object);
}

static void report_text(const bench_figures *all) {
    cli_table *table = cli_table_create(5, "<test", ">median", ">min", ">max", "<what");
    for (size_t i = 0; i < TESTS; i++)
        cli_table_row(table, tests[i].name, cli_nanoseconds(all[i].median).text, cli_nanoseconds(all[i].min).text,
                      cli_nanoseconds(all[i].max).text, tests[i].help);
    cli_table_print(table, 0);
}

static const char summary[] = "Measure what following the rules of sharing costs: announcing accesses, taking a block "
                              "over, and allocating for a\n"
                              "queue. On the host device, where a driver's part is next to nothing.";

int cli_bench_sync(int argc, char **argv) {
    request q = {.repeat = 9, .milliseconds = 10, .clock = "wall"};
    const cli_option options[] = {
        {.name = "repeat", .value = "N", .help = "measurements of which the median counts (9)", .number = &q.repeat},
        {.name = "milliseconds", .value = "F", .help = "that one measurement takes (10)", .number = &q.milliseconds},
        {.name = "clock",
         .value = "NAME",
         .help = "what counts: wall|cpu; cpu on a machine that others use too (wall)",
         .text = &q.clock,
         .choices = "wall|cpu"},
        CLI_OPTION_JSON(&q.json),
    };
    const cli_usage usage = {"bench sync", "", summary, options, sizeof options / sizeof *options, 0};
    int status;
    if (!cli_options_parse(&usage, argc, argv, NULL, &status) ||
        !bench_is_whole("repeat", q.repeat, MOST_REPEATS, &status) || !bench_is_duration(q.milliseconds, &status))
        return status;
    world w = {0};
    bench_figures all[TESTS];
    const bool good = open_world(&w) && measure(&w, &q, all);
    if (good) {
        if (q.json)
            report_json(&q, all);
        else
            report_text(all);
    }
    close_world(&w);
    return good ? CLI_HELD : CLI_FAILED;
}
