/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that knows nothing of the DLL loads it late, from eight threads at once, as a plug-in's host does; older
 * threads use it too. Freed by all, it must still be there: threads carry its exit callback.
 */
#include "../unit/support.h"

#include <opennuma/opennuma.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <windows.h>

enum { THREADS = 8 };

typedef struct functions {
    __typeof__(&onuma_runtime_create) runtime_create;
    __typeof__(&onuma_runtime_destroy) runtime_destroy;
    __typeof__(&onuma_device_find) device_find;
    __typeof__(&onuma_pool_create) pool_create;
    __typeof__(&onuma_pool_destroy) pool_destroy;
    __typeof__(&onuma_alloc) alloc;
    __typeof__(&onuma_free) free;
    __typeof__(&onuma_last_error) last_error;
} functions;

static bool find(HMODULE library, functions *f) {
#define FIND(name)                                                                                                     \
    do {                                                                                                               \
        FARPROC address = GetProcAddress(library, "onuma_" #name);                                                     \
        if (!address) return false;                                                                                    \
        memcpy(&f->name, &address, sizeof address);                                                                    \
    } while (0)
    FIND(runtime_create);
    FIND(runtime_destroy);
    FIND(device_find);
    FIND(pool_create);
    FIND(pool_destroy);
    FIND(alloc);
    FIND(free);
    FIND(last_error);
    return true;
}

static bool works(const functions *f) {
    onuma_runtime_desc desc = ONUMA_RUNTIME_DESC_INIT;
    onuma_runtime *rt;
    onuma_device *device;
    onuma_pool *pool;
    void *block;
    desc.config = "backends:host";
    if (f->runtime_create(&desc, &rt) != ONUMA_OK) return false;
    bool good = f->device_find(rt, "host", &device) == ONUMA_OK && f->pool_create(device, NULL, &pool) == ONUMA_OK;
    for (int i = 0; good && i < 100; i++) {
        good = f->alloc(pool, 1 + (size_t)i * 100, 0, NULL, &block) == ONUMA_OK;
        if (good) memset(block, i, 1 + (size_t)i * 100);
        good = good && f->free(block, NULL) == ONUMA_OK;
    }
    good = good && f->pool_destroy(pool) == ONUMA_OK && f->device_find(rt, "none", &device) != ONUMA_OK &&
           strstr(f->last_error(), "none") != NULL;
    f->runtime_destroy(rt);
    return good;
}

static HANDLE loaded, freed; /* events */
static functions older_use;  /* written before `loaded` */
static _Atomic int failures;

static DWORD WINAPI older_thread(void *argument) {
    WaitForSingleObject(loaded, INFINITE);
    if (!works(&older_use)) failures++;
    WaitForSingleObject(freed, INFINITE);
    if (!works(&older_use)) failures++; /* nobody holds it any more */
    return argument != NULL;
}

static DWORD WINAPI loading_thread(void *argument) {
    functions f;
    HMODULE library = LoadLibraryW(L"opennuma.dll");
    if (!library || !find(library, &f) || !works(&f)) failures++;
    if (library && !FreeLibrary(library)) failures++;
    return argument != NULL;
}

static void join_all(HANDLE *threads) {
    assert_int_equal(WaitForMultipleObjects(THREADS, threads, TRUE, 60000), WAIT_OBJECT_0);
    for (int i = 0; i < THREADS; i++)
        CloseHandle(threads[i]);
}

static void loads_late_and_stays(void **state) {
    (void)state;
    assert_null(GetModuleHandleW(L"opennuma.dll"));
    loaded = CreateEventW(NULL, TRUE, FALSE, NULL);
    freed = CreateEventW(NULL, TRUE, FALSE, NULL);
    HANDLE older[THREADS], loading[THREADS];
    for (int i = 0; i < THREADS; i++)
        older[i] = CreateThread(NULL, 0, older_thread, NULL, 0, NULL);
    for (int i = 0; i < THREADS; i++)
        loading[i] = CreateThread(NULL, 0, loading_thread, NULL, 0, NULL);
    join_all(loading);
    assert_int_equal(failures, 0);
    HMODULE library = LoadLibraryW(L"opennuma.dll");
    assert_non_null(library);
    assert_true(find(library, &older_use));
    SetEvent(loaded);
    for (int i = 0; i < 3; i++)
        FreeLibrary(library); /* more often than it was loaded */
    assert_ptr_equal(GetModuleHandleW(L"opennuma.dll"), library);
    SetEvent(freed);
    join_all(older);
    assert_int_equal(failures, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(loads_late_and_stays)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
