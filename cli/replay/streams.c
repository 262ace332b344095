/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/streams.h"

#include <string.h>

onuma_result streams_create(const onuma_runtime *rt, onuma_device *device, const trace *t, streams *out) {
    *out = (streams){.trace = t};
    onuma_device_info info = ONUMA_DEVICE_INFO_INIT;
    onuma_result r = onuma_device_get_info(device, &info);
    if (r != ONUMA_OK) return r;
    if (strcmp(info.backend, "opencl") == 0)
        r = streams_create_opencl(out, device, &info);
    else if (strcmp(info.backend, "cuda") == 0)
        r = streams_create_cuda(out, device, &info);
    else if ((r = onuma_device_find(rt, "host", &device)) == ONUMA_OK)
        /* Queues of the host may use any memory that the CPU reaches. */
        r = streams_create_host(out, device);
    if (r != ONUMA_OK) streams_destroy(out);
    return r;
}

void streams_finish(streams *s) {
    s->operations->catch_up(s);
    for (uint32_t release = 1; release <= s->trace->release_count; release++)
        s->operations->release(s, release);
}

void streams_destroy(streams *s) {
    for (size_t i = 0; i < s->count; i++)
        onuma_queue_release(s->queues[i]);
    onuma_queue_release(s->later);
    if (s->operations) s->operations->destroy(s);
    *s = (streams){0};
}
