/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of this layer share.
 *
 *     queue    a wrapped native queue
 *     marker   a point in a queue, shared by all that wait for it
 *     batch    the uses opened on a queue between two onuma_submitted: sealed together, by one store
 *     use      one queue's announced access to one block
 *     record   all that is known of one special block; after its free, what the free waits for
 *     ledger   per engine (per device for imports): the frees that wait, and the queues whose tags it serves
 *
 * Locks, outermost first. None is held while a driver, a log or user code runs, so whatever may drop the last
 * reference to a driver's object under a lock puts it in an onuma__dead, which is emptied afterwards.
 *
 *     shard of the record table → ledger map → ledger → registry of queues → queue → retained views
 *
 * The engine's own locks come inside all of these. A record belongs to its shard's lock while it is in the table;
 * after that to the thread that removed it and then to the ledger's poller, except for its pins and views.
 */
#ifndef ONUMA_SYNC_INTERNAL_H
#define ONUMA_SYNC_INTERNAL_H

#include <stdatomic.h>

#include "sync/rules.h"
#include "sync/sync.h"

typedef struct onuma__marker onuma__marker;
typedef struct onuma__queue_object onuma__queue_object;

/* ------------------------------------------------------------ waiting */

/* Polling with back-off until a deadline: a few yields, then sleeps that double up to a millisecond. */
typedef struct onuma__backoff {
    uint64_t deadline; /* UINT64_MAX: none; 0: over already */
    uint64_t delay;
    uint32_t rounds;
} onuma__backoff;

void onuma__backoff_start(onuma__backoff *backoff, uint64_t timeout_ns);
/* Waits a moment. false, without waiting: the time is over. */
bool onuma__backoff_pause(onuma__backoff *backoff);

/* Queues to bring on, counted; those that have no function for it are left out, and so are those beyond the few. */
#define ONUMA__URGED 8u
typedef struct onuma__urge {
    onuma__queue_object *queues[ONUMA__URGED];
    size_t count;
} onuma__urge;

/* References that ended under a lock; onuma__dead_bury destroys what they held, driver's objects included. */
typedef struct onuma__dead {
    onuma__marker *markers;
    onuma__queue_object *queues;
} onuma__dead;

void onuma__dead_bury(onuma__dead *dead);

void onuma__urge_add(onuma__urge *urge, onuma__queue_object *queue);
/* Calls them, if `call`, and lets go of them. No lock may be held. */
void onuma__urge_call(onuma__urge *urge, bool call, onuma__dead *dead);

/* ------------------------------------------------------------ markers */

enum {
    ONUMA__MARKER_PENDING,   /* the driver knows nothing of it yet; whoever polls records it */
    ONUMA__MARKER_RECORDING, /* one thread is in the driver */
    ONUMA__MARKER_RECORDED,
    ONUMA__MARKER_PASSED, /* final */
    ONUMA__MARKER_LOST    /* final: the device is lost or kept failing; what waits for it waits for ever */
};

/* A marker whose polls fail without the device being lost is recorded anew, behind the work that failed, so often. */
#define ONUMA__MARKER_TRIES 3

struct onuma__marker {
    _Atomic uint32_t references;
    _Atomic uint32_t state;     /* stored with release after what it tells of, loaded with acquire */
    _Atomic uint32_t tries;     /* index of the driver's marker in use; as `state` */
    _Atomic uint64_t polled_in; /* relaxed: the polling pass that asked last, so that a pass asks once */
    bool foreign;               /* constant: a driver's event, which may be of any of its queues, whatever was said */
    onuma__queue_object *queue; /* counted */
    onuma_backend_marker *native[ONUMA__MARKER_TRIES]; /* each written by the recording thread alone, before `tries` and
                                                          `state`; destroyed with the marker, since others may be polling */
    onuma__marker *next_dead;
};

typedef enum { ONUMA__JOINED, ONUMA__ALL_PASSED, ONUMA__NO_MEMORY } onuma__join;

