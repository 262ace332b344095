/* SPDX-License-Identifier: Apache-2.0 */
/* doctor: what keeps this machine's hardware from being used, why, and the exact remedy. */
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "doctor/backends.h"
#include "doctor/machine.h"
#include "doctor/report.h"
#include "doctor/settings.h"
#include "doctor/sharing.h"

/* From the outside in: what is set, what the library makes of this machine, and what the machine keeps from it. */
static void examine(findings *list, backends_report *report, double seconds, bool probe) {
    bool survived;
    settings_examine(list);
    backends_examine(list, report, seconds, probe, &survived);
    machine_examine(list, report, seconds, survived);
    if (probe) sharing_examine(list, report);
    backends_conclude(list, report);
}

static const double longest_timeout = 86400;

static const char summary[] =
    "Tell what keeps this machine's hardware from being used: drivers that are missing, broken or shut out, device\n"
    "nodes that may not be opened, settings in force; and how memory is shared with each device. Every finding has "
    "its\n"
    "evidence and its remedy. \"blocks\": something that is here cannot be used; \"slows\": it works, but worse than "
    "it\n"
    "could; \"note\": worth knowing. Drivers are tried in processes of their own, so one that crashes or hangs is "
    "named.\n"
    "Exit status: 0 if nothing blocks, 1 if something does. A machine without graphics needs an OpenCL driver too:\n"
    "one that computes on the CPU.";

int cli_doctor_main(int argc, char **argv) {
    bool json = false, closed = false;
    double seconds = 30;
    const cli_option options[] = {
        {.name = "no-probe", .help = "do not open the devices to see how each shares memory", .flag = &closed},
        {.name = "timeout",
         .value = "S",
         .help = "seconds that each driver may take before it counts as hanging (30)",
         .number = &seconds},
        CLI_OPTION_JSON(&json),
    };
    const cli_usage usage = {"doctor", "", summary, options, sizeof options / sizeof *options, 0};
    int status;
    if (!cli_options_parse(&usage, argc, argv, NULL, &status)) return status;
    if (seconds > longest_timeout)
        return cli_bad_request("--timeout cannot be %g; it is a number of seconds, at most %g", seconds,
                               longest_timeout);
    findings list = {NULL, 0};
    backends_report *report = cli_allocate(sizeof *report);
    examine(&list, report, seconds, !closed);
    if (json)
        report_json(&list, report);
    else
        report_text(&list, report);
    bool blocked = findings_any_blocks(&list);
    findings_drop(&list);
    free(report);
    return blocked ? CLI_FAILED : CLI_HELD;
}
