/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an OpenCL loader does with a driver, done step by step: dlopen, clGetExtensionFunctionAddress,
 * clIcdGetPlatformIDsKHR, then the functions that the platform's dispatch table names (cl_khr_icd).
 */
#define _GNU_SOURCE
#define CL_TARGET_OPENCL_VERSION 300
#include "doctor/driver.h"

#include <CL/cl_icd.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef void *extension_function(const char *name);
typedef void *platform_function(cl_platform_id platform, const char *name);
typedef cl_int platforms_function(cl_uint room, cl_platform_id *platforms, cl_uint *count);

/* Where every platform object begins. */
struct _cl_platform_id {
    const cl_icd_dispatch *dispatch;
};

/* memcpy because ISO C has no conversion between object and function pointers. */
static bool as_function(void *symbol, void *function, size_t size) {
    memcpy(function, &symbol, size);
    return symbol != NULL;
}

#define FIND(function, symbol) as_function(symbol, &(function), sizeof(function))

static void *open_library(const char *name, bool lazy, char *why, size_t size) {
    void *library = dlopen(name, (lazy ? RTLD_LAZY : RTLD_NOW) | RTLD_LOCAL);
    if (!library) {
        const char *message = dlerror();
        snprintf(why, size, "%s", message ? message : "the system does not say why");
    }
    return library;
}

/* ----------------------------------------------------------------- drivers */

typedef struct driver {
    void *library;
    extension_function *extension;
    platform_function *of_platform; /* NULL in drivers before cl_khr_icd 2.0 */
    platforms_function *platforms;
} driver;

static bool enter(driver *d, driver_report *report) {
    const char *missing = NULL;
    if (!FIND(d->extension, dlsym(d->library, "clGetExtensionFunctionAddress")))
        missing = "clGetExtensionFunctionAddress";
    else if (!FIND(d->platforms, d->extension("clIcdGetPlatformIDsKHR")) &&
             !FIND(d->platforms, dlsym(d->library, "clIcdGetPlatformIDsKHR")))
        missing = "clIcdGetPlatformIDsKHR";
    if (missing) {
        snprintf(report->message, sizeof report->message, "it has no %s", missing);
        return false;
    }
    (void)FIND(d->of_platform, d->extension("clIcdGetFunctionAddressForPlatformKHR"));
    return true;
}

typedef struct platform_calls {
    cl_api_clGetPlatformInfo platform_info;
    cl_api_clGetDeviceIDs devices;
    cl_api_clGetDeviceInfo device_info;
} platform_calls;

static bool find_calls(const driver *d, cl_platform_id platform, platform_calls *calls) {
    if (d->of_platform)
        return FIND(calls->platform_info, d->of_platform(platform, "clGetPlatformInfo")) &&
               FIND(calls->devices, d->of_platform(platform, "clGetDeviceIDs")) &&
               FIND(calls->device_info, d->of_platform(platform, "clGetDeviceInfo"));
    const cl_icd_dispatch *table = platform ? platform->dispatch : NULL;
    if (!table) return false;
    *calls = (platform_calls){table->clGetPlatformInfo, table->clGetDeviceIDs, table->clGetDeviceInfo};
    return calls->platform_info && calls->devices && calls->device_info;
}

static void count_gpus(const platform_calls *calls, const cl_device_id *ids, cl_uint count, driver_report *report) {
    for (cl_uint i = 0; i < count; i++) {
        cl_device_type type = 0;
        cl_uint vendor = 0;
        (void)calls->device_info(ids[i], CL_DEVICE_TYPE, sizeof type, &type, NULL);
        (void)calls->device_info(ids[i], CL_DEVICE_VENDOR_ID, sizeof vendor, &vendor, NULL);
        if (!report->driver_version[0])
            (void)calls->device_info(ids[i], CL_DRIVER_VERSION, sizeof report->driver_version - 1,
                                     report->driver_version, NULL);
        if (!(type & CL_DEVICE_TYPE_GPU)) continue;
        if (report->gpus < DRIVER_MOST_GPUS) report->gpu_vendors[report->gpus] = vendor;
        report->gpus++;
    }
}

enum { MOST_PLATFORMS = 8, MOST_DEVICES = 64 };

