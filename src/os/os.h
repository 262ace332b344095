/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system layer: everything the library asks of an operating system.
 *
 * One header; the files linux_*.c, darwin_*.c (macOS) and windows_*.c implement it,
 * each one part of it, posix_*.c what the first two share and common.c what all do. Rules that hold for every function:
 *   - addresses and sizes are multiples of onuma__os_page_size() unless said
 *     otherwise; passing others is a defect of the caller, answered with
 *     INTERNAL, never a crash;
 *   - failures go through onuma__fail with the system's own error in the text;
 *   - nothing here takes a lock of the library.
 * Abilities that a system lacks are told by data (onuma__os_abilities), not by
 * #ifdef in the callers.
 */
#ifndef ONUMA_OS_OS_H
#define ONUMA_OS_OS_H

#include "base/result.h"

#if UINTPTR_MAX < UINT64_MAX
#error "OpenNUMA needs a 64-bit system: a pool reserves addresses by the gigabyte (docs/platforms.md)"
#endif
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "OpenNUMA has been tried on little-endian machines only (docs/platforms.md)"
#endif

/* ------------------------------------------------------------ virtual memory */

typedef struct onuma__os_abilities {
    size_t page_size;        /* of mappings */
    size_t reserve_granule;  /* reservations start on it (64 KiB on Windows) */
    uint64_t address_space;  /* bytes of addresses that a process has: 128 TiB on most, 512 GiB on small Arm machines */
    bool asymmetric_barrier; /* onuma__os_barrier_all works (membarrier; FlushProcessWriteBuffers, but not Wine's) */
} onuma__os_abilities;

/* Read once, at the first call; then constant. Thread-safe. */
const onuma__os_abilities *onuma__os_abilities_get(void);

/* abilities.asymmetric_barrier again, for the inline fast path; false until the abilities are first read. */
extern ONUMA__HIDDEN bool onuma__os_has_barrier_all;

/* Address space with no memory behind it; touching it faults. `align` 0 or a power of two. NULL and a detail on failure. */
void *onuma__os_reserve(size_t size, size_t align);

/* Back [p, p+size) of a reservation with zeroed memory, readable and writable. */
onuma_result onuma__os_commit(void *p, size_t size);

/* Give the memory back, keep the addresses; touching them faults again; recommitted pages are zero. */
onuma_result onuma__os_decommit(void *p, size_t size);

/* What stands in these committed pages is wanted no more: the system may take their memory when it is short, and gives
 * other (zeroed) memory at the next touch; until then nothing changes, and no call is needed to write to them again.
 * NOT_SUPPORTED where the system has nothing of the kind (Linux before 4.5). */
onuma_result onuma__os_discard(void *p, size_t size);

/* Give back a whole reservation or map, committed or not. `size` as it was asked for. */
void onuma__os_release(void *p, size_t size);

typedef enum { ONUMA__PROTECT_NONE, ONUMA__PROTECT_READ, ONUMA__PROTECT_READ_WRITE } onuma__os_protection;
onuma_result onuma__os_protect(void *p, size_t size, onuma__os_protection protection);

/* reserve and commit in one: zeroed memory of at least `size`, `align` as above. Given back with onuma__os_release. */
void *onuma__os_map(size_t size, size_t align);

/*
 * Large pages, which the processor finds faster: their size, or 0 and *why (a constant) where this process may have none.
 * Asked once in a process; on Windows it switches on the right to lock memory (SeLockMemoryPrivilege), if the user has it, so it
 * is called only where large pages are wanted. Linux gives them as it has some ("transparent"), Windows never pages them out.
 */
size_t onuma__os_large_page_size(const char **why);

/* onuma__os_map in large pages, `size` a multiple of their size, aligned to it. Given back whole, with onuma__os_release.
 * NULL and a detail where there are none, or none left: callers take ordinary pages then. */
void *onuma__os_map_large(size_t size);

