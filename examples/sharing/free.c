/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "toy.h"

static void set(int *numbers, size_t count) {
    for (size_t i = 0; i < count; i++)
        numbers[i] = 7;
}

int main(void) {
    onuma_runtime *runtime;
    onuma_device *host;
    onuma_pool *pool = toy_pool(&runtime, &host);
    static toy device;
    toy_start(&device, host);
    void *first, *next, *others;

    /* Allocated for a queue, and freed on it while its work is still to come: free never waits. */
    must(onuma_alloc(pool, 1 << 20, 0, device.queue, &first));
    toy_launch(&device, set, first, (1 << 20) / sizeof(int));
    must(onuma_free(first, device.queue));

    /* The queue's next block may be the same memory at once, since its work comes in order. Nobody else's may. */
    must(onuma_alloc(pool, 1 << 20, 0, NULL, &others));
    must(onuma_alloc(pool, 1 << 20, 0, device.queue, &next));
    printf("reused for the queue: %s; for others: %s\n", next == first ? "yes" : "no", others == first ? "yes" : "no");
    const int right = others != first;

    must(onuma_free(next, device.queue));
    must(onuma_free(others, NULL));
    toy_stop(&device);
    must(onuma_pool_destroy(pool));
    onuma_runtime_destroy(runtime);
    return right ? 0 : 1;
}
