/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of transfers: how long it takes until the device can use bytes that
 * the CPU has just written, and until the CPU can use what a kernel left.
 *
 * The default way has the bytes twice: the program's own memory and a buffer of
 * the driver, with a blocking write or read between them. Ours has them once:
 * handing over is onuma_host_release and a view, handing back is
 * onuma_host_acquire. To be fair to the default way, its memory is touched and
 * its buffer made and used beforehand, and both ways are measured with the
 * queue idle, so that no kernel's time is in the figures.
 *
 * In every repeat some bytes change on each side and the other side checks
 * them, so a driver cannot win by leaving the hand-over for later.
 */
#include "clock.h"
#include "demo/demo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PROBES = 64,      /* bytes that change sides in each repeat */
    REPEATS_MIN = 5,  /* after one that is not counted */
    REPEATS_MAX = 25, /* as long as they are quick */
};
#define QUICK_NS UINT64_C(400000000)

typedef struct way {
    demo *d;
    size_t bytes, stride;
    unsigned char *memory; /* where the CPU has the bytes */
    runner_buffer buffer;  /* the default way's */
    bool ours;
    uint32_t *wrong; /* a block: bytes that the device did not find as they should be */
    uint64_t to_device[REPEATS_MAX], to_host[REPEATS_MAX];
    size_t repeats;
} way;

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

double demo_median_us(uint64_t *ns, size_t n) {
    qsort(ns, n, sizeof *ns, by_value);
    return (double)(n % 2 ? ns[n / 2] : (ns[n / 2 - 1] + ns[n / 2]) / 2) / 1e3;
}

static size_t probe_at(const way *w, size_t i) {
    size_t at = i * w->stride;
    return at < w->bytes ? at : w->bytes - 1;
}

static void write_probes(way *w, uint32_t seed) {
    for (size_t i = 0; i < kernel_turn_items(w->bytes, w->stride); i++)
        w->memory[probe_at(w, i)] = kernel_pattern((uint32_t)probe_at(w, i), seed);
}

static bool read_probes(way *w, uint32_t seed) {
    for (size_t i = 0; i < kernel_turn_items(w->bytes, w->stride); i++)
        if (w->memory[probe_at(w, i)] != kernel_pattern((uint32_t)probe_at(w, i), seed))
            return runner_fail(&w->d->run, "%zu bytes, %s way: byte %zu did not reach the CPU", w->bytes,
                               w->ours ? "our" : "the default", probe_at(w, i));
    return true;
}

/* What a program does between the CPU's last write and its kernel. */
static bool hand_to_device(way *w) {
    onuma_view view = ONUMA_VIEW_INIT;
    runner *r = &w->d->run;
    if (!w->ours) return r->ops->buffer_write(r, &w->buffer, w->memory);
    return runner_release(r, w->memory, w->bytes, ONUMA_ACCESS_READ_WRITE) &&
           runner_check(r, onuma_view_get(w->memory, w->d->device, r->ops->api, &view), "onuma_view_get");
}

/* What it does between the end of the kernel and the CPU's first read. */
static bool hand_to_host(way *w) {
    runner *r = &w->d->run;
    if (!w->ours) return r->ops->buffer_read(r, &w->buffer, w->memory);
    return runner_acquire(r, w->memory, w->bytes, ONUMA_ACCESS_READ_WRITE);
}

static bool run_probe_kernel(way *w, uint32_t seed) {
    runner *r = &w->d->run;
    return runner_launch(r, KERNEL_turn, kernel_turn_items(w->bytes, w->stride),
                         ARGUMENTS(w->ours ? BLOCK(w->memory) : BUFFER(&w->buffer), BLOCK(w->wrong), NUMBER(w->bytes),
                                   NUMBER(w->stride), NUMBER(seed), NUMBER(seed + 1))) &&
           runner_finish(r);
}

