/* SPDX-License-Identifier: Apache-2.0 */
#include "between.h"

/* The library's own, under another name. */
static onuma_result between_load(const onuma_backend_host *host, const char *const *names, onuma__ze *out);
#define onuma__ze_load between_load
#include "backend/level_zero/loader.c"
#undef onuma__ze_load

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static onuma__ze real;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all of this file's state */
static between_books books;
static struct {
    const char *function;
    uint64_t nth, times, seen, fired;
    const char *fired_in;
    ze_result_t code;
} plan;
static bool stands_in_1_9;
static between_sysman sysman;
static uint64_t sysman_free, claimed_most;

static void must(ze_result_t code, const char *what) {
    if (code == ZE_RESULT_SUCCESS) return;
    fprintf(stderr, "%s gives 0x%x, and no fault was meant for it\n", what, (unsigned)code);
    abort();
}

/* ------------------------------------------------------------ what is counted */

enum call {
#define X(need, function) CALL_##function,
    ONUMA__ZE_FUNCTIONS(X)
#undef X
        CALL_import,
    CALL_unimport,
    CALL_COUNT
};
static const char *const call_names[CALL_COUNT] = {
#define X(need, function) #function,
    ONUMA__ZE_FUNCTIONS(X)
#undef X
        "zexDriverImportExternalPointer",
    "zexDriverReleaseImportedPointer"};
static uint64_t calls[CALL_COUNT];

static bool due(enum call call, ze_result_t *code) {
    pthread_mutex_lock(&lock);
    calls[call]++;
    bool fires = plan.nth != 0 && (plan.function == NULL || strcmp(plan.function, call_names[call]) == 0) &&
                 ++plan.seen >= plan.nth && plan.seen - plan.nth < plan.times;
    if (fires) {
        plan.fired++;
        plan.fired_in = call_names[call];
        *code = plan.code;
    }
    pthread_mutex_unlock(&lock);
    return fires;
}

static void count(int *what, int by) {
    pthread_mutex_lock(&lock);
    *what += by;
    pthread_mutex_unlock(&lock);
}

void between_fail(const char *function, uint64_t nth, uint64_t times, ze_result_t code) {
    pthread_mutex_lock(&lock);
    plan.function = function;
    plan.nth = nth;
    plan.times = times;
    plan.code = code;
    plan.seen = plan.fired = 0;
    plan.fired_in = NULL;
    pthread_mutex_unlock(&lock);
}

void between_fail_none(void) {
    between_fail(NULL, 0, 0, ZE_RESULT_SUCCESS);
}

uint64_t between_fired(void) {
    return plan.fired;
}

const char *between_fired_in(void) {
    return plan.fired_in;
}

uint64_t between_calls(const char *function) {
    for (size_t i = 0; i < CALL_COUNT; i++)
        if (strcmp(call_names[i], function) == 0) return calls[i];
    abort();
}

between_books between_books_now(void) {
    pthread_mutex_lock(&lock);
    const between_books now = books;
    pthread_mutex_unlock(&lock);
    return now;
}

/* ---------------------------------------------------------- barriers that run */

typedef struct barrier {
    ze_event_handle_t after, done;
} barrier;

/* Barriers in order: of a queue, those to run; of a list that is recorded, those that it has. */
typedef struct line {
    const void *handle; /* NULL: free */
    ze_context_handle_t context;
    ze_device_handle_t device;
    bool runs, is_list;
    barrier *barriers;
    size_t count, room;
} line;

#define LINES 4096
static line lines[LINES];

static line *find_line(const void *handle) {
    for (size_t i = 0; i < LINES; i++)
        if (lines[i].handle == handle) return &lines[i];
    return NULL;
}

static line *new_line(const void *handle, bool runs) {
    line *found = find_line(handle);
    if (found == NULL) found = find_line(NULL);
    if (found == NULL) abort();
    free(found->barriers);
    *found = (line){.handle = handle, .runs = runs};
    return found;
}

static void add(line *to, barrier b) {
    if (to->count == to->room) {
        to->room = to->room * 2 + 16;
        to->barriers = realloc(to->barriers, to->room * sizeof to->barriers[0]);
        if (to->barriers == NULL) abort();
    }
    to->barriers[to->count++] = b;
}

static bool is_set(ze_event_handle_t event) {
    return event == NULL || real.zeEventQueryStatus(event) == ZE_RESULT_SUCCESS;
}

