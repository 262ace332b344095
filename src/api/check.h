/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What public functions ask of their arguments before they call inward: each
 * check names the function and the parameter in its text. Inline where a check
 * is on the path of every allocation.
 */
#ifndef ONUMA_API_CHECK_H
#define ONUMA_API_CHECK_H

#include "api/handle.h"
#include "api/structs.h"
#include "policy/policy.h"

/* FORKED, as a text that names the function. */
onuma_result onuma__refuse_forked(const char *function, const char *device) ONUMA__COLD;

/*
 * Drivers do not survive fork(): their devices, and what hangs on them, are
 * refused in the child. The host device has no driver and goes on working.
 */
static inline onuma_result onuma__check_fork(const onuma__device *device, const char *function) {
    if (ONUMA__LIKELY(device->generation == onuma__os_process_generation())) return ONUMA_OK;
    return device->ops->api == ONUMA_API_HOST ? ONUMA_OK : onuma__refuse_forked(function, device->id);
}

/* The process generation of the first runtime; 0 before. Relaxed: constant once set. */
extern _Atomic uint64_t onuma__home_generation;

onuma_result onuma__check_block_fork_slowly(const void *ptr, const char *function) ONUMA__COLD;

/* The same for what is known by a block's address. Costs a look-up only in processes where a fork has been. */
static inline onuma_result onuma__check_block_fork(const void *ptr, const char *function) {
    if (ONUMA__LIKELY(atomic_load_explicit(&onuma__home_generation, memory_order_relaxed) ==
                      onuma__os_process_generation()))
        return ONUMA_OK;
    return onuma__check_block_fork_slowly(ptr, function);
}

static inline onuma_result onuma__get_device(const onuma_device *d, const char *function, onuma__device **out) {
    *out = onuma__handle_get(ONUMA__HANDLE_DEVICE, d);
    if (ONUMA__UNLIKELY(*out == NULL)) return onuma__handle_refuse(ONUMA__HANDLE_DEVICE, d, function, "d");
    return onuma__check_fork(*out, function);
}

static inline onuma_result onuma__get_pool(const onuma_pool *p, const char *function, onuma__pool **out) {
    *out = onuma__handle_get(ONUMA__HANDLE_POOL, p);
    if (ONUMA__UNLIKELY(*out == NULL)) return onuma__handle_refuse(ONUMA__HANDLE_POOL, p, function, "p");
    return onuma__check_fork((*out)->owner.device, function);
}

static inline onuma_result onuma__get_queue(const onuma_queue *q, const char *function, const char *parameter,
                                            onuma__queue **out) {
    *out = onuma__handle_get(ONUMA__HANDLE_QUEUE, q);
    if (ONUMA__UNLIKELY(*out == NULL)) return onuma__handle_refuse(ONUMA__HANDLE_QUEUE, q, function, parameter);
    return onuma__check_fork((*out)->device, function);
}

/* Where NULL means no queue. */
static inline onuma_result onuma__get_optional_queue(const onuma_queue *q, const char *function, onuma__queue **out) {
    *out = NULL;
    return q == NULL ? ONUMA_OK : onuma__get_queue(q, function, "q", out);
}

/* A parameter that may not be NULL, other than a handle or a struct. */
onuma_result onuma__refuse_null(const char *function, const char *parameter) ONUMA__COLD;
static inline onuma_result onuma__check_not_null(const void *value, const char *function, const char *parameter) {
    return ONUMA__LIKELY(value != NULL) ? ONUMA_OK : onuma__refuse_null(function, parameter);
}

/* Where a new object goes: not NULL, and NULL in it until it is there. */
#define ONUMA__CHECK_OUT(out, function)                                                                                \
    do {                                                                                                               \
        if (ONUMA__UNLIKELY((out) == NULL)) return onuma__refuse_null(function, "out");                                \
        *(out) = NULL;                                                                                                 \
    } while (0)

onuma_result onuma__check_access(onuma_access mode, const char *function);

#endif
