/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alias: the CPU's pointer and the device's view are the same bytes.
 *
 * One turn: the CPU writes a pattern, a kernel at the view of some byte inside
 * the block compares it with what the CPU wrote and writes another, the CPU
 * compares that. So each direction is seen by the side that reads. Bytes before
 * the view must stay as they were.
 */
#include "demo/demo.h"

#include <stdio.h>

typedef struct alias_turn {
    unsigned char *block;
    size_t size, offset; /* the view begins at the offset */
    size_t stride;       /* of bytes that the kernel touches */
    uint32_t seed;
} alias_turn;

static void fill_pattern(unsigned char *at, size_t size, uint32_t seed) {
    for (size_t i = 0; i < size; i++)
        at[i] = kernel_pattern((uint32_t)i, seed);
}

static bool cpu_writes(demo *d, const alias_turn *t, uint32_t *wrong) {
    runner *r = &d->run;
    if (!runner_acquire(r, t->block, t->size, ONUMA_ACCESS_WRITE)) return false;
    fill_pattern(t->block, t->offset, t->seed + 2);
    fill_pattern(t->block + t->offset, t->size - t->offset, t->seed);
    if (!runner_release(r, t->block, t->size, ONUMA_ACCESS_WRITE)) return false;
    if (!runner_acquire(r, wrong, sizeof *wrong, ONUMA_ACCESS_WRITE)) return false;
    *wrong = 0;
    return runner_release(r, wrong, sizeof *wrong, ONUMA_ACCESS_WRITE);
}

/* The first byte that is not as both patterns have it, or the size. */
static size_t first_difference(const alias_turn *t) {
    size_t size = t->size - t->offset;
    for (size_t i = 0; i < t->offset; i++)
        if (t->block[i] != kernel_pattern((uint32_t)i, t->seed + 2)) return i;
    for (size_t i = 0; i < size; i++) {
        bool changed = t->stride == 1 || i % t->stride == 0 || i == size - 1;
        if (t->block[t->offset + i] != kernel_pattern((uint32_t)i, t->seed + changed)) return t->offset + i;
    }
    return t->size;
}

static bool cpu_reads(demo *d, const alias_turn *t, uint32_t *wrong) {
    runner *r = &d->run;
    if (!runner_acquire(r, wrong, sizeof *wrong, ONUMA_ACCESS_READ)) return false;
    uint32_t missed = *wrong;
    if (!runner_release(r, wrong, sizeof *wrong, ONUMA_ACCESS_READ)) return false;
    if (!runner_acquire(r, t->block, t->size, ONUMA_ACCESS_READ)) return false;
    size_t at = first_difference(t);
    if (!runner_release(r, t->block, t->size, ONUMA_ACCESS_READ)) return false;
    if (missed)
        return runner_fail(r, "%zu bytes, view at byte %zu: the device does not see %u bytes that the CPU wrote",
                           t->size, t->offset, (unsigned)missed);
    if (at < t->size)
        return runner_fail(r, "%zu bytes, view at byte %zu: the CPU does not see byte %zu as the device left it",
                           t->size, t->offset, at);
    return true;
}

static bool take_turn(demo *d, const alias_turn *t, uint32_t *wrong) {
    size_t size = t->size - t->offset;
    return cpu_writes(d, t, wrong) &&
           runner_launch(&d->run, KERNEL_turn, kernel_turn_items(size, t->stride),
                         ARGUMENTS(BLOCK(t->block + t->offset), BLOCK(wrong), NUMBER(size), NUMBER(t->stride),
                                   NUMBER(t->seed), NUMBER(t->seed + 1))) &&
           cpu_reads(d, t, wrong);
}

static bool check_size(demo *d, size_t size, uint32_t *wrong, size_t *turns) {
    const size_t offsets[] = {0, 1, size / 2, 3, size - 1};
    size_t few = size > MIB ? 3 : sizeof offsets / sizeof *offsets;
    void *block;
    if (!demo_alloc(d, size, &block)) return false;
    bool good = true;
    for (size_t i = 0; i < few && good; i++) {
        if (offsets[i] >= size) continue;
        alias_turn t = {block, size, offsets[i], size / d->load->alias_touches + 1, (uint32_t)(*turns)++ * 3 + 1};
        good = take_turn(d, &t, wrong);
    }
    onuma_free(block, d->run.queue);
    return good;
}

bool demo_check_alias(demo *d, char *detail, size_t detail_size) {
    static const size_t sizes[] = {1,    2,    3,    4,     5,     7,     8,       15,       16,          17,
                                   31,   33,   63,   64,    65,    127,   128,     129,      255,         257,
                                   4095, 4096, 4097, 65535, 65536, 65537, MIB + 3, 16 * MIB, 16 * MIB + 5};
    size_t turns = 0, largest = 0;
    void *wrong;
    if (!demo_alloc(d, sizeof(uint32_t), &wrong)) return false;
    bool good = true;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && good; i++) {
        if (sizes[i] > d->largest) continue;
        largest = sizes[i];
        good = check_size(d, sizes[i], wrong, &turns);
    }
    onuma_free(wrong, d->run.queue);
    snprintf(detail, detail_size,
             "%zu turns in blocks of 1 to %zu bytes, from their start and inside: both sides saw %s", turns, largest,
             d->load->alias_touches < largest ? "all bytes that were touched" : "every byte");
    return good;
}
