/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks. The call site for leak reports is taken here, where the program's own frame is the caller's. */
#include "api/check.h"

#include "base/checked.h"

typedef onuma_result allocate(onuma__pool *pool, size_t size, size_t align, onuma__queue *queue, void *caller,
                              void **out);

/* Shared by the two functions that allocate. Inlined, so that `with` is a plain call. */
static inline onuma_result check_and_allocate(onuma_pool *p, size_t size, size_t align, onuma_queue *q,
                                              const char *function, allocate *with, void *caller, void **out) {
    onuma__pool *pool;
    onuma__queue *queue;
    ONUMA__CHECK_OUT(out, function);
    onuma_result r = onuma__get_pool(p, function, &pool);
    if (r == ONUMA_OK) r = onuma__get_optional_queue(q, function, &queue);
    if (ONUMA__UNLIKELY(r != ONUMA_OK)) return r;
    if (ONUMA__UNLIKELY(align != 0 && !onuma__is_power_of_two(align)))
        return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "%s: align %zu is not a power of two", function, align);
    return with(pool, size, align, queue, caller, out);
}

onuma_result onuma_alloc(onuma_pool *p, size_t size, size_t align, onuma_queue *q, void **out) {
    return check_and_allocate(p, size, align, q, __func__, onuma__pool_alloc, __builtin_return_address(0), out);
}

onuma_result onuma_alloc_zeroed(onuma_pool *p, size_t size, size_t align, onuma_queue *q, void **out) {
    return check_and_allocate(p, size, align, q, __func__, onuma__pool_alloc_zeroed, __builtin_return_address(0), out);
}

onuma_result onuma_free(void *ptr, onuma_queue *q) {
    onuma__queue *queue;
    onuma_result r = onuma__get_optional_queue(q, __func__, &queue);
    if (ONUMA__UNLIKELY(r != ONUMA_OK) || ptr == NULL) return r;
    r = onuma__check_block_fork(ptr, __func__);
    return ONUMA__UNLIKELY(r != ONUMA_OK) ? r : onuma__pool_free(ptr, queue);
}

onuma_result onuma_realloc(void *ptr, size_t size, onuma_queue *q, void **out) {
    onuma__queue *queue;
    ONUMA__CHECK_OUT(out, __func__);
    if (ptr == NULL)
        return onuma__fail(ONUMA_ERROR_INVALID_POINTER, "%s: ptr is NULL, which names no pool; use onuma_alloc",
                           __func__);
    onuma_result r = onuma__get_optional_queue(q, __func__, &queue);
    if (r == ONUMA_OK) r = onuma__check_block_fork(ptr, __func__);
    return r != ONUMA_OK ? r : onuma__pool_realloc(ptr, size, queue, __builtin_return_address(0), out);
}

onuma_result onuma_import(onuma_device *d, void *host, size_t size, const onuma_import_desc *desc, void **out) {
    onuma__device *device;
    onuma_import_desc full = ONUMA_IMPORT_DESC_INIT;
    ONUMA__CHECK_OUT(out, __func__);
    onuma_result r = onuma__get_device(d, __func__, &device);
    if (r == ONUMA_OK) r = onuma__struct_read(ONUMA__STRUCT(onuma_import_desc, read_only), desc, &full, __func__);
    return r != ONUMA_OK ? r : onuma__import(device, host, size, &full, out);
}

onuma_result onuma_block_get_info(const void *ptr, onuma_block_info *out) {
    const onuma__struct *type = ONUMA__STRUCT(onuma_block_info, base);
    onuma__block block;
    onuma_result r = onuma__struct_check(type, out, __func__);
    if (r == ONUMA_OK) r = onuma__engine_find(ptr, &block);
    if (r != ONUMA_OK) return r;
    const onuma__owner *owner = block.owner;
    const onuma_block_info info = {
        .base = block.base,
        .size = block.size,
        .requested = block.requested,
        .pool = owner->handle,
        .kind = owner->kind,
    };
    onuma__struct_write(type, &info, out);
    return ONUMA_OK;
}
