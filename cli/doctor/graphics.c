/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "doctor/graphics.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "doctor/container.h"
#include "doctor/files.h"
#include "doctor/nodes.h"

static const char about[] = "graphics";

/* ----------------------------------------------------------------- reading */

static unsigned read_hex(const char *path) {
    char line[32];
    return read_line(path, line, sizeof line) ? (unsigned)strtoul(line, NULL, 16) : 0;
}

/* Display controllers have PCI class 03; 12 are processing accelerators, which some GPUs without a display are. */
static bool computes(unsigned class, unsigned vendor) {
    bool vendor_known = vendor == PCI_INTEL || vendor == PCI_AMD || vendor == PCI_NVIDIA;
    return vendor_known && (class >> 16 == 0x03 || (class >> 16 == 0x12 && vendor != PCI_INTEL));
}

static void read_chip(graphics *out, const char *root, const char *slot) {
    graphics_chip chip = {.usable = false};
    unsigned class = read_hex(path_of(root, "/sys/bus/pci/devices/%s/class", slot).text);
    chip.vendor = read_hex(path_of(root, "/sys/bus/pci/devices/%s/vendor", slot).text);
    chip.device = read_hex(path_of(root, "/sys/bus/pci/devices/%s/device", slot).text);
    if (!computes(class, chip.vendor) || out->count == GRAPHICS_MOST) return;
    if (snprintf(chip.slot, sizeof chip.slot, "%s", slot) >= (int)sizeof chip.slot) return; /* no slot of PCI */
    link_target(path_of(root, "/sys/bus/pci/devices/%s/driver", slot).text, chip.driver, sizeof chip.driver);
    first_entry(path_of(root, "/sys/bus/pci/devices/%s/drm", slot).text, "renderD", chip.node, sizeof chip.node);
    out->chips[out->count++] = chip;
}

static int by_slot(const void *a, const void *b) {
    return strcmp(((const graphics_chip *)a)->slot, ((const graphics_chip *)b)->slot);
}

void graphics_read(graphics *out, const char *root) {
    *out = (graphics){.count = 0};
    DIR *dir = opendir(path_of(root, "/sys/bus/pci/devices").text);
    if (!dir) return;
    const struct dirent *entry;
    while ((entry = readdir(dir)))
        if (entry->d_name[0] != '.') read_chip(out, root, entry->d_name);
    closedir(dir);
    qsort(out->chips, out->count, sizeof out->chips[0], by_slot);
}

/* --------------------------------------------------------- kernel's driver */

typedef struct chip_name {
    char text[96];
} chip_name;

static const char *vendor_name(unsigned vendor) {
    return vendor == PCI_INTEL ? "Intel" : vendor == PCI_AMD ? "AMD" : "NVIDIA";
}

static chip_name name_of(const graphics_chip *chip) {
    chip_name name;
    snprintf(name.text, sizeof name.text, "%s graphics %04x:%04x at PCI %s", vendor_name(chip->vendor), chip->vendor,
             chip->device, chip->slot);
    return name;
}

static const char *const *modules_for(unsigned vendor) {
    static const char *const intel[] = {"i915", "xe", NULL}, *const amd[] = {"amdgpu", "radeon", NULL},
                             *const nvidia[] = {"nvidia", "nouveau", NULL};
    return vendor == PCI_INTEL ? intel : vendor == PCI_AMD ? amd : nvidia;
}

/* Where modprobe is told to leave a module out: "blacklist i915", or "install i915 /bin/false". */
static bool modprobe_leaves_out(const char *root, const char *module, file_path *where) {
    static const char *const folders[] = {"/etc/modprobe.d", "/run/modprobe.d", "/usr/lib/modprobe.d",
                                          "/lib/modprobe.d"};
    char blacklist[64], install[64];
    snprintf(blacklist, sizeof blacklist, "blacklist %s\n", module);
    snprintf(install, sizeof install, "install %s /bin/", module);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        DIR *dir = opendir(path_of(root, "%s", folders[i]).text);
        const struct dirent *entry;
        while (dir && (entry = readdir(dir))) {
            file_path path = path_of(root, "%s/%s", folders[i], entry->d_name);
            if (entry->d_name[0] == '.' || !(file_mentions(path.text, blacklist) || file_mentions(path.text, install)))
                continue;
            *where = path;
            closedir(dir);
            return true;
        }
        if (dir) closedir(dir);
    }
    return false;
}

/* A word of the kernel's command line that keeps graphics drivers away; "" if there is none. */
static void refusing_word(const char *root, const char *module, char *word, size_t size) {
    char line[4096], *rest = NULL;
    word[0] = '\0';
    if (!read_line(path_of(root, "/proc/cmdline").text, line, sizeof line)) return;
    for (char *at = strtok_r(line, " ", &rest); at; at = strtok_r(NULL, " ", &rest)) {
        char modeset[64];
        snprintf(modeset, sizeof modeset, "%s.modeset=0", module);
        bool blacklists = strstr(at, "blacklist=") && strstr(at, module);
        if (strcmp(at, "nomodeset") != 0 && strcmp(at, modeset) != 0 && !blacklists) continue;
        snprintf(word, size, "%s", at);
        return;
    }
}

