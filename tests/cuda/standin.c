/* SPDX-License-Identifier: Apache-2.0 */
/* See standin.h. One lock guards everything but what is a thread's own. */
#define _GNU_SOURCE
#include "standin.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "backend/cuda/driver.h"

#define EXPORT __attribute__((visibility("default")))
#define PAGE ((size_t)2 << 20)
#define STACK_MOST 8

enum { SUCCESS, INVALID_VALUE, OUT_OF_MEMORY, INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_READY = 600 };
enum { REGISTERED = 712, NOT_SUPPORTED = 801, UNSUPPORTED_IN_CAPTURE = 900, IMPLICIT = 906, CAPTURED_EVENT = 907 };

typedef struct onuma__cu_context_object {
    int device; /* -1: nobody's */
} context;
typedef struct onuma__cu_stream_object {
    context *context;
    uint64_t submitted, done;
    bool held, capturing;
} stream;
typedef struct onuma__cu_event_object {
    stream *stream; /* NULL: of a default stream, or never recorded: passed */
    uint64_t at;
    bool captured;
} event;
typedef enum area_sort { RANGE, PLAIN, HOST, MANAGED, PINNED } area_sort;
typedef struct area { /* addresses, memory of a segment, or registered memory */
    uintptr_t base;
    size_t size;
    area_sort sort;
    unsigned char *pages; /* RANGE: whether each is mapped */
    struct area *next;
} area;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static standin_settings settings;
static standin_live live;
static context primaries[4] = {{0}, {1}, {2}, {3}}, nobodys = {-1};
static size_t used; /* bytes of device memory */
static area *areas;
static stream *captured; /* which a strict capture is under way on */
static pthread_t capturing_thread;
static size_t fail_in;
static int fail_code;
static bool fail_ever;
static const char *fail_name;

static _Thread_local context *stack[STACK_MOST];
static _Thread_local size_t depth;
static _Thread_local int mode;

/* ------------------------------------------------------------------- control */

static void reset(const standin_settings *to) {
    settings = *to;
    live = (standin_live){0};
    used = 0;
    fail_in = 0;
    fail_name = NULL;
    captured = NULL;
}
static void get_live(standin_live *out) {
    pthread_mutex_lock(&lock);
    *out = live;
    pthread_mutex_unlock(&lock);
    out->current = depth;
    out->mode = mode;
}
static void fail(size_t n, int code, bool ever) {
    fail_in = n;
    fail_code = code;
    fail_ever = ever;
    fail_name = NULL;
}
static const char *failed(void) {
    return fail_name;
}
static void hold(void *which) {
    ((stream *)which)->held = true;
}
static void let_go(void *which) {
    stream *s = which;
    s->held = false;
    s->done = s->submitted;
}
static void capture(void *which, bool on) {
    captured = on ? which : NULL;
    capturing_thread = pthread_self();
    ((stream *)which)->capturing = on;
}
static void *make_stream(bool foreign) {
    stream *s = calloc(1, sizeof *s);
    s->context = foreign ? &nobodys : &primaries[0];
    return s;
}

static void unwind(void) {
    depth--;
}

EXPORT extern const standin onuma_standin;
EXPORT const standin onuma_standin = {reset, get_live, fail, failed, hold, let_go, capture, make_stream, free, unwind};

