/* SPDX-License-Identifier: Apache-2.0 */
#include "objects.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct view {
    uint64_t handle;
    const object *device;  /* compared only */
    const object *segment; /* NULL once it is gone */
    uint32_t references, retained;
    struct view *next;
} view;

static struct {
    onuma__os_lock lock; /* guards all of this, and the objects' counters */
    object *objects;
    view *views;
    uint64_t live[OBJECT_TYPES], mapped, bytes, view_count;
} books;

static const char *const names[] = {"instance", "device", "segment", "import", "queue", "marker"};

static void *must(void *p) {
    if (p != NULL) return p;
    fputs("no memory for the tests' own books\n", stderr);
    abort();
}

static void lock(void) {
    onuma__os_lock_acquire(&books.lock);
}

static void unlock(void) {
    onuma__os_lock_release(&books.lock);
}

object *object_new(object_type type, object *parent, void *inner) {
    object *o = must(calloc(1, sizeof *o));
    o->type = type;
    o->parent = parent;
    o->inner = inner;
    o->live = 1;
    o->generation = onuma__os_process_generation();
    if (parent != NULL) {
        o->ops = parent->ops;
        o->host = parent->host;
    }
    lock();
    if (parent != NULL) parent->members++;
    books.live[type]++;
    o->next = books.objects;
    books.objects = o;
    unlock();
    return o;
}

void object_check(const object *o, object_type type, const char *function) {
    const unsigned held = fault_locks_held();
    if (held != 0) fault_violate("%s is called with %u locks of the library held", function, held);
    lock();
    const object *known = books.objects;
    while (known != NULL && known != o)
        known = known->next;
    if (known == NULL)
        fault_violate("%s of %p, which no driver gave", function, (const void *)o);
    else if (o->type != type && !(type == SEGMENT && o->type == IMPORT))
        fault_violate("%s of a %s", function, names[o->type]);
    else if (o->live == 0)
        fault_violate("%s of a %s that was given back before", function, names[o->type]);
    else if (o->generation != onuma__os_process_generation() && o->ops->api != ONUMA_API_HOST)
        fault_violate("%s in a forked child", function);
    unlock();
}

void object_end(object *o, const char *function) {
    lock();
    if (o->members != 0)
        fault_violate("%s of a %s in which %u objects still live", function, names[o->type], (unsigned)o->members);
    if (o->mapped > o->stuck) fault_violate("%s of a segment that is mapped %u times", function, (unsigned)o->mapped);
    books.mapped -= o->mapped;
    for (view *v = books.views; v != NULL; v = v->next) {
        if (v->segment != o) continue;
        if (v->references > v->retained) fault_violate("%s of a segment with a live view", function);
        v->segment = NULL;
    }
    if (o->live != 0) {
        o->live = 0;
        books.live[o->type]--;
        if (o->type == SEGMENT) books.bytes -= o->reserved ? o->committed : o->told;
        if (o->parent != NULL) o->parent->members--;
    }
    unlock();
}

void object_size(object *segment, size_t told) {
    if (segment->reserved) return;
    lock();
    segment->told = told;
    books.bytes += told;
    unlock();
}

void object_commit(object *segment, int64_t bytes) {
    lock();
    segment->committed += (uint64_t)bytes;
    books.bytes += (uint64_t)bytes;
    unlock();
}

void object_map(object *segment, int change) {
    lock();
    if (change < 0 && segment->mapped == 0) {
        fault_violate("host_unmap of a segment of which nothing is mapped");
    } else {
        segment->mapped += (uint32_t)change;
        books.mapped += (uint64_t)(int64_t)change;
    }
    unlock();
}

void object_stuck(object *segment) {
    lock();
    segment->stuck++;
    unlock();
}

object *object_other_segment(const object *device) {
    lock();
    object *o = books.objects;
    while (o != NULL && !(o->type == SEGMENT && o->live != 0 && o->parent == device))
        o = o->next;
    unlock();
    return o;
}

/* Under the lock. */
static view **find_view(const object *device, uint64_t handle) {
    view **at = &books.views;
    while (*at != NULL && !((*at)->handle == handle && (*at)->device == device))
        at = &(*at)->next;
    return at;
}

void view_enter(object *segment, uint64_t handle) {
    view *fresh = must(malloc(sizeof *fresh));
    lock();
    *fresh = (view){handle, segment->parent, segment, 1, 0, books.views};
    books.views = fresh;
    books.view_count++;
    unlock();
}

bool view_retained(object *device, uint64_t handle) {
    lock();
    view *v = *find_view(device, handle);
    if (v != NULL) v->references++, v->retained++;
    unlock();
    return v != NULL;
}

bool view_released(object *device, uint64_t handle) {
    lock();
    view **at = find_view(device, handle), *v = *at;
    if (v != NULL && --v->references == 0) {
        books.view_count--;
        *at = v->next;
        free(v);
    }
    unlock();
    return v != NULL;
}

void fault_driver_books(fault_books *out) {
    lock();
    out->instances = books.live[INSTANCE];
    out->devices = books.live[DEVICE];
    out->segments = books.live[SEGMENT];
    out->imports = books.live[IMPORT];
    out->queues = books.live[QUEUE];
    out->markers = books.live[MARKER];
    out->views = books.view_count;
    out->mapped = books.mapped;
    out->segment_bytes = books.bytes;
    unlock();
}

void fault_driver_forget(void) {
    lock();
    for (object **at = &books.objects; *at != NULL;) {
        object *o = *at;
        if (o->live != 0) {
            at = &o->next;
        } else {
            *at = o->next;
            free(o);
        }
    }
    unlock();
}
