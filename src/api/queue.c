/* SPDX-License-Identifier: Apache-2.0 */
#include "api/check.h"

onuma_result onuma_queue_wrap(onuma_device *d, onuma_api api, uint64_t native, const onuma_queue_desc *desc,
                              onuma_queue **out) {
    onuma__device *device;
    onuma_queue_desc full = ONUMA_QUEUE_DESC_INIT;
    ONUMA__CHECK_OUT(out, __func__);
    onuma_result r = onuma__get_device(d, __func__, &device);
    if (r == ONUMA_OK) r = onuma__struct_read(ONUMA__STRUCT(onuma_queue_desc, order), desc, &full, __func__);
    if (r != ONUMA_OK) return r;
    onuma__queue *queue;
    r = onuma__queue_wrap(device, api, native, &full, &queue);
    if (r != ONUMA_OK) return r;
    *out = onuma__handle_share(ONUMA__HANDLE_QUEUE, queue, onuma__handle_owner(d), &queue->handle);
    if (*out != NULL) return ONUMA_OK;
    bool last;
    (void)onuma__queue_release(queue, &last);
    return ONUMA_ERROR_OUT_OF_MEMORY;
}

onuma_result onuma_queue_release(onuma_queue *q) {
    if (q == NULL) return ONUMA_OK;
    onuma__queue *queue;
    onuma_result r = onuma__get_queue(q, __func__, "q", &queue);
    if (r != ONUMA_OK) return r;
    bool last, last_inside;
    queue = onuma__handle_drop(ONUMA__HANDLE_QUEUE, q, &last);
    if (queue == NULL) return onuma__handle_refuse(ONUMA__HANDLE_QUEUE, q, __func__, "q");
    if (last) onuma__handle_remove(q);
    return onuma__queue_release(queue, &last_inside);
}

onuma_result onuma_queue_wait(onuma_queue *q, onuma_queue *on, const onuma_native_event *done) {
    onuma__queue *queue, *other;
    onuma_native_event event = ONUMA_NATIVE_EVENT_INIT;
    onuma_result r = onuma__get_queue(q, __func__, "q", &queue);
    if (r == ONUMA_OK) r = onuma__get_queue(on, __func__, "on", &other);
    if (r == ONUMA_OK) r = onuma__struct_read(ONUMA__STRUCT(onuma_native_event, api), done, &event, __func__);
    return r != ONUMA_OK ? r : onuma__queue_wait(queue, other, done != NULL ? &event : NULL);
}
