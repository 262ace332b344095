/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory there is: the machine's, and the least that the control groups above the process allow.
 *
 * A group's limit binds all groups below it, so the path is walked from the process's own group up to the root. In a
 * container the path may be the host's, which does not exist under the container's mount: the walk then finds files
 * only near the root, which is where the container's own limit is shown. A group's page cache of files counts as its
 * use but is given up on demand, so the inactive part of it is available.
 */
#define _GNU_SOURCE
#include "os/private.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

typedef struct capacity {
    uint64_t total, available;
} capacity;

/* One kind of control group: where its files are and what they are called. */
typedef struct group_kind {
    const char *mount, *limit, *usage, *inactive; /* `inactive` is a line of memory.stat */
} group_kind;

static const group_kind version_2 = {"/sys/fs/cgroup", "memory.max", "memory.current", "\ninactive_file "};
static const group_kind version_1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                                     "\ntotal_inactive_file "};

enum { PATH_BYTES = 1024, FILE_BYTES = 8192 };

/* The beginning of the file root/path as text with a newline before it, so that every line can be found by "\nname". */
static bool read_file(const char *root, const char *name, char text[FILE_BYTES]) {
    char path[2 * PATH_BYTES];
    int length = snprintf(path, sizeof path, "%s%s", root, name);
    if (length < 0 || (size_t)length >= sizeof path) return false;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    size_t used = 1;
    ssize_t n;
    while (used < FILE_BYTES - 1 && (n = read(file, text + used, FILE_BYTES - 1 - used)) > 0)
        used += (size_t)n;
    close(file);
    text[0] = '\n';
    text[used] = '\0';
    return used > 1;
}

/* The number after `label`; false if there is none ("max", say). */
static bool number_after(const char *text, const char *label, uint64_t *value) {
    const char *at = strstr(text, label);
    return at && sscanf(at + strlen(label), "%" SCNu64, value) == 1;
}

/* The walk's present place: one group of one kind. */
typedef struct group {
    const group_kind *kind;
    const char *root; /* "/" is under it */
    char path[PATH_BYTES];
} group;

static bool read_group_number(const group *g, const char *file, const char *label, uint64_t *value) {
    char name[PATH_BYTES + 64];
    char text[FILE_BYTES];
    snprintf(name, sizeof name, "%s%s/%s", g->kind->mount, g->path, file);
    return read_file(g->root, name, text) && number_after(text, label, value);
}

static void apply_group(const group *g, capacity *c) {
    uint64_t limit, usage, inactive = 0;
    if (!read_group_number(g, g->kind->limit, "\n", &limit)) return;
    if (limit < c->total) c->total = limit;
    if (!read_group_number(g, g->kind->usage, "\n", &usage)) return;
    read_group_number(g, "memory.stat", g->kind->inactive, &inactive);
    usage -= inactive < usage ? inactive : usage;
    uint64_t left = usage < limit ? limit - usage : 0;
    if (left < c->available) c->available = left;
}

static void apply_groups(const char *root, const group_kind *kind, const char *begin, capacity *c) {
    group g = {.kind = kind, .root = root};
    size_t length = strcspn(begin, "\n");
    if (length >= sizeof g.path) return;
    memcpy(g.path, begin, length);
    if (strcmp(g.path, "/") == 0) g.path[0] = '\0';
    for (;;) {
        apply_group(&g, c);
        char *slash = strrchr(g.path, '/');
        if (!slash) return;
        *slash = '\0';
    }
}

/* /proc/self/cgroup has a line "number:controllers:path" for each hierarchy; version 2's is "0::path". */
static void apply_control_groups(const char *root, capacity *c) {
    char text[FILE_BYTES];
    if (!read_file(root, "/proc/self/cgroup", text)) return;
    const char *path = strstr(text, "\n0::");
    if (path) apply_groups(root, &version_2, path + strlen("\n0::"), c);
    path = strstr(text, ":memory:");
    if (path) apply_groups(root, &version_1, path + strlen(":memory:"), c);
}

void onuma__os_memory_under(const char *root, uint64_t *total, uint64_t *available) {
    capacity c = {0, 0};
    char text[FILE_BYTES];
    uint64_t total_kib, available_kib;
    struct sysinfo info;
    if (read_file(root, "/proc/meminfo", text) && number_after(text, "\nMemTotal:", &total_kib) &&
        number_after(text, "\nMemAvailable:", &available_kib)) {
        c.total = total_kib * 1024;
        c.available = available_kib * 1024;
    } else if (sysinfo(&info) == 0) {
        c.total = (uint64_t)info.totalram * info.mem_unit;
        c.available = ((uint64_t)info.freeram + info.bufferram) * info.mem_unit;
    }
    apply_control_groups(root, &c);
    *total = c.total;
    *available = c.available < c.total ? c.available : c.total;
}

void onuma__os_memory(uint64_t *total, uint64_t *available) {
    onuma__os_memory_under("", total, available);
}
