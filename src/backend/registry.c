/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds every driver and device of this machine for one runtime.
 *
 * A driver that is absent is normal and quiet; one that is there and does not
 * work is told about, and everything else goes on without it. Only a lack of
 * memory makes opening fail as a whole.
 */
#include "backend/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The lower, the sooner a device is taken when nobody chose. */
static unsigned rank(const onuma_backend_device_info *info) {
    if (info->type == ONUMA_DEVICE_HOST) return 4;
    if (info->simulator) return 3;
    return info->type == ONUMA_DEVICE_INTEGRATED ? 0 : info->type == ONUMA_DEVICE_DISCRETE ? 1 : 2;
}

/* Keeps the drivers' order among equals. */
static void insert(onuma__registry *registry, onuma__device *device) {
    size_t at = registry->device_count++;
    for (; at > 0 && rank(&registry->devices[at - 1]->info) > rank(&device->info); at--)
        registry->devices[at] = registry->devices[at - 1];
    registry->devices[at] = device;
}

static onuma__device *new_device(const onuma__registry *registry, const onuma__backend_state *state) {
    onuma__device *device = calloc(1, sizeof *device);
    if (device == NULL) {
        (void)onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for a device of backend %s", state->ops->name);
        return NULL;
    }
    device->ops = state->ops;
    device->instance = state->instance;
    device->log = registry->log;
    device->config = registry->config;
    device->budget = registry->budget;
    device->info.struct_size = sizeof device->info;
    device->generation = onuma__os_process_generation();
    return device;
}

/* No machine has as many: who says so does not work, or is not asked truly. */
#define MOST_DEVICES 4096u

static void give_up(const onuma__registry *registry, onuma__backend_state *state) {
    state->ops->close(state->instance);
    state->instance = NULL;
    state->status = ONUMA_BACKEND_ERROR;
    onuma__log_write(registry->log, ONUMA_LOG_WARN, "backend %s: %s", state->ops->name, state->detail);
}

static onuma_result add_devices(onuma__registry *registry, onuma__backend_state *state) {
    const size_t count = state->ops->device_count(state->instance);
    if (count == 0) return ONUMA_OK;
    if (count > MOST_DEVICES) {
        snprintf(state->detail, sizeof state->detail, "the driver says that it has %zu devices, which cannot be",
                 count);
        give_up(registry, state);
        return ONUMA_OK;
    }
    onuma__device **grown = realloc(registry->devices, (registry->device_count + count) * sizeof registry->devices[0]);
    if (grown == NULL)
        return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for %zu devices of backend %s", count,
                           state->ops->name);
    registry->devices = grown;
    for (size_t i = 0; i < count; i++) {
        onuma__device *device = new_device(registry, state);
        if (device == NULL) return ONUMA_ERROR_OUT_OF_MEMORY;
        device->index = i;
        onuma_result r = state->ops->device_query(state->instance, i, &device->info);
        if (r == ONUMA_OK) r = onuma__backend_check(state->ops, &device->info);
        if (r != ONUMA_OK) {
            onuma__log_write(registry->log, ONUMA_LOG_WARN, "device %s:%zu is left out: %s", state->ops->name, i,
                             onuma_last_error());
            free(device);
            continue;
        }
        if (state->ops->api == ONUMA_API_HOST) /* there is but one */
            snprintf(device->id, sizeof device->id, "%s", state->ops->name);
        else
            snprintf(device->id, sizeof device->id, "%.10s:%zu", state->ops->name, i);
        insert(registry, device);
    }
    return ONUMA_OK;
}

