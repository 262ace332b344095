/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a verdict depends on: the machine and its kernel, the device and all that the driver says of it, the files that
 * the driver and the loader came from, layers between them, the environment as far as drivers read it, our settings,
 * this library. A verdict is as good as its key: what changes it and is not here would let old findings vouch for
 * something else. What is here in vain costs one more probe.
 */
#include "backend/opencl/probe.h"
#include "os/os.h"

#include <stdio.h>
#include <string.h>

/* Variables that begin so are read by loaders or drivers. */
static const char *const prefixes[] = {
    "AMD_",  "CL_",    "CUDA_", "DRI_",     "GALLIUM_", "GPU_",    "HSA_",      "IGC_", "INTEL_",  "LD_",
    "LP_",   "MESA_",  "NEO",   "NIR_",     "NV",       "NVIDIA_", "OCLGRIND_", "OCL_", "ONEAPI_", "OPENCL_",
    "POCL_", "RADEON", "ROC",   "RUSTICL_", "SYCL_",    "XE_",     "ZE_",       "ZES_", "ZET_",    "__NV",
};

/* Of our own variables none changes a driver. Where caches lie changes no verdict, and shells number themselves. */
static const char *const never[] = {
    "OPENNUMA_CONF=", "POCL_CACHE_DIR=", "XDG_CACHE_HOME=", "_=", "SHLVL=", "PWD=", "OLDPWD="};

static bool begins(const char *variable, const char *const *with, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strncmp(variable, with[i], strlen(with[i])) == 0) return true;
    return false;
}

/* The variables that count, in any order: a sum of their hashes. */
typedef struct environment {
    bool everything; /* a layer or debug keys may read any */
    uint64_t sum, count;
} environment;

static void add_variable(void *user, const char *variable) {
    environment *e = user;
    if (begins(variable, never, sizeof never / sizeof never[0])) return;
    if (!e->everything && !begins(variable, prefixes, sizeof prefixes / sizeof prefixes[0])) return;
    e->sum += onuma__proof_hash(0, variable, strlen(variable));
    e->count++;
}

static bool is_set(const char *name) {
    const char *value = onuma__os_getenv(name);
    return value != NULL && value[0] != '\0';
}

static void add_environment(onuma__proof_key *key) {
    /* Keys of Intel's driver have names of no kind at all; so may what a layer or a preloaded library reads. */
    environment e = {.everything = is_set("OPENCL_LAYERS") || is_set("NEOReadDebugKeys") || is_set("LD_PRELOAD")};
    onuma__os_each_variable(add_variable, &e);
    onuma__proof_key_add_number(key, "variables", e.count);
    onuma__proof_key_add_number(key, "variables_sum", e.sum);
}

/* Files named by a list of paths, each with its state; the loaders' own separator. */
static void add_files(onuma__proof_key *key, const char *name, const char *list) {
    char path[1024], identity[1200];
    onuma__proof_key_add(key, name, list != NULL ? list : "");
    for (const char *at = list; at != NULL && *at != '\0';) {
        const size_t length = strcspn(at, ":;");
        snprintf(path, sizeof path, "%.*s", (int)(length < sizeof path ? length : sizeof path - 1), at);
        onuma__os_file_identity(path, identity, sizeof identity);
        if (identity[0] != '\0') onuma__proof_key_add(key, "file", identity);
        at += length;
        at += *at != '\0';
    }
}

static void add_code(onuma__proof_key *key, const char *name, const void *address) {
    char identity[1200];
    onuma__os_code_identity(address, identity, sizeof identity);
    onuma__proof_key_add(key, name, identity);
}

/* Drivers answer this through functions of their own library. */
static void add_driver_file(onuma__proof_key *key, const onuma_backend_instance *instance, const onuma__cl_facts *f) {
    void *address = instance->cl.clGetExtensionFunctionAddressForPlatform(f->platform, "clIcdGetPlatformIDsKHR");
    add_code(key, "driver_file", address);
}

static void add_text(onuma__proof_key *key, const char *name, cl_int code, const char *text) {
    onuma__proof_key_add(key, name, code == CL_SUCCESS ? text : "");
}

