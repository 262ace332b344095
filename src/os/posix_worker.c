/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of the library's own. */
#define _GNU_SOURCE
#include "os/private.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

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
