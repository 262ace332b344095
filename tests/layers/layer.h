/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every layer has. A layer is a shared object that the OpenCL loader (ocl-icd 2.3, or Khronos') puts between a
 * program and its driver when OPENCL_LAYERS names it. Ours make a real driver misbehave on purpose: they stand for
 * drivers that no test machine has. All that they do not change goes through to the driver, kernels really run.
 *
 * A layer's settings are words like OPENNUMA_CONF's, "from:4096,fine:1", from the variable LAYER_<NAME>
 * (LAYER_COPIES, ...) or, while the program runs, from layer_configure, which tests find by tests/layers/control.h.
 */
#ifndef ONUMA_TESTS_LAYER_H
#define ONUMA_TESTS_LAYER_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <CL/cl_icd.h>
#if !defined(cl_intel_unified_shared_memory) /* headers before 2022 */
#include <CL/cl_ext_intel.h>
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LAYER_EXPORT __attribute__((visibility("default")))

/* The driver, or the layer below. Filled before layer_install is called, constant afterwards. */
extern cl_icd_dispatch layer_next;

/* Each layer's own: replaces what it changes in a table that has layer_next's functions. */
void layer_install(cl_icd_dispatch *mine);

/* A number among the settings. */
size_t layer_number(const char *key, size_t otherwise);
/* Whether a setting has this value. */
bool layer_says(const char *key, const char *value);

/*
 * Whether memory of that size at that place is concerned, by the settings that all layers about memory have:
 * from (smallest size), below (first size that is not), misaligned (only pointers that are no multiple of it).
 */
bool layer_concerns(size_t size, const void *host);

/*
 * For functions that programs ask the driver for by name: keeps what the driver answered, and answers with ours.
 * Copied as bytes, since ISO C casts no function's address to an object's.
 */
#define LAYER_REPLACE(name, address, wanted, kept, mine)                                                               \
    if ((address) != NULL && strcmp(name, wanted) == 0) {                                                              \
        __typeof__(&mine) own = mine;                                                                                  \
        memcpy(&(kept), &(address), sizeof own);                                                                       \
        memcpy(&(address), &own, sizeof own);                                                                          \
    }

/* New settings from now on. */
LAYER_EXPORT void layer_configure(const char *settings);

#endif
