/* SPDX-License-Identifier: Apache-2.0 */
/* release: nothing stays behind: no block, no reserved byte, no memory of the process, and the pool can go. */
#include "demo/demo.h"
#include "demo/system.h"
#include "units.h"

#include <stdio.h>
#include <string.h>

enum { JUDGED = 64 << 20 }; /* bytes from which on C libraries give freed memory back in any case */

/*
 * A block that a kernel has touched goes back to the system. *grown is what the process still has of it. Drivers and C
 * libraries keep some memory for themselves: a quarter of a block that is big enough to judge is the most that may stay.
 */
static bool memory_goes_back(demo *d, size_t bytes, uint64_t *grown) {
    runner *r = &d->run;
    void *block;
    uint64_t before = demo_process_memory();
    if (!demo_alloc(d, bytes, &block)) return false;
    bool good = runner_acquire(r, block, bytes, ONUMA_ACCESS_WRITE);
    if (good) memset(block, 1, bytes);
    good = good && runner_release(r, block, bytes, ONUMA_ACCESS_WRITE) &&
           runner_launch(r, KERNEL_increment, 1, ARGUMENTS(BLOCK(block)));
    good = runner_check(r, onuma_free(block, r->queue), "onuma_free") && good;
    if (!good || !demo_settle(d, d->pool)) return false;
    uint64_t after = demo_process_memory();
    *grown = after > before ? after - before : 0;
    if (bytes >= JUDGED && *grown > bytes / 4)
        return runner_fail(r, "of a block of %zu bytes that was freed and trimmed the process still has %llu", bytes,
                           (unsigned long long)*grown);
    return true;
}

bool demo_check_release(demo *d, char *detail, size_t detail_size) {
    size_t bytes = d->largest < JUDGED ? d->largest : JUDGED;
    uint64_t grown = 0;
    if (!demo_settle(d, d->pool) || !memory_goes_back(d, bytes, &grown) || !demo_destroy_pool(d, d->pool)) return false;
    d->pool = NULL;
    snprintf(detail, detail_size,
             "no block and no reserved byte left, the pool is gone; of a block of %s that was used and freed the "
             "process kept %s",
             cli_bytes(bytes).text, cli_bytes(grown).text);
    return true;
}
