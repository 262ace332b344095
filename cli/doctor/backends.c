/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "doctor/backends.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------- child */

/* A device's first use: a pool on it, and a block. */
static void open_device(onuma_device *device, char *why, size_t size) {
    onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
    desc.name = "doctor";
    onuma_pool *pool = NULL;
    void *block = NULL;
    onuma_result r = onuma_pool_create(device, &desc, &pool);
    if (r == ONUMA_OK) r = onuma_alloc(pool, 1, 0, NULL, &block);
    if (r != ONUMA_OK) snprintf(why, size, "%s: %s", onuma_result_name(r), onuma_last_error());
    if (block) onuma_free(block, NULL);
    onuma_pool_destroy(pool);
}

static void describe_backends(const onuma_runtime *rt, backends_report *report) {
    size_t count = onuma_backend_count(rt);
    report->backend_count = count < BACKENDS_MOST ? count : BACKENDS_MOST;
    for (size_t i = 0; i < report->backend_count; i++) {
        report->backends[i] = (onuma_backend_info)ONUMA_BACKEND_INFO_INIT;
        (void)onuma_backend_get_info(rt, i, &report->backends[i]);
    }
}

static void describe_device(onuma_device *device, backends_report *report, size_t i) {
    report->devices[i] = (onuma_device_info)ONUMA_DEVICE_INFO_INIT;
    if (onuma_device_get_info(device, &report->devices[i]) != ONUMA_OK)
        snprintf(report->failures[i], sizeof report->failures[i], "%s", onuma_last_error());
}

static void ask_library(void *shared) {
    backends_report *report = shared;
    onuma_runtime_desc desc = ONUMA_RUNTIME_DESC_INIT;
    desc.config = report->config;
    onuma_runtime *rt;
    report->result = onuma_runtime_create(&desc, &rt);
    if (report->result != ONUMA_OK) {
        snprintf(report->detail, sizeof report->detail, "%s", onuma_last_error());
        return;
    }
    describe_backends(rt, report);
    size_t count = onuma_device_count(rt);
    if (count > BACKENDS_MOST_DEVICES) count = BACKENDS_MOST_DEVICES;
    for (size_t i = 0; i < count; i++) {
        describe_device(onuma_device_at(rt, i), report, i);
        for (size_t b = 0; b < report->backend_count; b++)
            report->devices_of[b] += strcmp(report->devices[i].backend, report->backends[b].name) == 0;
    }
    report->device_count = count;
    for (size_t i = 0; i < count && report->open_devices; i++) {
        open_device(onuma_device_at(rt, i), report->failures[i], sizeof report->failures[i]);
        describe_device(onuma_device_at(rt, i), report, i);
        report->opened = i + 1;
    }
}

/* ------------------------------------------------------------------ parent */

/* The report is overwritten; what findings name must stay. */
static const char *static_name(const char *backend) {
    static const char *const names[] = {"host", "cuda", "level_zero"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(backend, names[i]) == 0) return names[i];
    return "opencl";
}

static trial try_library(backends_report *report, double seconds, bool open_devices, const char *config) {
    *report = (backends_report){.open_devices = open_devices, .config = config};
    return trial_run(ask_library, report, sizeof *report, seconds);
}

static void forget_settings(void) {
#if defined(_WIN32)
    (void)_putenv("OPENNUMA_CONF=");
#else
    (void)unsetenv("OPENNUMA_CONF");
#endif
}

static void say_settings_are_wrong(findings *list, const backends_report *report) {
    const char *conf = getenv("OPENNUMA_CONF");
    finding *f = findings_add(list, FINDING_BLOCKS, "settings");
    f->everything = true;
    finding_say(&f->lacks, "OPENNUMA_CONF is wrong: no program that uses this library starts");
    finding_say(&f->evidence, "OPENNUMA_CONF=%s: %s", conf ? conf : "", report->detail);
    finding_say(&f->remedy, "unset OPENNUMA_CONF, or correct it; opennuma info --config lists the settings");
    forget_settings();
}

/* How a child died that had come to know its devices: at one of them. */
static void say_device_is_deadly(findings *list, const backends_report *report, const trial *t, double seconds) {
    const onuma_device_info *device = &report->devices[report->opened];
    char what[128];
    trial_describe(t, seconds, what, sizeof what);
    finding *f = findings_add(list, FINDING_BLOCKS, static_name(device->backend));
    finding_say(&f->lacks, "the first use of the device %s (%s) %s", device->id, device->name,
                t->outcome == TRIAL_HUNG ? "never ends" : "takes the program down");
    finding_say(&f->evidence, "a pool on it, tried in a process of its own, %s; driver %s%s%s", what, device->driver,
                t->said[0] ? "; last words: " : "", t->said);
    finding_say(&f->remedy,
                "update that driver or remove its package; opennuma doctor --no-probe leaves the devices closed");
}

