/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels of kernels.h in OpenCL C 1.2.
 *
 * A tensor is bound as a base and an offset in bytes, because a view with a
 * handle of its own names the whole block, and the byte that was asked for may
 * lie anywhere in it, more finely than a sub-buffer could start.
 */
#define TENSOR(type, name) global type *name##_base, ulong name##_offset
#define OPEN(type, name) global type *name = (global type *)((global uchar *)name##_base + name##_offset)
#define OPEN_CONST(type, name) \
    global const type *name = (global const type *)((global const uchar *)name##_base + name##_offset)

#define GROUP 64
#define TILE 8

kernel void vector_add(TENSOR(const float, a), TENSOR(const float, b), TENSOR(float, out))
{
    OPEN_CONST(float, a);
    OPEN_CONST(float, b);
    OPEN(float, out);
    size_t i = get_global_id(0);
    out[i] = a[i] + b[i];
}

kernel void vector_add_wrong(TENSOR(const float, a), TENSOR(const float, b), TENSOR(float, out))
{
    OPEN_CONST(float, a);
    OPEN_CONST(float, b);
    OPEN(float, out);
    size_t i = get_global_id(0);
    out[i] = a[i] - b[i];
}

kernel void increment(TENSOR(uint, data))
{
    OPEN(uint, data);
    data[get_global_id(0)] += 1;
}

uchar pattern(uint i, uint seed)
{
    uint x = (i + seed * 40503u + 1u) * 2654435769u;
    return (uchar)((x >> 24) ^ (x >> 11));
}

kernel void fill(TENSOR(uint, out), uint seed)
{
    OPEN(uint, out);
    uint i = (uint)get_global_id(0);
    out[i] = i * 2654435769u + seed;
}

kernel void copy(TENSOR(const uint, in), TENSOR(uint, out))
{
    OPEN_CONST(uint, in);
    OPEN(uint, out);
    size_t i = get_global_id(0);
    out[i] = in[i];
}

kernel void turn(TENSOR(uchar, bytes), TENSOR(uint, wrong), uint size, uint stride, uint expected, uint written)
{
    OPEN(uchar, bytes);
    OPEN(uint, wrong);
    uint i = min((uint)get_global_id(0) * stride, size - 1u);
    if (bytes[i] != pattern(i, expected)) atomic_inc((volatile global uint *)wrong);
    bytes[i] = pattern(i, written);
}

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void matmul(TENSOR(const float, a), TENSOR(const float, b), TENSOR(float, out), uint n)
{
    OPEN_CONST(float, a);
    OPEN_CONST(float, b);
    OPEN(float, out);
    local float a_tile[TILE][TILE], b_tile[TILE][TILE];
    uint tiles = n / TILE, group = (uint)get_group_id(0), item = (uint)get_local_id(0);
    uint y = item / TILE, x = item % TILE;
    uint row = group / tiles * TILE + y, column = group % tiles * TILE + x;
    float sum = 0;
    for (uint t = 0; t < tiles; t++) {
        a_tile[y][x] = a[row * n + t * TILE + x];
        b_tile[y][x] = b[(t * TILE + y) * n + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint k = 0; k < TILE; k++) sum += a_tile[y][k] * b_tile[k][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    out[row * n + column] = sum;
}

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void reduce_sum(TENSOR(const float, in), TENSOR(float, out))
{
    OPEN_CONST(float, in);
    OPEN(float, out);
    local float part[GROUP];
    uint item = (uint)get_local_id(0);
    part[item] = in[get_global_id(0)];
    for (uint reach = GROUP / 2; reach > 0; reach /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < reach) part[item] += part[item + reach];
    }
    if (item == 0) out[get_group_id(0)] = part[0];
}

kernel void conv2d(TENSOR(const float, in), TENSOR(const float, weight), TENSOR(const float, bias), TENSOR(float, out),
                   uint channels, uint filters, uint height, uint width)
{
    OPEN_CONST(float, in);
    OPEN_CONST(float, weight);
    OPEN_CONST(float, bias);
    OPEN(float, out);
    uint i = (uint)get_global_id(0);
    int x = (int)(i % width), y = (int)(i / width % height);
    uint filter = i / (width * height) % filters, image = i / (width * height * filters);
    float sum = bias[filter];
    for (uint c = 0; c < channels; c++) {
        global const float *plane = in + (image * channels + c) * height * width;
        global const float *w = weight + (filter * channels + c) * 9;
        for (int dy = -1; dy <= 1; dy++) {
            if (y + dy < 0 || y + dy >= (int)height) continue;
            for (int dx = -1; dx <= 1; dx++)
                if (x + dx >= 0 && x + dx < (int)width)
                    sum += w[(dy + 1) * 3 + dx + 1] * plane[(y + dy) * (int)width + x + dx];
        }
    }
    out[i] = sum;
}

kernel void relu(TENSOR(const float, in), TENSOR(float, out))
{
    OPEN_CONST(float, in);
    OPEN(float, out);
    size_t i = get_global_id(0);
    out[i] = fmax(in[i], 0.0f);
}

kernel void maxpool(TENSOR(const float, in), TENSOR(float, out), uint height, uint width)
{
    OPEN_CONST(float, in);
    OPEN(float, out);
    uint i = (uint)get_global_id(0), half_width = width / 2, half_height = height / 2;
    uint x = i % half_width, y = i / half_width % half_height, plane = i / (half_width * half_height);
    global const float *corner = in + (plane * height + 2 * y) * width + 2 * x;
    out[i] = fmax(fmax(corner[0], corner[1]), fmax(corner[width], corner[width + 1]));
}

kernel void dense(TENSOR(const float, in), TENSOR(const float, weight), TENSOR(const float, bias), TENSOR(float, out),
                  uint inputs, uint outputs)
{
    OPEN_CONST(float, in);
    OPEN_CONST(float, weight);
    OPEN_CONST(float, bias);
    OPEN(float, out);
    uint i = (uint)get_global_id(0), output = i % outputs;
    global const float *row = in + (size_t)(i / outputs) * inputs, *w = weight + (size_t)output * inputs;
    float sum = bias[output];
    for (uint k = 0; k < inputs; k++) sum += row[k] * w[k];
    out[i] = sum;
}

kernel void softmax(TENSOR(const float, in), TENSOR(float, out), uint columns)
{
    OPEN_CONST(float, in);
    OPEN(float, out);
    size_t start = get_global_id(0) * columns;
    float greatest = in[start], sum = 0;
    for (uint k = 1; k < columns; k++) greatest = fmax(greatest, in[start + k]);
    for (uint k = 0; k < columns; k++) sum += out[start + k] = exp(in[start + k] - greatest);
    for (uint k = 0; k < columns; k++) out[start + k] /= sum;
}

kernel void layer_norm(TENSOR(const float, in), TENSOR(const float, gain), TENSOR(const float, bias),
                       TENSOR(float, out), uint columns)
{
    OPEN_CONST(float, in);
    OPEN_CONST(float, gain);
    OPEN_CONST(float, bias);
    OPEN(float, out);
    size_t start = get_global_id(0) * columns;
    float mean = 0, variance = 0;
    for (uint k = 0; k < columns; k++) mean += in[start + k];
    mean /= (float)columns;
    for (uint k = 0; k < columns; k++) variance += (in[start + k] - mean) * (in[start + k] - mean);
    float inverse = 1.0f / sqrt(variance / (float)columns + 1e-5f);
    for (uint k = 0; k < columns; k++) out[start + k] = (in[start + k] - mean) * inverse * gain[k] + bias[k];
}

kernel void add_rows(TENSOR(const float, in), TENSOR(const float, rows), TENSOR(float, out), uint period)
{
    OPEN_CONST(float, in);
    OPEN_CONST(float, rows);
    OPEN(float, out);
    size_t i = get_global_id(0);
    out[i] = in[i] + rows[i % period];
}

kernel void attention_scores(TENSOR(const float, qkv), TENSOR(float, out), uint tokens, uint heads, uint width)
{
    OPEN_CONST(float, qkv);
    OPEN(float, out);
    uint i = (uint)get_global_id(0), head_width = width / heads;
    uint key = i % tokens, query = i / tokens % tokens;
    uint head = i / (tokens * tokens) % heads, image = i / (tokens * tokens * heads);
    global const float *q = qkv + (image * tokens + query) * 3 * width + head * head_width;
    global const float *k = qkv + (image * tokens + key) * 3 * width + width + head * head_width;
    float sum = 0;
    for (uint c = 0; c < head_width; c++) sum += q[c] * k[c];
    out[i] = sum / sqrt((float)head_width);
}

kernel void attention_mix(TENSOR(const float, scores), TENSOR(const float, qkv), TENSOR(float, out), uint tokens,
                          uint heads, uint width)
{
    OPEN_CONST(float, scores);
    OPEN_CONST(float, qkv);
    OPEN(float, out);
    uint i = (uint)get_global_id(0), column = i % width, query = i / width % tokens, image = i / (width * tokens);
    uint head = column / (width / heads);
    global const float *p = scores + ((image * heads + head) * tokens + query) * tokens;
    global const float *v = qkv + image * tokens * 3 * width + 2 * width + column;
    float sum = 0;
    for (uint t = 0; t < tokens; t++) sum += p[t] * v[t * 3 * width];
    out[i] = sum;
}

kernel void mean_rows(TENSOR(const float, in), TENSOR(float, out), uint rows, uint width)
{
    OPEN_CONST(float, in);
    OPEN(float, out);
    uint i = (uint)get_global_id(0), column = i % width, example = i / width;
    float sum = 0;
    for (uint r = 0; r < rows; r++) sum += in[(example * rows + r) * width + column];
    out[i] = sum / (float)rows;
}
