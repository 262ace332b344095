/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/loader.h"

#include <stdio.h>

#include "driver_library.h"

#if defined(_WIN32)
#define LIBRARY "nvcuda.dll"
#else
#define LIBRARY "libcuda.so.1"
#endif

/* The name of the first function that is missing, or NULL. */
static const char *fill(cli_cuda *functions, void *library) {
    const char *missing = NULL;
#define CLI_X(name, exported, parameters)                                                                              \
    cli_library_find(library, exported, &functions->name);                                                             \
    if (!functions->name && !missing) missing = exported;
    CLI_CUDA_FUNCTIONS(CLI_X)
#undef CLI_X
    return missing;
}

const cli_cuda *cli_cuda_load(const char **why) {
    static enum { UNTRIED, LOADED, FAILED } state;
    static cli_cuda functions;
    static char reason[256];
    if (state == UNTRIED) {
        state = FAILED;
        void *library = cli_library_open(LIBRARY, reason, sizeof reason);
        const char *missing = library ? fill(&functions, library) : NULL;
        if (missing)
            snprintf(reason, sizeof reason, LIBRARY " has no %s: it is older than CUDA 11.7", missing);
        else if (library)
            state = LOADED;
    }
    if (state == LOADED) return &functions;
    if (why) *why = reason;
    return NULL;
}

const char *cli_cuda_error_name(const cli_cuda *cuda, cli_cuda_result code) {
    const char *name = NULL;
    return cuda->get_error_name(code, &name) == 0 && name ? name : "unknown CUDA error";
}
