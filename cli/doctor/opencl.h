/* SPDX-License-Identifier: Apache-2.0 */
/* OpenCL on this machine: the loader, where it looks for drivers, and what each driver does when it is loaded. */
#ifndef CLI_DOCTOR_OPENCL_H
#define CLI_DOCTOR_OPENCL_H

#include "doctor/driver.h"
#include "doctor/findings.h"
#include "doctor/systems.h"

typedef struct opencl_state {
    bool deadly;            /* a driver, or the loader, crashes or hangs: every program that asks for OpenCL does */
    unsigned devices, gpus; /* of all drivers that work */
    unsigned gpu_vendors[DRIVER_MOST_GPUS];
    /* Drivers that load. One that loads and gives no device is there for a chip that it does not see. */
    bool intel, intel_legacy, rusticl;
    bool rusticl_gives_devices;
} opencl_state;

/* Fill in *state, and tell what is wrong. */
void opencl_examine(findings *list, const packages *system, double seconds, opencl_state *state);

/* Whether a driver gives a GPU of this PCI vendor. */
bool opencl_drives(const opencl_state *state, unsigned vendor);

#endif
