/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/level_zero/loader.h"
#include "os/os.h"

#include <string.h>

const char *const onuma__ze_library_names[] = {
#if defined(_WIN32)
    "ze_loader.dll",
#elif !defined(__APPLE__) /* where there is none */
    "libze_loader.so.1",
#endif
    NULL};

enum need { OPTIONAL, REQUIRED };

static const struct {
    const char *name;
    size_t offset;
    enum need need;
} functions[] = {
#define ENTRY(need, function) {#function, offsetof(onuma__ze, function), need},
    ONUMA__ZE_FUNCTIONS(ENTRY)
#undef ENTRY
};

onuma_result onuma__ze_load(const onuma_backend_host *host, const char *const *names, onuma__ze *out) {
    /* A program that links the loader has it already. */
    void *library = onuma__os_library_of_process("zeInit");
    const char *name = library != NULL ? "of this process" : "for Linux and Windows alone";
    for (; library == NULL && *names != NULL; names++) {
        char why[256];
        name = *names;
        library = onuma__os_library_open(name, why, sizeof why);
        if (library == NULL && why[0] != '\0')
            return host->fail(ONUMA_ERROR_INTERNAL, "the Level Zero loader %s is there but does not load: %s", name,
                              why);
    }
    if (library == NULL)
        return host->fail(ONUMA_ERROR_NOT_FOUND,
                          "no Level Zero loader (%s) on this system; install one (Debian: libze1) and a driver", name);

    onuma__ze found;
    memset(&found, 0, sizeof found);
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *address = onuma__os_library_symbol(library, functions[i].name);
        if (address == NULL && functions[i].need == REQUIRED)
            return host->fail(ONUMA_ERROR_INTERNAL,
                              "the Level Zero loader %s lacks %s, which version 1.0 has; install a newer loader", name,
                              functions[i].name);
        memcpy((char *)&found + functions[i].offset, &address, sizeof address);
    }
    *out = found;
    return ONUMA_OK;
}
