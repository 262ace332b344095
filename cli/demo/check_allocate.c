/* SPDX-License-Identifier: Apache-2.0 */
/* allocate: blocks of all sizes, of each kind, aligned, apart from each other, accounted for, and given back. */
#include "demo/demo.h"
#include "units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct block {
    unsigned char *base;
    size_t size, align;
    uint8_t tag;
} block;

typedef struct allocation {
    demo *d;
    onuma_pool *pool;
    onuma_kind kind;
    bool cpu; /* reaches the blocks */
    block blocks[96];
    size_t count, bytes;
} allocation;

enum { TOUCH_MAX = 1 << 20 }; /* bytes at each end of a block that are written and read back */

static bool allocate_one(allocation *a, size_t size, size_t align) {
    runner *r = &a->d->run;
    block *b = &a->blocks[a->count];
    void *pointer;
    if (onuma_alloc(a->pool, size, align, NULL, &pointer) != ONUMA_OK)
        return runner_fail(r, "%zu bytes aligned to %zu, kind %u: %s", size, align, (unsigned)a->kind,
                           onuma_last_error());
    *b = (block){pointer, size, align, (uint8_t)(a->count * 37 + 11)};
    a->count++;
    a->bytes += size;
    size_t expected = align > a->d->info.alignment ? align : a->d->info.alignment;
    if (expected && (uintptr_t)pointer % expected)
        return runner_fail(r, "the block of %zu bytes at %p is not aligned to %zu", size, pointer, expected);
    onuma_block_info info = ONUMA_BLOCK_INFO_INIT;
    if (!runner_check(r, onuma_block_get_info(pointer, &info), "onuma_block_get_info")) return false;
    if (info.base != pointer || info.requested != size || info.size < size || info.pool != a->pool ||
        info.kind != a->kind)
        return runner_fail(r, "onuma_block_get_info tells something else of a block of %zu bytes", size);
    return true;
}