/*
 * Memory with several mappings: what is written through one is read through the others at once, since they are the same
 * pages. Zeroed at first; it lives as long as its handle or a mapping does. Mappings of a forked parent are its
 * child's too. Sizes and offsets are multiples of reserve_granule.
 */
typedef struct onuma__os_shared {
    intptr_t
        handle;  /* a file descriptor (memfd; closed by exec); on Windows a section of the page file, not inherited */
    size_t size; /* 0: none */
} onuma__os_shared;

/* NOT_SUPPORTED where the system has no such memory (Linux before 3.17), OUT_OF_MEMORY. */
onuma_result onuma__os_shared_create(size_t size, onuma__os_shared *out);

/* [offset, offset + size) of it, readable and writable, anywhere. NULL and a detail on failure. */
void *onuma__os_shared_map(const onuma__os_shared *shared, size_t offset, size_t size);
void onuma__os_shared_unmap(void *p, size_t size);

/* Mappings stay. Once it is closed, or if it never was created (all zero), nothing happens. */
void onuma__os_shared_close(onuma__os_shared *shared);

/* Whether the `void *` at this address, whatever it is, can be read. It may be gone a moment later. */
bool onuma__os_can_read(const void *p);

/* Keep these pages out of fork()ed children where the system can (segments a device may write). */
void onuma__os_exclude_from_fork(void *p, size_t size);

/* Tell a leak checker, if this process runs under one, that these pages hold pointers to allocated memory: it looks
 * for them in malloc's memory and in variables only. For pages that are never unmapped. */
void onuma__os_leak_roots(const void *p, size_t size);

/* Bytes of physical memory, and of what a program could still get (0 when the system does not tell). */
void onuma__os_memory(uint64_t *total, uint64_t *available);

/* ------------------------------------------------- threads, locks, waiting */

/*
 * A lock of one word: futex on Linux, __ulock on macOS, SRWLOCK on Windows. Not recursive.
 * Zero-initialised is unlocked. Fork: see onuma__os_at_fork.
 */
typedef struct onuma__os_lock {
#if defined(_WIN32)
    void *word;
#else
    _Alignas(8) _Atomic uint32_t word; /* as wide as there: structs, and statistics that count them, are alike */
#endif
} onuma__os_lock;

void onuma__os_lock_acquire(onuma__os_lock *lock);
bool onuma__os_lock_try(onuma__os_lock *lock);
void onuma__os_lock_release(onuma__os_lock *lock);

/*
 * Run `fn` once in the process, whatever threads race to it. Zero-initialised control word. A child forked while
 * another thread was in `fn` runs it again, so it must stand being cut short.
 */
typedef struct onuma__os_once {
    _Atomic uint32_t state;
} onuma__os_once;
void onuma__os_once_run(onuma__os_once *once, void (*fn)(void));

/*
 * What the library keeps per thread, all of it: on glibc this is initial-exec
 * thread-local storage, of which a library may use 64 bytes at most if dlopen
 * is to work; elsewhere it hangs off a slot. Zero in a new thread.
 */
typedef struct onuma__os_thread {
    void *heaps;         /* src/pool: the thread's slab caches */
    char *text;          /* src/base: the error detail */
    uint64_t number;     /* 1, 2, ... in order of first use; never reused */
    const void *key;     /* src/pool: what the thread last allocated with, and */
    void *heap;          /* the heap that served it */
    uint32_t in_handler; /* src/policy: depth of user handlers on this thread's stack */
    uint32_t long_ways;  /* src/policy: calls that took one */
} onuma__os_thread;

/*
 * The calling thread's. Never NULL. Number 0: the system could not promise to call the exit hook (or make a state at
 * all, and this is a shared last resort), so nothing may be kept in it. A thread whose other exit handlers use the
 * library after the hook has run gets a new number, and the hook runs again.
 */
#if defined(__linux__) && defined(__GLIBC__)
extern _Thread_local onuma__os_thread onuma__os_this_thread
    __attribute__((tls_model("initial-exec"), visibility("hidden")));
