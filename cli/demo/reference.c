/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels in plain C: what every device's results are held against, and
 * what the host device runs. Written the obvious way, one item after the
 * other, sums in double, so that it is easier to believe than to doubt.
 */
#include "demo/kernels.h"

#include <math.h>

uint8_t kernel_pattern(uint32_t i, uint32_t seed) {
    uint32_t x = (i + seed * 40503u + 1u) * 2654435769u;
    return (uint8_t)((x >> 24) ^ (x >> 11));
}

size_t kernel_turn_items(size_t n, size_t stride) {
    return (n - 1 + stride - 1) / stride + 1;
}

static void vector_add(const kernel_value *v, size_t items) {
    const float *a = v[0].data, *b = v[1].data;
    float *out = v[2].data;
    for (size_t i = 0; i < items; i++)
        out[i] = a[i] + b[i];
}

static void vector_add_wrong(const kernel_value *v, size_t items) {
    const float *a = v[0].data, *b = v[1].data;
    float *out = v[2].data;
    for (size_t i = 0; i < items; i++)
        out[i] = a[i] - b[i];
}

static void increment(const kernel_value *v, size_t items) {
    uint32_t *data = v[0].data;
    for (size_t i = 0; i < items; i++)
        data[i] += 1;
}

static void fill(const kernel_value *v, size_t items) {
    uint32_t *out = v[0].data;
    for (size_t i = 0; i < items; i++)
        out[i] = (uint32_t)i * 2654435769u + v[1].number;
}

static void copy(const kernel_value *v, size_t items) {
    const uint32_t *in = v[0].data;
    uint32_t *out = v[1].data;
    for (size_t i = 0; i < items; i++)
        out[i] = in[i];
}

static void turn(const kernel_value *v, size_t items) {
    uint8_t *bytes = v[0].data;
    uint32_t *wrong = v[1].data, size = v[2].number, stride = v[3].number;
    for (size_t item = 0; item < items; item++) {
        uint32_t i = (uint32_t)item * stride;
        if (i > size - 1) i = size - 1;
        if (bytes[i] != kernel_pattern(i, v[4].number)) *wrong += 1;
        bytes[i] = kernel_pattern(i, v[5].number);
    }
}

static void matmul(const kernel_value *v, size_t items) {
    const float *a = v[0].data, *b = v[1].data;
    float *out = v[2].data;
    size_t n = v[3].number;
    for (size_t i = 0; i < items; i++) {
        double sum = 0;
        for (size_t k = 0; k < n; k++)
            sum += (double)a[i / n * n + k] * b[k * n + i % n];
        out[i] = (float)sum;
    }
}

static void reduce_sum(const kernel_value *v, size_t items) {
    const float *in = v[0].data;
    float *out = v[1].data;
    for (size_t group = 0; group < items / KERNEL_GROUP; group++) {
        double sum = 0;
        for (size_t i = 0; i < KERNEL_GROUP; i++)
            sum += in[group * KERNEL_GROUP + i];
        out[group] = (float)sum;
    }
}

static void conv2d(const kernel_value *v, size_t items) {
    const float *in = v[0].data, *weight = v[1].data, *bias = v[2].data;
    float *out = v[3].data;
    size_t channels = v[4].number, filters = v[5].number, height = v[6].number, width = v[7].number;
    for (size_t i = 0; i < items; i++) {
        size_t x = i % width, y = i / width % height;
        size_t filter = i / (width * height) % filters, image = i / (width * height * filters);
        double sum = bias[filter];
        for (size_t c = 0; c < channels; c++)
            for (size_t dy = 0; dy < 3; dy++)
                for (size_t dx = 0; dx < 3; dx++) {
                    if (y + dy < 1 || y + dy > height || x + dx < 1 || x + dx > width) continue;
                    size_t from = ((image * channels + c) * height + y + dy - 1) * width + x + dx - 1;
                    sum += (double)weight[(filter * channels + c) * 9 + dy * 3 + dx] * in[from];
                }
        out[i] = (float)sum;
    }
}

static void relu(const kernel_value *v, size_t items) {
    const float *in = v[0].data;
    float *out = v[1].data;
    for (size_t i = 0; i < items; i++)
        out[i] = in[i] > 0 ? in[i] : 0;
}

static void maxpool(const kernel_value *v, size_t items) {
    const float *in = v[0].data;
    float *out = v[1].data;
    size_t height = v[2].number, width = v[3].number;
    for (size_t i = 0; i < items; i++) {
        size_t x = i % (width / 2), y = i / (width / 2) % (height / 2), plane = i / (width / 2 * (height / 2));
        float greatest = -INFINITY;
        for (size_t dy = 0; dy < 2; dy++)
            for (size_t dx = 0; dx < 2; dx++) {
                float here = in[(plane * height + 2 * y + dy) * width + 2 * x + dx];
                if (here > greatest) greatest = here;
            }
        out[i] = greatest;
    }
}