/* A new marker in state PENDING with one reference; NULL when memory is out. */
onuma__marker *onuma__marker_create(onuma__queue_object *queue);
/* The queue's lazy marker, counted for the caller: whatever was submitted before this call lies before it. */
onuma__join onuma__marker_join(onuma__queue_object *queue, onuma__marker **out);
/* Record a PENDING marker now. OK if it is recorded, or another thread is at it. No lock may be held. */
onuma_result onuma__marker_record(onuma__marker *marker);
/* The same for one that is not the queue's open one, and never will be. */
onuma_result onuma__marker_record_apart(onuma__marker *marker);
/* The same for one that nobody else has seen. */
onuma_result onuma__marker_record_new(onuma__marker *marker);
/* A marker that passes with a native event. No lock may be held. */
onuma_result onuma__marker_wrap(onuma__queue_object *queue, const onuma_native_event *event, onuma__marker **out);
/* Ask the driver, recording first if need be; at most once in one pass (0: ask always). Returns the state. No lock may be held. */
uint32_t onuma__marker_poll(onuma__marker *marker, uint64_t pass);
uint64_t onuma__marker_new_pass(void);

static inline uint32_t onuma__marker_state(const onuma__marker *marker) {
    return atomic_load_explicit(&marker->state, memory_order_acquire);
}
static inline onuma__marker *onuma__marker_retain(onuma__marker *marker) {
    atomic_fetch_add_explicit(&marker->references, 1, memory_order_relaxed);
    return marker;
}
void onuma__marker_release(onuma__marker *marker, onuma__dead *dead); /* NULL ok */

/* ------------------------------------------------------------- queues */

typedef struct onuma__batch onuma__batch;
struct onuma__batch {
    _Atomic uint32_t references;
    _Atomic(onuma__marker *) marker; /* NULL: open. Stored once, with release, counted; loaded with acquire */
    onuma__queue_object *queue;      /* alive: whoever has a reference to the batch has one to the queue */
    struct onuma__batch *next;       /* among the queue's open ones; its lock */
};

/* One reference; NULL when memory is out. */
onuma__batch *onuma__batch_create(onuma__queue_object *queue);
void onuma__batch_release(onuma__batch *batch, onuma__dead *dead); /* NULL ok */

typedef enum { ONUMA__QUEUE_LIVE, ONUMA__QUEUE_RELEASED, ONUMA__QUEUE_GONE } onuma__queue_state;

#define ONUMA__QUEUE_NOTED 4u

typedef struct onuma__order onuma__order;

struct onuma__queue_object {
    onuma__queue shared; /* first: what the other layers see */
    onuma_backend_queue *native;
    bool in_order;
    _Atomic uint64_t generation; /* of the process that wrapped it; 0: its device is closed */
    _Atomic uint32_t inside;     /* threads between onuma__queue_begin and _end */
    void (*lock_native)(void *user);
    void (*unlock_native)(void *user);
    void (*wait_native)(void *user);
    void *user;
    _Atomic uint32_t references; /* the registry's, markers', uses', notes' */
    _Atomic bool finished;       /* released, and all its work has passed; sequentially consistent, with `inside` */
    _Atomic bool strands; /* never cleared: stranded frees may wait for it. Relaxed: the engine's lock comes between */

    /* The registry's lock: */
    uint32_t users; /* wraps not yet released */
    onuma__queue_state place;
    bool counted; /* among its device's users */
    onuma__queue_object *next;

    onuma__os_lock lock;   /* guards the following */
    bool released;         /* no more work will come: `last` stands for everything */
    onuma__marker *open;   /* not yet recorded: joined by whoever needs a marker now; counted */
    onuma__marker *last;   /* at birth in reserve, so that release cannot run out of memory; NULL once it has passed */
    onuma__batch *batches; /* open ones; uses join the first */
    uint64_t batch_count;  /* sealed so far: see order.c */
    onuma__order *order;
    bool order_unknown;

    /* One of each that was used up, so that a loop of announcements allocates nothing: taken and put back by exchanges
     * (acquire, release). */
    _Atomic(onuma__batch *) spare_batch;
    _Atomic(onuma__marker *) spare_marker;

    /* Engines that know of this queue, by address: a hint, relaxed; cleared before such an engine dies. */
    _Atomic(onuma__engine *) noted[ONUMA__QUEUE_NOTED];
    onuma__queue_object *next_dead;
};

