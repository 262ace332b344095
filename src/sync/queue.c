/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wrapped queues: one counted object for each (device, api, native), and the
 * registry that finds them.
 *
 *     LIVE      the user holds it
 *     RELEASED  its last marker stands for all its work; still found by tag, because blocks allocated on it may
 *               be freed later and must wait for that work
 *     GONE      the last marker has passed, so nothing ever needs to wait for it again
 *
 * The driver's queue is closed with the last reference, which a marker, a use
 * or a note may hold beyond GONE; until then its device is in use, and the
 * registry lists it. A device that is closed regardless cuts off its queues:
 * their drivers are not asked again. Tags are never used again: 32 bits outlast
 * any process, and the counter skips those that are in use should it wrap.
 */
#include <stdlib.h>

#include "sync/internal.h"

#define LEAVING_PATIENCE 1000000000u /* 1 s for threads that are in the driver of a device which is closed */

static struct {
    onuma__os_lock lock; /* guards all of this, and the queues' users, place, counted and next */
    onuma__queue_object *first;
    onuma__tag last_number;
} registry;

/* Released queues not yet GONE. Relaxed: only spares tidy the lock when there are none. */
static _Atomic uint32_t draining;

bool onuma__queue_begin(onuma__queue_object *queue) {
    /* Both sequentially consistent: either this sees the generation gone, or cut_off sees us inside. */
    atomic_fetch_add(&queue->inside, 1);
    if (ONUMA__LIKELY(atomic_load(&queue->generation) == onuma__os_process_generation())) return true;
    onuma__queue_end(queue);
    return false;
}

void onuma__queue_end(onuma__queue_object *queue) {
    atomic_fetch_sub(&queue->inside, 1);
}

onuma_result onuma__queue_refuse(const onuma__queue_object *queue) {
    return onuma__fail(ONUMA_ERROR_FORKED,
                       "queue 0x%llx belongs to the parent process or to a closed device: wrap one here",
                       (unsigned long long)queue->shared.native);
}

void onuma__queue_drop(onuma__queue_object *queue, onuma__dead *dead) {
    if (!queue) return;
    /* As in onuma__marker_release. */
    if (atomic_fetch_sub_explicit(&queue->references, 1, memory_order_acq_rel) != 1) return;
    queue->next_dead = dead->queues;
    dead->queues = queue;
}

/* Not one whose last reference has ended. */
static bool try_retain(onuma__queue_object *queue) {
    uint32_t count = atomic_load_explicit(&queue->references, memory_order_relaxed);
    while (count != 0)
        if (atomic_compare_exchange_weak_explicit(&queue->references, &count, count + 1, memory_order_relaxed,
                                                  memory_order_relaxed))
            return true;
    return false;
}

/* ----------------------------------------------------- the registry, locked */

static onuma__queue_object *find(onuma__device *device, onuma_api api, uint64_t native) {
    for (onuma__queue_object *q = registry.first; q; q = q->next)
        if (q->place == ONUMA__QUEUE_LIVE && q->shared.device == device && q->shared.api == api &&
            q->shared.native == native)
            return q;
    return NULL;
}

static onuma__queue_object *find_tag(onuma__tag tag) {
    for (onuma__queue_object *q = registry.first; q; q = q->next)
        if (q->place != ONUMA__QUEUE_GONE && q->shared.tag == tag) return q;
    return NULL;
}

static bool tag_taken(onuma__tag tag) {
    onuma__queue_object *q = registry.first;
    while (q && q->shared.tag != tag)
        q = q->next;
    return q || tag == ONUMA__TAG_HOLD;
}

static void insert(onuma__queue_object *queue) {
    onuma__tag tag;
    do {
        registry.last_number = registry.last_number % (ONUMA__TAG_UNORDERED - 1) + 1;
        tag = registry.last_number;
        if (!queue->in_order && ONUMA__RULE(UNORDERED)) tag |= ONUMA__TAG_UNORDERED;
    } while (tag_taken(tag));
    queue->shared.tag = tag;
    queue->next = registry.first;
    registry.first = queue;
    queue->counted = true;
    atomic_fetch_add_explicit(&queue->shared.device->users, 1, memory_order_relaxed);
}

