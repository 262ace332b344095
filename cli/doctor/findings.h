/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the doctor found: each thing with what it is about, how bad it is, the evidence that was seen on this
 * machine, and the command that remedies it. Everything else in this folder only adds to such a list.
 */
#ifndef CLI_DOCTOR_FINDINGS_H
#define CLI_DOCTOR_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "output.h"

typedef enum {
    FINDING_NOTE,  /* worth knowing; nothing is lost by it */
    FINDING_SLOWS, /* it works, but slower or with less memory than it could */
    FINDING_BLOCKS /* something that this machine has cannot be used */
} finding_severity;

typedef struct finding_text {
    char text[512];
} finding_text;

typedef struct finding {
    const char *about; /* a backend's name, or "graphics", "settings", "memory", "container"; static */
    finding_severity severity;
    bool everything; /* blocks every backend, the host's too */
    bool disables;   /* a driver, which nobody misses where another drives the same device */
    finding_text lacks, evidence, remedy;
} finding;

typedef struct findings {
    finding **items; /* each of its own, so that one may be kept while others are added */
    size_t count;
} findings;

/* A new one at the end of the list, with no texts yet. Never NULL. */
finding *findings_add(findings *list, finding_severity severity, const char *about);

/* Replace one of its texts; what is too long is cut. */
void finding_say(finding_text *out, const char *format, ...) CLI_FORMAT(2);

/* The first that blocks this backend, or NULL. What is about no backend blocks all that need a driver. */
const finding *findings_blocking(const findings *list, const char *backend);

/* From the item at `first` on, what disables a driver blocks. */
void findings_block_what_disables(findings *list, size_t first);

/* Whether any blocks anything. */
bool findings_any_blocks(const findings *list);

const char *finding_severity_name(finding_severity severity);

void findings_drop(findings *list);

#endif
