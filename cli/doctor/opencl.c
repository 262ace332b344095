/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "doctor/opencl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "doctor/files.h"
#include "doctor/manifest.h"
#include "doctor/places.h"

static const char about[] = "opencl";

typedef struct examination {
    findings *list;
    const packages *system;
    double seconds;
    opencl_state *state;
    loader_places places;
    unsigned manifests;
} examination;

/* The variable's value, or NULL where it is not set or empty, which loaders treat alike. */
static const char *setting(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static bool is_folder(const char *path) {
    struct stat about_it;
    return stat(path, &about_it) == 0 && S_ISDIR(about_it.st_mode);
}

/* ------------------------------------------------------------------ loader */

/* The library that a dynamic loader's message says is not there; false if that is not what it says. */
static bool absent_library(const char *message, char *name, size_t size) {
    static const char musl[] = "Error loading shared library ";
    const char *end = strstr(message, ": cannot open shared object file: No such file or directory");
    if (!end && strncmp(message, musl, sizeof musl - 1) == 0) {
        message += sizeof musl - 1;
        end = strstr(message, ": No such file or directory");
    }
    if (!end) return false;
    snprintf(name, size, "%.*s", (int)(end - message), message);
    return true;
}

static void say_loader_is_broken(examination *e, finding *f, const char *message) {
    bool other_class = strstr(message, "wrong ELF class") != NULL;
    char missing[300];
    bool absent = absent_library(message, missing, sizeof missing) && strcmp(missing, "libOpenCL.so.1") == 0;
    finding_say(&f->evidence, "dlopen(\"libOpenCL.so.1\"): %s", message);
    if (absent) {
        finding_say(&f->lacks, "no OpenCL loader (libOpenCL.so.1) is installed");
    } else if (other_class) {
        finding_say(&f->lacks, "the only OpenCL loader found is for another kind of program (32-bit, say)");
    } else {
        finding_say(&f->lacks, "the OpenCL loader is there but cannot be loaded");
        if (setting("LD_LIBRARY_PATH")) {
            finding_say(&f->remedy, "unset LD_LIBRARY_PATH (now %s), which comes before the system's folders",
                        setting("LD_LIBRARY_PATH"));
            return;
        }
    }
    finding_say(&f->remedy, "%s %s%s", e->system->install, e->system->loader,
                absent || other_class ? "" : " (again, since the one that is there is damaged)");
}

/* Whether drivers can be looked for through it. */
static bool examine_loader(examination *e) {
    loader_report report = {.loads = false};
    trial t = loader_try(&report, e->seconds);
    if (t.outcome != TRIAL_DONE) {
        char what[128];
        trial_describe(&t, e->seconds, what, sizeof what);
        finding *f = findings_add(e->list, FINDING_BLOCKS, about);
        finding_say(&f->lacks, "loading the OpenCL loader (libOpenCL.so.1) %s",
                    t.outcome == TRIAL_HUNG ? "never ends" : "takes the program down");
        finding_say(&f->evidence, "it %s%s%s", what, t.said[0] ? "; last words: " : "", t.said);
        finding_say(&f->remedy, "%s %s", e->system->install, e->system->loader);
        e->state->deadly = t.outcome != TRIAL_IMPOSSIBLE;
        return false;
    }
    if (!report.loads) {
        say_loader_is_broken(e, findings_add(e->list, FINDING_BLOCKS, about), report.message);
        return false;
    }
    loader_places_read(&e->places, report.path);
    if (report.preloaded) {
        finding *f = findings_add(e->list, FINDING_NOTE, about);
        finding_say(&f->lacks, "an OpenCL of its own (a checker such as Oclgrind) stands before the system's drivers");
        finding_say(&f->evidence, "clGetPlatformIDs of %s, LD_PRELOAD=%s", report.path,
                    setting("LD_PRELOAD") ? setting("LD_PRELOAD") : "");
        finding_say(&f->remedy, "unset LD_PRELOAD to use the system's drivers");
        return false;
    }
    return true;
}

/* ----------------------------------------------------------------- drivers */

static void say_manifest_is_odd(finding *f, const manifest *m) {
    switch (m->oddity) {
    case MANIFEST_CRLF:
        finding_say(&f->lacks,
                    "%s ends its line as Windows does, so the loader looks for a library whose name ends in a "
                    "carriage return",
                    m->path);
        finding_say(&f->remedy, "sudo sed -i 's/\\r$//' %s", m->path);
        break;
    case MANIFEST_BLANKS:
    case MANIFEST_MORE_LINES:
        finding_say(&f->lacks, "%s holds more than a library's name, and the loader takes all of it for one", m->path);
        finding_say(&f->remedy, "echo %s | sudo tee %s", m->meant, m->path);
        break;
    case MANIFEST_RELATIVE:
        finding_say(&f->lacks, "%s names \"%s\", which depends on the folder that a program is started in", m->path,
                    m->library);
        finding_say(&f->remedy, "write the library's whole path, or its bare name, into %s", m->path);
        break;
    case MANIFEST_EMPTY:
        finding_say(&f->lacks, "%s names no library: %s", m->path,
                    m->library[0] ? "its first line is blank" : "it is empty");
        finding_say(&f->remedy, "write the library's path into it, or remove it: sudo rm %s", m->path);
        break;
    default:
        break;
    }
}

/* `m` is NULL for a library that a variable names. */
static void say_does_not_load(examination *e, const driver_report *report, const manifest *m, const char *origin) {
    finding *f = findings_add(e->list, FINDING_NOTE, about);
    f->disables = true;
    finding_say(&f->evidence, "dlopen(\"%s\"): %s", report->library, report->message);
    char absent[256];
    bool is_absent = absent_library(report->message, absent, sizeof absent);
    if (m && m->oddity != MANIFEST_PLAIN) {
        say_manifest_is_odd(f, m);
    } else if (is_absent && strcmp(absent, report->library) == 0) {
        finding_say(&f->lacks, "%s names the library %s, which is not there", origin, report->library);
        if (m)
            finding_say(&f->remedy, "reinstall the package of that file (%s %s), or remove it: sudo rm %s",
                        e->system->owner, m->path, m->path);
        else
            finding_say(&f->remedy, "correct %s, or unset it", origin);
    } else if (is_absent) {
        finding_say(&f->lacks, "the driver %s needs the library %s, which is not there", report->library, absent);
        finding_say(&f->remedy, "install what provides it: %s %s", e->system->provider, absent);
    } else {
        finding_say(&f->lacks, "the driver %s of %s cannot be loaded", report->library, origin);
        finding_say(&f->remedy, "reinstall its package: %s %s tells which", e->system->owner, report->library);
    }
}

static void say_deadly(examination *e, const driver_report *report, const trial *t, const manifest *m,
                       const char *origin) {
    char what[128];
    trial_describe(t, e->seconds, what, sizeof what);
    finding *f = findings_add(e->list, FINDING_BLOCKS, about);
    finding_say(&f->lacks, "the driver %s %s every program that asks for OpenCL", report->library,
                t->outcome == TRIAL_HUNG ? "hangs" : "takes down");
    finding_say(&f->evidence, "tried alone, it %s %s%s%s", what, driver_stage_name(report->stage),
                t->said[0] ? "; last words: " : "", t->said);
    if (m)
        finding_say(&f->remedy, "update or remove its package (%s %s); until then: sudo mv %s %s.off", e->system->owner,
                    m->path, m->path, m->path);
    else
        finding_say(&f->remedy, "correct %s, or unset it", origin);
    e->state->deadly = true;
}

static void say_no_platform(examination *e, const driver_report *report, const char *origin) {
    finding *f = findings_add(e->list, FINDING_NOTE, about);
    f->disables = true;
    if (report->message[0]) {
        finding_say(&f->lacks, "the library %s of %s is no OpenCL driver", report->library, origin);
        finding_say(&f->evidence, "%s", report->message);
        finding_say(&f->remedy, "correct %s; %s %s tells the package", origin, e->system->owner, report->library);
        return;
    }
    finding_say(&f->lacks, "the driver %s loads and gives no device", report->library);
    finding_say(&f->evidence, "%s: %u platforms, %u devices, last code %d, %s", origin, report->platforms,
                report->devices, report->code, driver_stage_name(report->stage));
    finding_say(&f->remedy,
                "it finds no device that it can drive: see what else is said here about this machine's graphics");
}

static void say_rusticl_is_off(examination *e, const driver_report *report) {
    finding *f = findings_add(e->list, FINDING_NOTE, about);
    f->disables = true;
    const char *enabled = setting("RUSTICL_ENABLE");
    finding_say(&f->lacks, "Mesa's driver Rusticl is installed and drives nothing until it is told what");
    finding_say(&f->evidence, "%s: %u platforms, 0 devices; RUSTICL_ENABLE %s%s", report->library, report->platforms,
                enabled ? "is " : "is not set", enabled ? enabled : "");
    finding_say(&f->remedy,
                "export RUSTICL_ENABLE=iris (Intel), radeonsi (AMD), nouveau (NVIDIA) or llvmpipe (the CPU)");
}

static void keep(opencl_state *state, const driver_report *report) {
    const char *name = strrchr(report->library, '/');
    name = name ? name + 1 : report->library;
    bool rusticl = strstr(name, "RusticlOpenCL") != NULL;
    state->rusticl = state->rusticl || rusticl;
    state->rusticl_gives_devices = state->rusticl_gives_devices || (rusticl && report->devices);
    if (strstr(name, "igdrcl")) {
        state->intel = true;
        state->intel_legacy = state->intel_legacy || strstr(name, "legacy");
    }
    for (unsigned i = 0; i < report->gpus && i < DRIVER_MOST_GPUS && state->gpus < DRIVER_MOST_GPUS; i++)
        state->gpu_vendors[state->gpus++] = report->gpu_vendors[i];
    state->devices += report->devices;
}

/* Load the library alone and tell what is wrong. `m` is NULL, and `origin` a variable, where no .icd file names it. */
static void examine_driver(examination *e, const char *library, const manifest *m, const char *origin) {
    driver_report report = {.lazy = e->places.ocl_icd};
    snprintf(report.library, sizeof report.library, "%s", library);
    trial t = driver_try(&report, e->seconds);
    if (t.outcome == TRIAL_IMPOSSIBLE) {
        finding *f = findings_add(e->list, FINDING_BLOCKS, about);
        finding_say(&f->lacks, "the driver %s could not be tried", library);
        finding_say(&f->evidence, "fork: %s", strerror(t.code));
        finding_say(&f->remedy, "raise the limits of processes and memory (ulimit -u, ulimit -v)");
    } else if (t.outcome != TRIAL_DONE) {
        say_deadly(e, &report, &t, m, origin);
    } else if (report.stage == DRIVER_LOADS) {
        say_does_not_load(e, &report, m, origin);
    } else if (report.devices == 0 && strstr(library, "RusticlOpenCL")) {
        keep(e->state, &report);
        say_rusticl_is_off(e, &report);
    } else {
        keep(e->state, &report);
        if (report.devices == 0) say_no_platform(e, &report, origin);
    }
}

static void examine_manifest(examination *e, manifest *m) {
    e->manifests++;
    manifest_read(m, e->places.ocl_icd);
    if (m->oddity == MANIFEST_UNREADABLE) {
        finding *f = findings_add(e->list, FINDING_NOTE, about);
        f->disables = true;
        finding_say(&f->lacks, "%s cannot be read", m->path);
        finding_say(&f->evidence, "open(\"%s\"): %s", m->path, m->why);
        finding_say(&f->remedy, "sudo chmod a+r %s, or remove it", m->path);
    } else if (m->oddity == MANIFEST_EMPTY) {
        finding *f = findings_add(e->list, FINDING_NOTE, about);
        f->disables = true;
        say_manifest_is_odd(f, m);
        finding_say(&f->evidence, "the loader skips %s, or asks for a library with no name", m->path);
    } else {
        examine_driver(e, m->library, m, m->path);
    }
}

/* ------------------------------------------------------------------ places */

static void examine_folder(examination *e, const char *folder, const char *variable) {
    size_t count;
    int why;
    manifest *list = manifests_in(folder, &count, &why);
    for (size_t i = 0; i < count; i++)
        examine_manifest(e, &list[i]);
    free(list);
    if (count) return;
    finding *f = findings_add(e->list, FINDING_NOTE, about);
    f->disables = true;
    if (variable) {
        finding_say(&f->lacks, "%s=%s holds no driver", variable, folder);
        finding_say(&f->remedy, "unset %s, or point it to a folder with .icd files", variable);
    } else {
        finding_say(&f->lacks, "the OpenCL loader is installed and no driver with it");
        finding_say(&f->remedy, "%s %s (runs OpenCL on the CPU), or the driver of this machine's graphics",
                    e->system->install, e->system->cpu);
    }
    finding_say(&f->evidence, "the loader looks for .icd files in %s: %s", folder,
                why ? strerror(why) : "there are none");
}

/* OCL_ICD_VENDORS names a file, or nothing. */
static void examine_file(examination *e, const char *path) {
    size_t length = strlen(path);
    bool there = path_exists(path);
    manifest m = {.oddity = MANIFEST_PLAIN};
    snprintf(m.path, sizeof m.path, "%s", path);
    bool is_manifest = length > 4 && strcmp(path + length - 4, ".icd") == 0;
    if (is_manifest && !strchr(path, '/') && e->places.folder[0]) {
        char beside[1024];
        snprintf(beside, sizeof beside, "%s/%s", e->places.folder, path);
        if (path_exists(beside)) {
            snprintf(m.path, sizeof m.path, "%s", beside);
            there = true;
        }
    }
    if (!e->places.ocl_icd || (!there && (is_manifest || strchr(path, '/')))) {
        finding *f = findings_add(e->list, FINDING_NOTE, about);
        f->disables = true;
        finding_say(&f->lacks, "OCL_ICD_VENDORS=%s holds no driver: %s", path,
                    there ? "this loader takes a folder there, and it is a file" : "it does not exist");
        finding_say(&f->evidence, "stat(\"%s\"): %s", path, there ? "a file" : strerror(ENOENT));
        finding_say(&f->remedy, "unset OCL_ICD_VENDORS, or point it to a folder with .icd files");
    } else if (is_manifest) {
        examine_manifest(e, &m);
    } else {
        examine_driver(e, path, NULL, "OCL_ICD_VENDORS");
    }
}

static void examine_vendors(examination *e) {
    const char *vendors = setting("OCL_ICD_VENDORS");
    const char *moved = e->places.reads_vendor_path ? setting("OPENCL_VENDOR_PATH") : NULL;
    if (vendors && is_folder(vendors))
        examine_folder(e, vendors, "OCL_ICD_VENDORS");
    else if (vendors)
        examine_file(e, vendors);
    else if (moved)
        examine_folder(e, moved, "OPENCL_VENDOR_PATH");
    else
        examine_folder(e, e->places.folder[0] ? e->places.folder : "/etc/OpenCL/vendors", NULL);
}

/* Every part of a list with colons. */
static void for_each_part(examination *e, const char *value, void (*take)(examination *e, const char *part)) {
    char *copy = cli_copy_text(value), *rest = NULL;
    for (char *part = strtok_r(copy, ":", &rest); part; part = strtok_r(NULL, ":", &rest))
        take(e, part);
    free(copy);
}

static void examine_named_driver(examination *e, const char *library) {
    examine_driver(e, library, NULL, "OCL_ICD_FILENAMES");
}

static void examine_layer(examination *e, const char *library) {
    driver_report report = {.lazy = true};
    snprintf(report.library, sizeof report.library, "%s", library);
    trial t = library_try(&report, e->seconds);
    if (t.outcome == TRIAL_DONE && report.stage == DRIVER_TOLD) {
        finding *f = findings_add(e->list, FINDING_SLOWS, "settings");
        finding_say(&f->lacks, "every OpenCL call goes through the layer %s", library);
        finding_say(&f->evidence, "OPENCL_LAYERS=%s", setting("OPENCL_LAYERS"));
        finding_say(&f->remedy, "unset OPENCL_LAYERS");
        return;
    }
    bool deadly = t.outcome != TRIAL_DONE && t.outcome != TRIAL_IMPOSSIBLE;
    char what[128];
    trial_describe(&t, e->seconds, what, sizeof what);
    finding *f = findings_add(e->list, deadly ? FINDING_BLOCKS : FINDING_NOTE, deadly ? about : "settings");
    finding_say(&f->lacks, "the OpenCL layer %s %s", library,
                deadly ? "takes down every program that asks for OpenCL" : "cannot be loaded and is left out");
    if (deadly)
        finding_say(&f->evidence, "OPENCL_LAYERS=%s: it %s%s", setting("OPENCL_LAYERS"), what, report.message);
    else
        finding_say(&f->evidence, "OPENCL_LAYERS: %s", report.message);
    finding_say(&f->remedy, "unset OPENCL_LAYERS, or correct it");
    e->state->deadly = e->state->deadly || deadly;
}

void opencl_examine(findings *list, const packages *system, double seconds, opencl_state *state) {
    *state = (opencl_state){.deadly = false};
    examination e = {.list = list, .system = system, .seconds = seconds, .state = state};
    size_t first = list->count;
    if (!examine_loader(&e)) return;
    examine_vendors(&e);
    const char *named = setting("OCL_ICD_FILENAMES");
    if (named && e.places.reads_filenames) {
        for_each_part(&e, named, examine_named_driver);
    } else if (named) {
        finding *f = findings_add(list, FINDING_NOTE, "settings");
        finding_say(&f->lacks, "OCL_ICD_FILENAMES is set and this OpenCL loader does not read it");
        finding_say(&f->evidence, "OCL_ICD_FILENAMES=%s, loader %s", named,
                    e.places.ocl_icd ? "ocl-icd" : "of another make");
        finding_say(&f->remedy, "put the library's path into OCL_ICD_VENDORS instead");
    }
    if (setting("OPENCL_LAYERS")) for_each_part(&e, setting("OPENCL_LAYERS"), examine_layer);
    if (state->devices == 0) findings_block_what_disables(list, first);
}

bool opencl_drives(const opencl_state *state, unsigned vendor) {
    for (unsigned i = 0; i < state->gpus; i++)
        if (state->gpu_vendors[i] == vendor) return true;
    return false;
}
