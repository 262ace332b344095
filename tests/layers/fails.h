/* SPDX-License-Identifier: Apache-2.0 */
/* What a test finds in the layer `fails`, by the name layer_fails, and does with it. */
#ifndef ONUMA_TESTS_LAYER_FAILS_H
#define ONUMA_TESTS_LAYER_FAILS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct fails_live {
    long contexts, queues, buffers, events, pointers; /* references held (contexts to events), SVM allocations */
} fails_live;

typedef struct fails_table {
    /*
     * From now on the n-th call (1: the next) fails with the code; n 0: none. `name` NULL: any entry point, else the
     * n-th of that one. `for_ever`: all after it too. Counting starts anew.
     */
    void (*arm)(const char *name, uint64_t n, int32_t code, bool for_ever);
    /* The n-th event made from now on ends with that status, when the driver is through with its work. */
    void (*arm_event)(uint64_t n, int32_t status);
    /* As arm for ever, but the size or number that a query answers is off by that much. */
    void (*arm_lie)(const char *name, uint64_t n, int32_t off);
    uint64_t (*events)(void);    /* made since arm_event, of those that count */
    uint64_t (*calls)(void);     /* since the last arm, of what it counts */
    const char *(*failed)(void); /* the entry point that failed last since then; NULL: none */
    fails_live (*live)(void);
    void (*spare)(bool yes); /* the calling thread's calls neither count nor fail: the test's own */
} fails_table;

#endif
