/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/generate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

enum { LAYERS = 24, MOST_HELD = 256, REQUESTS = 8 };

typedef struct writer {
    char *text;
    size_t length, room;
    size_t operations, wanted;
    uint64_t random, time_us, ids;
    unsigned queues;
} writer;

/* A block as the loads hold it. */
typedef struct held {
    uint64_t id; /* 0: none */
    unsigned queue;
} held;

/* -------------------------------------------------------------------- drawing */

/* splitmix64 */
static uint64_t draw(writer *w) {
    uint64_t x = w->random += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

static uint64_t between(writer *w, uint64_t least, uint64_t most) {
    return least + draw(w) % (most - least + 1);
}

/* ------------------------------------------------------------------- writing */

static void write_line(writer *w, char op, held block, uint64_t bytes) {
    enum { LONGEST = 96 };
    if (w->room - w->length < LONGEST) {
        w->room = w->room * 2 + LONGEST;
        w->text = cli_reallocate(w->text, w->room);
    }
    w->time_us += between(w, 2, 20);
    w->length += (size_t)snprintf(w->text + w->length, LONGEST, "%c,%" PRIu64 ",%" PRIu64 ",%u,%" PRIu64 "\n", op,
                                  block.id, bytes, block.queue, w->time_us);
    w->operations++;
}

static held take(writer *w, unsigned queue, uint64_t bytes) {
    const held block = {.id = ++w->ids, .queue = queue};
    write_line(w, 'a', block, bytes);
    return block;
}

static void give(writer *w, held *block) {
    if (block->id) write_line(w, 'f', *block, 0);
    block->id = 0;
}

static void scratch(writer *w, unsigned queue, uint64_t bytes) {
    held block = take(w, queue, bytes);
    held small = take(w, queue, between(w, 4, 4096) * 4);
    give(w, &block);
    give(w, &small);
}

static bool is_over(const writer *w) {
    return w->operations >= w->wanted;
}

/* ------------------------------------------------------------------- training */

typedef struct model {
    uint64_t width;
    uint64_t weights[LAYERS]; /* bytes */
} model;

static model draw_model(writer *w) {
    model m = {.width = 256 * between(w, 2, 6)};
    for (int i = 0; i < LAYERS; i++)
        m.weights[i] = m.width * m.width * 2 * (i % 2 ? 8 : 4);
    return m;
}

static unsigned queue_of_layer(const writer *w, int layer) {
    return (unsigned)layer * w->queues / LAYERS;
}

static void train_step(writer *w, const model *m, held *batch) {
    const uint64_t tokens = between(w, 4, 32) * 64, row = tokens * m->width * 2;
    held activations[LAYERS][3];
    held next = take(w, w->queues - 1, tokens * 8 + between(w, 0, 64) * 512);
    for (int i = 0; i < LAYERS; i++) {
        const unsigned queue = queue_of_layer(w, i);
        activations[i][0] = take(w, queue, row);
        scratch(w, queue, row / 2 + between(w, 1, 64) * 1024);
        activations[i][1] = take(w, queue, row * (i % 2 ? 4 : 3));
        activations[i][2] = take(w, queue, tokens * 8);
    }
    held loss = take(w, queue_of_layer(w, LAYERS - 1), tokens * 32000 * 2);
    held back = take(w, queue_of_layer(w, LAYERS - 1), row);
    give(w, &loss);
    for (int i = LAYERS - 1; i >= 0; i--) {
        const unsigned queue = queue_of_layer(w, i);
        held further = take(w, queue, row);
        scratch(w, queue, m->weights[i]);
        for (int j = 2; j >= 0; j--)
            give(w, &activations[i][j]);
        give(w, &back);
        back = further;
    }
    give(w, &back);
    give(w, batch);
    *batch = next;
}

static void train(writer *w) {
    const model m = draw_model(w);
    held batch = {0};
    for (int i = 0; i < LAYERS; i++)
        for (int copies = 0; copies < 4; copies++)
            (void)take(w, queue_of_layer(w, i), m.weights[i]);
    while (!is_over(w))
        train_step(w, &m, &batch);
}

/* ------------------------------------------------------------------ inference */

typedef struct run {
    held activation, cache;
    uint64_t tokens, room; /* in the cache */
} run;

static void infer_step(writer *w, const model *m, run *r, unsigned queue) {
    if (r->tokens >= between(w, 256, 4096)) r->tokens = r->room = 0;
    if (r->tokens == 0) {
        give(w, &r->cache);
        r->tokens = between(w, 16, 1024);
    }
    r->tokens += 16;
    if (r->tokens > r->room) {
        while (r->room < r->tokens)
            r->room = r->room ? r->room * 2 : 128;
        held larger = take(w, queue, r->room * m->width * 8);
        give(w, &r->cache);
        r->cache = larger;
    }
    const uint64_t row = between(w, 1, 4) * (r->tokens > 512 ? 16 : 256) * m->width * 2;
    for (int i = 0; i < 6; i++) {
        held next = take(w, queue, i % 3 == 1 ? row * 4 : row);
        if (i % 2) scratch(w, queue, row / 4 + 512);
        give(w, &r->activation);
        r->activation = next;
    }
}

static void infer(writer *w) {
    const model m = draw_model(w);
    run runs[GENERATE_MOST_QUEUES] = {0};
    for (int i = 0; i < LAYERS; i++)
        (void)take(w, 0, m.weights[i]);
    while (!is_over(w)) {
        const unsigned queue = (unsigned)between(w, 0, w->queues - 1);
        infer_step(w, &m, &runs[queue], queue);
    }
}

/* -------------------------------------------------------------------- serving */

typedef struct answer {
    held pages[MOST_HELD];
    size_t count, wanted;
} answer;

static void begin_answer(writer *w, const model *m, answer *a, unsigned queue) {
    /* Lengths as people write: many short ones, a few very long. */
    const uint64_t tokens = (uint64_t)16 << between(w, 0, 7);
    const uint64_t prompt = between(w, tokens, tokens * 2);
    held input = take(w, queue, prompt * 8), hidden = take(w, queue, prompt * m->width * 2);
    a->count = 0;
    a->pages[a->count++] = take(w, queue, prompt * m->width * 4);
    scratch(w, queue, prompt * m->width * 8);
    give(w, &hidden);
    give(w, &input);
    a->wanted = between(w, 2, MOST_HELD);
}

static void serve_step(writer *w, const model *m, answer *a, unsigned queue) {
    if (!a->count) {
        begin_answer(w, m, a, queue);
        return;
    }
    scratch(w, queue, m->width * between(w, 1, 8) * 2);
    if (a->count < a->wanted)
        a->pages[a->count++] = take(w, queue, 16 * m->width * 4);
    else
        while (a->count)
            give(w, &a->pages[--a->count]);
}

static void serve(writer *w) {
    const model m = draw_model(w);
    answer *answers = cli_allocate(sizeof(answer) * GENERATE_MOST_QUEUES * REQUESTS);
    for (size_t i = 0; i < GENERATE_MOST_QUEUES * REQUESTS; i++)
        answers[i].count = 0;
    for (int i = 0; i < LAYERS; i++)
        (void)take(w, 0, m.weights[i]);
    while (!is_over(w)) {
        const unsigned i = (unsigned)between(w, 0, w->queues * REQUESTS - 1);
        serve_step(w, &m, &answers[i], i / REQUESTS);
    }
    free(answers);
}

/* ------------------------------------------------------------------- the text */

char *generate_text(const generate_request *q, size_t *length) {
    writer w = {.wanted = q->operations, .random = q->seed, .queues = q->queues};
    w.room = 1 << 16;
    w.text = cli_allocate(w.room);
    w.length = (size_t)snprintf(w.text, w.room, "op,id,bytes,stream,time_us\n");
    if (strcmp(q->load, "training") == 0)
        train(&w);
    else if (strcmp(q->load, "inference") == 0)
        infer(&w);
    else
        serve(&w);
    *length = w.length;
    return w.text;
}

typedef struct cursor {
    const char *at;
    size_t left;
} cursor;

static long read_text(void *user, char *buffer, size_t size, char *error, size_t error_size) {
    cursor *from = user;
    (void)error;
    (void)error_size;
    const size_t part = from->left < size ? from->left : size;
    memcpy(buffer, from->at, part);
    from->at += part;
    from->left -= part;
    return (long)part;
}

void generate_trace(const generate_request *q, trace *out) {
    size_t length;
    char *text = generate_text(q, &length), error[160];
    cursor from = {text, length};
    const trace_source source = {.read = read_text, .user = &from};
    if (!trace_read(out, &source, error, sizeof error)) cli_error("a generated trace is wrong: %s", error);
    free(text);
}

/* ---------------------------------------------------------------- the command */

static void print_json(const generate_request *q, const char *text) {
    cJSON *object = cJSON_CreateObject();
    cli_json_text(object, "load", q->load);
    cli_json_integer(object, "queues", q->queues);
    cli_json_integer(object, "seed", q->seed);
    cli_json_text(object, "trace", text);
    cli_json_print(object);
}

int cli_bench_generate(int argc, char **argv) {
    generate_request q = {0};
    double queues = 1, seed = 1, operations = 20000;
    bool json = false;
    const cli_option options[] = {
        {.name = "queues", .value = "N", .help = "streams, 1 to 8 (1)", .number = &queues},
        {.name = "seed", .value = "N", .help = "another one is another load (1)", .number = &seed},
        {.name = "operations",
         .value = "N",
         .help = "at least so many, to the end of a step (20000)",
         .number = &operations},
        CLI_OPTION_JSON(&json),
    };
    const cli_usage usage = {"bench generate",
                             "LOAD",
                             "Write a trace of a made-up load for opennuma replay: training, inference or serving. The "
                             "same on every system.",
                             options,
                             sizeof options / sizeof *options,
                             1};
    int status;
    if (!cli_options_parse(&usage, argc, argv, &q.load, &status)) return status;
    if (strcmp(q.load, "training") != 0 && strcmp(q.load, "inference") != 0 && strcmp(q.load, "serving") != 0)
        return cli_bad_request("there is no load \"%.100s\"; there are training, inference and serving", q.load);
    if (queues != (unsigned)queues || queues > (double)GENERATE_MOST_QUEUES)
        return cli_bad_request("--queues %g: a whole number from 1 to %d", queues, GENERATE_MOST_QUEUES);
    if (seed > 1e15 || seed != (double)(uint64_t)seed)
        return cli_bad_request("--seed %g: a whole number up to 1e15", seed);
    if (operations > 1e6 || operations != (double)(size_t)operations)
        return cli_bad_request("--operations %g: a whole number up to a million", operations);
    q.queues = (unsigned)queues;
    q.seed = (uint64_t)seed;
    q.operations = (size_t)operations;
    size_t length;
    char *text = generate_text(&q, &length);
    if (json)
        print_json(&q, text);
    else
        fwrite(text, 1, length, stdout);
    free(text);
    return CLI_HELD;
}
