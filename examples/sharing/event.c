/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "toy.h"

static void set(int *numbers, size_t count) {
    for (size_t i = 0; i < count; i++)
        numbers[i] = 7;
}

static void dawdle(int *numbers, size_t count) {
    (void)numbers, (void)count;
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
}

int main(void) {
    onuma_runtime *runtime;
    onuma_device *host;
    onuma_pool *pool = toy_pool(&runtime, &host);
    static toy device;
    toy_start(&device, host);
    void *block;
    must(onuma_alloc(pool, 4096, 0, NULL, &block));

    must(onuma_use(device.queue, block, ONUMA_ACCESS_WRITE));
    toy_launch(&device, set, block, 1024);
    /* Of a host queue an event is the count at which the work is done; elsewhere a cl_event, a CUevent, ... */
    onuma_native_event done = ONUMA_NATIVE_EVENT_INIT;
    done.api = ONUMA_API_HOST;
    done.handle = atomic_load(&device.timeline.submitted);
    toy_launch(&device, dawdle, NULL, 0); /* more work, on something else */
    must(onuma_submitted(device.queue, &done));

    must(onuma_host_acquire(block, 4096, ONUMA_ACCESS_READ, ONUMA_TIMEOUT_INFINITE));
    const uint64_t passed = atomic_load(&device.timeline.completed);
    printf("the CPU reads %d while the device is still at work: %s\n", *(int *)block, passed < 2 ? "yes" : "no");
    const int right = *(int *)block == 7;
    must(onuma_host_release(block, 4096, ONUMA_ACCESS_READ));

    must(onuma_free(block, NULL));
    toy_stop(&device);
    must(onuma_pool_destroy(pool));
    onuma_runtime_destroy(runtime);
    return right ? 0 : 1;
}
