/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_BENCH_MACHINE_H
#define CLI_BENCH_MACHINE_H

#include <cjson/cJSON.h>

/* Add "machine" to a bench's object: what it was measured on, {"processor", "processors", "system"}. */
void bench_add_machine(cJSON *object);

/* The processor as it calls itself; "unknown" where the system does not tell. For the caller to free. */
char *bench_processor_name(void);

#endif
