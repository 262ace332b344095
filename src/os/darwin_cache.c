/* SPDX-License-Identifier: Apache-2.0 */
/* On macOS nothing is kept between runs: the way to trust what lies in a folder has been tried on Linux only. */
#include "os/os.h"

static onuma_result no_cache(void) {
    return onuma__fail(ONUMA_ERROR_NOT_SUPPORTED, "the user's cache: none is kept on macOS");
}

onuma_result onuma__os_cache_read(const char *name, char *bytes, size_t size, size_t *length) {
    (void)name, (void)bytes, (void)size, (void)length;
    return no_cache();
}

onuma_result onuma__os_cache_write(const char *name, const char *bytes, size_t length) {
    (void)name, (void)bytes, (void)length;
    return no_cache();
}