static void say_device_fails(findings *list, const backends_report *report) {
    for (size_t i = 0; i < report->device_count; i++) {
        if (!report->failures[i][0]) continue;
        finding *f = findings_add(list, FINDING_BLOCKS, static_name(report->devices[i].backend));
        finding_say(&f->evidence, "%s", report->failures[i]);
        if (report->devices[i].proof == ONUMA_PROOF_FAILED) {
            finding_say(&f->lacks, "the device %s (%s) shares no memory with the CPU", report->devices[i].id,
                        report->devices[i].name);
            finding_say(&f->remedy, "see what is said of sharing, below");
            continue;
        }
        finding_say(&f->lacks, "the device %s (%s) cannot be used", report->devices[i].id, report->devices[i].name);
        finding_say(&f->remedy,
                    "what the driver says there names the cause; update that driver, or remove its package");
    }
}

void backends_examine(findings *list, backends_report *report, double seconds, bool open_devices, bool *survived) {
    trial t = try_library(report, seconds, open_devices, NULL);
    if (t.outcome == TRIAL_DONE && report->result == ONUMA_ERROR_INVALID_ARGUMENT) {
        say_settings_are_wrong(list, report);
        t = try_library(report, seconds, open_devices, NULL);
    }
    *survived = t.outcome == TRIAL_DONE;
    if (t.outcome == TRIAL_DONE && report->result != ONUMA_OK) {
        finding *f = findings_add(list, FINDING_BLOCKS, "host");
        finding_say(&f->lacks, "the library does not start");
        finding_say(&f->evidence, "%s: %s", onuma_result_name(report->result), report->detail);
        finding_say(&f->remedy, "free memory, or raise its limits (ulimit -v)");
    }
    if (*survived) {
        say_device_fails(list, report);
        return;
    }
    bool at_a_device = report->device_count && report->opened < report->device_count;
    if (at_a_device) say_device_is_deadly(list, report, &t, seconds);
    t = try_library(report, seconds, at_a_device ? false : open_devices, at_a_device ? NULL : "backends:host");
}

bool backends_left_out(const backends_report *report) {
    for (size_t i = 0; i < report->backend_count; i++)
        if (report->backends[i].status == ONUMA_BACKEND_ABSENT && strstr(report->backends[i].detail, "backends:host"))
            return true;
    return false;
}

bool backends_is_absent(const backends_report *report, const char *backend) {
    for (size_t i = 0; i < report->backend_count; i++)
        if (strcmp(report->backends[i].name, backend) == 0) return report->backends[i].status == ONUMA_BACKEND_ABSENT;
    return false;
}

void backends_conclude(findings *list, const backends_report *report) {
    for (size_t i = 0; i < report->backend_count; i++) {
        const onuma_backend_info *info = &report->backends[i];
        bool works = info->status == ONUMA_BACKEND_OK && report->devices_of[i] > 0;
        const char *about = static_name(info->name);
        /* These are missed only where there is a chip for them, and who looks for chips has said so. */
        const bool missed = info->status != ONUMA_BACKEND_ABSENT || strcmp(about, "opencl") == 0;
        if (works || !missed || findings_blocking(list, about)) continue;
        finding *f = findings_add(list, FINDING_BLOCKS, about);
        finding_say(&f->evidence, "%s: %s", info->name, info->detail);
        if (strstr(info->detail, "backends:host")) {
            finding_say(&f->lacks, "OPENNUMA_CONF=%s: no driver is loaded", getenv("OPENNUMA_CONF"));
            finding_say(&f->remedy, "take backends:host out of OPENNUMA_CONF");
        } else {
            finding_say(&f->lacks, "%s", info->detail[0] ? info->detail : "no device answers");
            finding_say(&f->remedy, "%s: update or remove its package",
                        strcmp(about, "cuda") == 0 ? "nvidia-smi shows which driver fails"
                        : strcmp(about, "level_zero") == 0
                            ? "what is said there names the library (libze1 has the loader)"
                            : "clinfo shows which driver fails");
        }
    }
}
