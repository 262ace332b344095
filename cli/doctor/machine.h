/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine, its system and its drivers keep from the library; a file for each kind of system. */
#ifndef CLI_DOCTOR_MACHINE_H
#define CLI_DOCTOR_MACHINE_H

#include "doctor/backends.h"

/* `survived`: the library could be tried with the drivers, and none took the child down. */
void machine_examine(findings *list, const backends_report *report, double seconds, bool survived);

#endif
