/* SPDX-License-Identifier: Apache-2.0 */
#include "demo/fault.h"

#include <stddef.h>
#include <string.h>

static const demo_fault faults[] = {
    {.name = "view", .drop_offset = true},     {.name = "copy", .private_copy = true},
    {.name = "acquire", .skip_acquire = true}, {.name = "release", .skip_release = true},
    {.name = "order", .skip_order = true},     {.name = "kernel", .wrong_kernel = true},
};

const demo_fault *demo_fault_find(const char *name) {
    static const demo_fault none;
    if (!name) return &none;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        if (!strcmp(faults[i].name, name)) return &faults[i];
    return NULL;
}
