/* SPDX-License-Identifier: Apache-2.0 */
/* Drivers' libraries and the environment. */
#define _GNU_SOURCE
#include "os/private.h"

#include <dlfcn.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * dlopen tells "no such library" from "it is there but cannot be loaded" (which includes that a library it needs is
 * absent) in words alone. Both C libraries begin the first with the name that was asked for; musl puts a text before
 * and, if it is a dependency that is absent, one behind.
 */
static bool says_absent(const char *message, const char *name) {
    static const char musl_prefix[] = "Error loading shared library ";
    bool musl = strncmp(message, musl_prefix, sizeof musl_prefix - 1) == 0;
    if (musl) message += sizeof musl_prefix - 1;
    size_t length = strlen(name);
    if (strncmp(message, name, length) != 0) return false;
    message += length;
    return strcmp(message, musl ? ": No such file or directory"
                                : ": cannot open shared object file: No such file or directory") == 0;
}

void *onuma__os_library_open(const char *name, char *why, size_t why_size) {
    if (why_size) why[0] = '\0';
    if (!onuma__os_check_bare_name(name, why, why_size)) return NULL;
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library) return library;

    /* The message is made in dlerror, in the thread's language; it is understood in English only. */
    locale_t english = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t before = english ? uselocale(english) : (locale_t)0;
    const char *message = dlerror();
    if (!message) message = "the system does not say why";
    if (!says_absent(message, name)) snprintf(why, why_size, "%s", message);
    if (english) {
        uselocale(before);
        freelocale(english);
    }
    return NULL;
}

const char *onuma__os_getenv(const char *name) {
    return secure_getenv(name);
}
