/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of each thread, the hook on its exit, and threads of the library's own.
 *
 * The hook is the destructor of a pthread key. Destructors of other keys may run later and use the library again:
 * they then find a zeroed state, which gets a new number and arms the key anew, and the C library calls the
 * destructor in its next round (there are at least PTHREAD_DESTRUCTOR_ITERATIONS of them). The key's value is only a
 * flag; the state itself is in thread-local storage, where the fast path finds it.
 */
#define _GNU_SOURCE
#include "os/private.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

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

/* ----------------------------------------------------------------- workers */

struct onuma__os_worker {
    pthread_t thread;
    void (*fn)(void *);
    void *argument;
};

static void *worker_main(void *argument) {
    onuma__os_worker *worker = argument;
    worker->fn(worker->argument);
    return NULL;
}

onuma_result onuma__os_worker_start(void (*fn)(void *), void *argument, onuma__os_worker **out) {
    *out = NULL;
    onuma__os_worker *worker = malloc(sizeof *worker);
    if (!worker) return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory to start a thread");
    worker->fn = fn;
    worker->argument = argument;

    /* Signals are the program's business; its handlers must not run here. A fault of this thread itself still
     * reaches them, or a crash would leave no report. */
    sigset_t blocked, before;
    sigfillset(&blocked);
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, &before); /* inherited by the new thread */
    int error = pthread_create(&worker->thread, NULL, worker_main, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0) {
        free(worker);
        return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "starting a thread: %s; raise ulimit -u or end other threads",
                           onuma__os_error_text((unsigned long)error).text);
    }
    *out = worker;
    return ONUMA_OK;
}

void onuma__os_worker_join(onuma__os_worker *worker) {
    if (!worker) return;
    pthread_join(worker->thread, NULL);
    free(worker);
}
