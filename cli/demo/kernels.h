/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every kernel of the demo, once: X(name, signature, group, text).
 *
 * The list gives the enum, the table of names and the plain C functions of
 * reference.c; kernels.cl holds the same names in OpenCL C. The signature has a
 * letter for each argument: r, w, m a tensor that the kernel reads, writes or
 * modifies; u an unsigned number. `group` is the work-group size that a kernel
 * with barriers is written for, 0 if it has none.
 *
 * A kernel runs over a number of items and knows no other bound, so that a
 * wrong size shows as a wrong result or, in a simulator, as a bad access.
 */
#ifndef DEMO_KERNELS_H
#define DEMO_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#define KERNEL_GROUP 64 /* work items in a group, small enough for every device */
#define KERNEL_TILE 8   /* a group of matmul computes a square of that side */

#define DEMO_KERNELS(X)                                                                                                \
    X(vector_add, "rrw", 0, "out = a + b")                                                                             \
    X(vector_add_wrong, "rrw", 0, "out = a - b: what the fault `kernel` runs instead")                                 \
    X(increment, "m", 0, "each number + 1")                                                                            \
    X(fill, "wu", 0, "numbers of the pattern of a seed")                                                               \
    X(copy, "rw", 0, "out = in, in words of four bytes")                                                               \
    X(turn, "mmuuuu", 0, "count the bytes that differ from one pattern, and write another")                            \
    X(matmul, "rrwu", KERNEL_GROUP, "square matrices, a tile in local memory at a time")                               \
    X(reduce_sum, "rw", KERNEL_GROUP, "the sum of each group's items")                                                 \
    X(conv2d, "rrrwuuuu", 0, "3 by 3, padded with zeros: channels, filters, height, width")                            \
    X(relu, "rw", 0, "the greater of the number and 0")                                                                \
    X(maxpool, "rwuu", 0, "the greatest of each 2 by 2: height and width of the input")                                \
    X(dense, "rrrwuu", 0, "rows times weights, and a bias: inputs, outputs")                                           \
    X(softmax, "rwu", 0, "of each row")                                                                                \
    X(layer_norm, "rrrwu", 0, "of each row, scaled and shifted")                                                       \
    X(add_rows, "rrwu", 0, "out = in + rows, which repeat after a period")                                             \
    X(attention_scores, "rwuuu", 0, "queries times keys: tokens, heads, width")                                        \
    X(attention_mix, "rrwuuu", 0, "values weighted by the scores: tokens, heads, width")                               \
    X(mean_rows, "rwuu", 0, "the mean over an example's rows: rows, width")

typedef enum kernel_id {
#define KERNEL_X(name, signature, group, text) KERNEL_##name,
    DEMO_KERNELS(KERNEL_X)
#undef KERNEL_X
        KERNEL_COUNT
} kernel_id;

#define KERNEL_ARGUMENTS_MAX 8 /* longest signature */

typedef union kernel_value {
    void *data;
    uint32_t number;
} kernel_value;

/* The kernel in plain C, for all items, one after the other. */
typedef void kernel_function(const kernel_value *v, size_t items);

typedef struct kernel_entry {
    const char *name, *signature;
    size_t group;
    kernel_function *reference;
} kernel_entry;

const kernel_entry *kernel_get(kernel_id id);

/* Byte i of the pattern of a seed, as kernels.cl has it. */
uint8_t kernel_pattern(uint32_t i, uint32_t seed);

/* Places that `turn` touches in n bytes, n at least 1: every stride-th byte, and the last one. */
size_t kernel_turn_items(size_t n, size_t stride);

#endif