/* What each function does first. A code other than 0 is what it answers. */
enum { ANYWHERE, IN_CONTEXT };
static int begin(const char *name, int where) {
    live.calls++;
    if (fail_in != 0 && --fail_in == 0) {
        fail_name = name;
        if (fail_ever) fail_in = 1;
        return fail_code;
    }
    if (where == IN_CONTEXT && depth == 0) return INVALID_CONTEXT;
    if (captured != NULL && pthread_equal(capturing_thread, pthread_self()) && mode != ONUMA__CU_CAPTURE_MODE_RELAXED) {
        live.broken++;
        return UNSUPPORTED_IN_CAPTURE;
    }
    return SUCCESS;
}
/* A function of the driver: its name, where it works, and its body between locks, which leaves its answer in `code`. */
#define DRIVER(name, where, parameters, ...)                                                                           \
    EXPORT int name parameters;                                                                                        \
    EXPORT int name parameters {                                                                                       \
        pthread_mutex_lock(&lock);                                                                                     \
        int code = begin(#name, where);                                                                                \
        if (code == SUCCESS) __VA_ARGS__                                                                               \
        pthread_mutex_unlock(&lock);                                                                                   \
        return code;                                                                                                   \
    }

/* ---------------------------------------------------------- devices, contexts */

DRIVER(cuInit, ANYWHERE, (unsigned flags), {
    (void)flags;
    code = settings.init;
})
DRIVER(cuDriverGetVersion, ANYWHERE, (int *version), { *version = 13000; })
DRIVER(cuDeviceGetCount, ANYWHERE, (int *count), { *count = settings.devices; })
DRIVER(cuDeviceGet, ANYWHERE, (int *device, int ordinal), { *device = ordinal; })
DRIVER(cuDeviceGetName, ANYWHERE, (char *name, int length, int device),
       { snprintf(name, (size_t)length, "Stand-in %d", device); })
DRIVER(cuDeviceTotalMem_v2, ANYWHERE, (size_t * bytes, int device), {
    (void)device;
    *bytes = settings.memory;
})
DRIVER(cuDeviceGetAttribute, ANYWHERE, (int *value, int attribute, int device), {
    switch (attribute) {
    case ONUMA__CU_INTEGRATED:
        *value = settings.integrated;
        break;
    case ONUMA__CU_CAN_MAP_HOST_MEMORY:
    case ONUMA__CU_UNIFIED_ADDRESSING:
        *value = 1;
        break;
    case ONUMA__CU_PCI_BUS_ID:
        *value = 7 + device;
        break;
    case ONUMA__CU_CAPABILITY_MAJOR:
        *value = 9;
        break;
    case ONUMA__CU_CONCURRENT_MANAGED_ACCESS:
        *value = settings.managed;
        break;
    case ONUMA__CU_HOST_REGISTER_SUPPORTED:
    case ONUMA__CU_READ_ONLY_REGISTER_SUPPORTED:
        *value = settings.registers;
        break;
    case ONUMA__CU_VIRTUAL_MEMORY_SUPPORTED:
        *value = settings.virtual_memory;
        break;
    case ONUMA__CU_HOST_NUMA_VIRTUAL_MEMORY_SUPPORTED:
        *value = settings.host_virtual;
        break;
    case ONUMA__CU_HOST_NUMA_ID:
        *value = -1;
        break;
    default:
        *value = 0;
    }
})
DRIVER(cuDevicePrimaryCtxRetain, ANYWHERE, (context * *out, int device), {
    *out = &primaries[device];
    live.contexts++;
})
DRIVER(cuDevicePrimaryCtxRelease, ANYWHERE, (int device), {
    (void)device;
    live.contexts--;
})
DRIVER(cuCtxPushCurrent_v2, ANYWHERE, (context * which), {
    if (depth == STACK_MOST)
        code = OUT_OF_MEMORY;
    else
        stack[depth++] = which;
})
DRIVER(cuCtxPopCurrent_v2, IN_CONTEXT, (context * *out), { *out = stack[--depth]; })
/* Never fails: it is how a failing capture would be left. */
EXPORT int cuThreadExchangeStreamCaptureMode(int *other);
EXPORT int cuThreadExchangeStreamCaptureMode(int *other) {
    const int before = mode;
    mode = *other;
    *other = before;
    return SUCCESS;
}

/* --------------------------------------------------------------------- memory */

static area *find(uintptr_t base, size_t size) {
    for (area *a = areas; a != NULL; a = a->next)
        if (base >= a->base && size <= a->size && base - a->base <= a->size - size) return a;
    return NULL;
}
static area *add(uintptr_t base, size_t size, area_sort sort) {
    area *a = calloc(1, sizeof *a);
    a->base = base;
    a->size = size;
    a->sort = sort;
    a->next = areas;
    areas = a;
    return a;
}
static void drop(area *a) {
    area **at = &areas;
    while (*at != a)
        at = &(*at)->next;
    *at = a->next;
    free(a->pages);
    free(a);
}
static void *map_memory(size_t size, int protection) {
    void *p = mmap(NULL, size + PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}
static uintptr_t aligned(const void *p) {
    return ((uintptr_t)p + PAGE - 1) / PAGE * PAGE;
}
static int take(size_t size) {
    if (size > settings.memory - used) return OUT_OF_MEMORY;
    used += size;
    return SUCCESS;
}

DRIVER(cuMemGetInfo_v2, IN_CONTEXT, (size_t * available, size_t *total), {
    *total = settings.memory;
    *available = settings.memory - used;
})
DRIVER(cuMemGetAllocationGranularity, ANYWHERE, (size_t * out, const onuma__cu_properties *place, int option), {
    (void)place;
    (void)option;
    *out = PAGE;
})
DRIVER(cuMemAddressReserve, IN_CONTEXT,
       (uintptr_t * out, size_t size, size_t align, uintptr_t hint, unsigned long long flags), {
           (void)align;
           (void)hint;
           (void)flags;
           void *p = size % PAGE == 0 ? map_memory(size, PROT_NONE) : NULL;
           if (p == NULL) {
               code = size % PAGE == 0 ? OUT_OF_MEMORY : INVALID_VALUE;
           } else {
               *out = aligned(p);
               add(*out, size, RANGE)->pages = calloc(size / PAGE, 1);
               live.reserved += size;
           }
       })
DRIVER(cuMemAddressFree, IN_CONTEXT, (uintptr_t base, size_t size), {
    area *a = find(base, size);
    if (a == NULL || a->sort != RANGE || a->size != size || memchr(a->pages, 1, size / PAGE) != NULL) {
        live.broken++;
        code = INVALID_VALUE;
    } else {
        live.reserved -= size;
        drop(a); /* its addresses are never used again */
    }
})
/* A handle is where its memory counts: 1 on the device, 2 on the host. */
DRIVER(cuMemCreate, IN_CONTEXT,
       (uint64_t * handle, size_t size, const onuma__cu_properties *place, unsigned long long flags), {
           (void)flags;
           const bool on_device = place->location.type == ONUMA__CU_LOCATION_DEVICE;
           if (size != PAGE || (!on_device && !settings.host_virtual)) code = INVALID_VALUE;
           if (code == SUCCESS && on_device) code = take(size);
           if (code == SUCCESS) {
               *handle = on_device ? 1 : 2;
               live.handles++;
           }
       })
DRIVER(cuMemRelease, IN_CONTEXT, (uint64_t handle), {
    (void)handle;
    live.handles--;
})
DRIVER(cuMemMap, IN_CONTEXT, (uintptr_t base, size_t size, size_t offset, uint64_t handle, unsigned long long flags), {
    (void)offset;
    (void)flags;
    area *a = find(base, size);
    if (a == NULL || a->sort != RANGE || size != PAGE || a->pages[(base - a->base) / PAGE] != 0) {
        live.broken++;
        code = INVALID_VALUE;
    } else {
        a->pages[(base - a->base) / PAGE] = (unsigned char)handle;
        live.mapped += size;
    }
})
DRIVER(cuMemUnmap, IN_CONTEXT, (uintptr_t base, size_t size), {
    area *a = find(base, size);
    if (a == NULL || a->sort != RANGE || size % PAGE != 0) {
        live.broken++;
        code = INVALID_VALUE;
    }
    for (size_t i = 0; code == SUCCESS && i < size / PAGE; i++) {
        unsigned char *page = &a->pages[(base - a->base) / PAGE + i];
        if (*page == 0) live.broken++;
        if (*page == 1) used -= PAGE;
        *page = 0;
        live.mapped -= PAGE;
    }
    if (code == SUCCESS)
        (void)mmap((void *)base, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
})
DRIVER(cuMemSetAccess, IN_CONTEXT, (uintptr_t base, size_t size, const onuma__cu_access *access, size_t count), {
    (void)access;
    (void)count;
    if (find(base, size) == NULL || mprotect((void *)base, size, PROT_READ | PROT_WRITE) != 0) code = INVALID_VALUE;
})

static int allocate(uintptr_t *out, size_t size, area_sort sort) {
    const int code = sort == PLAIN ? take(size) : SUCCESS;
    if (code != SUCCESS) return code;
    void *p = map_memory(size, PROT_READ | PROT_WRITE);
    if (p == NULL) return OUT_OF_MEMORY;
    *out = aligned(p);
    add(*out, size, sort);
    live.allocated += size;
    return SUCCESS;
}
static int give_back(uintptr_t base, bool host) {
    area *a = find(base, 1);
    if (a == NULL || a->base != base || (host ? a->sort != HOST : a->sort != PLAIN && a->sort != MANAGED)) {
        live.broken++;
        return INVALID_VALUE;
    }
    live.allocated -= a->size;
    if (a->sort == PLAIN) used -= a->size;
    (void)munmap((void *)a->base, a->size);
    drop(a);
    return SUCCESS;
}
DRIVER(cuMemAlloc_v2, IN_CONTEXT, (uintptr_t * out, size_t size), { code = allocate(out, size, PLAIN); })
DRIVER(cuMemAllocManaged, IN_CONTEXT, (uintptr_t * out, size_t size, unsigned flags), {
    (void)flags;
    code = settings.managed ? allocate(out, size, MANAGED) : NOT_SUPPORTED;
})
DRIVER(cuMemHostAlloc, IN_CONTEXT, (void **out, size_t size, unsigned flags), {
    (void)flags;
    code = allocate((uintptr_t *)out, size, HOST);
})
DRIVER(cuMemFree_v2, IN_CONTEXT, (uintptr_t base), { code = give_back(base, false); })
DRIVER(cuMemFreeHost, IN_CONTEXT, (void *base), { code = give_back((uintptr_t)base, true); })
DRIVER(cuMemHostRegister_v2, IN_CONTEXT, (void *base, size_t size, unsigned flags), {
    (void)flags;
    if (find((uintptr_t)base, size) != NULL)
        code = REGISTERED;
    else
        live.registered += add((uintptr_t)base, size, PINNED)->size;
})
DRIVER(cuMemHostUnregister, IN_CONTEXT, (void *base), {
    area *a = find((uintptr_t)base, 1);
    if (a == NULL || a->sort != PINNED) {
        live.broken++;
        code = INVALID_VALUE;
    } else {
        live.registered -= a->size;
        drop(a);
    }
})
DRIVER(cuMemHostGetDevicePointer_v2, IN_CONTEXT, (uintptr_t * out, void *base, unsigned flags), {
    (void)flags;
    *out = (uintptr_t)base;
})

/* ----------------------------------------------------------- streams and events */

static bool is_default(const stream *s) {
    return (uintptr_t)s <= 2;
}
static bool reaches(uintptr_t to) {
    const area *a = find(to, 1);
    return !settings.incoherent || a == NULL || a->sort != RANGE;
}
DRIVER(cuMemcpyDtoDAsync_v2, IN_CONTEXT, (uintptr_t to, uintptr_t from, size_t size, stream *on), {
    (void)on;
    if (reaches(to)) memcpy((void *)to, (const void *)from, size);
})
DRIVER(cuMemsetD32Async, IN_CONTEXT, (uintptr_t to, unsigned value, size_t count, stream *on), {
    (void)on;
    for (size_t i = 0; reaches(to) && i < count; i++)
        ((unsigned *)to)[i] = value;
})
DRIVER(cuStreamCreate, IN_CONTEXT, (stream * *out, unsigned flags), {
    (void)flags;
    *out = make_stream(false);
    live.streams++;
})
DRIVER(cuStreamDestroy_v2, IN_CONTEXT, (stream * s), {
    free(s);
    live.streams--;
})
DRIVER(cuStreamSynchronize, IN_CONTEXT, (stream * s), { (void)s; })
DRIVER(cuStreamGetCtx, IN_CONTEXT, (stream * s, context **out), { *out = s->context; })
DRIVER(cuStreamIsCapturing, IN_CONTEXT, (stream * s, int *status), {
    *status = !is_default(s) && s->capturing;
    if (is_default(s) && captured != NULL) code = IMPLICIT;
})
DRIVER(cuEventCreate, IN_CONTEXT, (event * *out, unsigned flags), {
    (void)flags;
    *out = calloc(1, sizeof **out);
    live.events++;
})
DRIVER(cuEventDestroy_v2, IN_CONTEXT, (event * e), {
    free(e);
    live.events--;
})
DRIVER(cuEventRecord, IN_CONTEXT, (event * e, stream *s), {
    e->stream = is_default(s) ? NULL : s;
    e->captured = !is_default(s) && s->capturing;
    if (is_default(s) && captured != NULL) code = IMPLICIT;
    if (code == SUCCESS && !is_default(s)) {
        e->at = ++s->submitted;
        if (!s->held) s->done = s->submitted;
    }
})
DRIVER(cuEventQuery, IN_CONTEXT, (event * e), {
    if (e->captured)
        code = CAPTURED_EVENT;
    else if (e->stream != NULL && e->stream->done < e->at)
        code = NOT_READY;
})
DRIVER(cuStreamWaitEvent, IN_CONTEXT, (stream * s, event *e, unsigned flags), {
    (void)flags;
    if (e->captured && !is_default(s)) s->capturing = true; /* it joins the capture */
    if (e->stream != NULL && e->stream->held && !is_default(s)) s->held = true;
})
