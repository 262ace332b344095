/* SPDX-License-Identifier: Apache-2.0 */
/* What a device tells of itself, and the way to share that follows from it. */
#include "backend/opencl/opencl.h"
#include "base/checked.h"
#include "os/os.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const onuma__cl_way_names[ONUMA__CL_WAYS] = {"", "usm", "svm_fine", "svm_coarse", "import"};

/* Copies a text of any length, cut to the room there is, without the spaces around it that drivers leave. */
static void copy_trimmed(char *to, size_t room, const char *from) {
    while (isspace((unsigned char)*from))
        from++;
    size_t length = strlen(from);
    while (length > 0 && isspace((unsigned char)from[length - 1]))
        length--;
    snprintf(to, room, "%.*s", (int)(length < room ? length : room - 1), from);
}

/* clGetDeviceInfo's or clGetPlatformInfo's texts have no bound. NULL and *code if the driver does not answer; freed
 * by the caller. */
static char *device_text(const onuma__cl *cl, cl_device_id device, cl_device_info what, cl_int *code) {
    size_t size = 0;
    *code = cl->clGetDeviceInfo(device, what, 0, NULL, &size);
    if (*code != CL_SUCCESS) return NULL;
    char *text = calloc(1, size + 1);
    if (text == NULL)
        *code = CL_OUT_OF_HOST_MEMORY;
    else if ((*code = cl->clGetDeviceInfo(device, what, size, text, NULL)) == CL_SUCCESS)
        return text;
    free(text);
    return NULL;
}

static void platform_text(const onuma__cl *cl, cl_platform_id platform, cl_platform_info what, char *to, size_t room) {
    to[0] = '\0';
    size_t size = 0;
    if (cl->clGetPlatformInfo(platform, what, 0, NULL, &size) != CL_SUCCESS) return;
    char *text = calloc(1, size + 1);
    if (text != NULL && cl->clGetPlatformInfo(platform, what, size, text, NULL) == CL_SUCCESS)
        copy_trimmed(to, room, text);
    free(text);
}

/*
 * What a driver does not know it answers with CL_INVALID_VALUE, and the device is then taken to have it not. Other
 * failures are remembered: a device is not to be used as one that it may not be.
 */
typedef struct questions {
    const onuma__cl *cl;
    cl_device_id device;
    cl_int failed; /* the first such code */
} questions;

/* A number of `size` bytes; left at what it is, and false, if there is no answer. */
static bool device_number(questions *q, cl_device_info what, void *value, size_t size) {
    const cl_int code = q->cl->clGetDeviceInfo(q->device, what, size, value, NULL);
    if (code != CL_SUCCESS && code != CL_INVALID_VALUE && q->failed == CL_SUCCESS) q->failed = code;
    return code == CL_SUCCESS;
}

/* A whole word of the space-separated list. */
static bool has_word(const char *list, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)) != NULL; at += length)
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0')) return true;
    return false;
}

/* ------------------------------------------------------------ ways to share */

static void *extension_function(const onuma_backend_instance *instance, cl_platform_id platform, const char *name) {
    return instance->cl.clGetExtensionFunctionAddressForPlatform(platform, name);
}

/*
 * Intel's USM, if the device both names the extension and says by its capabilities that it reaches such memory.
 *
 * Shared allocations of a discrete GPU migrate as a whole when the CPU touches them. A segment holds many blocks, so
 * unless the device says that both sides may access one allocation at a time, the CPU's work on one block would pull
 * the pages from under a kernel that works on its neighbour: host allocations, which stay put, serve there instead.
 * A device with unified memory has nothing to migrate.
 */
