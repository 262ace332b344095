/* SPDX-License-Identifier: Apache-2.0 */
#include "memory.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct entry {
    memory what;
    struct entry *next;
} entry;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list */
static entry *first;

static bool add(const memory *one) {
    entry *fresh = malloc(sizeof *fresh);
    if (!fresh) return false;
    fresh->what = *one;
    pthread_mutex_lock(&lock);
    fresh->next = first;
    first = fresh;
    pthread_mutex_unlock(&lock);
    return true;
}

static bool is_buffer(const memory *one, const void *buffer) {
    return one->buffer && one->buffer == buffer;
}

static bool has_pointer(const memory *one, const void *pointer) {
    return !one->buffer && (uintptr_t)pointer - (uintptr_t)one->host < one->size;
}

static bool begins_at(const memory *one, const void *base) {
    return !one->buffer && one->host == base;
}

static bool look_up(bool (*fits)(const memory *, const void *), const void *key, bool take, memory *out) {
    entry *gone = NULL;
    pthread_mutex_lock(&lock);
    entry **at = &first;
    while (*at && !fits(&(*at)->what, key))
        at = &(*at)->next;
    const bool found = *at != NULL;
    if (found) *out = (*at)->what;
    if (found && take) {
        gone = *at;
        *at = gone->next;
    }
    pthread_mutex_unlock(&lock);
    free(gone);
    return found;
}

static void CL_CALLBACK destroyed(cl_mem buffer, void *user) {
    memory gone;
    (void)user;
    (void)look_up(is_buffer, buffer, true, &gone);
}

bool memory_add_buffer(const memory *one) {
    /* Callbacks run in reverse order: ours, the first to be set, after the program's. */
    if (layer_next.clSetMemObjectDestructorCallback(one->buffer, destroyed, NULL) != CL_SUCCESS) return false;
    return add(one);
}

bool memory_add_pointer(const memory *one) {
    return add(one);
}

bool memory_of_buffer(cl_mem buffer, memory *out) {
    return look_up(is_buffer, buffer, false, out);
}

bool memory_of_pointer(const void *pointer, memory *out) {
    return look_up(has_pointer, pointer, false, out);
}

bool memory_take_pointer(const void *base, memory *out) {
    return look_up(begins_at, base, true, out);
}

size_t memory_total(void) {
    size_t total = 0;
    pthread_mutex_lock(&lock);
    for (const entry *at = first; at; at = at->next)
        if (at->what.buffer == at->what.root) total += at->what.size;
    pthread_mutex_unlock(&lock);
    return total;
}
