/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sleeping until woken or until memory is short.
 *
 * Two files tell of shortage. A trigger on memory.pressure of the process's own
 * control group, or else on the system's (/proc/pressure/memory): somebody stood
 * still for want of memory for 150 ms within 2 s. Shorter windows need
 * privileges. And memory.events of the control group, whose counters say that
 * the group has reached its limit. Either may be missing: a kernel without them,
 * version 1 of control groups, no right to set a trigger.
 */
#define _GNU_SOURCE
#include "os/private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define TRIGGER "some 150000 2000000"

enum { WAKE, STALLS, EVENTS, FILES };

struct onuma__os_watch {
    int files[FILES]; /* -1: there is none; poll leaves those out */
    uint64_t events;  /* the sum of the counters of memory.events when it was last read */
};

/* root/sys/fs/cgroup/<own group>/name of version 2. false: there is no such group. */
static bool group_file(const char *root, const char *name, char *path, size_t size) {
    char text[4096];
    (void)snprintf(path, size, "%s/proc/self/cgroup", root);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    const ssize_t n = read(file, text, sizeof text - 1);
    close(file);
    text[n > 0 ? n : 0] = '\0';
    const char *line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
    if (line == NULL) return false;
    line = strchr(line, '/');
    if (line == NULL) return false;
    const int length = snprintf(path, size, "%s/sys/fs/cgroup%.*s/%s", root, (int)strcspn(line, "\n"), line, name);
    return length > 0 && (size_t)length < size;
}

static int set_trigger(const char *path) {
    const int file = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) return -1;
    if (write(file, TRIGGER, sizeof TRIGGER) >= 0) return file; /* with its end, as the kernel wants it */
    close(file);
    return -1;
}

uint64_t onuma__os_count_events(const char *text) {
    static const char *const names[] = {"\nmax ", "\noom ", "\noom_kill "};
    uint64_t sum = 0, value;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *at = strstr(text, names[i]);
        if (at != NULL && sscanf(at + strlen(names[i]), "%" SCNu64, &value) == 1) sum += value;
    }
    return sum;
}

/* Reading also ends the state in which poll reports the file. */
static uint64_t read_events(int file) {
    char text[512] = "\n";
    const ssize_t n = pread(file, text + 1, sizeof text - 2, 0);
    text[n > 0 ? n + 1 : 1] = '\0';
    return onuma__os_count_events(text);
}

static const char *watch_pressure(const char *root, onuma__os_watch *watch) {
    char path[8192];
    if (group_file(root, "memory.pressure", path, sizeof path)) watch->files[STALLS] = set_trigger(path);
    if (watch->files[STALLS] < 0) {
        (void)snprintf(path, sizeof path, "%s/proc/pressure/memory", root);
        watch->files[STALLS] = set_trigger(path);
    }
    if (group_file(root, "memory.events", path, sizeof path)) {
        watch->files[EVENTS] = open(path, O_RDONLY | O_CLOEXEC);
        if (watch->files[EVENTS] >= 0) watch->events = read_events(watch->files[EVENTS]);
    }
    return watch->files[STALLS] >= 0 || watch->files[EVENTS] >= 0
               ? NULL
               : "this kernel lets nobody know: it needs PSI (Linux 6.5 for users other than root), or control groups "
                 "of version 2";
}

onuma_result onuma__os_watch_create_under(const char *root, bool pressure, onuma__os_watch **out, const char **why) {
    *out = NULL;
    *why = NULL;
    onuma__os_watch *watch = malloc(sizeof *watch);
    if (watch == NULL) return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for what a thread sleeps on");
    *watch = (onuma__os_watch){.files = {eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), -1, -1}};
    if (watch->files[WAKE] < 0) {
        const int error = errno;
        free(watch);
        return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "an eventfd: %s; raise ulimit -n",
                           onuma__os_error_text((unsigned long)error).text);
    }
    if (pressure) *why = watch_pressure(root, watch);
    *out = watch;
    return ONUMA_OK;
}

onuma_result onuma__os_watch_create(bool pressure, onuma__os_watch **out, const char **why) {
    return onuma__os_watch_create_under("", pressure, out, why);
}

static onuma__os_pressure look(onuma__os_watch *watch, const struct pollfd *polled) {
    uint64_t count;
    if (polled[WAKE].revents != 0) (void)!read(watch->files[WAKE], &count, sizeof count);
    onuma__os_pressure found = (polled[STALLS].revents & POLLPRI) != 0 ? ONUMA__OS_PRESSED : ONUMA__OS_QUIET;
    if (polled[EVENTS].revents != 0) {
        const uint64_t events = read_events(watch->files[EVENTS]);
        if (events != watch->events) found = ONUMA__OS_STARVED;
        watch->events = events;
    }
    /* The group is gone, and with it its trigger. */
    if ((polled[STALLS].revents & POLLERR) != 0 && found == ONUMA__OS_QUIET) {
        close(watch->files[STALLS]);
        watch->files[STALLS] = -1;
    }
    return found;
}

onuma__os_pressure onuma__os_watch_sleep(onuma__os_watch *watch, uint64_t ns) {
    struct pollfd polled[FILES] = {
        {watch->files[WAKE], POLLIN, 0}, {watch->files[STALLS], POLLPRI, 0}, {watch->files[EVENTS], POLLPRI, 0}};
    const uint64_t longest = 86400u * UINT64_C(1000000000);
    if (ns > longest) ns = longest;
    const struct timespec time = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
    return ppoll(polled, FILES, &time, NULL) > 0 ? look(watch, polled) : ONUMA__OS_QUIET;
}

void onuma__os_watch_wake(onuma__os_watch *watch) {
    const uint64_t one = 1;
    (void)!write(watch->files[WAKE], &one, sizeof one);
}

void onuma__os_watch_destroy(onuma__os_watch *watch) {
    if (watch == NULL) return;
    for (size_t i = 0; i < FILES; i++)
        if (watch->files[i] >= 0) close(watch->files[i]);
    free(watch);
}
