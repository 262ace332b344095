/* SPDX-License-Identifier: Apache-2.0 */
/* What is the same on every system: argument checks, once, and a thread's beginning and end. */
#include "os/private.h"

#include "base/checked.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ memory */

onuma_result onuma__os_check_pages(const char *what, const void *p, size_t size) {
    size_t page = onuma__os_abilities_get()->page_size;
    uintptr_t address = (uintptr_t)p;
    if (p && size && address % page == 0 && size % page == 0 && address <= UINTPTR_MAX - size) return ONUMA_OK;
    return onuma__fail(ONUMA_ERROR_INTERNAL, "%s of %zu bytes at %p: not whole pages of %zu bytes", what, size, p,
                       page);
}

bool onuma__os_check_window(const onuma__os_shared *shared, size_t offset, size_t size) {
    const size_t granule = onuma__os_abilities_get()->reserve_granule;
    if (size != 0 && size % granule == 0 && offset % granule == 0 && offset < shared->size &&
        size <= shared->size - offset)
        return true;
    onuma__fail(ONUMA_ERROR_INTERNAL,
                "mapping %zu bytes at %zu of %zu shared ones: not whole granules of %zu bytes in it", size, offset,
                shared->size, granule);
    return false;
}

static void *place_checked(const char *what, size_t size, size_t align, bool committed) {
    const onuma__os_abilities *abilities = onuma__os_abilities_get();
    if (size == 0 || size % abilities->page_size != 0) {
        onuma__fail(ONUMA_ERROR_INTERNAL, "%s of %zu bytes: not whole pages of %zu bytes", what, size,
                    abilities->page_size);
        return NULL;
    }
    if (align != 0 && !onuma__is_power_of_two(align)) {
        onuma__fail(ONUMA_ERROR_INTERNAL, "%s aligned to %zu: not a power of two", what, align);
        return NULL;
    }
    return onuma__os_place(size, align < abilities->reserve_granule ? abilities->reserve_granule : align, committed);
}

void *onuma__os_reserve(size_t size, size_t align) {
    return place_checked("reserving", size, align, false);
}

void *onuma__os_map(size_t size, size_t align) {
    size_t whole = 0;
    if (!onuma__align_up(size, onuma__os_abilities_get()->page_size, &whole)) {
        onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "mapping %zu bytes: more than all addresses", size);
        return NULL;
    }
    return place_checked("mapping", whole, align, true);
}

bool onuma__os_check_bare_name(const char *name, char *why, size_t why_size) {
    /* ':' is a drive or a stream on Windows. */
    if (name && *name && strpbrk(name, "/\\:") == NULL && strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
        return true;
    (void)snprintf(why, why_size, "\"%s\" is not a bare file name; drivers are loaded from the system's places only",
                   name ? name : "");
    return false;
}

/* -------------------------------------------------------------------- once */

/*
 * 0: not run. 1: done. Otherwise `fn` is running, in the process of the generation that (state >> 1) holds: in a
 * child forked meanwhile the runner does not exist, which the generation tells, and a waiter takes its place.
 */
enum { ONCE_NEW = 0, ONCE_DONE = 1 };

static uint32_t once_running(void) {
    return (uint32_t)(onuma__os_process_generation() << 1);
}

void onuma__os_once_run(onuma__os_once *once, void (*fn)(void)) {
    /* Acquire pairs with the release below: what fn wrote is visible to whoever finds it done. */
    uint32_t seen = atomic_load_explicit(&once->state, memory_order_acquire);
    for (unsigned turns = 0; seen != ONCE_DONE; turns++) {
        uint32_t running = once_running();
        if (seen != running && atomic_compare_exchange_strong_explicit(&once->state, &seen, running,
                                                                       memory_order_acquire, memory_order_acquire)) {
            fn();
            atomic_store_explicit(&once->state, ONCE_DONE, memory_order_release);
            onuma__os_word_wake_all(&once->state);
            return;
        }
        if (seen == running) {
            if (turns < 64)
                onuma__os_yield();
            else
                onuma__os_word_wait(&once->state, running);
            seen = atomic_load_explicit(&once->state, memory_order_acquire);
        }
    }
}

/* ----------------------------------------------------------------- threads */

#if ONUMA__THREAD_SANITIZER
uint32_t onuma__os_fence_word; /* only ever incremented; its order of increments is what counts */
#endif

static _Atomic uint64_t last_thread_number; /* relaxed: only uniqueness matters */
static void (*_Atomic exit_hook)(onuma__os_thread *);

uint64_t onuma__os_thread_next_number(void) {
    return atomic_fetch_add_explicit(&last_thread_number, 1, memory_order_relaxed) + 1;
}

void onuma__os_on_thread_exit(void (*fn)(onuma__os_thread *)) {
    /* Release, with acquire below: the hook may rely on what was set up before it was set. */
    atomic_store_explicit(&exit_hook, fn, memory_order_release);
}

void onuma__os_thread_finish(onuma__os_thread *t) {
    void (*hook)(onuma__os_thread *) = atomic_load_explicit(&exit_hook, memory_order_acquire);
    if (hook) hook(t);
    free(t->text); /* after the hook, which may fail something and so write a text */
    *t = (onuma__os_thread){0};
}

char *onuma__thread_text(void) {
    onuma__os_thread *t = onuma__os_thread_get();
    if (t->number == 0) return NULL;
    if (!t->text) t->text = calloc(1, ONUMA__DETAIL_BYTES);
    return t->text;
}

/* ------------------------------------------------------------ leak checkers */

#if defined(__linux__)
/* LeakSanitizer's, where the program is built with it. */
extern void __lsan_register_root_region(const void *p, size_t size) __attribute__((weak));

void onuma__os_leak_roots(const void *p, size_t size) {
    if (__lsan_register_root_region != NULL) __lsan_register_root_region(p, size);
}
#else
void onuma__os_leak_roots(const void *p, size_t size) {
    (void)p;
    (void)size;
}
#endif