/* Under the lock. */
static void run_barriers(void) {
    bool ran = true;
    while (ran) {
        ran = false;
        for (size_t i = 0; i < LINES; i++) {
            line *l = &lines[i];
            if (l->handle == NULL || !l->runs || l->count == 0 || !is_set(l->barriers[0].after)) continue;
            if (l->barriers[0].done != NULL) must(zeEventHostSignal(l->barriers[0].done), "zeEventHostSignal");
            l->count--;
            memmove(l->barriers, l->barriers + 1, l->count * sizeof l->barriers[0]);
            ran = true;
        }
    }
}

static ze_result_t ZE_APICALL between_zeCommandListAppendBarrier(ze_command_list_handle_t list, ze_event_handle_t done,
                                                                 uint32_t waits, ze_event_handle_t *after) {
    ze_result_t code;
    if (due(CALL_zeCommandListAppendBarrier, &code)) return code;
    code = real.zeCommandListAppendBarrier(list, done, waits, after);
    if (code != ZE_RESULT_SUCCESS) return code;
    pthread_mutex_lock(&lock);
    line *l = find_line(list);
    if (l == NULL) abort(); /* a list that nobody made */
    add(l, (barrier){waits != 0 ? after[0] : NULL, done});
    run_barriers();
    pthread_mutex_unlock(&lock);
    return code;
}

static ze_result_t ZE_APICALL between_zeCommandQueueExecuteCommandLists(ze_command_queue_handle_t queue, uint32_t count,
                                                                        ze_command_list_handle_t *lists,
                                                                        ze_fence_handle_t fence) {
    ze_result_t code;
    if (due(CALL_zeCommandQueueExecuteCommandLists, &code)) return code;
    code = real.zeCommandQueueExecuteCommandLists(queue, count, lists, fence);
    if (code != ZE_RESULT_SUCCESS) return code;
    pthread_mutex_lock(&lock);
    line *to = find_line(queue);
    for (uint32_t i = 0; i < count; i++) {
        const line *from = find_line(lists[i]);
        if (to == NULL || from == NULL) abort();
        for (size_t k = 0; k < from->count; k++)
            add(to, from->barriers[k]);
    }
    run_barriers();
    pthread_mutex_unlock(&lock);
    return code;
}

static ze_result_t ZE_APICALL between_zeEventQueryStatus(ze_event_handle_t event) {
    ze_result_t code;
    if (due(CALL_zeEventQueryStatus, &code)) return code;
    pthread_mutex_lock(&lock);
    run_barriers();
    pthread_mutex_unlock(&lock);
    return real.zeEventQueryStatus(event);
}

static ze_result_t ZE_APICALL between_zeCommandListCreate(ze_context_handle_t context, ze_device_handle_t device,
                                                          const ze_command_list_desc_t *desc,
                                                          ze_command_list_handle_t *out) {
    ze_result_t code;
    if (due(CALL_zeCommandListCreate, &code)) return code;
    code = real.zeCommandListCreate(context, device, desc, out);
    if (code != ZE_RESULT_SUCCESS) return code;
    pthread_mutex_lock(&lock);
    new_line(*out, false);
    books.lists++;
    pthread_mutex_unlock(&lock);
    return code;
}

static void forget_line(const void *handle) {
    pthread_mutex_lock(&lock);
    line *l = find_line(handle);
    if (l == NULL) abort();
    free(l->barriers);
    *l = (line){0};
    pthread_mutex_unlock(&lock);
}

static ze_result_t ZE_APICALL between_zeCommandListDestroy(ze_command_list_handle_t list) {
    ze_result_t code = ZE_RESULT_SUCCESS;
    due(CALL_zeCommandListDestroy, &code);
    forget_line(list);
    count(&books.lists, -1);
    must(real.zeCommandListDestroy(list), "zeCommandListDestroy");
    return code;
}

static ze_result_t ZE_APICALL between_zeCommandListReset(ze_command_list_handle_t list) {
    ze_result_t code;
    if (due(CALL_zeCommandListReset, &code)) return code;
    pthread_mutex_lock(&lock);
    find_line(list)->count = 0;
    pthread_mutex_unlock(&lock);
    return real.zeCommandListReset(list);
}

/* ------------------------------------------------------- the program's objects */

