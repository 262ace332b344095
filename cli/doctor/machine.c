/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor/machine.h"

#include "doctor/container.h"
#include "doctor/graphics.h"
#include "doctor/memory.h"
#include "doctor/opencl.h"

#include <stdio.h>
#include <string.h>

static void say_together_they_are_deadly(findings *list) {
    finding *f = findings_add(list, FINDING_BLOCKS, "opencl");
    finding_say(&f->lacks, "OpenCL takes down, or hangs, every program that asks for it");
    finding_say(&f->evidence, "each driver alone does not; all of them together, through the loader, do");
    finding_say(&f->remedy, "move the .icd files away one by one, and remove the package of the one at fault");
}

/* Nothing stands between a program and a chip that a device of the library is. */
static void take_out_chips_in_use(graphics *chips, const backends_report *report, graphics *out) {
    *out = (graphics){.count = 0};
    size_t kept = 0;
    for (size_t i = 0; i < chips->count; i++) {
        char physical[sizeof chips->chips[i].slot + 4];
        bool in_use = false;
        graphics_chip chip = chips->chips[i];
        snprintf(physical, sizeof physical, "pci:%s", chips->chips[i].slot);
        for (size_t d = 0; d < report->device_count; d++)
            if (strcmp(report->devices[d].physical, physical) == 0) in_use = true;
        chip.usable |= in_use;
        if (in_use)
            out->chips[out->count++] = chip;
        else
            chips->chips[kept++] = chip;
    }
    chips->count = kept;
}

/* The kernel has NVIDIA's driver, and programs have not. */
static void say_no_cuda(findings *list, const graphics *chips, const packages *system, const backends_report *report) {
    const char *detail = NULL;
    for (size_t i = 0; i < report->backend_count; i++)
        if (strcmp(report->backends[i].name, "cuda") == 0 && report->backends[i].status == ONUMA_BACKEND_ABSENT)
            detail = report->backends[i].detail;
    for (size_t i = 0; detail && i < chips->count; i++) {
        if (strcmp(chips->chips[i].driver, "nvidia") != 0) continue;
        finding *f = findings_add(list, FINDING_BLOCKS, "cuda");
        finding_say(&f->lacks, "the NVIDIA graphics at PCI %s has its kernel driver, and programs have no CUDA",
                    chips->chips[i].slot);
        finding_say(&f->evidence, "%s", detail);
        finding_say(&f->remedy, "%s %s; in a container: docker run --gpus all", system->install, system->nvidia);
        return;
    }
}

/* OpenCL may drive the chip and Level Zero not. */
static void say_no_level_zero(findings *list, const graphics *idle, const graphics *in_use, const packages *system,
                              const backends_report *report) {
    if (!backends_is_absent(report, "level_zero")) return;
    graphics_examine_level_zero(idle, list, system);
    graphics_examine_level_zero(in_use, list, system);
}

void machine_examine(findings *list, const backends_report *report, double seconds, bool survived) {
    static const char this_machine[] = "";
    const packages *system = packages_of_system(this_machine);
    container_examine(list, system, this_machine);
    graphics chips, in_use;
    graphics_read(&chips, this_machine);
    take_out_chips_in_use(&chips, report, &in_use);
    graphics_examine(&chips, list, system, this_machine);
    if (!survived || !backends_left_out(report)) {
        opencl_state opencl;
        opencl_examine(list, system, seconds, &opencl);
        graphics_examine_drivers(&chips, list, system, &opencl);
        say_no_cuda(list, &chips, system, report);
        say_no_level_zero(list, &chips, &in_use, system, report);
        if (!survived && !findings_blocking(list, "opencl")) say_together_they_are_deadly(list);
    }
    memory_examine(list, this_machine);
}
