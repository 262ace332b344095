/* SPDX-License-Identifier: Apache-2.0 */
/* One OpenCL library, loader or driver, loaded and asked in a child as programs would: how far it came. */
#ifndef CLI_DOCTOR_DRIVER_H
#define CLI_DOCTOR_DRIVER_H

#include <stdbool.h>

#include "doctor/trial.h"

typedef enum {
    DRIVER_LOADS,    /* dlopen, with the library's constructors */
    DRIVER_ENTERS,   /* its entry points */
    DRIVER_PLATFORM, /* clIcdGetPlatformIDsKHR */
    DRIVER_DEVICES,  /* clGetDeviceIDs and what the devices are */
    DRIVER_TOLD      /* all of it */
} driver_stage;

enum { DRIVER_MOST_GPUS = 16 };

typedef struct driver_report {
    /* Asked: the library as the .icd file names it, and whether names are bound when first used, as ocl-icd does. */
    char library[1024];
    bool lazy;
    /* Answered, as far as the stage went. */
    driver_stage stage;
    char message[512]; /* why it does not load, in the dynamic loader's words; or which entry point it lacks */
    int code;          /* what an OpenCL call returned */
    unsigned platforms, devices, gpus;
    unsigned gpu_vendors[DRIVER_MOST_GPUS]; /* PCI vendors of the first GPUs */
    char platform[128], driver_version[128];
} driver_report;

trial driver_try(driver_report *report, double seconds);

/* What it was doing at a stage: "while it was loaded", "in clIcdGetPlatformIDsKHR". */
const char *driver_stage_name(driver_stage stage);

typedef struct loader_report {
    bool preloaded; /* OpenCL is in every process already: a checker in the loader's place */
    bool loads;
    char path[1024];   /* of the library */
    char message[512]; /* why it does not load */
} loader_report;

trial loader_try(loader_report *report, double seconds);

/* Another library that would be loaded into every program, a layer: only that it loads. */
trial library_try(driver_report *report, double seconds);

#endif
