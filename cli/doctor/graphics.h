/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The graphics chips that the kernel shows, and what stands between each and a program: the kernel's driver, its
 * device node, and the right to open that. All of it is read from files below a root, which is
 * "" for this machine and a made-up tree in the unit tests.
 */
#ifndef CLI_DOCTOR_GRAPHICS_H
#define CLI_DOCTOR_GRAPHICS_H

#include "doctor/findings.h"
#include "doctor/opencl.h"
#include "doctor/systems.h"

enum { GRAPHICS_MOST = 16, PCI_INTEL = 0x8086, PCI_AMD = 0x1002, PCI_NVIDIA = 0x10DE };

typedef struct graphics_chip {
    char slot[32]; /* "0000:00:02.0" */
    unsigned vendor, device;
    char driver[32]; /* of the kernel; "" if none is bound */
    char node[32];   /* "renderD128"; "" if the kernel made none */
    bool usable;     /* a program of this user can open it */
} graphics_chip;

typedef struct graphics {
    graphics_chip chips[GRAPHICS_MOST];
    size_t count;
} graphics;

/* The chips that could compute: those of Intel, AMD and NVIDIA. */
void graphics_read(graphics *out, const char *root);

/* What keeps programs from each of them. Sets `usable`. */
void graphics_examine(graphics *g, findings *list, const packages *system, const char *root);

/* Those that can be opened and that no OpenCL driver drives. */
void graphics_examine_drivers(const graphics *g, findings *list, const packages *system, const opencl_state *opencl);

/* Those of Intel's that can be opened, where no Level Zero driver was found. */
void graphics_examine_level_zero(const graphics *g, findings *list, const packages *system);

/* Intel's generation from the device's PCI number; 12 stands for it and all later ones. */
unsigned graphics_intel_generation(unsigned device);

#endif
