/* SPDX-License-Identifier: Apache-2.0 */
/* What Linux does its own way with memory: giving pages back, keeping them out of children, and asking whether an address
 * can be read. */
#define _GNU_SOURCE
#include "os/private.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

onuma_result onuma__os_decommit(void *p, size_t size) {
    onuma_result r = onuma__os_check_pages("decommitting", p, size);
    if (r != ONUMA_OK) return r;
    /* Closed before it is emptied: a stray write in between must fault, not bring a page back. */
    if (mprotect(p, size, PROT_NONE) != 0) return onuma__os_fail_errno("decommitting", p, size);
    if (madvise(p, size, MADV_DONTNEED) == 0) return ONUMA_OK;
    /* Pages of a program that called mlockall are not given up unless they are unlocked. */
    if (errno == EINVAL && munlock(p, size) == 0 && madvise(p, size, MADV_DONTNEED) == 0) return ONUMA_OK;
    r = onuma__os_fail_errno("decommitting", p, size);
    mprotect(p, size, PROT_READ | PROT_WRITE);
    return r;
}

onuma_result onuma__os_discard(void *p, size_t size) {
    enum { FREE_LAZILY = 8 }; /* MADV_FREE, which the headers of old C libraries lack */
    onuma_result r = onuma__os_check_pages("discarding", p, size);
    if (r != ONUMA_OK) return r;
    if (madvise(p, size, FREE_LAZILY) == 0) return ONUMA_OK;
    if (errno == EINVAL) return onuma__fail(ONUMA_ERROR_NOT_SUPPORTED, "discarding: this kernel cannot, or not here");
    return onuma__os_fail_errno("discarding", p, size);
}

/* The kernel copies the signal set in before it looks at what to do with it, and there is nothing that it would do. */
bool onuma__os_can_read(const void *p) {
    enum { NOTHING = -1 };
    if (p == NULL || (uintptr_t)p % sizeof(void *) != 0) return false;
    return syscall(SYS_rt_sigprocmask, NOTHING, p, NULL, (size_t)8) != 0 && errno == EINVAL;
}

/* The call itself, for the C library of old systems has no function for it; their kernels may lack it (ENOSYS). */
int onuma__os_nameless_file(void) {
    const unsigned close_on_exec = 1;
    return (int)syscall(SYS_memfd_create, "opennuma", close_on_exec);
}

void onuma__os_exclude_from_fork(void *p, size_t size) {
    if (onuma__os_check_pages("excluding from fork", p, size) != ONUMA_OK) return;
    if (madvise(p, size, MADV_DONTFORK) != 0) onuma__os_fail_errno("excluding from fork", p, size);
}
