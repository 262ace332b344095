/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA for the command line itself: what it runs kernels and streams with. As opencl/loader.h, but with declarations of
 * our own of the few functions, so that nothing of NVIDIA's is needed to build. Names, types and values are those of
 * https://docs.nvidia.com/cuda/cuda-driver-api/, each function under the name by which the driver exports that form of it.
 */
#ifndef CLI_CUDA_LOADER_H
#define CLI_CUDA_LOADER_H

#include <stddef.h>
#include <stdint.h>

typedef int cli_cuda_result; /* CUresult; 0 is success */
typedef struct cli_cuda_context_object *cli_cuda_context;
typedef struct cli_cuda_stream_object *cli_cuda_stream;
typedef struct cli_cuda_event_object *cli_cuda_event;
typedef struct cli_cuda_module_object *cli_cuda_module;
typedef struct cli_cuda_function_object *cli_cuda_function;
typedef uint64_t cli_cuda_pointer;
typedef void cli_cuda_host_function(void *user);

enum { CLI_CUDA_STREAM_NON_BLOCKING = 1, CLI_CUDA_EVENT_DISABLE_TIMING = 2 };
enum { CLI_CUDA_HOST_DEVICEMAP = 2, CLI_CUDA_WAIT_VALUE_GEQ = 0 };

/* X(name, exported name, parameters) */
#define CLI_CUDA_FUNCTIONS(X)                                                                                          \
    X(get_error_name, "cuGetErrorName", (cli_cuda_result code, const char **name))                                     \
    X(push, "cuCtxPushCurrent_v2", (cli_cuda_context context))                                                         \
    X(pop, "cuCtxPopCurrent_v2", (cli_cuda_context * context))                                                         \
    X(stream_create, "cuStreamCreate", (cli_cuda_stream * stream, unsigned flags))                                     \
    X(stream_destroy, "cuStreamDestroy_v2", (cli_cuda_stream stream))                                                  \
    X(stream_synchronize, "cuStreamSynchronize", (cli_cuda_stream stream))                                             \
    X(stream_wait_value, "cuStreamWaitValue32_v2",                                                                     \
      (cli_cuda_stream stream, cli_cuda_pointer address, uint32_t value, unsigned flags))                              \
    X(event_create, "cuEventCreate", (cli_cuda_event * event, unsigned flags))                                         \
    X(event_record, "cuEventRecord", (cli_cuda_event event, cli_cuda_stream stream))                                   \
    X(event_destroy, "cuEventDestroy_v2", (cli_cuda_event event))                                                      \
    X(launch_host, "cuLaunchHostFunc", (cli_cuda_stream stream, cli_cuda_host_function * fn, void *user))              \
    X(module_load, "cuModuleLoadData", (cli_cuda_module * module, const void *text))                                   \
    X(module_unload, "cuModuleUnload", (cli_cuda_module module))                                                       \
    X(module_get_function, "cuModuleGetFunction",                                                                      \
      (cli_cuda_function * function, cli_cuda_module module, const char *name))                                        \
    X(launch, "cuLaunchKernel",                                                                                        \
      (cli_cuda_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,                \
       unsigned block_y, unsigned block_z, unsigned shared_bytes, cli_cuda_stream stream, void **parameters,           \
       void **extra))                                                                                                  \
    X(memory_allocate, "cuMemAlloc_v2", (cli_cuda_pointer * pointer, size_t size))                                     \
    X(memory_free, "cuMemFree_v2", (cli_cuda_pointer pointer))                                                         \
    X(host_allocate, "cuMemHostAlloc", (void **pointer, size_t size, unsigned flags))                                  \
    X(host_free, "cuMemFreeHost", (void *pointer))                                                                     \
    X(copy_to_device, "cuMemcpyHtoDAsync_v2",                                                                          \
      (cli_cuda_pointer to, const void *from, size_t size, cli_cuda_stream stream))                                    \
    X(copy_to_host, "cuMemcpyDtoHAsync_v2", (void *to, cli_cuda_pointer from, size_t size, cli_cuda_stream stream))

#if defined(_WIN32)
#define CLI_CUDA_CALL __stdcall
#else
#define CLI_CUDA_CALL
#endif

typedef struct cli_cuda {
#define CLI_X(name, exported, parameters) cli_cuda_result(CLI_CUDA_CALL *name) parameters;
    CLI_CUDA_FUNCTIONS(CLI_X)
#undef CLI_X
} cli_cuda;

/* The functions, loaded once; NULL where they cannot be, and *why says so. Not thread-safe. */
const cli_cuda *cli_cuda_load(const char **why);

/* "CUDA_ERROR_INVALID_VALUE", say. Static text. */
const char *cli_cuda_error_name(const cli_cuda *cuda, cli_cuda_result code);

#endif
