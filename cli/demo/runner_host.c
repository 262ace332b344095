/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels on the CPU itself, with no driver: a thread that runs the plain C
 * functions in the order of submission and tells the library through a host
 * timeline how far it is. The default way it stands for is two plain copies of
 * the data, one on each side.
 */
#include "clock.h"
#include "demo/runner.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef struct host_job {
    kernel_function *function;
    kernel_value values[KERNEL_ARGUMENTS_MAX];
    size_t items;
    bool gated;
    const onuma_host_timeline *after; /* begins when that has come to `until`; NULL: at once */
    uint64_t until;
    struct host_job *next;
} host_job;

typedef struct host_queue {
    onuma_host_timeline timeline; /* shared with the library; atomic */
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    host_job *first, **last;
    bool gate_closed, stopping;
    bool idle;                        /* nothing waits and nothing runs */
    const onuma_host_timeline *after; /* of the next job */
    uint64_t until;
} host_queue;

static void await(const host_job *job) {
    /* Acquire: what the other queue's kernels wrote is seen. */
    while (job->after && atomic_load_explicit(&job->after->completed, memory_order_acquire) < job->until)
        cli_sleep(20000);
}

static void *serve(void *argument) {
    host_queue *q = argument;
    pthread_mutex_lock(&q->lock);
    for (;;) {
        host_job *job = q->first;
        if (!job || (job->gated && q->gate_closed)) {
            if (!job && q->stopping) break;
            q->idle = !job;
            pthread_cond_broadcast(&q->changed);
            pthread_cond_wait(&q->changed, &q->lock);
            continue;
        }
        q->first = job->next;
        if (!q->first) q->last = &q->first;
        pthread_mutex_unlock(&q->lock);
        await(job);
        job->function(job->values, job->items);
        free(job);
        /* Release, so that whoever sees the count sees what the kernel wrote. */
        atomic_fetch_add_explicit(&q->timeline.completed, 1, memory_order_release);
        pthread_mutex_lock(&q->lock);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

/* Its thread runs what comes in the order in which it comes, which unordered work may be run in, too. */
static bool host_open(runner *r, const runner *beside) {
    (void)beside;
    host_queue *q = cli_allocate(sizeof *q);
    *q = (host_queue){.last = NULL};
    q->last = &q->first;
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->changed, NULL);
    if (pthread_create(&q->thread, NULL, serve, q)) {
        free(q);
        return runner_fail(r, "the system gives no more threads");
    }
    r->own = q;
    r->native_queue = (uint64_t)(uintptr_t)&q->timeline;
    return true;
}

static void host_close(runner *r) {
    host_queue *q = r->own;
    pthread_mutex_lock(&q->lock);
    q->stopping = true;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    pthread_join(q->thread, NULL);
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
    free(q);
}

static bool host_enqueue(runner *r, kernel_id kernel, size_t items, const runner_binding *bindings) {
    host_queue *q = r->own;
    const kernel_entry *entry = kernel_get(kernel);
    host_job *job = cli_allocate(sizeof *job);
    *job = (host_job){.function = entry->reference, .items = items};
    for (size_t i = 0; entry->signature[i]; i++) {
        const runner_binding *from = &bindings[i];
        if (from->kind == RUNNER_NUMBER)
            job->values[i].number = from->number;
        else
            job->values[i].data =
                (void *)(uintptr_t)(from->kind == RUNNER_BLOCK ? from->view.pointer : from->buffer->handle);
    }
    pthread_mutex_lock(&q->lock);
    job->gated = q->gate_closed;
    job->after = q->after;
    job->until = q->until;
    q->after = NULL;
    *q->last = job;
    q->last = &job->next;
    q->idle = false;
    atomic_fetch_add_explicit(&q->timeline.submitted, 1, memory_order_release);
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    return true;
}

/* Its jobs come one after the other, so it is enough that the next one waits. */
static bool host_wait_for(runner *r, const runner *on, onuma_native_event *event) {
    host_queue *q = r->own;
    const host_queue *other = on->own;
    event->api = ONUMA_API_HOST;
    event->handle = atomic_load_explicit(&other->timeline.submitted, memory_order_acquire);
    pthread_mutex_lock(&q->lock);
    q->after = &other->timeline;
    q->until = event->handle;
    pthread_mutex_unlock(&q->lock);
    return true;
}

static bool host_finish(runner *r) {
    host_queue *q = r->own;
    pthread_mutex_lock(&q->lock);
    while (!q->idle)
        pthread_cond_wait(&q->changed, &q->lock);
    pthread_mutex_unlock(&q->lock);
    return true;
}

static void set_gate(runner *r, bool closed) {
    host_queue *q = r->own;
    pthread_mutex_lock(&q->lock);
    q->gate_closed = closed;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

static bool host_gate_close(runner *r) {
    set_gate(r, true);
    return true;
}

static void host_gate_open(runner *r) {
    set_gate(r, false);
}

static bool host_buffer_create(runner *r, runner_buffer *buffer) {
    void *memory = malloc(buffer->size);
    buffer->handle = (uint64_t)(uintptr_t)memory;
    return memory ? true : runner_fail(r, "no memory for a buffer of %zu bytes", buffer->size);
}

static void host_buffer_destroy(runner *r, runner_buffer *buffer) {
    (void)r;
    free((void *)(uintptr_t)buffer->handle);
}

static bool host_buffer_write(runner *r, const runner_buffer *buffer, const void *from) {
    (void)r;
    memcpy((void *)(uintptr_t)buffer->handle, from, buffer->size);
    return true;
}

static bool host_buffer_read(runner *r, const runner_buffer *buffer, void *to) {
    host_finish(r);
    memcpy(to, (const void *)(uintptr_t)buffer->handle, buffer->size);
    return true;
}

const runner_ops runner_host_ops = {
    .api = ONUMA_API_HOST,
    .default_way = "a second copy of the data, and memcpy",
    .open = host_open,
    .close = host_close,
    .enqueue = host_enqueue,
    .finish = host_finish,
    .wait_for = host_wait_for,
    .gate_close = host_gate_close,
    .gate_open = host_gate_open,
    .buffer_create = host_buffer_create,
    .buffer_destroy = host_buffer_destroy,
    .buffer_write = host_buffer_write,
    .buffer_read = host_buffer_read,
};
