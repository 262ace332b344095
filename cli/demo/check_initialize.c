/* SPDX-License-Identifier: Apache-2.0 */
/* initialize: the device opens, has memory that it shares with the CPU, and builds kernels. */
#include "demo/demo.h"
#include "demo/system.h"

#include <stdio.h>

/* As the device's own limits and free memory allow, with room for the default way's copies. */
static size_t largest_block(const onuma_device_info *info, bool small) {
    uint64_t most = small ? 16 * MIB + KIB : 256 * MIB;
    if (info->max_block && info->max_block < most) most = info->max_block;
    if (info->memory_free && info->memory_free / 4 < most) most = info->memory_free / 4;
    return (size_t)most;
}

bool demo_check_initialize(demo *d, char *detail, size_t detail_size) {
    runner *r = &d->run;
    uint64_t start = demo_clock_ns();
    onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
    desc.kind = ONUMA_KIND_SHARED;
    desc.name = "demo";
    if (!runner_check(r, onuma_pool_create(d->device, &desc, &d->pool), "onuma_pool_create")) return false;
    if (!runner_open(r, d->device, d->fault)) return false;
    d->info = r->info;
    d->default_way = r->ops->default_way;
    d->small = d->small || d->info.simulator;
    d->largest = largest_block(&d->info, d->small);
    snprintf(detail, detail_size, "%s; %s; shares memory through %s; ready with %d kernels in %.0f ms%s", d->info.name,
             d->info.driver, d->info.shared_via, (int)KERNEL_COUNT, (double)(demo_clock_ns() - start) / 1e6,
             d->info.simulator ? "; a simulator, so with less work in each check" : "");
    return true;
}
