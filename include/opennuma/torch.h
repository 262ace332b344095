/* SPDX-License-Identifier: Apache-2.0 */
/**
 * PyTorch's allocator callbacks: device memory of tensors from OpenNUMA's pools.
 *
 * PyTorch calls these by their names or addresses; programs do not. There are
 * two ways in, both from Python (LIBRARY is the path of libopennuma.so):
 *
 *     allocator = torch.cuda.memory.CUDAPluggableAllocator(
 *         LIBRARY, "onuma_torch_cuda_alloc", "onuma_torch_cuda_free")
 *
 *     # PyTorch's own allocator on top, which gets its segments here: statistics, record_stream and the rest go on working
 *     pool = torch.cuda.MemPool(allocator.allocator())
 *     with torch.cuda.use_mem_pool(pool): ...
 *
 *     # or the whole allocator, before CUDA is first used, once per process
 *     torch.cuda.memory.change_current_allocator(allocator)
 *
 * For the second, the functions below that are more than alloc and free are set
 * by address: allocator.allocator().set_record_stream_fn(address), and so on
 * (ctypes.cast(library.NAME, ctypes.c_void_p).value). Without record_stream
 * a tensor that another stream uses may be given away too early.
 *
 * One runtime and a pool for each device are made at the first call, by the
 * settings of OPENNUMA_CONF, and kept until the process ends, so frees of
 * an interpreter that is on its way out find them. All functions may be called from any
 * thread, whatever CUDA context is current there, also while it captures a graph;
 * none of them takes a lock of Python's.
 */
#ifndef OPENNUMA_TORCH_H
#define OPENNUMA_TORCH_H

#include "opennuma/opennuma.h"

#if defined(__cplusplus)
extern "C" {
#endif

/**
 * Memory of a device for work on a stream (a cudaStream_t; NULL is the legacy
 * default stream). NULL if there is none; onuma_last_error() then says why.
 */
ONUMA_API void *onuma_torch_cuda_alloc(size_t size, int device, void *stream);

/** Give it back. That stream may have it again at once, others when the stream has passed this point. NULL is ignored. */
ONUMA_API void onuma_torch_cuda_free(void *ptr, size_t size, int device, void *stream);

/** `ptr` is used by another stream too: freed, it waits for what that stream was given until then. */
ONUMA_API void onuma_torch_cuda_record_stream(void *ptr, void *stream);

/** Make the runtime and the pools of so many devices now rather than at the first allocation. */
ONUMA_API void onuma_torch_cuda_init(int device_count);

/** Give all memory that no tensor has back to the devices (torch.cuda.empty_cache). */
ONUMA_API void onuma_torch_cuda_reset(void);

/** Bound what a device's pool may hold to this fraction of the device's memory; 1 and more: no bound. */
ONUMA_API void onuma_torch_cuda_memory_fraction(double fraction, int device);

/** The block that a pointer lies in: its start, and its size in *size. NULL, and 0, for what is none. */
ONUMA_API void *onuma_torch_cuda_base_alloc(void *ptr, size_t *size);

/** The pool of a device, for its statistics and limits. NULL if it cannot be had; it is never the caller's to destroy. */
ONUMA_API onuma_pool *onuma_torch_cuda_pool(int device);

#if defined(__cplusplus)
}
#endif
#endif
