/* SPDX-License-Identifier: Apache-2.0 */
/* Announced accesses: of queues, and of the CPU. */
#include "api/check.h"

static onuma_result use(onuma_queue *q, size_t n, void *const *ptrs, const onuma_access *modes, const char *function) {
    onuma__queue *queue;
    onuma_result r = onuma__get_queue(q, function, "q", &queue);
    if (r != ONUMA_OK || n == 0) return r;
    r = onuma__check_not_null(ptrs, function, "ptrs");
    if (r == ONUMA_OK) r = onuma__check_not_null(modes, function, "modes");
    for (size_t i = 0; i < n && r == ONUMA_OK; i++) {
        r = onuma__check_access(modes[i], function);
        if (r == ONUMA_OK) r = onuma__check_block_fork(ptrs[i], function);
    }
    return r != ONUMA_OK ? r : onuma__sync_use_many(queue, n, ptrs, modes);
}

onuma_result onuma_use(onuma_queue *q, void *ptr, onuma_access mode) {
    return use(q, 1, &ptr, &mode, __func__);
}

onuma_result onuma_use_many(onuma_queue *q, size_t n, void *const *ptrs, const onuma_access *modes) {
    return use(q, n, ptrs, modes, __func__);
}

onuma_result onuma_submitted(onuma_queue *q, const onuma_native_event *done) {
    onuma__queue *queue;
    onuma_native_event event = ONUMA_NATIVE_EVENT_INIT;
    onuma_result r = onuma__get_queue(q, __func__, "q", &queue);
    if (r == ONUMA_OK) r = onuma__struct_read(ONUMA__STRUCT(onuma_native_event, api), done, &event, __func__);
    return r != ONUMA_OK ? r : onuma__sync_submitted(queue, done != NULL ? &event : NULL);
}

onuma_result onuma_host_acquire(void *ptr, size_t size, onuma_access mode, uint64_t timeout_ns) {
    onuma_result r = onuma__check_access(mode, __func__);
    if (r == ONUMA_OK) r = onuma__check_block_fork(ptr, __func__);
    return r != ONUMA_OK ? r : onuma__sync_host_acquire(ptr, size, mode, timeout_ns);
}

onuma_result onuma_host_release(void *ptr, size_t size, onuma_access mode) {
    onuma_result r = onuma__check_access(mode, __func__);
    if (r == ONUMA_OK) r = onuma__check_block_fork(ptr, __func__);
    return r != ONUMA_OK ? r : onuma__sync_host_release(ptr, size, mode);
}
