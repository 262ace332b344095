/* SPDX-License-Identifier: Apache-2.0 */
/* On Windows the graphics driver brings OpenCL with it, so there is one thing that can be missing. */
#include "doctor/machine.h"
#include "opencl/loader.h"

void machine_examine(findings *list, const backends_report *report, double seconds, bool survived) {
    (void)seconds;
    (void)survived;
    const char *why = "";
    if (backends_left_out(report) || cli_opencl_load(&why)) return;
    finding *f = findings_add(list, FINDING_BLOCKS, "opencl");
    finding_say(&f->lacks, "no OpenCL (OpenCL.dll) is installed");
    finding_say(&f->evidence, "%s", why);
    finding_say(&f->remedy,
                "install the graphics driver of the chip's maker (Intel, AMD, NVIDIA), rather than the one that "
                "Windows brings");
}