static void add_platform(onuma__proof_key *key, const onuma_backend_instance *instance, const onuma__cl_facts *f) {
    static const struct {
        const char *name;
        cl_platform_info what;
    } texts[] = {{"platform", CL_PLATFORM_NAME},
                 {"platform_vendor", CL_PLATFORM_VENDOR},
                 {"platform_version", CL_PLATFORM_VERSION}};
    char text[256];
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        text[0] = '\0';
        const cl_int code = instance->cl.clGetPlatformInfo(f->platform, texts[i].what, sizeof text - 1, text, NULL);
        text[sizeof text - 1] = '\0';
        add_text(key, texts[i].name, code, text);
    }
}

static void add_device(onuma__proof_key *key, const onuma_backend_instance *instance, cl_device_id device) {
    static const struct {
        const char *name;
        cl_device_info what;
    } texts[] = {{"device", CL_DEVICE_NAME},
                 {"vendor", CL_DEVICE_VENDOR},
                 {"version", CL_DEVICE_VERSION},
                 {"driver", CL_DRIVER_VERSION}},
      numbers[] = {{"vendor_id", CL_DEVICE_VENDOR_ID},        {"type", CL_DEVICE_TYPE},
                   {"units", CL_DEVICE_MAX_COMPUTE_UNITS},    {"unified", CL_DEVICE_HOST_UNIFIED_MEMORY},
                   {"memory", CL_DEVICE_GLOBAL_MEM_SIZE},     {"most", CL_DEVICE_MAX_MEM_ALLOC_SIZE},
                   {"origin", CL_DEVICE_MEM_BASE_ADDR_ALIGN}, {"line", CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE},
                   {"address_bits", CL_DEVICE_ADDRESS_BITS},  {"svm", CL_DEVICE_SVM_CAPABILITIES}};
    char text[256];
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        text[0] = '\0';
        const cl_int code = instance->cl.clGetDeviceInfo(device, texts[i].what, sizeof text - 1, text, NULL);
        text[sizeof text - 1] = '\0';
        add_text(key, texts[i].name, code, text);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        uint64_t value = 0; /* the shorter ones fill its first bytes, the same each time */
        if (instance->cl.clGetDeviceInfo(device, numbers[i].what, sizeof value, &value, NULL) != CL_SUCCESS) value = 0;
        onuma__proof_key_add_number(key, numbers[i].name, value);
    }
}

/* Of a context with several devices the driver may move memory between them. */
static void add_context(onuma__proof_key *key, const onuma_backend_instance *instance, cl_context context) {
    cl_device_id devices[16];
    size_t size = 0;
    if (context == NULL) {
        onuma__proof_key_add_number(key, "devices", 1);
        return;
    }
    const cl_int code = instance->cl.clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof devices, devices, &size);
    if (code != CL_SUCCESS) {
        key->overflowed = true; /* more than fit, or no answer: nothing is kept */
        return;
    }
    const size_t count = size / sizeof devices[0];
    onuma__proof_key_add_number(key, "devices", count);
    for (size_t i = 0; count > 1 && i < count; i++)
        add_device(key, instance, devices[i]);
}

void onuma__cl_probe_key(const onuma_backend_instance *instance, const onuma__cl_facts *facts, cl_context context,
                         onuma__proof_key *out) {
    char machine[512];
    out->length = 0;
    out->text[0] = '\0';
    out->overflowed = false;
    onuma__proof_key_add(out, "library", onuma_version());
    onuma__proof_key_add(out, "probe", "opencl " ONUMA__CL_PROBE_VERSION);
    onuma__os_machine_identity(machine, sizeof machine);
    onuma__proof_key_add(out, "machine", machine);
    onuma__proof_key_add(out, "share", instance->host->config(instance->host, "opencl.share"));
    add_platform(out, instance, facts);
    add_device(out, instance, facts->device);
    onuma__proof_key_add(out, "chip", facts->info.physical);
    onuma__proof_key_add_number(out, "part", facts->part);
    onuma__proof_key_add_number(out, "offered", facts->offered);
    onuma__proof_key_add_number(out, "granule", facts->info.alignment);
    onuma__proof_key_add_number(out, "page", facts->info.page_size);
    add_context(out, instance, context);
    add_driver_file(out, instance, facts);
    void *loader = NULL;
    memcpy(&loader, &instance->cl.clGetPlatformIDs, sizeof loader);
    add_code(out, "loader_file", loader);
    add_files(out, "layers", onuma__os_getenv("OPENCL_LAYERS"));
    add_files(out, "vendors", onuma__os_getenv("OCL_ICD_VENDORS"));
    add_files(out, "drivers", onuma__os_getenv("OCL_ICD_FILENAMES"));
    add_environment(out);
}
