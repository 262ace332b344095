/* SPDX-License-Identifier: Apache-2.0 */
/* release: nothing stays behind: no block, no reserved byte, no memory of the process, and the pool can go. */
#include "clock.h"
#include "demo/demo.h"
#include "demo/system.h"
#include "units.h"

#include <stdio.h>
#include <string.h>

enum { JUDGED = 64 << 20 }; /* bytes from which on C libraries give freed memory back in any case */

/* A kernel on a block of `bytes`, which is then freed. The first number in it is 0. */
static bool use_and_free(demo *d, size_t bytes) {
    runner *r = &d->run;
    void *block;
    if (!demo_alloc(d, bytes, &block)) return false;
    bool good = runner_acquire(r, block, bytes, ONUMA_ACCESS_WRITE);
    if (good) memset(block, 0, bytes);
    good = good && runner_release(r, block, bytes, ONUMA_ACCESS_WRITE) &&
           runner_launch(r, KERNEL_increment, 1, ARGUMENTS(BLOCK(block)));
    return runner_check(r, onuma_free(block, r->queue), "onuma_free") && good;
}

/*
 * The kernel's last buffer, which Rusticl keeps alive with the kernel, becomes one of the driver's own. Another block
 * would not do: it may lie in the memory that was just freed, while the kernel that used it has yet to end.
 */
static bool let_go_of_blocks(demo *d) {
    runner *r = &d->run;
    runner_buffer other = {.size = sizeof(uint32_t)};
    if (!r->ops->buffer_create(r, &other)) return false;
    const uint32_t zero = 0;
    bool good = r->ops->buffer_write(r, &other, &zero) &&
                runner_launch(r, KERNEL_increment, 1, ARGUMENTS(BUFFER(&other))) && runner_finish(r);
    r->ops->buffer_destroy(r, &other);
    return good;
}

/*
 * A block that a kernel has touched goes back to the system. *grown is what the process still has of it. Drivers and C
 * libraries keep some memory for themselves: a quarter of a block that is big enough to judge is the most that may stay.
 */
static bool memory_goes_back(demo *d, size_t bytes, uint64_t *grown) {
    uint64_t before = demo_process_memory(), end = cli_now() + DEMO_PATIENCE_NS;
    if (!use_and_free(d, bytes) || !let_go_of_blocks(d) || !demo_settle(d, d->pool)) return false;
    /* The driver may give a buffer up on a thread of its own. */
    for (;;) {
        uint64_t after = demo_process_memory();
        *grown = after > before ? after - before : 0;
        if (*grown <= bytes / 4 || bytes < JUDGED) return true;
        if (cli_now() > end) break;
        cli_sleep(DEMO_PAUSE_NS);
    }
    return runner_fail(&d->run, "of a block of %zu bytes that was freed and trimmed the process still has %llu", bytes,
                       (unsigned long long)*grown);
}

bool demo_check_release(demo *d, char *detail, size_t detail_size) {
    size_t bytes = d->largest < JUDGED ? d->largest : JUDGED;
    uint64_t grown = 0;
    if (!demo_settle(d, d->pool) || !memory_goes_back(d, bytes, &grown) ||
        !runner_check(&d->run, onuma_pool_destroy(d->pool), "onuma_pool_destroy"))
        return false;
    d->pool = NULL;
    snprintf(detail, detail_size,
             "no block and no reserved byte left, the pool is gone; of a block of %s that was used and freed the "
             "process kept %s",
             cli_bytes(bytes).text, cli_bytes(grown).text);
    return true;
}
