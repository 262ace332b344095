/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small programs in every order of their steps, on the library and on the model side by side.
 *
 *     test_protocol [--steps N]          all programs of N steps (default 6) from each beginning
 *     test_protocol --every N            the same, states that are reached again included
 *     test_protocol --random SECONDS     long random ones; the seed is printed, --seed N repeats it
 *     test_protocol --without RULE       of a build in which rules can be switched off: that it is noticed
 *
 * A program's next step is any that the model calls legal, so all programs of two threads are gone through with all
 * their interleavings, with the progress of the queues between them. Where two lead to states in which the model
 * goes on alike, the second is given up; --every does not, and so sees what the library may keep of the way there.
 */
#include "library.h"

#include "os/os.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef ONUMA_TEST_RULES
#include "sync/rules.h"
uint32_t onuma__rules_off;
static const char *const rules[] = {"UNORDERED", "FREE_USES", "FREE_OWNER", "ACQUIRE_USES", "OPEN_USES", "RECYCLED",
                                    "CONFLICT",  "READERS",   "EVENT",      "FRESH",        "OWN_REUSE", "OWN_RECORD"};
_Static_assert(sizeof rules / sizeof rules[0] == ONUMA__RULES, "each rule has its name here");
#endif

enum { MOST_STEPS = 400, CHOICES = 128, BEGINNINGS = 6, ALL_BEGINNINGS = BEGINNINGS * VARIANTS };

typedef struct program {
    unsigned beginning;
    size_t length;
    step steps[MOST_STEPS];
} program;

typedef struct explorer {
    library *library;
    program program;
    size_t depth; /* steps of a program */
    topic about;
    bool every;
    uint64_t runs, states;
    uint64_t *seen; /* digests with the steps left when they were met; open addressing, 0: none */
    uint8_t *seen_left;
    size_t seen_size;
    const char *complaint;
} explorer;

/* ----------------------------------------------------------------------- telling */

static const char *const queue_names[] = {"P", "Q", "no queue"};

static void print_step(step s) {
    static const char *const names[STEP_KINDS] = {"alloc",   "free",           "use",       "hand in",
                                                  "run",     "unrelated work", "submitted", "submitted with an event",
                                                  "acquire", "release",        "wait",      "complete"};
    printf("    thread %u: %s", s.thread, names[s.kind]);
    const bool of_block = s.kind <= STEP_USE || s.kind == STEP_RUN || s.kind == STEP_ACQUIRE || s.kind == STEP_RELEASE;
    if (of_block) printf(" block %c", 'X' + s.block);
    if (s.kind == STEP_USE || s.kind == STEP_ACQUIRE || s.kind == STEP_RELEASE)
        printf(s.mode == READ ? " read" : " write");
    if (s.kind != STEP_RUN && s.kind != STEP_ACQUIRE && s.kind != STEP_RELEASE) printf(" on %s", queue_names[s.queue]);
    if (s.kind == STEP_WAIT) printf(s.mode == READ ? " for the other one" : " for the other one, announced");
    printf("\n");
}

static void print_program(const program *p, const char *complaint) {
    printf("beginning %u, %zu steps:\n", p->beginning, p->length);
    for (size_t i = 0; i < p->length; i++)
        print_step(p->steps[i]);
    printf("  %s\n", complaint);
}

/* ----------------------------------------------------------------------- running */

/* Blocks that are there from the start, by the queue that they are allocated for. */
static const uint8_t beginnings[BEGINNINGS / 2][BLOCKS] = {{NONE, NONE}, {0, NONE}, {1, 0}};

static bool second_in_order(unsigned beginning) {
    return beginning % BEGINNINGS >= BEGINNINGS / 2;
}

static variant variant_of(unsigned beginning) {
    return (variant)(beginning / BEGINNINGS);
}

static library *open_for(unsigned beginning) {
    return library_open(variant_of(beginning), second_in_order(beginning));
}

static const char *take(library *l, model *m, step s) {
    const answer seen = library_take(l, m, s);
    return model_take(m, s, seen);
}

static const char *begin(library *l, model *m, unsigned beginning) {
    model_begin(m, variant_of(beginning), second_in_order(beginning));
    for (uint8_t b = 0; b < BLOCKS; b++) {
        const step s = {
            .kind = STEP_ALLOC, .queue = beginnings[beginning % (BEGINNINGS / 2)][b], .block = b, .mode = READ};
        const char *complaint = take(l, m, s);
        if (complaint) return complaint;
    }
    m->begun = true;
    return NULL;
}

