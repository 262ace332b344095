/* SPDX-License-Identifier: Apache-2.0 */
/* bench alloc: the time of allocations and frees, next to other allocators in the same run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/alloc/measure.h"
#include "bench/alloc/peers.h"
#include "bench/alloc/report.h"
#include "bench/alloc/thread.h"
#include "bench/alloc/touch.h"
#include "bench/bench.h"

enum { MOST_REPEATS = 10000 };

typedef struct request {
    const char *only, *allocators, *clock, *peers_from;
    double repeat, threads, depth, milliseconds;
    bool peers, json;
} request;

/* Is `name` in a list "a,b", or, with families, does it begin with one there: "lifo-64-touched" with "lifo"? */
static bool is_listed(const char *list, const char *name, bool families) {
    for (const char *at = list; *at; at += *at == ',') {
        size_t length = strcspn(at, ",");
        if (length && strncmp(name, at, length) == 0 && (!name[length] || (families && name[length] == '-')))
            return true;
        at += length;
    }
    return false;
}

/* --------------------------------------------------------------- allocators */

typedef struct contest {
    bench_allocator allocators[BENCH_MOST_ALLOCATORS];
    size_t count;
    bench_peers peers;
} contest;

static void enter(contest *c, const request *q, const bench_allocator *allocator) {
    if (!q->allocators || is_listed(q->allocators, allocator->name, false)) c->allocators[c->count++] = *allocator;
}

static bool gather(contest *c, const request *q, int *status) {
    *c = (contest){0};
    char *folder = NULL;
    if (q->peers && !q->peers_from) {
        folder = bench_peers_folder();
        if (!folder) {
            *status = cli_bad_request("--peers: there are no peers beside this command's build; scripts/setup.sh bench "
                                      "fetches them, and --peers-from names another folder");
            return false;
        }
    }
    bool loaded = !(q->peers || q->peers_from) || bench_peers_load(q->peers_from ? q->peers_from : folder, &c->peers);
    free(folder);
    if (!loaded) {
        *status = CLI_BAD_REQUEST;
        return false;
    }
    const bench_allocator opennuma = bench_opennuma(), libc = bench_libc();
    enter(c, q, &opennuma);
    for (size_t i = 0; i < c->peers.count; i++)
        enter(c, q, &c->peers.allocators[i]);
    enter(c, q, &libc);
    if (c->count > 0) return true;
    *status = cli_bad_request("--allocator: there is no \"%.100s\" here%s", q->allocators,
                              q->peers ? "" : "; with --peers there are more than opennuma and the C library's");
    return false;
}

/* ---------------------------------------------------------------- measuring */

static bool is_chosen(const request *q, const bench_test *test) {
    return !q->only || is_listed(q->only, test->name, true);
}

static int measure_all(const request *q, const contest *c) {
    const bench_plan plan = {.repeat = (unsigned)q->repeat, .duration = (uint64_t)(q->milliseconds * 1e6)};
    bench_test all[BENCH_MOST_TESTS], tests[BENCH_MOST_TESTS];
    size_t all_count = bench_tests((unsigned)q->threads, (size_t)q->depth, all), count = 0;
    for (size_t i = 0; i < all_count; i++)
        if (is_chosen(q, &all[i])) tests[count++] = all[i];
    if (count == 0)
        return cli_bad_request("--only: there is no test \"%.100s\"; see opennuma bench alloc --help", q->only);
    bench_outcome *outcomes = cli_allocate(count * sizeof *outcomes);
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) {
        cli_progress("bench alloc", i, count);
        ok = bench_measure(&plan, &tests[i], c->allocators, c->count, &outcomes[i]);
    }
    cli_progress_end();
    const bench_report report = {.plan = &plan,
                                 .by_cpu = strcmp(q->clock, "cpu") == 0,
                                 .depth = (size_t)q->depth,
                                 .allocators = c->allocators,
                                 .allocator_count = c->count,
                                 .lacking = c->peers.lacking,
                                 .outcomes = outcomes,
                                 .outcome_count = count};
    if (ok) (q->json ? bench_report_json : bench_report_text)(&report);
    free(outcomes);
    return ok ? CLI_HELD : CLI_FAILED;
}

/* ------------------------------------------------------------------ request */

static const char summary[] =
    "Measure the time of an allocation and its free, as one thread sees it, next to other allocators that take turns "
    "in\n"
    "the same run. Before a test is timed its blocks are filled and looked at again: aligned, apart, unchanged.\n"
    "  lifo-64 to lifo-16M  blocks of that size, the last allocated is the first freed\n"
    "  rand-1, rand-2, ...  each of so many threads holds 1000 blocks of 64 B to 1 MiB and replaces them at random\n"
    "  prodcons-1K, -rand   one thread allocates, another frees; the time of the same with no allocator is taken off\n"
    "  lookup               which block a pointer belongs to, among 100000\n"
    "All but the last also with a byte of every page touched (lifo-64-touched).";

static bool is_sound(const request *q, int *status) {
    return bench_is_whole("repeat", q->repeat, MOST_REPEATS, status) &&
           bench_is_whole("depth", q->depth, BENCH_DEEPEST, status) &&
           bench_is_whole("threads", q->threads, BENCH_MOST_THREADS, status) &&
           bench_is_duration(q->milliseconds, status);
}

int cli_bench_alloc(int argc, char **argv) {
    request q = {.repeat = 9, .threads = bench_processors(), .depth = 1, .milliseconds = 10, .clock = "wall"};
    const cli_option options[] = {
        {.name = "peers", .help = "mimalloc, jemalloc and UMF's pools too (scripts/setup.sh bench)", .flag = &q.peers},
        {.name = "peers-from", .value = "DIR", .help = "the same, their libraries from DIR", .text = &q.peers_from},
        {.name = "allocator", .value = "NAME,...", .help = "of the allocators these alone", .text = &q.allocators},
        {.name = "only",
         .value = "TEST,...",
         .help = "these tests, and all whose names begin so: lifo, rand-2, prodcons-1K",
         .text = &q.only},
        {.name = "threads", .value = "N", .help = "most threads of rand (all processors)", .number = &q.threads},
        {.name = "depth", .value = "N", .help = "blocks that lifo holds at once (1)", .number = &q.depth},
        {.name = "repeat", .value = "N", .help = "measurements of which the median counts (9)", .number = &q.repeat},
        {.name = "milliseconds", .value = "F", .help = "that one measurement takes (10)", .number = &q.milliseconds},
        {.name = "clock",
         .value = "NAME",
         .help = "what counts: wall|cpu; cpu on a machine that others use too (wall)",
         .text = &q.clock,
         .choices = "wall|cpu"},
        CLI_OPTION_JSON(&q.json),
    };
    const cli_usage usage = {"bench alloc", "", summary, options, sizeof options / sizeof *options, 0};
    int status;
    if (!cli_options_parse(&usage, argc, argv, NULL, &status) || !is_sound(&q, &status)) return status;
    if ((q.peers || q.peers_from) && !bench_peers_prepare(argc, argv)) return CLI_BAD_REQUEST;
    contest c;
    return gather(&c, &q, &status) ? measure_all(&q, &c) : status;
}
