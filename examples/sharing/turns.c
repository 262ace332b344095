/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "toy.h"

static void add_one(int *numbers, size_t count) {
    for (size_t i = 0; i < count; i++)
        numbers[i] += 1;
}

int main(void) {
    enum { COUNT = 1000 };
    onuma_runtime *runtime;
    onuma_device *host;
    onuma_pool *pool = toy_pool(&runtime, &host);
    static toy device;
    toy_start(&device, host);
    void *block;
    must(onuma_alloc_zeroed(pool, COUNT * sizeof(int), 0, NULL, &block));
    int *numbers = block;

    for (int round = 0; round < 10; round++) {
        /* The device's turn: announce, hand in, say that it is handed in. */
        must(onuma_use(device.queue, block, ONUMA_ACCESS_READ_WRITE));
        toy_launch(&device, add_one, numbers, COUNT);
        must(onuma_submitted(device.queue, NULL));

        /* The CPU's: waits for the device, and only if it has to. */
        must(onuma_host_acquire(block, COUNT * sizeof(int), ONUMA_ACCESS_READ_WRITE, ONUMA_TIMEOUT_INFINITE));
        add_one(numbers, COUNT);
        must(onuma_host_release(block, COUNT * sizeof(int), ONUMA_ACCESS_READ_WRITE));
    }
    printf("20 turns: every number is %d\n", numbers[0]);
    const int right = numbers[0] == 20 && numbers[COUNT - 1] == 20;

    must(onuma_free(block, device.queue));
    toy_stop(&device);
    must(onuma_pool_destroy(pool));
    onuma_runtime_destroy(runtime);
    return right ? 0 : 1;
}
