/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor/report.h"

#include <stdio.h>
#include <string.h>

#include "character.h"
#include "device_sharing.h"
#include "json.h"
#include "table.h"

/* ------------------------------------------------------------------- text */

static void print_part(const char *about, const char *heading, const char *text) {
    if (!text[0]) return;
    char line[sizeof(finding_text)];
    snprintf(line, sizeof line, "%s", text);
    cli_make_printable(line); /* drivers and files may say anything */
    printf("%-10s %-8s %s\n", about, heading, line);
}

static void print_finding(const finding *f) {
    print_part(f->about, finding_severity_name(f->severity), f->lacks.text);
    print_part("", "evidence", f->evidence.text);
    print_part("", "remedy", f->remedy.text);
}

static void print_backends(const findings *list, const backends_report *backends) {
    for (size_t i = 0; i < backends->backend_count; i++) {
        const char *name = backends->backends[i].name;
        if (!findings_blocking(list, name)) printf("%-10s ok\n", name);
    }
}

static void print_devices(const backends_report *backends) {
    cli_table *table = cli_table_create(5, "<device", "<shared via", "<known by", "<import", "<name");
    for (size_t i = 0; i < backends->device_count; i++) {
        const onuma_device_info *info = &backends->devices[i];
        cli_table_row(table, info->id, info->shared_via[0] ? info->shared_via : "-", cli_proof_name(info->proof),
                      cli_imports_text(info), info->name);
    }
    putchar('\n');
    cli_table_print(table, 0);
}

void report_text(const findings *list, const backends_report *backends) {
    print_backends(list, backends);
    for (int severity = FINDING_BLOCKS; severity >= FINDING_NOTE; severity--)
        for (size_t i = 0; i < list->count; i++)
            if ((int)list->items[i]->severity == severity) print_finding(list->items[i]);
    print_devices(backends);
}

/* ------------------------------------------------------------------- json */

static void add_backends(cJSON *object, const findings *list, const backends_report *backends) {
    cJSON *array = cJSON_AddArrayToObject(object, "backends");
    for (size_t i = 0; i < backends->backend_count; i++) {
        const char *name = backends->backends[i].name;
        const finding *blocking = findings_blocking(list, name);
        cJSON *item = cJSON_CreateObject();
        cli_json_text(item, "name", name);
        cJSON_AddBoolToObject(item, "ok", !blocking);
        cli_json_text(item, "lacks", blocking ? blocking->lacks.text : "");
        cli_json_text(item, "remedy", blocking ? blocking->remedy.text : "");
        cJSON_AddItemToArray(array, item);
    }
}

static void add_findings(cJSON *object, const findings *list) {
    cJSON *array = cJSON_AddArrayToObject(object, "findings");
    for (size_t i = 0; i < list->count; i++) {
        const finding *f = list->items[i];
        cJSON *item = cJSON_CreateObject();
        cli_json_text(item, "about", f->about);
        cli_json_text(item, "severity", finding_severity_name(f->severity));
        cli_json_text(item, "lacks", f->lacks.text);
        cli_json_text(item, "evidence", f->evidence.text);
        cli_json_text(item, "remedy", f->remedy.text);
        cJSON_AddItemToArray(array, item);
    }
}

static void add_devices(cJSON *object, const backends_report *backends) {
    cJSON *array = cJSON_AddArrayToObject(object, "devices");
    for (size_t i = 0; i < backends->device_count; i++) {
        const onuma_device_info *info = &backends->devices[i];
        cJSON *item = cJSON_CreateObject();
        cli_json_text(item, "id", info->id);
        cli_json_text(item, "name", info->name);
        cli_json_text(item, "driver", info->driver);
        cli_json_text(item, "shared_via", info->shared_via);
        cli_json_text(item, "proof", cli_proof_name(info->proof));
        cJSON_AddBoolToObject(item, "coherent", info->coherent);
        cJSON_AddBoolToObject(item, "import_zero_copy", info->import_zero_copy);
        cli_json_text(item, "sharing_detail", info->sharing_detail);
        cli_json_sharing_notes(item, info);
        cJSON_AddItemToArray(array, item);
    }
}

void report_json(const findings *list, const backends_report *backends) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddBoolToObject(object, "ok", !findings_any_blocks(list));
    add_backends(object, list, backends);
    add_findings(object, list);
    add_devices(object, backends);
    cli_json_print(object);
}
