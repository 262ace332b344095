/* SPDX-License-Identifier: Apache-2.0 */
#include "api/runtime.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* How long the end of a runtime waits for its queues, in all. What runs longer keeps its memory. */
#define LAST_WAIT UINT64_C(1000000000)

/* ---------------------------------------------------------------- creating */

/* The environment first, then what the program says; a log callback that was given no level hears warnings. */
static onuma_result configure(onuma__runtime *runtime, const onuma_runtime_desc *desc) {
    onuma__config *config = &runtime->config;
    onuma__config_init(config);
    onuma_result r = ONUMA_OK;
    if (desc->log != NULL) r = onuma__config_parse(config, "log:warn", "the library");
    if (r == ONUMA_OK) r = onuma__config_parse(config, onuma__os_getenv("OPENNUMA_CONF"), "OPENNUMA_CONF");
    if (r == ONUMA_OK) r = onuma__config_parse(config, desc->config, "onuma_runtime_desc.config");
    runtime->log = (onuma__log){(onuma_log_level)config->log, desc->log, desc->log_user};
    return r;
}

static void remove_handles(onuma__runtime *runtime, onuma__handle_type type) {
    size_t cursor = 0;
    while (onuma__handle_take_next(type, runtime, &cursor) != NULL)
        continue;
}

static onuma_result make_handles(onuma__runtime *runtime, onuma_runtime **out) {
    for (size_t i = 0; i < runtime->registry.device_count; i++) {
        onuma__device *device = runtime->registry.devices[i];
        void *handle = onuma__handle_put(ONUMA__HANDLE_DEVICE, device, runtime);
        if (handle == NULL) return ONUMA_ERROR_OUT_OF_MEMORY;
        device->handle = handle;
    }
    onuma_runtime *handle = onuma__handle_put(ONUMA__HANDLE_RUNTIME, runtime, NULL);
    if (handle == NULL) return ONUMA_ERROR_OUT_OF_MEMORY;
    *out = handle;
    return ONUMA_OK;
}

static void watch_forks(void) {
    onuma__os_at_fork(1, onuma__sync_fork_before, onuma__sync_fork_parent, onuma__sync_fork_child);
}

onuma_result onuma_runtime_create(const onuma_runtime_desc *desc, onuma_runtime **out) {
    static onuma__os_once once;
    onuma_runtime_desc full = ONUMA_RUNTIME_DESC_INIT;
    ONUMA__CHECK_OUT(out, __func__);
    onuma__os_once_run(&once, watch_forks);
    onuma_result r = onuma__struct_read(ONUMA__STRUCT(onuma_runtime_desc, config), desc, &full, __func__);
    if (r != ONUMA_OK) return r;
    onuma__runtime *runtime = calloc(1, sizeof *runtime);
    if (runtime == NULL) return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "%s: no memory", __func__);
    r = configure(runtime, &full);
    if (r != ONUMA_OK) goto free_runtime;
    runtime->generation = onuma__os_process_generation();
    uint64_t none = 0;
    /* relaxed: whoever holds a block got it after this. */
    (void)atomic_compare_exchange_strong_explicit(&onuma__home_generation, &none, runtime->generation,
                                                  memory_order_relaxed, memory_order_relaxed);
    r = onuma__registry_open(&runtime->config, &runtime->log, &runtime->registry);
    if (r != ONUMA_OK) goto free_runtime;
    atomic_init(&runtime->budget.limit, (size_t)runtime->config.limit_hard);
    atomic_init(&runtime->budget.soft_limit, (size_t)runtime->config.limit_soft);
    onuma__registry_set_budget(&runtime->registry, &runtime->budget);
    r = make_handles(runtime, out);
    if (r == ONUMA_OK) return ONUMA_OK;

    remove_handles(runtime, ONUMA__HANDLE_DEVICE);
    onuma__registry_close(&runtime->registry);
free_runtime:
    free(runtime);
    return r;
}

/* -------------------------------------------------------------- destroying */

/* Runtimes with memory that may still be used. Only reached, never read: a leak checker is to find them. */
static _Atomic(onuma__runtime *) kept_runtimes;

static void keep(onuma__runtime *runtime) {
    /* The program may unload what its callback belongs to. */
    runtime->log = (onuma__log){ONUMA_LOG_NONE, NULL, NULL};
    runtime->next_kept = atomic_load_explicit(&kept_runtimes, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&kept_runtimes, &runtime->next_kept, runtime, memory_order_release,
                                                  memory_order_relaxed))
        continue;
}

static uint64_t time_left(uint64_t deadline) {
    uint64_t now = onuma__os_now();
    return now < deadline ? deadline - now : 0;
}

/* A driver's device in a forked child: no call may reach it. */
static bool is_forked(const onuma__device *device) {
    return device->generation != onuma__os_process_generation() && device->ops->api != ONUMA_API_HOST;
}

