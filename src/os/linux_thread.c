/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of each thread, and the hook on its exit.
 *
 * The hook is the destructor of a pthread key. Destructors of other keys may run later and use the library again:
 * they then find a zeroed state, which gets a new number and arms the key anew, and the C library calls the
 * destructor in its next round (there are at least PTHREAD_DESTRUCTOR_ITERATIONS of them). The key's value is only a
 * flag; the state itself is in thread-local storage, where the fast path finds it.
 */
#define _GNU_SOURCE
#include "os/private.h"

#include <pthread.h>

#if defined(__GLIBC__)
_Thread_local onuma__os_thread onuma__os_this_thread;
#define THIS_THREAD onuma__os_this_thread
_Static_assert(sizeof(onuma__os_thread) <= 64, "dlopen has room for no more initial-exec storage");
#else
/* musl's dlopen takes no initial-exec storage at all. */
static _Thread_local onuma__os_thread this_thread;
#define THIS_THREAD this_thread
#endif

static pthread_key_t exit_key; /* constant once exit_once is done */
static bool exit_key_works;    /* likewise */
static onuma__os_once exit_once;

static void at_thread_exit(void *state) {
    onuma__os_thread_finish(state);
}

static void make_exit_key(void) {
    exit_key_works = pthread_key_create(&exit_key, at_thread_exit) == 0;
}

ONUMA__COLD static onuma__os_thread *begin(onuma__os_thread *t) {
    onuma__os_once_run(&exit_once, make_exit_key);
    /* Number 0 while the exit cannot be hooked: then nothing is kept in the state, so nothing is lost with it. */
    if (exit_key_works && pthread_setspecific(exit_key, t) == 0) t->number = onuma__os_thread_next_number();
    return t;
}

#if defined(__GLIBC__)
onuma__os_thread *onuma__os_thread_first(void) {
    return begin(&THIS_THREAD);
}
#else
onuma__os_thread *onuma__os_thread_get(void) {
    onuma__os_thread *t = &THIS_THREAD;
    return ONUMA__LIKELY(t->number != 0) ? t : begin(t);
}
#endif
