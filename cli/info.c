/* SPDX-License-Identifier: Apache-2.0 */
/* info: the drivers and devices of this machine, or the settings of the library. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "device_sharing.h"

static const char *status_name(onuma_backend_status status) {
    return status == ONUMA_BACKEND_OK ? "ok" : status == ONUMA_BACKEND_ABSENT ? "absent" : "error";
}

static const char *type_name(onuma_device_type type) {
    static const char *const names[] = {"integrated", "discrete", "cpu", "host"};
    return type < sizeof names / sizeof *names ? names[type] : "unknown";
}

static const char *const kind_names[] = {"host", "shared", "device"};
enum { KINDS = sizeof kind_names / sizeof *kind_names };

/* ------------------------------------------------------------------- json */

static cJSON *json_of_backends(const onuma_runtime *rt) {
    cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; i < onuma_backend_count(rt); i++) {
        onuma_backend_info info = ONUMA_BACKEND_INFO_INIT;
        if (onuma_backend_get_info(rt, i, &info) != ONUMA_OK) continue;
        cJSON *backend = cJSON_CreateObject();
        cli_json_text(backend, "name", info.name);
        cli_json_text(backend, "status", status_name(info.status));
        cli_json_text(backend, "detail", info.detail);
        cJSON_AddItemToArray(list, backend);
    }
    return list;
}

static cJSON *json_of_device(const onuma_device_info *info) {
    cJSON *device = cJSON_CreateObject();
    cli_json_text(device, "id", info->id);
    cli_json_text(device, "backend", info->backend);
    cli_json_text(device, "name", info->name);
    cli_json_text(device, "type", type_name(info->type));
    cli_json_text(device, "driver", info->driver);
    cJSON *kinds = cJSON_AddArrayToObject(device, "kinds");
    for (size_t k = 0; k < KINDS; k++)
        if (info->kinds & 1u << k) cli_json_append_text(kinds, kind_names[k]);
    cli_json_text(device, "shared_via", info->shared_via);
    cli_json_integer(device, "memory_total", info->memory_total);
    cli_json_integer(device, "memory_free", info->memory_free);
    cli_json_integer(device, "alignment", info->alignment);
    cli_json_integer(device, "max_block", info->max_block);
    cli_json_text(device, "physical", info->physical);
    cJSON_AddBoolToObject(device, "coherent", info->coherent);
    cJSON_AddBoolToObject(device, "simulator", info->simulator);
    cli_json_text(device, "proof", cli_proof_name(info->proof));
    cJSON_AddBoolToObject(device, "import_zero_copy", info->import_zero_copy);
    cli_json_text(device, "sharing_detail", info->sharing_detail);
    cli_json_sharing_notes(device, info);
    return device;
}

static void print_json(const onuma_runtime *rt, const onuma_device_info *devices, size_t count) {
    cJSON *object = cJSON_CreateObject();
    cli_json_text(object, "version", onuma_version());
    cJSON_AddItemToObject(object, "backends", json_of_backends(rt));
    cJSON *list = cJSON_AddArrayToObject(object, "devices");
    for (size_t i = 0; i < count; i++)
        cJSON_AddItemToArray(list, json_of_device(&devices[i]));
    cli_json_print(object);
}

/* ------------------------------------------------------------------- text */

static void print_backends(const onuma_runtime *rt) {
    cli_table *table = cli_table_create(3, "<backend", "<status", "<detail");
    for (size_t i = 0; i < onuma_backend_count(rt); i++) {
        onuma_backend_info info = ONUMA_BACKEND_INFO_INIT;
        if (onuma_backend_get_info(rt, i, &info) != ONUMA_OK) continue;
        cli_table_row(table, info.name, status_name(info.status), info.detail);
    }
    cli_table_print(table, 0);
}

static void add_device_row(cli_table *table, const onuma_device_info *info) {
    char kinds[32] = "";
    for (size_t k = 0; k < KINDS; k++) {
        if (!(info->kinds & 1u << k)) continue;
        if (kinds[0]) strcat(kinds, " ");
        strcat(kinds, kind_names[k]);
    }
    /* Drivers that do not tell a figure give 0. */
    cli_unit_text total = cli_bytes(info->memory_total), free_now = cli_bytes(info->memory_free);
    cli_table_row(table, info->id, type_name(info->type), info->memory_total ? total.text : "-",
                  info->memory_free ? free_now.text : "-", cli_bytes(info->alignment).text,
                  info->shared_via[0] ? info->shared_via : "-", kinds, info->name, info->driver);
}

static const char *proof_text(const onuma_device_info *info) {
    switch (info->proof) {
    case ONUMA_PROOF_NONE:
        return "not looked at yet, the driver's word alone";
    case ONUMA_PROOF_NOT_NEEDED:
        return "is the CPU's own memory";
    case ONUMA_PROOF_ASSUMED:
        return "assumed, the driver's word alone";
    case ONUMA_PROOF_UNPROVABLE:
        return "cannot be proved here";
    case ONUMA_PROOF_CACHED:
        return "proved by a kernel in an earlier run";
    case ONUMA_PROOF_MEASURED:
        return "proved by a kernel just now";
    default:
        return info->sharing_notes & ONUMA_SHARING_NOT_OFFERED ? "not by the way that is set, there is no shared memory"
                                                               : "fails, there is no shared memory";
    }
}

