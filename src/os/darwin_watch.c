/* SPDX-License-Identifier: Apache-2.0 */
/* Sleeping until woken. macOS tells of memory pressure through queues of libdispatch only, which a program may not want. */
#include "os/private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

struct onuma__os_watch {
    int ends[2]; /* of a pipe */
};

onuma_result onuma__os_watch_create(bool pressure, onuma__os_watch **out, const char **why) {
    *out = NULL;
    *why = pressure ? "macOS tells programs of it in another way" : NULL;
    onuma__os_watch *watch = malloc(sizeof *watch);
    if (watch == NULL) return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for what a thread sleeps on");
    if (pipe(watch->ends) != 0) {
        const int error = errno;
        free(watch);
        return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "a pipe: %s; raise ulimit -n",
                           onuma__os_error_text((unsigned long)error).text);
    }
    for (size_t i = 0; i < 2; i++) {
        (void)fcntl(watch->ends[i], F_SETFD, FD_CLOEXEC);
        (void)fcntl(watch->ends[i], F_SETFL, O_NONBLOCK);
    }
    *out = watch;
    return ONUMA_OK;
}

onuma__os_pressure onuma__os_watch_sleep(onuma__os_watch *watch, uint64_t ns) {
    struct pollfd polled = {watch->ends[0], POLLIN, 0};
    const uint64_t longest = 1000000000, ms = ns / 1000000u + (ns % 1000000u != 0);
    char bytes[64];
    if (poll(&polled, 1, (int)(ms < longest ? ms : longest)) > 0) (void)!read(watch->ends[0], bytes, sizeof bytes);
    return ONUMA__OS_QUIET;
}

void onuma__os_watch_wake(onuma__os_watch *watch) {
    (void)!write(watch->ends[1], "", 1);
}

void onuma__os_watch_destroy(onuma__os_watch *watch) {
    if (watch == NULL) return;
    close(watch->ends[0]);
    close(watch->ends[1]);
    free(watch);
}
