/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that tell one state of the system from another: of files, of the machine, of the environment. */
#include "os/private.h"

#include <crt_externs.h>
#include <dlfcn.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysctl.h>
#include <sys/utsname.h>
#include <unistd.h>

void onuma__os_each_variable(void (*fn)(void *user, const char *variable), void *user) {
    if (issetugid()) return;
    for (char **at = *_NSGetEnviron(); at != NULL && *at != NULL; at++) /* a library has no environ of its own */
        fn(user, *at);
}

void onuma__os_file_identity(const char *path, char *text, size_t size) {
    struct stat s;
    if (size != 0) text[0] = '\0';
    if (stat(path, &s) != 0) return;
    (void)snprintf(text, size, "%s %llu:%llu %lld bytes %lld.%09ld", path, (unsigned long long)s.st_dev,
                   (unsigned long long)s.st_ino, (long long)s.st_size, (long long)s.st_mtimespec.tv_sec,
                   (long)s.st_mtimespec.tv_nsec);
}

void onuma__os_code_identity(const void *address, char *text, size_t size) {
    Dl_info info;
    if (size != 0) text[0] = '\0';
    if (address != NULL && dladdr(address, &info) != 0 && info.dli_fname != NULL)
        onuma__os_file_identity(info.dli_fname, text, size);
}

void onuma__os_machine_identity(char *text, size_t size) {
    char number[64] = "";
    size_t length = sizeof number;
    struct utsname name;
    if (sysctlbyname("kern.uuid", number, &length, NULL, 0) != 0) number[0] = '\0';
    if (uname(&name) != 0)
        (void)snprintf(text, size, "%s", number);
    else
        (void)snprintf(text, size, "%s %s %s %s %s", number[0] != '\0' ? number : name.nodename, name.sysname,
                       name.release, name.version, name.machine);
}
