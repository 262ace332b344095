/* SPDX-License-Identifier: Apache-2.0 */
/* Queues of Intel's driver without hardware in the device's own context, a command queue and an immediate list; between.c
 * runs their barriers. What does not end by itself waits for an event that the CPU sets. */
#include "between.h"
#include "script.h"

static ze_context_handle_t context;
static ze_device_handle_t device;
static uint64_t queues[SCRIPT_QUEUES];
static ze_event_handle_t gates[SCRIPT_QUEUES], last[SCRIPT_QUEUES];

static void open(uint64_t native_context, uint64_t native_device) {
    context = (ze_context_handle_t)(uintptr_t)native_context;
    device = (ze_device_handle_t)(uintptr_t)native_device;
    between_contexts_keep();
    if (context == NULL) return; /* the device could not be opened */
    queues[0] = between_list_create(context, device);
    queues[1] = between_queue_create(context, device);
}

static void end(unsigned i) {
    if (gates[i] == NULL) return;
    between_event_set(gates[i]);
    (void)between_event_is_set(last[i]); /* runs what waited */
}

static void forget_events(unsigned i) {
    if (gates[i] == NULL) return;
    between_event_destroy(gates[i]);
    between_event_destroy(last[i]);
    gates[i] = last[i] = NULL;
}

static void close(void) {
    for (unsigned i = 0; i < SCRIPT_QUEUES; i++) {
        end(i);
        if (queues[i] != 0) between_queue_destroy(queues[i]);
        queues[i] = 0;
        forget_events(i);
    }
    between_contexts_go();
}

static uint64_t queue(unsigned i) {
    return queues[i];
}

/* The events stay until the end: the library keeps no references to them. */
static void begin(unsigned i, onuma_native_event *event) {
    if (context != NULL) {
        gates[i] = between_event_create(context, device);
        last[i] = between_event_create(context, device);
        between_submit(queues[i], gates[i], last[i]);
    }
    event->api = ONUMA_API_LEVEL_ZERO;
    event->handle = (uintptr_t)last[i];
}

const native_calls native_level_zero = {ONUMA_API_LEVEL_ZERO, "level_zero:0", NULL, open, close, queue, begin, end};
