/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/cuda/cuda.h"

#include <string.h>

#if defined(_WIN32)
#define LIBRARY "nvcuda.dll"
#else
#define LIBRARY "libcuda.so.1"
#endif

enum need { OPTIONAL, REQUIRED };

static const struct {
    const char *name;
    size_t offset;
    enum need need;
} functions[] = {
#define ENTRY(need, name, exported, parameters) {exported, offsetof(onuma__cu, name), need},
    ONUMA__CU_FUNCTIONS(ENTRY)
#undef ENTRY
};

onuma_result onuma__cu_load(const onuma_backend_host *host, onuma__cu *out) {
    char why[256];
    void *library = onuma__os_library_open(LIBRARY, why, sizeof why);
    if (library == NULL && why[0] != '\0')
        return host->fail(ONUMA_ERROR_INTERNAL, "NVIDIA's driver library " LIBRARY " is there but does not load: %s",
                          why);
    if (library == NULL)
        return host->fail(ONUMA_ERROR_NOT_FOUND,
                          "no " LIBRARY " on this system; it comes with NVIDIA's driver for their GPUs");
    onuma__cu found;
    memset(&found, 0, sizeof found);
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *address = onuma__os_library_symbol(library, functions[i].name);
        if (address == NULL && functions[i].need == REQUIRED)
            return host->fail(ONUMA_ERROR_INTERNAL,
                              "NVIDIA's driver library " LIBRARY
                              " lacks %s, which CUDA 10.1 has; install a newer driver",
                              functions[i].name);
        memcpy((char *)&found + functions[i].offset, &address, sizeof address);
    }
    *out = found;
    return ONUMA_OK;
}