onuma__os_thread *onuma__os_thread_first(void); /* gives a new thread its number and arms the exit hook */
static inline onuma__os_thread *onuma__os_thread_get(void) {
    onuma__os_thread *t = &onuma__os_this_thread;
    return ONUMA__LIKELY(t->number != 0) ? t : onuma__os_thread_first();
}
/* The same, without making it a state: number 0 and nothing in it until the thread first calls onuma__os_thread_get. */
static inline const onuma__os_thread *onuma__os_thread_peek(void) {
    return &onuma__os_this_thread;
}
#else
onuma__os_thread *onuma__os_thread_get(void);
static inline const onuma__os_thread *onuma__os_thread_peek(void) {
    return onuma__os_thread_get();
}
#endif

/*
 * `fn` is called on each exiting thread that used the library, with its state,
 * before that is freed. One hook (src/pool's); set before any thread can have state to hand back.
 * Not called at process exit.
 */
void onuma__os_on_thread_exit(void (*fn)(onuma__os_thread *));

/*
 * Called around fork() on systems that have it: before (take the locks, in order), and after in parent and
 * child (release them; in the child, nothing but the calling thread exists). One set of hooks for each order below
 * ONUMA__OS_FORK_ORDERS: `before` runs from the highest order down, the others from the lowest up. A layer that
 * calls another with its lock held has the higher order: 0 src/pool, 1 src/sync, 2 src/track, 3 src/policy.
 */
#define ONUMA__OS_FORK_ORDERS 4u
void onuma__os_at_fork(unsigned order, void (*before)(void), void (*parent)(void), void (*child)(void));

/* Process identity that changes in a forked child; a load, no system call. */
uint64_t onuma__os_process_generation(void);

/*
 * A full memory fence. The thread sanitizer does not understand fences; under it this is a read-modify-write of one
 * word, which orders as much among the threads that pass here, and which it does understand.
 */