static bool find_usm(const onuma_backend_instance *instance, const char *extensions, questions *q, onuma__cl_facts *f) {
    if (!has_word(extensions, "cl_intel_unified_shared_memory")) return false;
    cl_device_unified_shared_memory_capabilities_intel shared = 0, host = 0;
    device_number(q, CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL, &shared, sizeof shared);
    device_number(q, CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL, &host, sizeof host);
    void *shared_alloc = extension_function(instance, f->platform, "clSharedMemAllocINTEL");
    void *host_alloc = extension_function(instance, f->platform, "clHostMemAllocINTEL");
    void *usm_free = extension_function(instance, f->platform, "clMemFreeINTEL");
    void *set_pointer = extension_function(instance, f->platform, "clSetKernelArgMemPointerINTEL");
    const bool shared_works = (shared & CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL) != 0 && shared_alloc != NULL &&
                              (f->unified || (shared & CL_UNIFIED_SHARED_MEMORY_CONCURRENT_ACCESS_INTEL) != 0);
    f->host_usm = (host & CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL) != 0 && host_alloc != NULL;
    f->shared_is_host = !shared_works;
    if (usm_free == NULL || set_pointer == NULL || (!shared_works && !f->host_usm)) return false;
    memcpy(&f->shared_alloc, &shared_alloc, sizeof shared_alloc);
    memcpy(&f->host_alloc, &host_alloc, sizeof host_alloc);
    memcpy(&f->usm_free, &usm_free, sizeof usm_free);
    memcpy(&f->set_pointer, &set_pointer, sizeof set_pointer);
    return true;
}

/* Asked only of devices of version 2.0 and later: loaders have these functions for older ones too, with nothing behind. */
static cl_device_svm_capabilities find_svm(questions *q) {
    const onuma__cl *cl = q->cl;
    cl_device_svm_capabilities svm = 0;
    if (cl->clSVMAlloc == NULL || cl->clSVMFree == NULL || cl->clEnqueueSVMMap == NULL ||
        cl->clEnqueueSVMUnmap == NULL || cl->clSetKernelArgSVMPointer == NULL)
        return 0;
    device_number(q, CL_DEVICE_SVM_CAPABILITIES, &svm, sizeof svm);
    return svm;
}

static void find_ways(const onuma_backend_instance *instance, const char *extensions, unsigned major, questions *q,
                      onuma__cl_facts *f) {
    const cl_device_svm_capabilities svm = major >= 2 ? find_svm(q) : 0;
    const bool has[ONUMA__CL_WAYS] = {
        [ONUMA__CL_USM] = find_usm(instance, extensions, q, f),
        [ONUMA__CL_SVM_FINE] = (svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER) != 0,
        [ONUMA__CL_SVM_COARSE] = (svm & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) != 0,
        [ONUMA__CL_IMPORT] = true,
    };
    const char *forced = instance->host->config(instance->host, "opencl.share");
    const bool any = forced == NULL || strcmp(forced, "auto") == 0;
    for (onuma__cl_way way = ONUMA__CL_USM; way < ONUMA__CL_WAYS; way++) {
        if (!has[way]) continue;
        f->offered |= 1u << way;
        if (any || strcmp(forced, onuma__cl_way_names[way]) == 0) f->allowed |= 1u << way;
    }
    if (f->allowed == 0)
        instance->host->log(instance->host, ONUMA_LOG_WARN,
                            "device \"%s\" cannot share memory by opencl.share:%s; it has device memory only",
                            f->info.name, forced);
}

bool onuma__cl_probe_is(const onuma_backend_instance *instance, const char *value) {
    const char *is = instance->host->config(instance->host, "opencl.probe");
    return is != NULL && strcmp(is, value) == 0;
}

/* The driver's word, until somebody has looked. */
static onuma__cl_verdict claimed_verdict(const onuma_backend_instance *instance, const onuma__cl_facts *f) {
    onuma__cl_verdict claimed = {.imports = true, .notes = f->allowed == 0 ? ONUMA_SHARING_NOT_OFFERED : 0};
    onuma__cl_way way = ONUMA__CL_USM;
    while (way < ONUMA__CL_WAYS && (f->allowed & 1u << way) == 0)
        way++;
    if (way < ONUMA__CL_WAYS) claimed.way = way;
    if (onuma__cl_probe_is(instance, "off")) {
        claimed.proof = ONUMA_PROOF_ASSUMED;
        snprintf(claimed.detail, sizeof claimed.detail, "not looked at: opencl.probe:off");
    }
    return claimed;
}

/* ---------------------------------------------------------------- the device */

