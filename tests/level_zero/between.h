/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the library and the Level Zero loader, in tests: the library's loader.c is compiled once more, and each
 * function that it finds is led through between.c. That does three things.
 *
 * It runs barriers. Intel's driver without hardware takes commands and runs none, so no event is ever set. Here the
 * events that the library's barriers (and between_submit's) are to set are set by the CPU, in the order of each queue,
 * once what they wait for is set. Kernels are not run.
 *
 * It lets the n-th call of a function fail, and counts what the library holds of the driver's.
 *
 * It stands in for what this driver has not: functions of version 1.9, and system management.
 */
#ifndef ONUMA_TESTS_LEVEL_ZERO_BETWEEN_H
#define ONUMA_TESTS_LEVEL_ZERO_BETWEEN_H

#include "backend/level_zero/loader.h"

#include <stdbool.h>
#include <stdint.h>

/* ------------------------------------------------------------------- queues */

/* Queues of the program. A list is immediate. The handle as onuma_queue_wrap takes it. */
uint64_t between_queue_create(ze_context_handle_t context, ze_device_handle_t device);
uint64_t between_list_create(ze_context_handle_t context, ze_device_handle_t device);
void between_queue_destroy(uint64_t native);

/* From now on contexts that the library destroys stay, for the program's queues and events in them, until they go. */
void between_contexts_keep(void);
void between_contexts_go(void);

/* Events of the program. */
ze_event_handle_t between_event_create(ze_context_handle_t context, ze_device_handle_t device);
void between_event_set(ze_event_handle_t event);
bool between_event_is_set(ze_event_handle_t event);
void between_event_destroy(ze_event_handle_t event);

/* Work of the program's: begins when all before it in the queue is done and `after` (NULL: nothing) is set, then sets
 * `done` (NULL: nothing). */
void between_submit(uint64_t native, ze_event_handle_t after, ze_event_handle_t done);

/* ------------------------------------------------------------------- failing */

/* From now on the nth call (from 1) of `function`, or of any (NULL), and all after it up to `times`, give `code`. */
void between_fail(const char *function, uint64_t nth, uint64_t times, ze_result_t code);
void between_fail_none(void);
uint64_t between_fired(void);
const char *between_fired_in(void); /* the last function that failed; NULL: none did */

uint64_t between_calls(const char *function); /* since the process began */

/* What the library holds: made and not destroyed. */
typedef struct between_books {
    int contexts, memory, pools, events, lists, imports;
} between_books;
between_books between_books_now(void);

/* --------------------------------------------------------------- standing in */

/* For what is loaded from now on. */
typedef enum between_sysman { BETWEEN_SYSMAN_NONE, BETWEEN_SYSMAN_OLD, BETWEEN_SYSMAN_NEW } between_sysman;
void between_stand_in(bool version_1_9, between_sysman sysman, uint64_t device_memory_free);
/* What zeDeviceGetProperties adds to its answer: other flags, another limit; 0: nothing. */
void between_claim(uint64_t most);

#endif
