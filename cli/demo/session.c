/* SPDX-License-Identifier: Apache-2.0 */
/* From a request to results: the runtime, the checks in order, the tables, and the end. */
#include "clock.h"
#include "demo/demo.h"
#include "progress.h"

#include <stdio.h>
#include <string.h>

/* Leaks are counted always, lines are printed only for those who asked for them. */
static void take_log_line(void *user, onuma_log_level level, const char *line) {
    demo *d = user;
    (void)level;
    /* Leaks are reported by the thread that ends the runtime, and that is the demo's only one. */
    if (!strncmp(line, "opennuma: leak:", 15)) d->leaks++;
    if (!d->print_log) return;
    cli_progress_end();
    fprintf(stderr, "%s\n", line);
}

bool demo_alloc(demo *d, size_t size, void **out) {
    *out = NULL;
    return runner_check(&d->run, onuma_alloc(d->pool, size, 0, NULL, out), "onuma_alloc");
}

bool demo_settle(demo *d, onuma_pool *pool) {
    runner *r = &d->run;
    onuma_pool_stats stats = ONUMA_POOL_STATS_INIT;
    uint64_t end = cli_now() + DEMO_PATIENCE_NS;
    if (!runner_finish(r)) return false;
    do {
        if (!runner_check(r, onuma_pool_trim(pool, 0, NULL), "onuma_pool_trim") ||
            !runner_check(r, onuma_pool_get_stats(pool, &stats), "onuma_pool_get_stats"))
            return false;
        if (!stats.pending_bytes && !stats.in_use_blocks && !stats.reserved_bytes) return true;
        cli_sleep(DEMO_PAUSE_NS);
    } while (cli_now() < end);
    return runner_fail(r, "with all freed and trimmed, %llu blocks live, %llu bytes are reserved, %llu are pending",
                       (unsigned long long)stats.in_use_blocks, (unsigned long long)stats.reserved_bytes,
                       (unsigned long long)stats.pending_bytes);
}

static bool run_check(demo *d, const char *name, demo_check_function *run) {
    demo_check *check = &d->checks[d->check_count++];
    check->name = name;
    cli_progress(name, d->check_count, DEMO_CHECKS + 2);
    check->ok = run(d, check->detail, sizeof check->detail);
    if (!check->ok) snprintf(check->detail, sizeof check->detail, "%s", d->run.error);
    return check->ok;
}

static bool refuse_to_run(demo *d, char *detail, size_t detail_size) {
    (void)detail;
    (void)detail_size;
    return runner_fail(&d->run, "not run, because the device could not be set up");
}

static void run_tables(demo *d) {
    cli_progress("transfer", DEMO_CHECKS, DEMO_CHECKS + 2);
    bool good = demo_measure_transfer(d);
    cli_progress("workload", DEMO_CHECKS + 1, DEMO_CHECKS + 2);
    if (good) good = demo_measure_workload(d);
    if (!good) snprintf(d->table_error, sizeof d->table_error, "%s", d->run.error);
}

static void run_all(demo *d) {
    bool ready = run_check(d, "initialize", demo_check_initialize);
    run_check(d, "allocate", ready ? demo_check_allocate : refuse_to_run);
    run_check(d, "operate", ready ? demo_check_operate : refuse_to_run);
    run_check(d, "alias", ready ? demo_check_alias : refuse_to_run);
    run_check(d, "shared_access", ready ? demo_check_shared_access : refuse_to_run);
    if (ready && !d->checks_only) run_tables(d);
    run_check(d, "release", ready ? demo_check_release : refuse_to_run);
    cli_progress_end();
}

/* The runtime goes, and what it reports as leaked counts against the check that nothing stays. */
static void shut_down(demo *d) {
    demo_check *release = &d->checks[d->check_count - 1];
    runner_close(&d->run);
    onuma_runtime_destroy(d->runtime);
    if (!release->ok || !d->leaks) return;
    release->ok = false;
    snprintf(release->detail, sizeof release->detail, "the runtime reports %zu leaks at its end", d->leaks);
}

static onuma_result find_device(demo *d) {
    onuma_result r = ONUMA_OK;
    if (d->device_id)
        r = onuma_device_find(d->runtime, d->device_id, &d->device);
    else
        d->device = onuma_device_at(d->runtime, 0);
    d->info = (onuma_device_info)ONUMA_DEVICE_INFO_INIT;
    return r == ONUMA_OK ? onuma_device_get_info(d->device, &d->info) : r;
}

onuma_result demo_run(demo *d) {
    onuma_runtime_desc desc = ONUMA_RUNTIME_DESC_INIT;
    desc.log = take_log_line;
    desc.log_user = d;
    /* Leaks are told from this level on. What the environment says of the log stays as it is. */
    desc.config = d->print_log ? NULL : "log:warn";
    onuma_result r = onuma_runtime_create(&desc, &d->runtime);
    if (r != ONUMA_OK) return r;
    r = find_device(d);
    if (r != ONUMA_OK) {
        onuma_runtime_destroy(d->runtime);
        return r;
    }
    run_all(d);
    shut_down(d);
    return ONUMA_OK;
}
