/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor/sharing.h"

#include <string.h>

#include "device_sharing.h"

static const char about[] = "sharing";

static finding *tell(findings *list, finding_severity severity, const onuma_device_info *device) {
    finding *f = findings_add(list, severity, about);
    finding_say(&f->evidence, "%s (%s, %s): %s", device->id, device->name, device->driver,
                device->sharing_detail[0] ? device->sharing_detail : cli_proof_name(device->proof));
    return f;
}

static void say_none_works(findings *list, const onuma_device_info *device) {
    finding *f = tell(list, FINDING_BLOCKS, device);
    if (device->sharing_notes & ONUMA_SHARING_NOT_OFFERED) {
        finding_say(&f->lacks, "%s cannot share memory by the way that %s.share in OPENNUMA_CONF names", device->id,
                    device->backend);
        finding_say(&f->remedy, "take %s.share out of OPENNUMA_CONF, or name another way", device->backend);
    } else if (device->sharing_notes & ONUMA_SHARING_NO_KERNELS) {
        finding_say(&f->lacks, "%s runs no kernels: its driver reports success and does nothing", device->id);
        finding_say(&f->remedy, "use a driver for hardware that is there; take debug settings of this one (such as "
                                "NEOReadDebugKeys) out of the environment");
    } else if (device->sharing_notes & ONUMA_SHARING_HANGS) {
        finding_say(&f->lacks, "%s does not end the work that it is given", device->id);
        finding_say(&f->remedy, "see whether the device hangs (dmesg), restart the machine, or update its driver");
    } else {
        finding_say(&f->lacks, "no way to share memory with %s works, whatever its driver says", device->id);
        finding_say(&f->remedy, "update its driver; until then programs get device memory on it, and copies");
    }
}

static void examine_way(findings *list, const onuma_device_info *device) {
    if (device->proof == ONUMA_PROOF_FAILED) {
        say_none_works(list, device);
    } else if (device->proof == ONUMA_PROOF_UNPROVABLE) {
        finding *f = tell(list, FINDING_SLOWS, device);
        finding_say(&f->lacks,
                    "%s compiles no kernels, so how it shares memory cannot be tried: every access of the CPU "
                    "is mapped",
                    device->id);
        finding_say(&f->remedy, "install the compiler of its driver");
    } else if (device->proof == ONUMA_PROOF_ASSUMED) {
        finding *f = tell(list, FINDING_NOTE, device);
        finding_say(&f->lacks, "how %s shares memory is its driver's word: the library was told not to look",
                    device->id);
        finding_say(&f->remedy, "take opencl.probe:off out of OPENNUMA_CONF");
    } else if (device->sharing_notes & ONUMA_SHARING_SLOWER) {
        finding *f = tell(list, FINDING_SLOWS, device);
        finding_say(&f->lacks, "%s shares by %s%s; what should be faster was tried, and does not hold", device->id,
                    device->shared_via, device->coherent ? "" : ", with map and unmap");
        finding_say(&f->remedy, "none is needed for right results; a newer driver may do better");
    }
}

static void examine_size(findings *list, const onuma_device_info *device) {
    if (!(device->sharing_notes & ONUMA_SHARING_LESS)) return;
    finding *f = tell(list, FINDING_NOTE, device);
    finding_say(&f->lacks, "the driver of %s refuses sizes that it states", device->id);
    finding_say(&f->remedy, "none is needed for smaller blocks; update the driver to have larger ones");
}

/* On a chip that uses the CPU's memory, an import that is not seen to share is one that copies. */
static void examine_import(findings *list, const onuma_device_info *device) {
    const bool found = device->proof == ONUMA_PROOF_CACHED || device->proof == ONUMA_PROOF_MEASURED;
    const bool own_memory = device->type == ONUMA_DEVICE_DISCRETE;
    if (!found || device->import_zero_copy) return;
    if (device->sharing_notes & ONUMA_SHARING_NO_IMPORTS) {
        finding *f = tell(list, FINDING_SLOWS, device);
        finding_say(&f->lacks, "memory of the program's own cannot be imported into %s: it does not arrive rightly",
                    device->id);
        finding_say(&f->remedy, "allocate from the library (onuma_alloc); onuma_import is refused there");
    } else if (!own_memory) {
        finding *f = tell(list, FINDING_SLOWS, device);
        finding_say(&f->lacks, "memory imported into %s was not seen to be shared: it is perhaps copied at each map",
                    device->id);
        finding_say(&f->remedy, strcmp(device->shared_via, "import") == 0
                                    ? "update its driver: all that it shares, it shares by import"
                                    : "allocate from the library where you can (onuma_alloc), rather than import");
    }
}

static void examine_pages(findings *list, const onuma_device_info *device) {
    if (!(device->sharing_notes & ONUMA_SHARING_SMALL_PAGES)) return;
    finding *f = tell(list, FINDING_NOTE, device);
    finding_say(&f->lacks, "host.large_pages in OPENNUMA_CONF has no effect: the system gives this process none");
    finding_say(&f->remedy,
                "let the system give this user large pages (docs/configuration.md), or take the setting out");
}

void sharing_examine(findings *list, const backends_report *report) {
    for (size_t i = 0; i < report->device_count; i++) {
        examine_way(list, &report->devices[i]);
        examine_size(list, &report->devices[i]);
        examine_import(list, &report->devices[i]);
        examine_pages(list, &report->devices[i]);
    }
}
