/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that CPU and device share, as a layer knows it: buffers over host memory, parts of them, pointers. */
#ifndef ONUMA_TESTS_LAYER_MEMORY_H
#define ONUMA_TESTS_LAYER_MEMORY_H

#include "layer.h"

typedef struct memory {
    cl_mem buffer; /* NULL: known by pointer */
    cl_mem root;   /* the buffer that this one is a part of; else itself */
    char *host;    /* the address that the program knows */
    char *device;  /* pointers: what the driver knows; host, unless it has a shadow */
    void *block;   /* pointers: the allocation around `host`, the layer's to free; NULL without a shadow */
    size_t size;   /* bytes at host */
    size_t origin; /* of host in the root */
    size_t root_size;
    cl_mem_flags flags; /* as the program gave them */
} memory;

/* Buffers are forgotten when the driver destroys them. false: no memory, or the driver refuses. */
bool memory_add_buffer(const memory *one);
bool memory_add_pointer(const memory *one);

/* Copies, so that they stay good whoever frees what they tell of. false: not known. */
bool memory_of_buffer(cl_mem buffer, memory *out);
bool memory_of_pointer(const void *pointer, memory *out); /* interior ones too */
/* Forget an allocation that begins there. */
bool memory_take_pointer(const void *base, memory *out);

/* Bytes of all that is known. */
size_t memory_total(void);

#endif
