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
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PATIENCE 10000000u /* ns; see the end */

bool onuma__os_has_barrier_all;

static onuma__os_abilities abilities; /* constant once `once` is done */
static onuma__os_once once;

static long membarrier(int command) {
    return syscall(SYS_membarrier, command, 0, 0);
}

/* The kernel puts the first thread's stack at the upper end of a program's addresses, and the random bytes that it gives
 * each program on that stack. How many bits an address has is told nowhere else but in the kernel's configuration. */
static uint64_t address_space(void) {
    const uint64_t least = UINT64_C(1) << 36; /* of all 64-bit kernels */
    const uint64_t high = getauxval(AT_RANDOM);
    return high < least ? least : UINT64_C(2) << (63 - __builtin_clzll(high));
}

static void read_abilities(void) {
    abilities.page_size = (size_t)sysconf(_SC_PAGESIZE);
    abilities.reserve_granule = abilities.page_size;
    abilities.address_space = address_space();
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
    if (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0 && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0)
        return true;
    /* Refused since (a filter of system calls that came later), and the fast halves have no fence. Then time has to do: the
     * store of one that read before this call left its processor's buffer within microseconds, or when the thread was
     * switched off. */
    onuma__os_sleep(PATIENCE);
    return true;
}
