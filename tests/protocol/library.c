/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One real thread plays both of the program's: what the library knows of a thread is its number. What matters between
 * threads within one call, other tests look for (test_sync_stress under the thread sanitizer).
 */
#include "library.h"

#include "sync/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Beyond what a thread keeps for itself, so that places are served and given back one by one. */
#define BLOCK ((size_t)2 << 20)
#define THREAD_NUMBER (UINT64_C(1) << 40)

struct library {
    onuma__config config;
    onuma__log log;
    onuma__registry registry;
    onuma__device *device;
    onuma__owner owner;
    onuma__engine *engine;
    onuma_segment segments[PLACES];
    size_t segment_count;
    onuma_host_timeline timelines[QUEUES];
    onuma__queue *queues[QUEUES];
    uint64_t start[QUEUES]; /* what the program's positions are counted from */
    void *blocks[BLOCKS];
    uint8_t holds[BLOCKS][3];
    variant variant;
    onuma_backend driver;
    /* What the driver was asked for. */
    uint8_t mapped[PLACES];
    bool waits, broken;
    uint8_t waiter;
    uint32_t wait_for;
};

static library *current; /* that the driver is called for */

static void must(bool held, const char *what) {
    if (held) return;
    fprintf(stderr, "protocol: %s: %s\n", what, onuma__thread_text());
    abort();
}
#define MUST(condition) must(condition, #condition)

static const onuma_segment *segment_of(const onuma__span *span) {
    return span->own;
}

static onuma_result acquire(void *self, size_t size, onuma__span *out) {
    library *l = self;
    if (l->segment_count == PLACES) return onuma__fail(ONUMA_ERROR_LIMIT, "there are no more places");
    onuma_segment *segment = &l->segments[l->segment_count++];
    onuma_backend_device *backend = atomic_load(&l->device->backend);
    MUST(l->device->ops->segment_create(backend, ONUMA_KIND_SHARED, size, segment) == ONUMA_OK);
    *out = (onuma__span){segment->base, segment->size, segment};
    return ONUMA_OK;
}

static void release(void *self, const onuma__span *span, size_t committed) {
    library *l = self;
    (void)committed;
    l->device->ops->segment_destroy(atomic_load(&l->device->backend), span->own);
}

static void ignore_line(void *user, onuma_log_level level, const char *line) {
    (void)user, (void)level, (void)line;
}

/* ------------------------------------------------------------------- the driver */

/* A queue is its timeline, as the host's. Its markers are ours, so that a wait for one can be told. */
struct onuma_backend_queue {
    onuma_host_timeline timeline;
};

struct onuma_backend_marker {
    const onuma_backend_queue *queue;
    uint64_t target;
};

static onuma_result new_marker(onuma_backend_queue *queue, uint64_t target, onuma_backend_marker **out) {
    onuma_backend_marker *marker = malloc(sizeof *marker);
    MUST(marker != NULL);
    *marker = (onuma_backend_marker){queue, target};
    *out = marker;
    return ONUMA_OK;
}

static onuma_result record(onuma_backend_queue *queue, onuma_backend_marker **out) {
    return new_marker(queue, atomic_load(&queue->timeline.submitted), out);
}

static onuma_result wrap(onuma_backend_queue *queue, const onuma_native_event *event, onuma_backend_marker **out) {
    return new_marker(queue, event->handle, out);
}

static onuma_result poll(onuma_backend_marker *marker, bool *passed) {
    *passed = atomic_load(&marker->queue->timeline.completed) >= marker->target;
    return ONUMA_OK;
}

static void destroy(onuma_backend_marker *marker) {
    free(marker);
}

static uint8_t number_of(const onuma_backend_queue *queue) {
    return (const void *)queue == (const void *)&current->timelines[1];
}

/* A wait is a piece of work of its queue. */
static onuma_result wait_for(onuma_backend_queue *queue, onuma_backend_marker *marker) {
    const uint8_t q = number_of(queue);
    current->broken = current->broken || current->waits || number_of(marker->queue) == q;
    current->waits = true;
    current->waiter = q;
    current->wait_for = (uint32_t)(marker->target - current->start[1 - q]);
    atomic_fetch_add(&queue->timeline.submitted, 1);
    return ONUMA_OK;
}

static onuma_result map(onuma_backend_device *device, const onuma_segment *segment, uint64_t view, size_t offset,
                        size_t size, onuma_access mode) {
    (void)device, (void)view, (void)offset, (void)size;
    uint8_t *mapped = &current->mapped[segment - current->segments];
    current->broken = current->broken || *mapped != 0;
    *mapped = (uint8_t)mode;
    return ONUMA_OK;
}

static onuma_result unmap(onuma_backend_device *device, const onuma_segment *segment, uint64_t view, size_t offset,
                          size_t size, onuma_access mode) {
    (void)device, (void)view, (void)offset, (void)size;
    uint8_t *mapped = &current->mapped[segment - current->segments];
    current->broken = current->broken || *mapped != mode;
    *mapped = 0;
    return ONUMA_OK;
}

