/* SPDX-License-Identifier: Apache-2.0 */
/**
 * OpenNUMA: one memory for the CPU and the GPU.
 *
 * A block's bytes exist once. The CPU has a pointer to them, and each device a
 * *view* of them: the same pointer where the driver has unified shared memory,
 * a buffer handle where it has not.
 *
 *     runtime   what was found on this machine: drivers and devices
 *     device    one driver, context and device
 *     pool      serves blocks of one kind of memory on one device
 *     block     what onuma_alloc returns; named by its pointer
 *     queue     a device's stream of work, wrapped so that frees follow it
 *
 * Conventions, which hold unless a function says otherwise:
 *
 * - Functions return an onuma_result. New objects come back through the last
 *   parameter, which is set to NULL on failure. A call that fails leaves
 *   everything as it was; onuma_last_error() then says what, and what to do.
 * - Sizes and alignments are bytes, times are nanoseconds, alignments powers
 *   of two. Native handles (cl_mem, cl_command_queue, ...) travel as uint64_t.
 * - Every function may be called from any thread at any time. Two calls on the
 *   *same* object may run at once, except a call that destroys it.
 * - A child made by fork() may go on using host pools; what hangs on a driver is
 *   refused with ONUMA_ERROR_FORKED. Handlers of pthread_atfork may call in, if
 *   they were registered after the library was loaded.
 * - Structs start with struct_size, which the *_INIT initialisers fill; that
 *   is how later versions add members without breaking programs.
 * - Handles of destroyed runtimes, devices, pools and queues are recognised
 *   and refused with ONUMA_ERROR_INVALID_ARGUMENT.
 */
#ifndef OPENNUMA_OPENNUMA_H
#define OPENNUMA_OPENNUMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus)
#include <atomic>
#endif

/*
 * When to raise which. What compiled programs know is pinned: sizes, offsets
 * and values by tests/unit/test_abi.c, functions by cmake/opennuma.symbols.
 *
 * - Only additions (functions; members at the end of a struct that begins with
 *   struct_size; values at the end of a list): PATCH. Old lines of the pins
 *   stay as they are, but for the size of a struct that grew.
 * - Anything else (a member moved, removed or of another meaning, a value
 *   changed, a function gone): MINOR, from 1.0 on MAJOR. The library's soname
 *   and the node in cmake/opennuma.map change with it. ONUMA_BACKEND_ABI too,
 *   where backends notice.
 *
 * Of a version that was never released anything may change. The pins change in
 * the same commit in any case, so that nobody breaks programs without seeing it.
 */
#define ONUMA_VERSION_MAJOR 0
#define ONUMA_VERSION_MINOR 1
#define ONUMA_VERSION_PATCH 0

#if defined(_WIN32)
#if defined(ONUMA_BUILDING_SHARED) || defined(ONUMA_STATIC) /* the DLL's exports are in its .def file */
#define ONUMA_API
#else
#define ONUMA_API __declspec(dllimport)
#endif
#elif defined(__GNUC__)
#define ONUMA_API __attribute__((visibility("default")))
#else
#define ONUMA_API
#endif

