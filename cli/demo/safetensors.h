/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A strict reader of .safetensors over bytes in memory.
 *
 * The format: eight bytes with the length of a JSON header, little-endian; the
 * header, an object that gives each tensor's dtype, shape and place, and
 * "__metadata__", an object of texts; the tensors' bytes. Everything is
 * checked: each tensor's size against its shape, and that the tensors fill the
 * data exactly, with no overlap and no gap. The file is not trusted.
 */
#ifndef DEMO_SAFETENSORS_H
#define DEMO_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>

#define SAFETENSORS_RANK_MAX 8

typedef struct safetensors_tensor {
    const char *name;
    const char *dtype; /* "F32", "U8", ... */
    size_t rank;
    size_t shape[SAFETENSORS_RANK_MAX];
    const unsigned char *data; /* of no particular alignment */
    size_t size;
} safetensors_tensor;

typedef struct safetensors {
    safetensors_tensor *tensors;
    size_t count;
    void *header; /* the parsed JSON that names and metadata live in */
} safetensors;

/*
 * Read `size` bytes, which must stay while *out is used. On failure *out is
 * empty and `error` (NULL ok) says why.
 */
bool safetensors_parse(const void *bytes, size_t size, safetensors *out, char *error, size_t error_size);

/* Give back what parsing got. An empty one is fine. */
void safetensors_free(safetensors *file);

/* The tensor of that name, or NULL. */
const safetensors_tensor *safetensors_find(const safetensors *file, const char *name);

/* The metadata of that name, or NULL. */
const char *safetensors_metadata(const safetensors *file, const char *name);

#endif