/* The device no longer waits for it. Release: our calls to the driver come before the device's end, which reads this. */
static void uncount(onuma__queue_object *queue) {
    if (queue->counted) atomic_fetch_sub_explicit(&queue->shared.device->users, 1, memory_order_release);
    queue->counted = false;
}

void onuma__queue_close(onuma__queue_object *queue) {
    if (onuma__queue_begin(queue)) {
        queue->shared.device->ops->queue_close(queue->native);
        onuma__queue_end(queue);
    }
    onuma__os_lock_acquire(&registry.lock);
    onuma__queue_object **at = &registry.first;
    while (*at && *at != queue)
        at = &(*at)->next;
    if (*at) *at = queue->next; /* else it lost a race to be wrapped */
    uncount(queue);
    onuma__os_lock_release(&registry.lock);
    onuma__order_forget(queue);
    free(atomic_load_explicit(&queue->spare_batch, memory_order_acquire));
    free(atomic_load_explicit(&queue->spare_marker, memory_order_acquire));
    free(queue);
}

onuma__queue_object *onuma__queue_by_tag(onuma__tag tag) {
    onuma__os_lock_acquire(&registry.lock);
    onuma__queue_object *queue = find_tag(tag);
    if (queue) onuma__queue_retain(queue);
    onuma__os_lock_release(&registry.lock);
    return queue;
}

bool onuma__queue_is_gone(onuma__queue_object *queue) {
    onuma__os_lock_acquire(&queue->lock);
    bool gone = queue->released && !queue->last;
    onuma__os_lock_release(&queue->lock);
    return gone;
}

void onuma__queues_forget_engine(onuma__engine *engine) {
    onuma__os_lock_acquire(&registry.lock);
    for (onuma__queue_object *q = registry.first; q; q = q->next)
        for (size_t i = 0; i < ONUMA__QUEUE_NOTED; i++) {
            onuma__engine *noted = engine;
            atomic_compare_exchange_strong_explicit(&q->noted[i], &noted, NULL, memory_order_relaxed,
                                                    memory_order_relaxed);
        }
    onuma__os_lock_release(&registry.lock);
}

/* ------------------------------------------------------------------ wrapping */

static const onuma_queue_desc plain = ONUMA_QUEUE_DESC_INIT;

static onuma_result check_desc(const onuma_queue_desc *desc) {
    if (desc->order > ONUMA_QUEUE_UNORDERED)
        return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT,
                           "queue order %u: use ONUMA_QUEUE_DETECT, _IN_ORDER or _UNORDERED", desc->order);
    if (!desc->lock != !desc->unlock)
        return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "a queue desc needs both lock and unlock, or neither");
    return ONUMA_OK;
}

/* May this desc name a queue that is wrapped already? */
static onuma_result check_same(const onuma__queue_object *queue, const onuma_queue_desc *desc) {
    onuma_queue_order order = queue->in_order ? ONUMA_QUEUE_IN_ORDER : ONUMA_QUEUE_UNORDERED;
    if (desc->order != ONUMA_QUEUE_DETECT && desc->order != order)
        return onuma__fail(
            ONUMA_ERROR_INVALID_ARGUMENT,
            "queue 0x%llx of %s is already wrapped as %s: wrap it with the same order, or ONUMA_QUEUE_DETECT",
            (unsigned long long)queue->shared.native, queue->shared.device->id,
            queue->in_order ? "in order" : "unordered");
    if (desc->lock &&
        (desc->lock != queue->lock_native || desc->unlock != queue->unlock_native || desc->user != queue->user))
        return onuma__fail(
            ONUMA_ERROR_INVALID_ARGUMENT,
            "queue 0x%llx of %s is already wrapped with other lock functions: give the same ones, or none",
            (unsigned long long)queue->shared.native, queue->shared.device->id);
    return ONUMA_OK;
}

