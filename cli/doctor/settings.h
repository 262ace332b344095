/* SPDX-License-Identifier: Apache-2.0 */
/* Variables in force that change what programs run on, or what is measured. */
#ifndef CLI_DOCTOR_SETTINGS_H
#define CLI_DOCTOR_SETTINGS_H

#include "doctor/findings.h"

void settings_examine(findings *list);

#endif
