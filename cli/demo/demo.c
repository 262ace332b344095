/* SPDX-License-Identifier: Apache-2.0 */
/* demo: the main job, checked and measured on this machine's best device. */
#include "demo/demo.h"
#include "command.h"

#include <stdlib.h>
#include <string.h>

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
    const char *config = getenv("OPENNUMA_CONF");
    demo *d = cli_allocate(sizeof *d);
    *d = (demo){.device_id = id, .fault = demo_fault_find(fault), .print_log = config && strstr(config, "log:")};
    onuma_result r = demo_run(d);
    if (r != ONUMA_OK) {
        status = cli_library_error("demo", r);
    } else {
        if (json)
            demo_print_json(d);
        else
            demo_print_text(d);
        status = demo_all_held(d) ? CLI_HELD : CLI_FAILED;
    }
    free(d);
    return status;
}
