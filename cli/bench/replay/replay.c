/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench replay: traces run through this library's pool, with a range and with segments, and through a pool as PyTorch's
 * native one is made (bench/map_pool.h). How much each holds, how often it calls the driver, and what an operation
 * costs. The times are of runs that take turns; the rest is the same in every run.
 */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/alloc/thread.h"
#include "bench/generate.h"
#include "bench/machine.h"
#include "bench/measured.h"
#include "bench/replay/contest.h"
#include "replay/file.h"

enum { MOST_TRACES = 128, RANGE = 0, SEGMENTS = 1, MAP = 2, CONTESTANTS = 3, MOST_REPEATS = 1000 };

static const char *const names[CONTESTANTS] = {"opennuma-range", "opennuma-segments", "map-and-mutex"};

typedef struct request {
    const char *path, *clock;
    bool generated, json;
    double repeat;
} request;

typedef struct result {
    char name[96];
    size_t operations;
    uint64_t peak_requested;
    contest_figures figures[CONTESTANTS]; /* ns: the median */
    double least[CONTESTANTS], most[CONTESTANTS];
} result;

typedef struct bench {
    const request *request;
    contest_clock *now;
    bool has_map; /* the last contestant's library is there */
    size_t count;
    result results[MOST_TRACES];
    contest_latencies latencies[2];
} bench;

static size_t contestants(const bench *b) {
    return b->has_map ? CONTESTANTS : MAP;
}

/* ---------------------------------------------------------------- measuring */

static bool run_one(bench *b, const trace *t, size_t contestant, contest_figures *out) {
    if (contestant == MAP) return contest_map(t, b->now, out);
    return contest_opennuma(t, contestant == RANGE ? ONUMA_SOURCE_RANGE : ONUMA_SOURCE_SEGMENTS, b->now, out);
}

static bool measure(bench *b, const trace *t, const char *name) {
    if (b->count == MOST_TRACES) {
        cli_error("bench replay: more than %d traces", MOST_TRACES);
        return false;
    }
    result *r = &b->results[b->count++];
    uint64_t largest;
    snprintf(r->name, sizeof r->name, "%s", name);
    r->operations = t->op_count;
    if (!trace_peak(t, 1, &r->peak_requested, &largest) || r->peak_requested == 0) {
        cli_error("bench replay: %s asks for nothing", name);
        return false;
    }
    const size_t repeat = (size_t)b->request->repeat;
    double *times = cli_allocate(CONTESTANTS * repeat * sizeof *times);
    bool ok = true;
    for (size_t round = 0; round < repeat && ok; round++) {
        cli_progress(r->name, round, repeat);
        for (size_t i = 0; i < contestants(b) && ok; i++) {
            ok = run_one(b, t, i, &r->figures[i]);
            times[i * repeat + round] = r->figures[i].ns;
        }
    }
    for (size_t i = 0; i < contestants(b) && ok; i++) {
        const bench_figures own = bench_figures_of(&times[i * repeat], repeat);
        r->figures[i].ns = own.median;
        r->least[i] = own.min;
        r->most[i] = own.max;
    }
    free(times);
    for (size_t i = 0; i < 2 && ok; i++)
        ok = contest_latency(t, i == RANGE ? ONUMA_SOURCE_RANGE : ONUMA_SOURCE_SEGMENTS, b->now, &b->latencies[i]);
    cli_progress_end();
    return ok;
}

static bool measure_file(bench *b, const char *path) {
    trace t;
    char error[256];
    if (!trace_read_file(&t, path, error, sizeof error)) {
        cli_error("%s: %s", path, error);
        return false;
    }
    const char *slash = strrchr(path, '/');
    const bool ok = measure(b, &t, slash ? slash + 1 : path);
    trace_drop(&t);
    return ok;
}

static int compare_texts(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Every trace of a folder, by name; or the one file. */
static bool measure_path(bench *b, const char *path) {
    DIR *folder = opendir(path);
    if (!folder) return measure_file(b, path);
    char *files[MOST_TRACES];
    size_t count = 0;
    for (const struct dirent *entry; count < MOST_TRACES && (entry = readdir(folder)) != NULL;) {
        if (!strstr(entry->d_name, ".csv")) continue;
        const size_t size = strlen(path) + strlen(entry->d_name) + 2;
        files[count] = cli_allocate(size);
        snprintf(files[count++], size, "%s/%s", path, entry->d_name);
    }
    closedir(folder);
    qsort(files, count, sizeof *files, compare_texts);
    bool ok = count > 0;
    if (!ok) cli_error("%s: no traces (*.csv, *.csv.gz) in it", path);
    for (size_t i = 0; i < count; i++) {
        ok = ok && measure_file(b, files[i]);
        free(files[i]);
    }
    return ok;
}

static bool measure_generated(bench *b) {
    static const char *const loads[] = {"training", "inference", "serving"};
    bool ok = true;
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++)
        for (unsigned queues = 1; queues <= GENERATE_MOST_QUEUES && ok; queues *= 2) {
            const generate_request q = {.load = loads[i], .queues = queues, .seed = 1, .operations = 20000};
            char name[64];
            trace t;
            snprintf(name, sizeof name, "%s, %u %s", loads[i], queues, queues == 1 ? "queue" : "queues");
            generate_trace(&q, &t);
            ok = measure(b, &t, name);
            trace_drop(&t);
        }
    return ok;
}

