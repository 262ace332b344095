/* SPDX-License-Identifier: Apache-2.0 */
/* initialize: the device opens, has memory that it shares with the CPU, and builds kernels. */
#include "clock.h"
#include "demo/demo.h"

#include <stdio.h>

const demo_load demo_load_full = {.largest = 256 * MIB,
                                  .alias_touches = SIZE_MAX,
                                  .vector = 1 << 20,
                                  .words = 100000,
                                  .numbers = 4096,
                                  .rounds = 1000,
                                  .images = SIZE_MAX,
                                  .operation = 4 * MIB,
                                  .side = 256,
                                  .repeats = 3};
const demo_load demo_load_simulator = {.largest = 16 * MIB + KIB,
                                       .alias_touches = 512,
                                       .vector = 4096,
                                       .words = 1000,
                                       .numbers = 128,
                                       .rounds = 100,
                                       .images = 2,
                                       .operation = 1024,
                                       .side = 16,
                                       .repeats = 3};
const demo_load demo_load_test = {.largest = 256 * KIB,
                                  .alias_touches = 64,
                                  .vector = 512,
                                  .words = 100,
                                  .numbers = 128,
                                  .rounds = 20,
                                  .images = 1,
                                  .operation = 1024,
                                  .side = 16,
                                  .repeats = 1};

/* As the device's own limits and free memory allow, with room for the default way's copies. */
static size_t largest_block(const onuma_device_info *info, const demo_load *load) {
    uint64_t most = load->largest;
    if (info->max_block && info->max_block < most) most = info->max_block;
    if (info->memory_free && info->memory_free / 4 < most) most = info->memory_free / 4;
    return (size_t)most;
}

bool demo_check_initialize(demo *d, char *detail, size_t detail_size) {
    runner *r = &d->run;
    uint64_t start = cli_now();
    onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
    desc.kind = ONUMA_KIND_SHARED;
    desc.name = "demo";
    if (!runner_check(r, onuma_pool_create(d->device, &desc, &d->pool), "onuma_pool_create")) return false;
    if (!runner_open(r, d->device, d->fault)) return false;
    d->info = r->info;
    d->default_way = r->ops->default_way;
    if (!d->load) d->load = d->info.simulator ? &demo_load_simulator : &demo_load_full;
    d->largest = largest_block(&d->info, d->load);
    snprintf(detail, detail_size, "%s; %s; shares memory through %s; ready with %d kernels in %.0f ms%s", d->info.name,
             d->info.driver, d->info.shared_via, (int)KERNEL_COUNT, (double)(cli_now() - start) / 1e6,
             d->info.simulator ? "; a simulator, so with less work in each check" : "");
    return true;
}
