/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of sharing as an executable model, for small programs: two queues, two threads, two blocks, and memory for
 * no more than these; coherent or mapped for the CPU, and with or without queues that go behind others for memory.
 *
 * The model is told each step together with what the library did, and says whether that was right. It judges in two
 * ways that know nothing of each other:
 *
 *   effects   Work is remembered with the memory that it uses. When a queue comes to it, that memory must still be the
 *             block's that it was meant for (else it was reused too early), and the CPU must not have been let at it in
 *             between (else an update is lost).
 *   answers   From the rules alone: whether an acquire has to wait, a use is refused, an allocation finds memory.
 *             An answer that is too cautious is as wrong as one that is not cautious enough. What the driver was
 *             asked for meanwhile is part of the answer: what is mapped, and which queue waits for what.
 *
 * Programs keep to the rules themselves: work is handed in only while its use is open, work that was never announced
 * only by the queue that a block was allocated for, and of such a block the CPU keeps off.
 */
#ifndef ONUMA_TESTS_PROTOCOL_MODEL_H
#define ONUMA_TESTS_PROTOCOL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { QUEUES = 2, THREADS = 2, BLOCKS = 2, PLACES = 2, NONE = 2 };
enum { USES = 12, WORKS = 16, NEEDS = 2, WAITS = 200 };
enum { READ = 1, WRITE = 2 };

typedef enum step_kind {
    STEP_ALLOC,      /* block, queue */
    STEP_FREE,       /* block, queue, by thread */
    STEP_USE,        /* queue announces mode on block, by thread */
    STEP_HAND_IN,    /* what the thread has announced on the queue and not handed in */
    STEP_RUN,        /* hand in work on a block to the queue that it was allocated for, unannounced */
    STEP_UNRELATED,  /* hand in work of no interest to the queue */
    STEP_SEAL,       /* onuma_submitted without an event */
    STEP_SEAL_EVENT, /* and with that of the last work which it seals */
    STEP_ACQUIRE,    /* block, mode, by thread; does not wait */
    STEP_RELEASE,    /* block, mode */
    STEP_WAIT,       /* queue behind the other one, from here on: made by the library, or (mode WRITE) announced */
    STEP_COMPLETE,   /* the queue's device does the next piece of work */
    STEP_KINDS
} step_kind;

typedef struct step {
    uint8_t kind, thread, queue, block, mode;
} step;

typedef enum answer_kind { ANSWER_OK, ANSWER_WAIT, ANSWER_CONFLICT, ANSWER_NO_MEMORY, ANSWER_OTHER } answer_kind;

typedef struct answer {
    answer_kind kind;
    uint8_t place;          /* of an allocation */
    uint8_t mapped[PLACES]; /* for the CPU, afterwards */
    /* The driver was asked to let a queue wait for the other one's work up to that position: a piece of work itself. */
    bool waits;
    uint8_t waiter;
    uint32_t wait_for;
} answer;

/* Positions count the work of a queue; 0 is before all. OPEN: not sealed. */
#define OPEN UINT32_MAX

typedef struct model_use {
    uint8_t queue, mode, thread;
    uint32_t sealed, implied; /* by onuma_submitted, and by the opening thread's acquire or free */
    uint32_t last;            /* position of its last work */
    uint32_t opened;          /* what was submitted when it was announced last */
    uint32_t id;
    bool unsure; /* it was over already when it was sealed: who had noticed need not wait for the seal's point */
} model_use;

typedef struct use_list {
    size_t count;
    model_use list[USES];
} use_list;

typedef struct model_work {
    bool here, handed_in;
    uint8_t queue, place, mode, thread, block;
    uint32_t owner;    /* the place's, that it is meant for */
    uint32_t position; /* once handed in */
    uint32_t time;     /* when it was announced */
    uint32_t use;      /* id; 0: none */
} model_work;

typedef struct model_block {
    bool live, ran;       /* ran: work that nobody announced uses it */
    uint8_t place, queue; /* allocated for */
    uint8_t holds[3];
    bool recycled;  /* its queue may have had it before, ... */
    uint32_t until; /* ... up to this position */
    bool settled;
    uint32_t settled_at;
    use_list uses;
} model_block;

typedef struct model_place {
    bool taken;
    uint8_t taken_for;      /* queue of the block in it */
    uint8_t own;            /* free: the queue that may have it at once */
    bool surely_own;        /* for sure: else if the library has noticed that another queue's use is over */
    bool needed[QUEUES];    /* free: others when these queues ... */
    uint32_t needs[QUEUES]; /* ... have come here */
    use_list parked;        /* free: and these are over */
    uint32_t owner;         /* counts those who had it */
    uint32_t acquired[3];   /* time of the CPU's last access by mode */
    uint8_t mapped;
    uint8_t also;       /* free: a queue that waits for its own, and may have it, too, ... */
    uint32_t also_from; /* ... from this position on */
    uint8_t behind;     /* queue whose former work there comes before all of the owner's, though it may not be over */
} model_place;

typedef struct model_wait {
    uint32_t position, wait_for; /* the other queue's */
} model_wait;

typedef struct model_queue {
    bool in_order;
    uint32_t submitted, completed;
    size_t wait_count;
    model_wait waits[WAITS];
} model_queue;

typedef enum variant { VARIANT_COHERENT, VARIANT_MAPPED, VARIANT_BEHIND, VARIANTS } variant;

typedef struct model {
    variant variant;
    model_queue queues[QUEUES];
    model_block blocks[BLOCKS];
    model_place places[PLACES];
    model_work works[WORKS];
    uint32_t time, ids;
    bool begun;                       /* set by whoever has taken the steps of the beginning */
    bool thread_chosen, block_chosen; /* from here on the two are not alike */
} model;

/* Fresh memory in both places. */
void model_begin(model *m, variant what, bool second_in_order);
/* What the programs are about, so that not all has to be combined with all. */
typedef enum topic { TOPIC_ALL, TOPIC_ACCESSES, TOPIC_MEMORY, TOPICS } topic;
/* The steps that a program may take next; at most `room`. */
size_t model_choices(const model *m, topic about, step *out, size_t room);
bool model_allows(const model *m, step s);
/* The value of the event that a STEP_SEAL_EVENT announces. */
uint32_t model_event(const model *m, uint8_t queue);
/* Whether what the library answered is right. NULL, or what is wrong. */
const char *model_take(model *m, step s, answer seen);
/* The same for states in which all goes on alike. */
uint64_t model_digest(const model *m);

#endif