static bool kernel_has(const char *root, const char *module) {
    struct utsname kernel;
    char file[64];
    snprintf(file, sizeof file, "/%s.ko", module);
    if (uname(&kernel) != 0) return true;
    return file_mentions(path_of(root, "/lib/modules/%s/modules.dep", kernel.release).text, file) ||
           file_mentions(path_of(root, "/lib/modules/%s/modules.builtin", kernel.release).text, file);
}

static void say_no_kernel_driver(const graphics_chip *chip, findings *list, const packages *system, const char *root) {
    const char *const *modules = modules_for(chip->vendor);
    const char *module = modules[0];
    finding *f = findings_add(list, FINDING_BLOCKS, about);
    finding_say(&f->lacks, "no kernel driver has taken the %s", name_of(chip).text);
    for (size_t i = 0; modules[i]; i++) {
        file_path where;
        char word[128];
        refusing_word(root, modules[i], word, sizeof word);
        if (word[0]) {
            finding_say(&f->evidence, "the kernel was started with %s", word);
            finding_say(&f->remedy,
                        "take %s out of the kernel's command line (/etc/default/grub, then sudo update-grub or "
                        "grub2-mkconfig), and start the machine anew",
                        word);
            return;
        }
        if (modprobe_leaves_out(root, modules[i], &where)) {
            finding_say(&f->evidence, "%s keeps the module %s from being loaded", where.text, modules[i]);
            finding_say(&f->remedy, "take that line out of %s, then: sudo modprobe %s", where.text, modules[i]);
            return;
        }
        if (kernel_has(root, modules[i])) module = modules[i];
    }
    finding_say(&f->evidence, "/sys/bus/pci/devices/%s has no driver, and %s is %sloaded", chip->slot, module,
                path_exists(path_of(root, "/sys/module/%s", module).text) ? "" : "not ");
    if (kernel_has(root, module))
        finding_say(&f->remedy, "sudo modprobe %s; what it says: sudo dmesg | grep %s", module, module);
    else if (chip->vendor == PCI_NVIDIA)
        finding_say(&f->remedy, "%s %s", system->install, system->nvidia);
    else if (system->kernel_modules[0])
        finding_say(&f->remedy, "%s %s (this kernel has no module %s)", system->install, system->kernel_modules,
                    module);
    else
        finding_say(&f->remedy, "install a kernel that has the module %s: this one has not", module);
}

/* ------------------------------------------------------------- device node */

static void say_no_node(const graphics_chip *chip, findings *list, const char *root) {
    finding *f = findings_add(list, FINDING_BLOCKS, about);
    finding_say(&f->lacks, "the %s has no device node that programs could open", name_of(chip).text);
    if (!chip->node[0]) {
        finding_say(&f->evidence, "its kernel driver %s made no render node", chip->driver);
        finding_say(&f->remedy, strcmp(chip->driver, "vfio-pci") == 0
                                    ? "it is set aside for a virtual machine (vfio-pci): give it back to its own driver"
                                    : "see what the driver says: sudo dmesg | grep -i drm");
        return;
    }
    container_kind kind = container_of_process(root);
    finding_say(&f->evidence, "the kernel has %s, and /dev/dri/%s does not exist%s%s", chip->node, chip->node,
                kind.name[0] ? "; this is a container: " : "", kind.name);
    if (kind.name[0])
        finding_say(&f->remedy, "%s", container_remedy(&kind, chip->vendor).text);
    else
        finding_say(&f->remedy, "sudo udevadm trigger --subsystem-match=drm");
}

void graphics_examine(graphics *g, findings *list, const packages *system, const char *root) {
    for (size_t i = 0; i < g->count; i++) {
        graphics_chip *chip = &g->chips[i];
        if (!chip->driver[0])
            say_no_kernel_driver(chip, list, system, root);
        else if (!chip->node[0] || !path_exists(path_of(root, "/dev/dri/%s", chip->node).text))
            say_no_node(chip, list, root);
        else
            chip->usable = node_examine(list, root, chip->node);
    }
}

/* ---------------------------------------------------------- OpenCL drivers */

