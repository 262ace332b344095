/* SPDX-License-Identifier: Apache-2.0 */
#include "api/check.h"

#include <inttypes.h>

static const onuma__struct view_type = {"onuma_view", sizeof(onuma_view),
                                        offsetof(onuma_view, flags) + sizeof(uint32_t)};

onuma_result onuma_view_get(void *ptr, onuma_device *d, onuma_api api, onuma_view *out) {
    onuma__device *device;
    onuma_view view = ONUMA_VIEW_INIT;
    onuma_result r = onuma__get_device(d, __func__, &device);
    if (r == ONUMA_OK) r = onuma__struct_check(&view_type, out, __func__);
    if (r == ONUMA_OK) r = onuma__check_block_fork(ptr, __func__);
    if (r != ONUMA_OK) return r;
    if ((out->flags & ~ONUMA_VIEW_RETAIN) != 0)
        return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "%s: flags %#" PRIx32 " are not 0 or ONUMA_VIEW_RETAIN",
                           __func__, out->flags);
    /* What tells a retained view at its release is kept in the struct's end. */
    if (out->flags != 0 && out->struct_size < sizeof view)
        return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT,
                           "%s: struct_size %zu has no room for a retained view, which takes %zu", __func__,
                           out->struct_size, sizeof view);
    view.flags = out->flags;
    r = onuma__view_get(ptr, device, api, &view);
    if (r == ONUMA_OK) onuma__struct_write(&view_type, &view, out);
    return r;
}

onuma_result onuma_view_release(onuma_view *v) {
    onuma_view view = ONUMA_VIEW_INIT;
    onuma_result r = onuma__struct_check(&view_type, v, __func__);
    if (r == ONUMA_OK) r = onuma__struct_read(&view_type, v, &view, __func__);
    if (r == ONUMA_OK) r = onuma__view_release(&view);
    if (r == ONUMA_OK) onuma__struct_write(&view_type, &view, v);
    return r;
}
