/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library itself, tried in a child: which of its backends work here, and how each device shares memory with the
 * CPU. Devices are opened for that, so that what the library proves at their first use is proved.
 */
#ifndef CLI_DOCTOR_BACKENDS_H
#define CLI_DOCTOR_BACKENDS_H

#include "doctor/findings.h"
#include "doctor/trial.h"
#include "opennuma/opennuma.h"

enum { BACKENDS_MOST = 16, BACKENDS_MOST_DEVICES = 64 };

typedef struct backends_report {
    /* Asked. */
    bool open_devices;
    const char *config; /* over OPENNUMA_CONF; NULL for none */
    /* Answered. */
    onuma_result result; /* of creating a runtime */
    char detail[256];
    size_t backend_count, device_count, opened; /* devices that were gone through */
    onuma_backend_info backends[BACKENDS_MOST];
    size_t devices_of[BACKENDS_MOST];
    onuma_device_info devices[BACKENDS_MOST_DEVICES];
    char failures[BACKENDS_MOST_DEVICES][256]; /* why a device cannot be used; "" if it can */
} backends_report;

/* Try, tell what is wrong with the settings and with each device, and fill in *report. Where the drivers take the
 * child down, the report is of the host alone, and *survived is false. */
void backends_examine(findings *list, backends_report *report, double seconds, bool open_devices, bool *survived);

/* For each backend that does not work, see that a finding says so. `deadly`: drivers were found that take it down. */
void backends_conclude(findings *list, const backends_report *report);

/* Whether the library has this backend and found no driver for it. */
bool backends_is_absent(const backends_report *report, const char *backend);

/* Whether OPENNUMA_CONF says that no driver is to be loaded. */
bool backends_left_out(const backends_report *report);

#endif
