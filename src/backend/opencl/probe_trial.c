/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trial of one way to share, through the very functions that pools use.
 *
 * In each case the CPU writes a block, a kernel changes each byte of it, and the CPU looks at each byte. Every step
 * changes every byte, by another mask each time, so what any side saw one step ago is a wrong value everywhere: a copy
 * that is brought up to date too late, or never, cannot pass. Two rounds, because the first may hit a copy that was
 * made fresh. Beside the block lie two neighbours, blocks of their own as in a pool, which must stay as they were.
 *
 * Sizes: a word, odd ones, a page and one byte more and less, and a long one; at odd addresses too. Then a segment as
 * large as pools take them, looked at in its first, middle and last bytes: drivers treat large memory differently.
 */
#include "backend/opencl/probe.h"
#include "base/checked.h"
#include "os/os.h"

#include <stdlib.h>
#include <string.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

typedef struct sizes {
    size_t segment, large_segment, large, odd;
} sizes;

/* The engine's sizes of segments; a simulator takes seconds for what a device does in a millisecond. */
static const sizes real_sizes = {.segment = 4 * MIB, .large_segment = 64 * MIB, .large = 3 * MIB + 5, .odd = 16 * KIB};
static const sizes simulated_sizes = {
    .segment = 256 * KIB, .large_segment = 4 * MIB, .large = 32 * KIB + 5, .odd = 1 * KIB};

typedef struct trial {
    onuma_backend_device *device;
    onuma__cl_runner *runner;
    const sizes *sizes;
    onuma__cl_way way;
    bool map;
    onuma_segment segment; /* the one under trial */
    cl_kernel kernel;
    size_t granule;          /* blocks begin at its multiples, as addresses */
    unsigned char *expected; /* room for the largest block and two neighbours */
    uint64_t random;
} trial;

/* ------------------------------------------------------------------- blocks */

typedef struct block {
    size_t offset, size; /* size 0: there is none */
    uint64_t view;       /* where the segment's views are handles */
    unsigned char *expected;
} block;

