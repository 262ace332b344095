/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels on NVIDIA's GPUs, through the driver API and PTX text made of kernels.cl: a device of the library is its
 * primary context, so blocks are pointers there and nothing else of CUDA is needed.
 */
#include "clock.h"
#include "cuda/loader.h"
#include "demo/files.h"
#include "demo/runner.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_MOST 256u /* threads, of kernels without a group of their own */

/* Shared by the runners of a device. One thread opens and closes them. */
typedef struct cuda_kernels {
    unsigned runners;
    cli_cuda_module module;
    cli_cuda_function functions[KERNEL_COUNT];
} cuda_kernels;

typedef struct cuda_queue {
    const cli_cuda *cuda;
    cli_cuda_context context; /* the library's; current on the thread between enter and leave */
    cli_cuda_stream stream;
    cuda_kernels *kernels;
    _Atomic bool gate_closed; /* release by the demo, acquire by the driver's thread */
} cuda_queue;

static bool check(runner *r, cli_cuda_result code, const char *what) {
    const cuda_queue *q = r->own;
    return code == 0 || runner_fail(r, "%s: %s (%d)", what, cli_cuda_error_name(q->cuda, code), (int)code);
}

static void enter(runner *r) {
    const cuda_queue *q = r->own;
    (void)q->cuda->push(q->context); /* what is called next says if it failed */
}

/* Passes on what was done in between. */
static bool leave(runner *r, bool done) {
    const cuda_queue *q = r->own;
    cli_cuda_context ours;
    (void)q->cuda->pop(&ours);
    return done;
}

/* ---------------------------------------------------------------- opening */

static bool load_kernels(runner *r, cuda_queue *q) {
    /* The embedded file has no end of its own. */
    char *text = cli_allocate(demo_file_kernels_ptx_size + 1);
    memcpy(text, demo_file_kernels_ptx, demo_file_kernels_ptx_size);
    text[demo_file_kernels_ptx_size] = '\0';
    const bool loaded = check(r, q->cuda->module_load(&q->kernels->module, text), "cuModuleLoadData of kernels.ptx");
    free(text);
    for (int i = 0; loaded && i < KERNEL_COUNT; i++)
        if (!check(r,
                   q->cuda->module_get_function(&q->kernels->functions[i], q->kernels->module,
                                                kernel_get((kernel_id)i)->name),
                   kernel_get((kernel_id)i)->name))
            return false;
    return loaded;
}

static bool get_kernels(runner *r, cuda_queue *q, const runner *beside) {
    if (beside) {
        q->kernels = ((const cuda_queue *)beside->own)->kernels;
        q->kernels->runners++;
        return true;
    }
    q->kernels = cli_allocate(sizeof *q->kernels);
    *q->kernels = (cuda_kernels){.runners = 1};
    return load_kernels(r, q);
}

static void drop_kernels(cuda_queue *q) {
    if (!q->kernels || --q->kernels->runners) return;
    if (q->kernels->module) (void)q->cuda->module_unload(q->kernels->module);
    free(q->kernels);
}

static void cuda_close(runner *r) {
    cuda_queue *q = r->own;
    enter(r);
    drop_kernels(q);
    if (q->stream) (void)q->cuda->stream_destroy(q->stream);
    (void)leave(r, true);
    free(q);
}

static bool cuda_open(runner *r, const runner *beside) {
    const char *why = "";
    const cli_cuda *cuda = cli_cuda_load(&why);
    if (!cuda) return runner_fail(r, "CUDA cannot be loaded: %s", why);
    cuda_queue *q = cli_allocate(sizeof *q);
    *q = (cuda_queue){.cuda = cuda, .context = (cli_cuda_context)(uintptr_t)r->info.native_context};
    r->own = q;
    r->unordered = false; /* streams never are */
    enter(r);
    bool opened = check(r, cuda->stream_create(&q->stream, CLI_CUDA_STREAM_NON_BLOCKING), "cuStreamCreate");
    opened = leave(r, opened && get_kernels(r, q, beside));
    r->native_queue = (uint64_t)(uintptr_t)q->stream;
    if (!opened) cuda_close(r);
    return opened;
}

/* ---------------------------------------------------------------- launching */

typedef struct cuda_value {
    uint64_t pointer, offset;
    uint32_t number;
} cuda_value;

