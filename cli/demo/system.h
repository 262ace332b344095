/* SPDX-License-Identifier: Apache-2.0 */
/* What the demo asks the system: the time, and how much memory the process has. */
#ifndef DEMO_SYSTEM_H
#define DEMO_SYSTEM_H

#include <stdint.h>

/* A clock that never goes back. */
uint64_t demo_clock_ns(void);

/* Let a millisecond pass. */
void demo_pause(void);

/* Bytes of memory that the process has in use now; 0 where the system does not tell. */
uint64_t demo_process_memory(void);

#endif