/* The whole program from its beginning; *m is the state that it ends in. */
static const char *run(explorer *e, const program *p, model *m) {
    const char *complaint = begin(e->library, m, p->beginning);
    e->runs++;
    for (size_t i = 0; i < p->length && !complaint; i++)
        complaint = take(e->library, m, p->steps[i]);
    const char *at_rest = complaint ? NULL : library_rest(e->library);
    return complaint ? complaint : at_rest;
}

/* ---------------------------------------------------------------------- exploring */

static void forget_states(explorer *e) {
    free(e->seen);
    free(e->seen_left);
    e->seen = NULL;
    e->seen_left = NULL;
    e->seen_size = e->states = 0;
}

static void grow(explorer *e) {
    explorer wider = {.seen_size = e->seen_size ? e->seen_size * 2 : 1 << 16};
    wider.seen = calloc(wider.seen_size, sizeof *wider.seen);
    wider.seen_left = calloc(wider.seen_size, 1);
    if (!wider.seen || !wider.seen_left) abort();
    for (size_t i = 0; i < e->seen_size; i++) {
        if (e->seen[i] == 0) continue;
        size_t at = e->seen[i] & (wider.seen_size - 1);
        while (wider.seen[at] != 0)
            at = (at + 1) & (wider.seen_size - 1);
        wider.seen[at] = e->seen[i];
        wider.seen_left[at] = e->seen_left[i];
    }
    free(e->seen);
    free(e->seen_left);
    e->seen = wider.seen;
    e->seen_left = wider.seen_left;
    e->seen_size = wider.seen_size;
}

/* Whether this state has been gone on from, with as many steps left. */
static bool is_known(explorer *e, const model *m, size_t left) {
    const uint64_t digest = model_digest(m) | 1;
    if (e->every) return false;
    if (e->states * 2 >= e->seen_size) grow(e);
    size_t at = digest & (e->seen_size - 1);
    while (e->seen[at] != 0 && e->seen[at] != digest)
        at = (at + 1) & (e->seen_size - 1);
    if (e->seen[at] == digest && e->seen_left[at] >= left) return true;
    e->states += e->seen[at] == 0;
    e->seen[at] = digest;
    e->seen_left[at] = (uint8_t)left;
    return false;
}

static bool explore_from(explorer *e, const model *m);

static bool try_step(explorer *e, step s) {
    program *p = &e->program;
    model m;
    p->steps[p->length++] = s;
    e->complaint = run(e, p, &m);
    if (e->complaint) return false;
    const bool good = p->length == e->depth || is_known(e, &m, e->depth - p->length) || explore_from(e, &m);
    if (good) p->length--;
    return good;
}

/* The program as it is led to *m. */
static bool explore_from(explorer *e, const model *m) {
    step choices[CHOICES];
    const size_t count = model_choices(m, e->about, choices, CHOICES);
    for (size_t i = 0; i < count; i++)
        if (!try_step(e, choices[i])) return false;
    return true;
}

/* NULL, or what is wrong with e->program. */
static const char *explore_beginning(explorer *e, unsigned beginning) {
    model m;
    e->program = (program){.beginning = beginning};
    e->library = open_for(beginning);
    e->complaint = run(e, &e->program, &m);
    if (!e->complaint) (void)explore_from(e, &m);
    /* What went wrong may have left anything behind. */
    if (!e->complaint) library_close(e->library);
    return e->complaint;
}

static bool is_worth_it(unsigned beginning, topic about) {
    /* Fresh blocks that live all the time are alike, whatever they were allocated for. */
    if (about == TOPIC_ACCESSES && beginning % (BEGINNINGS / 2) != 0) return false;
    /* Only a queue in order goes behind, and only for memory. */
    return variant_of(beginning) != VARIANT_BEHIND || (about == TOPIC_MEMORY && second_in_order(beginning));
}

static const char *explore(explorer *e, size_t depth) {
    const char *complaint = NULL;
    e->depth = depth;
    for (e->about = TOPIC_ACCESSES; e->about < TOPICS && !complaint; e->about++)
        for (unsigned i = 0; i < ALL_BEGINNINGS && !complaint; i++) {
            if (!is_worth_it(i, e->about)) continue;
            static const char *const variants[] = {"", ", mapped", ", behind"};
            const uint64_t before = e->runs;
            complaint = explore_beginning(e, i);
            printf("beginning %u%s, %s: %" PRIu64 " programs, %" PRIu64 " states\n", i % BEGINNINGS,
                   variants[variant_of(i)], e->about == TOPIC_MEMORY ? "memory" : "accesses", e->runs - before,
                   e->states);
            fflush(stdout);
            forget_states(e);
        }
    return complaint;
}

/* ------------------------------------------------------------------------- random */

static uint64_t draw(uint64_t *random, uint64_t below) {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random % below;
}

