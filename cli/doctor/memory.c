/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor/memory.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "doctor/files.h"
#include "units.h"

static const char about[] = "memory";

/* Drivers map and reserve many times what they use; below this some do not start. */
static const uint64_t address_space_wanted = (uint64_t)16 << 30;

static void examine_limits(findings *list) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        bool tight = limit.rlim_cur < address_space_wanted;
        finding *f = findings_add(list, tight ? FINDING_SLOWS : FINDING_NOTE, about);
        finding_say(&f->lacks,
                    "the address space of each process is limited, and drivers and pools reserve more than they "
                    "use");
        finding_say(&f->evidence, "ulimit -v: %s", cli_bytes(limit.rlim_cur).text);
        finding_say(&f->remedy, "ulimit -v unlimited");
    }
    if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        finding *f = findings_add(list, FINDING_NOTE, about);
        finding_say(&f->lacks, "the memory that a process may lock is limited; some drivers lock what they share");
        finding_say(&f->evidence, "ulimit -l: %s", cli_bytes(limit.rlim_cur).text);
        finding_say(&f->remedy,
                    "if a driver fails to share large blocks: ulimit -l unlimited (in /etc/security/limits.conf: "
                    "memlock)");
    }
}

/* A line "MemTotal:  123 kB" of /proc/meminfo, in bytes; 0 if there is none. */
static uint64_t meminfo(const char *root, const char *name) {
    FILE *file = fopen(path_of(root, "/proc/meminfo").text, "r");
    if (!file) return 0;
    char line[128];
    uint64_t bytes = 0;
    size_t length = strlen(name);
    while (!bytes && fgets(line, sizeof line, file))
        if (strncmp(line, name, length) == 0 && line[length] == ':')
            bytes = strtoull(line + length + 1, NULL, 10) * 1024;
    fclose(file);
    return bytes;
}

/* The limit in a file of the control group; 0 if there is none. */
static uint64_t limit_in(const char *path) {
    char line[64];
    if (!read_line(path, line, sizeof line) || strcmp(line, "max") == 0) return 0;
    return strtoull(line, NULL, 10);
}

/* This process's group, in the unified hierarchy ("0::/path") or in that of the memory controller ("4:memory:/path").
 * Inside a container the path is the host's, and its own group is what is mounted. */
static void examine_control_group(findings *list, const char *root) {
    uint64_t total = meminfo(root, "MemTotal"), least = 0;
    file_path where = {.text = ""};
    FILE *file = fopen(path_of(root, "/proc/self/cgroup").text, "r");
    char line[512];
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        const char *unified = strncmp(line, "0::", 3) == 0 ? line + 3 : NULL;
        const char *old = strstr(line, ":memory:");
        if (!unified && !old) continue;
        const char *group = unified ? unified : old + strlen(":memory:");
        const file_path paths[] = {
            path_of(root, "/sys/fs/cgroup%s%s/%s", unified ? "" : "/memory", group,
                    unified ? "memory.max" : "memory.limit_in_bytes"),
            path_of(root, "/sys/fs/cgroup%s/%s", unified ? "" : "/memory",
                    unified ? "memory.max" : "memory.limit_in_bytes"),
        };
        for (size_t i = 0; i < 2; i++) {
            uint64_t limit = limit_in(paths[i].text);
            if (!limit || (least && limit >= least)) continue;
            least = limit;
            where = paths[i];
        }
    }
    if (file) fclose(file);
    if (!least || !total || least >= total) return;
    finding *f = findings_add(list, FINDING_NOTE, about);
    finding_say(&f->lacks, "a control group gives less memory than the machine has; beyond it the process is ended");
    finding_say(&f->evidence, "%s: %s of %s", where.text, cli_bytes(least).text, cli_bytes(total).text);
    finding_say(&f->remedy, "raise it where it was set: docker run --memory, systemd's MemoryMax=");
}

static void examine_system(findings *list, const char *root) {
    char line[128];
    if (read_line(path_of(root, "/proc/sys/vm/overcommit_memory").text, line, sizeof line) && line[0] == '2') {
        finding *f = findings_add(list, FINDING_SLOWS, about);
        finding_say(&f->lacks, "the kernel promises no more memory than it has, so what is reserved counts as used");
        finding_say(&f->evidence, "/proc/sys/vm/overcommit_memory is 2");
        finding_say(&f->remedy, "sudo sysctl vm.overcommit_memory=0");
    }
    if (read_line(path_of(root, "/sys/kernel/mm/transparent_hugepage/enabled").text, line, sizeof line) &&
        strstr(line, "[never]")) {
        finding *f = findings_add(list, FINDING_SLOWS, about);
        finding_say(&f->lacks, "huge pages are off: large blocks take longer to get and to walk through");
        finding_say(&f->evidence, "/sys/kernel/mm/transparent_hugepage/enabled: %s", line);
        finding_say(&f->remedy, "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled");
    }
    if (meminfo(root, "MemTotal") && !meminfo(root, "SwapTotal")) {
        finding *f = findings_add(list, FINDING_NOTE, about);
        finding_say(&f->lacks, "there is no swap: when memory runs out, processes are ended");
        finding_say(&f->evidence, "SwapTotal in /proc/meminfo is 0");
        finding_say(&f->remedy, "none is needed where memory suffices; to have some: a swap file, or zram");
    }
}

void memory_examine(findings *list, const char *root) {
    examine_limits(list);
    examine_control_group(list, root);
    examine_system(list, root);
}