static uint64_t keep_queue(void *handle, bool is_list, ze_context_handle_t context, ze_device_handle_t device) {
    pthread_mutex_lock(&lock);
    line *l = new_line(handle, true);
    l->is_list = is_list;
    l->context = context;
    l->device = device;
    pthread_mutex_unlock(&lock);
    return is_list ? ONUMA_LEVEL_ZERO_LIST(handle) : (uint64_t)(uintptr_t)handle;
}

static const ze_command_queue_desc_t queue_desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC};

uint64_t between_queue_create(ze_context_handle_t context, ze_device_handle_t device) {
    ze_command_queue_handle_t queue;
    must(zeCommandQueueCreate(context, device, &queue_desc, &queue), "zeCommandQueueCreate");
    return keep_queue(queue, false, context, device);
}

uint64_t between_list_create(ze_context_handle_t context, ze_device_handle_t device) {
    ze_command_list_handle_t list;
    must(zeCommandListCreateImmediate(context, device, &queue_desc, &list), "zeCommandListCreateImmediate");
    return keep_queue(list, true, context, device);
}

static void *handle_of(uint64_t native) {
    return (void *)(uintptr_t)(native & ~UINT64_C(1));
}

void between_queue_destroy(uint64_t native) {
    forget_line(handle_of(native));
    if ((native & 1) != 0)
        must(zeCommandListDestroy(handle_of(native)), "zeCommandListDestroy");
    else
        must(zeCommandQueueDestroy(handle_of(native)), "zeCommandQueueDestroy");
}

static struct {
    ze_event_handle_t event;
    ze_event_pool_handle_t pool;
} events[64];

ze_event_handle_t between_event_create(ze_context_handle_t context, ze_device_handle_t device) {
    const ze_event_pool_desc_t pool_desc = {
        .stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, .flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE, .count = 1};
    const ze_event_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_DESC, .signal = ZE_EVENT_SCOPE_FLAG_HOST};
    size_t i = 0;
    while (events[i].event != NULL)
        i++;
    must(zeEventPoolCreate(context, &pool_desc, 1, &device, &events[i].pool), "zeEventPoolCreate");
    must(zeEventCreate(events[i].pool, &desc, &events[i].event), "zeEventCreate");
    return events[i].event;
}

void between_event_set(ze_event_handle_t event) {
    must(zeEventHostSignal(event), "zeEventHostSignal");
}

bool between_event_is_set(ze_event_handle_t event) {
    pthread_mutex_lock(&lock);
    run_barriers();
    pthread_mutex_unlock(&lock);
    return is_set(event);
}

void between_event_destroy(ze_event_handle_t event) {
    size_t i = 0;
    while (events[i].event != event)
        i++;
    must(zeEventDestroy(event), "zeEventDestroy");
    must(zeEventPoolDestroy(events[i].pool), "zeEventPoolDestroy");
    events[i].event = NULL;
}

void between_submit(uint64_t native, ze_event_handle_t after, ze_event_handle_t done) {
    pthread_mutex_lock(&lock);
    line *l = find_line(handle_of(native));
    if (l == NULL) abort();
    add(l, (barrier){after, done});
    run_barriers();
    pthread_mutex_unlock(&lock);
}

/* ------------------------------------------------------------------ passed on */

#define PASS(name, types, values)                                                                                      \
    static ze_result_t ZE_APICALL between_##name types {                                                               \
        ze_result_t code;                                                                                              \
        return due(CALL_##name, &code) ? code : real.name values;                                                      \
    }