static void dense(const kernel_value *v, size_t items) {
    const float *in = v[0].data, *weight = v[1].data, *bias = v[2].data;
    float *out = v[3].data;
    size_t inputs = v[4].number, outputs = v[5].number;
    for (size_t i = 0; i < items; i++) {
        double sum = bias[i % outputs];
        for (size_t k = 0; k < inputs; k++)
            sum += (double)in[i / outputs * inputs + k] * weight[i % outputs * inputs + k];
        out[i] = (float)sum;
    }
}

static void softmax(const kernel_value *v, size_t items) {
    size_t columns = v[2].number;
    for (size_t row = 0; row < items; row++) {
        const float *in = (const float *)v[0].data + row * columns;
        float *out = (float *)v[1].data + row * columns;
        double greatest = in[0], sum = 0;
        for (size_t k = 1; k < columns; k++)
            if (in[k] > greatest) greatest = in[k];
        for (size_t k = 0; k < columns; k++)
            sum += exp(in[k] - greatest);
        for (size_t k = 0; k < columns; k++)
            out[k] = (float)(exp(in[k] - greatest) / sum);
    }
}

static void layer_norm(const kernel_value *v, size_t items) {
    const float *gain = v[1].data, *bias = v[2].data;
    size_t columns = v[4].number;
    for (size_t row = 0; row < items; row++) {
        const float *in = (const float *)v[0].data + row * columns;
        float *out = (float *)v[3].data + row * columns;
        double mean = 0, variance = 0;
        for (size_t k = 0; k < columns; k++)
            mean += in[k] / (double)columns;
        for (size_t k = 0; k < columns; k++)
            variance += (in[k] - mean) * (in[k] - mean) / (double)columns;
        for (size_t k = 0; k < columns; k++)
            out[k] = (float)((in[k] - mean) / sqrt(variance + 1e-5) * gain[k] + bias[k]);
    }
}

static void add_rows(const kernel_value *v, size_t items) {
    const float *in = v[0].data, *rows = v[1].data;
    float *out = v[2].data;
    for (size_t i = 0; i < items; i++)
        out[i] = in[i] + rows[i % v[3].number];
}

static void attention_scores(const kernel_value *v, size_t items) {
    const float *qkv = v[0].data;
    float *out = v[1].data;
    size_t tokens = v[2].number, heads = v[3].number, width = v[4].number, head_width = width / heads;
    for (size_t i = 0; i < items; i++) {
        size_t key = i % tokens, query = i / tokens % tokens;
        size_t head = i / (tokens * tokens) % heads, image = i / (tokens * tokens * heads);
        const float *q = qkv + (image * tokens + query) * 3 * width + head * head_width;
        const float *k = qkv + (image * tokens + key) * 3 * width + width + head * head_width;
        double sum = 0;
        for (size_t c = 0; c < head_width; c++)
            sum += (double)q[c] * k[c];
        out[i] = (float)(sum / sqrt((double)head_width));
    }
}

static void attention_mix(const kernel_value *v, size_t items) {
    const float *scores = v[0].data, *qkv = v[1].data;
    float *out = v[2].data;
    size_t tokens = v[3].number, heads = v[4].number, width = v[5].number;
    for (size_t i = 0; i < items; i++) {
        size_t column = i % width, query = i / width % tokens, image = i / (width * tokens);
        const float *p = scores + ((image * heads + column / (width / heads)) * tokens + query) * tokens;
        double sum = 0;
        for (size_t t = 0; t < tokens; t++)
            sum += (double)p[t] * qkv[(image * tokens + t) * 3 * width + 2 * width + column];
        out[i] = (float)sum;
    }
}

static void mean_rows(const kernel_value *v, size_t items) {
    const float *in = v[0].data;
    float *out = v[1].data;
    size_t rows = v[2].number, width = v[3].number;
    for (size_t i = 0; i < items; i++) {
        double sum = 0;
        for (size_t r = 0; r < rows; r++)
            sum += in[(i / width * rows + r) * width + i % width];
        out[i] = (float)(sum / (double)rows);
    }
}

static const kernel_entry kernels[KERNEL_COUNT] = {
#define KERNEL_X(name, signature, group, text) {#name, signature, group, name},
    DEMO_KERNELS(KERNEL_X)
#undef KERNEL_X
};

const kernel_entry *kernel_get(kernel_id id) {
    return &kernels[id];
}
