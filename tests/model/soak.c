/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Four threads hold random blocks, much memory and little in turn, for as many
 * seconds as the first argument says (20). Each time they hold little, what the
 * pool holds must come down to that, by decay alone; and when they hold much it
 * must hold no more, on the average, than in the first fifth of the time. Says how
 * many half-lives it took.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <opennuma/opennuma.h>

#define MIB ((size_t)1 << 20)
#define HALF_LIFE_MS 250
#define CONFIG "backends:host,pool.cache:1m,decay.half_life:250ms,decay.thread:on"
enum { THREADS = 4, SLOTS = 4096 };

static const size_t much = 64 * MIB, little = 4 * MIB; /* of each thread */

static onuma_pool *pool;
static _Atomic size_t wanted; /* bytes of each thread */
static _Atomic bool over;

static void check(onuma_result r) {
    if (r == ONUMA_OK) return;
    fprintf(stderr, "%s: %s\n", onuma_result_name(r), onuma_last_error());
    exit(1);
}

static double milliseconds(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void pause_ms(long ms) {
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

static unsigned next_random(unsigned *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* One block comes or goes: the nearer to what is wanted the more evenly. */
static void change_one(unsigned *seed, void **blocks, size_t *sizes, size_t *held) {
    const unsigned i = next_random(seed) % SLOTS;
    if (blocks[i] != NULL) {
        check(onuma_free(blocks[i], NULL));
        *held -= sizes[i];
        blocks[i] = NULL;
    } else if (*held < wanted) {
        sizes[i] = (size_t)(64 + next_random(seed) % 64) << next_random(seed) % 14;
        check(onuma_alloc(pool, sizes[i], 0, NULL, &blocks[i]));
        memset(blocks[i], (int)i, sizes[i] < 4096 ? sizes[i] : 4096);
        *held += sizes[i];
    }
}

static void *live(void *argument) {
    unsigned seed = *(unsigned *)argument;
    void **blocks = calloc(SLOTS, sizeof *blocks);
    size_t *sizes = calloc(SLOTS, sizeof *sizes), held = 0;
    for (unsigned n = 0; !over; n++) {
        change_one(&seed, blocks, sizes, &held);
        if (n % 256 == 0) pause_ms(1);
    }
    for (size_t i = 0; i < SLOTS; i++)
        check(onuma_free(blocks[i], NULL));
    free(blocks);
    free(sizes);
    return NULL;
}

static onuma_pool_stats stats(void) {
    onuma_pool_stats s = ONUMA_POOL_STATS_INIT;
    check(onuma_pool_get_stats(pool, &s));
    return s;
}

/* Until the threads hold much; the most that was reserved meanwhile. */
static uint64_t let_grow(void) {
    check(onuma_pool_reset_peak(pool));
    wanted = much;
    while (stats().in_use_bytes < THREADS * much * 3 / 4)
        pause_ms(10);
    pause_ms(2 * HALF_LIFE_MS);
    return stats().reserved_bytes_peak;
}

/* Until they hold little, and then the pool does too: half-lives that this took. Whatever is not given back in time
 * makes the test run into its time limit. */
static double let_shrink(void) {
    wanted = little;
    while (stats().in_use_bytes > THREADS * little * 5 / 4)
        pause_ms(10);
    const double from = milliseconds();
    /* Caches of each thread, the pages that little blocks keep, and what is idle only since a moment. */
    while (stats().reserved_bytes > THREADS * (2 * little + 8 * MIB))
        pause_ms(10);
    return (milliseconds() - from) / HALF_LIFE_MS;
}

int main(int argc, char **argv) {
    const double seconds = argc > 1 ? atof(argv[1]) : 20, start = milliseconds(), end = start + seconds * 1e3;
    onuma_runtime_desc desc = ONUMA_RUNTIME_DESC_INIT;
    onuma_runtime *rt;
    onuma_device *host;
    pthread_t threads[THREADS];
    unsigned seeds[THREADS];
    desc.config = CONFIG;
    check(onuma_runtime_create(&desc, &rt));
    check(onuma_device_find(rt, "host", &host));
    check(onuma_pool_create(host, NULL, &pool));
    for (unsigned i = 0; i < THREADS; i++) {
        seeds[i] = i + 1;
        if (pthread_create(&threads[i], NULL, live, &seeds[i]) != 0) return 1;
    }
    double early = 0, late = 0, slowest = 0, all = 0; /* sums of MiB; half-lives */
    unsigned rounds = 0, early_rounds = 0;
    for (; milliseconds() < end || rounds < 4; rounds++) {
        const double peak = (double)let_grow() / (double)MIB;
        const bool is_early = milliseconds() < start + (end - start) / 5 || rounds < 2;
        *(is_early ? &early : &late) += peak;
        early_rounds += is_early;
        const double took = let_shrink();
        if (took > slowest) slowest = took;
        all += took;
    }
    early /= early_rounds;
    late /= rounds - early_rounds;
    over = true;
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    check(onuma_pool_trim(pool, 0, NULL));
    const uint64_t left = stats().reserved_bytes;
    onuma_runtime_destroy(rt);
    printf(
        "%u rounds; at their peaks reserved %.1f MiB in the first fifth, %.1f MiB later, on the average; %.1f MiB at "
        "the end; down within %.1f half-lives, %.1f at most\n",
        rounds, early, late, (double)left / (double)MIB, all / rounds, slowest);
    return left == 0 && late <= early * 1.05 ? 0 : 1;
}