static onuma_result open_queue(onuma__device *device, onuma_api api, uint64_t native, const onuma_queue_desc *desc,
                               onuma__queue_object **out) {
    onuma_backend_device *backend = atomic_load_explicit(&device->backend, memory_order_acquire);
    onuma_queue_order order = desc->order;
    onuma__queue_object *queue = calloc(1, sizeof *queue);
    if (!queue) return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for a queue");
    atomic_init(&queue->references, 1);
    atomic_init(&queue->generation, onuma__os_process_generation());
    queue->shared.device = device;
    queue->shared.api = api;
    queue->shared.native = native;
    queue->lock_native = desc->lock;
    queue->unlock_native = desc->unlock;
    queue->wait_native = desc->wait;
    queue->user = desc->user;
    queue->users = 1;
    queue->last = onuma__marker_create(queue);
    if (!queue->last) {
        free(queue);
        return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for a queue's marker");
    }
    onuma__queue_enter(queue);
    onuma_result r = device->ops->queue_open(backend, native, &order, &queue->native);
    onuma__queue_leave(queue);
    r = onuma__device_note(device, r);
    if (r != ONUMA_OK) {
        free(queue->last);
        free(queue);
        return r;
    }
    queue->in_order = order == ONUMA_QUEUE_IN_ORDER;
    *out = queue;
    return ONUMA_OK;
}

/* Breaks the circle of queue and last marker. */
static void abandon(onuma__queue_object *queue, onuma__dead *dead) {
    onuma__os_lock_acquire(&queue->lock);
    onuma__marker *last = queue->last;
    queue->last = NULL;
    queue->released = true;
    onuma__os_lock_release(&queue->lock);
    onuma__marker_release(last, dead);
    onuma__queue_drop(queue, dead);
}

/* The live queue of that name, counted once more; NULL if there is none. *r: whether the desc goes with it. */
static onuma__queue_object *share(onuma__device *device, onuma_api api, uint64_t native, const onuma_queue_desc *desc,
                                  onuma__queue_object *otherwise, onuma_result *r) {
    *r = ONUMA_OK;
    onuma__os_lock_acquire(&registry.lock);
    onuma__queue_object *queue = find(device, api, native);
    if (queue) {
        *r = check_same(queue, desc);
        if (*r == ONUMA_OK) queue->users++;
    } else if (otherwise) {
        insert(otherwise);
        queue = otherwise;
    }
    onuma__os_lock_release(&registry.lock);
    return queue;
}

onuma_result onuma__queue_wrap(onuma__device *device, onuma_api api, uint64_t native, const onuma_queue_desc *desc,
                               onuma__queue **out) {
    *out = NULL;
    if (!desc) desc = &plain;
    onuma_result r = check_desc(desc);
    if (r == ONUMA_OK && api != device->ops->api)
        r = onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "device %s has no queues of api %u: its own is %u (%s)",
                        device->id, api, device->ops->api, device->ops->name);
    if (r == ONUMA_OK) r = onuma__device_open(device);
    if (r != ONUMA_OK) return r;
    onuma__queues_tidy();

    onuma__queue_object *queue = share(device, api, native, desc, NULL, &r);
    if (!queue) {
        onuma__queue_object *fresh = NULL;
        onuma__dead dead = {0};
        r = open_queue(device, api, native, desc, &fresh);
        if (r != ONUMA_OK) return r;
        queue = share(device, api, native, desc, fresh, &r);
        if (queue != fresh) abandon(fresh, &dead); /* another thread was first */
        onuma__dead_bury(&dead);
    }
    if (r == ONUMA_OK) *out = &queue->shared;
    return r;
}

/* ----------------------------------------------------------------- releasing */