/* A tensor takes two arguments: the base, and the offset in bytes, which pointers already include. */
static void set_arguments(kernel_id id, const runner_binding *bindings, cuda_value *values, void **parameters) {
    for (size_t i = 0; kernel_get(id)->signature[i]; i++) {
        const runner_binding *from = &bindings[i];
        cuda_value *value = &values[i];
        *value = (cuda_value){.number = from->number};
        if (from->kind == RUNNER_NUMBER) {
            *parameters++ = &value->number;
            continue;
        }
        value->pointer = from->kind == RUNNER_BUFFER ? from->buffer->handle : from->view.pointer;
        *parameters++ = &value->pointer;
        *parameters++ = &value->offset;
    }
}

/* The launch covers exactly the items, since kernels know no bound: blocks of the largest size that divides them. */
static unsigned block_size(size_t items, size_t group) {
    unsigned size = group ? (unsigned)group : BLOCK_MOST;
    while (items % size)
        size--;
    return size;
}

static bool cuda_enqueue(runner *r, kernel_id id, size_t items, const runner_binding *bindings) {
    cuda_queue *q = r->own;
    cuda_value values[KERNEL_ARGUMENTS_MAX];
    void *parameters[2 * KERNEL_ARGUMENTS_MAX];
    const unsigned block = block_size(items, kernel_get(id)->group);
    const size_t blocks = items / block;
    if (blocks > INT_MAX) return runner_fail(r, "%s over %zu items is more than a launch", kernel_get(id)->name, items);
    set_arguments(id, bindings, values, parameters);
    enter(r);
    return leave(r, check(r,
                          q->cuda->launch(q->kernels->functions[id], (unsigned)blocks, 1, 1, block, 1, 1, 0, q->stream,
                                          parameters, NULL),
                          "cuLaunchKernel"));
}

static bool cuda_finish(runner *r) {
    cuda_queue *q = r->own;
    enter(r);
    return leave(r, check(r, q->cuda->stream_synchronize(q->stream), "cuStreamSynchronize"));
}

/* On a thread of the driver. */
static void wait_at_gate(void *user) {
    const cuda_queue *q = user;
    while (atomic_load_explicit(&q->gate_closed, memory_order_acquire))
        cli_sleep(20000);
}

static bool cuda_gate_close(runner *r) {
    cuda_queue *q = r->own;
    atomic_store_explicit(&q->gate_closed, true, memory_order_release);
    enter(r);
    return leave(r, check(r, q->cuda->launch_host(q->stream, wait_at_gate, q), "cuLaunchHostFunc"));
}

static void cuda_gate_open(runner *r) {
    cuda_queue *q = r->own;
    atomic_store_explicit(&q->gate_closed, false, memory_order_release);
}

/* ---------------------------------------------------------------- the default way */

static bool cuda_buffer_create(runner *r, runner_buffer *buffer) {
    cuda_queue *q = r->own;
    enter(r);
    return leave(r, check(r, q->cuda->memory_allocate(&buffer->handle, buffer->size), "cuMemAlloc"));
}

static void cuda_buffer_destroy(runner *r, runner_buffer *buffer) {
    cuda_queue *q = r->own;
    enter(r);
    (void)leave(r, q->cuda->memory_free(buffer->handle) == 0);
}

static bool cuda_buffer_write(runner *r, const runner_buffer *buffer, const void *from) {
    cuda_queue *q = r->own;
    enter(r);
    return leave(r, check(r, q->cuda->copy_to_device(buffer->handle, from, buffer->size, q->stream), "cuMemcpyHtoD") &&
                        check(r, q->cuda->stream_synchronize(q->stream), "cuMemcpyHtoD"));
}

static bool cuda_buffer_read(runner *r, const runner_buffer *buffer, void *to) {
    cuda_queue *q = r->own;
    enter(r);
    return leave(r, check(r, q->cuda->copy_to_host(to, buffer->handle, buffer->size, q->stream), "cuMemcpyDtoH") &&
                        check(r, q->cuda->stream_synchronize(q->stream), "cuMemcpyDtoH"));
}

const runner_ops runner_cuda_ops = {
    .api = ONUMA_API_CUDA,
    .default_way = "cuMemAlloc, with cuMemcpyHtoD and cuMemcpyDtoH",
    .open = cuda_open,
    .close = cuda_close,
    .enqueue = cuda_enqueue,
    .finish = cuda_finish,
    .gate_close = cuda_gate_close,
    .gate_open = cuda_gate_open,
    .buffer_create = cuda_buffer_create,
    .buffer_destroy = cuda_buffer_destroy,
    .buffer_write = cuda_buffer_write,
    .buffer_read = cuda_buffer_read,
};
