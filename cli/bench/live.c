/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench live: whether a pool slows down as it fills. Blocks at random places are freed and others allocated instead,
 * with ten thousand live ones and with as many as are asked for, of sizes from 64 bytes to 1 MiB: 10 million of those
 * are a tebibyte, so there is no memory behind them. The harness itself misses the caches when it looks for a block
 * among millions; a loop that does only this tells how long that takes, and is taken off.
 *
 * A second pool, of blocks of 4 KiB in the mean, tells how much metadata goes with the bytes in use.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/alloc/thread.h"
#include "bench/bench.h"
#include "bench/machine.h"

enum { FEW = 10000, MOST_OPERATIONS = 100000000 };

typedef struct step {
    uint32_t block, size;
} step;

typedef struct plan {
    const char *name;
    uint32_t least, most; /* sizes */
    bool logarithmic;     /* every doubling as likely as any other; else every size */
} plan;

static const plan mixed = {"64 B to 1 MiB", 64, 1 << 20, true}, pages = {"4 KiB in the mean", 1, 8191, false};

typedef struct figures {
    uint64_t blocks, in_use, metadata;
    double ns, harness; /* for a free and an allocation; the harness's part is taken off already */
} figures;

static uint64_t draw(uint64_t *state) {
    uint64_t x = *state += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

static uint32_t draw_size(const plan *p, uint64_t *state) {
    const double part = (double)(draw(state) >> 11) * 0x1p-53;
    if (!p->logarithmic) return p->least + (uint32_t)(part * (p->most - p->least + 1));
    return (uint32_t)(p->least * pow((double)p->most / p->least, part));
}

/* ---------------------------------------------------------------- measuring */

typedef struct world {
    onuma_runtime *runtime;
    onuma_pool *pool;
    void **blocks;
    step *steps;
    size_t count, operations;
} world;

static bool fill(world *w, const plan *p, uint64_t *state) {
    for (size_t i = 0; i < w->count; i++) {
        if (i % 65536 == 0) cli_progress(p->name, i, w->count);
        if (onuma_alloc(w->pool, draw_size(p, state), 0, NULL, &w->blocks[i]) != ONUMA_OK) return false;
    }
    for (size_t i = 0; i < w->operations; i++)
        w->steps[i] = (step){(uint32_t)((draw(state) >> 32) * w->count >> 32), draw_size(p, state)};
    return true;
}

static bool replace(world *w) {
    for (size_t i = 0; i < w->operations; i++) {
        void **block = &w->blocks[w->steps[i].block];
        if (onuma_free(*block, NULL) != ONUMA_OK) return false;
        if (onuma_alloc(w->pool, w->steps[i].size, 0, NULL, block) != ONUMA_OK) return false;
    }
    return true;
}

/* What replace does but for the calls. The blocks' own cache lines count as the pool's. */
static void only_look(world *w) {
    for (size_t i = 0; i < w->operations; i++) {
        void *volatile *block = &w->blocks[w->steps[i].block];
        *block = *block;
    }
}

static double time_of(const world *w, uint64_t from) {
    return (double)(bench_thread_time() - from) / (double)w->operations;
}

static bool run(world *w, const plan *p, figures *out) {
    uint64_t state = 1;
    onuma_device *device;
    onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
    onuma_pool_stats stats = ONUMA_POOL_STATS_INIT;
    desc.simulate = true;
    if (onuma_runtime_create(NULL, &w->runtime) != ONUMA_OK ||
        onuma_device_find(w->runtime, "host", &device) != ONUMA_OK ||
        onuma_pool_create(device, &desc, &w->pool) != ONUMA_OK || !fill(w, p, &state) || !replace(w))
        return false;
    uint64_t from = bench_thread_time();
    only_look(w);
    out->harness = time_of(w, from);
    from = bench_thread_time();
    if (!replace(w)) return false;
    out->ns = time_of(w, from) - out->harness;
    if (onuma_pool_get_stats(w->pool, &stats) != ONUMA_OK) return false;
    out->blocks = stats.in_use_blocks;
    out->in_use = stats.in_use_bytes;
    out->metadata = stats.metadata_bytes;
    return true;
}

static void close_world(world *w) {
    for (size_t i = 0; i < w->count; i++)
        if (w->blocks[i]) (void)onuma_free(w->blocks[i], NULL);
    if (w->pool) onuma_pool_destroy(w->pool);
    onuma_runtime_destroy(w->runtime);
    free(w->blocks);
    free(w->steps);
}

static bool measure(const plan *p, size_t count, size_t operations, figures *out) {
    world w = {.count = count, .operations = operations};
    w.blocks = cli_allocate(count * sizeof *w.blocks);
    w.steps = cli_allocate(operations * sizeof *w.steps);
    memset(w.blocks, 0, count * sizeof *w.blocks);
    const bool ok = run(&w, p, out);
    cli_progress_end();
    if (!ok) cli_error("bench live: %s", onuma_last_error());
    close_world(&w);
    return ok;
}

/* ---------------------------------------------------------------- reporting */

enum { MEASURED = 3 };

typedef struct row {
    const plan *plan;
    size_t count;
    figures figures;
} row;

static double share(const figures *f) {
    return 100 * (double)f->metadata / (double)f->in_use;
}

static void report_json(const row *rows) {
    cJSON *object = cJSON_CreateObject();
    cli_json_text(object, "version", onuma_version());
    bench_add_machine(object);
    cJSON *tests = cJSON_AddArrayToObject(object, "tests");
    for (size_t i = 0; i < MEASURED; i++) {
        const figures *f = &rows[i].figures;
        cJSON *one = cJSON_CreateObject();
        cli_json_text(one, "name", rows[i].plan->name);
        cli_json_integer(one, "blocks", f->blocks);
        cli_json_integer(one, "in_use", f->in_use);
        cli_json_integer(one, "metadata", f->metadata);
        cli_json_number(one, "metadata_percent", share(f));
        cli_json_number(one, "ns", f->ns);
        cli_json_number(one, "harness_ns", f->harness);
        cJSON_AddItemToArray(tests, one);
    }
    cli_json_number(object, "slower", rows[1].figures.ns / rows[0].figures.ns);
    cli_json_print(object);
}

static void report_text(const row *rows) {
    cli_table *table =
        cli_table_create(6, "<sizes", ">blocks", ">in use", ">metadata", ">free and allocation", ">harness");
    for (size_t i = 0; i < MEASURED; i++) {
        const figures *f = &rows[i].figures;
        char blocks[24], percent[24];
        snprintf(blocks, sizeof blocks, "%llu", (unsigned long long)f->blocks);
        snprintf(percent, sizeof percent, "%.2f %%", share(f));
        cli_table_row(table, rows[i].plan->name, blocks, cli_bytes(f->in_use).text, percent,
                      cli_nanoseconds(f->ns).text, cli_nanoseconds(f->harness).text);
    }
    cli_table_print(table, 0);
    printf("\nWith so many blocks an operation takes %.2f times as long. Times are the thread's CPU time.\n",
           rows[1].figures.ns / rows[0].figures.ns);
}

int cli_bench_live(int argc, char **argv) {
    double blocks = 1e7, operations = 1e6;
    bool json = false;
    const cli_option options[] = {
        {.name = "blocks", .value = "N", .help = "live at once, 10000 to 100 million (10 million)", .number = &blocks},
        {.name = "operations", .value = "N", .help = "frees and allocations timed (a million)", .number = &operations},
        CLI_OPTION_JSON(&json),
    };
    const cli_usage usage = {"bench live",
                             "",
                             "Random replacement among ten thousand live blocks and among many more, with no memory\n"
                             "behind them; and how much metadata goes with blocks of 4 KiB.",
                             options,
                             sizeof options / sizeof *options,
                             0};
    int status;
    if (!cli_options_parse(&usage, argc, argv, NULL, &status)) return status;
    if (blocks < (double)FEW || blocks > 1e8 || blocks != (double)(size_t)blocks)
        return cli_bad_request("--blocks cannot be %g: a whole number from %d to 100 million", blocks, FEW);
    if (operations < 1 || operations > (double)MOST_OPERATIONS || operations != (double)(size_t)operations)
        return cli_bad_request("--operations cannot be %g: a whole number from 1 to %d", operations, MOST_OPERATIONS);
    row rows[MEASURED] = {{.plan = &mixed, .count = FEW},
                          {.plan = &mixed, .count = (size_t)blocks},
                          {.plan = &pages, .count = (size_t)blocks}};
    for (size_t i = 0; i < MEASURED; i++)
        if (!measure(rows[i].plan, rows[i].count, (size_t)operations, &rows[i].figures)) return CLI_FAILED;
    if (json)
        report_json(rows);
    else
        report_text(rows);
    return CLI_HELD;
}
