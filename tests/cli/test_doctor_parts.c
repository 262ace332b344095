/* SPDX-License-Identifier: Apache-2.0 */
/* What the doctor says of machines, systems and files that are given as data: no driver is loaded here. */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "doctor/container.h"
#include "doctor/graphics.h"
#include "doctor/manifest.h"
#include "doctor/nodes.h"
#include "doctor/places.h"
#include "doctor/systems.h"

/* A folder that stands for the root of a machine. */
static char root[] = "/tmp/opennuma-doctor-XXXXXX";

static void put(const char *path, const char *text) {
    char whole[512], command[1200];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    snprintf(command, sizeof command, "mkdir -p \"$(dirname '%s')\"", whole);
    assert_int_equal(system(command), 0);
    FILE *file = fopen(whole, "wb");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int make_root(void **state) {
    (void)state;
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state) {
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

static void assert_says(const char *text, const char *words) {
    if (!strstr(text, words)) fail_msg("\"%s\" does not say \"%s\"", text, words);
}

static void test_systems(void **state) {
    (void)state;
    static const struct {
        const char *release, *install, *intel;
    } cases[] = {
        {"ID=debian\n", "sudo apt-get install", "intel-opencl-icd"},
        {"NAME=x\nID_LIKE=debian\nID=ubuntu\n", "sudo apt-get install", "intel-opencl-icd"},
        {"ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", "sudo apt-get install", "intel-opencl-icd"},
        {"ID=fedora\n", "sudo dnf install", "intel-opencl"},
        {"ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", "sudo dnf install", "intel-opencl"},
        {"ID=arch\n", "sudo pacman -S", "intel-compute-runtime"},
        {"ID=manjaro\nID_LIKE=arch\n", "sudo pacman -S", "intel-compute-runtime"},
        {"ID=\"opensuse-tumbleweed\"\n", "sudo zypper install", "intel-opencl"},
        {"ID=plan9\n", "install with this system's package manager:", "Intel's compute runtime (OpenCL)"},
        {"", "install with this system's package manager:", "Intel's compute runtime (OpenCL)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put("/etc/os-release", cases[i].release);
        const packages *found = packages_of_system(root);
        assert_string_equal(found->install, cases[i].install);
        assert_string_equal(found->intel, cases[i].intel);
    }
    assert_string_equal(packages_of_system("/nonexistent")->system, "");
}

static void test_manifests(void **state) {
    (void)state;
    static const struct {
        const char *content, *ocl_icd, *khronos, *meant;
        manifest_oddity oddity, oddity_khronos;
    } cases[] = {
        {"/a.so\n", "/a.so", "/a.so", "/a.so", MANIFEST_PLAIN, MANIFEST_PLAIN},
        {"liba.so.1", "liba.so.1", "liba.so.1", "liba.so.1", MANIFEST_PLAIN, MANIFEST_PLAIN},
        {"/a.so\r\n", "/a.so\r", "/a.so\r", "/a.so", MANIFEST_CRLF, MANIFEST_CRLF},
        {" /a.so \n", " /a.so ", " /a.so ", "/a.so", MANIFEST_BLANKS, MANIFEST_BLANKS},
        {"\xEF\xBB\xBF/a.so\n", "\xEF\xBB\xBF/a.so", "\xEF\xBB\xBF/a.so", "/a.so", MANIFEST_BLANKS, MANIFEST_BLANKS},
        {"/a.so\n/b.so\n", "/a.so", "/a.so\n/b.so", "/a.so", MANIFEST_PLAIN, MANIFEST_MORE_LINES},
        {"./a.so", "./a.so", "./a.so", "./a.so", MANIFEST_RELATIVE, MANIFEST_RELATIVE},
        {"", "", "", "", MANIFEST_EMPTY, MANIFEST_EMPTY},
        {"\n", "", "", "", MANIFEST_EMPTY, MANIFEST_EMPTY},
        {" \t\n", " \t", " \t", "", MANIFEST_EMPTY, MANIFEST_EMPTY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put("/x.icd", cases[i].content);
        manifest m;
        snprintf(m.path, sizeof m.path, "%s/x.icd", root);
        manifest_read(&m, true);
        assert_string_equal(m.library, cases[i].ocl_icd);
        assert_string_equal(m.meant, cases[i].meant);
        assert_int_equal(m.oddity, cases[i].oddity);
        manifest_read(&m, false);
        assert_string_equal(m.library, cases[i].khronos);
        assert_int_equal(m.oddity, cases[i].oddity_khronos);
    }
    manifest absent = {.path = "/nonexistent/x.icd"};
    manifest_read(&absent, true);
    assert_int_equal(absent.oddity, MANIFEST_UNREADABLE);
    assert_says(absent.why, "No such file");
}

static void test_longest_manifest(void **state) {
    (void)state;
    char content[5000];
    memset(content, 'x', sizeof content - 1);
    content[sizeof content - 1] = '\0';
    put("/x.icd", content);
    manifest m;
    snprintf(m.path, sizeof m.path, "%s/x.icd", root);
    manifest_read(&m, true);
    assert_int_equal(strlen(m.library), sizeof m.library - 1);
}

/* What the loaders' own files tell: texts between zero bytes, among others that are no such names. */
static void test_places(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        loader_places places;
    } cases[] = {
#define BYTES(text) text, sizeof text
        {BYTES("\1\2/etc/OpenCL/vendors\0OCL_ICD_ASSUME_ICD_EXTENSION\0x"),
         {.ocl_icd = true, .folder = "/etc/OpenCL/vendors"}},
        {BYTES("\0/opt/env/etc/OpenCL/vendors/\0OCL_ICD_FILENAMES\0"),
         {.reads_filenames = true, .folder = "/opt/env/etc/OpenCL/vendors"}},
        {BYTES("OPENCL_VENDOR_PATH\0etc/OpenCL/vendors\0/etc/OpenCL/vendorsx\0"), {.reads_vendor_path = true}},
        {BYTES(""), {.folder = ""}},
#undef BYTES
    };
    char path[128];
    snprintf(path, sizeof path, "%s/loader", root);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(cases[i].bytes, 1, cases[i].size, file), cases[i].size);
        fclose(file);
        loader_places places;
        loader_places_read(&places, path);
        assert_string_equal(places.folder, cases[i].places.folder);
        assert_int_equal(places.ocl_icd, cases[i].places.ocl_icd);
        assert_int_equal(places.reads_filenames, cases[i].places.reads_filenames);
        assert_int_equal(places.reads_vendor_path, cases[i].places.reads_vendor_path);
    }
}

static void test_generations(void **state) {
    (void)state;
    static const struct {
        unsigned device, generation;
    } cases[] = {
        {0x0166, 7},  {0x0412, 7},  {0x0a16, 7},  {0x0f31, 7},  {0x1616, 8},  {0x22b1, 7},  {0x1912, 9},  {0x5917, 9},
        {0x3e92, 9},  {0x5a85, 9},  {0x3185, 9},  {0x9bc5, 9},  {0x87ca, 9},  {0x8a52, 11}, {0x4e55, 11}, {0x4571, 11},
        {0x9a49, 12}, {0x4c8a, 12}, {0x4680, 12}, {0x46a6, 12}, {0xa7a0, 12}, {0x56a0, 12}, {0x7d55, 12}, {0x64a0, 12},
        {0xe20b, 12}, {0xb080, 12}, {0x0bd5, 12}, {0x4905, 12}, {0x0201, 12},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(graphics_intel_generation(cases[i].device), cases[i].generation);
}

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        node_refusal refusal;
        const char *remedy;
    } cases[] = {
        {{"/dev/dri/renderD128", "render", 104, 0660, "ann", false, false, false, EACCES},
         "sudo usermod -aG render $USER, then log out and in again"},
        {{"/dev/dri/renderD128", "render", 104, 0660, "ann", true, false, false, EACCES}, "newgrp render"},
        {{"/dev/dri/renderD128", "render", 104, 0600, "ann", true, true, false, EACCES}, "sudo chmod 660"},
        {{"/dev/dri/renderD128", "", 104, 0660, "ann", false, false, true, EACCES}, "--group-add 104"},
        {{"/dev/dri/renderD128", "", 104, 0660, "ann", false, false, false, EACCES}, "sudo groupadd -f render"},
        {{"/dev/dri/renderD128", "root", 0, 0660, "ann", false, false, false, EACCES}, "sudo groupadd -f render"},
        {{"/dev/dri/renderD128", "render", 104, 0660, "root", false, true, true, EPERM}, "--device /dev/dri"},
        {{"/dev/dri/renderD128", "render", 104, 0660, "ann", true, true, false, ENODEV}, "dmesg"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        finding f = {.about = "graphics"};
        node_say_refusal(&f, &cases[i].refusal);
        assert_says(f.remedy.text, cases[i].remedy);
        assert_says(f.lacks.text, "/dev/dri/renderD128");
        assert_says(f.evidence.text, strerror(cases[i].refusal.error));
    }
}

static void test_containers(void **state) {
    (void)state;
    assert_string_equal(container_of_process(root).name, "");
    put("/proc/1/cgroup", "0::/kubepods/besteffort/pod1\n");
    assert_string_equal(container_of_process(root).name, "kubepods");
    container_kind kind = container_of_process(root);
    assert_says(container_remedy(&kind, PCI_INTEL).text, "device plugin");
    put("/run/systemd/container", "lxc\n");
    kind = container_of_process(root);
    assert_string_equal(kind.name, "lxc");
    assert_says(container_remedy(&kind, PCI_INTEL).text, "lxc config device add");
    put("/run/.containerenv", "");
    kind = container_of_process(root);
    assert_string_equal(kind.name, "podman");
    assert_says(container_remedy(&kind, PCI_INTEL).text, "podman run --device /dev/dri");
    put("/.dockerenv", "");
    kind = container_of_process(root);
    assert_string_equal(kind.name, "docker");
    assert_says(container_remedy(&kind, PCI_NVIDIA).text, "--gpus all");
}

/* Several chips, in the order of their places, and none that cannot compute. */
static void test_chips(void **state) {
    (void)state;
    static const struct {
        const char *slot, *class, *vendor, *device;
    } chips[] = {{"0000:03:00.0", "0x038000", "0x1002", "0x73df"},
                 {"0000:00:02.0", "0x030000", "0x8086", "0x46a6"},
                 {"0000:00:03.0", "0x020000", "0x8086", "0x15f3"},
                 {"0000:04:00.0", "0x030200", "0x10de", "0x2204"},
                 {"0000:05:00.0", "0x030000", "0x1a03", "0x2000"}};
    for (size_t i = 0; i < sizeof chips / sizeof *chips; i++) {
        char path[128];
        snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/class", chips[i].slot);
        put(path, chips[i].class);
        snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/vendor", chips[i].slot);
        put(path, chips[i].vendor);
        snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/device", chips[i].slot);
        put(path, chips[i].device);
    }
    graphics found;
    graphics_read(&found, root);
    assert_int_equal(found.count, 3);
    assert_string_equal(found.chips[0].slot, "0000:00:02.0");
    assert_int_equal(found.chips[0].device, 0x46a6);
    assert_int_equal(found.chips[1].vendor, PCI_AMD);
    assert_int_equal(found.chips[2].vendor, PCI_NVIDIA);
}

/* Nothing is blocked by it, and chips that no such driver takes do not miss it. */
static void test_level_zero(void **state) {
    (void)state;
    static const struct {
        graphics_chip chip;
        const char *system, *remedy;
    } cases[] = {
        {{"0000:00:02.0", PCI_INTEL, 0x46a6, "i915", "renderD128", true},
         "ubuntu",
         "apt-get install libze1 libze-intel-gpu1"},
        {{"0000:00:02.0", PCI_INTEL, 0x46a6, "i915", "renderD128", true}, "debian", "libze1 intel-opencl-icd"},
        {{"0000:00:02.0", PCI_INTEL, 0x46a6, "i915", "renderD128", true}, "fedora", "dnf install oneapi-level-zero"},
        {{"0000:00:02.0", PCI_INTEL, 0x0412, "i915", "renderD128", true}, "debian", NULL},
        {{"0000:00:02.0", PCI_INTEL, 0x46a6, "i915", "renderD128", false}, "debian", NULL},
        {{"0000:00:02.0", PCI_AMD, 0x1681, "amdgpu", "renderD128", true}, "debian", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char release[32];
        findings list = {NULL, 0};
        graphics g = {.count = 1, .chips = {cases[i].chip}};
        snprintf(release, sizeof release, "ID=%s\n", cases[i].system);
        put("/etc/os-release", release);
        graphics_examine_level_zero(&g, &list, packages_of_system(root));
        assert_int_equal(list.count, cases[i].remedy != NULL);
        if (cases[i].remedy) {
            assert_says(list.items[0]->lacks.text, "no Level Zero driver drives the Intel graphics 8086:46a6");
            assert_says(list.items[0]->remedy.text, cases[i].remedy);
            assert_null(findings_blocking(&list, "opencl"));
            assert_null(findings_blocking(&list, "level_zero"));
        }
        findings_drop(&list);
    }
}

/* What one backend lacks is no matter of another's. */
static void test_backends_apart(void **state) {
    (void)state;
    findings list = {NULL, 0};
    (void)findings_add(&list, FINDING_BLOCKS, "level_zero");
    assert_non_null(findings_blocking(&list, "level_zero"));
    assert_null(findings_blocking(&list, "opencl"));
    (void)findings_add(&list, FINDING_BLOCKS, "settings");
    assert_non_null(findings_blocking(&list, "opencl"));
    assert_null(findings_blocking(&list, "host"));
    findings_drop(&list);
}

/* An installed driver of Intel's that gives no GPU: which other one the chip needs. */
static void test_generation_against_driver(void **state) {
    (void)state;
    static const struct {
        unsigned device;
        bool installed, legacy;
        const char *remedy;
    } cases[] = {
        {0x5917, true, false, "intel-opencl-icd-legacy1 24.35"},
        {0x5917, true, true, "may be older than this GPU"},
        {0x5917, false, false, "no longer drives generation 9"},
        {0x46a6, true, false, "may be older than this GPU"},
        {0x46a6, false, false, "intel-opencl-icd"},
        {0x0412, true, false, "pocl-opencl-icd"},
    };
    put("/etc/os-release", "ID=debian\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        findings list = {NULL, 0};
        graphics g = {.count = 1, .chips = {{"0000:00:02.0", PCI_INTEL, cases[i].device, "i915", "renderD128", true}}};
        const opencl_state opencl = {.intel = cases[i].installed, .intel_legacy = cases[i].legacy};
        graphics_examine_drivers(&g, &list, packages_of_system(root), &opencl);
        assert_int_equal(list.count, 1);
        assert_says(list.items[0]->remedy.text, cases[i].remedy);
        findings_drop(&list);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_systems),
        cmocka_unit_test(test_level_zero),
        cmocka_unit_test(test_backends_apart),
        cmocka_unit_test(test_manifests),
        cmocka_unit_test(test_longest_manifest),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_generations),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_containers),
        cmocka_unit_test(test_chips),
        cmocka_unit_test(test_generation_against_driver),
    };
    unsetenv("container");
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