static uint64_t draw(trial *t) {
    uint64_t x = t->random += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static unsigned char draw_mask(trial *t) {
    return (unsigned char)(1 + draw(t) % 255);
}

static unsigned char *place_of(const trial *t, const block *b) {
    return (unsigned char *)t->segment.base + b->offset;
}

static onuma_result open_block(trial *t, block *b) {
    for (size_t i = 0; i < b->size; i += 8) {
        const uint64_t word = draw(t);
        memcpy(b->expected + i, &word, b->size - i < 8 ? b->size - i : 8);
    }
    if (b->size == 0 || t->segment.handle == 0) return ONUMA_OK;
    return onuma__cl_view_create(t->device, &t->segment, b->offset, b->size, &b->view);
}

static void close_block(trial *t, const block *b) {
    if (b->view != 0 && !t->device->stuck) onuma__cl_view_release(t->device, b->view);
}

static onuma_result begin_access(trial *t, const block *b, onuma_access mode) {
    return t->map ? onuma__cl_host_map(t->device, &t->segment, b->view, b->offset, b->size, mode) : ONUMA_OK;
}

static onuma_result end_access(trial *t, const block *b, onuma_access mode) {
    return t->map ? onuma__cl_host_unmap(t->device, &t->segment, b->view, b->offset, b->size, mode) : ONUMA_OK;
}

static onuma_result write_block(trial *t, const block *b) {
    if (b->size == 0) return ONUMA_OK;
    const onuma_result r = begin_access(t, b, ONUMA_ACCESS_WRITE);
    if (r != ONUMA_OK) return r;
    memcpy(place_of(t, b), b->expected, b->size);
    return end_access(t, b, ONUMA_ACCESS_WRITE);
}

/* *at: the first byte that is not as expected, with *got what it is; else the size. */
static onuma_result look(trial *t, const block *b, size_t *at, unsigned char *got) {
    *at = b->size;
    if (b->size == 0) return ONUMA_OK;
    const onuma_result r = begin_access(t, b, ONUMA_ACCESS_READ);
    if (r != ONUMA_OK) return r;
    const unsigned char *bytes = place_of(t, b);
    if (memcmp(bytes, b->expected, b->size) != 0) {
        size_t i = 0;
        while (i < b->size && bytes[i] == b->expected[i])
            i++;
        *at = i < b->size ? i : 0; /* it was wrong when we looked first, and has come late */
        *got = bytes[*at];
    }
    return end_access(t, b, ONUMA_ACCESS_READ);
}

/* -------------------------------------------------------------------- cases */

/* What a wrong byte tells of the driver. */
static onuma_result wrong_byte(const trial *t, const block *b, size_t at, unsigned char got, unsigned char host_mask,
                               unsigned char kernel_mask) {
    const unsigned char want = b->expected[at];
    const char *what = "wrong bytes arrive";
    if (got == (want ^ kernel_mask))
        what = "the CPU does not see what a kernel wrote";
    else if (got == (want ^ host_mask))
        what = "a kernel does not see what the CPU wrote";
    return t->device->host->fail(ONUMA_ERROR_IO, "%s (byte %zu of %zu at offset %zu)", what, at, b->size, b->offset);
}

static onuma_result run_rounds(trial *t, block *middle, size_t skew) {
    onuma__cl_place place = {.way = t->way, .memory = (cl_mem)(uintptr_t)middle->view, .count = middle->size - skew};
    if (t->segment.handle == 0)
        place.pointer = place_of(t, middle) + skew;
    else
        place.from = skew;
    for (int round = 0; round < 2; round++) {
        const unsigned char host_mask = draw_mask(t);
        unsigned char kernel_mask = draw_mask(t);
        if (kernel_mask == host_mask) kernel_mask = host_mask == 255 ? 1 : host_mask + 1;
        for (size_t i = 0; i < middle->size; i++)
            middle->expected[i] ^= host_mask;
        onuma_result r = write_block(t, middle);
        if (r == ONUMA_OK) r = onuma__cl_runner_run(t->runner, t->kernel, &place, kernel_mask);
        for (size_t i = skew; i < middle->size; i++)
            middle->expected[i] ^= kernel_mask;
        size_t at = middle->size;
        unsigned char got = 0;
        if (r == ONUMA_OK) r = look(t, middle, &at, &got);
        if (r == ONUMA_OK && at < middle->size) r = wrong_byte(t, middle, at, got, host_mask, kernel_mask);
        if (r != ONUMA_OK) return r;
    }
    return ONUMA_OK;
}

static onuma_result look_at_neighbour(trial *t, const block *b) {
    size_t at;
    unsigned char got = 0;
    const onuma_result r = look(t, b, &at, &got);
    if (r != ONUMA_OK || at == b->size) return r;
    return t->device->host->fail(ONUMA_ERROR_IO, "memory beside a kernel's changes (byte at offset %zu)",
                                 b->offset + at);
}

/* How far the next granule is from an offset in the segment. A granule is a power of two. */
static size_t to_granule(const trial *t, size_t offset) {
    return (0 - ((uintptr_t)t->segment.base + offset)) & (t->granule - 1);
}

/* A block of skew + count bytes at `offset`, of which a kernel works on the last `count`; neighbours where there is room. */
static onuma_result run_case(trial *t, size_t offset, size_t skew, size_t count) {
    if (offset > t->segment.size || t->segment.size - offset < skew + count)
        return ONUMA_OK; /* a device of small segments */
    block left = {.offset = offset >= t->granule ? offset - t->granule : 0,
                  .size = offset >= t->granule ? t->granule : 0};
    block middle = {.offset = offset, .size = skew + count};
    block right = {.offset = offset + middle.size, .size = t->granule};
    /* Unmapped memory that is bound by pointer has no granule: its neighbour is the next byte. */
    if (t->map || t->segment.handle != 0) right.offset += to_granule(t, right.offset);
    if (right.offset > t->segment.size || t->segment.size - right.offset < right.size) right.size = 0;
    left.expected = t->expected;
    right.expected = left.expected + t->granule;
    middle.expected = right.expected + t->granule;

    onuma_result r = open_block(t, &left);
    if (r == ONUMA_OK) r = open_block(t, &middle);
    if (r == ONUMA_OK) r = open_block(t, &right);
    if (r == ONUMA_OK) r = write_block(t, &left);
    if (r == ONUMA_OK) r = write_block(t, &right);
    if (r == ONUMA_OK) r = run_rounds(t, &middle, skew);
    if (r == ONUMA_OK) r = look_at_neighbour(t, &left);
    if (r == ONUMA_OK) r = look_at_neighbour(t, &right);
    close_block(t, &right);
    close_block(t, &middle);
    close_block(t, &left);
    return r;
}

/* The first granule of the segment, as an offset. */
static size_t first_granule(const trial *t) {
    return to_granule(t, 0);
}

static onuma_result all_sizes(trial *t) {
    const size_t page = t->device->facts.info.page_size;
    const struct {
        size_t skew, count;
    } cases[] = {{0, 4},        {1, 3},        {3, 127},           {0, page},
                 {1, page - 1}, {0, page + 1}, {5, t->sizes->odd}, {0, t->sizes->large}};
    size_t offset = first_granule(t) + t->granule;
    onuma_result r = ONUMA_OK;
    for (size_t i = 0; r == ONUMA_OK && i < sizeof cases / sizeof cases[0]; i++) {
        const size_t size = cases[i].skew + cases[i].count;
        r = run_case(t, offset, cases[i].skew, cases[i].count);
        offset += (size + 3 * t->granule - 1) / t->granule * t->granule; /* a neighbour on each side */
    }
    return r;
}

static onuma_result first_middle_last(trial *t) {
    const size_t page = t->device->facts.info.page_size;
    const size_t first = first_granule(t);
    const size_t middle = first + t->segment.size / 2 / t->granule * t->granule;
    size_t last = first + (t->segment.size - first - page) / t->granule * t->granule;
    onuma_result r = run_case(t, first, 0, page + 1);
    if (r == ONUMA_OK) r = run_case(t, middle, 5, t->sizes->odd);
    if (r == ONUMA_OK) r = run_case(t, last, 0, t->segment.size - last);
    return r;
}

static onuma_result whole(trial *t) {
    return run_case(t, 0, 0, t->segment.size);
}

/* ----------------------------------------------------------------- segments */

static onuma_result in_segment(trial *t, size_t size, onuma_result (*body)(trial *)) {
    t->segment = (onuma_segment){.struct_size = sizeof t->segment};
    onuma_result r = onuma__cl_segment_create(t->device, ONUMA_KIND_SHARED, size, &t->segment);
    if (r != ONUMA_OK) return r;
    t->segment.needs_map = t->map;
    r = onuma__cl_runner_kernel(t->runner, &t->kernel);
    if (r == ONUMA_OK) {
        r = body(t);
        /* Before the segment, which drivers may hold on to for a kernel that it is bound to. */
        if (!t->device->stuck) t->device->cl->clReleaseKernel(t->kernel);
    }
    if (!t->device->stuck) onuma__cl_segment_destroy(t->device, &t->segment);
    return r;
}

static onuma_result nothing(trial *t) {
    (void)t;
    return ONUMA_OK;
}

/* The segment of a pool, or the largest part of one that the driver gives, if it does not give what it states: found
 * by halves, then to an eighth. */
static onuma_result in_large_segment(trial *t, uint64_t *most) {
    const size_t page = t->device->facts.info.page_size;
    const uint64_t stated = t->device->facts.stated_most;
    size_t size = t->sizes->large_segment;
    if (stated != 0 && size > stated) size = onuma__align_down((size_t)stated, page);
    bool refused = false;
    onuma_result r;
    while ((r = in_segment(t, size, first_middle_last)) == ONUMA_ERROR_OUT_OF_MEMORY && size / 2 >= t->sizes->segment) {
        size = onuma__align_down(size / 2, page);
        refused = true;
    }
    if (r != ONUMA_OK || !refused) return r;
    for (size_t step = size / 2; step >= size / 8 && step >= page; step /= 2) {
        const size_t more = onuma__align_down(size + step, page);
        if (in_segment(t, more, nothing) == ONUMA_OK) size = more;
    }
    *most = size;
    return ONUMA_OK;
}

onuma_result onuma__cl_try(onuma_backend_device *device, onuma__cl_runner *runner, onuma__cl_way way,
                           onuma__cl_sight sight, onuma__cl_finding *out) {
    trial t = {.device = device,
               .runner = runner,
               .sizes = device->facts.info.simulator ? &simulated_sizes : &real_sizes,
               .way = way,
               .map = sight == ONUMA__CL_SIGHT_MAPPED,
               .granule = device->facts.info.alignment,
               .random = onuma__os_now() ^ (uintptr_t)device};
    t.expected = malloc(t.sizes->large + 64 * KIB + device->facts.info.page_size + 3 * t.granule);
    if (t.expected == NULL) return device->host->fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for the sharing probe");
    const onuma__cl_way before = device->facts.verdict.way;
    device->facts.verdict.way = way;
    onuma__cl_finding finding = {.holds = false};
    onuma_result r = ONUMA_OK;
    if (way == ONUMA__CL_IMPORT) r = in_segment(&t, device->facts.info.page_size, whole);
    if (r == ONUMA_OK) r = in_segment(&t, t.sizes->segment, all_sizes);
    if (r == ONUMA_OK) r = in_large_segment(&t, &finding.max_segment);
    device->facts.verdict.way = before;
    free(t.expected);
    if (r == ONUMA_ERROR_DEVICE_LOST || r == ONUMA_ERROR_TIMEOUT) return r;
    finding.holds = r == ONUMA_OK;
    finding.wrong = r == ONUMA_ERROR_IO;
    finding.refused = r == ONUMA_ERROR_OUT_OF_MEMORY;
    if (!finding.holds) {
        strncpy(finding.why, onuma_last_error(), sizeof finding.why - 1);
        device->host->log(device->host, ONUMA_LOG_DEBUG, "\"%s\": sharing by %s fails: %s", device->facts.info.name,
                          onuma__cl_way_names[way], onuma_last_error());
    }
    *out = finding;
    return ONUMA_OK;
}
