/* SPDX-License-Identifier: Apache-2.0 */
/* A thousand lives of a runtime, each with threads that come and go, leave neither handles nor memory behind. */
#include "../unit/api/api.h"

#include "system.h"

enum { WARM_UP = 100, CYCLES = 1000, THREADS = 2 };

static DWORD WINAPI use_pool(void *argument) {
    void *blocks[20];
    for (size_t i = 0; i < 20; i++)
        if (onuma_alloc(argument, 1 + i * 3000, 0, NULL, &blocks[i]) != ONUMA_OK) return 1;
    for (size_t i = 0; i < 20; i++)
        if (onuma_free(blocks[i], NULL) != ONUMA_OK) return 1;
    return onuma_free(blocks[0], NULL) == ONUMA_OK; /* refused, which gives the thread a text to lose */
}

static void cycle(const char *config) {
    onuma_runtime *rt = api_runtime(config, NULL);
    onuma_device *device;
    onuma_pool *pool;
    HANDLE threads[THREADS];
    OK(onuma_device_find(rt, "host", &device));
    OK(onuma_pool_create(device, NULL, &pool));
    for (size_t i = 0; i < THREADS; i++) {
        threads[i] = CreateThread(NULL, 0, use_pool, pool, 0, NULL);
        assert_non_null(threads[i]);
    }
    assert_int_equal(use_pool(pool), 0);
    for (size_t i = 0; i < THREADS; i++) {
        DWORD code = 1;
        assert_int_equal(WaitForSingleObject(threads[i], 60000), WAIT_OBJECT_0);
        assert_true(GetExitCodeThread(threads[i], &code));
        assert_int_equal(code, 0);
        CloseHandle(threads[i]);
    }
    OK(onuma_pool_destroy(pool));
    onuma_runtime_destroy(rt);
}

/* By trying each, since Wine's GetProcessHandleCount says 0. A leak of one handle in each cycle would fill the span. */
static unsigned handles(void) {
    unsigned count = 0;
    DWORD flags;
    for (uintptr_t handle = 4; handle < (uintptr_t)4 * 4096; handle += 4)
        count += GetHandleInformation((HANDLE)handle, &flags) != 0;
    return count;
}

static void nothing_grows(const char *config) {
    for (int i = 0; i < WARM_UP; i++)
        cycle(config);
    const unsigned handles_before = handles();
    const size_t memory_before = system_resident();
    assert_true(handles_before > 0 && memory_before > 0);
    for (int i = 0; i < CYCLES; i++)
        cycle(config);
    const size_t memory = system_resident();
    print_message("%s: handles %u, then %u; memory %zu KiB, then %zu KiB\n", config, handles_before, handles(),
                  memory_before >> 10, memory >> 10);
    assert_int_equal(handles(), handles_before);
    assert_true(memory < memory_before + (1 << 20)); /* a leak of one page in each cycle is four times that */
}

static void of_the_host_alone(void **state) {
    (void)state;
    nothing_grows("backends:host");
}

static void with_every_driver_opened(void **state) {
    (void)state;
    nothing_grows("backends:all");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(of_the_host_alone), cmocka_unit_test(with_every_driver_opened)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
