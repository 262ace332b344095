/* SPDX-License-Identifier: Apache-2.0 */
#include "demo/network.h"

#include "demo/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Building goes on after a failure, so that only its end needs a test. */
typedef struct builder {
    network *net;
    bool failed;
    char *error;
    size_t error_size;
} builder;

static void fail(builder *b, const char *what, const char *name) {
    if (!b->failed && b->error)
        snprintf(b->error, b->error_size, "%s.safetensors: %s \"%s\"", b->net->name, what, name);
    b->failed = true;
}

static uint32_t add_tensor(builder *b, network_role role, size_t floats) {
    network *net = b->net;
    if (net->tensor_count == NETWORK_TENSORS_MAX) {
        fail(b, "too many tensors at", "network");
        return 0;
    }
    net->tensors[net->tensor_count] = (network_tensor){role, floats, NULL};
    return (uint32_t)net->tensor_count++;
}

static uint32_t weight(builder *b, const char *name, size_t floats) {
    const safetensors_tensor *found = safetensors_find(&b->net->file, name);
    if (!found || strcmp(found->dtype, "F32") || found->size != floats * sizeof(float)) {
        fail(b, "lacks in the right size the tensor", name);
        return 0;
    }
    uint32_t tensor = add_tensor(b, NETWORK_WEIGHT, floats);
    b->net->tensors[tensor].data = found->data;
    return tensor;
}

#define STEP_ARGUMENTS(...) ((const uint32_t[KERNEL_ARGUMENTS_MAX]){__VA_ARGS__})

static void add_step(builder *b, kernel_id kernel, size_t items, const uint32_t *arguments) {
    network *net = b->net;
    if (net->step_count == NETWORK_STEPS_MAX) {
        fail(b, "too many steps at", kernel_get(kernel)->name);
        return;
    }
    network_step *step = &net->steps[net->step_count++];
    step->kernel = kernel;
    step->items = items;
    memcpy(step->arguments, arguments, sizeof step->arguments);
}

static uint32_t add_dense(builder *b, const char *layer, uint32_t in, size_t rows, uint32_t inputs, uint32_t outputs) {
    char name[64];
    snprintf(name, sizeof name, "%s.weight", layer);
    uint32_t w = weight(b, name, (size_t)inputs * outputs);
    snprintf(name, sizeof name, "%s.bias", layer);
    uint32_t bias = weight(b, name, outputs), out = add_tensor(b, NETWORK_ACTIVATION, rows * outputs);
    add_step(b, KERNEL_dense, rows * outputs, STEP_ARGUMENTS(in, w, bias, out, inputs, outputs));
    return out;
}

static uint32_t add_relu(builder *b, uint32_t in) {
    size_t floats = b->net->tensors[in].floats;
    uint32_t out = add_tensor(b, NETWORK_ACTIVATION, floats);
    add_step(b, KERNEL_relu, floats, STEP_ARGUMENTS(in, out));
    return out;
}

static uint32_t add_softmax(builder *b, uint32_t in, network_role role, uint32_t columns) {
    size_t floats = b->net->tensors[in].floats;
    uint32_t out = add_tensor(b, role, floats);
    add_step(b, KERNEL_softmax, floats / columns, STEP_ARGUMENTS(in, out, columns));
    return out;
}

/* ---------------------------------------------------------------- the convolutional network */

static uint32_t add_conv(builder *b, const char *layer, uint32_t in, uint32_t channels, uint32_t filters,
                         uint32_t side) {
    char name[64];
    snprintf(name, sizeof name, "%s.weight", layer);
    uint32_t w = weight(b, name, (size_t)filters * channels * 9);
    snprintf(name, sizeof name, "%s.bias", layer);
    uint32_t bias = weight(b, name, filters);
    size_t floats = b->net->images * filters * side * side;
    uint32_t out = add_tensor(b, NETWORK_ACTIVATION, floats);
    add_step(b, KERNEL_conv2d, floats, STEP_ARGUMENTS(in, w, bias, out, channels, filters, side, side));
    return add_relu(b, out);
}

