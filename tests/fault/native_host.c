/* SPDX-License-Identifier: Apache-2.0 */
#include "script.h"

static onuma_host_timeline timelines[SCRIPT_QUEUES];

static void open(uint64_t context, uint64_t device) {
    (void)context, (void)device;
}

static void close(void) {}

static uint64_t queue(unsigned i) {
    return (uintptr_t)&timelines[i];
}

static void begin(unsigned i, onuma_native_event *event) {
    event->api = ONUMA_API_HOST;
    event->handle = atomic_fetch_add(&timelines[i].submitted, 1) + 1;
}

static void end(unsigned i) {
    atomic_store(&timelines[i].completed, atomic_load(&timelines[i].submitted));
}

const native_calls native_host = {ONUMA_API_HOST, "host", "backends:host,log:warn", open, close, queue, begin, end};
