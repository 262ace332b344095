/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor/systems.h"

#include <stdio.h>
#include <string.h>

/* A system whose ID is listed is taken before those that its ID_LIKE names, so Ubuntu stands beside Debian. */
static const packages known_systems[] = {
    {"ubuntu", "sudo apt-get install", "ocl-icd-libopencl1", "intel-opencl-icd", "libze1 libze-intel-gpu1",
     "mesa-opencl-icd", "libnvidia-compute (sudo ubuntu-drivers install chooses its version)", "rocm-opencl-icd",
     "pocl-opencl-icd", "linux-modules-extra-$(uname -r)", "dpkg -S", "apt-file search"},
    {"debian", "sudo apt-get install", "ocl-icd-libopencl1", "intel-opencl-icd",
     "libze1 intel-opencl-icd (from 13 on: libze1 libze-intel-gpu1)", "mesa-opencl-icd", "nvidia-opencl-icd",
     "rocm-opencl-icd", "pocl-opencl-icd", "", "dpkg -S", "apt-file search"},
    {"fedora", "sudo dnf install", "OpenCL-ICD-Loader", "intel-opencl", "oneapi-level-zero intel-level-zero",
     "mesa-libOpenCL", "xorg-x11-drv-nvidia-cuda (of RPM Fusion)", "rocm-opencl", "pocl", "kernel-modules", "rpm -qf",
     "dnf provides"},
    {"arch", "sudo pacman -S", "ocl-icd", "intel-compute-runtime", "level-zero-loader intel-compute-runtime",
     "opencl-mesa", "opencl-nvidia", "rocm-opencl-runtime", "pocl", "", "pacman -Qo", "pacman -F"},
    {"suse", "sudo zypper install", "libOpenCL1", "intel-opencl", "libze_loader1 libze_intel_gpu1",
     "Mesa-libRusticlOpenCL", "nvidia-compute-G06", "rocm-opencl", "pocl", "kernel-default-optional", "rpm -qf",
     "zypper search --provides --file-list"},
};

enum { SYSTEMS = sizeof known_systems / sizeof *known_systems };

static const packages unknown_system = {"",
                                        "install with this system's package manager:",
                                        "an OpenCL loader (libOpenCL.so.1: ocl-icd)",
                                        "Intel's compute runtime (OpenCL)",
                                        "the Level Zero loader and Intel's compute runtime",
                                        "Mesa's OpenCL driver (Rusticl)",
                                        "NVIDIA's driver with OpenCL",
                                        "AMD's ROCm with OpenCL",
                                        "PoCL",
                                        "",
                                        "ask the package manager for the owner of",
                                        "ask the package manager for what provides"};

/* Which known system a value of os-release names: one word, or several in quotes. */
static const packages *named_in(const char *value) {
    for (size_t i = 0; i < SYSTEMS; i++)
        if (strstr(value, known_systems[i].system)) return &known_systems[i];
    return NULL;
}

const packages *packages_of_system(const char *root) {
    char path[512];
    snprintf(path, sizeof path, "%s/etc/os-release", root);
    FILE *file = fopen(path, "r");
    if (!file) return &unknown_system;
    const packages *by_id = NULL, *by_likeness = NULL;
    char line[256];
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, "ID=", 3) == 0) by_id = named_in(line + 3);
        if (strncmp(line, "ID_LIKE=", 8) == 0) by_likeness = named_in(line + 8);
    }
    fclose(file);
    return by_id ? by_id : by_likeness ? by_likeness : &unknown_system;
}