/* Ours holds the block before and after. */
static bool repeat_once(way *w, uint32_t seed, uint64_t *to_device, uint64_t *to_host) {
    write_probes(w, seed);
    uint64_t t0 = cli_now();
    if (!hand_to_device(w)) return false;
    uint64_t t1 = cli_now();
    if (!run_probe_kernel(w, seed)) return false;
    uint64_t t2 = cli_now();
    if (!hand_to_host(w)) return false;
    uint64_t t3 = cli_now();
    *to_device = t1 - t0;
    *to_host = t3 - t2;
    return read_probes(w, seed + 1);
}

static bool measure(way *w) {
    runner *r = &w->d->run;
    memset(w->memory, 0, w->bytes);
    uint64_t start = cli_now(), ignored;
    if (!repeat_once(w, 1, &ignored, &ignored)) return false;
    for (; w->repeats < REPEATS_MAX; w->repeats++) {
        if (w->repeats >= REPEATS_MIN && cli_now() - start > QUICK_NS) break;
        if (!repeat_once(w, (uint32_t)w->repeats * 2 + 3, &w->to_device[w->repeats], &w->to_host[w->repeats]))
            return false;
    }
    if (!runner_acquire(r, w->wrong, sizeof *w->wrong, ONUMA_ACCESS_READ)) return false;
    uint32_t wrong = *w->wrong;
    if (!runner_release(r, w->wrong, sizeof *w->wrong, ONUMA_ACCESS_READ)) return false;
    if (!wrong) return true;
    return runner_fail(r, "%zu bytes, %s way: %u bytes did not reach the device", w->bytes,
                       w->ours ? "our" : "the default", (unsigned)wrong);
}

static bool measure_default(way *w) {
    runner *r = &w->d->run;
    w->buffer = (runner_buffer){.size = w->bytes};
    w->memory = malloc(w->bytes);
    if (!w->memory) return runner_fail(r, "no memory for %zu bytes", w->bytes);
    bool good = r->ops->buffer_create(r, &w->buffer);
    if (good) {
        good = measure(w);
        r->ops->finish(r);
        r->ops->buffer_destroy(r, &w->buffer);
    }
    free(w->memory);
    return good;
}

static bool measure_ours(way *w) {
    runner *r = &w->d->run;
    void *block;
    if (!demo_alloc(w->d, w->bytes, &block)) return false;
    w->memory = block;
    bool good = runner_acquire(r, block, w->bytes, ONUMA_ACCESS_READ_WRITE) && measure(w) &&
                runner_release(r, block, w->bytes, ONUMA_ACCESS_READ_WRITE);
    onuma_free(block, r->queue);
    return good && runner_check(r, onuma_pool_trim(w->d->pool, 0, NULL), "onuma_pool_trim");
}

static bool measure_size(demo *d, uint32_t *wrong, demo_transfer *row) {
    way w = {.d = d, .bytes = row->bytes, .stride = row->bytes / PROBES, .wrong = wrong};
    way ours = w;
    ours.ours = true;
    if (!measure_default(&w) || !measure_ours(&ours)) return false;
    row->to_device_default = demo_median_us(w.to_device, w.repeats);
    row->to_host_default = demo_median_us(w.to_host, w.repeats);
    row->to_device_ours = demo_median_us(ours.to_device, ours.repeats);
    row->to_host_ours = demo_median_us(ours.to_host, ours.repeats);
    row->ok = true;
    return true;
}

bool demo_measure_transfer(demo *d) {
    runner *r = &d->run;
    void *wrong;
    if (!demo_alloc(d, sizeof(uint32_t), &wrong)) return false;
    bool good = runner_acquire(r, wrong, sizeof(uint32_t), ONUMA_ACCESS_WRITE);
    if (good) memset(wrong, 0, sizeof(uint32_t));
    good = good && runner_release(r, wrong, sizeof(uint32_t), ONUMA_ACCESS_WRITE);
    for (size_t bytes = 4 * KIB; bytes <= d->largest && good; bytes *= 4) {
        demo_transfer *row = &d->transfers[d->transfer_count++];
        row->bytes = bytes;
        good = measure_size(d, wrong, row);
    }
    onuma_free(wrong, r->queue);
    return good;
}
