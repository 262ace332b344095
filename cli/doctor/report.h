/* SPDX-License-Identifier: Apache-2.0 */
/* The doctor's findings as text and as JSON. */
#ifndef CLI_DOCTOR_REPORT_H
#define CLI_DOCTOR_REPORT_H

#include "doctor/backends.h"
#include "doctor/findings.h"

void report_text(const findings *list, const backends_report *backends);
void report_json(const findings *list, const backends_report *backends);

#endif