static const char *coherence_text(const onuma_device_info *info) {
    if (!(info->kinds & 1u << ONUMA_KIND_SHARED)) return "-";
    if (!info->coherent) return "no, mapped";
    return info->proof == ONUMA_PROOF_NONE || info->proof == ONUMA_PROOF_ASSUMED ? "says so" : "yes";
}

static void print_sharing(const onuma_device_info *devices, size_t count) {
    cli_table *table = cli_table_create(5, "<device", "<sharing", "<coherent", "<imports", "<detail");
    for (size_t i = 0; i < count; i++) {
        const onuma_device_info *info = &devices[i];
        cli_table_row(table, info->id, proof_text(info), coherence_text(info), cli_imports_text(info),
                      info->sharing_detail[0] ? info->sharing_detail : "-");
    }
    putchar('\n');
    cli_table_print(table, 0);
}

static void print_text(const onuma_runtime *rt, const onuma_device_info *devices, size_t count) {
    printf("OpenNUMA %s\n\n", onuma_version());
    print_backends(rt);
    cli_table *table = cli_table_create(9, "<device", "<type", ">memory", ">free", ">alignment", "<shared via",
                                        "<kinds", "<name", "<driver");
    for (size_t i = 0; i < count; i++)
        add_device_row(table, &devices[i]);
    putchar('\n');
    cli_table_print(table, 0);
    print_sharing(devices, count);
}

/* ---------------------------------------------------------------- settings */

static void print_config(bool json) {
    const onuma_config_key *key;
    if (!json) {
        printf("OPENNUMA_CONF=key:value,key:value\n\n");
        cli_table *table = cli_table_create(4, "<key", "<default", "<type", "<meaning");
        for (size_t i = 0; (key = onuma_config_key_at(i)); i++)
            cli_table_row(table, key->name, key->fallback, key->type, key->help);
        cli_table_print(table, 0);
        return;
    }
    cJSON *object = cJSON_CreateObject();
    cli_json_text(object, "version", onuma_version());
    cJSON *list = cJSON_AddArrayToObject(object, "config");
    for (size_t i = 0; (key = onuma_config_key_at(i)); i++) {
        cJSON *item = cJSON_CreateObject();
        cli_json_text(item, "name", key->name);
        cli_json_text(item, "type", key->type);
        cli_json_text(item, "default", key->fallback);
        cli_json_text(item, "help", key->help);
        cJSON_AddItemToArray(list, item);
    }
    cli_json_print(object);
}

/* ----------------------------------------------------------------- command */

/*
 * What a driver claims of sharing is no fact, and who reads it here takes it for one. So a device that nobody has
 * looked at yet is used once, which looks. That costs a moment on the first run; later ones find it in the cache.
 */
static void look_at(onuma_device *device) {
    onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
    desc.kind = ONUMA_KIND_SHARED;
    onuma_pool *pool;
    /* If it fails, the device's description says why, or that still nobody has looked. */
    if (onuma_pool_create(device, &desc, &pool) == ONUMA_OK) (void)onuma_pool_destroy(pool);
}

static onuma_result describe_device(onuma_device *device, onuma_device_info *info) {
    onuma_result r = onuma_device_get_info(device, info);
    if (r != ONUMA_OK || info->proof != ONUMA_PROOF_NONE) return r;
    look_at(device);
    return onuma_device_get_info(device, info);
}

/* Every device's description. false: one could not be asked, which is reported. */
static bool describe_devices(const onuma_runtime *rt, onuma_device_info *devices, size_t count) {
    bool all = true;
    for (size_t i = 0; i < count; i++) {
        devices[i] = (onuma_device_info)ONUMA_DEVICE_INFO_INIT;
        onuma_result r = describe_device(onuma_device_at(rt, i), &devices[i]);
        if (r == ONUMA_OK) continue;
        cli_library_error("cannot describe a device", r);
        all = false;
    }
    return all;
}

int cli_info_main(int argc, char **argv) {
    bool json = false, config = false;
    const cli_option options[] = {
        {.name = "config", .help = "list the settings that OPENNUMA_CONF takes", .flag = &config},
        CLI_OPTION_JSON(&json),
    };
    const cli_usage usage = {"info",
                             "",
                             "Print the drivers and devices of this machine, best device first.",
                             options,
                             sizeof options / sizeof *options,
                             0};
    int status;
    if (!cli_options_parse(&usage, argc, argv, NULL, &status)) return status;
    if (config) {
        /* Needs no runtime, so it also answers where OPENNUMA_CONF itself is wrong. */
        print_config(json);
        return CLI_HELD;
    }
    onuma_runtime *rt;
    onuma_result r = onuma_runtime_create(NULL, &rt);
    if (r != ONUMA_OK) return cli_library_error("cannot start", r);
    size_t count = onuma_device_count(rt);
    onuma_device_info *devices = cli_allocate(count * sizeof *devices);
    bool all = describe_devices(rt, devices, count);
    if (json)
        print_json(rt, devices, count);
    else
        print_text(rt, devices, count);
    free(devices);
    onuma_runtime_destroy(rt);
    return all ? CLI_HELD : CLI_FAILED;
}
