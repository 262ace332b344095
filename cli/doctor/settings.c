/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor/settings.h"

#include <stdlib.h>
#include <string.h>

#if !defined(_WIN32)
extern char **environ; /* Windows' stdlib.h has it */
#endif

static const char about[] = "settings";

typedef struct variable {
    const char *name;
    finding_severity severity;
    const char *effect;
} variable;

/* What each does is told in its driver's documentation. Those that choose the OpenCL drivers are told of when set, too:
 * another terminal may not have them. */
static const variable variables[] = {
    {"OCL_ICD_VENDORS", FINDING_NOTE, "OpenCL drivers are taken from there alone"},
    {"OCL_ICD_ASSUME_ICD_EXTENSION", FINDING_NOTE, "drivers are taken without their saying that they may be"},
    {"OCL_ICD_DEFAULT_PLATFORM", FINDING_NOTE, "programs that ask for no platform get this one"},
    {"OCL_ICD_PLATFORM_SORT", FINDING_NOTE, "the order of OpenCL platforms is changed"},
    {"OPENCL_VENDOR_PATH", FINDING_NOTE, "OpenCL drivers are looked for there"},
    {"OPENCL_LAYER_PATH", FINDING_NOTE, "OpenCL layers are looked for there"},
    {"POCL_DEVICES", FINDING_NOTE, "PoCL shows these devices alone"},
    {"POCL_DEBUG", FINDING_SLOWS, "PoCL writes what it does"},
    {"POCL_MAX_PTHREAD_COUNT", FINDING_SLOWS, "PoCL computes with no more threads than that"},
    {"POCL_KERNEL_CACHE", FINDING_SLOWS, "PoCL's cache of compiled kernels is switched"},
    {"RUSTICL_ENABLE", FINDING_NOTE, "Mesa's Rusticl drives these devices alone"},
    {"RUSTICL_DEBUG", FINDING_SLOWS, "Rusticl writes or checks what it does"},
    {"LIBGL_ALWAYS_SOFTWARE", FINDING_SLOWS, "Mesa's drivers compute on the CPU"},
    {"GALLIUM_DRIVER", FINDING_NOTE, "Mesa uses this driver, whatever the chip"},
    {"MESA_LOADER_DRIVER_OVERRIDE", FINDING_NOTE, "Mesa uses this driver, whatever the chip"},
    {"ZE_ENABLE_VALIDATION_LAYER", FINDING_SLOWS, "every Level Zero call is checked"},
    {"ZE_AFFINITY_MASK", FINDING_NOTE, "Intel's drivers show these devices alone"},
    {"CUDA_VISIBLE_DEVICES", FINDING_NOTE, "NVIDIA's drivers show these devices alone"},
    {"ROCR_VISIBLE_DEVICES", FINDING_NOTE, "AMD's drivers show these devices alone"},
    {"GPU_DEVICE_ORDINAL", FINDING_NOTE, "AMD's drivers show these devices alone"},
    {"LD_PRELOAD", FINDING_NOTE, "these libraries come before all others in every program"},
};

static const char *set(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static void tell(findings *list, finding_severity severity, const char *name, const char *value, const char *effect) {
    finding *f = findings_add(list, severity, about);
    finding_say(&f->lacks, "%s is set: %s", name, effect);
    finding_say(&f->evidence, "%s=%s", name, value);
    finding_say(&f->remedy, "unset %s", name);
}

/* Intel's driver reads its debug keys only when told so; with some it brings up a chip that is not there. */
static void examine_intel_keys(findings *list) {
    const char *switched = set("NEOReadDebugKeys");
    if (!switched || strcmp(switched, "0") == 0) return;
    static const char *const emulating[] = {"SetCommandStreamReceiver", "ProductFamilyOverride",
                                            "HardwareInfoOverride"};
    const char *key = NULL;
    for (size_t i = 0; i < sizeof emulating / sizeof *emulating && !key; i++)
        if (set(emulating[i])) key = emulating[i];
    if (!key) {
        tell(list, FINDING_SLOWS, "NEOReadDebugKeys", switched, "Intel's driver follows its debug keys");
        return;
    }
    finding *f = findings_add(list, FINDING_BLOCKS, about);
    finding_say(&f->lacks, "Intel's driver pretends a GPU that is not there: what is run on it is not computed");
    finding_say(&f->evidence, "NEOReadDebugKeys=%s, %s=%s", switched, key, set(key));
    finding_say(&f->remedy, "unset NEOReadDebugKeys");
}

/* The variables that begin like this, whatever follows: CL_CONFIG_CPU_FORCE_PRIVATE_MEM_SIZE and its like. */
static void examine_family(findings *list, const char *prefix, const char *effect) {
    for (char *const *at = environ; *at; at++) {
        if (strncmp(*at, prefix, strlen(prefix)) != 0) continue;
        char name[128];
        size_t length = strcspn(*at, "=");
        if (length >= sizeof name || !(*at)[length]) continue;
        memcpy(name, *at, length);
        name[length] = '\0';
        tell(list, FINDING_NOTE, name, *at + length + 1, effect);
    }
}

static void examine_our_own(findings *list) {
    const char *conf = set("OPENNUMA_CONF");
    if (conf && (strstr(conf, "check:hazards") || strstr(conf, "track:full")))
        tell(list, FINDING_SLOWS, "OPENNUMA_CONF", conf, "it asks for checks that cost time at every call");
    else if (conf)
        tell(list, FINDING_NOTE, "OPENNUMA_CONF", conf, "it holds for every program that uses this library");
#if defined(__SANITIZE_ADDRESS__)
    const char *sanitizer = "AddressSanitizer";
#elif defined(__SANITIZE_THREAD__)
    const char *sanitizer = "ThreadSanitizer";
#else
    const char *sanitizer = NULL;
#endif
    if (!sanitizer) return;
    finding *f = findings_add(list, FINDING_SLOWS, about);
    finding_say(&f->lacks, "this command was built with %s: nothing that it measures means anything", sanitizer);
    finding_say(&f->evidence, "the build");
    finding_say(&f->remedy, "make, and run build/release/opennuma");
}

void settings_examine(findings *list) {
    examine_our_own(list);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const variable *v = &variables[i];
        if (set(v->name)) tell(list, v->severity, v->name, set(v->name), v->effect);
    }
    examine_intel_keys(list);
    examine_family(list, "CL_CONFIG_", "Intel's OpenCL for CPUs is configured by it");
}
