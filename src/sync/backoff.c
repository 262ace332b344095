/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting by polling. OpenCL has no timed wait and a host timeline no wait at
 * all, so every wait of this layer is a loop around a poll. Work that is nearly
 * done is met by the yields; the sleeps keep a long wait from burning a core.
 */
#include "sync/internal.h"

#define YIELDS 16u
#define FIRST_SLEEP 10000u     /* 10 us */
#define LONGEST_SLEEP 1000000u /* 1 ms: the most that a wait outlasts its cause */

void onuma__backoff_start(onuma__backoff *backoff, uint64_t timeout_ns) {
    backoff->rounds = 0;
    backoff->delay = FIRST_SLEEP;
    if (timeout_ns == 0 || timeout_ns == ONUMA_TIMEOUT_INFINITE) {
        backoff->deadline = timeout_ns;
        return;
    }
    uint64_t now = onuma__os_now();
    backoff->deadline = timeout_ns < UINT64_MAX - now ? now + timeout_ns : UINT64_MAX;
}

bool onuma__backoff_pause(onuma__backoff *backoff) {
    uint64_t left = UINT64_MAX;
    if (backoff->deadline == 0) return false;
    if (backoff->deadline != UINT64_MAX) {
        uint64_t now = onuma__os_now();
        if (now >= backoff->deadline) return false;
        left = backoff->deadline - now;
    }
    if (backoff->rounds < YIELDS) {
        backoff->rounds++;
        onuma__os_yield();
        return true;
    }
    onuma__os_sleep(backoff->delay < left ? backoff->delay : left);
    backoff->delay = backoff->delay < LONGEST_SLEEP / 2 ? backoff->delay * 2 : LONGEST_SLEEP;
    return true;
}
