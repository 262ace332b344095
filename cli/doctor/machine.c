/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor/machine.h"

#include "doctor/container.h"
#include "doctor/graphics.h"
#include "doctor/memory.h"
#include "doctor/opencl.h"

static void say_together_they_are_deadly(findings *list) {
    finding *f = findings_add(list, FINDING_BLOCKS, "opencl");
    finding_say(&f->lacks, "OpenCL takes down, or hangs, every program that asks for it");
    finding_say(&f->evidence, "each driver alone does not; all of them together, through the loader, do");
    finding_say(&f->remedy, "move the .icd files away one by one, and remove the package of the one at fault");
}

void machine_examine(findings *list, const backends_report *report, double seconds, bool survived) {
    static const char this_machine[] = "";
    const packages *system = packages_of_system(this_machine);
    container_examine(list, system, this_machine);
    graphics chips;
    graphics_read(&chips, this_machine);
    graphics_examine(&chips, list, system, this_machine);
    if (!survived || !backends_left_out(report)) {
        opencl_state opencl;
        opencl_examine(list, system, seconds, &opencl);
        graphics_examine_drivers(&chips, list, system, &opencl);
        if (!survived && !findings_blocking(list, "opencl")) say_together_they_are_deadly(list);
    }
    memory_examine(list, this_machine);
}