/* false: some pool had to be kept. */
static bool destroy_pools(onuma__runtime *runtime, uint64_t deadline) {
    bool all_gone = true;
    size_t cursor = 0;
    for (onuma__pool *pool; (pool = onuma__handle_take_next(ONUMA__HANDLE_POOL, runtime, &cursor)) != NULL;) {
        if (is_forked(pool->owner.device)) {
            onuma__pool_keep(pool);
            all_gone = false;
        } else if (!onuma__pool_retire(pool, time_left(deadline))) {
            all_gone = false;
        }
    }
    return all_gone;
}

/* false: the device must stay. */
static bool leave_device(onuma__device *device, uint64_t deadline) {
    if (is_forked(device)) return atomic_load_explicit(&device->backend, memory_order_acquire) == NULL;
    onuma__queues_drop_device(device, time_left(deadline)); /* finishes the frees of imports that can be finished */
    return onuma__imports_keep(device) == 0 && !onuma__device_is_kept(device);
}

static bool leave_devices(onuma__runtime *runtime, uint64_t deadline) {
    bool all_left = true;
    for (size_t i = 0; i < runtime->registry.device_count; i++)
        all_left &= leave_device(runtime->registry.devices[i], deadline);
    for (onuma__device *device = runtime->registry.adopted; device != NULL; device = device->next)
        all_left &= leave_device(device, deadline);
    return all_left;
}

void onuma_runtime_destroy(onuma_runtime *rt) {
    if (rt == NULL) return;
    bool last;
    onuma__runtime *runtime = onuma__handle_drop(ONUMA__HANDLE_RUNTIME, rt, &last);
    if (runtime == NULL) {
        (void)onuma__handle_refuse(ONUMA__HANDLE_RUNTIME, rt, __func__, "rt");
        return;
    }
    onuma__handle_remove(rt);
    uint64_t deadline = onuma__os_now() + LAST_WAIT;
    bool pools_gone = destroy_pools(runtime, deadline);
    remove_handles(runtime, ONUMA__HANDLE_QUEUE);
    bool devices_left = leave_devices(runtime, deadline);
    remove_handles(runtime, ONUMA__HANDLE_DEVICE);
    if (!pools_gone || !devices_left) {
        keep(runtime);
        return;
    }
    onuma__registry_close(&runtime->registry);
    free(runtime);
}

/* ------------------------------------------------------------------ limits */

onuma_result onuma_runtime_set_limits(onuma_runtime *rt, size_t hard_bytes, size_t soft_bytes) {
    onuma__runtime *runtime = onuma__get_runtime(rt);
    if (runtime == NULL) return onuma__handle_refuse(ONUMA__HANDLE_RUNTIME, rt, __func__, "rt");
    atomic_store_explicit(&runtime->budget.limit, hard_bytes, memory_order_relaxed);
    atomic_store_explicit(&runtime->budget.soft_limit, soft_bytes, memory_order_relaxed);
    return ONUMA_OK;
}

onuma_result onuma_runtime_set_pressure_handler(onuma_runtime *rt, onuma_pressure_handler *fn, void *user) {
    onuma__runtime *runtime = onuma__get_runtime(rt);
    if (runtime == NULL) return onuma__handle_refuse(ONUMA__HANDLE_RUNTIME, rt, __func__, "rt");
    onuma__budget_set_handler(&runtime->budget, rt, fn, user);
    return ONUMA_OK;
}

/* ---------------------------------------------------------------- backends */

size_t onuma_backend_count(const onuma_runtime *rt) {
    const onuma__runtime *runtime = onuma__get_runtime(rt);
    return runtime != NULL ? runtime->registry.backend_count : 0;
}

onuma_result onuma_backend_get_info(const onuma_runtime *rt, size_t i, onuma_backend_info *out) {
    const onuma__struct *type = ONUMA__STRUCT(onuma_backend_info, name);
    const onuma__runtime *runtime = onuma__get_runtime(rt);
    if (runtime == NULL) return onuma__handle_refuse(ONUMA__HANDLE_RUNTIME, rt, __func__, "rt");
    onuma_result r = onuma__struct_check(type, out, __func__);
    if (r != ONUMA_OK) return r;
    if (i >= runtime->registry.backend_count)
        return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "%s: i is %zu, and there are %zu backends", __func__, i,
                           runtime->registry.backend_count);
    const onuma__backend_state *state = &runtime->registry.backends[i];
    onuma_backend_info info = ONUMA_BACKEND_INFO_INIT;
    (void)snprintf(info.name, sizeof info.name, "%s", state->ops->name);
    info.status = state->status;
    (void)snprintf(info.detail, sizeof info.detail, "%s", state->detail);
    onuma__struct_write(type, &info, out);
    return ONUMA_OK;
}
