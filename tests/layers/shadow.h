/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shadows: the driver works on memory of its own, and bytes move between that and what the program sees only where
 * the program maps and unmaps, by commands of the driver on the program's queue. So a program that maps and unmaps as
 * OpenCL demands computes the same as without, and one that leaves any of it out computes wrong.
 */
#ifndef ONUMA_TESTS_LAYER_SHADOW_H
#define ONUMA_TESTS_LAYER_SHADOW_H

#include "layer.h"

/* The layer's choice of what gets a shadow. */
bool shadow_wants_buffer(size_t size, const void *host);
bool shadow_wants_svm(cl_svm_mem_flags flags, size_t size);
bool shadow_wants_usm(size_t size);
/* Maps move whole multiples of this, as caches do; 0 or 1: exactly what is mapped. */
size_t shadow_granule(void);

void shadow_install_buffers(cl_icd_dispatch *mine);
void shadow_install_svm(cl_icd_dispatch *mine);
void shadow_install_usm(cl_icd_dispatch *mine); /* after svm's */

/* The driver's address of a program's pointer. */
const void *shadow_device_pointer(const void *pointer);
/* Memory for the program to see, as misaligned in its page as the driver's. *block is to be freed. */
void *shadow_host_block(const void *device, size_t size, void **block);

/* ---- the maps that live, by the pointer that they gave */
typedef struct shadow_map {
    cl_mem buffer; /* NULL: SVM */
    char *pointer;
    size_t size;
    cl_map_flags flags;
} shadow_map;

bool shadow_map_add(const shadow_map *map);
bool shadow_map_take(cl_mem buffer, const void *pointer, shadow_map *out); /* the newest */
cl_uint shadow_map_count(cl_mem buffer);

#endif
