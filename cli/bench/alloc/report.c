/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/alloc/report.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/alloc/thread.h"
#include "bench/machine.h"
#include "json.h"
#include "opennuma/opennuma.h"
#include "table.h"
#include "units.h"

/* --------------------------------------------------------- what is compared */

static const bench_figures *figures(const bench_report *report, const bench_result *result) {
    return report->by_cpu ? &result->cpu : &result->wall;
}

/* The fastest of the peers, by median; NULL where none took part. */
static const bench_result *best_peer(const bench_report *report, const bench_outcome *outcome) {
    const bench_result *best = NULL;
    for (size_t i = 0; i < outcome->count; i++) {
        const bench_result *result = &outcome->results[i];
        if (result->allocator->is_peer && (!best || figures(report, result)->median < figures(report, best)->median))
            best = result;
    }
    return best;
}

/* NaN, which is printed as nothing, where there is no best peer or it took no time that can be measured. */
static double to_best(const bench_report *report, const bench_result *result, const bench_result *best) {
    double of_best = best && result->allocator != &bench_null ? figures(report, best)->median : 0;
    return of_best > 0 ? figures(report, result)->median / of_best : NAN;
}

/* The same test with one thread; NULL if it did not run, or this is it. */
static const bench_outcome *alone(const bench_report *report, const bench_outcome *outcome) {
    if (!outcome->test.family->scales || outcome->test.threads == 1) return NULL;
    for (size_t i = 0; i < report->outcome_count; i++) {
        const bench_outcome *other = &report->outcomes[i];
        if (other->test.family == outcome->test.family && other->test.threads == 1 &&
            other->test.touch == outcome->test.touch)
            return other;
    }
    return NULL;
}

/*
 * By how much an allocator scales as well as the loop that shares nothing: 1 is as well. Always by the clock, since a
 * thread that waits for another takes no CPU time.
 */
static double scaling(const bench_outcome *outcome, size_t i, const bench_outcome *single) {
    double loop = single->compute.wall.median / outcome->compute.wall.median;
    return single->results[i].wall.median / outcome->results[i].wall.median / loop;
}

/* --------------------------------------------------------------------- JSON */

static void add_figures(cJSON *object, const bench_figures *f) {
    cli_json_number(object, "median", f->median);
    cli_json_number(object, "min", f->min);
    cli_json_number(object, "max", f->max);
}

static cJSON *json_result(const bench_report *report, const bench_outcome *outcome, size_t i) {
    const bench_result *result = &outcome->results[i];
    cJSON *object = cJSON_CreateObject();
    cli_json_text(object, "allocator", result->allocator->name);
    add_figures(object, figures(report, result));
    add_figures(cJSON_AddObjectToObject(object, "wall"), &result->wall);
    add_figures(cJSON_AddObjectToObject(object, "cpu"), &result->cpu);
    cli_json_number(object, "to_best_peer", to_best(report, result, best_peer(report, outcome)));
    const bench_outcome *single = alone(report, outcome);
    if (single) cli_json_number(object, "scaling", scaling(outcome, i, single));
    return object;
}

static cJSON *json_test(const bench_report *report, const bench_outcome *outcome) {
    cJSON *object = cJSON_CreateObject();
    cli_json_text(object, "name", outcome->test.name);
    cli_json_integer(object, "threads", outcome->test.threads);
    cli_json_text(object, "unit", "ns");
    cli_json_number(object, "wall_to_cpu", outcome->busy > 0 ? outcome->busy : NAN);
    const bench_result *best = best_peer(report, outcome);
    if (best) cli_json_text(object, "best_peer", best->allocator->name);
    if (outcome->test.family->scales)
        add_figures(cJSON_AddObjectToObject(object, "share_nothing"), &outcome->compute.wall);
    cJSON *results = cJSON_AddArrayToObject(object, "results");
    for (size_t i = 0; i < outcome->count; i++)
        cJSON_AddItemToArray(results, json_result(report, outcome, i));
    return object;
}

static cJSON *json_allocator(const char *name, const char *version) {
    cJSON *object = cJSON_CreateObject();
    cli_json_text(object, "name", name);
    cli_json_text(object, "version", version);
    return object;
}

void bench_report_json(const bench_report *report) {
    cJSON *object = cJSON_CreateObject();
    cli_json_text(object, "version", onuma_version());
    bench_add_machine(object);
    cli_json_integer(object, "repeat", report->plan->repeat);
    cli_json_integer(object, "depth", report->depth);
    cli_json_text(object, "clock", report->by_cpu ? "cpu" : "wall");
    cJSON *allocators = cJSON_AddArrayToObject(object, "allocators");
    for (size_t i = 0; i < report->allocator_count; i++)
        cJSON_AddItemToArray(allocators, json_allocator(report->allocators[i].name, report->allocators[i].version));
    cli_json_text(object, "lacking", report->lacking);
    cJSON *tests = cJSON_AddArrayToObject(object, "tests");
    for (size_t i = 0; i < report->outcome_count; i++)
        cJSON_AddItemToArray(tests, json_test(report, &report->outcomes[i]));
    cli_json_print(object);
}

/* --------------------------------------------------------------------- text */

static cli_unit_text ratio(double value) {
    cli_unit_text out = {""};
    if (cli_is_finite(value)) snprintf(out.text, sizeof out.text, "%.2f", value);
    return out;
}

static void text_result(const bench_report *report, cli_table *table, const bench_outcome *outcome, size_t i) {
    const bench_result *result = &outcome->results[i];
    const bench_figures *f = figures(report, result);
    const bench_outcome *single = alone(report, outcome);
    cli_table_row(table, i == 0 ? outcome->test.name : "", result->allocator->name, cli_nanoseconds(f->median).text,
                  cli_nanoseconds(f->min).text, cli_nanoseconds(f->max).text,
                  cli_nanoseconds((report->by_cpu ? &result->wall : &result->cpu)->median).text,
                  ratio(to_best(report, result, best_peer(report, outcome))).text,
                  ratio(single ? scaling(outcome, i, single) : NAN).text);
}

void bench_report_text(const bench_report *report) {
    for (size_t i = 0; i < report->allocator_count; i++)
        printf("%s %s%s", report->allocators[i].name, report->allocators[i].version,
               i + 1 < report->allocator_count ? "; " : "\n");
    if (report->lacking[0])
        printf("left out: %s, which the peers' libumf.so.1 was built without, as PyPI's is; another may be put in its "
               "place\n",
               report->lacking);
    char *processor = bench_processor_name();
    printf("%u processors, %s; medians of %u, by %s\n\n", bench_processors(), processor, report->plan->repeat,
           report->by_cpu ? "CPU time" : "the clock");
    free(processor);
    cli_table *table = cli_table_create(8, "<test", "<allocator", ">median", ">min", ">max",
                                        report->by_cpu ? ">by the clock" : ">CPU time", ">to best peer", ">scaling");
    double busiest = 0;
    for (size_t i = 0; i < report->outcome_count; i++) {
        const bench_outcome *outcome = &report->outcomes[i];
        for (size_t r = 0; r < outcome->count; r++)
            text_result(report, table, outcome, r);
        if (outcome->busy > busiest) busiest = outcome->busy;
    }
    cli_table_print(table, 0);
    if (busiest > 1.2 && !report->by_cpu)
        printf(
            "\nOthers used this machine: by the clock, tests took up to %.1f times their CPU time. Figures are not to "
            "be relied on; --clock cpu is nearer.\n",
            busiest);
}