static inline onuma__queue_object *onuma__queue_of(onuma__queue *queue) {
    return (onuma__queue_object *)queue;
}
static inline onuma__queue_object *onuma__queue_retain(onuma__queue_object *queue) {
    atomic_fetch_add_explicit(&queue->references, 1, memory_order_relaxed);
    return queue;
}
void onuma__queue_drop(onuma__queue_object *queue, onuma__dead *dead); /* NULL ok */
/* The queue with that tag, counted; NULL if it has passed everything it will ever have. */
onuma__queue_object *onuma__queue_by_tag(onuma__tag tag);
/* The next queue after the tag `after`, in rising order of tags, that stranded frees of that owner may wait for; counted. */
onuma__queue_object *onuma__queue_next_stranding(onuma__tag after, const onuma__owner *owner);
/* It has passed everything it will ever have. */
bool onuma__queue_is_gone(onuma__queue_object *queue);
/* Forget an engine that dies. */
void onuma__queues_forget_engine(onuma__engine *engine);
/* See whether released queues have passed their last marker. No lock may be held. */
void onuma__queues_tidy(void);
/* Around calls to its driver. false: its driver must not be asked, in a forked child or after its device was closed. */
bool onuma__queue_begin(onuma__queue_object *queue);
void onuma__queue_end(onuma__queue_object *queue);
onuma_result onuma__queue_refuse(const onuma__queue_object *queue);
/* With check:hazards. The work that `queue` gets from now on comes after what `on` has got so far. */
void onuma__order_note(onuma__queue_object *queue, onuma__queue_object *on);
/* Whether the work that `queue` gets from now on is known to come after that batch of `on`. */
bool onuma__order_covers(onuma__queue_object *queue, const onuma__queue_object *on, uint64_t batch);
void onuma__order_forget(onuma__queue_object *queue);
/* What `waiter` is given from now on waits on the device for a recorded marker of another queue. No lock may be held. */
onuma_result onuma__queue_wait_marker(onuma__queue_object *waiter, const onuma__marker *marker);
/* At the last reference's end. */
void onuma__queue_close(onuma__queue_object *queue);
static inline void onuma__queue_enter(const onuma__queue_object *queue) {
    if (queue->lock_native) queue->lock_native(queue->user);
}
static inline void onuma__queue_leave(const onuma__queue_object *queue) {
    if (queue->unlock_native) queue->unlock_native(queue->user);
}

/* ------------------------------------------------------------ records */

/* A queue that a free waits for. */
typedef struct onuma__need {
    onuma__queue_object *queue; /* counted; NULL: none */
    onuma__marker *marker;      /* counted; NULL when memory was out, tried again at each look */
} onuma__need;

typedef struct onuma__use {
    struct onuma__use *next;
    onuma__queue_object *queue; /* counted */
    onuma__batch *batch;        /* counted; NULL: sealed by `implied` alone, or bound */
    onuma__marker *implied;     /* counted; seal made by the opening thread's acquire or free */
    bool owed;                  /* of a freed block: memory was out for `implied`, tried again at each look */
    onuma_access mode;          /* 0: bound, no access: counts for the free only */
    uint64_t thread;            /* that opened it */
    uint64_t number;            /* its batch's, in order.c's count; with check:hazards */
} onuma__use;

typedef struct onuma__block_view {
    struct onuma__block_view *next;
    uint64_t handle;
    size_t size; /* the block's when it was made: a block resized in place gets another */
    bool ready;  /* false: its creator is in the driver */
} onuma__block_view;

typedef struct onuma__record {
    struct onuma__record *next; /* in a bucket, then in a ledger */
    void *base;
    size_t size, offset;   /* offset: in the segment */
    onuma__engine *engine; /* NULL for an import */
    onuma__owner *owner;
    const onuma_segment *segment; /* NULL: no memory behind */
    uint64_t generation;          /* of the process, as in queues */
    onuma__use *uses;
    onuma__block_view *views; /* the shard's lock, even after the free while pins are held */
    uint32_t holds[4];        /* host accesses, by mode */
    onuma_access mapped;      /* for the CPU, where memory is not coherent; 0: not */
    bool mapping;             /* a thread is changing that */
    bool settled; /* who waits for its uses waits for what its memory's last owner left on the queue, too; or it
                                 left nothing */
    _Atomic uint32_t pins; /* threads in the driver for it: taken under the shard's lock while in the table, given
                                 back with release; the ledger loads with acquire and leaves a pinned record alone */
    /* After the free: */
    onuma__need need[2]; /* the freeing queue and the one it was allocated on */
    bool own;            /* serves the queue it was allocated for at once, and others when that has passed */
    bool orphan;         /* its engine dies with the block still live: no free to finish */
} onuma__record;