static void open_backend(onuma__registry *registry, const onuma_backend *from, onuma_backend *ops,
                         onuma__backend_state *state) {
    state->ops = ops;
    onuma_result r = onuma__backend_complete(from, ops);
    if (r != ONUMA_OK) {
        *ops = (onuma_backend){.struct_size = sizeof *ops, .api = from->api, .name = from->name};
    } else if (registry->config->backends == ONUMA__BACKENDS_HOST && ops->api != ONUMA_API_HOST) {
        state->status = ONUMA_BACKEND_ABSENT;
        snprintf(state->detail, sizeof state->detail, "left out by the configuration (backends:host)");
        return;
    } else {
        onuma__backend_context_host(registry->context, &state->host);
        r = ops->open(&state->host, &state->instance);
    }
    if (r == ONUMA_OK) {
        state->status = ONUMA_BACKEND_OK;
        ops->describe(state->instance, state->detail, sizeof state->detail);
        state->detail[sizeof state->detail - 1] = '\0';
        return;
    }
    state->instance = NULL;
    state->status = r == ONUMA_ERROR_NOT_FOUND ? ONUMA_BACKEND_ABSENT : ONUMA_BACKEND_ERROR;
    snprintf(state->detail, sizeof state->detail, "%s", onuma_last_error());
    onuma__log_write(registry->log, state->status == ONUMA_BACKEND_ABSENT ? ONUMA_LOG_DEBUG : ONUMA_LOG_WARN,
                     "backend %s: %s", from->name, state->detail);
}

onuma_result onuma__registry_open(const onuma__config *config, const onuma__log *log, onuma__registry *out) {
    onuma__backend_context *context;
    onuma_result r = onuma__backend_context_create(config, log, &context);
    if (r != ONUMA_OK) return r;
    onuma__registry registry = {.log = log, .config = config, .context = context};
    registry.backends = calloc(onuma__backend_total, sizeof registry.backends[0]);
    registry.tables = calloc(onuma__backend_total, sizeof registry.tables[0]);
    if (registry.backends == NULL || registry.tables == NULL) {
        r = onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for the table of backends");
        goto failed;
    }
    for (size_t i = 0; i < onuma__backend_total; i++) {
        onuma__backend_state *state = &registry.backends[registry.backend_count++];
        open_backend(&registry, onuma__backends[i], &registry.tables[i], state);
        if (state->status == ONUMA_BACKEND_OK && (r = add_devices(&registry, state)) != ONUMA_OK) goto failed;
    }
    *out = registry;
    return ONUMA_OK;
failed:
    onuma__registry_close(&registry);
    return r;
}

void onuma__registry_set_budget(onuma__registry *registry, struct onuma__budget *budget) {
    registry->budget = budget;
    for (size_t i = 0; i < registry->device_count; i++)
        registry->devices[i]->budget = budget;
}

static void destroy_device(onuma__device *device) {
    onuma_backend_device *opened = atomic_load_explicit(&device->backend, memory_order_acquire);
    if (opened != NULL) device->ops->device_close(opened);
    free(device);
}

void onuma__registry_close(onuma__registry *registry) {
    for (size_t i = 0; i < registry->device_count; i++)
        destroy_device(registry->devices[i]);
    for (onuma__device *device = registry->adopted, *next; device != NULL; device = next) {
        next = device->next;
        destroy_device(device);
    }
    for (size_t i = registry->backends == NULL ? 0 : registry->backend_count; i-- > 0;) {
        onuma__backend_state *state = &registry->backends[i];
        if (state->instance != NULL) state->ops->close(state->instance);
    }
    free(registry->devices);
    free(registry->backends);
    free(registry->tables);
    onuma__backend_context_destroy(registry->context);
    *registry = (onuma__registry){0};
}

/* ---------------------------------------------------------- adopted devices */

static const onuma__backend_state *backend_of(const onuma__registry *registry, onuma_api api) {
    for (size_t i = 0; i < registry->backend_count; i++) {
        const onuma__backend_state *state = &registry->backends[i];
        if (state->ops->api != api) continue;
        if (state->instance != NULL) return state;
        (void)onuma__fail(ONUMA_ERROR_NOT_FOUND, "backend %s is not available: %s", state->ops->name, state->detail);
        return NULL;
    }
    (void)onuma__fail(ONUMA_ERROR_NOT_FOUND, "this library was built without a backend for API number %u",
                      (unsigned)api);
    return NULL;
}

static bool is_same(const onuma__device *device, const onuma__backend_state *state,
                    const onuma_backend_device_info *info) {
    return device->ops == state->ops && device->info.native_context == info->native_context &&
           device->info.native_device == info->native_device;
}