static void build_cnn(builder *b) {
    enum { SIDE = 8, FIRST = 16, SECOND = 32, HALF = SIDE / 2, HIDDEN = 64 };
    size_t images = b->net->images;
    uint32_t x = add_conv(b, "conv1", b->net->input, 1, FIRST, SIDE);
    x = add_conv(b, "conv2", x, FIRST, SECOND, SIDE);
    uint32_t pooled = add_tensor(b, NETWORK_ACTIVATION, images * SECOND * HALF * HALF);
    add_step(b, KERNEL_maxpool, images * SECOND * HALF * HALF, STEP_ARGUMENTS(x, pooled, SIDE, SIDE));
    x = add_relu(b, add_dense(b, "dense1", pooled, images, SECOND * HALF * HALF, HIDDEN));
    x = add_dense(b, "dense2", x, images, HIDDEN, NETWORK_CLASSES);
    b->net->output = add_softmax(b, x, NETWORK_OUTPUT, NETWORK_CLASSES);
}

/* ---------------------------------------------------------------- the transformer */

enum { TOKENS = 8, PATCH = 8, WIDTH = 32, HEADS = 4, UP = 64, BLOCKS = 2 };

static uint32_t add_norm(builder *b, const char *layer, uint32_t in) {
    char name[64];
    snprintf(name, sizeof name, "%s.weight", layer);
    uint32_t gain = weight(b, name, WIDTH);
    snprintf(name, sizeof name, "%s.bias", layer);
    uint32_t bias = weight(b, name, WIDTH), out = add_tensor(b, NETWORK_ACTIVATION, b->net->tensors[in].floats);
    add_step(b, KERNEL_layer_norm, b->net->tensors[in].floats / WIDTH, STEP_ARGUMENTS(in, gain, bias, out, WIDTH));
    return out;
}

static uint32_t add_sum(builder *b, uint32_t x, uint32_t y) {
    size_t floats = b->net->tensors[x].floats;
    uint32_t out = add_tensor(b, NETWORK_ACTIVATION, floats);
    add_step(b, KERNEL_vector_add, floats, STEP_ARGUMENTS(x, y, out));
    return out;
}

static uint32_t add_attention(builder *b, uint32_t qkv) {
    size_t scores = b->net->images * HEADS * TOKENS * TOKENS, floats = b->net->images * TOKENS * WIDTH;
    uint32_t raw = add_tensor(b, NETWORK_ACTIVATION, scores);
    add_step(b, KERNEL_attention_scores, scores, STEP_ARGUMENTS(qkv, raw, TOKENS, HEADS, WIDTH));
    uint32_t weights = add_softmax(b, raw, NETWORK_ACTIVATION, TOKENS);
    uint32_t out = add_tensor(b, NETWORK_ACTIVATION, floats);
    add_step(b, KERNEL_attention_mix, floats, STEP_ARGUMENTS(weights, qkv, out, TOKENS, HEADS, WIDTH));
    return out;
}

static uint32_t add_block(builder *b, int index, uint32_t x) {
    char name[64];
    size_t rows = b->net->images * TOKENS;
#define LAYER(text) (snprintf(name, sizeof name, "block%d." text, index), name)
    uint32_t a = add_norm(b, LAYER("norm1"), x);
    a = add_attention(b, add_dense(b, LAYER("qkv"), a, rows, WIDTH, 3 * WIDTH));
    x = add_sum(b, x, add_dense(b, LAYER("out"), a, rows, WIDTH, WIDTH));
    a = add_norm(b, LAYER("norm2"), x);
    a = add_relu(b, add_dense(b, LAYER("up"), a, rows, WIDTH, UP));
    return add_sum(b, x, add_dense(b, LAYER("down"), a, rows, UP, WIDTH));
#undef LAYER
}

