/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The binary interface, pinned: sizes and offsets of the public structs and the
 * values of the public constants, as programs that are already compiled know
 * them. The rule for changing them stands beside the version in opennuma.h.
 */
#include "support.h"

#include <opennuma/backend.h>

_Static_assert(sizeof(void *) == 8 && sizeof(size_t) == 8, "these are the figures of 64-bit systems");

typedef struct pin {
    const char *what;
    uint64_t is, was;
} pin;

#define SIZE(type, bytes)                                                                                              \
    { "sizeof " #type, sizeof(type), (bytes) }
#define PLACE(type, member, bytes)                                                                                     \
    { "offset of " #type "." #member, offsetof(type, member), (bytes) }
#define VALUE(name, value)                                                                                             \
    { #name, name, (value) }

static void check(const pin *pins, size_t count) {
    size_t changed = 0;
    for (size_t i = 0; i < count; i++) {
        if (pins[i].is == pins[i].was) continue;
        print_error("%s: %llu, was %llu\n", pins[i].what, (unsigned long long)pins[i].is,
                    (unsigned long long)pins[i].was);
        changed++;
    }
    if (changed != 0) fail_msg("the binary interface changed in %zu places: see the rule in opennuma.h", changed);
}

static const pin types[] = {
    SIZE(onuma_result, 4),         SIZE(onuma_api, 4),         SIZE(onuma_kind, 4),   SIZE(onuma_device_type, 4),
    SIZE(onuma_access, 4),         SIZE(onuma_queue_order, 4), SIZE(onuma_source, 4), SIZE(onuma_log_level, 4),
    SIZE(onuma_backend_status, 4), SIZE(onuma_via, 4),         SIZE(onuma_proof, 4),
};

static const pin structs[] = {
    SIZE(onuma_runtime_desc, 32),
    PLACE(onuma_runtime_desc, struct_size, 0),
    PLACE(onuma_runtime_desc, config, 8),
    PLACE(onuma_runtime_desc, log, 16),
    PLACE(onuma_runtime_desc, log_user, 24),

    SIZE(onuma_backend_info, 304),
    PLACE(onuma_backend_info, struct_size, 0),
    PLACE(onuma_backend_info, name, 8),
    PLACE(onuma_backend_info, status, 40),
    PLACE(onuma_backend_info, detail, 44),

    SIZE(onuma_config_key, 32),
    PLACE(onuma_config_key, name, 0),
    PLACE(onuma_config_key, type, 8),
    PLACE(onuma_config_key, fallback, 16),
    PLACE(onuma_config_key, help, 24),

    SIZE(onuma_native_device, 32),
    PLACE(onuma_native_device, struct_size, 0),
    PLACE(onuma_native_device, context, 8),
    PLACE(onuma_native_device, device, 16),
    PLACE(onuma_native_device, instance, 24),

    SIZE(onuma_device_info, 760),
    PLACE(onuma_device_info, struct_size, 0),
    PLACE(onuma_device_info, id, 8),
    PLACE(onuma_device_info, name, 40),
    PLACE(onuma_device_info, backend, 168),
    PLACE(onuma_device_info, type, 200),
    PLACE(onuma_device_info, driver, 204),
    PLACE(onuma_device_info, physical, 332),
    PLACE(onuma_device_info, shared_via, 396),
    PLACE(onuma_device_info, kinds, 428),
    PLACE(onuma_device_info, coherent, 432),
    PLACE(onuma_device_info, simulator, 433),
    PLACE(onuma_device_info, memory_total, 440),
    PLACE(onuma_device_info, memory_free, 448),
    PLACE(onuma_device_info, max_block, 456),
    PLACE(onuma_device_info, alignment, 464),
    PLACE(onuma_device_info, native_context, 472),
    PLACE(onuma_device_info, native_device, 480),
    PLACE(onuma_device_info, proof, 488),
    PLACE(onuma_device_info, import_zero_copy, 492),
    PLACE(onuma_device_info, sharing_detail, 493),
    PLACE(onuma_device_info, sharing_notes, 752),

    SIZE(onuma_pool_desc, 56),
    PLACE(onuma_pool_desc, struct_size, 0),
    PLACE(onuma_pool_desc, kind, 8),
    PLACE(onuma_pool_desc, alignment, 16),
    PLACE(onuma_pool_desc, limit_bytes, 24),
    PLACE(onuma_pool_desc, segment_bytes, 32),
    PLACE(onuma_pool_desc, name, 40),
    PLACE(onuma_pool_desc, source, 48),
    PLACE(onuma_pool_desc, simulate, 52),

    SIZE(onuma_import_desc, 32),
    PLACE(onuma_import_desc, struct_size, 0),
    PLACE(onuma_import_desc, read_only, 8),
    PLACE(onuma_import_desc, deleter, 16),
    PLACE(onuma_import_desc, user, 24),

    SIZE(onuma_block_info, 48),
    PLACE(onuma_block_info, struct_size, 0),
    PLACE(onuma_block_info, base, 8),
    PLACE(onuma_block_info, size, 16),
    PLACE(onuma_block_info, requested, 24),
    PLACE(onuma_block_info, pool, 32),
    PLACE(onuma_block_info, kind, 40),

    SIZE(onuma_pool_stats, 184),
    PLACE(onuma_pool_stats, struct_size, 0),
    PLACE(onuma_pool_stats, in_use_bytes, 8),
    PLACE(onuma_pool_stats, in_use_bytes_peak, 16),
    PLACE(onuma_pool_stats, in_use_blocks, 24),
    PLACE(onuma_pool_stats, in_use_blocks_peak, 32),
    PLACE(onuma_pool_stats, requested_bytes, 40),
    PLACE(onuma_pool_stats, requested_bytes_peak, 48),
    PLACE(onuma_pool_stats, reserved_bytes, 56),
    PLACE(onuma_pool_stats, reserved_bytes_peak, 64),
    PLACE(onuma_pool_stats, cached_bytes, 72),
    PLACE(onuma_pool_stats, cached_bytes_peak, 80),
    PLACE(onuma_pool_stats, pending_bytes, 88),
    PLACE(onuma_pool_stats, pending_bytes_peak, 96),
    PLACE(onuma_pool_stats, metadata_bytes, 104),
    PLACE(onuma_pool_stats, metadata_bytes_peak, 112),
    PLACE(onuma_pool_stats, alloc_count, 120),
    PLACE(onuma_pool_stats, free_count, 128),
    PLACE(onuma_pool_stats, segment_alloc_count, 136),
    PLACE(onuma_pool_stats, segment_free_count, 144),
    PLACE(onuma_pool_stats, commit_count, 152),
    PLACE(onuma_pool_stats, decommit_count, 160),
    PLACE(onuma_pool_stats, oom_retry_count, 168),
    PLACE(onuma_pool_stats, alloc_failure_count, 176),

    SIZE(onuma_view, 64),
    PLACE(onuma_view, struct_size, 0),
    PLACE(onuma_view, flags, 8),
    PLACE(onuma_view, via, 12),
    PLACE(onuma_view, pointer, 16),
    PLACE(onuma_view, handle, 24),
    PLACE(onuma_view, offset, 32),
    PLACE(onuma_view, size, 40),
    PLACE(onuma_view, reserved, 48),

    SIZE(onuma_queue_desc, 48),
    PLACE(onuma_queue_desc, struct_size, 0),
    PLACE(onuma_queue_desc, order, 8),
    PLACE(onuma_queue_desc, lock, 16),
    PLACE(onuma_queue_desc, unlock, 24),
    PLACE(onuma_queue_desc, user, 32),
    PLACE(onuma_queue_desc, wait, 40),

    SIZE(onuma_host_timeline, 16),
    PLACE(onuma_host_timeline, submitted, 0),
    PLACE(onuma_host_timeline, completed, 8),

    SIZE(onuma_native_event, 24),
    PLACE(onuma_native_event, struct_size, 0),
    PLACE(onuma_native_event, api, 8),
    PLACE(onuma_native_event, handle, 16),

    SIZE(onuma_backend_host, 40),
    PLACE(onuma_backend_host, struct_size, 0),
    PLACE(onuma_backend_host, fail, 8),
    PLACE(onuma_backend_host, log, 16),
    PLACE(onuma_backend_host, config, 24),
    PLACE(onuma_backend_host, user, 32),

    SIZE(onuma_backend_device_info, 704),
    PLACE(onuma_backend_device_info, struct_size, 0),
    PLACE(onuma_backend_device_info, name, 8),
    PLACE(onuma_backend_device_info, driver, 136),
    PLACE(onuma_backend_device_info, physical, 264),
    PLACE(onuma_backend_device_info, shared_via, 328),
    PLACE(onuma_backend_device_info, type, 360),
    PLACE(onuma_backend_device_info, simulator, 364),
    PLACE(onuma_backend_device_info, kinds, 368),
    PLACE(onuma_backend_device_info, abilities, 372),
    PLACE(onuma_backend_device_info, memory_total, 376),
    PLACE(onuma_backend_device_info, max_segment, 384),
    PLACE(onuma_backend_device_info, alignment, 392),
    PLACE(onuma_backend_device_info, page_size, 400),
    PLACE(onuma_backend_device_info, via, 408),
    PLACE(onuma_backend_device_info, native_context, 416),
    PLACE(onuma_backend_device_info, native_device, 424),
    PLACE(onuma_backend_device_info, proof, 432),
    PLACE(onuma_backend_device_info, import_zero_copy, 436),
    PLACE(onuma_backend_device_info, sharing_detail, 437),
    PLACE(onuma_backend_device_info, sharing_notes, 696),

    SIZE(onuma_segment, 64),
    PLACE(onuma_segment, struct_size, 0),
    PLACE(onuma_segment, base, 8),
    PLACE(onuma_segment, size, 16),
    PLACE(onuma_segment, address, 24),
    PLACE(onuma_segment, handle, 32),
    PLACE(onuma_segment, kind, 40),
    PLACE(onuma_segment, read_only, 44),
    PLACE(onuma_segment, own, 48),
    PLACE(onuma_segment, needs_map, 56),

    SIZE(onuma_backend, 264),
    PLACE(onuma_backend, struct_size, 0),
    PLACE(onuma_backend, abi, 8),
    PLACE(onuma_backend, api, 12),
    PLACE(onuma_backend, name, 16),
    PLACE(onuma_backend, open, 24),
    PLACE(onuma_backend, close, 32),
    PLACE(onuma_backend, describe, 40),
    PLACE(onuma_backend, device_count, 48),
    PLACE(onuma_backend, device_query, 56),
    PLACE(onuma_backend, device_open, 64),
    PLACE(onuma_backend, device_close, 72),
    PLACE(onuma_backend, device_info, 80),
    PLACE(onuma_backend, memory_free, 88),
    PLACE(onuma_backend, device_adopt, 96),
    PLACE(onuma_backend, device_from_queue, 104),
    PLACE(onuma_backend, segment_create, 112),
    PLACE(onuma_backend, segment_destroy, 120),
    PLACE(onuma_backend, segment_reserve, 128),
    PLACE(onuma_backend, segment_commit, 136),
    PLACE(onuma_backend, segment_decommit, 144),
    PLACE(onuma_backend, import_host, 152),
    PLACE(onuma_backend, view_create, 160),
    PLACE(onuma_backend, view_retain, 168),
    PLACE(onuma_backend, view_release, 176),
    PLACE(onuma_backend, host_map, 184),
    PLACE(onuma_backend, host_unmap, 192),
    PLACE(onuma_backend, queue_open, 200),
    PLACE(onuma_backend, queue_close, 208),
    PLACE(onuma_backend, marker_record, 216),
    PLACE(onuma_backend, marker_wrap, 224),
    PLACE(onuma_backend, marker_poll, 232),
    PLACE(onuma_backend, marker_destroy, 240),
    PLACE(onuma_backend, queue_wait_marker, 248),
    PLACE(onuma_backend, segment_discard, 256),
};

static const pin values[] = {
    VALUE(ONUMA_OK, 0),
    VALUE(ONUMA_ERROR_INVALID_ARGUMENT, 1),
    VALUE(ONUMA_ERROR_OUT_OF_MEMORY, 2),
    VALUE(ONUMA_ERROR_LIMIT, 3),
    VALUE(ONUMA_ERROR_NOT_SUPPORTED, 4),
    VALUE(ONUMA_ERROR_NOT_FOUND, 5),
    VALUE(ONUMA_ERROR_BUSY, 6),
    VALUE(ONUMA_ERROR_TIMEOUT, 7),
    VALUE(ONUMA_ERROR_CONFLICT, 8),
    VALUE(ONUMA_ERROR_DOUBLE_FREE, 9),
    VALUE(ONUMA_ERROR_INVALID_POINTER, 10),
    VALUE(ONUMA_ERROR_DEVICE_LOST, 11),
    VALUE(ONUMA_ERROR_FORKED, 12),
    VALUE(ONUMA_ERROR_IO, 13),
    VALUE(ONUMA_ERROR_INTERNAL, 14),
    VALUE(ONUMA_API_HOST, 0),
    VALUE(ONUMA_API_OPENCL, 1),
    VALUE(ONUMA_API_LEVEL_ZERO, 2),
    VALUE(ONUMA_API_SYCL, 3),
    VALUE(ONUMA_API_CUDA, 4),
    VALUE(ONUMA_API_HIP, 5),
    VALUE(ONUMA_API_VULKAN, 6),
    VALUE(ONUMA_KIND_HOST, 0),
    VALUE(ONUMA_KIND_SHARED, 1),
    VALUE(ONUMA_KIND_DEVICE, 2),
    VALUE(ONUMA_DEVICE_INTEGRATED, 0),
    VALUE(ONUMA_DEVICE_DISCRETE, 1),
    VALUE(ONUMA_DEVICE_CPU, 2),
    VALUE(ONUMA_DEVICE_HOST, 3),
    VALUE(ONUMA_ACCESS_READ, 1),
    VALUE(ONUMA_ACCESS_WRITE, 2),
    VALUE(ONUMA_ACCESS_READ_WRITE, 3),
    VALUE(ONUMA_QUEUE_DETECT, 0),
    VALUE(ONUMA_QUEUE_IN_ORDER, 1),
    VALUE(ONUMA_QUEUE_UNORDERED, 2),
    VALUE(ONUMA_SOURCE_AUTO, 0),
    VALUE(ONUMA_SOURCE_RANGE, 1),
    VALUE(ONUMA_SOURCE_SEGMENTS, 2),
    VALUE(ONUMA_LOG_NONE, 0),
    VALUE(ONUMA_LOG_ERROR, 1),
    VALUE(ONUMA_LOG_WARN, 2),
    VALUE(ONUMA_LOG_INFO, 3),
    VALUE(ONUMA_LOG_DEBUG, 4),
    VALUE(ONUMA_BACKEND_OK, 0),
    VALUE(ONUMA_BACKEND_ABSENT, 1),
    VALUE(ONUMA_BACKEND_ERROR, 2),
    VALUE(ONUMA_PROOF_NONE, 0),
    VALUE(ONUMA_PROOF_NOT_NEEDED, 1),
    VALUE(ONUMA_PROOF_ASSUMED, 2),
    VALUE(ONUMA_PROOF_UNPROVABLE, 3),
    VALUE(ONUMA_PROOF_CACHED, 4),
    VALUE(ONUMA_PROOF_MEASURED, 5),
    VALUE(ONUMA_PROOF_FAILED, 6),
    VALUE(ONUMA_SHARING_NOT_OFFERED, 1),
    VALUE(ONUMA_SHARING_SLOWER, 2),
    VALUE(ONUMA_SHARING_LESS, 4),
    VALUE(ONUMA_SHARING_NO_IMPORTS, 8),
    VALUE(ONUMA_SHARING_NO_KERNELS, 16),
    VALUE(ONUMA_SHARING_HANGS, 32),
    VALUE(ONUMA_SHARING_SMALL_PAGES, 64),
    VALUE(ONUMA_VIA_POINTER, 0),
    VALUE(ONUMA_VIA_SVM, 1),
    VALUE(ONUMA_VIA_USM, 2),
    VALUE(ONUMA_VIA_HANDLE, 3),
    VALUE(ONUMA_ABILITY_RESERVE, 1),
    VALUE(ONUMA_ABILITY_IMPORT, 2),
    VALUE(ONUMA_ABILITY_HANDLES, 4),
    VALUE(ONUMA_ABILITY_COHERENT, 8),
    VALUE(ONUMA_ABILITY_QUEUES, 16),
    VALUE(ONUMA_ABILITY_WAIT, 32),
    VALUE(ONUMA_ABILITY_ADOPT, 64),
    VALUE(ONUMA_VIEW_RETAIN, 1),
    VALUE(ONUMA_TIMEOUT_INFINITE, UINT64_MAX),
    VALUE(ONUMA_BACKEND_ABI, 1),
};

static void types_are_as_wide_as_ever(void **state) {
    (void)state;
    check(types, sizeof types / sizeof *types);
}

static void structs_are_laid_out_as_ever(void **state) {
    (void)state;
    check(structs, sizeof structs / sizeof *structs);
}

static void constants_have_their_values(void **state) {
    (void)state;
    check(values, sizeof values / sizeof *values);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_are_as_wide_as_ever),
        cmocka_unit_test(structs_are_laid_out_as_ever),
        cmocka_unit_test(constants_have_their_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
