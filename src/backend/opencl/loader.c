/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/opencl/loader.h"
#include "os/os.h"

#include <string.h>

const char *const onuma__cl_library_names[] = {
#if defined(_WIN32)
    "OpenCL.dll",
#elif defined(__APPLE__)
    "OpenCL", /* the framework */
#else
    "libOpenCL.so.1", "libOpenCL.so", /* the second is all that Android and some small systems have */
#endif
    NULL};

enum need { OPTIONAL, REQUIRED };

static const struct {
    const char *name;
    size_t offset;
    enum need need;
} functions[] = {
#define ENTRY(need, function) {#function, offsetof(onuma__cl, function), need},
    ONUMA__CL_FUNCTIONS(ENTRY)
#undef ENTRY
};

onuma_result onuma__cl_load(const onuma_backend_host *host, const char *const *names, onuma__cl *out) {
    /* A program that links OpenCL, or runs under a checker that is preloaded in its place (oclgrind), has it already. */
    void *library = onuma__os_library_of_process("clGetPlatformIDs");
    const char *name = library != NULL ? "of this process" : NULL;
    for (; library == NULL && *names != NULL; names++) {
        char why[256];
        name = *names;
        library = onuma__os_library_open(name, why, sizeof why);
        if (library == NULL && why[0] != '\0')
            return host->fail(ONUMA_ERROR_INTERNAL, "the OpenCL loader %s is there but does not load: %s", name, why);
    }
    if (library == NULL)
        return host->fail(ONUMA_ERROR_NOT_FOUND,
                          "no OpenCL loader (%s) on this system; install one (Debian: ocl-icd-libopencl1) and a driver",
                          name);

    onuma__cl found;
    memset(&found, 0, sizeof found);
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *address = onuma__os_library_symbol(library, functions[i].name);
        if (address == NULL && functions[i].need == REQUIRED)
            return host->fail(ONUMA_ERROR_INTERNAL,
                              "the OpenCL loader %s lacks %s, which OpenCL 1.2 has; install a newer loader", name,
                              functions[i].name);
        memcpy((char *)&found + functions[i].offset, &address, sizeof address);
    }
    *out = found;
    return ONUMA_OK;
}
