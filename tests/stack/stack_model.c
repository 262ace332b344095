/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random operations on a real stack, through the public functions, on several threads and two in-order queues.
 *
 * Each block is known by what every byte of it must be: the stamp that CPU or kernel put there last. A block allocated
 * for a queue is used by that queue's kernels and by the CPU; one without by both queues, announced each time. Blocks
 * go from thread to thread through a market, so that frees come from threads that did not allocate. At the end all
 * are freed, and everything must have come back.
 *
 *     test_stack_model [--seed N] [--seconds S]
 *
 * The order of threads is the system's, so a seed repeats what each thread tries and not what comes of it.
 */
#define _GNU_SOURCE /* nanosleep, clock_gettime */
#include "api_fixture.h"

#include <pthread.h>

#define THREADS 4
#define QUEUES 2
#define BLOCKS 24
#define MARKET 16

typedef struct block {
    char *base; /* NULL: none */
    size_t size;
    cl_uint seed;
    int queue; /* it was allocated for; QUEUES: none */
} block;

typedef struct model {
    fixture *f;
    cl_command_queue native[QUEUES];
    onuma_queue *queues[QUEUES];
    pthread_mutex_t submitting[QUEUES]; /* from use to submitted: these seal the uses of all threads */
    pthread_mutex_t trading;            /* guards the market */
    block market[MARKET];
    uint64_t seed;
    double seconds;
    pthread_mutex_t complaining; /* guards complaint */
    char complaint[512];
    atomic_bool stop;
} model;

typedef struct worker {
    model *m;
    uint64_t random;
    kernel_set kernels;   /* on one queue or the other */
    cl_command_queue own; /* that they came with */
    block blocks[BLOCKS];
    uint64_t operations, allocations, device_checks;
} worker;

static uint64_t options_seed;
static double options_seconds = 1.5;

/* cmocka cannot fail a test from another thread. */
static void complain(model *m, const char *format, ...) __attribute__((format(__printf__, 2, 3)));
static void complain(model *m, const char *format, ...) {
    va_list arguments;
    pthread_mutex_lock(&m->complaining);
    if (m->complaint[0] == 0) {
        va_start(arguments, format);
        vsnprintf(m->complaint, sizeof m->complaint, format, arguments);
        va_end(arguments);
    }
    pthread_mutex_unlock(&m->complaining);
    atomic_store(&m->stop, true);
}

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        onuma_result try_ = (call);                                                                                    \
        if (try_ != ONUMA_OK) complain(w->m, "%s: %s: %s", #call, onuma_result_name(try_), onuma_last_error());        \
    } while (0)

static uint64_t draw(worker *w, uint64_t below) {
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return (w->random >> 11) % below;
}

static size_t draw_size(worker *w) {
    const size_t most = slow() ? 2000 : 100000;
    switch (draw(w, 8)) {
    case 0:
        return draw(w, 16);
    case 1:
        return draw(w, most);
    default:
        return draw(w, 2000);
    }
}

static cl_uint draw_seed(worker *w) {
    return 1 + (cl_uint)draw(w, 255);
}

/* ------------------------------------------------------------------ accesses */

static void cpu_writes(worker *w, block *b) {
    if (b->size == 0) return;
    b->seed = draw_seed(w);
    TRY(onuma_host_acquire(b->base, b->size, ONUMA_ACCESS_WRITE, FOREVER));
    stamp_bytes(b->base, b->size, 1, b->seed);
    TRY(onuma_host_release(b->base, b->size, ONUMA_ACCESS_WRITE));
}

static void cpu_checks(worker *w, block *b) {
    if (b->size == 0) return;
    TRY(onuma_host_acquire(b->base, b->size, ONUMA_ACCESS_READ, FOREVER));
    const size_t wrong = stamp_differs(b->base, b->size, 1, b->seed);
    TRY(onuma_host_release(b->base, b->size, ONUMA_ACCESS_READ));
    if (wrong != 0)
        complain(w->m, "the CPU finds %zu of %zu bytes at %p wrong (stamp %u, queue %d)", wrong, b->size,
                 (void *)b->base, b->seed, b->queue);
}

static void submit(worker *w, block *b, onuma_access mode) {
    model *m = w->m;
    const int q = b->queue < QUEUES ? b->queue : (int)draw(w, QUEUES);
    onuma_view view = ONUMA_VIEW_INIT;
    if (b->size == 0) return;
    TRY(onuma_view_get(b->base, m->f->device, ONUMA_API_OPENCL, &view));
    if (atomic_load(&m->stop)) return;
    pthread_mutex_lock(&m->submitting[q]);
    TRY(onuma_use(m->queues[q], b->base, mode));
    w->kernels.queue = m->native[q];
    onuma_native_event event = ONUMA_NATIVE_EVENT_INIT;
    cl_event done;
    if (mode == ONUMA_ACCESS_WRITE)
        stamp_submit(&w->kernels, &view, b->size, 1, b->seed, &done);
    else
        differ_submit(&w->kernels, &view, b->size, 1, b->seed, &done);
    event.api = ONUMA_API_OPENCL;
    event.handle = (uintptr_t)done;
    TRY(onuma_submitted(m->queues[q], draw(w, 2) != 0 ? &event : NULL));
    pthread_mutex_unlock(&m->submitting[q]);
    clReleaseEvent(done);
}

