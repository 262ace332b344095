/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device that is not coherent with the CPU: what it writes is seen by the CPU after a map, what the CPU writes by
 * the device after an unmap. So behave buffers over the program's memory and coarse SVM, as OpenCL allows. With
 * fine:1 SVM that is said to be fine-grained does so too, with usm:1 Intel's USM, which is a lie by the driver.
 * granule:64 moves whole cache lines. Others: from, below, misaligned as in layer.h.
 */
#include "shadow.h"

bool shadow_wants_buffer(size_t size, const void *host) {
    return layer_concerns(size, host);
}

bool shadow_wants_svm(cl_svm_mem_flags flags, size_t size) {
    return (!(flags & CL_MEM_SVM_FINE_GRAIN_BUFFER) || layer_number("fine", 0)) && layer_concerns(size, NULL);
}

bool shadow_wants_usm(size_t size) {
    return layer_number("usm", 0) && layer_concerns(size, NULL);
}

size_t shadow_granule(void) {
    return layer_number("granule", 1);
}

void layer_install(cl_icd_dispatch *mine) {
    shadow_install_buffers(mine);
    shadow_install_svm(mine);
    shadow_install_usm(mine);
}
