/* SPDX-License-Identifier: Apache-2.0 */
/* Drivers' libraries, which on macOS are the system's frameworks, and the environment. */
#include "os/private.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A bare name is that of a framework. Its file is not there to be looked for: since macOS 11 it lies in dyld's cache. */
void *onuma__os_library_open(const char *name, char *why, size_t why_size) {
    if (why_size) why[0] = '\0';
    if (!onuma__os_check_bare_name(name, why, why_size)) return NULL;
    char path[512];
    int length = snprintf(path, sizeof path, "/System/Library/Frameworks/%s.framework/%s", name, name);
    if (length < 0 || (size_t)length >= sizeof path) return NULL;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library) return library;
    const char *message = dlerror();
    if (!message) message = "the system does not say why";
    bool absent = strstr(message, "no such file") || strstr(message, "image not found");
    if (!absent) (void)snprintf(why, why_size, "%s", message);
    return NULL;
}

const char *onuma__os_getenv(const char *name) {
    return issetugid() ? NULL : getenv(name);
}
