/* SPDX-License-Identifier: Apache-2.0 */
/* Engines with one fault each: the model must find every one, or it proves nothing about the sound one. */
#include "model.h"

/* The calls that may be broken; the others are the engine's own. */
#define ENGINE(what, alloc_, free_, resize_, trim_, stats_)                                                            \
    {                                                                                                                  \
        .name = (what), .alloc = (alloc_), .grow = onuma__engine_grow, .free = (free_),                                \
        .release = onuma__engine_release, .find = onuma__engine_find, .resize = (resize_), .trim = (trim_),            \
        .get_stats = (stats_)                                                                                          \
    }
#define ALLOC onuma__engine_alloc
#define FREE onuma__engine_free
#define RESIZE onuma__engine_resize
#define TRIM onuma__engine_trim
#define STATS onuma__engine_get_stats

const engine_calls sound_engine = ENGINE("sound", ALLOC, FREE, RESIZE, TRIM, STATS);

/* What the faults remember; the same sequence always meets the same faults. */
static unsigned calls;
static unsigned char *last;

void broken_reset(void) {
    calls = 0;
    last = NULL;
}

/* True once in a while. */
static bool now_and_then(void) {
    return calls++ % 20 == 19;
}

static onuma_result alloc_twice(onuma__engine *e, size_t size, size_t align, onuma__tag tag, void **out) {
    onuma__block found;
    if (last != NULL && size == 0 && onuma__engine_find(last, &found) == ONUMA_OK && found.tag == tag) {
        *out = last;
        return ONUMA_OK;
    }
    const onuma_result r = onuma__engine_alloc(e, size, align, tag, out);
    if (r == ONUMA_OK && size == 0) last = *out;
    return r;
}

static onuma_result free_anything(void *ptr, onuma__tag tag, onuma__engine **engine) {
    const onuma_result r = onuma__engine_free(ptr, tag, engine);
    return r == ONUMA__HELD ? r : ONUMA_OK;
}

static onuma_result free_interior(void *ptr, onuma__tag tag, onuma__engine **engine) {
    onuma__block found;
    if (onuma__engine_find(ptr, &found) == ONUMA_OK) ptr = found.base;
    return onuma__engine_free(ptr, tag, engine);
}

static onuma_result free_nothing(void *ptr, onuma__tag tag, onuma__engine **engine) {
    onuma__block found;
    if (tag == 0 && now_and_then() && onuma__engine_find(ptr, &found) == ONUMA_OK && !found.special) {
        *engine = found.engine;
        return ONUMA_OK;
    }
    return onuma__engine_free(ptr, tag, engine);
}

static onuma_result free_early(void *ptr, onuma__tag tag, onuma__engine **engine) {
    const onuma_result r = onuma__engine_free(ptr, tag, engine);
    uint64_t epoch;
    for (onuma__tag t = 1; r == ONUMA_OK && t < MODEL_TAGS; t++)
        if (onuma__engine_tag_close(*engine, t, &epoch)) onuma__engine_tag_passed(*engine, t, epoch);
    return r;
}

/* A held block is released at once. */
static onuma_result free_unheld(void *ptr, onuma__tag tag, onuma__engine **engine) {
    const onuma_result r = onuma__engine_free(ptr, tag, engine);
    if (r == ONUMA__HELD) onuma__engine_release(*engine, ptr);
    return r;
}

static onuma_result alloc_unaligned(onuma__engine *e, size_t size, size_t align, onuma__tag tag, void **out) {
    (void)align;
    return onuma__engine_alloc(e, size, 0, tag, out);
}

static onuma_result alloc_scribbling(onuma__engine *e, size_t size, size_t align, onuma__tag tag, void **out) {
    onuma__block found;
    if (last != NULL && now_and_then() && onuma__engine_find(last, &found) == ONUMA_OK && found.requested > 0)
        last[0] ^= 1;
    const onuma_result r = onuma__engine_alloc(e, size, align, tag, out);
    if (r == ONUMA_OK) last = *out;
    return r;
}

static onuma_result resize_in_name_only(void *base, size_t size) {
    const onuma_result r = onuma__engine_resize(base, size);
    return r == ONUMA__MISS ? ONUMA_OK : r;
}

static void miscount(onuma__engine *engine, onuma_pool_stats *out) {
    onuma__engine_get_stats(engine, out);
    if (out->alloc_count > 20) out->requested_bytes++;
}

static size_t trim_nothing(onuma__engine *engine, size_t keep) {
    (void)engine;
    (void)keep;
    return 0;
}

const engine_calls broken_engines[] = {
    ENGINE("hands a block out twice", alloc_twice, FREE, RESIZE, TRIM, STATS),
    ENGINE("takes any pointer for a block", ALLOC, free_anything, RESIZE, TRIM, STATS),
    ENGINE("frees by interior pointers", ALLOC, free_interior, RESIZE, TRIM, STATS),
    ENGINE("forgets some frees", ALLOC, free_nothing, RESIZE, TRIM, STATS),
    ENGINE("lets others have what waits for a queue", ALLOC, free_early, RESIZE, TRIM, STATS),
    ENGINE("does not hold what is to be held", ALLOC, free_unheld, RESIZE, TRIM, STATS),
    ENGINE("ignores alignment", alloc_unaligned, FREE, RESIZE, TRIM, STATS),
    ENGINE("writes into blocks", alloc_scribbling, FREE, RESIZE, TRIM, STATS),
    ENGINE("resizes in name only", ALLOC, FREE, resize_in_name_only, TRIM, STATS),
    ENGINE("counts wrongly", ALLOC, FREE, RESIZE, TRIM, miscount),
    ENGINE("keeps what it should give back", ALLOC, FREE, RESIZE, trim_nothing, STATS),
    {.name = NULL},
};
