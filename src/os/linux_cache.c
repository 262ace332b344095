/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user's cache folder. Its parent is the user's arrangement, links and all. From our own folder on nothing is
 * believed by name: folder and file are opened first, without following links, and then the open thing is looked at.
 *
 * Who may write into the folder could put any file there; who may write the file could put anything into it. So both
 * must be ours and closed to others. A second name (a hard link) would let it be reached from a folder that is open.
 */
#define _GNU_SOURCE
#include "os/private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FOLDER "opennuma"
#define OTHERS_WRITE (S_IWGRP | S_IWOTH)

static onuma_result io_error(const char *what, const char *name) {
    return onuma__fail(errno == ENOENT ? ONUMA_ERROR_NOT_FOUND : ONUMA_ERROR_IO, "the user's cache: %s %s: %s", what,
                       name, onuma__os_error_text((unsigned long)errno).text);
}

/* The folder that ours lies in. */
static onuma_result parent_path(char path[4096]) {
    const char *cache = onuma__os_getenv("XDG_CACHE_HOME"), *home = onuma__os_getenv("HOME");
    int length = -1;
    if (cache != NULL && cache[0] == '/')
        length = snprintf(path, 4096, "%s", cache);
    else if (home != NULL && home[0] == '/')
        length = snprintf(path, 4096, "%s/.cache", home);
    if (length > 0 && length < 4096) return ONUMA_OK;
    return onuma__fail(ONUMA_ERROR_NOT_SUPPORTED, "the user's cache: neither XDG_CACHE_HOME nor HOME names a folder");
}

static int open_parent(bool make) {
    char path[4096];
    if (parent_path(path) != ONUMA_OK) return -1;
    const int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
    int parent = open(path, flags);
    if (parent < 0 && errno == ENOENT && make && mkdir(path, 0700) == 0) parent = open(path, flags);
    if (parent < 0) (void)io_error("opening", path);
    return parent;
}

static bool is_ours(const struct stat *s) {
    return s->st_uid == geteuid() && (s->st_mode & OTHERS_WRITE) == 0;
}

/* Our folder, open and looked at; -1 and *r if there is none to trust. With `make` it is made, or closed to others. */
static int open_folder(bool make, onuma_result *r) {
    *r = ONUMA_ERROR_NOT_SUPPORTED;
    int parent = open_parent(make), folder = -1;
    if (parent < 0) return -1;
    if (make && mkdirat(parent, FOLDER, 0700) != 0 && errno != EEXIST) {
        *r = io_error("making", FOLDER);
        goto cleanup;
    }
    folder = openat(parent, FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) {
        *r = io_error("opening", FOLDER);
        goto cleanup;
    }
    struct stat s;
    bool good = fstat(folder, &s) == 0;
    if (good && make && s.st_uid == geteuid() && (s.st_mode & 077) != 0)
        good = fchmod(folder, 0700) == 0 && fstat(folder, &s) == 0;
    if (!good || !is_ours(&s)) {
        *r =
            onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT,
                        "the user's cache: its folder %s belongs to user %u with mode %o; it must be yours, and nobody "
                        "else's to write",
                        FOLDER, (unsigned)s.st_uid, (unsigned)(s.st_mode & 07777));
        close(folder);
        folder = -1;
    }
cleanup:
    close(parent);
    return folder;
}

/* ------------------------------------------------------------------ reading */

static onuma_result read_all(int file, char *bytes, size_t size, size_t *length, const char *name) {
    size_t used = 0;
    while (used < size) {
        const ssize_t got = read(file, bytes + used, size - used);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return io_error("reading", name);
        if (got == 0) {
            *length = used;
            return ONUMA_OK;
        }
        used += (size_t)got;
    }
    return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "the user's cache: %s has %zu bytes or more", name, size);
}

onuma_result onuma__os_cache_read(const char *name, char *bytes, size_t size, size_t *length) {
    onuma_result r;
    const int folder = open_folder(false, &r);
    if (folder < 0) return r;
    /* Not blocking: what is there might be a pipe. */
    const int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (file < 0) r = io_error("opening", name);
    close(folder);
    if (file < 0) return r;
    /* A second name might be somebody else's. None is left where a writer has put another file in this one's place. */
    struct stat s;
    if (fstat(file, &s) != 0)
        r = io_error("looking at", name);
    else if (!S_ISREG(s.st_mode) || !is_ours(&s) || s.st_nlink > 1)
        r = onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT,
                        "the user's cache: %s is no plain file of yours that nobody else may write (user %u, mode %o)",
                        name, (unsigned)s.st_uid, (unsigned)s.st_mode);
    else
        r = read_all(file, bytes, size, length, name);
    close(file);
    return r;
}

/* ------------------------------------------------------------------ writing */

static onuma_result write_all(int file, const char *bytes, size_t length, const char *name) {
    for (size_t used = 0; used < length;) {
        const ssize_t put = write(file, bytes + used, length - used);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return io_error("writing", name);
        used += (size_t)put;
    }
    /* The content before the name: after a crash there is the old file or the new one, whole. */
    return fchmod(file, 0600) == 0 && fsync(file) == 0 ? ONUMA_OK : io_error("writing", name);
}

/* Where file sizes are limited, writing on would end the process with a signal. */
static bool may_write(size_t length) {
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= length;
}

onuma_result onuma__os_cache_write(const char *name, const char *bytes, size_t length) {
    uint64_t random[2];
    char fresh[96];
    /* The call itself: its function came with glibc 2.25. */
    const unsigned not_blocking = 1;
    if (syscall(SYS_getrandom, random, sizeof random, not_blocking) != (long)sizeof random)
        return io_error("getting random bytes for", name);
    if (!may_write(length))
        return onuma__fail(ONUMA_ERROR_IO, "the user's cache: the limit of file sizes is below %zu bytes", length);
    snprintf(fresh, sizeof fresh, ".%.40s.%016llx%016llx", name, (unsigned long long)random[0],
             (unsigned long long)random[1]);
    onuma_result r;
    const int folder = open_folder(true, &r);
    if (folder < 0) return r;
    const int file = openat(folder, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0) {
        r = io_error("making", fresh);
        close(folder);
        return r;
    }
    r = write_all(file, bytes, length, fresh);
    if (close(file) != 0 && r == ONUMA_OK) r = io_error("closing", fresh);
    if (r == ONUMA_OK && renameat(folder, fresh, folder, name) != 0) r = io_error("replacing", name);
    if (r != ONUMA_OK) (void)unlinkat(folder, fresh, 0);
    close(folder);
    return r;
}
