/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Range mode: addresses are reserved in long ranges, of which one usually
 * lasts for ever; a node is taken where it needs the fewest new pages, and
 * those are committed.
 *
 * Segments mode: a segment of the sort that the block belongs to is acquired.
 * Segments that blocks share are got by one thread at a time, or eight
 * threads that miss at once would get eight where one would do.
 */
#include "pool/grow.h"

#include "pool/node.h"
#include "pool/ration.h"
#include "pool/segment.h"
#include "pool/sort.h"
#include "pool/stats.h"
#include "pool/stretch.h"
#include "pool/trim.h"

#define RANGE_LEAST ((size_t)1 << 20) /* below this a shorter reservation is not tried */
#define WAIT_NS 20000

/* A range may hold a fifty-second (1.9 %) more than was ever in use at once. Beyond that free pages go back. Up to half
 * of it may be committed beyond what is asked for, so that not every change calls the source. A sixty-fourth took two
 * thirds more calls, a thirty-second would take a quarter fewer. */
#define OVER 52

/* When the calls for that are used up, so much more of what the range would hold is tolerated from then on. */
#define TOLERATED 64

/* ---------------------------------------------------------------- segments */

static bool span_fits(const onuma__engine *engine, const onuma__span *span, size_t size, size_t align) {
    uintptr_t base;
    const size_t usable = onuma__segment_usable(engine, span, &base);
    size_t from, end;
    return onuma__align_up(base, align, &from) && onuma__add(from, size, &end) && end <= base + usable;
}

/* Segments are whole pages, and a source whose memory starts off a unit is asked for a unit more. */
size_t onuma__largest_block(size_t max_segment, size_t align) {
    const size_t unit = align > ONUMA__UNIT ? align : ONUMA__UNIT;
    const size_t most = onuma__align_down(max_segment, ONUMA__PAGE);
    return most > unit ? onuma__align_down(most - unit, ONUMA__UNIT) : 0;
}

static onuma_result too_large(const onuma__engine *engine, size_t size, size_t align) {
    if (engine->max_segment == 0)
        return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "a block of %zu bytes aligned to %zu is more than all addresses",
                           size, align);
    return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY,
                       "a block of %zu bytes aligned to %zu does not fit the %zu bytes that the device gives at once; "
                       "use blocks of up to %zu",
                       size, align, engine->max_segment, onuma__largest_block(engine->max_segment, align));
}

/* One segment that can serve the request; `want` bytes of it are the sort's usual size, or 0. */
static onuma_result acquire(onuma__engine *engine, size_t size, size_t align, size_t want, onuma__span *span) {
    for (;;) {
        const bool misaligned = atomic_load_explicit(&engine->misaligned, memory_order_relaxed);
        size_t need = size;
        if (!onuma__add(need, align - engine->unit, &need) || (misaligned && !onuma__add(need, engine->unit, &need)) ||
            !onuma__align_up(need, ONUMA__PAGE, &need))
            return too_large(engine, size, align);
        if (engine->max_segment != 0 && need > engine->max_segment) return too_large(engine, size, align);
        if (want > need) need = want;
        const onuma_result r = engine->source.acquire(engine->source.self, need, span);
        if (r != ONUMA_OK) return r;
        if (span_fits(engine, span, size, align)) return ONUMA_OK;
        /* The first span of a source whose memory starts off a unit; from now on a unit more is asked for. */
        engine->source.release(engine->source.self, span, 0);
        if (atomic_exchange_explicit(&engine->misaligned, true, memory_order_relaxed) && misaligned)
            return onuma__fail(ONUMA_ERROR_INTERNAL,
                               "the source gave %zu bytes at %p where %zu usable ones were asked for; this is a defect "
                               "of the driver",
                               span->size, span->base, need);
    }
}

static onuma_result acquire_segment(onuma__engine *engine, size_t size, size_t align, unsigned sort,
                                    onuma__span *span) {
    const size_t usual = onuma__sort_segment(engine, sort);
    onuma__trim_before_growth(engine, size > usual ? size : usual);
    onuma_result r = acquire(engine, size, align, usual, span);
    /* Drivers refuse below what they state, or have no such stretch left. */
    for (size_t less = usual / 2; r == ONUMA_ERROR_OUT_OF_MEMORY && less > size; less /= 2)
        r = acquire(engine, size, align, onuma__align_down(less, ONUMA__PAGE), span);
    /* Where there is no room for a segment to share there may be for this block. */
    if (r != ONUMA_OK && r != ONUMA_ERROR_DEVICE_LOST && usual > size) r = acquire(engine, size, align, 0, span);
    return r;
}

/* Half as long as long as the system has no such stretch of addresses. */
static onuma_result reserve_range(onuma__engine *engine, size_t size, size_t align, onuma__span *span) {
    size_t least;
    if (!onuma__add(size, align, &least) || !onuma__align_up(least, engine->page, &least))
        return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no address space for %zu bytes", size);
    if (least < RANGE_LEAST) least = RANGE_LEAST;
    size_t length = engine->range_bytes > least ? engine->range_bytes : least;
    for (;;) {
        const onuma_result r = engine->source.reserve(engine->source.self, length, span);
        if (r == ONUMA_OK && !span_fits(engine, span, size, align)) {
            engine->source.release(engine->source.self, span, 0);
            return onuma__fail(ONUMA_ERROR_INTERNAL, "the source reserved %zu bytes at %p where %zu were asked for",
                               span->size, span->base, length);
        }
        if (r == ONUMA_OK || length == least) return r;
        length = onuma__align_down(length / 2, engine->page);
        if (length < least) length = least;
    }
}

