/* SPDX-License-Identifier: Apache-2.0 */
/* doctor: per backend, what this machine lacks and the exact remedy. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "opencl/loader.h"

typedef struct finding {
    char backend[32];
    bool ok;
    char lacks[320];
    char remedy[320];
} finding;

/* ------------------------------------------------------- package managers */

/* What installs each thing on the systems that /etc/os-release names. */
typedef struct packages {
    const char *system; /* as ID or ID_LIKE has it */
    const char *command;
    const char *loader, *intel, *mesa, *cpu;
} packages;

static const packages known_systems[] = {
    {"debian", "sudo apt-get install", "ocl-icd-libopencl1", "intel-opencl-icd", "mesa-opencl-icd", "pocl-opencl-icd"},
    {"ubuntu", "sudo apt-get install", "ocl-icd-libopencl1", "intel-opencl-icd", "mesa-opencl-icd", "pocl-opencl-icd"},
    {"fedora", "sudo dnf install", "ocl-icd", "intel-compute-runtime", "mesa-libOpenCL", "pocl"},
    {"arch", "sudo pacman -S", "ocl-icd", "intel-compute-runtime", "opencl-mesa", "pocl"},
    {"suse", "sudo zypper install", "libOpenCL1", "intel-opencl", "Mesa-libOpenCL", "pocl"},
};

static const packages unknown_system = {"",
                                        "install with this system's package manager:",
                                        "an OpenCL ICD loader (libOpenCL.so.1)",
                                        "Intel's compute runtime (OpenCL)",
                                        "Mesa's OpenCL driver",
                                        "PoCL"};

static const packages *this_system(void) {
    const packages *found = &unknown_system;
    FILE *file = fopen("/etc/os-release", "r");
    if (!file) return found;
    char line[256];
    while (found == &unknown_system && fgets(line, sizeof line, file)) {
        if (strncmp(line, "ID=", 3) != 0 && strncmp(line, "ID_LIKE=", 8) != 0) continue;
        for (size_t i = 0; i < sizeof known_systems / sizeof *known_systems; i++)
            if (strstr(line, known_systems[i].system)) found = &known_systems[i];
    }
    fclose(file);
    return found;
}

/* ------------------------------------------------------------------ opencl */

/* The vendor of the first graphics chip that the kernel shows, as PCI numbers it; 0 if there is none. */
static unsigned graphics_vendor(void) {
    unsigned vendor = 0;
    for (int card = 0; card < 8 && !vendor; card++) {
        char path[64];
        snprintf(path, sizeof path, "/sys/class/drm/card%d/device/vendor", card);
        FILE *file = fopen(path, "r");
        if (!file) continue;
        if (fscanf(file, "%x", &vendor) != 1) vendor = 0;
        fclose(file);
    }
    return vendor;
}

static void lacks_opencl_driver(finding *f, const packages *system) {
    enum { INTEL = 0x8086, AMD = 0x1002 };
    unsigned vendor = graphics_vendor();
    const char *vendors = getenv("OCL_ICD_VENDORS");
    if (vendors && *vendors) {
        snprintf(f->lacks, sizeof f->lacks, "OCL_ICD_VENDORS=%s holds no driver that works", vendors);
        snprintf(f->remedy, sizeof f->remedy, "unset OCL_ICD_VENDORS, or point it to a folder with .icd files");
    } else if (vendor == INTEL) {
        snprintf(f->lacks, sizeof f->lacks, "no OpenCL driver for the Intel graphics of this machine");
        snprintf(f->remedy, sizeof f->remedy, "%s %s", system->command, system->intel);
    } else if (vendor == AMD) {
        snprintf(f->lacks, sizeof f->lacks, "no OpenCL driver for the AMD graphics of this machine");
        snprintf(f->remedy, sizeof f->remedy, "%s %s, and set RUSTICL_ENABLE=radeonsi", system->command, system->mesa);
    } else {
        snprintf(f->lacks, sizeof f->lacks,
                 "no OpenCL driver, and the kernel shows no graphics chip that would need one");
        snprintf(f->remedy, sizeof f->remedy, "%s %s (runs OpenCL on the CPU)", system->command, system->cpu);
    }
}

