/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads made up from how programs allocate, beside the recorded ones, which hardly use several streams. The same load,
 * queues, seed and number of operations give the same bytes on every system: numbers are drawn by integers alone.
 *
 *   training   parameters, gradients and two states of the optimiser for each layer, which stay; then steps: activations on
 *              the way forward, freed on the way back, scratch in both, a batch prefetched on the last queue, and
 *              the length of what is learnt from varies. Layers are spread over the queues
 *   inference  weights, which stay; on each queue a model runs for itself: activations that live for one layer, and a
 *              cache of keys and values that doubles as it fills
 *   serving    weights; requests come on any queue, with inputs of very different lengths: one large block to begin with,
 *              then cache by the page while it answers, and all of it freed at once. Up to eight at a time for each queue
 */
#ifndef CLI_BENCH_GENERATE_H
#define CLI_BENCH_GENERATE_H

#include "replay/trace.h"

enum { GENERATE_MOST_QUEUES = 8 };

typedef struct generate_request {
    const char *load; /* "training", "inference", "serving" */
    unsigned queues;  /* 1 to GENERATE_MOST_QUEUES */
    uint64_t seed;
    size_t operations; /* at least so many, and no more than it takes to end a step */
} generate_request;

/* The trace as its text, which the caller frees; the lengths do not include the zero behind it. */
char *generate_text(const generate_request *q, size_t *length);

/* The same, read. */
void generate_trace(const generate_request *q, trace *out);

#endif