static bool ask_platform(const driver *d, cl_platform_id platform, driver_report *report) {
    platform_calls calls;
    if (!find_calls(d, platform, &calls)) {
        snprintf(report->message, sizeof report->message, "its platform has no table of functions");
        return false;
    }
    if (!report->platform[0])
        (void)calls.platform_info(platform, CL_PLATFORM_NAME, sizeof report->platform - 1, report->platform, NULL);
    cl_device_id ids[MOST_DEVICES];
    cl_uint count = 0;
    cl_int code = calls.devices(platform, CL_DEVICE_TYPE_ALL, MOST_DEVICES, ids, &count);
    report->code = code;
    if (code == CL_DEVICE_NOT_FOUND) return true;
    if (code != CL_SUCCESS) return false;
    report->devices += count;
    count_gpus(&calls, ids, count < MOST_DEVICES ? count : MOST_DEVICES, report);
    return true;
}

static void ask_driver(void *shared) {
    driver_report *report = shared;
    report->stage = DRIVER_LOADS;
    driver d = {.library = open_library(report->library, report->lazy, report->message, sizeof report->message)};
    if (!d.library) return;
    report->stage = DRIVER_ENTERS;
    if (!enter(&d, report)) return;
    report->stage = DRIVER_PLATFORM;
    cl_platform_id platforms[MOST_PLATFORMS];
    cl_uint count = 0;
    cl_int code = d.platforms(MOST_PLATFORMS, platforms, &count);
    report->code = code;
    if (code != CL_SUCCESS && code != CL_PLATFORM_NOT_FOUND_KHR) return;
    report->platforms = code == CL_SUCCESS ? count : 0;
    report->stage = DRIVER_DEVICES;
    for (cl_uint i = 0; i < report->platforms && i < MOST_PLATFORMS; i++)
        if (!ask_platform(&d, platforms[i], report)) return;
    report->stage = DRIVER_TOLD;
}

/* A driver may have written anywhere before it crashed. */
static void end_texts(driver_report *report) {
    report->message[sizeof report->message - 1] = '\0';
    report->platform[sizeof report->platform - 1] = '\0';
    report->driver_version[sizeof report->driver_version - 1] = '\0';
}

trial driver_try(driver_report *report, double seconds) {
    trial t = trial_run(ask_driver, report, sizeof *report, seconds);
    end_texts(report);
    return t;
}

const char *driver_stage_name(driver_stage stage) {
    switch (stage) {
    case DRIVER_LOADS:
        return "while it was loaded";
    case DRIVER_ENTERS:
        return "when asked for its entry points";
    case DRIVER_PLATFORM:
        return "in clIcdGetPlatformIDsKHR";
    case DRIVER_DEVICES:
        return "in clGetDeviceIDs";
    case DRIVER_TOLD:
        break;
    }
    return "after it had told all";
}

/* ------------------------------------------------------------------ loader */

static void ask_loader(void *shared) {
    loader_report *report = shared;
    void *process = dlopen(NULL, RTLD_NOW | RTLD_LOCAL);
    void *library = process && dlsym(process, "clGetPlatformIDs") ? process : NULL;
    report->preloaded = library != NULL;
    if (!library) library = open_library("libOpenCL.so.1", false, report->message, sizeof report->message);
    if (!library) return;
    report->loads = true;
    Dl_info where;
    void *symbol = dlsym(library, "clGetPlatformIDs");
    if (symbol && dladdr(symbol, &where) && where.dli_fname)
        snprintf(report->path, sizeof report->path, "%s", where.dli_fname);
}

trial loader_try(loader_report *report, double seconds) {
    trial t = trial_run(ask_loader, report, sizeof *report, seconds);
    report->path[sizeof report->path - 1] = '\0';
    report->message[sizeof report->message - 1] = '\0';
    return t;
}

static void open_alone(void *shared) {
    driver_report *report = shared;
    report->stage = DRIVER_LOADS;
    if (open_library(report->library, report->lazy, report->message, sizeof report->message))
        report->stage = DRIVER_TOLD;
}

trial library_try(driver_report *report, double seconds) {
    trial t = trial_run(open_alone, report, sizeof *report, seconds);
    end_texts(report);
    return t;
}