/* No more work will come: the last marker takes over. Everything that is open seals with it. */
static void finish_work(onuma__queue_object *queue) {
    onuma__dead dead = {0};
    onuma__os_lock_acquire(&queue->lock);
    onuma__marker *reserve = NULL;
    if (queue->open) {
        reserve = queue->last;
        queue->last = queue->open;
        queue->open = NULL;
    }
    onuma__marker *last = onuma__marker_retain(queue->last);
    queue->released = true;
    onuma__batch *batches = queue->batches;
    queue->batches = NULL;
    onuma__os_lock_release(&queue->lock);

    /* Recorded before anything seals with it, or a use could pass by a marker that a failure makes later. A failure
     * itself is no matter: whoever polls tries again. */
    (void)onuma__marker_record(last);
    while (batches) {
        onuma__batch *batch = batches;
        batches = batch->next;
        atomic_store_explicit(&batch->marker, onuma__marker_retain(last), memory_order_release);
        onuma__batch_release(batch, &dead);
    }
    onuma__marker_release(last, &dead);
    onuma__marker_release(reserve, &dead);
    onuma__dead_bury(&dead);
}

/* Bounded, since a lost device's driver may never come back. */
static void await_leaving(onuma__queue_object *queue) {
    onuma__backoff backoff;
    onuma__backoff_start(&backoff, LEAVING_PATIENCE);
    while (atomic_load(&queue->inside) != 0 && onuma__backoff_pause(&backoff))
        continue;
}

onuma_result onuma__queue_release(onuma__queue *shared, bool *last) {
    onuma__queue_object *queue = onuma__queue_of(shared);
    onuma__device *device = shared->device;
    onuma__os_lock_acquire(&registry.lock);
    bool live = queue->place == ONUMA__QUEUE_LIVE;
    *last = live && --queue->users == 0;
    if (*last) {
        queue->place = ONUMA__QUEUE_RELEASED;
        onuma__queue_retain(queue); /* for this call: tidy may take the registry's away */
    }
    onuma__os_lock_release(&registry.lock);
    if (!live)
        return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "queue 0x%llx of %s is already released",
                           (unsigned long long)shared->native, device->id);
    if (*last) {
        onuma__dead dead = {0};
        finish_work(queue);
        atomic_fetch_add_explicit(&draining, 1, memory_order_relaxed);
        onuma__sync_tidy();
        /* Whoever asks about it now finds it finished or is inside: after that the program may take away what it is. */
        if (atomic_load(&queue->finished)) await_leaving(queue);
        onuma__queue_drop(queue, &dead);
        onuma__dead_bury(&dead);
    } else {
        onuma__sync_tidy();
    }
    return ONUMA_OK;
}

/* Polls a released queue's last marker; true: it has nothing more to wait for, or never will. */
static bool drained(onuma__queue_object *queue, uint32_t *state) {
    onuma__dead dead = {0};
    onuma__marker *last = NULL;
    onuma__os_lock_acquire(&queue->lock);
    bool released = queue->released;
    if (released && queue->last) last = onuma__marker_retain(queue->last);
    onuma__os_lock_release(&queue->lock);
    *state = last ? onuma__marker_poll(last, 0) : released ? ONUMA__MARKER_PASSED : ONUMA__MARKER_PENDING;
    /* Whoever goes by it sees what the work wrote, as this thread does. */
    if (*state == ONUMA__MARKER_PASSED) atomic_store(&queue->finished, true);
    onuma__marker_release(last, &dead);
    onuma__dead_bury(&dead);
    return *state == ONUMA__MARKER_PASSED || *state == ONUMA__MARKER_LOST;
}

static void retire(onuma__queue_object *queue) {
    onuma__dead dead = {0};
    onuma__os_lock_acquire(&registry.lock);
    bool mine = queue->place == ONUMA__QUEUE_RELEASED;
    if (mine) queue->place = ONUMA__QUEUE_GONE;
    onuma__os_lock_release(&registry.lock);
    if (!mine) return;
    atomic_fetch_sub_explicit(&draining, 1, memory_order_relaxed);
    abandon(queue, &dead);
    onuma__dead_bury(&dead);
}

/* The next queue that is wanted after the tag `after`, in rising order of tags, counted. */
static onuma__queue_object *next_wanted(onuma__tag after, const void *by,
                                        bool (*wanted)(const onuma__queue_object *queue, const void *by)) {
    onuma__queue_object *best = NULL;
    onuma__os_lock_acquire(&registry.lock);
    for (onuma__queue_object *q = registry.first; q; q = q->next)
        if (q->place != ONUMA__QUEUE_GONE && q->shared.tag > after && (!best || q->shared.tag < best->shared.tag) &&
            wanted(q, by))
            best = q;
    if (best) onuma__queue_retain(best);
    onuma__os_lock_release(&registry.lock);
    return best;
}

