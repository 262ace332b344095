/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks. The call site for leak reports is taken here, where the program's own frame is the caller's. */
#include "api/check.h"

#include "base/checked.h"
#include "pool/quick.h"

#define LEAST_ALIGNMENT 16 /* that every pool has */

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
    if (r == ONUMA_OK && queue != NULL) r = onuma__sync_check_queue(queue, &pool->owner);
    if (ONUMA__UNLIKELY(r != ONUMA_OK)) return r;
    if (ONUMA__UNLIKELY(align != 0 && !onuma__is_power_of_two(align)))
        return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "%s: align %zu is not a power of two", function, align);
    return with(pool, size, align, queue, caller, out);
}

/*
 * Most allocations are small and from the pool and the queue of the thread's last one. The engine knows that pool by its
 * handle; it forgets it before the handle dies, and in a forked child. So there is no more to check than the queue.
 */
static inline bool may_be_quick(const onuma_pool *p, size_t align, void *const *out) {
    if (ONUMA__UNLIKELY(p == NULL || out == NULL)) return false;
    return ONUMA__LIKELY(align == 0) || (align <= LEAST_ALIGNMENT && (align & (align - 1)) == 0);
}

ONUMA__COLD static onuma_result alloc_slowly(onuma_pool *p, size_t size, size_t align, onuma_queue *q, void **out,
                                             void *caller) {
    if (may_be_quick(p, align, out)) {
        const onuma__queue *queue = q != NULL ? onuma__handle_get(ONUMA__HANDLE_QUEUE, q) : NULL;
        if ((q == NULL || queue != NULL) && onuma__engine_alloc_again(p, size, queue != NULL ? queue->tag : 0, out))
            return ONUMA_OK;
    }
    return check_and_allocate(p, size, align, q, "onuma_alloc", onuma__pool_alloc, caller, out);
}

ONUMA__APART static onuma_result alloc_on_queue(onuma_pool *p, size_t size, size_t align, onuma_queue *q, void **out,
                                                void *caller) {
    const onuma__queue *queue = onuma__handle_get(ONUMA__HANDLE_QUEUE, q);
    if (queue != NULL && may_be_quick(p, align, out) &&
        (onuma__quick_alloc(p, size, queue->tag, out) || onuma__quick_alloc_large(p, size, queue->tag, out)))
        return ONUMA_OK;
    return alloc_slowly(p, size, align, q, out, caller);
}

ONUMA__APART static onuma_result alloc_large(onuma_pool *p, size_t size, size_t align, void **out, void *caller) {
    if (ONUMA__LIKELY(may_be_quick(p, align, out) && onuma__quick_alloc_large(p, size, 0, out))) return ONUMA_OK;
    return alloc_slowly(p, size, align, NULL, out, caller);
}

onuma_result onuma_alloc(onuma_pool *p, size_t size, size_t align, onuma_queue *q, void **out) {
    if (ONUMA__UNLIKELY(q != NULL)) return alloc_on_queue(p, size, align, q, out, __builtin_return_address(0));
    if (size - 1 >= ONUMA__SMALL_MAX) return alloc_large(p, size, align, out, __builtin_return_address(0));
    if (ONUMA__LIKELY(may_be_quick(p, align, out) && onuma__quick_alloc(p, size, 0, out))) return ONUMA_OK;
    return alloc_slowly(p, size, align, NULL, out, __builtin_return_address(0));
}

onuma_result onuma_alloc_zeroed(onuma_pool *p, size_t size, size_t align, onuma_queue *q, void **out) {
    return check_and_allocate(p, size, align, q, __func__, onuma__pool_alloc_zeroed, __builtin_return_address(0), out);
}

ONUMA__COLD static onuma_result free_slowly(void *ptr, onuma_queue *q) {
    onuma__queue *queue;
    onuma_result r = onuma__get_optional_queue(q, "onuma_free", &queue);
    if (ONUMA__UNLIKELY(r != ONUMA_OK) || ptr == NULL) return r;
    if (ONUMA__LIKELY(onuma__engine_free_own(ptr, queue != NULL ? queue->tag : 0))) return ONUMA_OK;
    r = onuma__check_block_fork(ptr, "onuma_free");
    return ONUMA__UNLIKELY(r != ONUMA_OK) ? r : onuma__pool_free(ptr, queue);
}

ONUMA__APART static onuma_result free_on_queue(void *ptr, onuma_queue *q) {
    const onuma__queue *queue = onuma__handle_get(ONUMA__HANDLE_QUEUE, q);
    if (queue != NULL && onuma__quick_free(ptr, queue->tag)) return ONUMA_OK;
    return free_slowly(ptr, q);
}

/* The same for frees: of a block of the heap that such allocations come from. */
onuma_result onuma_free(void *ptr, onuma_queue *q) {
    if (ONUMA__UNLIKELY(q != NULL)) return free_on_queue(ptr, q);
    return ONUMA__LIKELY(onuma__quick_free(ptr, 0)) ? ONUMA_OK : free_slowly(ptr, NULL);
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