static void build_transformer(builder *b) {
    size_t images = b->net->images, rows = images * TOKENS;
    uint32_t x = add_dense(b, "embed", b->net->input, rows, PATCH, WIDTH);
    uint32_t position = weight(b, "position", (size_t)TOKENS * WIDTH),
             placed = add_tensor(b, NETWORK_ACTIVATION, rows * WIDTH);
    add_step(b, KERNEL_add_rows, rows * WIDTH, STEP_ARGUMENTS(x, position, placed, TOKENS * WIDTH));
    x = placed;
    for (int i = 0; i < BLOCKS; i++)
        x = add_block(b, i, x);
    x = add_norm(b, "norm", x);
    uint32_t mean = add_tensor(b, NETWORK_ACTIVATION, images * WIDTH);
    add_step(b, KERNEL_mean_rows, images * WIDTH, STEP_ARGUMENTS(x, mean, TOKENS, WIDTH));
    x = add_dense(b, "head", mean, images, WIDTH, NETWORK_CLASSES);
    b->net->output = add_softmax(b, x, NETWORK_OUTPUT, NETWORK_CLASSES);
}

/* ---------------------------------------------------------------- opening and running */

static const struct {
    const char *name;
    const unsigned char *bytes;
    const size_t *size;
    void (*build)(builder *b);
} networks[NETWORK_COUNT] = {
    {"cnn", demo_file_cnn, &demo_file_cnn_size, build_cnn},
    {"transformer", demo_file_transformer, &demo_file_transformer_size, build_transformer},
};

static size_t metadata_number(builder *b, const char *name) {
    const char *text = safetensors_metadata(&b->net->file, name);
    if (!text) fail(b, "lacks the metadata", name);
    return text ? strtoul(text, NULL, 10) : 0;
}

bool network_open(network *net, size_t which, size_t images, char *error, size_t error_size) {
    builder b = {net, false, error, error_size};
    *net = (network){.name = networks[which].name, .images = images};
    if (!safetensors_parse(networks[which].bytes, *networks[which].size, &net->file, error, error_size)) return false;
    net->known_images = metadata_number(&b, "images");
    net->known_correct = metadata_number(&b, "correct");
    net->input = add_tensor(&b, NETWORK_INPUT, images * NETWORK_PIXELS);
    networks[which].build(&b);
    if (b.failed) network_close(net);
    return !b.failed;
}

void network_close(network *net) {
    safetensors_free(&net->file);
}

bool network_data_open(network_data *data, char *error, size_t error_size) {
    *data = (network_data){0};
    if (!safetensors_parse(demo_file_test, demo_file_test_size, &data->file, error, error_size)) return false;
    const safetensors_tensor *images = safetensors_find(&data->file, "images");
    const safetensors_tensor *labels = safetensors_find(&data->file, "labels");
    if (!images || !labels || strcmp(images->dtype, "U8") || strcmp(labels->dtype, "U8") || labels->size == 0 ||
        images->size != labels->size * NETWORK_PIXELS) {
        if (error) snprintf(error, error_size, "test.safetensors: images and labels do not go together");
        network_data_close(data);
        return false;
    }
    data->pixels = images->data;
    data->labels = labels->data;
    data->images = labels->size;
    return true;
}

void network_data_close(network_data *data) {
    safetensors_free(&data->file);
}

void network_fill_input(const network_data *data, size_t images, float *input) {
    for (size_t i = 0; i < images * NETWORK_PIXELS; i++)
        input[i] = (float)data->pixels[i] / 16.0f;
}

size_t network_count_correct(const network_data *data, size_t images, const float *output) {
    size_t correct = 0;
    for (size_t i = 0; i < images; i++) {
        size_t best = 0;
        for (size_t k = 1; k < NETWORK_CLASSES; k++)
            if (output[i * NETWORK_CLASSES + k] > output[i * NETWORK_CLASSES + best]) best = k;
        correct += best == data->labels[i];
    }
    return correct;
}

void network_run_reference(const network *net, void *const *tensors) {
    for (size_t s = 0; s < net->step_count; s++) {
        const kernel_entry *kernel = kernel_get(net->steps[s].kernel);
        kernel_value values[KERNEL_ARGUMENTS_MAX];
        for (size_t a = 0; kernel->signature[a]; a++) {
            if (kernel->signature[a] == 'u')
                values[a].number = net->steps[s].arguments[a];
            else
                values[a].data = tensors[net->steps[s].arguments[a]];
        }
        kernel->reference(values, net->steps[s].items);
    }
}
