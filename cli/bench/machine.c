/* SPDX-License-Identifier: Apache-2.0 */
#if !defined(_WIN32)
#define _POSIX_C_SOURCE 200809L
#endif
#include "bench/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/alloc/thread.h"
#include "json.h"
#include "output.h"

#if defined(_WIN32)
char *bench_processor_name(void) {
    const char *name = getenv("PROCESSOR_IDENTIFIER");
    return cli_copy_text(name ? name : "unknown");
}

static char *system_name(void) {
    return cli_copy_text("Windows");
}
#else
#include <sys/utsname.h>

char *bench_processor_name(void) {
    static const char key[] = "model name"; /* 64-bit Arm has none */
    char line[512], *name = NULL;
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && !name && fgets(line, sizeof line, file)) {
        const char *value = strchr(line, ':');
        if (strncmp(line, key, sizeof key - 1) != 0 || !value) continue;
        line[strcspn(line, "\n")] = '\0';
        name = cli_copy_text(value + 1 + strspn(value + 1, " "));
    }
    if (file) fclose(file);
    return name ? name : cli_copy_text("unknown");
}

static char *system_name(void) {
    struct utsname names;
    if (uname(&names) != 0) return cli_copy_text("unknown");
    char text[sizeof names.sysname + sizeof names.release + sizeof names.machine];
    snprintf(text, sizeof text, "%s %s %s", names.sysname, names.release, names.machine);
    return cli_copy_text(text);
}
#endif

void bench_add_machine(cJSON *object) {
    cJSON *machine = cJSON_AddObjectToObject(object, "machine");
    char *processor = bench_processor_name(), *system = system_name();
    cli_json_text(machine, "processor", processor);
    cli_json_integer(machine, "processors", bench_processors());
    cli_json_text(machine, "system", system);
    free(processor);
    free(system);
}
