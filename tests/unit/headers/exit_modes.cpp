/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How programs end while they use the library: each mode is a process of its own, which must end by itself with status
 * 0. Blocks live, frees come late (atexit, destructors of static and of thread-local objects), a thread is still at
 * work, or nothing is torn down at all.
 */
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#if !defined(_WIN32)
#include <unistd.h>
#endif

#include <opennuma/opennuma.h>

#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            std::fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, onuma_last_error());                       \
            std::_Exit(1);                                                                                             \
        }                                                                                                              \
    } while (0)

static onuma_runtime *rt;
static onuma_pool *pool;

static void *take(std::size_t size) {
    void *block = nullptr;
    MUST(onuma_alloc(pool, size, 0, nullptr, &block) == ONUMA_OK);
    std::memset(block, 1, size);
    return block;
}

static void give(void *block) {
    MUST(onuma_free(block, nullptr) == ONUMA_OK);
}

/* Frees what it holds, and uses the library anew, whenever its end comes. */
struct holder {
    void *small = nullptr, *large = nullptr;
    void fill() {
        small = take(100);
        large = take(1 << 20);
    }
    ~holder() {
        if (small == nullptr) return;
        give(small);
        give(large);
        give(take(200));
        MUST(onuma_free(small, nullptr) == ONUMA_ERROR_DOUBLE_FREE);
    }
};

static holder at_static_end;
static thread_local holder at_thread_end;
static void *late;

static void free_late() {
    give(late);
    give(take(3000));
}

static void end_runtime() {
    onuma_runtime_destroy(rt);
}

[[noreturn]] static void churn(std::atomic<bool> *started) {
    for (;;) {
        void *block;
        if (onuma_alloc(pool, 5000, 0, nullptr, &block) == ONUMA_OK) (void)onuma_free(block, nullptr);
        if (onuma_alloc(pool, 1 << 20, 0, nullptr, &block) == ONUMA_OK) (void)onuma_free(block, nullptr);
        (void)onuma_pool_trim(pool, 0, nullptr);
        *started = true;
    }
}

static void thread_at_work() {
    static std::atomic<bool> started[2];
    for (auto &one : started)
        std::thread(churn, &one).detach();
    while (!started[0] || !started[1])
        std::this_thread::yield();
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    onuma_runtime_desc desc = ONUMA_RUNTIME_DESC_INIT;
    desc.config = "backends:host";
#if !defined(_WIN32)
    alarm(50);
#endif
    MUST(onuma_runtime_create(&desc, &rt) == ONUMA_OK);
    onuma_device *host;
    MUST(onuma_device_find(rt, "host", &host) == ONUMA_OK);
    MUST(onuma_pool_create(host, nullptr, &pool) == ONUMA_OK);

    if (std::strcmp(mode, "alive") == 0) {
        take(100);
        take(1 << 20);
    } else if (std::strcmp(mode, "atexit") == 0) {
        late = take(100);
        std::atexit(free_late);
    } else if (std::strcmp(mode, "static") == 0) {
        at_static_end.fill();
    } else if (std::strcmp(mode, "thread_local") == 0) {
        at_thread_end.fill(); /* the main thread's goes before the static ones */
        std::thread([] { at_thread_end.fill(); }).join();
        std::thread([] { late = take(100); }).join();
        give(late);
    } else if (std::strcmp(mode, "thread_running") == 0) {
        thread_at_work();
        std::atexit(free_late);
        late = take(100);
    } else if (std::strcmp(mode, "thread_and_runtime") == 0) {
        thread_at_work();
        std::_Exit(0);    /* the others are in the middle of it */
#if !defined(__MINGW32__) /* its C library, the one that every Windows has, knows no such end */
    } else if (std::strcmp(mode, "quick_exit") == 0) {
        late = take(100);
        std::at_quick_exit(free_late);
        thread_at_work();
        std::quick_exit(0);
#endif
    } else if (std::strcmp(mode, "runtime_atexit") == 0) {
        take(100);        /* a leak, which is told if the log is on */
#if !defined(__MINGW32__) /* there the main thread's objects go last, against the standard's word */
        at_thread_end.fill();
#endif
        std::atexit(end_runtime); /* after the main thread's objects are gone */
    } else {
        std::fprintf(stderr, "no such mode: \"%s\"\n", mode);
        return 2;
    }
    return 0;
}
