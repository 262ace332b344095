/* SPDX-License-Identifier: Apache-2.0 */
/* operate: kernels compute right on blocks, of device memory too, and in memory that is freed and reused in the queue's order. */
#include "demo/demo.h"

#include <stdio.h>

static bool add_vectors(demo *d, size_t n) {
    runner *r = &d->run;
    float *v[3] = {NULL};
    size_t bytes = n * sizeof(float);
    bool good = demo_alloc(d, bytes, (void **)&v[0]) && demo_alloc(d, bytes, (void **)&v[1]) &&
                demo_alloc(d, bytes, (void **)&v[2]);
    for (int k = 0; k < 3 && good; k++) {
        good = runner_acquire(r, v[k], bytes, ONUMA_ACCESS_WRITE);
        for (size_t i = 0; i < n && good; i++)
            v[k][i] = k == 2 ? -1.0f : (float)(i * (size_t)(k + 2) % 1021) * 0.25f;
        good = good && runner_release(r, v[k], bytes, ONUMA_ACCESS_WRITE);
    }
    good = good && runner_launch(r, KERNEL_vector_add, n, ARGUMENTS(BLOCK(v[0]), BLOCK(v[1]), BLOCK(v[2])));
    for (int k = 0; k < 3 && good; k++)
        good = runner_acquire(r, v[k], bytes, ONUMA_ACCESS_READ);
    for (size_t i = 0; i < n && good; i++)
        if (v[2][i] != v[0][i] + v[1][i])
            good = runner_fail(r, "vector_add of %zu: item %zu is %g, not %g", n, i, (double)v[2][i],
                               (double)(v[0][i] + v[1][i]));
    for (int k = 0; k < 3 && good; k++)
        good = runner_release(r, v[k], bytes, ONUMA_ACCESS_READ);
    for (int k = 0; k < 3; k++)
        onuma_free(v[k], r->queue);
    return good;
}

static bool holds_fill(demo *d, uint32_t *from, size_t n, uint32_t seed, const char *what) {
    runner *r = &d->run;
    if (!runner_acquire(r, from, n * sizeof *from, ONUMA_ACCESS_READ)) return false;
    bool good = true;
    for (size_t i = 0; i < n && good; i++)
        if (from[i] != (uint32_t)i * 2654435769u + seed) good = runner_fail(r, "%s: word %zu is wrong", what, i);
    return runner_release(r, from, n * sizeof *from, ONUMA_ACCESS_READ) && good;
}

/* Temporary blocks of `pool`, each freed right after its last kernel was submitted, so that the next may get its memory. */
static bool chain(demo *d, onuma_pool *pool, size_t n, const char *what) {
    enum { LINKS = 8 };
    runner *r = &d->run;
    uint32_t *out[LINKS] = {NULL};
    void *temporary;
    bool good = true;
    for (uint32_t i = 0; i < LINKS && good; i++) {
        good = demo_alloc(d, n * sizeof **out, (void **)&out[i]) &&
               runner_check(r, onuma_alloc(pool, n * sizeof **out, 0, r->queue, &temporary), "onuma_alloc");
        if (!good) break;
        good = runner_launch(r, KERNEL_fill, n, ARGUMENTS(BLOCK(temporary), NUMBER(i + 1))) &&
               runner_launch(r, KERNEL_copy, n, ARGUMENTS(BLOCK(temporary), BLOCK(out[i])));
        good = runner_check(r, onuma_free(temporary, r->queue), "onuma_free") && good;
    }
    for (uint32_t i = 0; i < LINKS && good; i++)
        good = holds_fill(d, out[i], n, i + 1, what);
    for (int i = 0; i < LINKS; i++)
        onuma_free(out[i], r->queue);
    return good;
}

static bool chain_in_device_memory(demo *d, size_t n) {
    onuma_pool *pool;
    onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
    desc.kind = ONUMA_KIND_DEVICE;
    desc.name = "demo operate";
    if (!runner_check(&d->run, onuma_pool_create(d->device, &desc, &pool), "onuma_pool_create")) return false;
    bool good = chain(d, pool, n, "device memory") && demo_settle(d, pool);
    if (!good) onuma_pool_destroy_forced(pool, DEMO_PATIENCE_NS);
    return good && runner_check(&d->run, onuma_pool_destroy(pool), "onuma_pool_destroy");
}

bool demo_check_operate(demo *d, char *detail, size_t detail_size) {
    size_t most = d->load->vector, words = d->load->words;
    for (size_t n = 1; n <= most; n = n * 8 - 1 > most && n < most ? most : n * 8 - 1)
        if (!add_vectors(d, n)) return false;
    bool device = d->info.kinds & 1u << ONUMA_KIND_DEVICE;
    if (!chain(d, d->pool, words, "reused memory") || (device && !chain_in_device_memory(d, words))) return false;
    snprintf(detail, detail_size,
             "vectors of 1 to %zu numbers added right; memory freed and reused in the queue's order%s", most,
             device ? ", in device memory too" : "");
    return true;
}