#if defined(__cplusplus)
extern "C" {
#endif

/* ------------------------------------------------------------------ results */

/**
 * Every result: X(name, value, text). One list gives the constants, their
 * names and their texts. Values never change; new ones are added at the end.
 */
#define ONUMA_RESULTS(X)                                                                            \
    X(OK, 0, "success")                                                                             \
    X(ERROR_INVALID_ARGUMENT, 1, "an argument has a value that is not allowed")                     \
    X(ERROR_OUT_OF_MEMORY, 2, "the device or the system has no more memory")                        \
    X(ERROR_LIMIT, 3, "the pool's own limit is reached")                                            \
    X(ERROR_NOT_SUPPORTED, 4, "this device, driver or system cannot do that")                       \
    X(ERROR_NOT_FOUND, 5, "no such device, driver or object")                                       \
    X(ERROR_BUSY, 6, "something is still in use")                                                   \
    X(ERROR_TIMEOUT, 7, "the time given ran out")                                                   \
    X(ERROR_CONFLICT, 8, "another access to the same block is in the way")                          \
    X(ERROR_DOUBLE_FREE, 9, "the block is already free")                                            \
    X(ERROR_INVALID_POINTER, 10, "the pointer is not the start of a live block")                    \
    X(ERROR_DEVICE_LOST, 11, "the device is gone or was reset")                                     \
    X(ERROR_FORKED, 12, "the object belongs to the parent process")                                 \
    X(ERROR_IO, 13, "reading or writing failed")                                                    \
    X(ERROR_INTERNAL, 14, "a defect in OpenNUMA or in a driver")

typedef int32_t onuma_result;
enum {
#define ONUMA_X(name, value, text) ONUMA_##name = value,
    ONUMA_RESULTS(ONUMA_X)
#undef ONUMA_X
};

/** The name of a result, "ONUMA_ERROR_LIMIT" say; "ONUMA_ERROR_UNKNOWN" for other numbers. Static text. */
ONUMA_API const char *onuma_result_name(onuma_result r);

/** What a result means, as one English phrase. Static text. */
ONUMA_API const char *onuma_result_text(onuma_result r);

/**
 * The calling thread's last failure in words: which call, which value, what to
 * do, and the driver's own code if there was one. "" if nothing has failed yet.
 * The text is the thread's own and stays until its next failing call.
 */
ONUMA_API const char *onuma_last_error(void);

/** The version of the library that runs, "0.1.0" say (ONUMA_VERSION_* is the header's). Static text. */
ONUMA_API const char *onuma_version(void);

/* ------------------------------------------------------------- basic types */

/* Opaque. The values are tokens, not addresses: never look behind them. */
typedef struct onuma_runtime onuma_runtime;
typedef struct onuma_device  onuma_device;
typedef struct onuma_pool    onuma_pool;
typedef struct onuma_queue   onuma_queue;

typedef uint32_t onuma_api; /**< a driver's programming interface */
enum {
    ONUMA_API_HOST       = 0,
    ONUMA_API_OPENCL     = 1,
    ONUMA_API_LEVEL_ZERO = 2,
    ONUMA_API_SYCL       = 3,
    ONUMA_API_CUDA       = 4,
    ONUMA_API_HIP        = 5,
    ONUMA_API_VULKAN     = 6
};

typedef uint32_t onuma_kind; /**< what a pool's memory is */
enum {
    ONUMA_KIND_HOST   = 0, /**< for the CPU; a device may reach it, more slowly */
    ONUMA_KIND_SHARED = 1, /**< one set of bytes for CPU and device */
    ONUMA_KIND_DEVICE = 2  /**< for the device; where there is no CPU pointer, the block's pointer
                                is a reserved address with no memory behind it that names it */
};

typedef uint32_t onuma_device_type;
enum {
    ONUMA_DEVICE_INTEGRATED = 0, /**< a GPU that shares the CPU's memory */
    ONUMA_DEVICE_DISCRETE   = 1, /**< a GPU with memory of its own */
    ONUMA_DEVICE_CPU        = 2, /**< the CPU, reached through a driver */
    ONUMA_DEVICE_HOST       = 3  /**< the CPU itself, no driver */
};

typedef uint32_t onuma_access;
enum { ONUMA_ACCESS_READ = 1, ONUMA_ACCESS_WRITE = 2, ONUMA_ACCESS_READ_WRITE = 3 };

typedef uint32_t onuma_queue_order;
enum {
    ONUMA_QUEUE_DETECT    = 0, /**< ask the driver; unordered where it does not tell */
    ONUMA_QUEUE_IN_ORDER  = 1, /**< work runs in the order of submission */
    ONUMA_QUEUE_UNORDERED = 2  /**< work may overtake earlier work */
};

typedef uint32_t onuma_source; /**< how a pool gets its memory */
enum {
    ONUMA_SOURCE_AUTO     = 0, /**< a range where the backend can reserve apart from committing, else segments */
    ONUMA_SOURCE_RANGE    = 1, /**< one long range of addresses, committed by page */
    ONUMA_SOURCE_SEGMENTS = 2  /**< chained segments of a few sizes */
};

#define ONUMA_TIMEOUT_INFINITE UINT64_MAX

/* ----------------------------------------------------------------- runtime */

typedef uint32_t onuma_log_level;
enum { ONUMA_LOG_NONE = 0, ONUMA_LOG_ERROR = 1, ONUMA_LOG_WARN = 2, ONUMA_LOG_INFO = 3, ONUMA_LOG_DEBUG = 4 };

/** Receives log lines (no newline at the end). Called on the thread that logs, with no lock of the library held. */
typedef void onuma_log_callback(void *user, onuma_log_level level, const char *line);

typedef struct onuma_runtime_desc {
    size_t              struct_size;
    const char         *config; /**< "key:value,key:value"; NULL: the environment's OPENNUMA_CONF alone. Keys given here win */
    onuma_log_callback *log;    /**< NULL: lines go to standard error. With a callback and no "log" key, it gets warnings and errors */
    void               *log_user;
} onuma_runtime_desc;
#define ONUMA_RUNTIME_DESC_INIT { sizeof(onuma_runtime_desc), NULL, NULL, NULL }

/**
 * Find this machine's drivers and devices.
 *
 * Drivers are loaded from the system's own places; one that is absent is no
 * error, and the host device is always there. No context is created before a
 * device is first used. Two runtimes in one process are independent.
 *
 * OPENNUMA_CONF is read with secure_getenv, so set-user-id programs ignore it.
 * Errors: INVALID_ARGUMENT for an unknown key or a bad value, OUT_OF_MEMORY.
 */
ONUMA_API onuma_result onuma_runtime_create(const onuma_runtime_desc *desc, onuma_runtime **out);

/**
 * Destroy a runtime with its devices, pools and queues. Blocks that still live
 * are reported through the log, each on a line that begins "opennuma: leak:";
 * their memory stays mapped. Waits up to a second for the queues. NULL is ignored.
 */
ONUMA_API void onuma_runtime_destroy(onuma_runtime *rt);

/**
 * Limit what all pools of a runtime reserve together; 0: none. At the hard limit allocations first have the other pools
 * give back what they have free, then climb the ladder, then fail with LIMIT. Beyond the soft one pools grow, but keep
 * nothing that they do not use. They begin with the settings limit.hard and limit.soft.
 * Below what is reserved now, only growth is refused. Errors: INVALID_ARGUMENT.
 */
ONUMA_API onuma_result onuma_runtime_set_limits(onuma_runtime *rt, size_t hard_bytes, size_t soft_bytes);

/**
 * Called when the system is short of memory and giving back what the runtime's pools have free was not enough: free what
 * can be computed again. Needs the setting pressure:on and a pool. Called on a thread of the library's own with no
 * locks held; it may call any function, but must not destroy the runtime.
 */
typedef void onuma_pressure_handler(void *user, onuma_runtime *rt);

/** Set or clear (NULL) the handler; a call that has begun goes on. Errors: INVALID_ARGUMENT. */
ONUMA_API onuma_result onuma_runtime_set_pressure_handler(onuma_runtime *rt, onuma_pressure_handler *fn, void *user);

typedef uint32_t onuma_backend_status;
enum { ONUMA_BACKEND_OK = 0, ONUMA_BACKEND_ABSENT = 1, ONUMA_BACKEND_ERROR = 2 };

typedef struct onuma_backend_info {
    size_t               struct_size;
    char                 name[32];    /**< "host", "opencl" */
    onuma_backend_status status;      /**< ABSENT: no driver here, which is normal. ERROR: there is one and it does not work */
    char                 detail[256]; /**< why, or the driver's version */
} onuma_backend_info;
#define ONUMA_BACKEND_INFO_INIT { sizeof(onuma_backend_info), { 0 }, 0, { 0 } }

/** How many backends this library was built with. 0 for a handle that is not live. */
ONUMA_API size_t onuma_backend_count(const onuma_runtime *rt);

/** What became of backend i. Errors: INVALID_ARGUMENT. */
ONUMA_API onuma_result onuma_backend_get_info(const onuma_runtime *rt, size_t i, onuma_backend_info *out);

typedef struct onuma_config_key {
    const char *name, *type, *fallback, *help; /**< static texts; type is "bool", "size", "a|b|c", ... */
} onuma_config_key;

/** Key i of OPENNUMA_CONF, in the order of the documentation; NULL beyond the last. Static. */
ONUMA_API const onuma_config_key *onuma_config_key_at(size_t i);

/* ----------------------------------------------------------------- devices */

/** How many devices were found. 0 for a handle that is not live. */
ONUMA_API size_t onuma_device_count(const onuma_runtime *rt);

/** Device i, best first: integrated GPU, discrete GPU, CPU device, simulators, host. NULL beyond the last. Owned by the runtime. */
ONUMA_API onuma_device *onuma_device_at(const onuma_runtime *rt, size_t i);

/** The device with that id ("host", "opencl:0"). Errors: NOT_FOUND, with the ids there are. */
ONUMA_API onuma_result onuma_device_find(const onuma_runtime *rt, const char *id, onuma_device **out);

typedef struct onuma_native_device {
    size_t   struct_size;
    uint64_t context;  /**< cl_context, ze_context_handle_t, VkDevice, ... */
    uint64_t device;   /**< cl_device_id, ze_device_handle_t, VkPhysicalDevice, ... */
    uint64_t instance; /**< VkInstance, cl_platform_id; 0 where the API has none */
} onuma_native_device;
#define ONUMA_NATIVE_DEVICE_INIT { sizeof(onuma_native_device), 0, 0, 0 }

/**
 * Use a context that the program made itself. The library keeps its own
 * reference, so the program may release its own first; the device is the
 * caller's to release. `device` may be 0 where the context has but one. Two
 * contexts of one chip are two devices with the same `physical`: neither sees
 * the other's memory. A ze_context_handle_t has no references: such a context
 * stays until onuma_device_release; a device of 0 is then the only one there is.
 *
 * Errors: NOT_SUPPORTED where the backend cannot, INVALID_ARGUMENT for handles
 * that no driver here has made, or that the driver refuses. A handle of another
 * type (a cl_mem for a cl_context) or one that was released cannot be told from
 * a good one on every driver, and may crash inside it.
 */
ONUMA_API onuma_result onuma_device_adopt(onuma_runtime *rt, onuma_api api, const onuma_native_device *native,
                                          onuma_device **out);

/** The device, in the context of a native queue. Queues of one context give the same, counted device. */
ONUMA_API onuma_result onuma_device_from_queue(onuma_runtime *rt, onuma_api api, uint64_t native_queue,
                                               onuma_device **out);

/** Give back a device got by adopt or from_queue; BUSY while pools or queues on it live. Others ignore it. */
ONUMA_API onuma_result onuma_device_release(onuma_device *d);

typedef uint32_t onuma_proof; /**< how it is known that CPU and device see each other's writes */
enum {
    ONUMA_PROOF_NONE       = 0, /**< it is not: nobody has looked yet. What is said of sharing is the driver's word.
                                     The device's first use looks */
    ONUMA_PROOF_NOT_NEEDED = 1, /**< the CPU itself, or a device that shares nothing */
    ONUMA_PROOF_ASSUMED    = 2, /**< it is not: the setting opencl.probe:off keeps the library from looking, or it never
                                     looks (Level Zero) */
    ONUMA_PROOF_UNPROVABLE = 3, /**< it is not: the device takes no kernel that could look (it has no compiler). Every
                                     access of the CPU goes through map and unmap */
    ONUMA_PROOF_CACHED     = 4, /**< measured by an earlier run with the same device, driver and settings */
    ONUMA_PROOF_MEASURED   = 5, /**< measured by this process */
    ONUMA_PROOF_FAILED     = 6  /**< measured, and no way to share works: there is no ONUMA_KIND_SHARED */
};

/** What is worth knowing of how a device shares, in onuma_device_info.sharing_notes; sharing_detail has the words. */
enum {
    ONUMA_SHARING_NOT_OFFERED = 1u << 0, /**< the driver has not the way that the setting opencl.share names */
    ONUMA_SHARING_SLOWER      = 1u << 1, /**< a way that should be faster is offered, was tried and does not hold */
    ONUMA_SHARING_LESS        = 1u << 2, /**< the driver refuses sizes that it states: max_block is less */
    ONUMA_SHARING_NO_IMPORTS  = 1u << 3, /**< onuma_import is refused: the program's own memory does not arrive rightly */
    ONUMA_SHARING_NO_KERNELS  = 1u << 4, /**< the driver reports success and runs nothing */
    ONUMA_SHARING_HANGS       = 1u << 5, /**< work of the library's own on the device did not end in time */
    ONUMA_SHARING_SMALL_PAGES = 1u << 6  /**< host.large_pages is on and the system gives none: `driver` ends with why */
};

typedef struct onuma_device_info {
    size_t            struct_size;
    char              id[32];         /**< "opencl:0" */
    char              name[128];      /**< as the driver calls it */
    char              backend[32];
    onuma_device_type type;
    char              driver[128];    /**< driver name and version */
    char              physical[64];   /**< names the chip: equal on two devices means the same chip */
    char              shared_via[32]; /**< how CPU and device share: "pointer", "usm", "svm_fine", "svm_coarse", "import"; "" if they do not */
    uint32_t          kinds;          /**< bit (1u << ONUMA_KIND_x) for each kind it has */
    bool              coherent;       /**< CPU and device see each other's writes without map and unmap */
    bool              simulator;      /**< a checking or emulating device, not meant for speed */
    uint64_t          memory_total, memory_free; /**< bytes; 0 if the driver does not tell */
    uint64_t          max_block;      /**< the largest block that pools with the device's alignment can serve, by what the
                                           driver states, or gave when it was tried; 0: no limit is known */
    size_t            alignment;      /**< that every block has at least */
    uint64_t          native_context, native_device; /**< the driver's handles; 0 until the device is first used, or if it has none */
    onuma_proof       proof;               /**< what shared_via, coherent, kinds and import_zero_copy rest on */
    bool              import_zero_copy;    /**< it was seen that onuma_import shares the very pages: each side saw the other's
                                                writes with no map in between. false: it was not */
    char              sharing_detail[256]; /**< which ways to share were tried, and why one was turned down; "" if none was */
    uint32_t          sharing_notes;       /**< of ONUMA_SHARING_*; 0 where nobody has looked, or nothing is to be said */
} onuma_device_info;
#define ONUMA_DEVICE_INFO_INIT                                                                                    \
    { sizeof(onuma_device_info), { 0 }, { 0 }, { 0 }, 0, { 0 }, { 0 }, { 0 }, 0, false, false, 0, 0, 0, 0, 0, 0, 0, \
      false, { 0 }, 0 }

/**
 * Describe a device. memory_free is asked from the driver and the system on
 * each call: the least of what either says, where the device lives on the system's memory, with what
 * our own pools hold free (docs/memory.md). Errors: INVALID_ARGUMENT, DEVICE_LOST.
 */
ONUMA_API onuma_result onuma_device_get_info(const onuma_device *d, onuma_device_info *out);

/* ------------------------------------------------------------------- pools */

typedef struct onuma_pool_desc {
    size_t       struct_size;
    onuma_kind   kind;
    size_t       alignment;     /**< of every block; 0: the device's */
    size_t       limit_bytes;   /**< most bytes reserved at once; 0: none */
    size_t       segment_bytes; /**< size of ordinary segments; 0: the library's choice */
    const char  *name;          /**< shown in reports; copied; NULL ok */
    onuma_source source;
    bool         simulate;      /**< addresses with no memory behind them: for replaying traces. A touch crashes at once */
} onuma_pool_desc;
#define ONUMA_POOL_DESC_INIT { sizeof(onuma_pool_desc), ONUMA_KIND_SHARED, 0, 0, 0, NULL, ONUMA_SOURCE_AUTO, false }

/** Create a pool. Errors: INVALID_ARGUMENT, NOT_SUPPORTED (kind or source), OUT_OF_MEMORY, DEVICE_LOST. */
ONUMA_API onuma_result onuma_pool_create(onuma_device *d, const onuma_pool_desc *desc, onuma_pool **out);

/**
 * Destroy a pool with no live blocks. Waits up to a second for queues that still
 * use freed ones. Errors: BUSY while blocks live, or if those queues go on
 * (nothing is changed). NULL ok.
 */
ONUMA_API onuma_result onuma_pool_destroy(onuma_pool *p);

/**
 * Destroy a pool whatever is in it. Waits up to timeout_ns for its queues, then
 * puts what is still in use into quarantine: that memory is never unmapped
 * while it might be used. Live blocks are reported as leaks and become invalid.
 */
ONUMA_API onuma_result onuma_pool_destroy_forced(onuma_pool *p, uint64_t timeout_ns);

/**
 * Allocate a block of at least `size` bytes. Where there is no room, the pool
 * first makes some: caches of other threads, empty segments, up to a second
 * for queues if what they still use would be enough, then the handler.
 *
 * `align` 0 means the pool's. A size of 0 gives a unique pointer that may be
 * freed. With a queue, memory freed earlier on that (in-order) queue may be
 * reused at once, and the block counts as used by it until it is freed; the
 * queue must be the pool's device's, or a host queue. The contents are undefined.
 *
 * Errors: INVALID_ARGUMENT, OUT_OF_MEMORY, LIMIT, DEVICE_LOST, FORKED.
 */
ONUMA_API onuma_result onuma_alloc(onuma_pool *p, size_t size, size_t align, onuma_queue *q, void **out);

/** onuma_alloc, and all bytes are zero for CPU and device. NOT_SUPPORTED where the CPU cannot reach the memory. */
ONUMA_API onuma_result onuma_alloc_zeroed(onuma_pool *p, size_t size, size_t align, onuma_queue *q, void **out);

/**
 * Free a block. Never blocks: if queues still use it, it is parked until they
 * have passed. `q` counts as a use by q. NULL is OK.
 *
 * Errors, memory intact: DOUBLE_FREE (of a large block perhaps
 * INVALID_POINTER), INVALID_POINTER for interior and foreign pointers.
 */
ONUMA_API onuma_result onuma_free(void *ptr, onuma_queue *q);

/**
 * Resize, perhaps moving; the first min(old, new) bytes and the alignment asked
 * for at allocation are kept. If it fails, ptr is still valid. The CPU moves the contents, once announced work that
 * writes the block is done.
 *
 * Errors: as onuma_alloc; INVALID_POINTER, for NULL too; NOT_SUPPORTED for
 * imports, and where a block must move that the CPU cannot reach; TIMEOUT if
 * the announced work takes more than 10 s.
 */
ONUMA_API onuma_result onuma_realloc(void *ptr, size_t size, onuma_queue *q, void **out);

typedef void onuma_import_deleter(void *user, void *ptr);

typedef struct onuma_import_desc {
    size_t                struct_size;
    bool                  read_only; /**< the memory may be mapped read-only */
    onuma_import_deleter *deleter;   /**< called once when the block is really gone; NULL ok. No locks are held */
    void                 *user;
} onuma_import_desc;
#define ONUMA_IMPORT_DESC_INIT { sizeof(onuma_import_desc), false, NULL, NULL }

/**
 * Make memory of the program a block, without copying. *out is `host` itself.
 * Freed with onuma_free, which calls the deleter once no queue uses it.
 * Errors: NOT_SUPPORTED where the device would have to copy it (unaligned),
 * CONFLICT if it overlaps another import, or memory that a pool holds: also
 * where that is free, since the pool may hand it out at any moment.
 *
 * A pointer names one block, of one device. To share the same memory with a
 * second device or context, map it twice (a file, a memfd) and import each.
 */
ONUMA_API onuma_result onuma_import(onuma_device *d, void *host, size_t size, const onuma_import_desc *desc, void **out);

typedef struct onuma_block_info {
    size_t      struct_size;
    void       *base;
    size_t      size;      /**< usable bytes */
    size_t      requested; /**< as asked for */
    onuma_pool *pool;      /**< NULL for imports */
    onuma_kind  kind;
} onuma_block_info;
#define ONUMA_BLOCK_INFO_INIT { sizeof(onuma_block_info), NULL, 0, 0, NULL, 0 }

/** Which block a pointer lies in, interior pointers too. Errors: INVALID_POINTER. */
ONUMA_API onuma_result onuma_block_get_info(const void *ptr, onuma_block_info *out);

/**
 * Give wholly free memory back until at most keep_bytes are reserved. With
 * nothing live and the queues idle, keep_bytes 0 leaves 0 reserved; waits up to
 * 50 ms for queues that use freed blocks. *released (NULL ok) is what was given
 * back.
 */
ONUMA_API onuma_result onuma_pool_trim(onuma_pool *p, size_t keep_bytes, size_t *released);

/** Set the most bytes that may be reserved; 0: none. Below what is reserved now, only growth is refused. */
ONUMA_API onuma_result onuma_pool_set_limit(onuma_pool *p, size_t reserved_bytes);

/** Set from where on the pool keeps nothing that it does not use, though it may grow; 0: nowhere, as at first. */
ONUMA_API onuma_result onuma_pool_set_soft_limit(onuma_pool *p, size_t reserved_bytes);

/**
 * Asked when an allocation is about to fail: free something and return true to
 * try again. Called with no locks held, never re-entered on one thread; it may
 * call any function but those that destroy the pool. One that says true 16
 * times in one allocation without helping is not asked again.
 */
typedef bool onuma_oom_handler(void *user, onuma_pool *p, size_t size);

/** Set or clear (NULL) the handler. */
ONUMA_API onuma_result onuma_pool_set_oom_handler(onuma_pool *p, onuma_oom_handler fn, void *user);

/* -------------------------------------------------------------- statistics */

/**
 * Every statistic of a pool, from which come the struct, the tables and the
 * JSON. Gauges have a present value and a peak; counters only grow.
 * X(name, unit, text)
 */
#define ONUMA_POOL_GAUGES(X)                                                                                    \
    X(in_use_bytes, "bytes", "size of live blocks")                                                             \
    X(in_use_blocks, "blocks", "live blocks")                                                                   \
    X(requested_bytes, "bytes", "what the live blocks were asked to hold")                                      \
    X(reserved_bytes, "bytes", "held from the system or the driver")                                            \
    X(cached_bytes, "bytes", "reserved, free and ready for reuse")                                              \
    X(pending_bytes, "bytes", "freed, but a queue may still use them")                                          \
    X(metadata_bytes, "bytes", "the pool's own book-keeping")

#define ONUMA_POOL_COUNTERS(X)                                                                                  \
    X(alloc_count, "calls", "successful allocations")                                                           \
    X(free_count, "calls", "successful frees")                                                                  \
    X(segment_alloc_count, "calls", "segments got from the system or the driver")                               \
    X(segment_free_count, "calls", "segments given back")                                                       \
    X(commit_count, "calls", "times pages of a range were committed")                                           \
    X(decommit_count, "calls", "times pages of a range were given back")                                        \
    X(oom_retry_count, "calls", "allocations that succeeded only after the pool made room")                     \
    X(alloc_failure_count, "calls", "allocations that failed")

/**
 * reserved and pending bytes and their peaks are exact; in_use and requested
 * are exact whenever no other thread is allocating, their peaks fall short by
 * at most 64 KiB a thread, or exceed by what threads keep for themselves
 * (pool.cache). Exact with OPENNUMA_CONF=track:full.
 */
typedef struct onuma_pool_stats {
    size_t struct_size;
#define ONUMA_X(name, unit, text) uint64_t name; uint64_t name##_peak;
    ONUMA_POOL_GAUGES(ONUMA_X)
#undef ONUMA_X
#define ONUMA_X(name, unit, text) uint64_t name;
    ONUMA_POOL_COUNTERS(ONUMA_X)
#undef ONUMA_X
} onuma_pool_stats;
#define ONUMA_X1(name, unit, text) , 0
#define ONUMA_X2(name, unit, text) , 0, 0
#define ONUMA_POOL_STATS_INIT { sizeof(onuma_pool_stats) ONUMA_POOL_GAUGES(ONUMA_X2) ONUMA_POOL_COUNTERS(ONUMA_X1) }

ONUMA_API onuma_result onuma_pool_get_stats(onuma_pool *p, onuma_pool_stats *out);

/** Peaks start again from the present values. */
ONUMA_API onuma_result onuma_pool_reset_peak(onuma_pool *p);

/* ------------------------------------------------------------------- views */

typedef uint32_t onuma_via; /**< how to bind a view to a kernel */
enum {
    ONUMA_VIA_POINTER = 0, /**< pass .pointer by value */
    ONUMA_VIA_SVM     = 1, /**< clSetKernelArgSVMPointer(.pointer) */
    ONUMA_VIA_USM     = 2, /**< clSetKernelArgMemPointerINTEL(.pointer) */
    ONUMA_VIA_HANDLE  = 3  /**< pass .handle (cl_mem); the pointer's byte is at .offset in it */
};

#define ONUMA_VIEW_RETAIN 1u /**< the caller gets a reference of its own to the handle, to give back with onuma_view_release */

typedef struct onuma_view {
    size_t    struct_size;
    uint32_t  flags;   /**< in: 0 or ONUMA_VIEW_RETAIN */
    onuma_via via;
    uint64_t  pointer; /**< device address of the byte that was asked for; 0 if there is none */
    uint64_t  handle;  /**< cl_mem of exactly this block; 0 if there is none */
    size_t    offset;  /**< of the byte that was asked for, within the handle */
    size_t    size;    /**< bytes from that byte to the block's end */
    uint64_t  reserved[2]; /**< the library's own */
} onuma_view;
#define ONUMA_VIEW_INIT { sizeof(onuma_view), 0, 0, 0, 0, 0, 0, { 0, 0 } }

/**
 * How device `d` addresses the block that holds `ptr` (interior pointers too).
 * Valid until the block is freed; the same block gives the same handle.
 * Errors: INVALID_POINTER, NOT_SUPPORTED (device cannot see it, other api).
 */
ONUMA_API onuma_result onuma_view_get(void *ptr, onuma_device *d, onuma_api api, onuma_view *out);

/** Give back a view got with ONUMA_VIEW_RETAIN; others are refused with INVALID_ARGUMENT. */
ONUMA_API onuma_result onuma_view_release(onuma_view *v);

/* ------------------------------------------------------ queues and sharing */

typedef struct onuma_queue_desc {
    size_t            struct_size;
    onuma_queue_order order;
    void (*lock)(void *user);   /**< taken around native calls on the queue, for APIs that want it; NULL ok */
    void (*unlock)(void *user);
    void *user;
    void (*wait)(void *user);   /**< called, with no lock held, while the library waits for the queue: returns when the queue
                                     has got further, or at once; NULL: the library asks again and again */
} onuma_queue_desc;
#define ONUMA_QUEUE_DESC_INIT { sizeof(onuma_queue_desc), ONUMA_QUEUE_DETECT, NULL, NULL, NULL, NULL }

/**
 * The native queue of ONUMA_API_HOST is the address of one of these. The
 * program adds to `submitted` as it hands work to its own worker, and the
 * worker sets `completed` as it finishes: C11 or C++11 atomics, both only grow.
 * If all is completed by then, it may go once onuma_queue_release is over; else
 * it stays until the device's pools are destroyed.
 */
typedef struct onuma_host_timeline {
#if defined(__cplusplus)
    std::atomic<uint64_t> submitted, completed;
#else
    _Atomic uint64_t submitted, completed;
#endif
} onuma_host_timeline;

/**
 * Level Zero has two kinds of queue, and a handle does not tell which it is: a ze_command_queue_handle_t is passed as it
 * is, an immediate ze_command_list_handle_t through this. Such lists want one caller at a time, so give the
 * functions `lock` and `unlock` if threads of yours append to it. Unless `order` says otherwise both count as unordered.
 */
#define ONUMA_LEVEL_ZERO_LIST(list) ((uint64_t)(uintptr_t)(list) | 1u)

/** Tell the library of a native queue. Wrapping twice gives the same, counted object. The native queue outlives onuma_queue_release. */
ONUMA_API onuma_result onuma_queue_wrap(onuma_device *d, onuma_api api, uint64_t native, const onuma_queue_desc *desc,
                                        onuma_queue **out);

/** Give a wrapped queue back. Frees that wait for it still wait for its last work. NULL ok. */
ONUMA_API onuma_result onuma_queue_release(onuma_queue *q);

typedef struct onuma_native_event {
    size_t    struct_size;
    onuma_api api;
    uint64_t  handle; /**< cl_event, ...; for ONUMA_API_HOST the timeline value that means done. A ze_event_handle_t,
                           which has no references, stays and is not reset until what it was given for has waited */
} onuma_native_event;
#define ONUMA_NATIVE_EVENT_INIT { sizeof(onuma_native_event), 0, 0 }

/** q's later work runs after `on`'s earlier work. `done` NULL: made by the library; else the program already did it and announces it. */
ONUMA_API onuma_result onuma_queue_wait(onuma_queue *q, onuma_queue *on, const onuma_native_event *done);

/**
 * Announce that work about to be submitted to q accesses a block. What one
 * thread announces of a block before it is submitted is one use. Errors:
 * CONFLICT while the host holds it in a way that does not go with it;
 * INVALID_ARGUMENT where q is another device's than the block (host queues
 * may use any that the CPU reaches), or writes what was imported read-only.
 */
ONUMA_API onuma_result onuma_use(onuma_queue *q, void *ptr, onuma_access mode);

/** onuma_use for n blocks: all or none. */
ONUMA_API onuma_result onuma_use_many(onuma_queue *q, size_t n, void *const *ptrs, const onuma_access *modes);

/** The announced work is submitted. `done` is its event (retained until passed, but for CUDA's, which nobody can retain:
 * keep those until then); NULL: the library marks the queue. An event is of work that was submitted after all the uses that it
 * seals had been announced. */
ONUMA_API onuma_result onuma_submitted(onuma_queue *q, const onuma_native_event *done);

/**
 * Before the CPU touches size bytes at ptr. Waits for conflicting announced
 * uses, then makes the device's writes visible. timeout_ns 0 polls.
 * Errors: TIMEOUT, INVALID_POINTER, INVALID_ARGUMENT (beyond the block), DEVICE_LOST.
 */
ONUMA_API onuma_result onuma_host_acquire(void *ptr, size_t size, onuma_access mode, uint64_t timeout_ns);

/** After the CPU touched them, with the same arguments: makes the CPU's writes visible to the device. */
ONUMA_API onuma_result onuma_host_release(void *ptr, size_t size, onuma_access mode);

#if defined(__cplusplus)
}
#endif
#endif
