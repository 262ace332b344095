/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/alloc/umf.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output.h"

/* ---------------------------------------- after umf/base.h, memory_pool.h, memory_provider.h, pools/ and providers/ */

typedef int umf_result; /* 0: success */
typedef struct umf_pool umf_pool;
typedef struct umf_provider umf_provider;
typedef struct umf_operations umf_operations;
typedef struct umf_params umf_params; /* each pool's own */
enum { UMF_OWN_PROVIDER = 1 << 0, UMF_MAJOR = 1 };

static struct functions {
    int (*version)(void);
    umf_result (*os_params_create)(umf_params **out);
    umf_result (*os_params_destroy)(umf_params *params);
    const umf_operations *(*os_operations)(void);
    umf_result (*provider_create)(const umf_operations *ops, const void *params, umf_provider **out);
    umf_result (*provider_destroy)(umf_provider *provider);
    umf_result (*pool_create)(const umf_operations *ops, umf_provider *provider, const void *params, uint32_t flags,
                              umf_pool **out);
    umf_result (*pool_destroy)(umf_pool *pool);
    void *(*pool_malloc)(umf_pool *pool, size_t size);
    umf_result (*pool_free)(umf_pool *pool, void *block);
    umf_result (*pool_by_ptr)(const void *ptr, umf_pool **out);
    umf_result (*disjoint_most)(umf_params *params, size_t size);
    umf_result (*disjoint_capacity)(umf_params *params, size_t slabs);
    umf_result (*scalable_keep)(umf_params *params, bool keep_all);
} umf;

/* One sort of pool: three functions of its own, and what is set. */
typedef struct pool_sort {
    const char *name, *settings, *operations_name, *create_name, *destroy_name;
    umf_result (*tune)(umf_params *params); /* NULL: as it comes */
    const umf_operations *(*operations)(void);
    umf_result (*params_create)(umf_params **out);
    umf_result (*params_destroy)(umf_params *params);
} pool_sort;

/* ------------------------------------------------------------------- blocks */

static inline void *take(void *heap, size_t size) {
    return umf.pool_malloc(heap, size);
}

static inline bool give(void *heap, void *block) {
    return umf.pool_free(heap, block) == 0;
}

#define BENCH_CAN_FIND
static inline bool find(void *heap, void *pointer) {
    umf_pool *pool;
    return umf.pool_by_ptr(pointer, &pool) == 0 && pool == heap;
}

#include "bench/alloc/loops.h"

/* -------------------------------------------------------------------- pools */

static umf_result make_provider(umf_provider **out) {
    umf_params *params;
    umf_result result = umf.os_params_create(&params);
    if (result) return result;
    result = umf.provider_create(umf.os_operations(), params, out);
    (void)umf.os_params_destroy(params);
    return result;
}

static umf_result make_pool(const pool_sort *sort, umf_provider *provider, umf_pool **out) {
    umf_params *params;
    umf_result result = sort->params_create(&params);
    if (result) return result;
    if (sort->tune) result = sort->tune(params);
    if (!result) result = umf.pool_create(sort->operations(), provider, params, UMF_OWN_PROVIDER, out);
    (void)sort->params_destroy(params);
    return result;
}

static bool open_pool(const void *own, void **heap) {
    umf_provider *provider;
    umf_pool *pool;
    if (make_provider(&provider)) return false;
    if (make_pool(own, provider, &pool)) {
        (void)umf.provider_destroy(provider);
        return false;
    }
    *heap = pool;
    return true;
}

static void close_pool(void *heap) {
    (void)umf.pool_destroy(heap);
}

static umf_result tune_disjoint(umf_params *params) {
    umf_result result = umf.disjoint_most(params, (size_t)32 << 20);
    return result ? result : umf.disjoint_capacity(params, 64);
}

static umf_result tune_scalable(umf_params *params) {
    return umf.scalable_keep(params, true);
}

