/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large pages, of the transparent kind: the kernel takes one where it has one free, and small ones else, which nobody
 * but the processor notices. (hugetlbfs would promise them, from a stock that the administrator fills by hand.)
 */
#define _GNU_SOURCE
#include "os/private.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"

#define SETTINGS "/sys/kernel/mm/transparent_hugepage/"

static bool read_setting(const char *path, char text[64]) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    const ssize_t length = read(file, text, 63);
    close(file);
    text[length > 0 ? length : 0] = '\0';
    return length > 0;
}

size_t onuma__os_find_large_pages(const char **why) {
    char text[64];
    if (!read_setting(SETTINGS "enabled", text)) {
        *why = "the kernel has none that are transparent";
        return 0;
    }
    if (strstr(text, "[never]") != NULL) {
        *why = SETTINGS "enabled is \"never\"";
        return 0;
    }
    const unsigned long long size = read_setting(SETTINGS "hpage_pmd_size", text) ? strtoull(text, NULL, 10) : 0;
    if (size > onuma__os_abilities_get()->page_size && size <= SIZE_MAX / 2 && onuma__is_power_of_two((size_t)size))
        return (size_t)size;
    *why = "the kernel does not tell their size";
    return 0;
}

void *onuma__os_place_large(size_t size, size_t large) {
    void *p = onuma__os_map(size, large);
    if (p == NULL || madvise(p, size, MADV_HUGEPAGE) == 0) return p;
    onuma__os_fail_errno("asking for large pages for", p, size);
    onuma__os_release(p, size);
    return NULL;
}
