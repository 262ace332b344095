/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system's abilities, and the barrier on all threads.
 *
 * membarrier(PRIVATE_EXPEDITED) interrupts every processor that runs a thread of this process. It works only after
 * the process registered. The fast halves read onuma__os_has_barrier_all, which goes from false to true once, after
 * registering succeeded, and never back; so a fast half that is a compiler barrier only always meets a slow half that
 * calls membarrier. The other mixture, a slow half that calls it and a fast half with a real fence, is merely slower.
 */
#define _GNU_SOURCE
#include "os/private.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

bool onuma__os_has_barrier_all;

static onuma__os_abilities abilities; /* constant once `once` is done */
static onuma__os_once once;

static long membarrier(int command) {
    return syscall(SYS_membarrier, command, 0, 0);
}

static void read_abilities(void) {
    abilities.page_size = (size_t)sysconf(_SC_PAGESIZE);
    abilities.reserve_granule = abilities.page_size;
    long commands = membarrier(MEMBARRIER_CMD_QUERY);
    abilities.asymmetric_barrier = commands > 0 && (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED) &&
                                   membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0 &&
                                   membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;
    /* Release, though readers are relaxed: see above for why a late reader is safe. */
    __atomic_store_n(&onuma__os_has_barrier_all, abilities.asymmetric_barrier, __ATOMIC_RELEASE);
}

const onuma__os_abilities *onuma__os_abilities_get(void) {
    onuma__os_once_run(&once, read_abilities);
    return &abilities;
}

bool onuma__os_barrier_all(void) {
    onuma__os_fence();
    if (!onuma__os_abilities_get()->asymmetric_barrier) return false;
    if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) return true;
    /* A process made by a raw clone, or restored from a checkpoint, may have lost the registration. */
    return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0 &&
           membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;
}
