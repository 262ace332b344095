/* SPDX-License-Identifier: Apache-2.0 */
/* What a device tells of itself, and the ways to share that follow from it. */
#include "backend/cuda/cuda.h"
#include "base/checked.h"

#include <stdio.h>
#include <string.h>

const char *const onuma__cu_way_names[ONUMA__CU_WAYS] = {"", "vmm", "pinned", "managed"};

/* 0 for what an older driver does not know. */
static int attribute(const onuma__cu *cu, onuma__cu_device device, int which) {
    int value = 0;
    return cu->DeviceGetAttribute(&value, which, device) == ONUMA__CU_SUCCESS ? value : 0;
}

onuma__cu_properties onuma__cu_place(const onuma__cu_facts *facts, onuma_kind kind) {
    onuma__cu_properties place = {.type = ONUMA__CU_ALLOCATION_PINNED};
    if (kind == ONUMA_KIND_DEVICE)
        place.location = (onuma__cu_location){ONUMA__CU_LOCATION_DEVICE, facts->device};
    else
        place.location = (onuma__cu_location){ONUMA__CU_LOCATION_HOST_NUMA, facts->numa_node};
    return place;
}

static bool has_virtual_memory(const onuma__cu *cu) {
    return cu->MemAddressReserve != NULL && cu->MemAddressFree != NULL && cu->MemCreate != NULL &&
           cu->MemRelease != NULL && cu->MemMap != NULL && cu->MemUnmap != NULL && cu->MemSetAccess != NULL &&
           cu->MemGetGranularity != NULL;
}

/* Raises f->granule to what memory at the kind's place is mapped by; false: it cannot be. */
static bool fits_granule(const onuma__cu *cu, onuma_kind kind, onuma__cu_facts *f) {
    const onuma__cu_properties place = onuma__cu_place(f, kind);
    size_t granule = 0;
    if (cu->MemGetGranularity(&granule, &place, ONUMA__CU_GRANULARITY_MINIMUM) != ONUMA__CU_SUCCESS ||
        !onuma__is_power_of_two(granule))
        return false;
    if (granule > f->granule) f->granule = granule;
    return true;
}

static void find_ways(const onuma_backend_instance *instance, onuma__cu_facts *f) {
    const onuma__cu *cu = &instance->cu;
    f->ranges = has_virtual_memory(cu) && attribute(cu, f->device, ONUMA__CU_VIRTUAL_MEMORY_SUPPORTED) != 0 &&
                fits_granule(cu, ONUMA_KIND_DEVICE, f);
    f->numa_node = attribute(cu, f->device, ONUMA__CU_HOST_NUMA_ID);
    if (f->numa_node < 0) f->numa_node = 0; /* a system without nodes has one */
    const bool has[ONUMA__CU_WAYS] = {
        [ONUMA__CU_VMM] = f->ranges && attribute(cu, f->device, ONUMA__CU_HOST_NUMA_VIRTUAL_MEMORY_SUPPORTED) != 0 &&
                          fits_granule(cu, ONUMA_KIND_SHARED, f),
        [ONUMA__CU_PINNED] = attribute(cu, f->device, ONUMA__CU_CAN_MAP_HOST_MEMORY) != 0,
        [ONUMA__CU_MANAGED] = attribute(cu, f->device, ONUMA__CU_CONCURRENT_MANAGED_ACCESS) != 0,
    };
    const char *forced = instance->host->config(instance->host, "cuda.share");
    const bool any = forced == NULL || strcmp(forced, "auto") == 0;
    for (onuma__cu_way way = ONUMA__CU_VMM; way < ONUMA__CU_WAYS; way++)
        if (has[way] && (any ? way != ONUMA__CU_MANAGED : strcmp(forced, onuma__cu_way_names[way]) == 0))
            f->ways |= 1u << way;
}

