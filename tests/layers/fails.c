/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver whose n-th call fails, so that tests can let each fail in turn, and which counts what its callers hold.
 *
 *     name:clFlush  only that one counts         n:7       the seventh call
 *     code:-5       what it returns              lost:1    it and all after it (with code:-2, the device is lost)
 *
 * are for programs; tests arm it by fails.h. A call that is made to fail does not reach the driver, except for
 * releases: a driver that says no to those lets go all the same, or nobody could ever be clean.
 */
#include "fails.h"
#include "fails_calls.h"
#include "layer.h"

#include <pthread.h>
#include <stdlib.h>

enum { CONTEXTS, QUEUES, BUFFERS, EVENTS, POINTERS, KINDS };

static struct {
    pthread_mutex_t lock; /* guards all of it */
    pthread_once_t once;
    char name[64]; /* empty: any */
    uint64_t n, calls;
    int32_t code;
    bool for_ever, lies; /* lies: `code` is added to answers */
    const char *failed;
    uint64_t event_n, events;
    int32_t event_status;
    cl_event sick; /* the armed event, kept alive so that no other gets its handle */
    long live[KINDS];
} now = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static _Thread_local bool spared;

static void start(const char *name, uint64_t n, int32_t code, bool for_ever, bool lies) {
    pthread_mutex_lock(&now.lock);
    cl_event recovered = now.sick;
    now.name[0] = '\0';
    if (name) strncat(now.name, name, sizeof now.name - 1);
    now.n = n;
    now.code = code;
    now.for_ever = for_ever;
    now.lies = lies;
    now.calls = now.events = now.event_n = 0;
    now.sick = NULL;
    now.failed = NULL;
    pthread_mutex_unlock(&now.lock);
    if (recovered) layer_next.clReleaseEvent(recovered);
}

static const char *const names[] = {
#define NAME(function, ...) #function,
#define NAME_OBJECT(type, function, ...) #function,
    FAILS_CODES(NAME) FAILS_OBJECTS(NAME_OBJECT) "clEnqueueMapBuffer",
    "clGetEventInfo",
    "clSVMAlloc",
};

static void read_settings(void) {
    const char *name = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (layer_says("name", names[i])) name = names[i];
    start(name, layer_number("n", 0), (int32_t)layer_number("code", (size_t)CL_OUT_OF_RESOURCES),
          layer_number("lost", 0) != 0, false);
}

typedef enum { GOES_ON, FAILS, LIES } fate;

/* Counts the call. */
static fate judge(const char *name, int32_t *code) {
    fate verdict = GOES_ON;
    if (spared) return verdict;
    pthread_once(&now.once, read_settings);
    pthread_mutex_lock(&now.lock);
    if (now.name[0] == '\0' || strcmp(now.name, name) == 0) {
        now.calls++;
        if (now.n != 0 && (now.calls == now.n || (now.for_ever && now.calls > now.n)))
            verdict = now.lies ? LIES : FAILS;
    }
    if (verdict != GOES_ON) now.failed = name;
    *code = now.code;
    pthread_mutex_unlock(&now.lock);
    return verdict;
}

static void tally(int kind, long change) {
    if (spared) return;
    pthread_mutex_lock(&now.lock);
    now.live[kind] += change;
    pthread_mutex_unlock(&now.lock);
}

static void made_event(cl_event event) {
    tally(EVENTS, 1);
    if (spared) return;
    pthread_mutex_lock(&now.lock);
    const bool chosen = ++now.events == now.event_n;
    if (chosen) now.sick = event;
    pthread_mutex_unlock(&now.lock);
    if (chosen) layer_next.clRetainEvent(event);
}

/* The status that an event is to end with; 0: its own. */
static int32_t sickness(cl_event event) {
    pthread_mutex_lock(&now.lock);
    const int32_t status = event && event == now.sick ? now.event_status : 0;
    if (status != 0) now.failed = "the work behind an event";
    pthread_mutex_unlock(&now.lock);
    return status;
}

/* ------------------------------------------------------------ the wrappers */

/* What a success, or a release, means for the counts. */
#define ASKS_SIZE                                                                                                      \
    if (verdict == LIES && ret) *ret += (size_t)wrong;
#define ASKS_NUMBER                                                                                                    \
    if (verdict == LIES && number) *number += (cl_uint)wrong;
#define DOES
#define RETAINS_CONTEXT tally(CONTEXTS, 1);
#define RELEASES_CONTEXT tally(CONTEXTS, -1);
#define MAKES_CONTEXT tally(CONTEXTS, 1);
#define RETAINS_QUEUE tally(QUEUES, 1);
#define RELEASES_QUEUE tally(QUEUES, -1);
#define MAKES_QUEUE tally(QUEUES, 1);
#define RETAINS_BUFFER tally(BUFFERS, 1);
#define RELEASES_BUFFER tally(BUFFERS, -1);
#define MAKES_BUFFER tally(BUFFERS, 1);
#define RETAINS_EVENT tally(EVENTS, 1);
#define RELEASES_EVENT tally(EVENTS, -1);
#define QUEUED                                                                                                         \
    if (event) made_event(*event);

static bool is_release(const char *name) {
    return strncmp(name, "clRelease", sizeof "clRelease" - 1) == 0;
}

