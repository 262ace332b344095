/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trained networks as data: tensors, and the kernels that run over them in
 * order. Whoever runs one brings the memory (pool blocks, driver buffers or
 * plain memory), so that the same network runs the default way, ours, and in
 * the reference.
 */
#ifndef DEMO_NETWORK_H
#define DEMO_NETWORK_H

#include "demo/kernels.h"
#include "demo/safetensors.h"

#define NETWORK_CLASSES 10
#define NETWORK_PIXELS 64
#define NETWORK_TENSORS_MAX 64
#define NETWORK_STEPS_MAX 48

typedef enum network_role { NETWORK_INPUT, NETWORK_WEIGHT, NETWORK_ACTIVATION, NETWORK_OUTPUT } network_role;

typedef struct network_tensor {
    network_role role;
    size_t floats;
    const unsigned char *data; /* of a weight: its bytes in the file, of no particular alignment */
} network_tensor;

typedef struct network_step {
    kernel_id kernel;
    size_t items;
    uint32_t arguments[KERNEL_ARGUMENTS_MAX]; /* by the kernel's signature: a tensor's index or a number */
} network_step;

typedef struct network {
    const char *name;
    size_t images;                      /* examples in one run */
    size_t known_images, known_correct; /* what training recorded: answers right of all test images */
    network_tensor tensors[NETWORK_TENSORS_MAX];
    network_step steps[NETWORK_STEPS_MAX];
    size_t tensor_count, step_count;
    uint32_t input, output;
    safetensors file;
} network;

/* The test images. */
typedef struct network_data {
    const unsigned char *pixels, *labels; /* pixels 0 to 16, NETWORK_PIXELS to an image */
    size_t images;
    safetensors file;
} network_data;

#define NETWORK_COUNT 2

/* Set network `which` up for runs over `images` examples. False, with the reason, if its file is not as it must be. */
bool network_open(network *net, size_t which, size_t images, char *error, size_t error_size);
void network_close(network *net);

bool network_data_open(network_data *data, char *error, size_t error_size);
void network_data_close(network_data *data);

/* Pixels of images [0, images) as the network wants them. */
void network_fill_input(const network_data *data, size_t images, float *input);

/* How many of the outputs name the right class. */
size_t network_count_correct(const network_data *data, size_t images, const float *output);

/* Run all steps in plain C; tensors[i] is the memory of tensor i. */
void network_run_reference(const network *net, void *const *tensors);

#endif
