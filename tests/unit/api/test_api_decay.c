/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After all is freed the process holds no more than it did after a first round: by a trim, and by decay alone with no
 * call of the program. On whatever device; what drivers keep for good they have by then.
 */
#include "api.h"

#include <time.h>
#if defined(__linux__)
#include <unistd.h>
#endif

#define MIB ((size_t)1 << 20)
enum { ROUNDS = 6, LARGE = 6, SMALL = 2000 };

/* Resident bytes; 0 where that is not told. */
static uint64_t resident(void) {
#if defined(__linux__)
    unsigned long long size = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL) return 0;
    if (fscanf(file, "%llu %llu", &size, &pages) != 2) pages = 0;
    fclose(file);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
#else
    return 0;
#endif
}

static void use_memory(onuma_pool *pool) {
    static void *small[SMALL];
    void *large[LARGE];
    for (size_t i = 0; i < LARGE; i++) {
        OK(onuma_alloc(pool, (i + 1) * MIB, 0, NULL, &large[i]));
        api_fill(large[i], (i + 1) * MIB, (unsigned char)i);
    }
    for (size_t i = 0; i < SMALL; i++)
        OK(onuma_alloc(pool, 100 + i, 0, NULL, &small[i]));
    for (size_t i = 0; i < SMALL; i++)
        OK(onuma_free(small[i], NULL));
    for (size_t i = 0; i < LARGE; i++)
        OK(onuma_free(large[i], NULL));
}

static void trim(onuma_pool *pool) {
    OK(onuma_pool_trim(pool, 0, NULL));
}

/* Asking for statistics lets nothing decay. */
static void wait(onuma_pool *pool) {
    const struct timespec moment = {.tv_nsec = 1000000};
    while (api_stats(pool).reserved_bytes != 0)
        nanosleep(&moment, NULL);
}

static void check_rounds(const char *settings, void (*give_back)(onuma_pool *pool)) {
    onuma_runtime *rt = api_runtime(settings, NULL);
    onuma_pool *pool = api_pool(api_device(rt), 0);
    uint64_t first = 0;
    for (int round = 0; round < ROUNDS; round++) {
        use_memory(pool);
        give_back(pool);
        assert_int_equal(api_stats(pool).reserved_bytes, 0);
        const uint64_t now = resident(), allowed = first / 100 > MIB ? first / 100 : MIB;
        if (round == 0)
            first = now;
        else if (now > first + allowed)
            fail_msg("%llu bytes are resident after round %d, %llu were after the first", (unsigned long long)now,
                     round, (unsigned long long)first);
    }
    OK(onuma_pool_destroy(pool));
    onuma_runtime_destroy(rt);
}

static void by_trims(void **state) {
    (void)state;
    check_rounds("decay.half_life:0", trim);
}

static void by_decay_alone(void **state) {
    (void)state;
    check_rounds("decay.half_life:16ms,decay.floor:0,decay.thread:on", wait);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_trims),
        cmocka_unit_test(by_decay_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
