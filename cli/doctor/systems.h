/* SPDX-License-Identifier: Apache-2.0 */
/* What installs each thing on the system at hand, by the names that its packages have there. */
#ifndef CLI_DOCTOR_SYSTEMS_H
#define CLI_DOCTOR_SYSTEMS_H

typedef struct packages {
    const char *system;         /* as ID or ID_LIKE of os-release has it */
    const char *install;        /* the command before a package's name */
    const char *loader;         /* the OpenCL loader */
    const char *intel;          /* Intel's driver for its graphics of generation 12 and later */
    const char *level_zero;     /* the loader of Level Zero, and Intel's driver for it */
    const char *mesa;           /* Mesa's driver, Rusticl */
    const char *nvidia, *amd;   /* the vendors' own drivers */
    const char *cpu;            /* a driver that computes on the CPU: PoCL */
    const char *kernel_modules; /* where kernel modules are that the system leaves out at first; "" if nowhere */
    const char *owner;          /* the command before a file's name that tells its package */
    const char *provider;       /* the command before a library's name that tells which package would bring it */
} packages;

/* For the system whose files begin at `root` ("" for this one). Never NULL: an unknown one gets words, not names. */
const packages *packages_of_system(const char *root);

#endif