/* ---------------------------------------------------------------- reporting */

static double ratio_of(const result *r, size_t contestant) {
    return (double)r->figures[contestant].peak_reserved / (double)r->peak_requested;
}

static double calls_of(const result *r, size_t contestant) {
    return 1000 * (double)r->figures[contestant].calls / (double)r->operations;
}

typedef struct summary {
    double ratio, worst, calls, ns; /* geometric mean, worst, mean, geometric mean */
} summary;

static summary sum_up(const bench *b, size_t contestant) {
    summary s = {0};
    for (size_t i = 0; i < b->count; i++) {
        const double ratio = ratio_of(&b->results[i], contestant), ns = b->results[i].figures[contestant].ns;
        s.ratio += log(ratio);
        s.worst = fmax(s.worst, ratio);
        s.calls += calls_of(&b->results[i], contestant);
        s.ns += log(ns > 0.01 ? ns : 0.01);
    }
    s.ratio = exp(s.ratio / (double)b->count);
    s.calls /= (double)b->count;
    s.ns = exp(s.ns / (double)b->count);
    return s;
}

static cJSON *result_json(const result *r, size_t i) {
    cJSON *one = cJSON_CreateObject();
    cli_json_text(one, "allocator", names[i]);
    cli_json_number(one, "median", r->figures[i].ns);
    cli_json_number(one, "min", r->least[i]);
    cli_json_number(one, "max", r->most[i]);
    cli_json_integer(one, "peak_reserved", r->figures[i].peak_reserved);
    cli_json_number(one, "ratio", ratio_of(r, i));
    cli_json_integer(one, "driver_calls", r->figures[i].calls);
    cli_json_number(one, "driver_calls_per_1000", calls_of(r, i));
    cli_json_integer(one, "metadata_peak", r->figures[i].metadata_peak);
    return one;
}

static void latencies_json(cJSON *object, const bench *b) {
    cJSON *list = cJSON_AddArrayToObject(object, "latency");
    for (size_t i = 0; i < 2; i++) {
        const contest_latencies *l = &b->latencies[i];
        cJSON *one = cJSON_CreateObject(), *histogram = cJSON_AddArrayToObject(one, "histogram");
        cli_json_text(one, "allocator", names[i]);
        cli_json_integer(one, "operations", l->count);
        cli_json_number(one, "p9999_ns", l->percentile);
        cli_json_integer(one, "max_ns", l->longest);
        cli_json_integer(one, "with_driver_calls", l->called);
        cli_json_integer(one, "with_driver_calls_max_ns", l->called_longest);
        for (unsigned top = 0; top < 64; top++) {
            if (!l->buckets[top]) continue;
            cJSON *bucket = cJSON_CreateObject();
            cli_json_integer(bucket, "from_ns", (uint64_t)1 << top);
            cli_json_integer(bucket, "count", l->buckets[top]);
            cJSON_AddItemToArray(histogram, bucket);
        }
        cJSON_AddItemToArray(list, one);
    }
}

static void report_json(const bench *b) {
    cJSON *object = cJSON_CreateObject();
    cli_json_text(object, "version", onuma_version());
    bench_add_machine(object);
    cli_json_text(object, "clock", b->request->clock);
    cli_json_text(object, "lacking", b->has_map ? "" : names[MAP]);
    cJSON *tests = cJSON_AddArrayToObject(object, "tests");
    for (size_t i = 0; i < b->count; i++) {
        const result *r = &b->results[i];
        cJSON *test = cJSON_CreateObject();
        cli_json_text(test, "name", r->name);
        cli_json_integer(test, "threads", 1);
        cli_json_text(test, "unit", "ns");
        cli_json_integer(test, "ops", r->operations);
        cli_json_integer(test, "peak_requested", r->peak_requested);
        cJSON *results = cJSON_AddArrayToObject(test, "results");
        for (size_t c = 0; c < contestants(b); c++)
            cJSON_AddItemToArray(results, result_json(r, c));
        cJSON_AddItemToArray(tests, test);
    }
    cJSON *all = cJSON_AddArrayToObject(object, "all");
    for (size_t c = 0; c < contestants(b); c++) {
        const summary s = sum_up(b, c);
        cJSON *one = cJSON_CreateObject();
        cli_json_text(one, "allocator", names[c]);
        cli_json_number(one, "ratio", s.ratio);
        cli_json_number(one, "worst_ratio", s.worst);
        cli_json_number(one, "driver_calls_per_1000", s.calls);
        cli_json_number(one, "ns", s.ns);
        cJSON_AddItemToArray(all, one);
    }
    latencies_json(object, b);
    cli_json_print(object);
}

