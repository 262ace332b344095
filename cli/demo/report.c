/* SPDX-License-Identifier: Apache-2.0 */
/* The demo's results as text and as JSON. */
#include "demo/demo.h"
#include "json.h"
#include "table.h"
#include "units.h"

#include <stdio.h>

bool demo_all_held(const demo *d) {
    bool all = d->check_count == DEMO_CHECKS && !d->table_error[0];
    for (size_t i = 0; i < d->check_count; i++)
        all = all && d->checks[i].ok;
    for (size_t i = 0; i < d->transfer_count; i++)
        all = all && d->transfers[i].ok;
    for (size_t i = 0; i < d->workload_count; i++)
        all = all && d->workloads[i].ok;
    return all;
}

/* ---------------------------------------------------------------- json */

static void add_pair(cJSON *object, const char *name, double default_us, double ours_us) {
    cJSON *pair = cJSON_AddObjectToObject(object, name);
    cli_json_number(pair, "default_us", default_us);
    cli_json_number(pair, "opennuma_us", ours_us);
}

static cJSON *json_of_check(const demo_check *check) {
    cJSON *object = cJSON_CreateObject();
    cli_json_text(object, "name", check->name);
    cJSON_AddBoolToObject(object, "ok", check->ok);
    cli_json_text(object, "detail", check->detail);
    return object;
}

static cJSON *json_of_transfer(const demo_transfer *row) {
    cJSON *object = cJSON_CreateObject();
    cli_json_integer(object, "bytes", row->bytes);
    add_pair(object, "to_device", row->to_device_default, row->to_device_ours);
    add_pair(object, "to_host", row->to_host_default, row->to_host_ours);
    cJSON_AddBoolToObject(object, "ok", row->ok);
    return object;
}

static cJSON *json_of_workload(const demo_workload *row) {
    cJSON *object = cJSON_CreateObject();
    cli_json_text(object, "name", row->name);
    cli_json_number(object, "default_us", row->default_us);
    cli_json_number(object, "opennuma_us", row->ours_us);
    cli_json_number(object, "max_error", row->max_error);
    cli_json_number(object, "allowed_error", row->allowed_error);
    cli_json_integer(object, "default_bytes", row->default_bytes);
    cli_json_integer(object, "opennuma_bytes", row->ours_bytes);
    if (row->images) {
        cli_json_integer(object, "images", row->images);
        cli_json_integer(object, "correct", row->right);
        cli_json_integer(object, "expected_correct", row->expected);
    }
    cJSON_AddBoolToObject(object, "ok", row->ok);
    return object;
}

void demo_print_json(const demo *d) {
    cJSON *object = cJSON_CreateObject();
    cli_json_text(object, "device", d->info.id);
    cli_json_text(object, "name", d->info.name);
    cli_json_text(object, "shared_via", d->info.shared_via);
    cJSON *checks = cJSON_AddArrayToObject(object, "checks");
    for (size_t i = 0; i < d->check_count; i++)
        cJSON_AddItemToArray(checks, json_of_check(&d->checks[i]));
    cJSON *transfer = cJSON_AddArrayToObject(object, "transfer");
    for (size_t i = 0; i < d->transfer_count; i++)
        cJSON_AddItemToArray(transfer, json_of_transfer(&d->transfers[i]));
    cJSON *workload = cJSON_AddArrayToObject(object, "workload");
    for (size_t i = 0; i < d->workload_count; i++)
        cJSON_AddItemToArray(workload, json_of_workload(&d->workloads[i]));
    if (d->table_error[0]) cli_json_text(object, "error", d->table_error);
    cJSON_AddBoolToObject(object, "ok", demo_all_held(d));
    cli_json_print(object);
}

/* ---------------------------------------------------------------- text */

static cli_unit_text time_of(double us) {
    return cli_nanoseconds(us * 1e3);
}

/* How many times as quick. */
static cli_unit_text factor(double default_us, double ours_us) {
    cli_unit_text out;
    double times = ours_us > 0 ? default_us / ours_us : 0;
    snprintf(out.text, sizeof out.text, times < 9.95 ? "%.1f x" : "%.0f x", times);
    return out;
}

static void print_transfers(const demo *d) {
    printf("\nUntil the other side can use the bytes, against %s:\n\n", d->default_way);
    cli_table *table =
        cli_table_create(7, ">bytes", ">to device: default", ">OpenNUMA", ">", ">to host: default", ">OpenNUMA", ">");
    for (size_t i = 0; i < d->transfer_count; i++) {
        const demo_transfer *row = &d->transfers[i];
        if (!row->ok) continue;
        cli_table_row(table, cli_bytes(row->bytes).text, time_of(row->to_device_default).text,
                      time_of(row->to_device_ours).text, factor(row->to_device_default, row->to_device_ours).text,
                      time_of(row->to_host_default).text, time_of(row->to_host_ours).text,
                      factor(row->to_host_default, row->to_host_ours).text);
    }
    cli_table_print(table, 2);
}

static void print_workloads(const demo *d) {
    printf("\nWhole jobs, from the CPU's input to its reading of the output, both held against plain C:\n\n");
    cli_table *table = cli_table_create(9, "<job", ">default", ">OpenNUMA", ">", ">memory: default", ">OpenNUMA",
                                        ">largest error", "<answers", "<");
    for (size_t i = 0; i < d->workload_count; i++) {
        const demo_workload *row = &d->workloads[i];
        char error[32], answers[64] = "";
        snprintf(error, sizeof error, "%.2g", row->max_error);
        if (row->images) snprintf(answers, sizeof answers, "%zu of %zu right", row->right, row->images);
        cli_table_row(table, row->name, time_of(row->default_us).text, time_of(row->ours_us).text,
                      factor(row->default_us, row->ours_us).text, cli_bytes(row->default_bytes).text,
                      cli_bytes(row->ours_bytes).text, error, answers, row->ok ? "ok" : "WRONG");
    }
    cli_table_print(table, 2);
}

void demo_print_text(const demo *d) {
    size_t held = 0;
    printf("OpenNUMA on %s: %s\n\n", d->info.id, d->info.name);
    cli_table *table = cli_table_create(3, "<check", "<", "<what was seen");
    for (size_t i = 0; i < d->check_count; i++) {
        cli_table_row(table, d->checks[i].name, d->checks[i].ok ? "ok" : "FAILED", d->checks[i].detail);
        held += d->checks[i].ok;
    }
    cli_table_print(table, 2);
    if (d->transfer_count) print_transfers(d);
    if (d->workload_count) print_workloads(d);
    if (d->table_error[0]) printf("\nStopped: %s\n", d->table_error);
    if (demo_all_held(d))
        printf("\nEverything held: all %zu checks, every transfer and every result.\n", held);
    else
        printf("\nNOT everything held: %zu of %d checks.\n", held, (int)DEMO_CHECKS);
}
