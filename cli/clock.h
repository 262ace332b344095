/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CLOCK_H
#define CLI_CLOCK_H

#include <stdint.h>

/* Nanoseconds of a clock that only goes forward. */
uint64_t cli_now(void);

/* Give the processor away for at least that long. */
void cli_sleep(uint64_t ns);

#endif
