/* SPDX-License-Identifier: Apache-2.0 */
/* Symbols of libraries, and the names of code addresses. */
#define _GNU_SOURCE
#include "os/os.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void *onuma__os_library_of_process(const char *symbol) {
    void *process = dlopen(NULL, RTLD_NOW | RTLD_LOCAL);
    return process && dlsym(process, symbol) ? process : NULL;
}

void *onuma__os_library_symbol(void *library, const char *name) {
    return library ? dlsym(library, name) : NULL;
}

void onuma__os_describe_code(const void *address, char *text, size_t size) {
    Dl_info info;
    if (dladdr(address, &info) == 0 || info.dli_fname == NULL) {
        (void)snprintf(text, size, "%p", address);
        return;
    }
    const char *slash = strrchr(info.dli_fname, '/');
    const char *file = slash != NULL ? slash + 1 : info.dli_fname;
    uintptr_t in_file = (uintptr_t)address - (uintptr_t)info.dli_fbase;
    if (info.dli_sname != NULL)
        (void)snprintf(text, size, "%s+0x%" PRIxPTR " (%s+0x%" PRIxPTR ")", file, in_file, info.dli_sname,
                       (uintptr_t)address - (uintptr_t)info.dli_saddr);
    else
        (void)snprintf(text, size, "%s+0x%" PRIxPTR, file, in_file);
}
