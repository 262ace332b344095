/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether CPU and device see each other's writes in memory got one way is looked at, once for each context: what a driver
 * announces, a container or a virtual machine may still not let it do. The device copies what the CPU wrote and writes
 * something of its own; the CPU looks for both, with nothing but the end of that work in between. A stream of our own that
 * waits for no other, so that nobody's work or capture is touched.
 */
#include "backend/cuda/cuda.h"

#include <stdio.h>

/* In words, far enough apart to lie in lines of their own. */
enum { BY_CPU = 0, COPIED = 64, BY_DEVICE = 128 };
#define CPU_WORD 0x43505521u
#define DEVICE_WORD 0x47505521u

static onuma__cu_result let_device_work(const onuma__cu *cu, onuma__cu_pointer base) {
    onuma__cu_stream stream = NULL;
    onuma__cu_result code = cu->StreamCreate(&stream, ONUMA__CU_STREAM_NON_BLOCKING);
    if (code != ONUMA__CU_SUCCESS) return code;
    code = cu->MemcpyDtoDAsync(base + COPIED * sizeof(uint32_t), base + BY_CPU * sizeof(uint32_t), sizeof(uint32_t),
                               stream);
    if (code == ONUMA__CU_SUCCESS)
        code = cu->MemsetD32Async(base + BY_DEVICE * sizeof(uint32_t), DEVICE_WORD, 1, stream);
    const onuma__cu_result ended = cu->StreamSynchronize(stream);
    const onuma__cu_result destroyed = cu->StreamDestroy(stream);
    return code != ONUMA__CU_SUCCESS ? code : ended != ONUMA__CU_SUCCESS ? ended : destroyed;
}

static onuma_result look(onuma_backend_device *device, const onuma_segment *segment) {
    volatile uint32_t *words = segment->base;
    words[BY_CPU] = CPU_WORD;
    words[COPIED] = words[BY_DEVICE] = 0;
    atomic_thread_fence(memory_order_seq_cst); /* before the device is told */
    onuma__cu_scope scope;
    const onuma_result r = onuma__cu_enter(device, &scope);
    if (r != ONUMA_OK) return r;
    const onuma__cu_result code = let_device_work(device->cu, segment->address);
    onuma__cu_leave(device, &scope);
    if (code != ONUMA__CU_SUCCESS)
        return onuma__cu_fail(device->host, code, "a trial of shared memory on \"%s\"", device->facts.info.name);
    if (words[COPIED] == CPU_WORD && words[BY_DEVICE] == DEVICE_WORD) return ONUMA_OK;
    return device->host->fail(ONUMA_ERROR_NOT_SUPPORTED,
                              "CPU and device do not see each other's writes: 0x%x for 0x%x, 0x%x for 0x%x",
                              (unsigned)words[COPIED], CPU_WORD, (unsigned)words[BY_DEVICE], DEVICE_WORD);
}

static onuma_result try_way(onuma_backend_device *device, onuma__cu_way way) {
    onuma_segment segment = {.struct_size = sizeof segment};
    const size_t size = device->facts.info.page_size;
    onuma__cu_facts_decide(&device->facts, way, ONUMA_PROOF_MEASURED);
    onuma_result r;
    if (way == ONUMA__CU_VMM) {
        r = onuma__cu_range_reserve(device, ONUMA_KIND_SHARED, size, &segment);
        if (r != ONUMA_OK) return r;
        r = onuma__cu_range_commit(device, &segment, 0, segment.size);
    } else {
        r = onuma__cu_segment_create(device, ONUMA_KIND_SHARED, size, &segment);
        if (r != ONUMA_OK) return r;
    }
    if (r == ONUMA_OK) r = look(device, &segment);
    onuma__cu_segment_destroy(device, &segment);
    return r;
}

/* The same for memory that the driver has not allocated. */
static bool imports_work(onuma_backend_device *device) {
    const size_t size = onuma__os_abilities_get()->page_size;
    void *page = onuma__os_map(size, 0);
    if (page == NULL) return false;
    onuma_segment segment = {.struct_size = sizeof segment};
    onuma_result r = onuma__cu_import_host(device, page, size, false, &segment);
    if (r == ONUMA_OK) {
        r = look(device, &segment);
        onuma__cu_segment_destroy(device, &segment);
    }
    onuma__os_release(page, size);
    return r == ONUMA_OK;
}

static onuma_result settle_way(onuma_backend_device *device) {
    onuma__cu_facts *facts = &device->facts;
    onuma_backend_device_info *info = &facts->info;
    for (onuma__cu_way way = ONUMA__CU_VMM; way < ONUMA__CU_WAYS; way++) {
        if ((facts->ways & 1u << way) == 0) continue;
        const onuma_result r = try_way(device, way);
        if (r == ONUMA_OK) {
            if (info->sharing_detail[0] != '\0') info->sharing_notes |= ONUMA_SHARING_SLOWER;
            return ONUMA_OK;
        }
        if (r == ONUMA_ERROR_DEVICE_LOST) return r;
        /* The first is the one that should have been it. */
        if (info->sharing_detail[0] == '\0')
            snprintf(info->sharing_detail, sizeof info->sharing_detail, "%s: %.230s", onuma__cu_way_names[way],
                     onuma_last_error());
    }
    if (facts->ways == 0)
        snprintf(info->sharing_detail, sizeof info->sharing_detail, "the driver does not offer cuda.share:%s here",
                 device->host->config(device->host, "cuda.share"));
    onuma__cu_facts_decide(facts, ONUMA__CU_NONE, ONUMA_PROOF_FAILED);
    return ONUMA_OK;
}

onuma_result onuma__cu_trial(onuma_backend_device *device) {
    onuma__cu_facts *facts = &device->facts;
    const onuma_result r = settle_way(device);
    if (r != ONUMA_OK || !facts->registers) return r;
    facts->info.import_zero_copy = imports_work(device);
    if (facts->info.import_zero_copy) return ONUMA_OK;
    facts->info.abilities &= ~(uint32_t)ONUMA_ABILITY_IMPORT;
    facts->info.sharing_notes |= ONUMA_SHARING_NO_IMPORTS;
    return ONUMA_OK;
}
