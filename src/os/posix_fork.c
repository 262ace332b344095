/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork: the library's hooks, and the number that tells a child from its parent.
 *
 * One pthread_atfork, made when the library is loaded, so that no fork goes unnoticed. In the child the number changes
 * before the hooks run. Children made by a raw clone() are not noticed; they may not use the library.
 */
#define _GNU_SOURCE
#include "os/os.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

typedef void hook(void);

/* Stored with release, loaded with acquire: a hook may rely on what was set up before it was set. */
typedef struct hooks {
    hook *_Atomic before, *_Atomic parent, *_Atomic child;
} hooks;
static hooks all_hooks[ONUMA__OS_FORK_ORDERS];

static _Atomic uint64_t generation = 1; /* relaxed: changed where only one thread exists */
static bool unhooked;                   /* written while loading only */

static void run(hook *_Atomic *which) {
    hook *fn = atomic_load_explicit(which, memory_order_acquire);
    if (fn) fn();
}

static void before(void) {
    for (size_t order = ONUMA__OS_FORK_ORDERS; order-- > 0;)
        run(&all_hooks[order].before);
}

static void parent(void) {
    for (size_t order = 0; order < ONUMA__OS_FORK_ORDERS; order++)
        run(&all_hooks[order].parent);
}

static void child(void) {
    atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
    for (size_t order = 0; order < ONUMA__OS_FORK_ORDERS; order++)
        run(&all_hooks[order].child);
}

__attribute__((constructor)) static void watch_forks(void) {
    unhooked = pthread_atfork(before, parent, child) != 0;
}

void onuma__os_at_fork(unsigned order, void (*fn_before)(void), void (*fn_parent)(void), void (*fn_child)(void)) {
    if (order >= ONUMA__OS_FORK_ORDERS) return;
    /* `before` last: a fork meanwhile that does not run it runs the others, which then release locks that nobody
     * took; so each layer sets its hooks before its locks can be used. */
    atomic_store_explicit(&all_hooks[order].parent, fn_parent, memory_order_release);
    atomic_store_explicit(&all_hooks[order].child, fn_child, memory_order_release);
    atomic_store_explicit(&all_hooks[order].before, fn_before, memory_order_release);
}

uint64_t onuma__os_process_generation(void) {
    /* Memory ran out while loading: the process id says the same, for a system call. */
    if (ONUMA__UNLIKELY(unhooked)) return (uint64_t)getpid();
    return atomic_load_explicit(&generation, memory_order_relaxed);
}