static bool is_released(const onuma__queue_object *queue, const void *device) { /* of any if it is NULL */
    return queue->place == ONUMA__QUEUE_RELEASED && (!device || queue->shared.device == device);
}

static onuma__queue_object *next_released(onuma__tag after, const onuma__device *device) {
    return next_wanted(after, device, is_released);
}

static bool is_stranding(const onuma__queue_object *queue, const void *owner) {
    return atomic_load_explicit(&queue->strands, memory_order_relaxed) && onuma__sync_reaches(&queue->shared, owner);
}

onuma__queue_object *onuma__queue_next_stranding(onuma__tag after, const onuma__owner *owner) {
    return next_wanted(after, owner, is_stranding);
}

/* One round over the released queues (of a device). Returns how many still wait; lost ones never do. */
static size_t drain(const onuma__device *device) {
    size_t waiting = 0;
    onuma__tag after = 0;
    for (onuma__queue_object *queue; (queue = next_released(after, device)) != NULL;) {
        onuma__dead dead = {0};
        uint32_t state;
        after = queue->shared.tag;
        if (!drained(queue, &state)) waiting++;
        if (state == ONUMA__MARKER_PASSED) retire(queue);
        onuma__queue_drop(queue, &dead);
        onuma__dead_bury(&dead);
    }
    return waiting;
}

void onuma__queues_tidy(void) {
    if (atomic_load_explicit(&draining, memory_order_relaxed) != 0) (void)drain(NULL);
}

/* ------------------------------------------------------------ end of a device */

static onuma__queue_object *next_of_device(const onuma__device *device) {
    onuma__os_lock_acquire(&registry.lock);
    onuma__queue_object *queue = registry.first;
    while (queue && (queue->shared.device != device || queue->place != ONUMA__QUEUE_LIVE))
        queue = queue->next;
    if (queue) queue->users = 1; /* whatever the user forgot */
    onuma__os_lock_release(&registry.lock);
    return queue;
}

/* The device will be closed: what still refers to a queue of it must not ask the driver again. */
static void cut_off(const onuma__device *device) {
    onuma__backoff backoff;
    onuma__backoff_start(&backoff, LEAVING_PATIENCE);
    for (;;) {
        onuma__dead dead = {0};
        onuma__os_lock_acquire(&registry.lock);
        onuma__queue_object *queue = registry.first;
        while (queue && (queue->shared.device != device || !queue->counted))
            queue = queue->next;
        bool alive = queue && try_retain(queue);
        if (alive) {
            atomic_store(&queue->generation, 0);
            uncount(queue);
        }
        onuma__os_lock_release(&registry.lock);
        if (!queue) return;
        if (alive) {
            await_leaving(queue);
            onuma__queue_drop(queue, &dead);
            onuma__dead_bury(&dead);
        } else if (!onuma__backoff_pause(&backoff)) { /* another thread is closing it */
            return;
        }
    }
}

static uint64_t time_left(uint64_t timeout_ns, uint64_t since) {
    if (timeout_ns == ONUMA_TIMEOUT_INFINITE) return timeout_ns;
    uint64_t spent = onuma__os_now() - since;
    return spent < timeout_ns ? timeout_ns - spent : 0;
}

void onuma__queues_drain_device(onuma__device *device, uint64_t timeout_ns) {
    onuma__backoff backoff;
    onuma__backoff_start(&backoff, timeout_ns);
    while (drain(device) != 0 && onuma__backoff_pause(&backoff))
        continue;
    onuma__records_prune(device); /* blocks of other devices remember uses that have passed */
}

