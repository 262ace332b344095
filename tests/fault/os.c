/* SPDX-License-Identifier: Apache-2.0 */
/* The system and the allocator as the library sees them: each call counted, let fail if planned, else passed on. */
#include "fault.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANGES 4096u

typedef struct range {
    char *base; /* NULL: none */
    size_t size;
} range;

static struct {
    onuma__os_lock lock; /* guards the ranges */
    range ranges[RANGES];
    uint64_t count, bytes;
} books;

static _Atomic uint64_t blocks;     /* relaxed counter */
static _Atomic uint64_t skipped_ns; /* relaxed: by how much the clock is ahead; it may be behind */
static _Atomic uint64_t most_sleep = UINT64_MAX;
static _Thread_local unsigned locks_held;

/* ------------------------------------------------------------- the allocator */

void *fault_malloc(size_t size);
void *fault_calloc(size_t count, size_t size);
void *fault_realloc(void *old, size_t size);
void fault_free(void *block);

static bool refuses(void) {
    fault_plan how;
    return fault_due(FAULT_memory, &how);
}

static void *counted(void *block) {
    if (block != NULL) atomic_fetch_add_explicit(&blocks, 1, memory_order_relaxed);
    return block;
}

void *fault_malloc(size_t size) {
    return refuses() ? NULL : counted(malloc(size));
}

void *fault_calloc(size_t count, size_t size) {
    return refuses() ? NULL : counted(calloc(count, size));
}

void *fault_realloc(void *old, size_t size) {
    if (refuses()) return NULL;
    void *moved = realloc(old, size);
    return old == NULL ? counted(moved) : moved;
}

void fault_free(void *block) {
    if (block != NULL) atomic_fetch_sub_explicit(&blocks, 1, memory_order_relaxed);
    free(block);
}

/* ------------------------------------------------------------------ memory */

void *fault_os_map(size_t size, size_t align);
void *fault_os_map_kept(size_t size, size_t align);
void *fault_os_map_large(size_t size);
void *fault_os_reserve(size_t size, size_t align);
onuma_result fault_os_commit(void *p, size_t size);
onuma_result fault_os_decommit(void *p, size_t size);
onuma_result fault_os_protect(void *p, size_t size, onuma__os_protection protection);
void fault_os_release(void *p, size_t size);
void fault_os_release_kept(void *p, size_t size);

/* Under the lock: the range that holds [p, p+size), or NULL. */
static range *holder(const char *p, size_t size) {
    for (size_t i = 0; i < RANGES; i++) {
        range *r = &books.ranges[i];
        if (r->base != NULL && p >= r->base && (size_t)(p - r->base) < r->size &&
            size <= r->size - (size_t)(p - r->base))
            return r;
    }
    return NULL;
}

static void *enter(void *p, size_t size) {
    if (p == NULL) return NULL;
    onuma__os_lock_acquire(&books.lock);
    size_t i = 0;
    while (i < RANGES && books.ranges[i].base != NULL)
        i++;
    if (i < RANGES)
        books.ranges[i] = (range){p, size};
    else
        fault_violate("more than %u ranges live at once", RANGES);
    books.count++;
    books.bytes += size;
    onuma__os_lock_release(&books.lock);
    return p;
}

static void check_inside(const char *what, void *p, size_t size) {
    onuma__os_lock_acquire(&books.lock);
    if (holder(p, size) == NULL) fault_violate("%s %zu bytes at %p, which are not in one live range", what, size, p);
    onuma__os_lock_release(&books.lock);
}

static onuma_result fail(const fault_plan *how, const char *what, size_t size) {
    return onuma__fail(how->result != ONUMA_OK ? how->result : ONUMA_ERROR_OUT_OF_MEMORY,
                       "injected: the system refuses %s of %zu bytes", what, size);
}

void *fault_os_map(size_t size, size_t align) {
    fault_plan how;
    if (!fault_due(FAULT_os_map, &how)) return enter(onuma__os_map(size, align), size);
    (void)fail(&how, "a map", size);
    return NULL;
}

void *fault_os_map_kept(size_t size, size_t align) {
    fault_plan how;
    if (!fault_due(FAULT_os_map, &how)) return onuma__os_map(size, align);
    (void)fail(&how, "a map", size);
    return NULL;
}

void *fault_os_map_large(size_t size) {
    fault_plan how;
    if (!fault_due(FAULT_os_map_large, &how)) return enter(onuma__os_map_large(size), size);
    (void)fail(&how, "a map of large pages", size);
    return NULL;
}

void *fault_os_reserve(size_t size, size_t align) {
    fault_plan how;
    if (!fault_due(FAULT_os_reserve, &how)) return enter(onuma__os_reserve(size, align), size);
    (void)fail(&how, "a reservation", size);
    return NULL;
}

onuma_result fault_os_commit(void *p, size_t size) {
    fault_plan how;
    check_inside("commits", p, size);
    return fault_due(FAULT_os_commit, &how) ? fail(&how, "a commit", size) : onuma__os_commit(p, size);
}

onuma_result fault_os_decommit(void *p, size_t size) {
    fault_plan how;
    check_inside("decommits", p, size);
    return fault_due(FAULT_os_decommit, &how) ? fail(&how, "a decommit", size) : onuma__os_decommit(p, size);
}

onuma_result fault_os_protect(void *p, size_t size, onuma__os_protection protection) {
    fault_plan how;
    return fault_due(FAULT_os_protect, &how) ? fail(&how, "a protection", size)
                                             : onuma__os_protect(p, size, protection);
}

