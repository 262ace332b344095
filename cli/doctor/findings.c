/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor/findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

finding *findings_add(findings *list, finding_severity severity, const char *about) {
    finding *item = cli_allocate(sizeof *item);
    *item = (finding){.about = about, .severity = severity};
    list->items = cli_reallocate(list->items, (list->count + 1) * sizeof *list->items);
    list->items[list->count++] = item;
    return item;
}

void finding_say(finding_text *out, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(out->text, sizeof out->text, format, arguments);
    va_end(arguments);
}

/* Whether it speaks of one driver interface, and so of no other. */
static bool is_of_an_interface(const finding *f) {
    static const char *const names[] = {"cuda", "opencl", "level_zero"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(f->about, names[i]) == 0) return true;
    return false;
}

static bool blocks(const finding *f, const char *backend) {
    if (f->severity != FINDING_BLOCKS) return false;
    if (f->everything || strcmp(f->about, backend) == 0) return true;
    return strcmp(backend, "host") != 0 && strcmp(f->about, "host") != 0 && !is_of_an_interface(f);
}

const finding *findings_blocking(const findings *list, const char *backend) {
    for (size_t i = 0; i < list->count; i++)
        if (blocks(list->items[i], backend)) return list->items[i];
    return NULL;
}

void findings_block_what_disables(findings *list, size_t first) {
    for (size_t i = first; i < list->count; i++)
        if (list->items[i]->disables) list->items[i]->severity = FINDING_BLOCKS;
}

bool findings_any_blocks(const findings *list) {
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i]->severity == FINDING_BLOCKS) return true;
    return false;
}

const char *finding_severity_name(finding_severity severity) {
    static const char *const names[] = {"note", "slows", "blocks"};
    return names[severity];
}

void findings_drop(findings *list) {
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    *list = (findings){NULL, 0};
}
