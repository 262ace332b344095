/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "toy.h"

int main(void) {
    onuma_runtime *runtime;
    onuma_device *host;
    onuma_pool *pool = toy_pool(&runtime, &host);
    static toy device;
    toy_start(&device, host);
    void *block;
    must(onuma_alloc(pool, 4096, 0, NULL, &block));

    /* Two who read are in nobody's way. */
    must(onuma_host_acquire(block, 4096, ONUMA_ACCESS_READ, ONUMA_TIMEOUT_INFINITE));
    must(onuma_use(device.queue, block, ONUMA_ACCESS_READ));
    must(onuma_submitted(device.queue, NULL));

    /* A writer is: the library refuses rather than waits, for this thread itself may be the one to wait for. */
    onuma_result refused = onuma_use(device.queue, block, ONUMA_ACCESS_WRITE);
    printf("while the CPU reads, the device may not write: %s\n", onuma_result_name(refused));

    must(onuma_host_release(block, 4096, ONUMA_ACCESS_READ));
    must(onuma_use(device.queue, block, ONUMA_ACCESS_WRITE));
    must(onuma_submitted(device.queue, NULL));

    must(onuma_free(block, device.queue));
    toy_stop(&device);
    must(onuma_pool_destroy(pool));
    onuma_runtime_destroy(runtime);
    return refused == ONUMA_ERROR_CONFLICT ? 0 : 1;
}
