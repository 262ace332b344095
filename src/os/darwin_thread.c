/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of each thread, and the hook on its exit: the destructor of a pthread key, whose value is the state.
 *
 * Not _Thread_local: macOS frees such storage by a key of its own, which is older than ours and so comes first, and our
 * destructor would work on freed memory. What other destructors do with the library later makes a state anew, and the
 * system calls ours in its next round.
 */
#include "os/private.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_key_t state_key; /* constant once `once` is done */
static bool key_works;          /* likewise */
static onuma__os_once once;
static onuma__os_thread last_resort;

static void at_thread_exit(void *value) {
    /* The hook uses the state that ends, and the system has emptied the slot. If it cannot be filled, the hook sees a
     * fresh state, which is given back in the next round. */
    (void)pthread_setspecific(state_key, value);
    onuma__os_thread_finish(value);
    (void)pthread_setspecific(state_key, NULL);
    free(value);
}

static void make_key(void) {
    key_works = pthread_key_create(&state_key, at_thread_exit) == 0;
}

ONUMA__COLD static onuma__os_thread *begin(void) {
    onuma__os_thread *t = calloc(1, sizeof *t);
    if (t == NULL) return &last_resort;
    if (pthread_setspecific(state_key, t) != 0) {
        free(t);
        return &last_resort;
    }
    t->number = onuma__os_thread_next_number();
    return t;
}

onuma__os_thread *onuma__os_thread_get(void) {
    onuma__os_once_run(&once, make_key);
    if (ONUMA__UNLIKELY(!key_works)) return &last_resort;
    onuma__os_thread *t = pthread_getspecific(state_key);
    return ONUMA__LIKELY(t != NULL) ? t : begin();
}
