/* SPDX-License-Identifier: Apache-2.0 */
#include "demo/runner.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HANG_NS (UINT64_C(120) * 1000000000) /* a wait that takes longer is reported as a failure, not endured */

bool runner_fail(runner *r, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(r->error, sizeof r->error, format, arguments);
    va_end(arguments);
    return false;
}

bool runner_check(runner *r, onuma_result result, const char *what) {
    if (result == ONUMA_OK) return true;
    return runner_fail(r, "%s: %s: %s", what, onuma_result_name(result), onuma_last_error());
}

static bool open_queue(runner *r, const runner *beside) {
    if (!r->ops->open(r, beside)) {
        r->ops = NULL;
        return false;
    }
    onuma_queue_desc desc = ONUMA_QUEUE_DESC_INIT;
    desc.order = r->unordered ? ONUMA_QUEUE_UNORDERED : ONUMA_QUEUE_IN_ORDER;
    return runner_check(r, onuma_queue_wrap(r->device, r->ops->api, r->native_queue, &desc, &r->queue),
                        "onuma_queue_wrap");
}

bool runner_open(runner *r, onuma_device *device, const demo_fault *fault) {
    static const runner_ops *const all[] = {&runner_host_ops, &runner_opencl_ops, &runner_cuda_ops};
    static const char *const backends[] = {"host", "opencl", "cuda"};
    *r = (runner){.device = device, .fault = fault, .info = ONUMA_DEVICE_INFO_INIT};
    if (!runner_check(r, onuma_device_get_info(device, &r->info), "onuma_device_get_info")) return false;
    for (size_t i = 0; i < sizeof all / sizeof *all && !r->ops; i++)
        if (!strcmp(r->info.backend, backends[i])) r->ops = all[i];
    if (!r->ops) return runner_fail(r, "the demo has no kernels for %s devices", r->info.backend);
    return open_queue(r, NULL);
}

bool runner_open_beside(runner *r, const runner *beside, bool unordered) {
    *r = (runner){.device = beside->device,
                  .fault = beside->fault,
                  .info = beside->info,
                  .ops = beside->ops,
                  .unordered = unordered};
    return open_queue(r, beside);
}

static void drop_copies(runner *r) {
    while (r->copies) {
        runner_buffer *copy = r->copies;
        r->copies = copy->next;
        r->ops->buffer_destroy(r, copy);
        free(copy);
    }
}

void runner_close(runner *r) {
    if (!r->ops) return;
    r->ops->finish(r);
    drop_copies(r);
    onuma_queue_release(r->queue);
    r->ops->close(r);
    r->ops = NULL;
}

/* ---------------------------------------------------------------- launching */

static onuma_access access_of(char letter) {
    return letter == 'r' ? ONUMA_ACCESS_READ : letter == 'w' ? ONUMA_ACCESS_WRITE : ONUMA_ACCESS_READ_WRITE;
}

static bool bind_copy(runner *r, void *base, size_t size, runner_binding *to) {
    runner_buffer *copy = cli_allocate(sizeof *copy);
    *copy = (runner_buffer){.size = size};
    if (!r->ops->buffer_create(r, copy)) {
        free(copy);
        return false;
    }
    copy->next = r->copies;
    r->copies = copy;
    *to = (runner_binding){.kind = RUNNER_BUFFER, .buffer = copy};
    return r->ops->buffer_write(r, copy, base);
}

static bool bind_block(runner *r, void *pointer, runner_binding *to) {
    onuma_block_info info = ONUMA_BLOCK_INFO_INIT;
    if (r->fault->name) {
        if (!runner_check(r, onuma_block_get_info(pointer, &info), "onuma_block_get_info")) return false;
        if (r->fault->private_copy && info.kind != ONUMA_KIND_DEVICE && info.requested)
            return bind_copy(r, info.base, info.requested, to);
        if (r->fault->drop_offset) pointer = info.base;
    }
    to->view = (onuma_view)ONUMA_VIEW_INIT;
    return runner_check(r, onuma_view_get(pointer, r->device, r->ops->api, &to->view), "onuma_view_get");
}

static bool bind_all(runner *r, const char *signature, const runner_argument *arguments, runner_binding *bindings) {
    for (size_t i = 0; signature[i]; i++) {
        runner_binding *to = &bindings[i];
        *to = (runner_binding){.kind = arguments[i].kind};
        if (to->kind == RUNNER_NUMBER) to->number = arguments[i].number;
        if (to->kind == RUNNER_BUFFER) to->buffer = arguments[i].buffer;
        if (to->kind == RUNNER_BLOCK && !bind_block(r, arguments[i].block, to)) return false;
    }
    return true;
}

bool runner_launch(runner *r, kernel_id kernel, size_t items, const runner_argument *arguments) {
    if (r->fault->wrong_kernel && kernel == KERNEL_vector_add) kernel = KERNEL_vector_add_wrong;
    const char *signature = kernel_get(kernel)->signature;
    void *blocks[KERNEL_ARGUMENTS_MAX];
    onuma_access modes[KERNEL_ARGUMENTS_MAX];
    runner_binding bindings[KERNEL_ARGUMENTS_MAX];
    size_t used = 0;
    for (size_t i = 0; signature[i]; i++) {
        if (arguments[i].kind != RUNNER_BLOCK) continue;
        blocks[used] = arguments[i].block;
        modes[used++] = access_of(signature[i]);
    }
    if (!bind_all(r, signature, arguments, bindings)) return false;
    if (used && !runner_check(r, onuma_use_many(r->queue, used, blocks, modes), "onuma_use_many")) return false;
    bool enqueued = r->ops->enqueue(r, kernel, items, bindings);
    /* Sealed even when nothing was enqueued: an announced use must not stay open. */
    if (used && !r->batching && !runner_check(r, onuma_submitted(r->queue, NULL), "onuma_submitted")) return false;
    return enqueued;
}

void runner_batch_begin(runner *r) {
    r->batching = true;
}

bool runner_batch_end(runner *r) {
    r->batching = false;
    return runner_check(r, onuma_submitted(r->queue, NULL), "onuma_submitted");
}

bool runner_finish(runner *r) {
    bool done = r->ops->finish(r);
    drop_copies(r);
    return done;
}

bool runner_wait_for(runner *r, const runner *on) {
    onuma_native_event event = ONUMA_NATIVE_EVENT_INIT;
    if (r->fault->skip_order) return true;
    const bool own = r->ops->wait_for != NULL;
    if (own && !r->ops->wait_for(r, on, &event)) return false;
    return runner_check(r, onuma_queue_wait(r->queue, on->queue, own ? &event : NULL), "onuma_queue_wait");
}

/* ---------------------------------------------------------------- the CPU's turn */

onuma_result runner_try_acquire(runner *r, void *block, size_t size, onuma_access mode, uint64_t timeout_ns) {
    return r->fault->skip_acquire ? ONUMA_OK : onuma_host_acquire(block, size, mode, timeout_ns);
}

bool runner_acquire(runner *r, void *block, size_t size, onuma_access mode) {
    return runner_check(r, runner_try_acquire(r, block, size, mode, HANG_NS), "onuma_host_acquire");
}

bool runner_release(runner *r, void *block, size_t size, onuma_access mode) {
    /* What was not acquired cannot be released. */
    if (r->fault->skip_acquire || r->fault->skip_release) return true;
    return runner_check(r, onuma_host_release(block, size, mode), "onuma_host_release");
}
