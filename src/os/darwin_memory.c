/* SPDX-License-Identifier: Apache-2.0 */
/* What macOS does its own way with memory: giving pages back, keeping them out of children, telling how much there is. */
#include "os/private.h"

#include <errno.h>
#include <fcntl.h>
#include <mach/mach.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sysctl.h>

/* No advice of madvise promises here that pages come back zeroed. New pages over the old ones do. */
onuma_result onuma__os_decommit(void *p, size_t size) {
    onuma_result r = onuma__os_check_pages("decommitting", p, size);
    if (r != ONUMA_OK) return r;
    if (mmap(p, size, PROT_NONE, MAP_FIXED | MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0) == MAP_FAILED)
        return onuma__os_fail_errno("decommitting", p, size);
    return ONUMA_OK;
}

/* The kernel copies a word, or says that it cannot. */
bool onuma__os_can_read(const void *p) {
    if (p == NULL || (uintptr_t)p % sizeof(void *) != 0) return false;
    void *word;
    vm_size_t copied = 0;
    return vm_read_overwrite(mach_task_self(), (vm_address_t)p, sizeof word, (vm_address_t)&word, &copied) ==
               KERN_SUCCESS &&
           copied == sizeof word;
}

/* A name nobody has, gone again at once: names live in one space for the whole machine. */
int onuma__os_nameless_file(void) {
    for (int turn = 0; turn < 16; turn++) {
        char name[32];
        (void)snprintf(name, sizeof name, "/opennuma.%08x%08x", (unsigned)arc4random(), (unsigned)arc4random());
        const int file = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
        if (file >= 0) (void)shm_unlink(name);
        if (file >= 0 || errno != EEXIST) return file;
    }
    return -1;
}

onuma_result onuma__os_discard(void *p, size_t size) {
    onuma_result r = onuma__os_check_pages("discarding", p, size);
    if (r != ONUMA_OK) return r;
    return madvise(p, size, MADV_FREE) == 0 ? ONUMA_OK : onuma__os_fail_errno("discarding", p, size);
}

/* Programs get none to choose: the system gives Macs of Intel's superpages rarely, and others never. */
size_t onuma__os_large_page_size(const char **why) {
    *why = "macOS has none for programs";
    return 0;
}

void *onuma__os_map_large(size_t size) {
    onuma__fail(ONUMA_ERROR_NOT_SUPPORTED, "mapping %zu bytes in large pages: macOS has none for programs", size);
    return NULL;
}

void onuma__os_exclude_from_fork(void *p, size_t size) {
    if (onuma__os_check_pages("excluding from fork", p, size) != ONUMA_OK) return;
    if (minherit(p, size, VM_INHERIT_NONE) != 0) onuma__os_fail_errno("excluding from fork", p, size);
}

void onuma__os_memory(uint64_t *total, uint64_t *available) {
    *total = *available = 0;
    size_t size = sizeof *total;
    if (sysctlbyname("hw.memsize", total, &size, NULL, 0) != 0) return;
    vm_statistics64_data_t pages;
    mach_msg_type_number_t count = HOST_VM_INFO64_COUNT;
    mach_port_t host = mach_host_self();
    if (host_statistics64(host, HOST_VM_INFO64, (host_info64_t)&pages, &count) == KERN_SUCCESS)
        *available = ((uint64_t)pages.free_count + pages.inactive_count + pages.purgeable_count) *
                     onuma__os_abilities_get()->page_size;
    mach_port_deallocate(mach_task_self(), host);
    if (*available > *total) *available = *total;
}
