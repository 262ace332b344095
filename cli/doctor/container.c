/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor/container.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/files.h"
#include "doctor/graphics.h"

static container_kind kind_of(const char *name, const char *evidence) {
    container_kind kind;
    snprintf(kind.name, sizeof kind.name, "%s", name);
    snprintf(kind.evidence, sizeof kind.evidence, "%s", evidence);
    return kind;
}

container_kind container_of_process(const char *root) {
    if (path_exists(path_of(root, "/.dockerenv").text)) return kind_of("docker", "/.dockerenv exists");
    if (path_exists(path_of(root, "/run/.containerenv").text)) return kind_of("podman", "/run/.containerenv exists");
    char line[32];
    if (read_line(path_of(root, "/run/systemd/container").text, line, sizeof line) && line[0])
        return kind_of(line, "/run/systemd/container names it");
    const char *variable = getenv("container");
    if (variable && *variable) return kind_of(variable, "the variable \"container\" is set");
    static const char *const names[] = {"docker", "lxc", "kubepods", "libpod", "containerd"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (file_mentions(path_of(root, "/proc/1/cgroup").text, names[i]))
            return kind_of(names[i], "/proc/1/cgroup names it");
    return kind_of("", "");
}

finding_text container_remedy(const container_kind *kind, unsigned vendor) {
    finding_text remedy;
    if (strcmp(kind->name, "kubepods") == 0)
        finding_say(&remedy, "give the pod the device through its vendor's device plugin");
    else if (vendor == PCI_NVIDIA)
        finding_say(&remedy, "start the container with --gpus all (with NVIDIA's container toolkit)");
    else if (strcmp(kind->name, "lxc") == 0)
        finding_say(&remedy, "lxc config device add CONTAINER gpu gpu");
    else
        finding_say(&remedy,
                    "start the container with: %s run --device /dev/dri --group-add \"$(stat -c %%g "
                    "/dev/dri/renderD128)\"",
                    strcmp(kind->name, "podman") == 0 ? "podman" : "docker");
    return remedy;
}

static void examine_windows_subsystem(findings *list, const packages *system, const char *root) {
    if (!file_mentions(path_of(root, "/proc/sys/kernel/osrelease").text, "icrosoft")) return;
    bool passes = path_exists(path_of(root, "/dev/dxg").text);
    finding *f = findings_add(list, passes ? FINDING_NOTE : FINDING_BLOCKS, "graphics");
    finding_say(&f->evidence, "the kernel is Windows' (/proc/sys/kernel/osrelease), /dev/dxg %s",
                passes ? "exists" : "does not exist");
    if (passes) {
        finding_say(&f->lacks, "graphics come through Windows' subsystem for Linux, with no /dev/dri");
        finding_say(&f->remedy, "Intel: %s %s, with Windows' driver 30.0.100.9955 or later", system->install,
                    system->intel);
    } else {
        finding_say(&f->lacks, "Windows passes no graphics on to this Linux");
        finding_say(&f->remedy, "in Windows: wsl --update, install its graphics driver anew, then wsl --shutdown");
    }
}

void container_examine(findings *list, const packages *system, const char *root) {
    examine_windows_subsystem(list, system, root);
    container_kind kind = container_of_process(root);
    if (!kind.name[0] || path_exists(path_of(root, "/dev/dri").text)) return;
    finding *f = findings_add(list, FINDING_NOTE, "container");
    finding_say(&f->lacks,
                "this is a container (%s) without /dev/dri: the host's graphics, if it has any, are not in here",
                kind.name);
    finding_say(&f->evidence, "%s, /dev/dri does not exist", kind.evidence);
    f->remedy = container_remedy(&kind, PCI_INTEL);
}