void onuma__cu_facts_decide(onuma__cu_facts *f, onuma__cu_way way, onuma_proof proof) {
    onuma_backend_device_info *info = &f->info;
    f->way = way;
    info->proof = proof;
    info->kinds = 1u << ONUMA_KIND_DEVICE;
    if (way != ONUMA__CU_NONE) info->kinds |= 1u << ONUMA_KIND_HOST | 1u << ONUMA_KIND_SHARED;
    snprintf(info->shared_via, sizeof info->shared_via, "%s", onuma__cu_way_names[way]);
    info->abilities = ONUMA_ABILITY_COHERENT | ONUMA_ABILITY_QUEUES | ONUMA_ABILITY_WAIT |
                      (f->registers ? ONUMA_ABILITY_IMPORT : 0) | (f->ranges ? ONUMA_ABILITY_RESERVE : 0);
    info->page_size = f->ranges ? f->granule : onuma__os_abilities_get()->page_size;
    info->unreserved_kinds = way == ONUMA__CU_VMM ? 0 : 1u << ONUMA_KIND_HOST | 1u << ONUMA_KIND_SHARED;
    info->sharing_notes = f->ways == 0 ? ONUMA_SHARING_NOT_OFFERED : 0;
}

onuma_result onuma__cu_facts_query(const onuma_backend_instance *instance, int ordinal, onuma__cu_facts *out) {
    const onuma__cu *cu = &instance->cu;
    onuma__cu_facts f = {.info = {.struct_size = sizeof f.info}};
    onuma_backend_device_info *info = &f.info;
    size_t total = 0;
    onuma__cu_result code = cu->DeviceGet(&f.device, ordinal);
    if (code == ONUMA__CU_SUCCESS) code = cu->DeviceGetName(info->name, sizeof info->name, f.device);
    if (code == ONUMA__CU_SUCCESS) code = cu->DeviceTotalMem(&total, f.device);
    if (code != ONUMA__CU_SUCCESS) return onuma__cu_fail(instance->host, code, "asking CUDA device %d", ordinal);
    if (attribute(cu, f.device, ONUMA__CU_UNIFIED_ADDRESSING) == 0)
        return instance->host->fail(ONUMA_ERROR_NOT_SUPPORTED,
                                    "CUDA device %d (\"%s\") has no unified addressing, which every 64-bit driver for "
                                    "GPUs since 2010 has; update it",
                                    ordinal, info->name);
    info->type = attribute(cu, f.device, ONUMA__CU_INTEGRATED) != 0 ? ONUMA_DEVICE_INTEGRATED : ONUMA_DEVICE_DISCRETE;
    info->memory_total = total;
    info->alignment = 256; /* as cuMemAlloc's: enough for every type, and two lines of the cache */
    info->via = ONUMA_VIA_POINTER;
    snprintf(info->driver, sizeof info->driver, "CUDA %d.%d, compute capability %d.%d", instance->version / 1000,
             instance->version % 1000 / 10, attribute(cu, f.device, ONUMA__CU_CAPABILITY_MAJOR),
             attribute(cu, f.device, ONUMA__CU_CAPABILITY_MINOR));
    /* As OpenCL's drivers name the same chip. */
    snprintf(info->physical, sizeof info->physical, "pci:%04x:%02x:%02x.0",
             (unsigned)attribute(cu, f.device, ONUMA__CU_PCI_DOMAIN_ID),
             (unsigned)attribute(cu, f.device, ONUMA__CU_PCI_BUS_ID),
             (unsigned)attribute(cu, f.device, ONUMA__CU_PCI_DEVICE_ID));
    f.registers = attribute(cu, f.device, ONUMA__CU_HOST_REGISTER_SUPPORTED) != 0;
    f.read_only_pins = attribute(cu, f.device, ONUMA__CU_READ_ONLY_REGISTER_SUPPORTED) != 0;
    find_ways(instance, &f);
    onuma__cu_way way = ONUMA__CU_VMM;
    while (way < ONUMA__CU_WAYS && (f.ways & 1u << way) == 0)
        way++;
    onuma__cu_facts_decide(&f, way < ONUMA__CU_WAYS ? way : ONUMA__CU_NONE, ONUMA_PROOF_NONE);
    *out = f;
    return ONUMA_OK;
}
