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

/* A number of `size` bytes; left at what it is, and false, if the driver does not know the question. */
static bool device_number(const onuma__cl *cl, cl_device_id device, cl_device_info what, void *value, size_t size) {
    return cl->clGetDeviceInfo(device, what, size, value, NULL) == CL_SUCCESS;
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
static bool find_usm(const onuma_backend_instance *instance, const char *extensions, onuma__cl_facts *f) {
    if (!has_word(extensions, "cl_intel_unified_shared_memory")) return false;
    cl_device_unified_shared_memory_capabilities_intel shared = 0, host = 0;
    device_number(&instance->cl, f->device, CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL, &shared,
                  sizeof shared);
    device_number(&instance->cl, f->device, CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL, &host, sizeof host);
    void *shared_alloc = extension_function(instance, f->platform, "clSharedMemAllocINTEL");
    void *host_alloc = extension_function(instance, f->platform, "clHostMemAllocINTEL");
    void *usm_free = extension_function(instance, f->platform, "clMemFreeINTEL");
    const bool shared_works = (shared & CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL) != 0 && shared_alloc != NULL &&
                              (f->unified || (shared & CL_UNIFIED_SHARED_MEMORY_CONCURRENT_ACCESS_INTEL) != 0);
    f->host_usm = (host & CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL) != 0 && host_alloc != NULL;
    f->shared_is_host = !shared_works;
    if (usm_free == NULL || (!shared_works && !f->host_usm)) return false;
    memcpy(&f->shared_alloc, &shared_alloc, sizeof shared_alloc);
    memcpy(&f->host_alloc, &host_alloc, sizeof host_alloc);
    memcpy(&f->usm_free, &usm_free, sizeof usm_free);
    return true;
}

/* Asked only of devices of version 2.0 and later: loaders have these functions for older ones too, with nothing behind. */
static cl_device_svm_capabilities find_svm(const onuma_backend_instance *instance, const onuma__cl_facts *f) {
    const onuma__cl *cl = &instance->cl;
    cl_device_svm_capabilities svm = 0;
    if (cl->clSVMAlloc == NULL || cl->clSVMFree == NULL || cl->clEnqueueSVMMap == NULL || cl->clEnqueueSVMUnmap == NULL)
        return 0;
    device_number(cl, f->device, CL_DEVICE_SVM_CAPABILITIES, &svm, sizeof svm);
    return svm;
}

static void choose_way(const onuma_backend_instance *instance, const char *extensions, unsigned major,
                       onuma__cl_facts *f) {
    const cl_device_svm_capabilities svm = major >= 2 ? find_svm(instance, f) : 0;
    const bool has[ONUMA__CL_WAYS] = {
        [ONUMA__CL_USM] = find_usm(instance, extensions, f),
        [ONUMA__CL_SVM_FINE] = (svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER) != 0,
        [ONUMA__CL_SVM_COARSE] = (svm & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) != 0,
        [ONUMA__CL_IMPORT] = true,
    };
    const char *forced = instance->host->config(instance->host, "opencl.share");
    f->way = ONUMA__CL_NONE;
    for (onuma__cl_way way = ONUMA__CL_USM; way < ONUMA__CL_WAYS && f->way == ONUMA__CL_NONE; way++)
        if (has[way] &&
            (forced == NULL || strcmp(forced, "auto") == 0 || strcmp(forced, onuma__cl_way_names[way]) == 0))
            f->way = way;
    if (f->way == ONUMA__CL_NONE)
        instance->host->log(instance->host, ONUMA_LOG_WARN,
                            "device \"%s\" cannot share memory by opencl.share:%s; it has device memory only",
                            f->info.name, forced);
}

/* ---------------------------------------------------------------- the device */

/* Equal texts mean the same chip, across drivers too. "" where nothing tells: the instance then counts by name. */
static void name_chip(const onuma__cl *cl, const char *extensions, onuma__cl_facts *f) {
    char *to = f->info.physical;
    const size_t room = sizeof f->info.physical;
    cl_uchar uuid[CL_UUID_SIZE_KHR];
    cl_device_pci_bus_info_khr pci;
    if (f->info.simulator) return;
    if (f->info.type == ONUMA_DEVICE_CPU) {
        snprintf(to, room, "cpu"); /* as the host's: it is that very CPU */
    } else if (has_word(extensions, "cl_khr_pci_bus_info") &&
               device_number(cl, f->device, CL_DEVICE_PCI_BUS_INFO_KHR, &pci, sizeof pci)) {
        snprintf(to, room, "pci:%04x:%02x:%02x.%x", (unsigned)pci.pci_domain, (unsigned)pci.pci_bus,
                 (unsigned)pci.pci_device, (unsigned)pci.pci_function);
    } else if (has_word(extensions, "cl_khr_device_uuid") &&
               device_number(cl, f->device, CL_DEVICE_UUID_KHR, uuid, sizeof uuid)) {
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
static size_t alignment_of(const onuma__cl *cl, cl_device_id device) {
    cl_uint origin_bits = 0, line = 0;
    device_number(cl, device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, &origin_bits, sizeof origin_bits);
    device_number(cl, device, CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE, &line, sizeof line);
    size_t alignment = 64;
    if (power_of_two_from(origin_bits / 8) > alignment) alignment = power_of_two_from(origin_bits / 8);
    if (power_of_two_from(line) > alignment) alignment = power_of_two_from(line);
    return alignment;
}

static uint32_t abilities_of(onuma__cl_way way) {
    const bool coherent = way == ONUMA__CL_USM || way == ONUMA__CL_SVM_FINE;
    return ONUMA_ABILITY_IMPORT | ONUMA_ABILITY_HANDLES | ONUMA_ABILITY_QUEUES | ONUMA_ABILITY_WAIT |
           ONUMA_ABILITY_ADOPT | ONUMA_ABILITY_COUNTED | (coherent ? ONUMA_ABILITY_COHERENT : 0);
}

/* Everything of `f` that follows from platform, device and extensions. */
static void fill(const onuma_backend_instance *instance, const char *extensions, unsigned major, onuma__cl_facts *f) {
    const onuma__cl *cl = &instance->cl;
    onuma_backend_device_info *info = &f->info;
    cl_device_type type = 0;
    cl_bool unified = CL_FALSE;
    cl_ulong total = 0, largest = 0;
    device_number(cl, f->device, CL_DEVICE_TYPE, &type, sizeof type);
    device_number(cl, f->device, CL_DEVICE_HOST_UNIFIED_MEMORY, &unified, sizeof unified);
    device_number(cl, f->device, CL_DEVICE_GLOBAL_MEM_SIZE, &total, sizeof total);
    device_number(cl, f->device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, &largest, sizeof largest);
    f->unified = unified != CL_FALSE;
    info->type = type_of(type, f->unified);
    info->memory_total = total;
    info->max_segment = largest;
    info->alignment = alignment_of(cl, f->device);
    info->page_size = onuma__os_abilities_get()->page_size;

    char platform[128];
    platform_text(cl, f->platform, CL_PLATFORM_NAME, platform, sizeof platform);
    info->simulator = strstr(platform, "Oclgrind") != NULL || strstr(info->name, "Oclgrind") != NULL;
    name_chip(cl, extensions, f);

    choose_way(instance, extensions, major, f);
    snprintf(info->shared_via, sizeof info->shared_via, "%s", onuma__cl_way_names[f->way]);
    info->kinds = 1u << ONUMA_KIND_DEVICE;
    if (f->way != ONUMA__CL_NONE) info->kinds |= 1u << ONUMA_KIND_HOST | 1u << ONUMA_KIND_SHARED;
    info->abilities = abilities_of(f->way);
    info->via = f->way == ONUMA__CL_USM                                          ? ONUMA_VIA_USM
                : f->way == ONUMA__CL_SVM_FINE || f->way == ONUMA__CL_SVM_COARSE ? ONUMA_VIA_SVM
                                                                                 : ONUMA_VIA_HANDLE;
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
    fill(instance, extensions, major, &f);
    *out = f;
cleanup:
    free(extensions);
    free(driver);
    free(version);
    free(name);
    return r;
}