/* Equal texts mean the same chip, across drivers too. "" where nothing tells: the instance then counts by name. */
static void name_chip(questions q, const char *extensions, onuma__cl_facts *f) {
    char *to = f->info.physical;
    const size_t room = sizeof f->info.physical;
    cl_uchar uuid[CL_UUID_SIZE_KHR];
    cl_device_pci_bus_info_khr pci;
    if (f->info.simulator) return;
    if (f->info.type == ONUMA_DEVICE_CPU) {
        snprintf(to, room, "cpu"); /* as the host's: it is that very CPU */
    } else if (has_word(extensions, "cl_khr_pci_bus_info") &&
               device_number(&q, CL_DEVICE_PCI_BUS_INFO_KHR, &pci, sizeof pci)) {
        snprintf(to, room, "pci:%04x:%02x:%02x.%x", (unsigned)pci.pci_domain, (unsigned)pci.pci_bus,
                 (unsigned)pci.pci_device, (unsigned)pci.pci_function);
    } else if (has_word(extensions, "cl_khr_device_uuid") && device_number(&q, CL_DEVICE_UUID_KHR, uuid, sizeof uuid)) {
        int length = snprintf(to, room, "uuid:");
        for (size_t i = 0; i < sizeof uuid; i++)
            length += snprintf(to + length, room - (size_t)length, "%02x", (unsigned)uuid[i]);
    }
}

static onuma_device_type type_of(cl_device_type type, bool unified) {
    if ((type & CL_DEVICE_TYPE_CPU) != 0 && (type & CL_DEVICE_TYPE_GPU) == 0) return ONUMA_DEVICE_CPU;
    return unified ? ONUMA_DEVICE_INTEGRATED : ONUMA_DEVICE_DISCRETE;
}

static size_t power_of_two_from(size_t x) {
    size_t p = 1;
    while (p < x && p <= SIZE_MAX / 2)
        p *= 2;
    return p;
}

/* Every block may get a sub-buffer (device memory, imports), whose origin drivers restrict; that figure is in bits. */
static size_t alignment_of(questions *q) {
    cl_uint origin_bits = 0, line = 0;
    device_number(q, CL_DEVICE_MEM_BASE_ADDR_ALIGN, &origin_bits, sizeof origin_bits);
    device_number(q, CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE, &line, sizeof line);
    size_t alignment = 64;
    if (power_of_two_from(origin_bits / 8) > alignment) alignment = power_of_two_from(origin_bits / 8);
    if (power_of_two_from(line) > alignment) alignment = power_of_two_from(line);
    return alignment;
}

static uint32_t abilities_of(const onuma__cl_verdict *v) {
    const bool coherent = !v->mapped && (v->way == ONUMA__CL_USM || v->way == ONUMA__CL_SVM_FINE);
    return ONUMA_ABILITY_HANDLES | ONUMA_ABILITY_QUEUES | ONUMA_ABILITY_WAIT | ONUMA_ABILITY_ADOPT |
           ONUMA_ABILITY_COUNTED | (v->imports ? ONUMA_ABILITY_IMPORT : 0) | (coherent ? ONUMA_ABILITY_COHERENT : 0);
}

void onuma__cl_facts_decide(onuma__cl_facts *f, const onuma__cl_verdict *verdict) {
    const onuma__cl_verdict *v = verdict;
    onuma_backend_device_info *info = &f->info;
    f->verdict = *v;
    snprintf(info->shared_via, sizeof info->shared_via, "%s", onuma__cl_way_names[v->way]);
    info->kinds = 1u << ONUMA_KIND_DEVICE;
    if (v->way != ONUMA__CL_NONE) info->kinds |= 1u << ONUMA_KIND_HOST | 1u << ONUMA_KIND_SHARED;
    info->abilities = abilities_of(v);
    info->via = v->way == ONUMA__CL_USM                                          ? ONUMA_VIA_USM
                : v->way == ONUMA__CL_SVM_FINE || v->way == ONUMA__CL_SVM_COARSE ? ONUMA_VIA_SVM
                                                                                 : ONUMA_VIA_HANDLE;
    info->max_segment = f->stated_most;
    if (v->max_segment != 0 && (info->max_segment == 0 || v->max_segment < info->max_segment))
        info->max_segment = v->max_segment;
    info->proof = v->proof;
    info->import_zero_copy = v->import_zero_copy;
    info->sharing_notes = v->notes;
    snprintf(info->sharing_detail, sizeof info->sharing_detail, "%s", v->detail);
}

