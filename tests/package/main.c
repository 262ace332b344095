/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program of someone else, built against what `make install` put down: do headers, library and
 * flags come from one place, and does the result run?
 */
#include <opennuma/opennuma.h>

#include <stdio.h>
#include <string.h>

#define STRINGIZE(x) #x
#define TEXT(x) STRINGIZE(x)
#define HEADER_VERSION TEXT(ONUMA_VERSION_MAJOR) "." TEXT(ONUMA_VERSION_MINOR) "." TEXT(ONUMA_VERSION_PATCH)

static int fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, onuma_last_error());
    return 1;
}

int main(void) {
    if (strcmp(onuma_version(), HEADER_VERSION) != 0) {
        fprintf(stderr, "the header is of %s, the library of %s\n", HEADER_VERSION, onuma_version());
        return 1;
    }

    onuma_runtime_desc runtime_desc = ONUMA_RUNTIME_DESC_INIT;
    runtime_desc.config = "backends:host";
    onuma_runtime *runtime;
    if (onuma_runtime_create(&runtime_desc, &runtime) != ONUMA_OK) return fail("onuma_runtime_create");

    onuma_device *device;
    if (onuma_device_find(runtime, "host", &device) != ONUMA_OK) return fail("onuma_device_find");

    onuma_pool_desc pool_desc = ONUMA_POOL_DESC_INIT;
    onuma_pool *pool;
    if (onuma_pool_create(device, &pool_desc, &pool) != ONUMA_OK) return fail("onuma_pool_create");

    void *block;
    if (onuma_alloc(pool, 1000, 0, NULL, &block) != ONUMA_OK) return fail("onuma_alloc");
    memset(block, 0x5a, 1000);
    if (onuma_free(block, NULL) != ONUMA_OK) return fail("onuma_free");
    if (onuma_pool_destroy(pool) != ONUMA_OK) return fail("onuma_pool_destroy");
    onuma_runtime_destroy(runtime);
    printf("opennuma %s\n", onuma_version());
    return 0;
}
