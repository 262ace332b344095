/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the library got from a driver, each in the decorator's own shell: so a stale pointer is recognised, and who
 * lives in whom is known. Shells of destroyed objects are kept until fault_driver_forget.
 */
#ifndef ONUMA_TESTS_FAULT_OBJECTS_H
#define ONUMA_TESTS_FAULT_OBJECTS_H

#include "fault.h"

typedef enum object_type { INSTANCE, DEVICE, SEGMENT, IMPORT, QUEUE, MARKER, OBJECT_TYPES } object_type;

typedef struct object object;
struct object {
    object_type type;
    object *parent;
    void *inner;      /* the driver's own; a segment's is in `segment` */
    uint32_t live;    /* 1 until destroyed */
    uint32_t members; /* objects that live in it */
    uint32_t mapped;  /* of a segment: host_map minus host_unmap */
    uint32_t stuck;   /* of those: host_unmap was made to fail */
    uint64_t generation;
    uint64_t committed;       /* bytes, of a segment that was reserved */
    size_t told;              /* bytes, of one that was created */
    size_t shift;             /* of a segment: how far its base was moved on purpose */
    bool passed;              /* of a marker */
    bool reserved;            /* of a segment */
    onuma_segment segment;    /* as the driver filled it */
    const onuma_backend *ops; /* the driver's */
    const onuma_backend_host *host;
    object *next;
};

/* A shell for what the driver made. Aborts without memory: tests cannot go on. */
object *object_new(object_type type, object *parent, void *inner);

/* Before each call about an object: it lives, was made by this process, and no lock of the library is held. */
void object_check(const object *o, object_type type, const char *function);

/* It is given back: nothing may live in it. */
void object_end(object *o, const char *function);

/* Counters of a segment; the books lock is taken. */
void object_size(object *segment, size_t told); /* what the library was told that it has */
void object_commit(object *segment, int64_t bytes);
void object_map(object *segment, int change);
void object_stuck(object *segment); /* a host_unmap was made to fail: the range may never be unmapped */

/* Some live segment of the device but this one, or NULL. */
object *object_other_segment(const object *device);

/* References to views' handles. The program's own, those retained, may outlive the segment. */
void view_enter(object *segment, uint64_t handle);   /* its first */
bool view_retained(object *device, uint64_t handle); /* one more; false: unknown */
bool view_released(object *device, uint64_t handle); /* one less; false: unknown */

#endif
