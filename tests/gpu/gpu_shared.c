/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alias and shared_access over sizes from 4 B to 4 GiB, on one, two and eight queues.
 *
 *     test_gpu_shared DEVICE [LARGEST]
 *
 * alias: the CPU writes a pattern, a kernel compares it and writes another, the CPU compares that; the same bytes, by the
 * same pointer. shared_access: CPU and queues add 1 to the same numbers in turn, and now and then all queues one after the
 * other. Of large blocks every so-many-th byte or number is looked at, spread over all of them.
 */
#include "device.h"

enum { QUEUES_MOST = 8, ROUNDS = 12 };
#define PIECE ((size_t)2 << 30)     /* kernels count in 32 bits */
#define LOOKED_AT ((size_t)1 << 22) /* bytes or numbers of a large block */

typedef struct context {
    onuma_device *device;
    onuma_pool *pool;
    runner queues[QUEUES_MOST];
    uint32_t *wrong; /* a block of one number, which kernels count in */
} context;

static size_t stride_of(size_t count) {
    return count <= 4 * LOOKED_AT ? 1 : (count / LOOKED_AT) | 1;
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/* --------------------------------------------------------------------- alias */

/* The places that `turn` visits: every stride-th and the last. */
static size_t place(size_t item, size_t stride, size_t size) {
    return smaller(item * stride, size - 1);
}

static void cpu_writes(context *c, unsigned char *at, size_t size, size_t stride, uint32_t seed) {
    runner *r = &c->queues[0];
    RUN(r, runner_acquire(r, at, size, ONUMA_ACCESS_WRITE));
    for (size_t item = 0; item < kernel_turn_items(size, stride); item++)
        at[place(item, stride, size)] = kernel_pattern((uint32_t)place(item, stride, size), seed);
    RUN(r, runner_release(r, at, size, ONUMA_ACCESS_WRITE));
}

static void cpu_compares(context *c, unsigned char *at, size_t size, size_t stride, uint32_t seed) {
    runner *r = &c->queues[0];
    RUN(r, runner_acquire(r, at, size, ONUMA_ACCESS_READ));
    for (size_t item = 0; item < kernel_turn_items(size, stride); item++) {
        const size_t i = place(item, stride, size);
        if (at[i] != kernel_pattern((uint32_t)i, seed)) DIE("alias: of %zu bytes the CPU sees byte %zu wrong", size, i);
    }
    RUN(r, runner_release(r, at, size, ONUMA_ACCESS_READ));
}

static void device_turns(context *c, unsigned char *at, size_t size, size_t stride, uint32_t seed) {
    runner *r = &c->queues[0];
    RUN(r, runner_acquire(r, c->wrong, sizeof *c->wrong, ONUMA_ACCESS_WRITE));
    *c->wrong = 0;
    RUN(r, runner_release(r, c->wrong, sizeof *c->wrong, ONUMA_ACCESS_WRITE));
    RUN(r, runner_launch(
               r, KERNEL_turn, kernel_turn_items(size, stride),
               ARGUMENTS(BLOCK(at), BLOCK(c->wrong), NUMBER(size), NUMBER(stride), NUMBER(seed), NUMBER(seed + 1))));
    RUN(r, runner_acquire(r, c->wrong, sizeof *c->wrong, ONUMA_ACCESS_READ));
    const uint32_t wrong = *c->wrong;
    RUN(r, runner_release(r, c->wrong, sizeof *c->wrong, ONUMA_ACCESS_READ));
    if (wrong != 0) DIE("alias: of %zu bytes the device sees %u wrong", size, (unsigned)wrong);
}

static void alias(context *c, size_t size) {
    unsigned char *block = block_of(c->pool, size, NULL);
    onuma_view view = ONUMA_VIEW_INIT;
    OK(onuma_view_get(block, c->device, c->queues[0].ops->api, &view));
    for (size_t from = 0; from < size; from += PIECE) {
        const size_t piece = smaller(size - from, PIECE), stride = stride_of(piece);
        for (uint32_t seed = 1; seed < 5; seed += 2) {
            cpu_writes(c, block + from, piece, stride, seed);
            device_turns(c, block + from, piece, stride, seed);
            cpu_compares(c, block + from, piece, stride, seed + 1);
        }
    }
    OK(onuma_free(block, NULL));
}

/* ------------------------------------------------------------- shared_access */

static void cpu_adds(context *c, uint32_t *numbers, size_t count, uint32_t expected) {
    runner *r = &c->queues[0];
    const size_t stride = stride_of(count);
    RUN(r, runner_acquire(r, numbers, count * sizeof *numbers, ONUMA_ACCESS_READ_WRITE));
    for (size_t item = 0; item < kernel_turn_items(count, stride); item++) {
        const size_t i = place(item, stride, count);
        /* The places that the CPU adds to are ahead of the others by the rounds. */
        if (numbers[i] != expected)
            DIE("shared_access: number %zu of %zu is %u, not %u", i, count, numbers[i], expected);
        numbers[i]++;
    }
    RUN(r, runner_release(r, numbers, count * sizeof *numbers, ONUMA_ACCESS_READ_WRITE));
}

static void clear(context *c, uint32_t *numbers, size_t count) {
    runner *r = &c->queues[0];
    RUN(r, runner_acquire(r, numbers, count * sizeof *numbers, ONUMA_ACCESS_WRITE));
    memset(numbers, 0, count * sizeof *numbers);
    RUN(r, runner_release(r, numbers, count * sizeof *numbers, ONUMA_ACCESS_WRITE));
}

static void shared_access(context *c, size_t size, size_t queues) {
    const size_t count = size / sizeof(uint32_t), rounds = size > 64 * MIB ? 3 : ROUNDS;
    uint32_t *numbers = block_of(c->pool, size, NULL), expected = 0;
    clear(c, numbers, count);
    for (size_t round = 0; round <= rounds; round++) {
        cpu_adds(c, numbers, count, expected++);
        const bool all = round % 3 == 2;
        for (size_t q = 0; q < (all ? queues : 1); q++) {
            runner *r = &c->queues[all ? q : round % queues];
            if (q != 0) RUN(r, runner_wait_for(r, &c->queues[q - 1]));
            RUN(r, runner_launch(r, KERNEL_increment, count, ARGUMENTS(BLOCK(numbers))));
            expected++;
        }
    }
    cpu_adds(c, numbers, count, expected);
    for (size_t q = 0; q < queues; q++)
        RUN(&c->queues[q], runner_finish(&c->queues[q]));
    OK(onuma_free(numbers, NULL));
}

/* ---------------------------------------------------------------------- main */

int main(int argc, char **argv) {
    const char *id = argc > 1 ? argv[1] : "host";
    const size_t largest = argc > 2 ? (size_t)strtoull(argv[2], NULL, 0) : 4 * GIB;
    onuma_runtime *rt;
    context c = {.device = find_device(&rt, id)};
    c.pool = pool_of(c.device, ONUMA_KIND_SHARED);
    RUN(&c.queues[0], runner_open(&c.queues[0], c.device, demo_fault_find(NULL)));
    for (size_t q = 1; q < QUEUES_MOST; q++)
        RUN(&c.queues[q], runner_open_beside(&c.queues[q], &c.queues[0], false));
    c.wrong = block_of(c.pool, sizeof *c.wrong, NULL);
    size_t sizes = 0;
    for (size_t size = 4; size <= largest; size *= 4) {
        alias(&c, size);
        if (size > 4) alias(&c, size - 1);
        for (size_t queues = 1; queues <= QUEUES_MOST; queues = queues == 1 ? 2 : queues * 4)
            shared_access(&c, size, queues);
        sizes++;
    }
    OK(onuma_free(c.wrong, NULL));
    for (size_t q = QUEUES_MOST; q-- > 0;)
        runner_close(&c.queues[q]);
    end_pool(c.pool);
    onuma_runtime_destroy(rt);
    printf("alias and shared_access on %s: %zu sizes of 4 to %zu bytes, on 1, 2 and 8 queues\n", id, sizes, largest);
    return 0;
}
