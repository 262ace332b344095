/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/replay/contest.h"

#include <stdlib.h>
#include <string.h>

#include "replay/run.h"
#include "replay/streams.h"

typedef struct world {
    onuma_runtime *runtime;
    onuma_pool *pool;
    streams queues;
} world;

static void close_world(world *w) {
    streams_destroy(&w->queues);
    if (w->pool) onuma_pool_destroy(w->pool);
    onuma_runtime_destroy(w->runtime);
}

static bool open_world(world *w, const trace *t, onuma_source source) {
    onuma_runtime_desc desc = ONUMA_RUNTIME_DESC_INIT;
    onuma_pool_desc pool = ONUMA_POOL_DESC_INIT;
    onuma_device *device;
    *w = (world){0};
    desc.config = REPLAY_PATIENT;
    pool.name = "bench replay";
    pool.simulate = true;
    pool.source = source;
    onuma_result r = onuma_runtime_create(&desc, &w->runtime);
    if (r == ONUMA_OK) r = onuma_device_find(w->runtime, "host", &device);
    if (r == ONUMA_OK) r = onuma_pool_create(device, &pool, &w->pool);
    if (r == ONUMA_OK) r = streams_create(w->runtime, device, t, &w->queues);
    if (r == ONUMA_OK) return true;
    cli_error("bench replay: %s: %s", onuma_result_name(r), onuma_last_error());
    close_world(w);
    return false;
}

/* What stepping the queues of a trace takes, which is not the library's work. */
static double harness_time(const trace *t, const streams *queues, contest_clock *now) {
    streams alone = *queues;
    const uint64_t from = now();
    for (size_t i = 0; i < t->op_count; i++)
        alone.operations->advance(&alone, i);
    return (double)(now() - from) / (double)t->op_count;
}

bool contest_opennuma(const trace *t, onuma_source source, contest_clock *now, contest_figures *out) {
    world w;
    replay_result result;
    if (!open_world(&w, t, source)) return false;
    replay_run(t, 1, false, now, w.pool, &w.queues, NULL, &result);
    close_world(&w);
    if (result.errors || !open_world(&w, t, source)) return false;
    const double harness = harness_time(t, &w.queues, now);
    streams_finish(&w.queues); /* the library looks at released queues until they are done */
    close_world(&w);
    *out = (contest_figures){.peak_reserved = result.peak_reserved,
                             .metadata_peak = result.metadata_peak,
                             .calls = result.driver_calls,
                             .ns = result.ns_per_op > harness ? result.ns_per_op - harness : 0};
    return true;
}

/* ------------------------------------------------------------------- single operations */

typedef struct watch {
    contest_clock *now;
    contest_latencies *sums;
    onuma_pool *pool;
    uint64_t calls;
} watch;

static uint64_t calls_of(onuma_pool *pool) {
    onuma_pool_stats stats = ONUMA_POOL_STATS_INIT;
    if (onuma_pool_get_stats(pool, &stats) != ONUMA_OK) return 0;
    return stats.segment_alloc_count + stats.segment_free_count + stats.commit_count + stats.decommit_count;
}

static unsigned log2_of(uint64_t x) {
    unsigned top = 0;
    while (x >>= 1)
        top++;
    return top;
}

static void note(watch *w, uint64_t ns) {
    contest_latencies *sums = w->sums;
    const uint64_t calls = calls_of(w->pool);
    if (calls != w->calls) {
        w->calls = calls;
        sums->called++;
        if (ns > sums->called_longest) sums->called_longest = ns;
        return;
    }
    const unsigned top = log2_of(ns);
    sums->count++;
    sums->buckets[top]++;
    sums->fine[top * 8 + (top >= 3 ? (ns >> (top - 3)) & 7 : 0)]++;
    if (ns > sums->longest) sums->longest = ns;
}

static bool time_operation(watch *w, const trace *t, streams *queues, void **blocks, const trace_op *op) {
    const trace_block *block = &t->blocks[op->block];
    onuma_queue *queue = queues->queues[op->stream];
    onuma_result r = ONUMA_OK;
    if (op->kind == TRACE_RELEASE) {
        queues->operations->release(queues, block->release);
        return true;
    }
    if (op->kind == TRACE_FREE && block->release)
        r = queues->operations->later_use(queues, blocks[op->block], block->release);
    const uint64_t from = w->now();
    if (r == ONUMA_OK)
        r = op->kind == TRACE_ALLOC ? onuma_alloc(w->pool, (size_t)block->size, 0, queue, &blocks[op->block])
                                    : onuma_free(blocks[op->block], queue);
    const uint64_t spent = w->now() - from;
    if (r != ONUMA_OK) cli_error("bench replay: %s: %s", onuma_result_name(r), onuma_last_error());
    note(w, spent);
    if (op->kind == TRACE_FREE) blocks[op->block] = NULL;
    return r == ONUMA_OK;
}

bool contest_latency(const trace *t, onuma_source source, contest_clock *now, contest_latencies *sums) {
    world w;
    if (!open_world(&w, t, source)) return false;
    void **blocks = cli_allocate(t->block_count * sizeof *blocks);
    memset(blocks, 0, t->block_count * sizeof *blocks);
    watch one = {.now = now, .sums = sums, .pool = w.pool};
    bool ok = true;
    for (size_t i = 0; i < t->op_count && ok; i++) {
        w.queues.operations->advance(&w.queues, i);
        ok = time_operation(&one, t, &w.queues, blocks, &t->ops[i]);
    }
    for (size_t i = 0; i < t->block_count; i++)
        if (blocks[i]) (void)onuma_free(blocks[i], NULL);
    streams_finish(&w.queues);
    free(blocks);
    close_world(&w);
    return ok;
}

void contest_latency_end(contest_latencies *sums) {
    uint64_t beyond = sums->count / 10000;
    size_t at = sizeof sums->fine / sizeof *sums->fine;
    while (at > 0 && sums->fine[at - 1] <= beyond)
        beyond -= sums->fine[--at];
    const unsigned top = (unsigned)(at ? at - 1 : 0) / 8, eighth = (unsigned)(at ? at - 1 : 0) % 8;
    const double end = (double)((uint64_t)1 << top) * (1 + (eighth + 1) / 8.0), longest = (double)sums->longest;
    sums->percentile = end < longest ? end : longest;
}
