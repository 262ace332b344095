/* SPDX-License-Identifier: Apache-2.0 */
/* Whether this process runs in a container, or in Windows' subsystem for Linux, and how graphics get in there. */
#ifndef CLI_DOCTOR_CONTAINER_H
#define CLI_DOCTOR_CONTAINER_H

#include "doctor/findings.h"
#include "doctor/systems.h"

typedef struct container_kind {
    char name[32];     /* "docker", "podman", "lxc"; "" outside of any */
    char evidence[96]; /* what tells it */
} container_kind;

container_kind container_of_process(const char *root);

/* How to start it so that a chip of this PCI vendor is seen inside. */
finding_text container_remedy(const container_kind *kind, unsigned vendor);

/* Tell of the container, and of Windows' subsystem, where graphics come through /dev/dxg. */
void container_examine(findings *list, const packages *system, const char *root);

#endif
