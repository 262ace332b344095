/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of src/sync stand on: the real engine over plain memory, and
 * the real host backend behind a table that counts calls and can be told to
 * fail, to need mapping, or to give views as handles.
 */
#ifndef ONUMA_TESTS_UNIT_SYNC_SUPPORT_H
#define ONUMA_TESTS_UNIT_SYNC_SUPPORT_H

#include "sync/internal.h"

#include "support.h"

typedef struct fake_driver {
    /* What to answer; OK: the host backend's answer. */
    _Atomic onuma_result record, poll, map, unmap, view;
    _Atomic bool poll_gate; /* closed: the next poll, and it alone, takes until it opens */
    _Atomic bool poll_waits;
    _Atomic bool view_gate; /* closed: making a view takes until it opens */
    _Atomic uint32_t view_waiters;
    _Atomic uint32_t records, polls, live_markers, opens, closes, waits, views_made, views_released, views_retained;
    _Atomic uint32_t maps, unmaps;
    _Atomic uint32_t mapped_mode;    /* as the driver sees it; a second map without an unmap fails the test */
    _Atomic uint32_t locked;         /* depth of the queue's lock functions */
    _Atomic uint32_t unlocked_calls; /* calls that should have been inside them */
    bool wants_lock;
} fake_driver;

extern fake_driver fake;

typedef struct fixture {
    onuma__config config;
    onuma__log log;
    char lines[4096]; /* of the log */
    onuma__registry registry;
    onuma__device *device;
    onuma__owner owner;
    onuma__engine *engine;
    onuma_host_timeline a, b;
    _Atomic uint64_t spans, released_spans;
} fixture;

/* setup and teardown for cmocka: a device, coherent and with addresses, and an engine on it. */
int sync_set_up(void **state);
int sync_tear_down(void **state);
/* The device from here on gives handles, and needs mapping. */
void needs_mapping(fixture *f);
void gives_handles(fixture *f);

void *take(fixture *f, size_t size, onuma__queue *queue);
onuma__queue *wrap(fixture *f, onuma_host_timeline *timeline, onuma_queue_order order);
void drop(onuma__queue *queue);
/* Work is submitted to, and finished on, a timeline. */
void submit(onuma_host_timeline *timeline);
void complete(onuma_host_timeline *timeline);
onuma_result use(onuma__queue *queue, void *ptr, onuma_access mode);
onuma_native_event event_at(uint64_t value);

/* Whether the engine, without growing, would hand `ptr` to an allocation on that queue. Takes all it can get. */
bool serves(fixture *f, size_t size, onuma__queue *queue, const void *ptr);
/* A poll, and whether it should bring anything. */
void poll_gives(fixture *f, bool expected);

/* Run fn on a thread of its own. */
typedef struct helper helper;
helper *start(void (*fn)(void *), void *argument);
void join(helper *thread);

#endif