typedef struct onuma__shard {
    onuma__os_lock lock;
    size_t bucket_count, count;
    onuma__record **buckets;
} onuma__shard;

#define ONUMA__SHARDS 64u

size_t onuma__shard_index(const void *base);
onuma__shard *onuma__shard_at(size_t index);
static inline onuma__shard *onuma__shard_lock(const void *base) {
    onuma__shard *shard = onuma__shard_at(onuma__shard_index(base));
    onuma__os_lock_acquire(&shard->lock);
    return shard;
}
static inline void onuma__shard_unlock(onuma__shard *shard) {
    onuma__os_lock_release(&shard->lock);
}

/* In the locked shard: */
onuma__record *onuma__record_find(const onuma__shard *shard, const void *base); /* NULL: none */
/* Find or make the record of a block that onuma__engine_find found, of *memory, which is then NULL, if that is given.
 * INVALID_POINTER if it was freed since. */
onuma_result onuma__record_open(onuma__shard *shard, const onuma__block *block, onuma__record **memory,
                                onuma__record **out);
bool onuma__shard_room(onuma__shard *shard);                                /* for one more; false: memory is out */
onuma__record *onuma__record_remove(onuma__shard *shard, const void *base); /* NULL: none */

/* A record outside the table, for a free that must wait, of zeroed `memory` or, NULL, of new. */
onuma__record *onuma__record_create(const onuma__block *block, onuma__record *memory);
/* Takes all records of live blocks of that owner's engine (imports of that device, if engine is NULL) out of the table. */
onuma__record *onuma__records_detach(const onuma__engine *engine, const onuma__device *device);
/* Its block, in the driver, by the block's own handle where its segment has no address. No lock may be held. */
onuma_result onuma__record_map(const onuma__record *record, uint64_t view, onuma_access mode);
onuma_result onuma__record_unmap(const onuma__record *record, uint64_t view, onuma_access mode);
/* Drop the uses of a device's queues that have passed from all records. */
void onuma__records_prune(const onuma__device *device);
/* Its memory and references; neither views nor the block. */
void onuma__record_destroy(onuma__record *record, onuma__dead *dead);

static inline void onuma__record_pin(onuma__record *record) {
    atomic_fetch_add_explicit(&record->pins, 1, memory_order_relaxed);
}
static inline void onuma__record_unpin(onuma__record *record) {
    atomic_fetch_sub_explicit(&record->pins, 1, memory_order_release);
}

/* --------------------------------------------------------------- uses */

/* The marker whose passing ends the use; NULL while it is open. Not counted: alive as long as the use. */
onuma__marker *onuma__use_marker(const onuma__use *use);
/* Seal a use from its opening thread: everything submitted so far counts. NO_MEMORY: it stays open. */
onuma__join onuma__use_imply(onuma__use *use);
void onuma__use_destroy(onuma__use *use, onuma__dead *dead);
static inline bool onuma__access_conflicts(onuma_access a, onuma_access b) {
    return ((a | b) & ONUMA_ACCESS_WRITE) != 0 || !ONUMA__RULE(READERS);
}
/* Modes of what the host holds, or-ed. */
onuma_access onuma__record_held(const onuma__record *record);

/* -------------------------------------------------------------- views */

/* The block's handle on its own device, made if there is none. The record stays pinned for the caller. No lock may be held. */
onuma_result onuma__view_handle(void *ptr, uint64_t *handle, onuma__record **pinned);
/* Driver references that users hold to handles of a device that dies: forgotten, not given back. */
void onuma__views_forget_device(const onuma__device *device);
/* Where mapped memory of a record goes when its block is gone. */
void onuma__views_destroy(onuma__record *record);

/* ------------------------------------------------------------ ledgers */

#define ONUMA__EPOCHS 2u

/* One queue that an engine serves. The poller's, but for `next`, which never changes once it is linked. */
typedef struct onuma__note {
    struct onuma__note *next;
    onuma__queue_object *queue; /* counted */
    struct {
        uint64_t number;
        onuma__marker *marker; /* counted; NULL when memory was out, tried again at the next poll */
        bool waits, lost;
    } epochs[ONUMA__EPOCHS];
    onuma__marker *final; /* counted; of an engine that is being dropped: behind all the queue's work */
    bool over;            /* the queue is gone and the engine has nothing of its tag */
} onuma__note;

