/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of each thread, the hook on its exit, and threads of the library's own.
 *
 * The state hangs off a slot of fiber-local storage, the one kind whose callback tells of a thread's end in programs
 * that link the library statically too. In programs with fibers each fiber has a state of its own, which is right: it
 * is used by one thread at a time. MinGW's _Thread_local is emulated by a look-up under a lock and would be slower.
 *
 * A second slot, of TlsAlloc, holds nothing until a thread's hook runs: then it leads to the state that is ending, and for
 * good to the shared one once it has ended. That belongs to the thread and not to a fiber, and must be readable after the
 * system has emptied the first slot, and needs no callback of its own; thread-local storage is all of that.
 *
 * Destructors of C++ thread_local objects run later than the callback, and nothing can be armed then any more; a
 * thread that is over therefore gets the shared last resort, whose number 0 says that nothing may be kept in it.
 */
#include "os/windows_private.h"

#include <stdlib.h>
#include <string.h>

static DWORD state_slot = FLS_OUT_OF_INDEXES; /* constant once `once` is done */
static DWORD over_slot = TLS_OUT_OF_INDEXES;  /* likewise; holds what a thread uses from its hook on */
static onuma__os_once once;
static onuma__os_thread last_resort;

/* ntdll's RtlDllShutdownInProgress, or NULL; likewise. Not looked for in the callback: there the system holds a lock of
 * the slots, and looking takes the loader's, which another thread at its end holds while it waits for that of the slots. */
static BOOLEAN(NTAPI *shutdown_in_progress)(void);

static bool process_is_ending(void) {
    return shutdown_in_progress && shutdown_in_progress();
}

static void NTAPI at_thread_exit(void *value) {
    onuma__os_thread *t = value;
    /* Other threads were ended wherever they were, perhaps with locks held: leave everything alone. */
    if (!t || process_is_ending()) return;
    TlsSetValue(over_slot, t); /* the hook uses the state that is ending, even if the system has emptied the slot */
    onuma__os_thread_finish(t);
    if (FlsGetValue(state_slot) == t) FlsSetValue(state_slot, NULL);
    free(t);
    /* At the end of a fiber the thread goes on, and with it the thread's other fibers. */
    TlsSetValue(over_slot, IsThreadAFiber() ? NULL : &last_resort);
}

static void make_slots(void) {
    HMODULE ntdll = GetModuleHandleW(L"ntdll.dll");
    void *symbol = ntdll ? onuma__os_library_symbol(ntdll, "RtlDllShutdownInProgress") : NULL;
    memcpy(&shutdown_in_progress, &symbol, sizeof symbol);
    over_slot = TlsAlloc();
    if (over_slot == TLS_OUT_OF_INDEXES) return;
    state_slot = FlsAlloc(at_thread_exit);
    /* Threads carry the callback, so the library stays loaded for good. */
    HMODULE self;
    GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN,
                       (const wchar_t *)(const void *)&last_resort, &self);
}

ONUMA__COLD static onuma__os_thread *begin(void) {
    onuma__os_thread *over = TlsGetValue(over_slot);
    if (over) return over;
    onuma__os_thread *t = calloc(1, sizeof *t);
    if (!t) return &last_resort;
    if (!FlsSetValue(state_slot, t)) {
        free(t);
        return &last_resort;
    }
    t->number = onuma__os_thread_next_number();
    return t;
}

onuma__os_thread *onuma__os_thread_get(void) {
    onuma__os_once_run(&once, make_slots);
    if (ONUMA__UNLIKELY(state_slot == FLS_OUT_OF_INDEXES)) return &last_resort;
    onuma__os_thread *t = FlsGetValue(state_slot);
    return ONUMA__LIKELY(t != NULL) ? t : begin();
}

/* ----------------------------------------------------------------- workers */

struct onuma__os_worker {
    HANDLE thread;
    void (*fn)(void *);
    void *argument;
};

static DWORD WINAPI worker_main(void *argument) {
    onuma__os_worker *worker = argument;
    worker->fn(worker->argument);
    return 0;
}

onuma_result onuma__os_worker_start(void (*fn)(void *), void *argument, onuma__os_worker **out) {
    *out = NULL;
    onuma__os_worker *worker = malloc(sizeof *worker);
    if (!worker) return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory to start a thread");
    worker->fn = fn;
    worker->argument = argument;
    worker->thread = CreateThread(NULL, 0, worker_main, worker, 0, NULL);
    if (!worker->thread) {
        onuma__os_error error = onuma__os_error_text(GetLastError());
        free(worker);
        return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "starting a thread: %s; end other threads", error.text);
    }
    *out = worker;
    return ONUMA_OK;
}

void onuma__os_worker_join(onuma__os_worker *worker) {
    if (!worker) return;
    WaitForSingleObject(worker->thread, INFINITE);
    CloseHandle(worker->thread);
    free(worker);
}

/* -------------------------------------------------------------------- fork */

/* Windows has none: the hooks never run, and a process is always itself. */
void onuma__os_at_fork(unsigned order, void (*before)(void), void (*parent)(void), void (*child)(void)) {
    (void)order, (void)before, (void)parent, (void)child;
}

uint64_t onuma__os_process_generation(void) {
    return 1;
}
