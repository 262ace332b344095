/* SPDX-License-Identifier: Apache-2.0 */
/* Memory with several mappings: a file that has no name, and so is nobody's but its mappings' and its handle's. */
#define _GNU_SOURCE
#include "os/private.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

onuma_result onuma__os_shared_create(size_t size, onuma__os_shared *out) {
    const size_t granule = onuma__os_abilities_get()->reserve_granule;
    if (size == 0 || size % granule != 0)
        return onuma__fail(ONUMA_ERROR_INTERNAL, "sharing %zu bytes: not whole granules of %zu bytes", size, granule);
    const int file = onuma__os_nameless_file();
    if (file < 0) {
        const int error = errno;
        return onuma__fail(error == ENOSYS ? ONUMA_ERROR_NOT_SUPPORTED : ONUMA_ERROR_OUT_OF_MEMORY,
                           "memory for several mappings: %s%s", onuma__os_error_text((unsigned long)error).text,
                           error == EMFILE || error == ENFILE ? "; raise ulimit -n" : "");
    }
    /* Beyond the limit on files the system would end the process by a signal. */
    struct rlimit most;
    const bool allowed = size <= INT64_MAX && (getrlimit(RLIMIT_FSIZE, &most) != 0 || size <= most.rlim_cur);
    if (!allowed || ftruncate(file, (off_t)size) != 0) {
        const int error = allowed ? errno : EFBIG;
        close(file);
        return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "sharing %zu bytes: %s; raise ulimit -f, or ask for less", size,
                           onuma__os_error_text((unsigned long)error).text);
    }
    *out = (onuma__os_shared){.handle = file, .size = size};
    return ONUMA_OK;
}

void *onuma__os_shared_map(const onuma__os_shared *shared, size_t offset, size_t size) {
    if (!onuma__os_check_window(shared, offset, size)) return NULL;
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, (int)shared->handle, (off_t)offset);
    if (p != MAP_FAILED) return p;
    onuma__os_fail_errno("mapping shared", NULL, size);
    return NULL;
}

void onuma__os_shared_unmap(void *p, size_t size) {
    onuma__os_release(p, size);
}

void onuma__os_shared_close(onuma__os_shared *shared) {
    if (shared->size == 0) return;
    close((int)shared->handle);
    *shared = (onuma__os_shared){0};
}
