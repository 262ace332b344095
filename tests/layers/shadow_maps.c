/* SPDX-License-Identifier: Apache-2.0 */
#include "shadow.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct entry {
    shadow_map map;
    struct entry *next;
} entry;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list */
static entry *first;

bool shadow_map_add(const shadow_map *map) {
    entry *fresh = malloc(sizeof *fresh);
    if (!fresh) return false;
    fresh->map = *map;
    pthread_mutex_lock(&lock);
    fresh->next = first;
    first = fresh;
    pthread_mutex_unlock(&lock);
    return true;
}

bool shadow_map_take(cl_mem buffer, const void *pointer, shadow_map *out) {
    pthread_mutex_lock(&lock);
    entry **at = &first;
    while (*at && ((*at)->map.buffer != buffer || (*at)->map.pointer != pointer))
        at = &(*at)->next;
    entry *gone = *at;
    if (gone) *at = gone->next;
    pthread_mutex_unlock(&lock);
    if (gone) *out = gone->map;
    const bool found = gone != NULL;
    free(gone);
    return found;
}

cl_uint shadow_map_count(cl_mem buffer) {
    cl_uint count = 0;
    pthread_mutex_lock(&lock);
    for (const entry *at = first; at; at = at->next)
        count += at->map.buffer == buffer;
    pthread_mutex_unlock(&lock);
    return count;
}
