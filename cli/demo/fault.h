/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deliberate faults, to prove that the checks see what they are for
 * (`opennuma demo --fault NAME`). The faults are in how the demo uses the
 * library; the library itself knows nothing of them.
 */
#ifndef DEMO_FAULT_H
#define DEMO_FAULT_H

#include <stdbool.h>

#define DEMO_FAULT_NAMES "view|copy|acquire|release|order|kernel"

typedef struct demo_fault {
    const char *name;
    bool drop_offset;  /* view: a view of a place inside a block is bound as one of the block's start */
    bool private_copy; /* copy: kernels get a copy of the block, as a driver makes of memory it cannot share */
    bool skip_acquire; /* acquire: the CPU touches memory without waiting for the device and its flush */
    bool skip_release; /* release: the CPU's writes are never handed over to the device */
    bool skip_order;   /* order: no queue waits for another */
    bool wrong_kernel; /* kernel: vector_add subtracts */
} demo_fault;

/* The fault of that name, or for NULL one that does nothing. NULL for an unknown name. */
const demo_fault *demo_fault_find(const char *name);

#endif
