/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "doctor/nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor/container.h"
#include "doctor/files.h"

enum { GROUP_READS_AND_WRITES = 060 };

void node_say_refusal(finding *f, const node_refusal *r) {
    finding_say(&f->lacks, "%s may not be opened by the user %s", r->node, r->user);
    finding_say(&f->evidence,
                "open(\"%s\"): %s; group %s (%ld), mode %03o; %s is %sa member, this session %s the group", r->node,
                strerror(r->error), r->group[0] ? r->group : "without a name", r->group_id, r->mode, r->user,
                r->in_file ? "" : "not ", r->in_session ? "has" : "has not");
    if (r->error == EPERM && r->in_container)
        finding_say(&f->remedy, "start the container with --device /dev/dri: a node made inside it is not enough");
    else if (r->error != EACCES)
        finding_say(&f->remedy, "the kernel's driver refuses it: see sudo dmesg | grep -i drm");
    else if (r->in_session || !(r->mode & GROUP_READS_AND_WRITES))
        finding_say(&f->remedy, "its mode keeps the group out: sudo chmod 660 %s (for good: a udev rule)", r->node);
    else if (r->in_container)
        finding_say(&f->remedy, "start the container with --group-add %ld", r->group_id);
    else if (r->in_file)
        finding_say(&f->remedy,
                    "log out and in again, since this session is older than the membership (for one shell: newgrp "
                    "%s)",
                    r->group);
    else if (r->group[0] && strcmp(r->group, "root") != 0)
        finding_say(&f->remedy, "sudo usermod -aG %s $USER, then log out and in again", r->group);
    else
        finding_say(&f->remedy,
                    "sudo groupadd -f render && sudo chgrp render %s && sudo usermod -aG render $USER, then log "
                    "out and in again",
                    r->node);
}

static bool session_has(gid_t group) {
    if (getegid() == group) return true;
    int count = getgroups(0, NULL);
    if (count <= 0) return false;
    gid_t *groups = cli_allocate((size_t)count * sizeof *groups);
    count = getgroups(count, groups);
    bool found = false;
    for (int i = 0; i < count; i++)
        found = found || groups[i] == group;
    free(groups);
    return found;
}

static bool names(char *const *members, const char *user) {
    for (; *members; members++)
        if (strcmp(*members, user) == 0) return true;
    return false;
}

bool node_examine(findings *list, const char *root, const char *node) {
    file_path path = path_of(root, "/dev/dri/%s", node);
    int opened = open(path.text, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    int error = errno;
    if (opened >= 0) {
        close(opened);
        return true;
    }
    struct stat about;
    if (stat(path.text, &about) != 0) about = (struct stat){.st_gid = 0};
    char user[64];
    const struct passwd *me = getpwuid(geteuid());
    if (me)
        snprintf(user, sizeof user, "%s", me->pw_name);
    else
        snprintf(user, sizeof user, "number %u", (unsigned)geteuid());
    const struct group *group = getgrgid(about.st_gid);
    const node_refusal r = {.node = path.text,
                            .group = group ? group->gr_name : "",
                            .group_id = (long)about.st_gid,
                            .mode = about.st_mode & 0777,
                            .user = user,
                            .in_file = group && names(group->gr_mem, user),
                            .in_session = session_has(about.st_gid),
                            .in_container = container_of_process(root).name[0] != '\0',
                            .error = error};
    node_say_refusal(findings_add(list, FINDING_BLOCKS, "graphics"), &r);
    return false;
}
