/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that tell one state of the system from another: of files, of the machine, of the environment. */
#define _GNU_SOURCE
#include "os/private.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

void onuma__os_each_variable(void (*fn)(void *user, const char *variable), void *user) {
    if (getauxval(AT_SECURE) != 0) return;
    for (char **at = environ; at != NULL && *at != NULL; at++)
        fn(user, *at);
}

void onuma__os_file_identity(const char *path, char *text, size_t size) {
    struct stat s;
    if (size != 0) text[0] = '\0';
    if (stat(path, &s) != 0) return;
    snprintf(text, size, "%s %llu:%llu %lld bytes %lld.%09ld", path, (unsigned long long)s.st_dev,
             (unsigned long long)s.st_ino, (long long)s.st_size, (long long)s.st_mtim.tv_sec, (long)s.st_mtim.tv_nsec);
}

void onuma__os_code_identity(const void *address, char *text, size_t size) {
    Dl_info info;
    if (size != 0) text[0] = '\0';
    if (address != NULL && dladdr(address, &info) != 0 && info.dli_fname != NULL)
        onuma__os_file_identity(info.dli_fname, text, size);
}

static void first_line(const char *path, char *text, size_t size) {
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    text[0] = '\0';
    if (file < 0) return;
    const ssize_t got = read(file, text, size - 1);
    close(file);
    text[got > 0 ? got : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
}

/* The machine's own number, and the name where it has none: homes are shared between machines. */
void onuma__os_machine_identity(char *text, size_t size) {
    char number[64];
    struct utsname name;
    first_line("/etc/machine-id", number, sizeof number);
    if (uname(&name) != 0)
        snprintf(text, size, "%s", number);
    else
        snprintf(text, size, "%s %s %s %s %s", number[0] != '\0' ? number : name.nodename, name.sysname, name.release,
                 name.version, name.machine);
}
