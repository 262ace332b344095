/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "bench/alloc/test.h"

typedef struct list {
    bench_test *tests;
    size_t count;
} list;

static void add(list *l, const char *name, bench_test test) {
    if (l->count == BENCH_MOST_TESTS) return;
    snprintf(test.name, sizeof test.name, "%s%s", name, test.touch ? "-touched" : "");
    l->tests[l->count++] = test;
}

static void add_lifo(list *l, size_t depth, bool touch) {
    static const struct {
        const char *name;
        uint32_t size;
    } sizes[] = {{"64", 64}, {"1K", 1 << 10}, {"64K", 1 << 16}, {"1M", 1 << 20}, {"16M", 1 << 24}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        bench_test test = {.family = &bench_lifo, .threads = 1, .depth = depth, .touch = touch};
        test.least = test.most = sizes[i].size;
        char name[32];
        snprintf(name, sizeof name, "lifo-%s", sizes[i].name);
        add(l, name, test);
    }
}

/* One thread, two, and so on in powers of two, and as many as there may be. */
static void add_replace(list *l, unsigned threads, bool touch) {
    for (unsigned n = 1;; n = n * 2 < threads ? n * 2 : threads) {
        char name[32];
        snprintf(name, sizeof name, "rand-%u", n);
        add(l, name,
            (bench_test){
                .family = &bench_replace, .threads = n, .least = BENCH_LEAST, .most = BENCH_MOST, .touch = touch});
        if (n >= threads) return;
    }
}

static void add_handover(list *l, bool touch) {
    const bench_test test = {.family = &bench_handover, .threads = 2, .touch = touch};
    bench_test one_size = test, random = test;
    one_size.least = one_size.most = 1024;
    random.least = BENCH_LEAST, random.most = BENCH_MOST;
    add(l, "prodcons-1K", one_size);
    add(l, "prodcons-rand", random);
}

size_t bench_tests(unsigned threads, size_t depth, bench_test *out) {
    list l = {.tests = out};
    for (int touch = 0; touch < 2; touch++) {
        add_lifo(&l, depth, touch);
        add_replace(&l, threads, touch);
        add_handover(&l, touch);
    }
    /* Blocks that many are live at once: small ones, so that they fit any machine. Nothing is there to be touched. */
    add(&l, "lookup", (bench_test){.family = &bench_lookup, .threads = 1, .least = BENCH_LEAST, .most = 4096});
    return l.count;
}