typedef struct cells {
    char ratio[16], calls[16];
} cells;

static cells format(double ratio, double calls) {
    cells c;
    snprintf(c.ratio, sizeof c.ratio, "%.3f", ratio);
    snprintf(c.calls, sizeof c.calls, "%.1f", calls);
    return c;
}

static void report_latencies(const bench *b) {
    printf("\nSingle allocations and frees that called no driver, over all of these:\n");
    for (size_t i = 0; i < 2; i++) {
        const contest_latencies *l = &b->latencies[i];
        printf("  %-18s %llu, 99.99 %% within %s, the longest %s; with driver calls %llu, the longest %s\n", names[i],
               (unsigned long long)l->count, cli_nanoseconds(l->percentile).text,
               cli_nanoseconds((double)l->longest).text, (unsigned long long)l->called,
               cli_nanoseconds((double)l->called_longest).text);
    }
    cli_table *table = cli_table_create(3, ">up to", ">range", ">segments");
    for (unsigned top = 0; top < 64; top++) {
        char counts[2][24];
        for (size_t i = 0; i < 2; i++)
            snprintf(counts[i], sizeof counts[i], "%llu", (unsigned long long)b->latencies[i].buckets[top]);
        if (b->latencies[0].buckets[top] || b->latencies[1].buckets[top])
            cli_table_row(table, cli_nanoseconds(ldexp(1, (int)top + 1)).text, counts[0], counts[1]);
    }
    cli_table_print(table, 2);
}

static void report_text(const bench *b) {
    if (!b->has_map)
        printf(
            "left out: %s, whose library (map_pool.so) is not beside the command; builds for the system itself have it "
            "there\n",
            names[MAP]);
    cli_table *table = cli_table_create(6, "<trace", "<pool", ">held", ">calls", ">metadata", ">per operation");
    for (size_t i = 0; i < b->count; i++)
        for (size_t c = 0; c < contestants(b); c++) {
            const result *r = &b->results[i];
            const cells text = format(ratio_of(r, c), calls_of(r, c));
            cli_table_row(table, c ? "" : r->name, names[c], text.ratio, text.calls,
                          cli_bytes(r->figures[c].metadata_peak).text, cli_nanoseconds(r->figures[c].ns).text);
        }
    for (size_t c = 0; c < contestants(b); c++) {
        const summary s = sum_up(b, c);
        const cells text = format(s.ratio, s.calls);
        cli_table_row(table, c ? "" : "mean", names[c], text.ratio, text.calls, "", cli_nanoseconds(s.ns).text);
    }
    printf("held: peak reserved over peak requested; calls: of the driver, for 1000 operations; time: %s clock\n\n",
           b->request->clock);
    cli_table_print(table, 0);
    report_latencies(b);
}

/* ---------------------------------------------------------------- the command */

static const char summary_text[] =
    "Run traces (a file, or all *.csv and *.csv.gz of a folder) with no memory behind the addresses through a range, "
    "through\n"
    "segments, and through a pool as PyTorch's native one is made: a std::set of free blocks, a map, and a mutex. "
    "What\n"
    "each holds over what the trace asks for at once, calls of the driver, and the time of an operation, less what\n"
    "stepping the trace's queues takes; then the times of single operations.";

int cli_bench_replay(int argc, char **argv) {
    request q = {.clock = "cpu", .repeat = 5};
    const cli_option options[] = {
        {.name = "generated", .help = "made-up loads too, on 1 to 8 queues: see bench generate", .flag = &q.generated},
        {.name = "repeat", .value = "N", .help = "rounds of which the median counts (5)", .number = &q.repeat},
        {.name = "clock",
         .value = "NAME",
         .help = "CPU time of the thread, or the clock on the wall: cpu|wall (cpu)",
         .text = &q.clock,
         .choices = "cpu|wall"},
        CLI_OPTION_JSON(&q.json),
    };
    const cli_usage usage = {"bench replay", "PATH", summary_text, options, sizeof options / sizeof *options, 1};
    int status;
    if (!cli_options_parse(&usage, argc, argv, &q.path, &status) ||
        !bench_is_whole("repeat", q.repeat, MOST_REPEATS, &status))
        return status;
    bench *b = cli_allocate(sizeof *b);
    memset(b, 0, sizeof *b);
    b->request = &q;
    b->now = strcmp(q.clock, "cpu") == 0 ? bench_thread_time : cli_now;
    b->has_map = contest_map_load();
    status = CLI_FAILED;
    if (measure_path(b, q.path) && (!q.generated || measure_generated(b))) {
        contest_latency_end(&b->latencies[0]);
        contest_latency_end(&b->latencies[1]);
        status = CLI_HELD;
        if (q.json)
            report_json(b);
        else
            report_text(b);
    }
    free(b);
    return status;
}