static bool allocate_all(allocation *a) {
    static const size_t sizes[] = {0,    1,    2,    3,     63,    64,    65,      255,     256,    257,
                                   4095, 4096, 4097, 65535, 65536, 65537, 1048575, 1048576, 1048577};
    static const size_t aligns[] = {0, 64, 256, 4096};
    for (size_t i = 0; i < sizeof aligns / sizeof *aligns; i++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
            if (!allocate_one(a, sizes[k], aligns[i])) return false;
    return allocate_one(a, 16 * MIB < a->d->largest ? 16 * MIB + 1 : a->d->largest, 0) &&
           allocate_one(a, a->d->largest, 0);
}

static int by_base(const void *x, const void *y) {
    const block *a = x, *b = y;
    return a->base < b->base ? -1 : a->base > b->base;
}

static bool check_apart(allocation *a) {
    qsort(a->blocks, a->count, sizeof *a->blocks, by_base);
    for (size_t i = 1; i < a->count; i++) {
        const block *before = &a->blocks[i - 1];
        size_t size = before->size ? before->size : 1; /* an empty block is a unique pointer too */
        if ((uintptr_t)before->base + size > (uintptr_t)a->blocks[i].base)
            return runner_fail(&a->d->run, "two blocks overlap at %p", (void *)a->blocks[i].base);
    }
    return true;
}

static size_t touched(const block *b) {
    return b->size < TOUCH_MAX ? b->size : TOUCH_MAX;
}

static bool write_tags(allocation *a) {
    for (size_t i = 0; i < a->count; i++) {
        block *b = &a->blocks[i];
        if (!b->size) continue;
        if (!runner_acquire(&a->d->run, b->base, b->size, ONUMA_ACCESS_WRITE)) return false;
        memset(b->base, b->tag, touched(b));
        memset(b->base + b->size - touched(b), b->tag, touched(b));
        if (!runner_release(&a->d->run, b->base, b->size, ONUMA_ACCESS_WRITE)) return false;
    }
    return true;
}

static bool all_bytes(const unsigned char *at, size_t size, uint8_t tag) {
    for (size_t i = 0; i < size; i++)
        if (at[i] != tag) return false;
    return true;
}

static bool read_tags(allocation *a) {
    for (size_t i = 0; i < a->count; i++) {
        block *b = &a->blocks[i];
        if (!b->size) continue;
        if (!runner_acquire(&a->d->run, b->base, b->size, ONUMA_ACCESS_READ)) return false;
        bool same =
            all_bytes(b->base, touched(b), b->tag) && all_bytes(b->base + b->size - touched(b), touched(b), b->tag);
        if (!runner_release(&a->d->run, b->base, b->size, ONUMA_ACCESS_READ)) return false;
        if (!same) return runner_fail(&a->d->run, "a block of %zu bytes lost what was written to it", b->size);
    }
    return true;
}

static bool check_stats(allocation *a, size_t blocks, size_t bytes) {
    onuma_pool_stats stats = ONUMA_POOL_STATS_INIT;
    if (!runner_check(&a->d->run, onuma_pool_get_stats(a->pool, &stats), "onuma_pool_get_stats")) return false;
    if (stats.in_use_blocks == blocks && stats.requested_bytes == bytes && stats.reserved_bytes >= bytes) return true;
    return runner_fail(&a->d->run, "%zu blocks of %zu bytes live, the statistics say %llu of %llu", blocks, bytes,
                       (unsigned long long)stats.in_use_blocks, (unsigned long long)stats.requested_bytes);
}

static bool free_all(allocation *a) {
    runner *r = &a->d->run;
    void *first = a->blocks[0].base;
    /* From both ends to the middle, so that neighbours are freed apart. */
    for (size_t i = 0; a->count; i++) {
        block *b = &a->blocks[i % 2 ? 0 : a->count - 1];
        unsigned char *base = b->base;
        *b = a->blocks[--a->count];
        if (!runner_check(r, onuma_free(base, NULL), "onuma_free")) return false;
    }
    onuma_result again = onuma_free(first, NULL);
    if (again != ONUMA_ERROR_DOUBLE_FREE && again != ONUMA_ERROR_INVALID_POINTER)
        return runner_fail(r, "a second free of one block gave %s", onuma_result_name(again));
    return true;
}

static bool check_kind(allocation *a) {
    runner *r = &a->d->run;
    onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
    desc.kind = a->kind;
    desc.name = "demo allocate";
    if (!runner_check(r, onuma_pool_create(a->d->device, &desc, &a->pool), "onuma_pool_create")) return false;
    onuma_pool_stats stats = ONUMA_POOL_STATS_INIT;
    bool good = allocate_all(a) && check_apart(a) && check_stats(a, a->count, a->bytes);
    if (good && a->cpu) good = write_tags(a) && read_tags(a);
    good = good && free_all(a) && check_stats(a, 0, 0) &&
           runner_check(r, onuma_pool_trim(a->pool, 0, NULL), "onuma_pool_trim") &&
           runner_check(r, onuma_pool_get_stats(a->pool, &stats), "onuma_pool_get_stats");
    if (good && stats.reserved_bytes)
        good = runner_fail(r, "%llu bytes stay reserved after a trim", (unsigned long long)stats.reserved_bytes);
    if (!good)
        onuma_pool_destroy_forced(a->pool, DEMO_PATIENCE_NS);
    else
        good = runner_check(r, onuma_pool_destroy(a->pool), "onuma_pool_destroy");
    return good;
}

bool demo_check_allocate(demo *d, char *detail, size_t detail_size) {
    static const char *const names[] = {"host", "shared", "device"};
    size_t blocks = 0, length = 0;
    char kinds[64] = "";
    for (onuma_kind kind = ONUMA_KIND_HOST; kind <= ONUMA_KIND_DEVICE; kind++) {
        if (!(d->info.kinds & 1u << kind)) continue;
        allocation a = {.d = d, .kind = kind, .cpu = kind != ONUMA_KIND_DEVICE};
        if (!check_kind(&a)) return false;
        blocks += 4 * 19 + 2;
        length += (size_t)snprintf(kinds + length, sizeof kinds - length, "%s%s", length ? ", " : "", names[kind]);
    }
    snprintf(detail, detail_size,
             "%zu blocks of 0 B to %s, kinds %s: aligned, apart, counted, filled where the CPU reaches, all given back",
             blocks, cli_bytes(d->largest).text, kinds);
    return true;
}
