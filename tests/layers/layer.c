/* SPDX-License-Identifier: Apache-2.0 */
/* The loader's side of a layer, and its settings. */
#include "layer.h"

#include <CL/cl_layer.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cl_icd_dispatch layer_next;

LAYER_EXPORT cl_int CL_API_CALL clInitLayerWithProperties(cl_uint count, const cl_icd_dispatch *target,
                                                          cl_uint *count_ret, const cl_icd_dispatch **mine_ret,
                                                          const intptr_t *properties);

/* ---------------------------------------------------------------- settings */

static struct {
    pthread_mutex_t lock; /* guards the text */
    pthread_once_t once;
    char text[512];
} settings = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static void read_environment(void) {
    const char *text = getenv(LAYER_VARIABLE);
    if (text) (void)snprintf(settings.text, sizeof settings.text, "%s", text);
}

void layer_configure(const char *text) {
    pthread_once(&settings.once, read_environment);
    pthread_mutex_lock(&settings.lock);
    (void)snprintf(settings.text, sizeof settings.text, "%s", text);
    pthread_mutex_unlock(&settings.lock);
}

/* The value of "key:value", or false. */
static bool find(const char *key, char *value, size_t room) {
    const size_t length = strlen(key);
    bool found = false;
    pthread_once(&settings.once, read_environment);
    pthread_mutex_lock(&settings.lock);
    for (const char *at = settings.text; *at && !found; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',')) {
        if (strncmp(at, key, length) != 0 || at[length] != ':') continue;
        (void)snprintf(value, room, "%.*s", (int)strcspn(at + length + 1, ","), at + length + 1);
        found = true;
    }
    pthread_mutex_unlock(&settings.lock);
    return found;
}

size_t layer_number(const char *key, size_t otherwise) {
    char value[64];
    return find(key, value, sizeof value) ? (size_t)strtoull(value, NULL, 0) : otherwise;
}

bool layer_says(const char *key, const char *expected) {
    char value[64];
    return find(key, value, sizeof value) && strcmp(value, expected) == 0;
}

bool layer_concerns(size_t size, const void *host) {
    const size_t granule = layer_number("misaligned", 0);
    return size >= layer_number("from", 0) && size < layer_number("below", SIZE_MAX) &&
           (granule == 0 || (uintptr_t)host % granule != 0);
}

/* -------------------------------------------------------------- the loader */

LAYER_EXPORT cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t size, void *value, size_t *size_ret) {
    const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    const void *from = what == CL_LAYER_API_VERSION ? (const void *)&version : LAYER_NAME;
    const size_t needed = what == CL_LAYER_API_VERSION ? sizeof version : sizeof LAYER_NAME;
    if (what != CL_LAYER_API_VERSION && what != CL_LAYER_NAME) return CL_INVALID_VALUE;
    if (value && size < needed) return CL_INVALID_VALUE;
    if (value) memcpy(value, from, needed);
    if (size_ret) *size_ret = needed;
    return CL_SUCCESS;
}

LAYER_EXPORT cl_int CL_API_CALL clInitLayer(cl_uint count, const cl_icd_dispatch *target, cl_uint *count_ret,
                                            const cl_icd_dispatch **mine_ret) {
    static cl_icd_dispatch mine;
    const cl_uint own = sizeof mine / sizeof(void *);
    const cl_uint common = count < own ? count : own; /* a loader may be older or newer than our headers */
    if (!target || !count_ret || !mine_ret) return CL_INVALID_VALUE;
    memcpy(&layer_next, target, common * sizeof(void *));
    memcpy(&mine, &layer_next, sizeof mine);
    layer_install(&mine);
    *count_ret = common;
    *mine_ret = &mine;
    return CL_SUCCESS;
}

/* What newer loaders look for first. */
cl_int CL_API_CALL clInitLayerWithProperties(cl_uint count, const cl_icd_dispatch *target, cl_uint *count_ret,
                                             const cl_icd_dispatch **mine_ret, const intptr_t *properties) {
    (void)properties;
    return clInitLayer(count, target, count_ret, mine_ret);
}
