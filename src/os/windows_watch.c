/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sleeping until woken or until memory is low, of which Windows tells by an
 * object that stays signalled as long as it is. Once it was told of, it is left
 * out of the waits for a while, or they would all end at once.
 */
#include "os/windows_private.h"

#include <stdlib.h>

#define AGAIN UINT64_C(1000000000) /* ns from one report to the next */

struct onuma__os_watch {
    HANDLE wake;   /* an event that one wait resets */
    HANDLE low;    /* NULL: not wanted, or not to be had */
    uint64_t next; /* when to look at `low` again */
};

onuma_result onuma__os_watch_create(bool pressure, onuma__os_watch **out, const char **why) {
    *out = NULL;
    *why = NULL;
    onuma__os_watch *watch = calloc(1, sizeof *watch);
    if (watch == NULL) return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for what a thread sleeps on");
    watch->wake = CreateEventW(NULL, FALSE, FALSE, NULL);
    if (watch->wake == NULL) {
        onuma__os_error error = onuma__os_error_text(GetLastError());
        free(watch);
        return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "an event: %s; close other handles", error.text);
    }
    if (pressure) watch->low = CreateMemoryResourceNotification(LowMemoryResourceNotification);
    if (pressure && watch->low == NULL) *why = "this Windows has no notification of low memory";
    *out = watch;
    return ONUMA_OK;
}

onuma__os_pressure onuma__os_watch_sleep(onuma__os_watch *watch, uint64_t ns) {
    const uint64_t longest = 0x7fffffff, now = onuma__os_now(); /* ms; INFINITE is special */
    const HANDLE handles[] = {watch->wake, watch->low};
    const bool rests = watch->low != NULL && now < watch->next;
    if (rests && ns > watch->next - now) ns = watch->next - now;
    const uint64_t ms = ns / 1000000u + (ns % 1000000u != 0);
    const DWORD count = watch->low != NULL && !rests ? 2 : 1;
    if (WaitForMultipleObjects(count, handles, FALSE, (DWORD)(ms < longest ? ms : longest)) != WAIT_OBJECT_0 + 1)
        return ONUMA__OS_QUIET;
    watch->next = onuma__os_now() + AGAIN;
    return ONUMA__OS_PRESSED;
}

void onuma__os_watch_wake(onuma__os_watch *watch) {
    SetEvent(watch->wake);
}

void onuma__os_watch_destroy(onuma__os_watch *watch) {
    if (watch == NULL) return;
    CloseHandle(watch->wake);
    if (watch->low != NULL) CloseHandle(watch->low);
    free(watch);
}