#define MADE(name, types, values, book)                                                                                \
    static ze_result_t ZE_APICALL between_##name types {                                                               \
        ze_result_t code;                                                                                              \
        if (due(CALL_##name, &code)) return code;                                                                      \
        code = real.name values;                                                                                       \
        if (code == ZE_RESULT_SUCCESS) count(&books.book, 1);                                                          \
        return code;                                                                                                   \
    }
/* What is said to fail has gone all the same. */
#define GONE(name, types, values, book)                                                                                \
    static ze_result_t ZE_APICALL between_##name types {                                                               \
        ze_result_t code = ZE_RESULT_SUCCESS;                                                                          \
        due(CALL_##name, &code);                                                                                       \
        count(&books.book, -1);                                                                                        \
        must(real.name values, #name);                                                                                 \
        return code;                                                                                                   \
    }
/* clang-format off */
PASS(zeInit, (ze_init_flags_t a), (a))
PASS(zeDriverGet, (uint32_t *a, ze_driver_handle_t *b), (a, b))
PASS(zeDriverGetApiVersion, (ze_driver_handle_t a, ze_api_version_t *b), (a, b))
PASS(zeDriverGetProperties, (ze_driver_handle_t a, ze_driver_properties_t *b), (a, b))
PASS(zeDriverGetIpcProperties, (ze_driver_handle_t a, ze_driver_ipc_properties_t *b), (a, b))
PASS(zeDriverGetExtensionProperties, (ze_driver_handle_t a, uint32_t *b, ze_driver_extension_properties_t *c), (a, b, c))
PASS(zeDeviceGet, (ze_driver_handle_t a, uint32_t *b, ze_device_handle_t *c), (a, b, c))
PASS(zeDeviceGetSubDevices, (ze_device_handle_t a, uint32_t *b, ze_device_handle_t *c), (a, b, c))
PASS(zeDeviceGetMemoryProperties, (ze_device_handle_t a, uint32_t *b, ze_device_memory_properties_t *c), (a, b, c))
PASS(zeDeviceGetMemoryAccessProperties, (ze_device_handle_t a, ze_device_memory_access_properties_t *b), (a, b))
PASS(zeDevicePciGetPropertiesExt, (ze_device_handle_t a, ze_pci_ext_properties_t *b), (a, b))
PASS(zeContextGetStatus, (ze_context_handle_t a), (a))
PASS(zeMemGetAllocProperties, (ze_context_handle_t a, const void *b, ze_memory_allocation_properties_t *c, ze_device_handle_t *d), (a, b, c, d))
PASS(zeMemGetAddressRange, (ze_context_handle_t a, const void *b, void **c, size_t *d), (a, b, c, d))
PASS(zeEventHostReset, (ze_event_handle_t a), (a))
PASS(zeCommandListClose, (ze_command_list_handle_t a), (a))
MADE(zeContextCreate, (ze_driver_handle_t a, const ze_context_desc_t *b, ze_context_handle_t *c), (a, b, c), contexts)
MADE(zeMemAllocShared, (ze_context_handle_t a, const ze_device_mem_alloc_desc_t *b, const ze_host_mem_alloc_desc_t *c, size_t d, size_t e, ze_device_handle_t f, void **g), (a, b, c, d, e, f, g), memory)
MADE(zeMemAllocHost, (ze_context_handle_t a, const ze_host_mem_alloc_desc_t *b, size_t c, size_t d, void **e), (a, b, c, d, e), memory)
MADE(zeMemAllocDevice, (ze_context_handle_t a, const ze_device_mem_alloc_desc_t *b, size_t c, size_t d, ze_device_handle_t e, void **f), (a, b, c, d, e, f), memory)
GONE(zeMemFree, (ze_context_handle_t a, void *b), (a, b), memory)
MADE(zeEventPoolCreate, (ze_context_handle_t a, const ze_event_pool_desc_t *b, uint32_t c, ze_device_handle_t *d, ze_event_pool_handle_t *e), (a, b, c, d, e), pools)
GONE(zeEventPoolDestroy, (ze_event_pool_handle_t a), (a), pools)
MADE(zeEventCreate, (ze_event_pool_handle_t a, const ze_event_desc_t *b, ze_event_handle_t *c), (a, b, c), events)
GONE(zeEventDestroy, (ze_event_handle_t a), (a), events)
/* clang-format on */

static ze_context_handle_t kept_contexts[64];
static size_t kept_count;
static bool keeps_contexts;

static ze_result_t ZE_APICALL between_zeContextDestroy(ze_context_handle_t context) {
    ze_result_t code = ZE_RESULT_SUCCESS;
    due(CALL_zeContextDestroy, &code);
    count(&books.contexts, -1);
    if (keeps_contexts)
        kept_contexts[kept_count++] = context;
    else
        must(real.zeContextDestroy(context), "zeContextDestroy");
    return code;
}

void between_contexts_keep(void) {
    keeps_contexts = true;
}

void between_contexts_go(void) {
    while (kept_count > 0)
        must(real.zeContextDestroy(kept_contexts[--kept_count]), "zeContextDestroy");
}

static ze_result_t ZE_APICALL between_zeDeviceGetProperties(ze_device_handle_t device, ze_device_properties_t *out) {
    ze_result_t code;
    if (due(CALL_zeDeviceGetProperties, &code)) return code;
    code = real.zeDeviceGetProperties(device, out);
    if (claimed_most != 0) out->maxMemAllocSize = claimed_most;
    return code;
}

static onuma__ze_import_function real_import;
static onuma__ze_unimport_function real_unimport;

static ze_result_t ZE_APICALL between_import(ze_driver_handle_t driver, void *memory, size_t size) {
    ze_result_t code;
    if (due(CALL_import, &code)) return code;
    code = real_import(driver, memory, size);
    if (code == ZE_RESULT_SUCCESS) count(&books.imports, 1);
    return code;
}

static ze_result_t ZE_APICALL between_unimport(ze_driver_handle_t driver, void *memory) {
    ze_result_t code = ZE_RESULT_SUCCESS;
    due(CALL_unimport, &code);
    count(&books.imports, -1);
    must(real_unimport(driver, memory), "zexDriverReleaseImportedPointer");
    return code;
}

static ze_result_t ZE_APICALL between_zeDriverGetExtensionFunctionAddress(ze_driver_handle_t driver, const char *name,
                                                                          void **out) {
    ze_result_t code;
    if (due(CALL_zeDriverGetExtensionFunctionAddress, &code)) return code;
    code = real.zeDriverGetExtensionFunctionAddress(driver, name, out);
    if (code != ZE_RESULT_SUCCESS) return code;
    const bool import = strcmp(name, "zexDriverImportExternalPointer") == 0;
    memcpy(import ? (void *)&real_import : (void *)&real_unimport, out, sizeof *out);
    onuma__ze_import_function first = between_import;
    onuma__ze_unimport_function second = between_unimport;
    memcpy(out, import ? (void *)&first : (void *)&second, sizeof *out);
    return code;
}

/* --------------------------------------------------------------- standing in */

void between_stand_in(bool version_1_9, between_sysman how, uint64_t device_memory_free) {
    stands_in_1_9 = version_1_9;
    sysman = how;
    sysman_free = device_memory_free;
}

void between_claim(uint64_t most) {
    claimed_most = most;
}

static ze_result_t ZE_APICALL list_context(ze_command_list_handle_t list, ze_context_handle_t *out) {
    ze_result_t code;
    if (due(CALL_zeCommandListGetContextHandle, &code)) return code;
    const line *l = find_line(list);
    if (l == NULL) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    *out = l->context;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t ZE_APICALL list_device(ze_command_list_handle_t list, ze_device_handle_t *out) {
    ze_result_t code;
    if (due(CALL_zeCommandListGetDeviceHandle, &code)) return code;
    const line *l = find_line(list);
    if (l == NULL) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    *out = l->device;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t ZE_APICALL queue_ordinal(ze_command_queue_handle_t queue, uint32_t *out) {
    ze_result_t code;
    (void)queue;
    if (due(CALL_zeCommandQueueGetOrdinal, &code)) return code;
    *out = 0;
    return ZE_RESULT_SUCCESS;
}

/* One driver, the first real device's twin, with a module of the system's memory and one of its own. */
static char sysman_driver, sysman_modules[2];

static ze_result_t ZE_APICALL sysman_init(onuma__ze_sysman_flags flags) {
    ze_result_t code = ZE_RESULT_SUCCESS;
    (void)flags;
    due(CALL_zesInit, &code);
    return code;
}

static ze_device_handle_t first_device(void) {
    uint32_t one = 1;
    ze_driver_handle_t driver;
    ze_device_handle_t device;
    must(real.zeDriverGet(&one, &driver), "zeDriverGet");
    one = 1;
    must(real.zeDeviceGet(driver, &one, &device), "zeDeviceGet");
    return device;
}

static ze_result_t ZE_APICALL sysman_driver_get(uint32_t *count, zes_driver_handle_t *out) {
    ze_result_t code;
    if (due(CALL_zesDriverGet, &code)) return code;
    *count = 1;
    if (out != NULL) out[0] = (zes_driver_handle_t)(void *)&sysman_driver;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t ZE_APICALL sysman_device_get(zes_driver_handle_t driver, uint32_t *count, zes_device_handle_t *out) {
    ze_result_t code;
    (void)driver;
    if (due(CALL_zesDeviceGet, &code)) return code;
    *count = 1;
    if (out != NULL) out[0] = (zes_device_handle_t)first_device();
    return ZE_RESULT_SUCCESS;
}

static ze_result_t ZE_APICALL sysman_properties(zes_device_handle_t device, zes_device_properties_t *out) {
    ze_result_t code;
    if (due(CALL_zesDeviceGetProperties, &code)) return code;
    return real.zeDeviceGetProperties((ze_device_handle_t)device, &out->core);
}

static ze_result_t ZE_APICALL sysman_modules_get(zes_device_handle_t device, uint32_t *count, zes_mem_handle_t *out) {
    ze_result_t code;
    if (due(CALL_zesDeviceEnumMemoryModules, &code)) return code;
    if (device != (zes_device_handle_t)first_device()) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    *count = 2;
    for (size_t i = 0; out != NULL && i < 2; i++)
        out[i] = (zes_mem_handle_t)(void *)&sysman_modules[i];
    return ZE_RESULT_SUCCESS;
}

static ze_result_t ZE_APICALL sysman_module(zes_mem_handle_t module, zes_mem_properties_t *out) {
    ze_result_t code;
    if (due(CALL_zesMemoryGetProperties, &code)) return code;
    out->location = (char *)module == &sysman_modules[0] ? ZES_MEM_LOC_SYSTEM : ZES_MEM_LOC_DEVICE;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t ZE_APICALL sysman_state(zes_mem_handle_t module, zes_mem_state_t *out) {
    ze_result_t code;
    if (due(CALL_zesMemoryGetState, &code)) return code;
    out->free = (char *)module == &sysman_modules[0] ? UINT64_C(1) << 60 : sysman_free;
    return ZE_RESULT_SUCCESS;
}

/* -------------------------------------------------------------------- loading */

/* The library's onuma__ze_load. */
onuma_result onuma__ze_load(const onuma_backend_host *host, const char *const *names, onuma__ze *out) {
    onuma__ze found;
    const onuma_result r = between_load(host, names, &found);
    if (r != ONUMA_OK) return r;
    real = found;
    onuma__ze led = {0};
/* clang-format off */
#define LEAD(name) led.name = between_##name;
    LEAD(zeInit) LEAD(zeDriverGet) LEAD(zeDriverGetApiVersion) LEAD(zeDriverGetProperties)
    LEAD(zeDriverGetIpcProperties) LEAD(zeDriverGetExtensionProperties) LEAD(zeDeviceGet) LEAD(zeDeviceGetSubDevices)
    LEAD(zeDeviceGetProperties) LEAD(zeDeviceGetMemoryProperties) LEAD(zeDeviceGetMemoryAccessProperties)
    LEAD(zeContextCreate) LEAD(zeContextDestroy) LEAD(zeContextGetStatus) LEAD(zeMemAllocShared) LEAD(zeMemAllocHost)
    LEAD(zeMemAllocDevice) LEAD(zeMemFree) LEAD(zeMemGetAllocProperties) LEAD(zeMemGetAddressRange)
    LEAD(zeEventPoolCreate) LEAD(zeEventPoolDestroy) LEAD(zeEventCreate) LEAD(zeEventDestroy) LEAD(zeEventHostReset)
    LEAD(zeEventQueryStatus) LEAD(zeCommandListCreate) LEAD(zeCommandListDestroy) LEAD(zeCommandListReset)
    LEAD(zeCommandListClose) LEAD(zeCommandListAppendBarrier) LEAD(zeCommandQueueExecuteCommandLists)
    LEAD(zeDriverGetExtensionFunctionAddress) LEAD(zeDevicePciGetPropertiesExt)
#undef LEAD
        /* clang-format on */
        if (stands_in_1_9) {
        led.zeCommandListGetContextHandle = list_context;
        led.zeCommandListGetDeviceHandle = list_device;
        led.zeCommandQueueGetOrdinal = queue_ordinal;
    }
    if (sysman != BETWEEN_SYSMAN_NONE) {
        led.zesDeviceEnumMemoryModules = sysman_modules_get;
        led.zesMemoryGetProperties = sysman_module;
        led.zesMemoryGetState = sysman_state;
    }
    if (sysman == BETWEEN_SYSMAN_NEW) {
        led.zesInit = sysman_init;
        led.zesDriverGet = sysman_driver_get;
        led.zesDeviceGet = sysman_device_get;
        led.zesDeviceGetProperties = sysman_properties;
    }
    *out = led;
    return ONUMA_OK;
}