static void examine_opencl(finding *f, const onuma_backend_info *info) {
    const packages *system = this_system();
    const char *why = "";
    if (!cli_opencl_load(&why)) {
        snprintf(f->lacks, sizeof f->lacks, "no OpenCL loader: %s", why);
        snprintf(f->remedy, sizeof f->remedy, "%s %s", system->command, system->loader);
    } else if (info->status == ONUMA_BACKEND_ERROR) {
        snprintf(f->lacks, sizeof f->lacks, "the driver does not work: %s", info->detail);
        snprintf(f->remedy, sizeof f->remedy, "run clinfo to see which driver fails, and update or remove its package");
    } else {
        lacks_opencl_driver(f, system);
    }
}

/* ----------------------------------------------------------------- command */

static size_t devices_of(const onuma_runtime *rt, const char *backend) {
    size_t count = 0;
    for (size_t i = 0; i < onuma_device_count(rt); i++) {
        onuma_device_info info = ONUMA_DEVICE_INFO_INIT;
        if (onuma_device_get_info(onuma_device_at(rt, i), &info) == ONUMA_OK && strcmp(info.backend, backend) == 0)
            count++;
    }
    return count;
}

static void examine(finding *f, const onuma_runtime *rt, const onuma_backend_info *info) {
    *f = (finding){.ok = info->status == ONUMA_BACKEND_OK && devices_of(rt, info->name) > 0};
    snprintf(f->backend, sizeof f->backend, "%s", info->name);
    if (f->ok) return;
    if (strcmp(info->name, "opencl") == 0) {
        examine_opencl(f, info);
        return;
    }
    snprintf(f->lacks, sizeof f->lacks, "%s", info->detail);
    snprintf(f->remedy, sizeof f->remedy, "install or repair the driver named there");
}

static void print_json(const finding *findings, size_t count, bool all) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddBoolToObject(object, "ok", all);
    cJSON *list = cJSON_AddArrayToObject(object, "backends");
    for (size_t i = 0; i < count; i++) {
        cJSON *item = cJSON_CreateObject();
        cli_json_text(item, "name", findings[i].backend);
        cJSON_AddBoolToObject(item, "ok", findings[i].ok);
        cli_json_text(item, "lacks", findings[i].lacks);
        cli_json_text(item, "remedy", findings[i].remedy);
        cJSON_AddItemToArray(list, item);
    }
    cli_json_print(object);
}

static void print_text(const finding *findings, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const finding *f = &findings[i];
        if (f->ok) {
            printf("%-10s ok\n", f->backend);
            continue;
        }
        printf("%-10s lacks   %s\n", f->backend, f->lacks);
        printf("%-10s remedy  %s\n", "", f->remedy);
    }
}

int cli_doctor_main(int argc, char **argv) {
    bool json = false;
    const cli_option options[] = {CLI_OPTION_JSON(&json)};
    const cli_usage usage = {
        "doctor",
        "",
        "Print, per backend, what this machine lacks and how to remedy it; exit 1 if anything does.",
        options,
        sizeof options / sizeof *options,
        0};
    int status;
    if (!cli_options_parse(&usage, argc, argv, NULL, &status)) return status;
    onuma_runtime *rt;
    onuma_result r = onuma_runtime_create(NULL, &rt);
    if (r != ONUMA_OK) return cli_library_error("cannot start", r);
    size_t count = onuma_backend_count(rt);
    finding *findings = cli_allocate(count * sizeof *findings);
    bool all = true;
    for (size_t i = 0; i < count; i++) {
        onuma_backend_info info = ONUMA_BACKEND_INFO_INIT;
        findings[i] = (finding){0};
        if (onuma_backend_get_info(rt, i, &info) == ONUMA_OK) examine(&findings[i], rt, &info);
        all = all && findings[i].ok;
    }
    if (json)
        print_json(findings, count, all);
    else
        print_text(findings, count);
    free(findings);
    onuma_runtime_destroy(rt);
    return all ? CLI_HELD : CLI_FAILED;
}