static void say_intel(const graphics_chip *chip, finding *f, const packages *system, const opencl_state *opencl) {
    unsigned generation = graphics_intel_generation(chip->device);
    bool legacy_needed = generation < 12;
    if (generation < 8) {
        finding_say(&f->remedy, "Intel's driver begins with generation 8, this is older: %s %s runs OpenCL on the CPU",
                    system->install, system->cpu);
    } else if (opencl->intel && legacy_needed && !opencl->intel_legacy) {
        finding_say(&f->evidence,
                    "Intel's driver is installed and gives no GPU; this one is of generation %u, and releases "
                    "from 24.35 on drive 12 and later",
                    generation);
        finding_say(&f->remedy,
                    "install intel-opencl-icd-legacy1 24.35.30872 of github.com/intel/compute-runtime/releases "
                    "(Ubuntu from 25.10: intel-opencl-icd-legacy; Arch's AUR: intel-compute-runtime-legacy), or Debian "
                    "12's 22.43");
    } else if (opencl->intel) {
        finding_say(&f->evidence, "Intel's driver is installed and gives no GPU; this one is of generation %u%s",
                    generation, generation == 12 ? " or later" : "");
        finding_say(&f->remedy, "the driver may be older than this GPU: install a newer one, of "
                                "github.com/intel/compute-runtime/releases");
    } else if (legacy_needed) {
        finding_say(&f->remedy,
                    "%s %s; a version from 24.35 on no longer drives generation %u: then "
                    "intel-opencl-icd-legacy1 of github.com/intel/compute-runtime/releases",
                    system->install, system->intel, generation);
    } else {
        finding_say(&f->remedy, "%s %s", system->install, system->intel);
    }
}

static void say_no_driver(const graphics_chip *chip, findings *list, const packages *system,
                          const opencl_state *opencl) {
    finding *f = findings_add(list, FINDING_BLOCKS, "opencl");
    finding_say(&f->lacks, "no OpenCL driver drives the %s", name_of(chip).text);
    finding_say(&f->evidence, "/dev/dri/%s can be opened, and none of the %u OpenCL devices is its GPU", chip->node,
                opencl->devices);
    const char *gallium = chip->vendor == PCI_INTEL ? "iris" : chip->vendor == PCI_AMD ? "radeonsi" : "nouveau";
    if (chip->vendor == PCI_INTEL)
        say_intel(chip, f, system, opencl);
    else if (chip->vendor == PCI_NVIDIA && strcmp(chip->driver, "nvidia") == 0)
        finding_say(&f->remedy, "%s %s", system->install, system->nvidia);
    else if (opencl->rusticl)
        finding_say(&f->remedy, "export RUSTICL_ENABLE=%s", gallium);
    else if (chip->vendor == PCI_AMD)
        finding_say(&f->remedy, "%s %s, and export RUSTICL_ENABLE=%s; or AMD's own: %s", system->install, system->mesa,
                    gallium, system->amd);
    else
        finding_say(&f->remedy, "%s %s, and export RUSTICL_ENABLE=%s", system->install, system->mesa, gallium);
}

void graphics_examine_drivers(const graphics *g, findings *list, const packages *system, const opencl_state *opencl) {
    for (size_t i = 0; i < g->count; i++)
        if (g->chips[i].usable && !opencl_drives(opencl, g->chips[i].vendor))
            say_no_driver(&g->chips[i], list, system, opencl);
}

/* OpenCL may drive it all the same, so nothing is blocked. The driver begins where that of OpenCL does. */
void graphics_examine_level_zero(const graphics *g, findings *list, const packages *system) {
    for (size_t i = 0; i < g->count; i++) {
        const graphics_chip *chip = &g->chips[i];
        if (!chip->usable || chip->vendor != PCI_INTEL || graphics_intel_generation(chip->device) < 8) continue;
        finding *f = findings_add(list, FINDING_NOTE, "level_zero");
        finding_say(&f->lacks, "no Level Zero driver drives the %s", name_of(chip).text);
        finding_say(&f->evidence, "/dev/dri/%s can be opened, and the library found no Level Zero device", chip->node);
        finding_say(&f->remedy, "%s %s", system->install, system->level_zero);
    }
}

/*
 * From Linux' include/drm/intel/pciids.h, in which each generation's numbers lie together. Which generations
 * Intel's driver takes is told in LEGACY_PLATFORMS.md of github.com/intel/compute-runtime.
 */
unsigned graphics_intel_generation(unsigned device) {
    static const struct {
        unsigned first, last, generation;
    } ranges[] = {
        {0x0042, 0x016a, 7},  {0x0402, 0x042e, 7}, {0x0a02, 0x0a2e, 7}, {0x0a84, 0x0a84, 9}, {0x0c02, 0x0f33, 7},
        {0x1132, 0x1132, 3},  {0x1602, 0x163e, 8}, {0x1902, 0x193d, 9}, {0x1a84, 0x1a85, 9}, {0x22b0, 0x22b3, 7},
        {0x2562, 0x2e92, 4},  {0x3184, 0x3185, 9}, {0x3577, 0x358e, 2}, {0x3e90, 0x3ea9, 9}, {0x4541, 0x4571, 11},
        {0x4e51, 0x4e71, 11}, {0x5902, 0x593b, 9}, {0x5a84, 0x5a85, 9}, {0x7121, 0x7125, 1}, {0x87c0, 0x87ca, 9},
        {0x8a50, 0x8a71, 11}, {0x9b21, 0x9bf6, 9}, {0xa001, 0xa011, 3},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (device >= ranges[i].first && device <= ranges[i].last) return ranges[i].generation;
    return 12;
}