/* A segment more. Called without the lock. */
static onuma_result add_segment(onuma__engine *engine, size_t size, size_t align, unsigned sort) {
    onuma__span span;
    onuma_result r =
        engine->range ? reserve_range(engine, size, align, &span) : acquire_segment(engine, size, align, sort, &span);
    if (r != ONUMA_OK) return r;
    const int64_t bytes = engine->range ? 0 : (int64_t)span.size;
    onuma__gauge_add(&engine->reserved, bytes);
    onuma__segment *segment;
    r = onuma__segment_create(engine, &span, sort, &segment);
    if (r == ONUMA_OK) {
        onuma__os_lock_acquire(&engine->lock);
        r = onuma__node_found(engine, segment);
        if (r == ONUMA_OK) onuma__segment_link(engine, segment);
        onuma__os_lock_release(&engine->lock);
        if (r != ONUMA_OK) onuma__segment_destroy(segment);
    }
    if (r != ONUMA_OK) {
        engine->source.release(engine->source.self, &span, 0);
        onuma__gauge_add(&engine->reserved, -bytes);
        return r;
    }
    atomic_fetch_add_explicit(&engine->segment_allocs, 1, memory_order_relaxed);
    return ONUMA_OK;
}

/* ------------------------------------------------------------------- nodes */

/* What may be reserved once `more` bytes are in use besides what is. */
static size_t bound(const onuma__engine *engine, size_t more) {
    const uint64_t peak = atomic_load_explicit(&engine->totals.in_use.peak, memory_order_relaxed);
    const uint64_t now = atomic_load_explicit(&engine->totals.in_use.now, memory_order_relaxed) + more;
    const uint64_t live = peak > now ? peak : now;
    const size_t most = (size_t)(live + live / OVER);
    const size_t tolerated = atomic_load_explicit(&engine->tolerated, memory_order_relaxed);
    return most > tolerated ? most : tolerated;
}

bool onuma__grow_has_room(const onuma__engine *engine, size_t size) {
    return !engine->range ||
           atomic_load_explicit(&engine->reserved.now, memory_order_relaxed) + size <= bound(engine, size);
}

bool onuma__engine_would_swell(onuma__engine *engine, size_t size) {
    const size_t most = bound(engine, size);
    const size_t pending = (size_t)atomic_load_explicit(&engine->pending.now, memory_order_relaxed);
    const size_t in_use = (size_t)atomic_load_explicit(&engine->totals.in_use.now, memory_order_relaxed);
    const size_t reserved = (size_t)atomic_load_explicit(&engine->reserved.now, memory_order_relaxed);
    /* Of a range what is free for all goes back; of segments only what is wholly free, and that is up to the queues. */
    return pending != 0 && reserved + size > most && (!engine->range || in_use + pending + size > most);
}

/*
 * Range mode, before a taken node is committed: pages that are free elsewhere go back if the new ones would be too
 * many. Called and returns with the lock held. Returns how many bytes beyond the node may be committed with it.
 */
static size_t make_room(onuma__engine *engine, const onuma__node *node) {
    const size_t more = onuma__segment_new_pages(node->segment, node->base, node->size) * engine->page;
    const size_t after = (size_t)atomic_load_explicit(&engine->reserved.now, memory_order_relaxed) + more;
    const size_t most = bound(engine, node->size);
    engine->alert = 2 * after;
    if (after <= most) return node->after != NULL && onuma__node_is_free(node->after) ? (most - after) / 2 : 0;
    if (!onuma__ration_reclaim(engine)) {
        atomic_store_explicit(&engine->tolerated, after + after / TOLERATED, memory_order_relaxed);
        return 0;
    }
    onuma__os_lock_release(&engine->lock);
    (void)onuma__segment_reclaim(engine, after - most);
    onuma__os_lock_acquire(&engine->lock);
    return 0;
}

/* Called and returns with the lock held. */
static onuma_result commit(onuma__engine *engine, onuma__node *node) {
    size_t beyond = make_room(engine, node);
    if (beyond != 0 && beyond > node->after->size) beyond = node->after->size;
    onuma__os_lock_release(&engine->lock);
    onuma_result r = onuma__pagemap_prepare(node->base, node->size + beyond);
    onuma__os_lock_acquire(&engine->lock);
    if (r == ONUMA_OK) r = onuma__segment_commit(engine, node, beyond);
    return r;
}

onuma_result onuma__grow_node(onuma__engine *engine, size_t size, size_t align, onuma__tag tag, onuma__node **out) {
    const unsigned sort = onuma__sort_of(engine, size);
    const bool shared = sort != ONUMA__SORT_OWN;
    onuma__take what = ONUMA__TAKE_SPARING;
    onuma_result r;
    onuma__os_lock_acquire(&engine->lock);
    while ((r = onuma__node_take(engine, size, align, tag, what, out)) == ONUMA__MISS) {
        if (shared && engine->growing[sort]) {
            onuma__os_lock_release(&engine->lock);
            onuma__os_sleep(WAIT_NS);
            onuma__os_lock_acquire(&engine->lock);
            continue;
        }
        engine->growing[sort] = shared;
        onuma__os_lock_release(&engine->lock);
        r = add_segment(engine, size, align, sort);
        onuma__os_lock_acquire(&engine->lock);
        if (shared) engine->growing[sort] = false;
        what = ONUMA__TAKE_ANY; /* the source may have given more than it was asked for */
        if (r == ONUMA_OK) continue;
        /* What it refuses must come from what is there. */
        if (onuma__node_take(engine, size, align, tag, what, out) == ONUMA_OK) r = ONUMA_OK;
        break;
    }
    if (r == ONUMA_OK && engine->range) {
        r = commit(engine, *out);
        if (r != ONUMA_OK) onuma__node_return(engine, *out);
    }
    onuma__os_lock_release(&engine->lock);
    return r;
}