static void make_driver(library *l) {
    l->driver = *l->device->ops;
    l->driver.marker_record = record;
    l->driver.marker_wrap = wrap;
    l->driver.marker_poll = poll;
    l->driver.marker_destroy = destroy;
    l->driver.queue_wait_marker = wait_for;
    l->driver.host_map = map;
    l->driver.host_unmap = unmap;
    l->device->ops = &l->driver;
    l->device->info.abilities |= ONUMA_ABILITY_WAIT;
    if (l->variant == VARIANT_MAPPED) l->device->info.abilities &= ~(uint32_t)ONUMA_ABILITY_COHERENT;
}

static void become(unsigned thread) {
    onuma__os_thread_get()->number = THREAD_NUMBER + thread;
}

static onuma__tag tag_of(const library *l, uint8_t q) {
    return q == NONE ? 0 : l->queues[q]->tag;
}

library *library_open(variant what, bool second_in_order) {
    library *l = calloc(1, sizeof *l);
    MUST(l != NULL);
    current = l;
    l->variant = what;
    become(0);
    l->log = (onuma__log){ONUMA_LOG_ERROR, ignore_line, l};
    onuma__config_init(&l->config);
    MUST(onuma__config_parse(&l->config, "backends:host", "protocol") == ONUMA_OK);
    MUST(onuma__registry_open(&l->config, &l->log, &l->registry) == ONUMA_OK);
    l->device = l->registry.devices[0];
    MUST(onuma__device_open(l->device) == ONUMA_OK);
    make_driver(l);
    l->owner = (onuma__owner){.device = l->device, .kind = ONUMA_KIND_SHARED, .segment = segment_of};
    const onuma__engine_desc desc = {.source = {.self = l, .acquire = acquire, .release = release},
                                     .mode = ONUMA_SOURCE_SEGMENTS,
                                     .alignment = 64,
                                     .segment_bytes = BLOCK,
                                     .cache_bytes = 1u << 20,
                                     .owner = &l->owner};
    MUST(onuma__engine_create(&desc, &l->engine) == ONUMA_OK);
    MUST(onuma__sync_begin_engine(l->engine) == ONUMA_OK);
    l->owner.engine = l->engine;
    for (size_t q = 0; q < QUEUES; q++) {
        onuma_queue_desc queue = ONUMA_QUEUE_DESC_INIT;
        queue.order = q == 0 || second_in_order ? ONUMA_QUEUE_IN_ORDER : ONUMA_QUEUE_UNORDERED;
        MUST(onuma__queue_wrap(l->device, ONUMA_API_HOST, (uintptr_t)&l->timelines[q], &queue, &l->queues[q]) ==
             ONUMA_OK);
        MUST(onuma__sync_note(l->engine, l->queues[q]) == ONUMA_OK);
    }
    for (size_t i = 0; i < PLACES; i++) {
        void *out = NULL;
        MUST(onuma__engine_grow(l->engine, BLOCK, 0, 0, &out) == ONUMA_OK);
        MUST(out != NULL || onuma__engine_alloc(l->engine, BLOCK, 0, 0, &out) == ONUMA_OK);
        l->blocks[i] = out;
    }
    for (size_t i = 0; i < PLACES; i++) {
        MUST(onuma__sync_free(l->blocks[i], NULL) == ONUMA_OK);
        l->blocks[i] = NULL;
    }
    return l;
}

void library_close(library *l) {
    bool last;
    for (size_t q = 0; q < QUEUES; q++) {
        atomic_store(&l->timelines[q].completed, atomic_load(&l->timelines[q].submitted));
        MUST(onuma__queue_release(l->queues[q], &last) == ONUMA_OK);
    }
    (void)onuma__sync_drop_engine(l->engine, 0);
    onuma__engine_destroy(l->engine);
    onuma__queues_drop_device(l->device, 0);
    onuma__registry_close(&l->registry);
    free(l);
}

/* ---------------------------------------------------------------------------- steps */

static answer answer_of(onuma_result r) {
    answer a = {.kind = r == ONUMA_OK               ? ANSWER_OK
                        : r == ONUMA_ERROR_TIMEOUT  ? ANSWER_WAIT
                        : r == ONUMA_ERROR_CONFLICT ? ANSWER_CONFLICT
                                                    : ANSWER_OTHER};
    return a;
}

/* As a pool does, but it never grows. */
static int32_t alloc(library *l, uint8_t q, void **out) {
    int32_t r;
    do
        r = onuma__engine_alloc(l->engine, BLOCK, 0, tag_of(l, q), out);
    while (r == ONUMA__MISS && onuma__sync_poll(l->engine));
    if (r == ONUMA__MISS && l->variant == VARIANT_BEHIND && onuma__sync_go_behind(l->engine, tag_of(l, q)))
        r = onuma__engine_alloc(l->engine, BLOCK, 0, tag_of(l, q), out);
    return r;
}

