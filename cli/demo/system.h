/* SPDX-License-Identifier: Apache-2.0 */
/* What the demo asks the system: how much memory the process has. */
#ifndef DEMO_SYSTEM_H
#define DEMO_SYSTEM_H

#include <stdint.h>

/* Bytes of memory that the process has in use now; 0 where the system does not tell. */
uint64_t demo_process_memory(void);

#endif
