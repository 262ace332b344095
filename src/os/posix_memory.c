/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory, as far as Linux and macOS do it alike. Reserved pages are PROT_NONE: they count towards no limit of memory, and a touch faults.
 */
#define _GNU_SOURCE
#include "base/checked.h"
#include "os/private.h"

#include <errno.h>
#include <sys/mman.h>

onuma_result onuma__os_fail_errno(const char *what, const void *p, size_t size) {
    int error = errno;
    return onuma__fail(error == ENOMEM ? ONUMA_ERROR_OUT_OF_MEMORY : ONUMA_ERROR_INTERNAL, "%s %zu bytes at %p: %s%s",
                       what, size, p, onuma__os_error_text((unsigned long)error).text,
                       error == ENOMEM ? "; free memory, or raise the limits vm.max_map_count, vm.overcommit_memory "
                                         "or ulimit -v"
                                       : "");
}

/* Over-reserves by the alignment and gives the ends back, since mmap promises no more than a page. */
void *onuma__os_place(size_t size, size_t align, bool committed) {
    size_t span;
    size_t page = onuma__os_abilities_get()->page_size;
    if (!onuma__add(size, align - page, &span)) {
        onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "%zu bytes aligned to %zu are more than all addresses", size, align);
        return NULL;
    }
    void *p = mmap(NULL, span, committed ? PROT_READ | PROT_WRITE : PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | (committed ? 0 : MAP_NORESERVE), -1, 0);
    if (p == MAP_FAILED) {
        onuma__os_fail_errno("mapping", NULL, span);
        return NULL;
    }
    char *begin = p;
    size_t head = (size_t)(-(uintptr_t)begin & (align - 1));
    size_t tail = span - head - size;
    /* If trimming fails (the limit on mappings), the ends stay reserved and cost addresses only. */
    if (head) munmap(begin, head);
    if (tail) munmap(begin + head + size, tail);
    return begin + head;
}

onuma_result onuma__os_commit(void *p, size_t size) {
    onuma_result r = onuma__os_check_pages("committing", p, size);
    if (r != ONUMA_OK) return r;
    if (mprotect(p, size, PROT_READ | PROT_WRITE) != 0) return onuma__os_fail_errno("committing", p, size);
    return ONUMA_OK;
}

void onuma__os_release(void *p, size_t size) {
    size_t whole = 0;
    if (!onuma__align_up(size, onuma__os_abilities_get()->page_size, &whole)) whole = 0;
    if (onuma__os_check_pages("releasing", p, whole) != ONUMA_OK) return;
    if (munmap(p, whole) != 0) onuma__os_fail_errno("releasing", p, whole);
}

onuma_result onuma__os_protect(void *p, size_t size, onuma__os_protection protection) {
    static const int bits[] = {[ONUMA__PROTECT_NONE] = PROT_NONE,
                               [ONUMA__PROTECT_READ] = PROT_READ,
                               [ONUMA__PROTECT_READ_WRITE] = PROT_READ | PROT_WRITE};
    onuma_result r = onuma__os_check_pages("protecting", p, size);
    if (r != ONUMA_OK) return r;
    if ((unsigned)protection >= sizeof bits / sizeof *bits)
        return onuma__fail(ONUMA_ERROR_INTERNAL, "protecting %p: no such protection as %d", p, (int)protection);
    if (mprotect(p, size, bits[protection]) != 0) return onuma__os_fail_errno("protecting", p, size);
    return ONUMA_OK;
}
