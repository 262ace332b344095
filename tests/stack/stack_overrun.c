/* SPDX-License-Identifier: Apache-2.0 */
/* A deliberate fault: a kernel writes one word beyond the last block of a segment, which Oclgrind must report. */
#include "backend_fixture.h"

static void kernel_writes_too_far(void **state) {
    fixture *f = *state;
    onuma_segment segment = segment_of(f, ONUMA_KIND_SHARED, 8192);
    block last = block_at(f, &segment, 4096, segment.size - 4096);
    kernel_run(&f->kernels, KERNEL_FILL, &last.view, last.size / 4 + 1, 1);
    block_drop(f, &last);
    f->ops->segment_destroy(f->backend, &segment);
}

int main(void) {
    const struct CMUnitTest tests[] = {OPENED(kernel_writes_too_far)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