#if defined(__SANITIZE_THREAD__)
#define ONUMA__THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ONUMA__THREAD_SANITIZER 1
#endif
#endif
#if !defined(ONUMA__THREAD_SANITIZER)
#define ONUMA__THREAD_SANITIZER 0
#endif
#if ONUMA__THREAD_SANITIZER
extern uint32_t onuma__os_fence_word;
#endif
static inline void onuma__os_fence(void) {
#if ONUMA__THREAD_SANITIZER
    __atomic_fetch_add(&onuma__os_fence_word, 1, __ATOMIC_SEQ_CST);
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/*
 * What this thread has read stays before what it reads from here on: for a reader that looks at a version, then at things by
 * relaxed loads, then at the version again. The thread sanitizer needs none: there all of it is atomic.
 */
static inline void onuma__os_read_fence(void) {
#if !ONUMA__THREAD_SANITIZER
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
#endif
}

/*
 * All other threads of the process pass a full memory barrier before this returns, and so does the caller: the slow
 * half of an asymmetric guard, whose fast half is then a compiler barrier. false: the system cannot, and both sides
 * need real fences (the caller has passed one; onuma__os_light_barrier does the right one). Never false where the abilities
 * promise it, for there the fast halves have no fences.
 */
bool onuma__os_barrier_all(void);
static inline void onuma__os_light_barrier(void) {
    /* Relaxed: whoever still reads false runs the real fence, which pairs with either slow half. */
    if (!ONUMA__THREAD_SANITIZER && ONUMA__LIKELY(__atomic_load_n(&onuma__os_has_barrier_all, __ATOMIC_RELAXED)))
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    else
        onuma__os_fence();
}
/* The same for a caller who knows that the abilities promise it. */
static inline void onuma__os_promised_barrier(void) {
    if (ONUMA__THREAD_SANITIZER)
        onuma__os_fence();
    else
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

void onuma__os_yield(void);
void onuma__os_sleep(uint64_t ns);
uint64_t onuma__os_now(void); /* monotonic, ns */

/* A thread of the library's own, with all signals blocked but those of its own faults. */
typedef struct onuma__os_worker onuma__os_worker;
onuma_result onuma__os_worker_start(void (*fn)(void *), void *argument, onuma__os_worker **out);
void onuma__os_worker_join(onuma__os_worker *worker); /* waits for it to return; NULL ok */

/*
 * What a thread of the library's own sleeps on: until some time has passed, or somebody wakes it, or, if it is to know of that,
 * the system is short of memory. One sleeper at a time. A fork()ed child has its parent's and must only destroy it.
 */
typedef struct onuma__os_watch onuma__os_watch;
typedef enum {
    ONUMA__OS_QUIET,   /* woken, or the time has passed: nothing is known to be short */
    ONUMA__OS_PRESSED, /* the system is busy finding memory, or low on it */
    ONUMA__OS_STARVED  /* a limit on this process was reached, or nearly: more may end it */
} onuma__os_pressure;

/* *why (a constant) where pressure was asked for and this system does not tell of it; else NULL. OUT_OF_MEMORY. */
onuma_result onuma__os_watch_create(bool pressure, onuma__os_watch **out, const char **why);
onuma__os_pressure onuma__os_watch_sleep(onuma__os_watch *watch, uint64_t ns);
void onuma__os_watch_wake(onuma__os_watch *watch);    /* the present sleep, or the next one */
void onuma__os_watch_destroy(onuma__os_watch *watch); /* NULL ok */

/* -------------------------------------------------------- drivers, environment */

/*
 * Open a driver's own loader by bare file name ("libOpenCL.so.1"), from the system's own places only: never
 * the working directory, never a path from the environment other than what the system's loader itself honours
 * for this process (on Windows the system directory alone). NULL without a failure detail if there is none; NULL
 * and *why filled if one exists but does not load.
 */
void *onuma__os_library_open(const char *name, char *why, size_t why_size);
/*
 * The process itself as a library, if what it was started with (its own links, preloaded libraries) has `symbol`; else
 * NULL. Such a loader comes before the system's: two in one process get in each other's way.
 */
void *onuma__os_library_of_process(const char *symbol);
void *onuma__os_library_symbol(void *library, const char *name); /* NULL if absent */
/* Libraries are never closed: drivers leave threads and exit handlers behind. */

/*
 * A code address for people and for addr2line: "program+0x1234 (function+0x12)" as far as the system tells, at
 * least the address. Always writes a text.
 */
void onuma__os_describe_code(const void *address, char *text, size_t size);

/* The value, or NULL; NULL always where the process runs with more rights than its caller. */
const char *onuma__os_getenv(const char *name);

/* Each "name=value" of the environment, in no order. None where the process runs with more rights than its caller. */
void onuma__os_each_variable(void (*fn)(void *user, const char *variable), void *user);

/*
 * Which file, and which state of it, the code at `address` comes from, as a text that changes when the file does. ""
 * where that cannot be told. onuma__os_file_identity: the same of a file by path.
 */
void onuma__os_code_identity(const void *address, char *text, size_t size);
void onuma__os_file_identity(const char *path, char *text, size_t size);

/* Names this machine and the kernel that runs, as a text that changes with either. */
void onuma__os_machine_identity(char *text, size_t size);

/* ---------------------------------------------------------- the user's cache */

/*
 * Small files of ours in the user's cache folder ($XDG_CACHE_HOME or ~/.cache, below it opennuma; on Windows
 * %LOCALAPPDATA%), by bare name. Private: folder and files are the user's own and nobody else may write them; links
 * and anything but plain files are refused, never followed; a file is replaced whole or not at all, whoever else
 * writes it meanwhile. The folder is made when the first file is written. No cache for a process that runs with more
 * rights than its caller.
 *
 * read: NOT_FOUND if there is none, NOT_SUPPORTED if there can be none here, INVALID_ARGUMENT for one that cannot be
 * trusted or is `size` bytes or longer. write: IO and NOT_SUPPORTED.
 */
onuma_result onuma__os_cache_read(const char *name, char *bytes, size_t size, size_t *length);
onuma_result onuma__os_cache_write(const char *name, const char *bytes, size_t length);

#endif
