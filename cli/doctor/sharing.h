/* SPDX-License-Identifier: Apache-2.0 */
/* How each device shares memory with the CPU, how that is known, and what was turned down. */
#ifndef CLI_DOCTOR_SHARING_H
#define CLI_DOCTOR_SHARING_H

#include "doctor/backends.h"

/* What is not as good as it could be, on the devices that were opened. */
void sharing_examine(findings *list, const backends_report *report);

#endif