void onuma__queues_drop_device(onuma__device *device, uint64_t timeout_ns) {
    uint64_t start = onuma__os_now();
    for (onuma__queue_object *queue; (queue = next_of_device(device)) != NULL;) {
        bool last;
        (void)onuma__queue_release(&queue->shared, &last);
    }
    onuma__ledger *imports = onuma__ledger_get(device, NULL, true);
    if (imports) (void)onuma__ledger_drop(imports, onuma__records_detach(NULL, device), true, timeout_ns);
    onuma__queues_drain_device(device, time_left(timeout_ns, start));
    for (onuma__queue_object *queue; (queue = next_released(0, device)) != NULL;) {
        onuma__dead dead = {0};
        retire(queue); /* its last marker has not passed, and never will be asked about again */
        onuma__queue_drop(queue, &dead);
        onuma__dead_bury(&dead);
    }
    cut_off(device);
    onuma__views_forget_device(device);
}

/* -------------------------------------------------------------------- ordering */

onuma_result onuma__queue_wait_marker(onuma__queue_object *waiter, const onuma__marker *marker) {
    onuma__device *device = waiter->shared.device;
    uint32_t i = atomic_load_explicit(&marker->tries, memory_order_acquire);
    if (!onuma__queue_begin(waiter)) return onuma__queue_refuse(waiter);
    onuma__queue_enter(waiter);
    onuma_result r = device->ops->queue_wait_marker(waiter->native, marker->native[i]);
    onuma__queue_leave(waiter);
    r = onuma__device_note(device, r);
    onuma__queue_end(waiter);
    return r;
}

onuma_result onuma__queue_wait(onuma__queue *queue, onuma__queue *on, const onuma_native_event *done) {
    onuma__queue_object *waiter = onuma__queue_of(queue);
    onuma__device *device = queue->device;
    onuma__marker *marker;
    onuma__dead dead = {0};
    /* An order that the program made itself is only noted: memory never depends on it. */
    if (done) {
        if (done->api != on->api)
            return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT,
                               "the event is of api %u, the queue that is waited for of api %u", done->api, on->api);
        if (onuma__hazards_wanted(device)) onuma__order_note(waiter, onuma__queue_of(on));
        return ONUMA_OK;
    }
    if (on->device != device)
        return onuma__fail(ONUMA_ERROR_NOT_SUPPORTED,
                           "a queue of %s cannot wait for one of %s: wait for the event on the CPU, then submit",
                           device->id, on->device->id);
    if (queue == on && waiter->in_order) return ONUMA_OK;
    onuma__join joined = onuma__marker_join(onuma__queue_of(on), &marker);
    if (joined == ONUMA__NO_MEMORY) return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for a marker");
    if (joined == ONUMA__ALL_PASSED) return ONUMA_OK;

    onuma__backoff backoff;
    onuma_result r = onuma__marker_record(marker);
    onuma__backoff_start(&backoff, ONUMA_TIMEOUT_INFINITE);
    while (r == ONUMA_OK && onuma__marker_state(marker) == ONUMA__MARKER_RECORDING) /* by another thread: moments */
        (void)onuma__backoff_pause(&backoff);
    if (r == ONUMA_OK) r = onuma__marker_record(marker); /* that one failed */
    if (r == ONUMA_OK && onuma__marker_state(marker) != ONUMA__MARKER_PASSED)
        r = onuma__queue_wait_marker(waiter, marker);
    if (r == ONUMA_OK && onuma__hazards_wanted(device)) onuma__order_note(waiter, onuma__queue_of(on));
    onuma__marker_release(marker, &dead);
    onuma__dead_bury(&dead);
    return r;
}

/* ------------------------------------------------------------------------ fork */

void onuma__queues_fork(onuma__fork_step step) {
    if (step == ONUMA__FORK_BEFORE) onuma__os_lock_acquire(&registry.lock);
    for (onuma__queue_object *q = registry.first; q; q = q->next) {
        if (step == ONUMA__FORK_BEFORE)
            onuma__os_lock_acquire(&q->lock);
        else
            onuma__os_lock_release(&q->lock);
    }
    if (step != ONUMA__FORK_BEFORE) onuma__os_lock_release(&registry.lock);
}