/* Across queues the program orders its work itself; that the CPU waits for both is the simplest. */
static void wait_for_both(worker *w, block *b) {
    if (b->queue < QUEUES || b->size == 0) return;
    TRY(onuma_host_acquire(b->base, b->size, ONUMA_ACCESS_WRITE, FOREVER));
    TRY(onuma_host_release(b->base, b->size, ONUMA_ACCESS_WRITE));
}

static void device_writes(worker *w, block *b) {
    wait_for_both(w, b);
    b->seed = draw_seed(w);
    submit(w, b, ONUMA_ACCESS_WRITE);
}

static void device_checks(worker *w, block *b) {
    wait_for_both(w, b);
    submit(w, b, ONUMA_ACCESS_READ);
    w->device_checks++;
}

/* -------------------------------------------------------------- life and death */

static block allocate(worker *w) {
    block b = {.size = draw_size(w), .queue = (int)draw(w, QUEUES + 1)};
    const size_t align = draw(w, 4) == 0 ? (size_t)1 << draw(w, 13) : 0;
    onuma_queue *queue = b.queue < QUEUES ? w->m->queues[b.queue] : NULL;
    void *base = NULL;
    const bool zeroed = draw(w, 4) == 0;
    if (zeroed)
        TRY(onuma_alloc_zeroed(w->m->f->pool, b.size, align, queue, &base));
    else
        TRY(onuma_alloc(w->m->f->pool, b.size, align, queue, &base));
    b.base = base;
    w->allocations++;
    if (align != 0 && (uintptr_t)base % align != 0) complain(w->m, "%p is not aligned to %zu", base, align);
    if (base == NULL || zeroed) return b; /* a stamp of 0 is zeroes */
    if (draw(w, 2) == 0)
        cpu_writes(w, &b);
    else
        device_writes(w, &b);
    return b;
}

/* On no queue, its own, or another that never saw it. */
static void release(worker *w, block *b) {
    const uint64_t q = draw(w, QUEUES + 1);
    if (draw(w, 2) == 0) cpu_checks(w, b);
    TRY(onuma_free(b->base, q < QUEUES ? w->m->queues[q] : NULL));
    if (b->size > 1 && draw(w, 8) == 0 && onuma_free(b->base + 1, NULL) == ONUMA_OK)
        complain(w->m, "an inner pointer was freed");
    *b = (block){0};
}

static void resize(worker *w, block *b) {
    const size_t size = draw_size(w), kept = size < b->size ? size : b->size;
    void *moved = NULL;
    TRY(onuma_realloc(b->base, size, b->queue < QUEUES ? w->m->queues[b->queue] : NULL, &moved));
    if (moved == NULL) return;
    b->base = moved;
    b->size = kept;
    cpu_checks(w, b);
    b->size = size;
    cpu_writes(w, b);
}

static void trade(worker *w, block *mine) {
    pthread_mutex_lock(&w->m->trading);
    block *theirs = &w->m->market[draw(w, MARKET)], given = *mine;
    *mine = *theirs;
    *theirs = given;
    pthread_mutex_unlock(&w->m->trading);
}

static void hold_view(worker *w, block *b) {
    onuma_view first = ONUMA_VIEW_INIT, second = ONUMA_VIEW_INIT;
    first.flags = ONUMA_VIEW_RETAIN;
    TRY(onuma_view_get(b->base, w->m->f->device, ONUMA_API_OPENCL, &first));
    TRY(onuma_view_get(b->base, w->m->f->device, ONUMA_API_OPENCL, &second));
    if (first.handle != second.handle || first.pointer != second.pointer)
        complain(w->m, "two views of %p differ", (void *)b->base);
    TRY(onuma_view_release(&first));
}

