/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum {
    STACK = 256 * 1024,
    STEPS_MOST = 4096,
    PLACES_MOST = 512,
    ACCESSES_MOST = 65536,
    BUCKETS = 1024,
    MAIN = SCHEDULE_THREADS
};

/* What a thread is about to do. */
typedef struct step {
    const volatile void *address; /* NULL: waits for anything to change */
    bool writes;
    onuma__os_lock *lock; /* has to be free */
    size_t changes;       /* for a wait: how many there were */
} step;

typedef struct fiber {
    ucontext_t context;
    char *stack;
    onuma__os_thread state;
    step next;
    bool ended;
} fiber;

/* One choice, as bits of threads. */
typedef struct choice {
    unsigned enabled, asleep, chosen;
} choice;

/* A place in the code, and whether its steps are choices. */
typedef struct place {
    const char *text;
    int line;
    bool meets;
} place;

typedef struct access {
    const volatile void *address;
    size_t place;
    unsigned readers, writers; /* threads */
    size_t next;               /* of the same bucket; index + 1 */
} access;

static fiber fibers[SCHEDULE_THREADS + 1]; /* the last: whoever explores */
static size_t current = MAIN, speaks = MAIN;
static bool scheduling;
static size_t changes; /* writes and unlocks of this run */
static const schedule_scenario *scenario;
static schedule_faults faults;
static void (*exit_hook)(onuma__os_thread *);

static choice choices[STEPS_MOST];
static size_t depth, planned; /* of choices made in this run; of those that are laid down */

static place places[PLACES_MOST];
static size_t place_count;
static access accesses[ACCESSES_MOST];
static size_t access_count, buckets[BUCKETS]; /* index + 1 */

/* In release builds too. */
static void require(bool condition, const char *text) {
    if (condition) return;
    fprintf(stderr, "schedule: %s\n", text);
    abort();
}

/* ------------------------------------------------------------------ fibers */

static void switch_to(size_t to) {
    const size_t from = current;
    current = speaks = to;
    swapcontext(&fibers[from].context, &fibers[to].context);
}

static void run_fiber(void) {
    const size_t self = current;
    scenario->thread[self]();
    fibers[self].ended = true;
    for (;;)
        switch_to(MAIN);
}

static void start_fiber(size_t i) {
    fiber *f = &fibers[i];
    if (f->stack == NULL) f->stack = malloc(STACK);
    require(f->stack != NULL, "no memory for a stack");
    f->ended = false;
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = STACK;
    f->context.uc_link = NULL;
    makecontext(&f->context, run_fiber, 0);
}

onuma__os_thread *schedule_thread(void) {
    fibers[speaks].state.number = speaks + 1;
    return &fibers[speaks].state;
}

void schedule_become(size_t thread) {
    speaks = thread;
}

void schedule_exit(size_t thread) {
    if (exit_hook != NULL) exit_hook(&fibers[thread].state);
}

void schedule_on_thread_exit(void (*fn)(onuma__os_thread *)) {
    exit_hook = fn;
}

/* ------------------------------------------------------------------- steps */

static size_t place_of(const char *text, int line) {
    for (size_t i = 0; i < place_count; i++)
        if (places[i].line == line && places[i].text == text) return i;
    require(place_count < PLACES_MOST, "too many places");
    places[place_count] = (place){.text = text, .line = line};
    return place_count++;
}

/* Note the access, and which places meet through it. */
static void note(size_t at, const volatile void *address, bool writes) {
    require(access_count < ACCESSES_MOST, "too many accesses");
    access *mine = NULL;
    const unsigned self = 1u << current;
    size_t *bucket = &buckets[((uintptr_t)address >> 1) * UINT64_C(0x9E3779B97F4A7C15) >> 54];
    for (size_t i = *bucket; i != 0; i = accesses[i - 1].next) {
        access *a = &accesses[i - 1];
        if (a->address != address) continue;
        if ((a->writers & ~self) != 0 || (writes && (a->readers & ~self) != 0))
            places[a->place].meets = places[at].meets = true;
        if (a->place == at) mine = a;
    }
    if (mine == NULL) {
        mine = &accesses[access_count++];
        *mine = (access){.address = address, .place = at, .next = *bucket};
        *bucket = access_count;
    }
    mine->readers |= self;
    if (writes) mine->writers |= self;
}

static void announce(step s) {
    fibers[current].next = s;
    switch_to(MAIN);
}

void schedule_step(const char *text, int line, const volatile void *address, bool writes) {
    if (!scheduling || current == MAIN) return;
    const size_t at = place_of(text, line);
    const bool is_choice = places[at].meets;
    note(at, address, writes);
    if (!is_choice) return;
    announce((step){.address = address, .writes = writes});
    if (writes) changes++;
}

