/* SPDX-License-Identifier: Apache-2.0 */
/* Whether this process may open a graphics chip's device node, and if not, whom to ask for what. */
#ifndef CLI_DOCTOR_NODES_H
#define CLI_DOCTOR_NODES_H

#include "doctor/findings.h"

/* Whether /dev/dri/NODE can be opened; if not, why, in the list. */
bool node_examine(findings *list, const char *root, const char *node);

/* Who failed to open a device node, and what is known about the node's group. */
typedef struct node_refusal {
    const char *node;  /* its path */
    const char *group; /* its group's name; "" if the group has none here */
    long group_id;
    unsigned mode;
    const char *user;
    bool in_file;    /* the user is a member by /etc/group */
    bool in_session; /* this process has the group */
    bool in_container;
    int error; /* of opening it */
} node_refusal;

void node_say_refusal(finding *f, const node_refusal *r);

#endif