void fault_os_release(void *p, size_t size) {
    onuma__os_lock_acquire(&books.lock);
    range *r = holder(p, size);
    if (r == NULL || r->base != p || r->size != size) {
        fault_violate("releases %zu bytes at %p, which are no live range", size, p);
    } else {
        r->base = NULL;
        books.count--;
        books.bytes -= size;
    }
    onuma__os_lock_release(&books.lock);
    onuma__os_release(p, size);
}

void fault_os_release_kept(void *p, size_t size) {
    onuma__os_release(p, size);
}

void fault_os_books(fault_books *out) {
    onuma__os_lock_acquire(&books.lock);
    out->os_ranges = books.count;
    out->os_bytes = books.bytes;
    onuma__os_lock_release(&books.lock);
    out->blocks = atomic_load_explicit(&blocks, memory_order_relaxed);
}

/* -------------------------------------------------------------- everything else */

void *fault_os_library_open(const char *name, char *why, size_t why_size);
void *fault_os_library_of_process(const char *symbol);
void *fault_os_library_symbol(void *library, const char *name);
onuma__os_thread *fault_os_thread_first(void);
bool fault_os_barrier_all(void);
void fault_os_memory(uint64_t *total, uint64_t *available);
bool fault_os_can_read(const void *p);
onuma_result fault_os_cache_read(const char *name, char *bytes, size_t size, size_t *length);
onuma_result fault_os_cache_write(const char *name, const char *bytes, size_t length);
void fault_os_sleep(uint64_t ns);
uint64_t fault_os_now(void);
void fault_os_lock_acquire(onuma__os_lock *lock);
bool fault_os_lock_try(onuma__os_lock *lock);
void fault_os_lock_release(onuma__os_lock *lock);

void *fault_os_library_open(const char *name, char *why, size_t why_size) {
    fault_plan how;
    if (!fault_due(FAULT_os_library, &how)) return onuma__os_library_open(name, why, why_size);
    if (why_size != 0) snprintf(why, why_size, "injected: %s does not load", name);
    return NULL;
}

void *fault_os_library_of_process(const char *symbol) {
    fault_plan how;
    return fault_due(FAULT_os_library, &how) ? NULL : onuma__os_library_of_process(symbol);
}

void *fault_os_library_symbol(void *library, const char *name) {
    fault_plan how;
    return fault_due(FAULT_os_symbol, &how) ? NULL : onuma__os_library_symbol(library, name);
}

/* The state of a thread whose exit the system could not promise to tell. */
onuma__os_thread *fault_os_thread_first(void) {
#if defined(__linux__) && defined(__GLIBC__)
    fault_plan how;
    return fault_due(FAULT_os_thread, &how) ? &onuma__os_this_thread : onuma__os_thread_first();
#else
    return onuma__os_thread_get();
#endif
}

bool fault_os_barrier_all(void) {
    fault_plan how;
    if (!fault_due(FAULT_os_barrier, &how)) return onuma__os_barrier_all();
    onuma__os_fence();
    return false;
}

void fault_os_memory(uint64_t *total, uint64_t *available) {
    fault_plan how;
    if (!fault_due(FAULT_os_capacity, &how)) {
        onuma__os_memory(total, available);
        return;
    }
    *total = *available = 0; /* the system does not tell */
}

/* Where the system cannot tell, nothing can be read. */
bool fault_os_can_read(const void *p) {
    fault_plan how;
    return fault_due(FAULT_os_can_read, &how) ? false : onuma__os_can_read(p);
}

onuma_result fault_os_cache_read(const char *name, char *bytes, size_t size, size_t *length) {
    fault_plan how;
    return fault_due(FAULT_os_cache, &how) ? fail(&how, "a cache file", size)
                                           : onuma__os_cache_read(name, bytes, size, length);
}

onuma_result fault_os_cache_write(const char *name, const char *bytes, size_t length) {
    fault_plan how;
    return fault_due(FAULT_os_cache, &how) ? fail(&how, "a cache file", length)
                                           : onuma__os_cache_write(name, bytes, length);
}

void fault_os_sleep(uint64_t ns) {
    const uint64_t most = fault_for_good() ? 0 : atomic_load_explicit(&most_sleep, memory_order_relaxed);
    const uint64_t real = ns < most ? ns : most;
    atomic_fetch_add_explicit(&skipped_ns, ns - real, memory_order_relaxed);
    if (real != 0)
        onuma__os_sleep(real);
    else
        onuma__os_yield();
}

uint64_t fault_os_now(void) {
    static const uint64_t ahead = UINT64_C(3600000000000), behind = UINT64_C(10000000000);
    fault_plan how;
    const uint64_t real = onuma__os_now();
    uint64_t skipped = atomic_load_explicit(&skipped_ns, memory_order_relaxed);
    if (!fault_due(FAULT_os_clock, &how)) return real + skipped;
    if (how.manner == FAULT_FAIL) return 0;
    /* Between what it was and what it becomes another thread may have slept: its clock then jumps by a little less. */
    skipped = how.manner == FAULT_FORWARD ? skipped + ahead : skipped - (behind < real + skipped ? behind : 0);
    atomic_store_explicit(&skipped_ns, skipped, memory_order_relaxed);
    return real + skipped;
}

void fault_shorten_sleep(uint64_t most_ns) {
    atomic_store_explicit(&most_sleep, most_ns, memory_order_relaxed);
}

void fault_os_lock_acquire(onuma__os_lock *lock) {
    onuma__os_lock_acquire(lock);
    locks_held++;
}

bool fault_os_lock_try(onuma__os_lock *lock) {
    const bool taken = onuma__os_lock_try(lock);
    if (taken) locks_held++;
    return taken;
}

void fault_os_lock_release(onuma__os_lock *lock) {
    locks_held--;
    onuma__os_lock_release(lock);
}

unsigned fault_locks_held(void) {
    return locks_held;
}