/* A long program of random steps. */
static const char *play(explorer *e, uint64_t *random) {
    program *p = &e->program;
    model m;
    const size_t length = 5 + draw(random, MOST_STEPS - 5);
    const char *complaint = begin(e->library, &m, p->beginning);
    e->runs++;
    while (p->length < length && !complaint) {
        step choices[CHOICES];
        const size_t count = model_choices(&m, TOPIC_ALL, choices, CHOICES);
        const step s = choices[draw(random, count)];
        p->steps[p->length++] = s;
        complaint = take(e->library, &m, s);
    }
    return complaint ? complaint : library_rest(e->library);
}

/* As much of a program as is legal without the step at `left_out`, on a library from scratch: NULL if that goes well. */
static const char *replay(const program *p, size_t left_out, program *kept) {
    model m;
    library *l = open_for(p->beginning);
    const char *complaint = begin(l, &m, p->beginning);
    *kept = (program){.beginning = p->beginning};
    for (size_t i = 0; i < p->length && !complaint; i++) {
        if (i == left_out || !model_allows(&m, p->steps[i])) continue;
        kept->steps[kept->length++] = p->steps[i];
        complaint = take(l, &m, p->steps[i]);
    }
    if (!complaint) complaint = library_rest(l);
    if (!complaint) library_close(l);
    return complaint;
}

/* Leaves out whatever can be left out. NULL if it does not go wrong on a library from scratch. */
static const char *shrink(program *p) {
    static program shorter;
    const char *complaint = replay(p, p->length, &shorter);
    for (size_t before = p->length + 1; complaint && p->length < before;) {
        before = p->length;
        for (size_t i = p->length; i-- > 0;) {
            const char *still = i < p->length ? replay(p, i, &shorter) : NULL;
            if (!still) continue;
            complaint = still;
            *p = shorter;
        }
    }
    return complaint;
}

static const char *play_for(explorer *e, double seconds, uint64_t seed) {
    const uint64_t end = onuma__os_now() + (uint64_t)(seconds * 1e9);
    uint64_t random = seed * 0x9e3779b97f4a7c15u | 1;
    const char *complaint = NULL;
    printf("seed %" PRIu64 "\n", seed);
    while (!complaint && onuma__os_now() < end) {
        const unsigned beginning = (unsigned)draw(&random, ALL_BEGINNINGS);
        e->library = open_for(beginning);
        for (int i = 0; i < 100 && !complaint; i++) {
            e->program = (program){.beginning = beginning};
            complaint = play(e, &random);
        }
        if (!complaint) library_close(e->library);
    }
    if (!complaint) return NULL;
    const char *shortest = shrink(&e->program);
    if (!shortest) printf("not from scratch, only after other programs:\n");
    return shortest ? shortest : complaint;
}

/* --------------------------------------------------------------------------- main */

static int report(const explorer *e, const char *complaint) {
    if (complaint) print_program(&e->program, complaint);
    printf("%" PRIu64 " programs%s\n", e->runs,
           complaint ? ", the last one of which is wrong" : ", all as the model says");
    return complaint ? 1 : 0;
}

#ifdef ONUMA_TEST_RULES
/* Exit status 0 if it is noticed. */
static int check_without(const char *name) {
    explorer e = {0};
    for (unsigned i = 0; i < ONUMA__RULES; i++)
        if (strcmp(rules[i], name) == 0) onuma__rules_off = 1u << i;
    if (onuma__rules_off == 0) {
        printf("there is no rule %s\n", name);
        return 2;
    }
    const char *complaint = NULL;
    for (size_t depth = 1; depth <= 4 && !complaint; depth++)
        complaint = explore(&e, depth);
    if (!complaint)
        complaint = play_for(&e, 300, 1); /* takes more steps than can be gone through in all orders quickly */
    (void)report(&e, complaint);
    return complaint ? 0 : 1;
}
#endif

int main(int argc, char **argv) {
    explorer e = {0};
    const char *option = argc > 2 ? argv[1] : "--steps", *value = argc > 2 ? argv[2] : "6";
    const uint64_t seed = argc > 4 && strcmp(argv[3], "--seed") == 0 ? strtoull(argv[4], NULL, 10) : onuma__os_now();
    if (strcmp(option, "--random") == 0) return report(&e, play_for(&e, strtod(value, NULL), seed));
#ifdef ONUMA_TEST_RULES
    if (strcmp(option, "--without") == 0) return check_without(value);
#endif
    e.every = strcmp(option, "--every") == 0;
    if (!e.every && strcmp(option, "--steps") != 0) {
        fprintf(stderr, "protocol: no option %s\n", option);
        return 2;
    }
    return report(&e, explore(&e, strtoul(value, NULL, 10)));
}
