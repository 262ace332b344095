/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "toy.h"

static _Atomic uint64_t *gate; /* of the first queue */

static void produce(int *numbers, size_t count) {
    for (size_t i = 0; i < count; i++)
        numbers[i] = (int)i;
}

static void consume(int *numbers, size_t count) {
    while (atomic_load(gate) < 1) /* the program's own order: the second queue waits for the first one's work */
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    for (size_t i = 0; i < count; i++)
        numbers[i] *= 2;
}

int main(void) {
    enum { COUNT = 1000 };
    onuma_runtime *runtime;
    onuma_device *host;
    onuma_pool *pool = toy_pool(&runtime, &host);
    static toy one, two;
    toy_start(&one, host);
    toy_start(&two, host);
    gate = &one.timeline.completed;
    void *block;
    must(onuma_alloc(pool, COUNT * sizeof(int), 0, NULL, &block));

    must(onuma_use(one.queue, block, ONUMA_ACCESS_WRITE));
    toy_launch(&one, produce, block, COUNT);
    must(onuma_submitted(one.queue, NULL));

    /*
     * An order that the program makes itself is announced with its event. With a driver that can make queues wait, pass
     * NULL and the library makes it.
     */
    onuma_native_event done = ONUMA_NATIVE_EVENT_INIT;
    done.api = ONUMA_API_HOST;
    done.handle = 1;
    must(onuma_queue_wait(two.queue, one.queue, &done));

    must(onuma_use(two.queue, block, ONUMA_ACCESS_READ_WRITE));
    toy_launch(&two, consume, block, COUNT);
    must(onuma_submitted(two.queue, NULL));

    /* Waits for both. */
    must(onuma_host_acquire(block, COUNT * sizeof(int), ONUMA_ACCESS_READ, ONUMA_TIMEOUT_INFINITE));
    const int last = ((int *)block)[COUNT - 1];
    must(onuma_host_release(block, COUNT * sizeof(int), ONUMA_ACCESS_READ));
    printf("two queues, one after the other: the last number is %d\n", last);

    must(onuma_free(block, NULL));
    toy_stop(&one);
    toy_stop(&two);
    must(onuma_pool_destroy(pool));
    onuma_runtime_destroy(runtime);
    return last == 2 * (COUNT - 1) ? 0 : 1;
}
