/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DLPack's binary interface as far as it is needed here, written from its specification
 * (https://dmlc.github.io/dlpack/latest/): a tensor on the CPU, unversioned and versioned.
 */
#ifndef ONUMAPY_DLPACK_ABI_H
#define ONUMAPY_DLPACK_ABI_H

#include <stdint.h>

enum { DLPACK_MAJOR = 1, DLPACK_MINOR = 0, DLPACK_CPU = 1 };
enum { DLPACK_READ_ONLY = 1, DLPACK_COPIED = 2 }; /* flags of a versioned tensor */

typedef struct {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides; /* in elements */
    uint64_t byte_offset;
} dlpack_tensor;

typedef struct dlpack_managed {
    dlpack_tensor tensor;
    void *context;
    void (*deleter)(struct dlpack_managed *self);
} dlpack_managed;

typedef struct dlpack_managed_versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct dlpack_managed_versioned *self);
    uint64_t flags;
    dlpack_tensor tensor;
} dlpack_managed_versioned;

#endif