static answer take_alloc(library *l, step s) {
    const int32_t r = alloc(l, s.queue, &l->blocks[s.block]);
    answer a = {.kind = r == ONUMA_OK ? ANSWER_OK : r == ONUMA__MISS ? ANSWER_NO_MEMORY : ANSWER_OTHER};
    if (r != ONUMA_OK) l->blocks[s.block] = NULL;
    for (uint8_t p = 0; r == ONUMA_OK && p < PLACES; p++)
        if ((char *)l->blocks[s.block] >= (char *)l->segments[p].base &&
            (char *)l->blocks[s.block] < (char *)l->segments[p].base + l->segments[p].size)
            a.place = p;
    return a;
}

static onuma_result hold(library *l, step s, bool take) {
    onuma_result r = take ? onuma__sync_host_acquire(l->blocks[s.block], BLOCK, s.mode, 0)
                          : onuma__sync_host_release(l->blocks[s.block], BLOCK, s.mode);
    if (r == ONUMA_OK) l->holds[s.block][s.mode] = take;
    return r;
}

static void hand_in(library *l, uint8_t q, uint64_t count) {
    atomic_fetch_add(&l->timelines[q].submitted, count);
}

static uint64_t count_announced(const model *m, step s) {
    uint64_t count = 0;
    for (size_t i = 0; i < WORKS; i++)
        count += m->works[i].here && !m->works[i].handed_in && m->works[i].queue == s.queue &&
                 m->works[i].thread == s.thread;
    return count;
}

static answer take(library *l, const model *m, step s) {
    onuma__queue *queue = s.queue == NONE ? NULL : l->queues[s.queue];
    onuma_native_event event = ONUMA_NATIVE_EVENT_INIT;
    const onuma_access mode = s.mode;
    become(s.thread);
    switch (s.kind) {
    case STEP_ALLOC:
        return take_alloc(l, s);
    case STEP_FREE: {
        const answer a = answer_of(onuma__sync_free(l->blocks[s.block], queue));
        l->blocks[s.block] = NULL;
        memset(l->holds[s.block], 0, sizeof l->holds[s.block]);
        return a;
    }
    case STEP_USE:
        return answer_of(onuma__sync_use_many(queue, 1, &l->blocks[s.block], &mode));
    case STEP_HAND_IN:
        hand_in(l, s.queue, count_announced(m, s));
        break;
    case STEP_RUN:
        hand_in(l, m->blocks[s.block].queue, 1);
        break;
    case STEP_UNRELATED:
        hand_in(l, s.queue, 1);
        break;
    case STEP_SEAL:
        return answer_of(onuma__sync_submitted(queue, NULL));
    case STEP_SEAL_EVENT:
        event.api = ONUMA_API_HOST;
        event.handle = l->start[s.queue] + model_event(m, s.queue);
        return answer_of(onuma__sync_submitted(queue, &event));
    case STEP_ACQUIRE:
    case STEP_RELEASE:
        return answer_of(hold(l, s, s.kind == STEP_ACQUIRE));
    case STEP_WAIT:
        event.api = ONUMA_API_HOST;
        return answer_of(onuma__queue_wait(queue, l->queues[1 - s.queue], s.mode == READ ? NULL : &event));
    default:
        atomic_fetch_add(&l->timelines[s.queue].completed, 1);
    }
    return (answer){.kind = ANSWER_OK};
}

answer library_take(library *l, const model *m, step s) {
    current = l;
    l->waits = false;
    answer a = take(l, m, s);
    if (l->broken) a.kind = ANSWER_OTHER;
    memcpy(a.mapped, l->mapped, sizeof a.mapped);
    a.waits = l->waits;
    a.waiter = l->waiter;
    a.wait_for = l->wait_for;
    return a;
}

const char *library_rest(library *l) {
    become(0);
    current = l;
    for (uint8_t q = 0; q < QUEUES; q++) {
        MUST(onuma__sync_submitted(l->queues[q], NULL) == ONUMA_OK);
        l->start[q] = atomic_load(&l->timelines[q].submitted);
        atomic_store(&l->timelines[q].completed, l->start[q]);
    }
    for (uint8_t b = 0; b < BLOCKS; b++) {
        for (uint8_t mode = READ; l->blocks[b] && mode <= WRITE; mode++)
            if (l->holds[b][mode]) MUST(hold(l, (step){.block = b, .mode = mode}, false) == ONUMA_OK);
        if (l->blocks[b]) MUST(onuma__sync_free(l->blocks[b], NULL) == ONUMA_OK);
        l->blocks[b] = NULL;
    }
    while (onuma__sync_poll(l->engine))
        continue;
    if (onuma__sync_pending(l->engine) != 0) return "all work is done, and freed blocks still wait";
    for (size_t p = 0; p < PLACES; p++)
        if (l->mapped[p] != 0) return "nobody holds anything, and memory is mapped";
    for (size_t i = 0; i < PLACES; i++)
        if (alloc(l, NONE, &l->blocks[i]) != ONUMA_OK)
            return "all work is done and all is freed, and memory is missing";
    for (size_t i = 0; i < PLACES; i++) {
        MUST(onuma__sync_free(l->blocks[i], NULL) == ONUMA_OK);
        l->blocks[i] = NULL;
    }
    return NULL;
}
