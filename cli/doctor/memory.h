/* SPDX-License-Identifier: Apache-2.0 */
/* What limits memory here: of the process, of its control group, of the system. */
#ifndef CLI_DOCTOR_MEMORY_H
#define CLI_DOCTOR_MEMORY_H

#include "doctor/findings.h"

void memory_examine(findings *list, const char *root);

#endif