typedef struct onuma__ledger {
    struct onuma__ledger *next;   /* in its bucket of the map; the map's lock */
    const void *key;              /* the engine, or the device whose imports these are */
    onuma__engine *engine;        /* NULL for imports */
    _Atomic uint32_t references;  /* the map's and of threads at work on it */
    _Atomic uint64_t pending;     /* frees not finished, until the very end of finishing (release; acquire) */
    _Atomic uint32_t lost_epochs; /* of `epochs`, what never ends; relaxed */
    _Atomic uint32_t epochs;      /* of tags, that wait; relaxed, a count */
    _Atomic uint64_t completions; /* grows with each thing that became reusable; relaxed */

    onuma__os_lock lock;       /* guards the following */
    uint64_t poller;           /* thread that polls it; 0: none */
    onuma__record *waiting;    /* newest first; the poller takes the list away and puts back what must wait longer */
    onuma__record *quarantine; /* behind a lost device: not asked about again */
    uint64_t quarantined;      /* of `pending`, what never ends */
    onuma__note *notes;        /* linked at the head; unlinked by the poller */
    uint64_t stranded;         /* of `pending`, what the engine remembers, until there is memory for records */
    uint32_t parked_since_poll;
} onuma__ledger;

/* Counted. create false: NULL if there is none; true: NULL when memory is out. */
onuma__ledger *onuma__ledger_get(const void *key, onuma__engine *engine, bool create);
void onuma__ledger_put(onuma__ledger *ledger);
/* Whether anything became reusable. No lock may be held. */
bool onuma__ledger_poll(onuma__ledger *ledger);
/* Take over a freed block's record. No lock may be held. */
void onuma__ledger_park(onuma__ledger *ledger, onuma__record *record);
/* The same of a freed block of an engine while there is no memory for a record: it waits for those queues. */
void onuma__ledger_strand(onuma__ledger *ledger, void *base, const onuma__need needs[2]);
/* The poller's: what is stranded gets records, if there is memory again. */
void onuma__ledger_recall(onuma__ledger *ledger, onuma__dead *dead);
/* Become the poller, after another one if need be. false: the calling thread is it already, further out. */
bool onuma__ledger_claim(onuma__ledger *ledger);
void onuma__ledger_unclaim(onuma__ledger *ledger);
/* Something waits that no ledger tells of: from now on no engine counts as unused. */
void onuma__ledgers_lose_track(void);
/* Wait for everything up to the time, then forget the ledger. false: something may still be in use. */
bool onuma__ledger_drop(onuma__ledger *ledger, onuma__record *orphans, bool live, uint64_t timeout_ns);
/* Poll what no engine's misses poll: imports, released queues. Cheap when there are none. No lock may be held. */
void onuma__sync_tidy(void);

typedef enum { ONUMA__FREE_NOW, ONUMA__FREE_WAITS, ONUMA__FREE_LOST } onuma__free_state;
/* What a freed block's record waits for; pass 0 asks no driver. */
onuma__free_state onuma__free_check(onuma__record *record, uint64_t pass);
/* Seal what the calling thread may seal of a block that is no longer alive. */
void onuma__free_seal(onuma__record *record, onuma__dead *dead);
/* Everything has passed: unmap, drop the views, give the block back. No lock may be held. */
void onuma__free_finish(onuma__record *record);

/* ------------------------------------------------------------- hazards */

/* With check:hazards, a line "hazard: ..." in the device's log. No lock may be held. */
void onuma__hazard(const onuma__device *device, const char *format, ...) ONUMA__PRINTF(2, 3);
bool onuma__hazards_wanted(const onuma__device *device);
const char *onuma__access_name(onuma_access mode); /* "reading", ... */

/* ---------------------------------------------------------------- fork */

/* Each file's locks around fork(), in the order above: see fork.c. `child` also undoes what vanished threads were at. */
typedef enum { ONUMA__FORK_BEFORE, ONUMA__FORK_PARENT, ONUMA__FORK_CHILD } onuma__fork_step;
void onuma__shards_fork(onuma__fork_step step);
void onuma__ledgers_fork(onuma__fork_step step);
void onuma__queues_fork(onuma__fork_step step);
void onuma__views_fork(onuma__fork_step step);

#endif
