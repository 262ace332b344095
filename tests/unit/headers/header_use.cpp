/* SPDX-License-Identifier: Apache-2.0 */
/* The interface as a C++17 program meets it: initialisers, atomics of host timelines, handles, results. */
#include <opennuma/opennuma.h>

#include <cstdio>
#include <cstring>

static bool ok(onuma_result r) {
    if (r != ONUMA_OK) std::printf("%s: %s\n", onuma_result_name(r), onuma_last_error());
    return r == ONUMA_OK;
}

int main() {
    onuma_runtime_desc desc = ONUMA_RUNTIME_DESC_INIT;
    onuma_pool_desc pool_desc = ONUMA_POOL_DESC_INIT;
    onuma_pool_stats stats = ONUMA_POOL_STATS_INIT;
    onuma_device_info info = ONUMA_DEVICE_INFO_INIT;
    onuma_block_info block_info = ONUMA_BLOCK_INFO_INIT;
    onuma_view view = ONUMA_VIEW_INIT;
    onuma_host_timeline timeline = {};
    onuma_runtime *rt = nullptr;
    onuma_device *host = nullptr;
    onuma_pool *pool = nullptr;
    onuma_queue *queue = nullptr;
    void *block = nullptr;
    desc.config = "backends:host";
    bool good = ok(onuma_runtime_create(&desc, &rt)) && ok(onuma_device_find(rt, "host", &host)) &&
                ok(onuma_device_get_info(host, &info)) && ok(onuma_pool_create(host, &pool_desc, &pool)) &&
                ok(onuma_queue_wrap(host, ONUMA_API_HOST, reinterpret_cast<uint64_t>(&timeline), nullptr, &queue)) &&
                ok(onuma_alloc(pool, 1000, 0, queue, &block)) && ok(onuma_block_get_info(block, &block_info)) &&
                ok(onuma_view_get(block, host, ONUMA_API_HOST, &view));
    if (!good) return 1;
    std::memset(block, 1, 1000);
    timeline.submitted++;
    good = ok(onuma_free(block, queue));
    timeline.completed = timeline.submitted.load();
    good = good && ok(onuma_queue_release(queue)) && ok(onuma_pool_get_stats(pool, &stats)) &&
           stats.in_use_bytes == 0 && ok(onuma_pool_trim(pool, 0, nullptr)) && ok(onuma_pool_destroy(pool));
    onuma_runtime_destroy(rt);
    return good ? 0 : 1;
}
