/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that are part of the program: the build turns each into an array
 * (cmake/embed.cmake), so that the command works wherever it is copied.
 */
#ifndef DEMO_FILES_H
#define DEMO_FILES_H

#include <stddef.h>

extern const unsigned char demo_file_kernels[], demo_file_kernels_ptx[], demo_file_cnn[], demo_file_transformer[],
    demo_file_test[];
extern const size_t demo_file_kernels_size, demo_file_kernels_ptx_size, demo_file_cnn_size, demo_file_transformer_size,
    demo_file_test_size;

#endif