/* Under adopt_lock. The object there is for the same driver, context and device: the runtime's own, if it is the
 * context that we made, else an adopted one with one more reference. */
static onuma__device *find_same(const onuma__registry *registry, const onuma__backend_state *state,
                                const onuma_backend_device_info *info) {
    for (size_t i = 0; i < registry->device_count; i++)
        /* Acquire: info is constant once this is set. */
        if (atomic_load_explicit(&registry->devices[i]->backend, memory_order_acquire) != NULL &&
            is_same(registry->devices[i], state, info))
            return registry->devices[i];
    for (onuma__device *device = registry->adopted; device != NULL; device = device->next)
        if (is_same(device, state, info)) {
            device->references++;
            return device;
        }
    return NULL;
}

/* `opened` becomes a device, or is closed if there is one for the same already, or none can be made. */
static onuma_result enter(onuma__registry *registry, const onuma__backend_state *state, onuma_backend_device *opened,
                          onuma__device **out) {
    onuma_result r = ONUMA_ERROR_OUT_OF_MEMORY;
    onuma__device *fresh = new_device(registry, state), *found = NULL;
    if (fresh == NULL) goto failed;
    r = state->ops->device_info(opened, &fresh->info);
    if (r == ONUMA_OK) r = onuma__backend_check(state->ops, &fresh->info);
    if (r != ONUMA_OK) goto failed;
    fresh->adopted = true;
    fresh->references = 1;
    atomic_init(&fresh->backend, opened);

    onuma__os_lock_acquire(&registry->adopt_lock);
    found = find_same(registry, state, &fresh->info);
    if (found == NULL) {
        snprintf(fresh->id, sizeof fresh->id, "%.10s:adopted:%u", state->ops->name,
                 (unsigned)registry->adopted_count++);
        fresh->next = registry->adopted;
        registry->adopted = fresh;
    }
    onuma__os_lock_release(&registry->adopt_lock);
    *out = found != NULL ? found : fresh;
    if (found == NULL) return ONUMA_OK;
    r = ONUMA_OK;
failed:
    state->ops->device_close(opened);
    free(fresh);
    return r;
}

onuma_result onuma__registry_adopt(onuma__registry *registry, onuma_api api, const onuma_native_device *native,
                                   onuma__device **out) {
    const onuma__backend_state *state = backend_of(registry, api);
    if (state == NULL) return ONUMA_ERROR_NOT_FOUND;
    onuma_backend_device *opened = NULL;
    const onuma_result r = state->ops->device_adopt(state->instance, native, &opened);
    return r == ONUMA_OK ? enter(registry, state, opened, out) : r;
}

onuma_result onuma__registry_from_queue(onuma__registry *registry, onuma_api api, uint64_t native_queue,
                                        onuma__device **out) {
    const onuma__backend_state *state = backend_of(registry, api);
    if (state == NULL) return ONUMA_ERROR_NOT_FOUND;
    onuma_backend_device *opened = NULL;
    const onuma_result r = state->ops->device_from_queue(state->instance, native_queue, &opened);
    return r == ONUMA_OK ? enter(registry, state, opened, out) : r;
}

onuma_result onuma__registry_release(onuma__registry *registry, onuma__device *device, bool *last) {
    *last = false;
    if (!device->adopted) return ONUMA_OK;
    onuma__os_lock_acquire(&registry->adopt_lock);
    /* Acquire: pairs with the release of whoever counted down, whose last driver calls are then over. */
    const uint32_t users = atomic_load_explicit(&device->users, memory_order_acquire);
    const bool busy = device->references == 1 && users != 0;
    if (!busy && --device->references == 0) {
        onuma__device **link = &registry->adopted;
        while (*link != device)
            link = &(*link)->next;
        *link = device->next;
        *last = true;
    }
    onuma__os_lock_release(&registry->adopt_lock);
    if (busy)
        return onuma__fail(ONUMA_ERROR_BUSY,
                           "device %s: %u pools, queues and imports on it still live; destroy them first", device->id,
                           (unsigned)users);
    if (*last) destroy_device(device);
    return ONUMA_OK;
}
