/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model test of the pool engine: random operations on many threads, each
 * checked against a reference too simple to be wrong.
 *
 * An operation is a kind and three random numbers, which are made sense of only when it
 * is carried out ("free the a-th of my blocks"). So any part of a sequence is
 * a sequence too, and one that fails on a single thread can be shrunk by leaving operations out.
 */
#ifndef ONUMA_TESTS_MODEL_H
#define ONUMA_TESTS_MODEL_H

#include "pool/pool.h"
#include "pool_source.h"

#include <stdatomic.h>

/* The engine as the model calls it, so that a fault can be put in between (broken.c). */
typedef struct engine_calls {
    const char *name;
    onuma_result (*alloc)(onuma__engine *, size_t, size_t, onuma__tag, void **);
    onuma_result (*grow)(onuma__engine *, size_t, size_t, onuma__tag, void **);
    onuma_result (*free)(void *, onuma__tag, onuma__engine **);
    void (*release)(onuma__engine *, void *);
    onuma_result (*find)(const void *, onuma__block *);
    onuma_result (*resize)(void *, size_t);
    size_t (*trim)(onuma__engine *, size_t);
    void (*get_stats)(onuma__engine *, onuma_pool_stats *);
} engine_calls;

extern const engine_calls sound_engine;
extern const engine_calls broken_engines[]; /* ends with a NULL name; for one thread only */
void broken_reset(void);                    /* before each run */

/* X(name): what may be done. */
#define MODEL_KINDS(X)                                                                                                 \
    X(alloc_small)                                                                                                     \
    X(alloc_any)                                                                                                       \
    X(alloc_large)                                                                                                     \
    X(alloc_aligned)                                                                                                   \
    X(free_own)                                                                                                        \
    X(free_without_queue)                                                                                              \
    X(free_wrong_queue)                                                                                                \
    X(free_interior)                                                                                                   \
    X(free_again)                                                                                                      \
    X(send) X(receive) X(resize) X(special) X(release) X(find) X(close_tag) X(pass_tag) X(take_caches) X(trim)

typedef enum {
#define X(name) KIND_##name,
    MODEL_KINDS(X)
#undef X
        KINDS
} kind;

typedef struct operation {
    kind kind;
    uint32_t a, b, c;
} operation;

#define MODEL_BLOCKS 192 /* live at most, for each thread */
#define MODEL_TAGS 4
#define MODEL_THREADS 32

/* A block as the reference knows it. */
typedef struct shadow {
    unsigned char *base;
    size_t size, requested; /* usable, asked for */
    onuma__tag tag;
    uint64_t number; /* what its content is made of */
    bool special, held;
} shadow;

/* Memory freed under a tag, which others must not get before the tag has passed. */
typedef struct waiting {
    unsigned char *base;
    size_t size;
    uint64_t since;
} waiting;

typedef struct waiting_list {
    waiting *entries;
    size_t count, capacity;
    uint64_t closed_at; /* sequence number just after the last close */
    uint64_t epoch;     /* that it gave; 0: none is open */
} waiting_list;

typedef struct model model;

typedef struct worker {
    model *model;
    unsigned index;
    uint64_t random;
    shadow live[MODEL_BLOCKS];
    size_t live_count;
    shadow held[MODEL_BLOCKS];
    size_t held_count;
    shadow inbox[MODEL_BLOCKS]; /* under the model's lock: from others, to be freed here */
    size_t inbox_count;
} worker;

struct model {
    const engine_calls *calls;
    test_source source;
    onuma__engine *engine;
    unsigned threads;
    uint64_t seed;
    worker *workers;
    _Atomic bool failed;
    char failure[512]; /* the first; under lock */

    onuma__os_lock lock; /* guards what follows: the reference that is common to all */
    uint64_t sequence;
    uint64_t numbers;
    waiting_list tags[MODEL_TAGS];
    shadow *all[MODEL_THREADS * MODEL_BLOCKS]; /* live blocks: they do not overlap */
    size_t all_count;
};

/* life.c */
bool model_open(model *m, const engine_calls *calls, onuma_source mode, unsigned threads, uint64_t seed);
void model_close(model *m); /* checks that everything has gone back */
/* Record a failure, the first of all. */
void model_fail(model *m, const char *format, ...) ONUMA__PRINTF(2, 3);

/* reference.c */
uint64_t model_random(uint64_t *state);
void reference_add(worker *w, const shadow *block); /* as the last of w->live; complains if it overlaps anything */
shadow reference_remove(worker *w, size_t index);
void reference_will_free(worker *w, const shadow *block); /* before a free under the block's tag */
void reference_fill(const shadow *block, size_t from);
void reference_check_content(worker *w, const shadow *block, size_t upto);
void reference_compare(model *m); /* everyone at rest */

/* operations.c */
operation operation_draw(uint64_t *random);
void operation_run(worker *w, const operation *o);
void operation_print(const operation *o);
void worker_receive_all(worker *w);
void worker_finish(worker *w); /* give everything back */

/* shrink.c: a failing sequence on one thread, made short and printed. How many operations are left. */
size_t shrink(const engine_calls *calls, onuma_source mode, operation *operations, size_t count);
/* Carry out a sequence on one thread. false: it failed, and `failure` (if not NULL) says how. */
bool replay(const engine_calls *calls, onuma_source mode, const operation *operations, size_t count, char *failure);

#endif