#define SORT(name, settings, part, tune)                                                                               \
    {                                                                                                                  \
        name, settings, "umf" part "PoolOps", "umf" part "PoolParamsCreate", "umf" part "PoolParamsDestroy", tune,     \
            NULL, NULL, NULL                                                                                           \
    }

static pool_sort sorts[BENCH_UMF_POOLS] = {
    SORT("umf-disjoint", "", "Disjoint", NULL),
    SORT("umf-disjoint-tuned", ", 32 MiB poolable, capacity 64", "Disjoint", tune_disjoint),
    SORT("umf-scalable", ", keeps all memory", "Scalable", tune_scalable),
    SORT("umf-jemalloc", "", "Jemalloc", NULL),
};

/* ------------------------------------------------------------------ loading */

/* Into a function pointer, which C has no conversion to. */
static bool load(void *library, const char *name, void *function, char *wrong, size_t wrong_size) {
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    if (!found) snprintf(wrong, wrong_size, "it has no function %s", name);
    return found != NULL;
}

static bool load_all(void *library, char *wrong, size_t wrong_size) {
    const struct {
        const char *name;
        void *function;
    } wanted[] = {
        {"umfGetCurrentVersion", &umf.version},
        {"umfOsMemoryProviderParamsCreate", &umf.os_params_create},
        {"umfOsMemoryProviderParamsDestroy", &umf.os_params_destroy},
        {"umfOsMemoryProviderOps", &umf.os_operations},
        {"umfMemoryProviderCreate", &umf.provider_create},
        {"umfMemoryProviderDestroy", &umf.provider_destroy},
        {"umfPoolCreate", &umf.pool_create},
        {"umfPoolDestroy", &umf.pool_destroy},
        {"umfPoolMalloc", &umf.pool_malloc},
        {"umfPoolFree", &umf.pool_free},
        {"umfPoolByPtr", &umf.pool_by_ptr},
        {"umfDisjointPoolParamsSetMaxPoolableSize", &umf.disjoint_most},
        {"umfDisjointPoolParamsSetCapacity", &umf.disjoint_capacity},
        {"umfScalablePoolParamsSetKeepAllMemory", &umf.scalable_keep},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (!load(library, wanted[i].name, wanted[i].function, wrong, wrong_size)) return false;
    for (size_t i = 0; i < BENCH_UMF_POOLS; i++)
        if (!load(library, sorts[i].operations_name, &sorts[i].operations, wrong, wrong_size) ||
            !load(library, sorts[i].create_name, &sorts[i].params_create, wrong, wrong_size) ||
            !load(library, sorts[i].destroy_name, &sorts[i].params_destroy, wrong, wrong_size))
            return false;
    int major = umf.version() >> 16;
    if (major != UMF_MAJOR) snprintf(wrong, wrong_size, "its version is %d, not %d", major, UMF_MAJOR);
    return major == UMF_MAJOR;
}

size_t bench_umf_allocators(void *library, bench_allocator out[BENCH_UMF_POOLS], char *lacking, size_t lacking_size,
                            char *wrong, size_t wrong_size) {
    static char versions[BENCH_UMF_POOLS][64];
    size_t count = 0;
    lacking[0] = '\0';
    if (!load_all(library, wrong, wrong_size)) return 0;
    for (size_t i = 0; i < BENCH_UMF_POOLS; i++) {
        if (!sorts[i].operations()) { /* how it tells that it was built without */
            size_t used = strlen(lacking);
            snprintf(lacking + used, lacking_size - used, "%s%s", used ? ", " : "", sorts[i].name);
            continue;
        }
        snprintf(versions[i], sizeof versions[i], "interface %d.%d%s", umf.version() >> 16, umf.version() & 0xFFFF,
                 sorts[i].settings);
        out[count++] = (bench_allocator){
            .name = sorts[i].name,
            .version = versions[i],
            .is_peer = true,
            .own = &sorts[i],
            .open = open_pool,
            .close = close_pool,
            .take = take_one,
            .give = give_one,
            .loops = &loops,
        };
    }
    return count;
}
