/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver that copies without a word: buffers over the program's memory (and coarse SVM, with svm:1) get private
 * memory, and bytes move when the program maps and unmaps. Settings: svm; from, below, misaligned as in layer.h, so
 * that trying one size shows nothing.
 */
#include "shadow.h"

bool shadow_wants_buffer(size_t size, const void *host) {
    return layer_concerns(size, host);
}

bool shadow_wants_svm(cl_svm_mem_flags flags, size_t size) {
    return layer_number("svm", 0) && !(flags & CL_MEM_SVM_FINE_GRAIN_BUFFER) && layer_concerns(size, NULL);
}

bool shadow_wants_usm(size_t size) {
    (void)size;
    return false;
}

size_t shadow_granule(void) {
    return 1;
}

void layer_install(cl_icd_dispatch *mine) {
    shadow_install_buffers(mine);
    shadow_install_svm(mine);
}