void schedule_lock(onuma__os_lock *lock) {
    if (scheduling && current != MAIN) announce((step){.address = lock, .writes = true, .lock = lock});
    require(onuma__os_lock_try(lock), "a lock is held after the threads have ended");
}

void schedule_unlock(onuma__os_lock *lock) {
    onuma__os_lock_release(lock);
    changes++;
}

void schedule_yield(void) {
    if (scheduling && current != MAIN) announce((step){.changes = changes});
}

bool schedule_barrier(void) {
    return true;
}

bool schedule_is_blind(const char *expression) {
    return scheduling && faults.blind != NULL && strcmp(faults.blind, expression) == 0;
}

bool schedule_tears(const char *expression) {
    return scheduling && faults.torn != NULL && strcmp(faults.torn, expression) == 0;
}

static bool is_free(onuma__os_lock *lock) {
    if (!onuma__os_lock_try(lock)) return false;
    onuma__os_lock_release(lock);
    return true;
}

static bool is_enabled(const fiber *f) {
    if (f->ended) return false;
    if (f->next.lock != NULL) return is_free(f->next.lock);
    return f->next.address != NULL || f->next.changes != changes;
}

static bool are_independent(const step *a, const step *b) {
    if (a->address == NULL || b->address == NULL) return false;
    return a->address != b->address || (!a->writes && !b->writes);
}

/* --------------------------------------------------------------- exploring */

static unsigned lowest(unsigned bits) {
    return bits & (0u - bits);
}

static unsigned enabled_threads(void) {
    unsigned bits = 0;
    for (size_t i = 0; i < scenario->threads; i++)
        if (is_enabled(&fibers[i])) bits |= 1u << i;
    return bits;
}

/* Who sleeps after the choice: those that slept or were tried before, and have nothing to do with it. */
static unsigned asleep_after(const choice *c) {
    const step *taken = &fibers[__builtin_ctz(c->chosen)].next;
    unsigned bits = 0;
    for (size_t i = 0; i < scenario->threads; i++)
        if ((c->asleep >> i & 1) != 0 && are_independent(&fibers[i].next, taken)) bits |= 1u << i;
    return bits;
}

/* One run by the plan, and on beyond it. "" if it only repeats what other runs have shown. */
static const char *run_once(void) {
    unsigned asleep = 0;
    bool repeats = false;
    depth = changes = access_count = 0;
    memset(buckets, 0, sizeof buckets);
    scenario->begin();
    scheduling = true;
    for (size_t i = 0; i < scenario->threads; i++)
        start_fiber(i);
    for (size_t i = 0; i < scenario->threads; i++)
        switch_to(i);
    for (unsigned enabled; (enabled = enabled_threads()) != 0;) {
        unsigned chosen = lowest(enabled);
        if (!repeats) {
            require(depth < STEPS_MOST, "a run has too many steps");
            choice *c = &choices[depth];
            if (depth >= planned)
                *c = (choice){.enabled = enabled, .asleep = asleep, .chosen = lowest(enabled & ~asleep)};
            repeats = c->chosen == 0;
            if (!repeats) {
                chosen = c->chosen;
                asleep = asleep_after(c);
                depth++;
            }
        }
        switch_to((size_t)__builtin_ctz(chosen));
    }
    bool stuck = false;
    for (size_t i = 0; i < scenario->threads; i++)
        stuck |= !fibers[i].ended;
    scheduling = false;
    schedule_become(MAIN);
    if (stuck) return "threads wait for each other";
    const char *wrong = scenario->end();
    return wrong == NULL && repeats ? "" : wrong;
}

/* The plan for the next run: the deepest choice with an alternative. false: there is none. */
static bool plan_next(void) {
    while (depth > 0) {
        choice *c = &choices[depth - 1];
        c->asleep |= c->chosen;
        c->chosen = lowest(c->enabled & ~c->asleep);
        if (c->chosen != 0) break;
        depth--;
    }
    planned = depth;
    return depth > 0;
}

static size_t meeting_places(void) {
    size_t count = 0;
    for (size_t i = 0; i < place_count; i++)
        count += places[i].meets;
    return count;
}

const char *schedule_explore(const schedule_scenario *which, schedule_faults planted, size_t *runs) {
    scenario = which;
    faults = planted;
    place_count = 0;
    for (;;) {
        const size_t known = meeting_places();
        bool more = true;
        planned = 0;
        *runs = 0;
        while (more) {
            const char *wrong = run_once();
            if (meeting_places() != known) break;
            if (wrong == NULL)
                ++*runs;
            else if (*wrong != '\0')
                return wrong;
            more = plan_next();
        }
        if (!more) return NULL;
    }
}
