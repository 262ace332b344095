/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that calls every public function, small enough to be run again for every fault there can be. Each call may
 * fail while a fault fires, and then: there is a text, out parameters are NULL, statistics agree with the decorators'
 * books and with the script's own, live blocks keep their bytes, and the same call works when it is made again.
 */
#ifndef ONUMA_TESTS_FAULT_SCRIPT_H
#define ONUMA_TESTS_FAULT_SCRIPT_H

#include "fault.h"

/* Native queues of one API, whose work the script begins and ends as it likes. */
typedef struct native_calls {
    onuma_api api;
    const char *device_id, *config;
    void (*open)(uint64_t context, uint64_t device);
    void (*close)(void);
    uint64_t (*queue)(unsigned i);
    void (*begin)(unsigned i, onuma_native_event *event); /* work that does not end by itself */
    void (*end)(unsigned i);
} native_calls;

extern const native_calls native_host;
#if defined(ONUMA_FAULT_OPENCL)
extern const native_calls native_opencl;
#endif
#if defined(ONUMA_FAULT_LEVEL_ZERO)
extern const native_calls native_level_zero;
#endif

#define SCRIPT_BLOCKS 64u
#define SCRIPT_POOLS 4u
#define SCRIPT_QUEUES 2u

typedef struct script_block {
    unsigned char *base; /* NULL: none */
    size_t size;
    unsigned pool, number;
    bool filled;
} script_block;

typedef struct script {
    const native_calls *native;
    const fault_plan *plan; /* NULL: no fault */
    onuma_runtime *rt;
    onuma_device *device;
    onuma_device_info info;
    onuma_pool *pools[SCRIPT_POOLS];
    onuma_queue *queues[SCRIPT_QUEUES];
    script_block blocks[SCRIPT_BLOCKS];
    unsigned numbers, deleted, imports;
    uint64_t fired_before;
    unsigned tries;
    onuma_result result;  /* of the last call */
    bool excused;         /* the library said that it lost track of something: see the log */
    uint64_t held_before; /* bytes that earlier runs left in quarantine */
} script;

/* The whole program. Reports through cmocka. */
void script_run(script *s, const native_calls *native, const fault_plan *plan);

/* ---- script.c: what each call goes through */
#define SENTINEL ((void *)(uintptr_t)0x5a5a5a50)

void script_before(script *s);
/* Whether to make the call again: it failed by a fault that has passed. */
bool script_again(script *s, const char *call, onuma_result r);
void script_expect(script *s, const char *call, onuma_result r, onuma_result expected);
void script_check(script *s, const char *when);
bool script_lost(const script *s); /* the fault is for good */

#define CALL(s, call)                                                                                                  \
    do                                                                                                                 \
        script_before(s);                                                                                              \
    while (script_again((s), #call, (s)->result = (call)))

/* With an out parameter: NULL on failure. */
#define MAKE(s, out, call)                                                                                             \
    do {                                                                                                               \
        script_before(s);                                                                                              \
        (out) = SENTINEL;                                                                                              \
        (s)->result = (call);                                                                                          \
        if ((s)->result != ONUMA_OK && (out) != NULL) fail_msg("%s fails and leaves %p", #call, (void *)(out));        \
    } while (script_again((s), #call, (s)->result))

#define EXPECT(s, code, call)                                                                                          \
    do {                                                                                                               \
        script_before(s);                                                                                              \
        script_expect((s), #call, (s)->result = (call), (code));                                                       \
    } while (0)

#endif