static void step(worker *w) {
    block *b = &w->blocks[draw(w, BLOCKS)];
    w->operations++;
    if (draw(w, 200) == 0) TRY(onuma_pool_trim(w->m->f->pool, draw(w, 3) << 22, NULL));
    if (draw(w, 6) == 0) {
        trade(w, b);
        return;
    }
    if (b->base == NULL) {
        *b = allocate(w);
        return;
    }
    switch (draw(w, 7)) {
    case 0:
        cpu_writes(w, b);
        break;
    case 1:
        cpu_checks(w, b);
        break;
    case 2:
        device_writes(w, b);
        break;
    case 3:
        device_checks(w, b);
        break;
    case 4:
        resize(w, b);
        break;
    case 5:
        hold_view(w, b);
        break;
    default:
        release(w, b);
    }
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *work(void *argument) {
    worker *w = argument;
    const double end = now() + w->m->seconds;
    while (!atomic_load(&w->m->stop) && now() < end)
        step(w);
    return NULL;
}

/* ------------------------------------------------------------------ the run */

static void open_model(model *m, fixture *f) {
    cl_int code;
    m->f = f;
    m->seed = options_seed != 0 ? options_seed : (uint64_t)time(NULL);
    m->seconds = options_seconds;
    pthread_mutex_init(&m->trading, NULL);
    pthread_mutex_init(&m->complaining, NULL);
    for (size_t q = 0; q < QUEUES; q++) {
        pthread_mutex_init(&m->submitting[q], NULL);
        m->native[q] = clCreateCommandQueue(f->kernels.context, f->kernels.device, 0, &code);
        kernel_ok(code, "clCreateCommandQueue");
        m->queues[q] = wrap(f, m->native[q]);
    }
    print_message("model: --seed %llu --seconds %g\n", (unsigned long long)m->seed, m->seconds);
}

static void close_model(model *m) {
    for (size_t q = 0; q < QUEUES; q++) {
        OK(onuma_queue_release(m->queues[q]));
        clReleaseCommandQueue(m->native[q]);
        pthread_mutex_destroy(&m->submitting[q]);
    }
    pthread_mutex_destroy(&m->complaining);
    pthread_mutex_destroy(&m->trading);
}

/* Everything that lives is right to the end, and goes. */
static void free_all(worker *workers, size_t count) {
    for (size_t i = 0; i < MARKET; i++)
        if (workers[0].m->market[i].base != NULL) {
            cpu_checks(&workers[0], &workers[0].m->market[i]);
            release(&workers[0], &workers[0].m->market[i]);
        }
    for (size_t t = 0; t < count; t++)
        for (size_t i = 0; i < BLOCKS; i++)
            if (workers[t].blocks[i].base != NULL) {
                cpu_checks(&workers[t], &workers[t].blocks[i]);
                release(&workers[t], &workers[t].blocks[i]);
            }
}

static void random_operations(void **state) {
    static model m;
    static worker workers[THREADS];
    fixture *f = *state;
    const size_t count = slow() ? 1 : THREADS; /* which locks nothing that it shares between threads */
    pthread_t threads[THREADS];
    open_model(&m, f);
    for (size_t t = 0; t < count; t++) {
        workers[t].m = &m;
        workers[t].random = (m.seed + t + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
        kernel_set_open_beside(&workers[t].kernels, &f->kernels);
        workers[t].own = workers[t].kernels.queue;
    }
    for (size_t t = 0; t < count; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, work, &workers[t]), 0);
    uint64_t operations = 0, allocations = 0, checks = 0;
    for (size_t t = 0; t < count; t++) {
        assert_int_equal(pthread_join(threads[t], NULL), 0);
        operations += workers[t].operations;
        allocations += workers[t].allocations;
        checks += workers[t].device_checks;
    }
    free_all(workers, count);
    print_message("model: %llu operations, %llu allocations, %llu checks by kernels\n", (unsigned long long)operations,
                  (unsigned long long)allocations, (unsigned long long)checks);
    if (m.complaint[0] != 0) fail_msg("--seed %llu: %s", (unsigned long long)m.seed, m.complaint);
    assert_true(allocations > 0 && checks > 0);
    cl_int wrong = 0;
    for (size_t q = 0; q < QUEUES; q++)
        kernel_ok(clFinish(m.native[q]), "clFinish");
    for (size_t t = 0; t < count; t++)
        for (size_t q = 0; q < QUEUES; q++) {
            workers[t].kernels.queue = m.native[q]; /* behind all that this queue's kernels counted */
            wrong += kernel_wrong(&workers[t].kernels);
        }
    assert_int_equal(wrong, 0);
    assert_true(api_stats(f->pool).alloc_count >= allocations);
    expect_empty(f->pool);
    for (size_t t = 0; t < count; t++) {
        workers[t].kernels.queue = workers[t].own;
        kernel_set_close(&workers[t].kernels);
    }
    close_model(&m);
}

int main(int argc, char **argv) {
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seed") == 0) options_seed = strtoull(argv[i + 1], NULL, 0);
        if (strcmp(argv[i], "--seconds") == 0) options_seconds = strtod(argv[i + 1], NULL);
    }
    const struct CMUnitTest tests[] = {TEST(random_operations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
