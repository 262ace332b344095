/* SPDX-License-Identifier: Apache-2.0 */
/* Large pages, where the system has some: looked for once, and mapped whole. */
#include "os/private.h"

static size_t page_size; /* constant once `once` is done; 0: none */
static const char *reason = "";
static onuma__os_once once;

static void look(void) {
    page_size = onuma__os_find_large_pages(&reason);
}

size_t onuma__os_large_page_size(const char **why) {
    onuma__os_once_run(&once, look);
    *why = reason;
    return page_size;
}

void *onuma__os_map_large(size_t size) {
    const char *why;
    const size_t large = onuma__os_large_page_size(&why);
    if (large != 0 && size != 0 && size % large == 0) return onuma__os_place_large(size, large);
    onuma__fail(large ? ONUMA_ERROR_INTERNAL : ONUMA_ERROR_NOT_SUPPORTED, "mapping %zu bytes in large pages of %zu: %s",
                size, large, large ? "not whole ones" : why);
    return NULL;
}