#define WRAP_CODE(function, effect, parameters, arguments)                                                             \
    static CL_API_ENTRY cl_int CL_API_CALL fails_##function parameters {                                               \
        int32_t wrong = CL_SUCCESS;                                                                                    \
        const fate verdict = judge(#function, &wrong);                                                                 \
        if (verdict == FAILS && !is_release(#function)) return wrong;                                                  \
        const cl_int result = layer_next.function arguments;                                                           \
        if (result == CL_SUCCESS) {                                                                                    \
            effect                                                                                                     \
        }                                                                                                              \
        return verdict == FAILS ? wrong : result;                                                                      \
    }
#define WRAP_OBJECT(type, function, effect, parameters, arguments)                                                     \
    static CL_API_ENTRY type CL_API_CALL fails_##function parameters {                                                 \
        int32_t wrong = CL_SUCCESS;                                                                                    \
        if (judge(#function, &wrong) == FAILS) {                                                                       \
            if (code) *code = wrong;                                                                                   \
            return NULL;                                                                                               \
        }                                                                                                              \
        type result = layer_next.function arguments;                                                                   \
        if (result) {                                                                                                  \
            effect                                                                                                     \
        }                                                                                                              \
        return result;                                                                                                 \
    }
FAILS_CODES(WRAP_CODE)
FAILS_OBJECTS(WRAP_OBJECT)

static CL_API_ENTRY void *CL_API_CALL map(cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags,
                                          size_t offset, size_t size, cl_uint number, const cl_event *list,
                                          cl_event *event, cl_int *code) {
    int32_t wrong = CL_SUCCESS;
    if (judge("clEnqueueMapBuffer", &wrong) == FAILS) {
        if (code) *code = wrong;
        return NULL;
    }
    void *mapped =
        layer_next.clEnqueueMapBuffer(queue, buffer, blocking, flags, offset, size, number, list, event, code);
    if (mapped && event) made_event(*event);
    return mapped;
}

static CL_API_ENTRY cl_int CL_API_CALL ask_event(cl_event event, cl_event_info what, size_t size, void *value,
                                                 size_t *size_ret) {
    int32_t wrong = CL_SUCCESS;
    if (judge("clGetEventInfo", &wrong) == FAILS) return wrong;
    const cl_int code = layer_next.clGetEventInfo(event, what, size, value, size_ret);
    const int32_t status = sickness(event);
    if (code == CL_SUCCESS && status != 0 && what == CL_EVENT_COMMAND_EXECUTION_STATUS && value) {
        cl_int real;
        memcpy(&real, value, sizeof real);
        if (real == CL_COMPLETE) memcpy(value, &status, sizeof status);
    }
    return code;
}

static CL_API_ENTRY cl_int CL_API_CALL wait_events(cl_uint number, const cl_event *list) {
    const cl_int code = fails_clWaitForEvents(number, list);
    for (cl_uint i = 0; i < number && code == CL_SUCCESS; i++)
        if (sickness(list[i]) != 0) return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    return code;
}

static CL_API_ENTRY void *CL_API_CALL allocate(cl_context context, cl_svm_mem_flags flags, size_t size,
                                               cl_uint alignment) {
    int32_t wrong = CL_SUCCESS;
    if (judge("clSVMAlloc", &wrong) == FAILS) return NULL;
    void *pointer = layer_next.clSVMAlloc(context, flags, size, alignment);
    if (pointer) tally(POINTERS, 1);
    return pointer;
}

static CL_API_ENTRY void CL_API_CALL release(cl_context context, void *pointer) {
    if (pointer) tally(POINTERS, -1);
    layer_next.clSVMFree(context, pointer);
}

/* ---------------------------------------------------------------- for tests */

static void arm(const char *name, uint64_t n, int32_t code, bool for_ever) {
    pthread_once(&now.once, read_settings);
    start(name, n, code, for_ever, false);
}

static void arm_event(uint64_t n, int32_t status) {
    arm(NULL, 0, CL_SUCCESS, false);
    pthread_mutex_lock(&now.lock);
    now.event_n = n;
    now.event_status = status;
    pthread_mutex_unlock(&now.lock);
}

static void arm_lie(const char *name, uint64_t n, int32_t off) {
    pthread_once(&now.once, read_settings);
    start(name, n, off, true, true);
}

static uint64_t events(void) {
    pthread_mutex_lock(&now.lock);
    const uint64_t result = now.events;
    pthread_mutex_unlock(&now.lock);
    return result;
}

static uint64_t calls(void) {
    pthread_mutex_lock(&now.lock);
    const uint64_t result = now.calls;
    pthread_mutex_unlock(&now.lock);
    return result;
}

static const char *failed(void) {
    pthread_mutex_lock(&now.lock);
    const char *result = now.failed;
    pthread_mutex_unlock(&now.lock);
    return result;
}

static fails_live live(void) {
    pthread_mutex_lock(&now.lock);
    const fails_live result = {now.live[CONTEXTS], now.live[QUEUES], now.live[BUFFERS], now.live[EVENTS],
                               now.live[POINTERS]};
    pthread_mutex_unlock(&now.lock);
    return result;
}

static void spare(bool yes) {
    spared = yes;
}

LAYER_EXPORT const fails_table layer_fails = {arm, arm_event, arm_lie, events, calls, failed, live, spare};

void layer_install(cl_icd_dispatch *mine) {
#define INSTALL(function, ...) mine->function = fails_##function;
#define INSTALL_OBJECT(type, function, ...) mine->function = fails_##function;
    FAILS_CODES(INSTALL)
    FAILS_OBJECTS(INSTALL_OBJECT)
    mine->clWaitForEvents = wait_events;
    mine->clEnqueueMapBuffer = map;
    mine->clGetEventInfo = ask_event;
    mine->clSVMAlloc = allocate;
    mine->clSVMFree = release;
}