/* Everything of `f` that follows from platform, device and extensions. */
static void fill(const onuma_backend_instance *instance, const char *extensions, unsigned major, questions *q,
                 onuma__cl_facts *f) {
    const onuma__cl *cl = &instance->cl;
    onuma_backend_device_info *info = &f->info;
    cl_device_type type = 0;
    cl_bool unified = CL_FALSE;
    cl_ulong total = 0, largest = 0;
    device_number(q, CL_DEVICE_TYPE, &type, sizeof type);
    device_number(q, CL_DEVICE_HOST_UNIFIED_MEMORY, &unified, sizeof unified);
    device_number(q, CL_DEVICE_GLOBAL_MEM_SIZE, &total, sizeof total);
    device_number(q, CL_DEVICE_MAX_MEM_ALLOC_SIZE, &largest, sizeof largest);
    f->unified = unified != CL_FALSE;
    info->type = type_of(type, f->unified);
    info->memory_total = total;
    info->alignment = alignment_of(q);
    info->page_size = onuma__os_abilities_get()->page_size;

    char platform[128];
    platform_text(cl, f->platform, CL_PLATFORM_NAME, platform, sizeof platform);
    info->simulator = strstr(platform, "Oclgrind") != NULL || strstr(info->name, "Oclgrind") != NULL;
    name_chip(*q, extensions, f); /* of its own: devices are good without a name */

    cl_bool compiler = CL_FALSE;
    cl_device_id parent = NULL;
    device_number(q, CL_DEVICE_COMPILER_AVAILABLE, &compiler, sizeof compiler);
    device_number(q, CL_DEVICE_PARENT_DEVICE, &parent, sizeof(cl_device_id));
    f->compiles = compiler != CL_FALSE;
    f->part = parent != NULL;
    f->stated_most = largest;
    find_ways(instance, extensions, major, q, f);
    const onuma__cl_verdict claimed = claimed_verdict(instance, f);
    onuma__cl_facts_decide(f, &claimed);
}

onuma_result onuma__cl_facts_query(const onuma_backend_instance *instance, cl_platform_id platform, cl_device_id device,
                                   onuma__cl_facts *out) {
    const onuma__cl *cl = &instance->cl;
    onuma__cl_facts f = {.platform = platform, .device = device, .info = {.struct_size = sizeof f.info}};
    cl_int code = CL_SUCCESS;
    onuma_result r = ONUMA_OK;
    char *name = device_text(cl, device, CL_DEVICE_NAME, &code), *version = NULL, *driver = NULL, *extensions = NULL;
    if (name != NULL) version = device_text(cl, device, CL_DEVICE_VERSION, &code);
    if (version != NULL) driver = device_text(cl, device, CL_DRIVER_VERSION, &code);
    if (driver != NULL) extensions = device_text(cl, device, CL_DEVICE_EXTENSIONS, &code);
    if (extensions == NULL) {
        r = onuma__cl_fail(instance->host, code, "clGetDeviceInfo of an OpenCL device");
        goto cleanup;
    }
    copy_trimmed(f.info.name, sizeof f.info.name, name);

    unsigned major = 0, minor = 0;
    if (sscanf(version, "OpenCL %u.%u", &major, &minor) != 2 || major < 1 || (major == 1 && minor < 2)) {
        r = instance->host->fail(ONUMA_ERROR_NOT_SUPPORTED,
                                 "device \"%s\" has version \"%.40s\"; OpenCL 1.2 is needed: update its driver",
                                 f.info.name, version);
        goto cleanup;
    }
    char platform_version[64];
    platform_text(cl, platform, CL_PLATFORM_VERSION, platform_version, sizeof platform_version);
    snprintf(f.info.driver, sizeof f.info.driver, "%s / %.50s", platform_version, driver);
    questions q = {.cl = cl, .device = device};
    fill(instance, extensions, major, &q, &f);
    if (q.failed != CL_SUCCESS)
        r = onuma__cl_fail(instance->host, q.failed, "clGetDeviceInfo of \"%s\"", f.info.name);
    else
        *out = f;
cleanup:
    free(extensions);
    free(driver);
    free(version);
    free(name);
    return r;
}
