/* SPDX-License-Identifier: Apache-2.0 */
/* demo: the main job, checked and measured on this machine's best device. */
#include "demo/demo.h"
#include "command.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lines that report leaks; drivers may log from threads of their own. */
static atomic_size_t leaks;

/* Leaks are counted always, lines are printed only for those who asked for them. */
static void take_log_line(void *user, onuma_log_level level, const char *line) {
    const bool *print = user;
    (void)level;
    if (!strncmp(line, "opennuma: leak:", 15)) atomic_fetch_add(&leaks, 1);
    if (!*print) return;
    cli_progress_end();
    fprintf(stderr, "%s\n", line);
}

bool demo_alloc(demo *d, size_t size, void **out) {
    *out = NULL;
    return runner_check(&d->run, onuma_alloc(d->pool, size, 0, NULL, out), "onuma_alloc");
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
    if (ready) run_tables(d);
    run_check(d, "release", ready ? demo_check_release : refuse_to_run);
    cli_progress_end();
}

/* The runtime goes, and what it reports as leaked counts against the check that nothing stays. */
static void shut_down(demo *d) {
    demo_check *release = &d->checks[d->check_count - 1];
    runner_close(&d->run);
    onuma_runtime_destroy(d->runtime);
    if (release->ok && atomic_load(&leaks)) {
        release->ok = false;
        snprintf(release->detail, sizeof release->detail, "the runtime reports %zu leaks at its end",
                 atomic_load(&leaks));
    }
}

/* NULL id: the best device. */
static int find_device(demo *d, const char *id) {
    onuma_result r = ONUMA_OK;
    if (id)
        r = onuma_device_find(d->runtime, id, &d->device);
    else
        d->device = onuma_device_at(d->runtime, 0);
    if (r != ONUMA_OK) return cli_library_error("demo", r);
    d->info = (onuma_device_info)ONUMA_DEVICE_INFO_INIT;
    r = onuma_device_get_info(d->device, &d->info);
    return r == ONUMA_OK ? CLI_HELD : cli_library_error("demo", r);
}

int cli_demo_main(int argc, char **argv) {
    bool json = false;
    const char *id = NULL, *fault = NULL;
    const cli_option options[] = {
        {.name = "device", .value = "ID", .help = "the device to use; default: the best one", .text = &id},
        {.name = "fault",
         .value = "NAME",
         .help = "for testing: break a rule on purpose, which must fail",
         .text = &fault,
         .choices = DEMO_FAULT_NAMES},
        CLI_OPTION_JSON(&json),
    };
    const cli_usage usage = {"demo",
                             "",
                             "Check that CPU and device share memory, and measure it against the default way.",
                             options,
                             sizeof options / sizeof *options,
                             0};
    int status;
    if (!cli_options_parse(&usage, argc, argv, NULL, &status)) return status;
    const char *asked = getenv("OPENNUMA_CONF");
    bool print_log = asked && strstr(asked, "log:");
    onuma_runtime_desc desc = ONUMA_RUNTIME_DESC_INIT;
    desc.log = take_log_line;
    desc.log_user = &print_log;
    desc.config = print_log ? NULL : "log:warn";
    demo *d = cli_allocate(sizeof *d);
    *d = (demo){.fault = demo_fault_find(fault)};
    onuma_result r = onuma_runtime_create(&desc, &d->runtime);
    if (r != ONUMA_OK) {
        free(d);
        return cli_library_error("demo", r);
    }
    status = find_device(d, id);
    if (status != CLI_HELD) {
        onuma_runtime_destroy(d->runtime);
        free(d);
        return status;
    }
    run_all(d);
    shut_down(d);
    if (json)
        demo_print_json(d);
    else
        demo_print_text(d);
    status = demo_all_held(d) ? CLI_HELD : CLI_FAILED;
    free(d);
    return status;
}
