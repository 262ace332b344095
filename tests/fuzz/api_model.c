/* SPDX-License-Identifier: Apache-2.0 */
#include "api_model.h"

#include <stdatomic.h>

/* ------------------------------------------------------------------ queues */

static uint64_t submitted(const model *m, unsigned queue) {
    return atomic_load(&m->queues[queue].timeline->submitted);
}

bool model_reached(const model *m, unsigned queue, uint64_t value) {
    return atomic_load(&m->queues[queue].timeline->completed) >= value;
}

bool model_all_reached(const model *m) {
    for (unsigned q = 0; q < QUEUES; q++)
        if (!model_reached(m, q, submitted(m, q))) return false;
    return true;
}

void model_finish_queues(model *m) {
    model_settle(m);
    for (unsigned q = 0; q < QUEUES; q++)
        atomic_store(&m->queues[q].timeline->completed, submitted(m, q));
    model_settle(m);
}

static void wait_until(uint64_t *until, uint64_t value) {
    if (value > *until) *until = value;
}

void model_release_queue(model *m, unsigned queue) {
    model_submitted(m, queue, submitted(m, queue));
    for (size_t i = 0; i < BLOCKS; i++) {
        if (m->blocks[i].base == NULL || !m->blocks[i].bound[queue]) continue;
        m->blocks[i].bound[queue] = false;
        wait_until(&m->blocks[i].until[queue], submitted(m, queue));
    }
}

/* ---------------------------------------------------------------- contents */

/* The ends of a block are looked at, all of a small one. */
enum { END = 48 };

static unsigned char content(uint64_t number, size_t i) {
    return (unsigned char)((number * 0x9e3779b97f4a7c15 + i * 0x100000001b3) >> 32);
}

static size_t next_looked_at(size_t i, size_t size) {
    return i < END || size < 2 * END || i >= size - END ? i : size - END;
}

void model_fill(model *m, model_block *block) {
    block->number = ++m->numbers;
    block->filled = block->requested;
    if (m->pools[block->pool].simulated) return;
    for (size_t i = 0; i < block->requested; i++) {
        i = next_looked_at(i, block->requested);
        block->base[i] = content(block->number, i);
    }
}

static void check_bytes(const unsigned char *base, uint64_t number, size_t from, size_t upto) {
    for (size_t i = from; i < upto; i++)
        FUZZ_CHECK(base[i] == content(number, i), "byte %zu of %zu at %p changed", i, upto, (const void *)base);
}

void model_check_contents(const model *m, const model_block *block, size_t upto) {
    if (m->pools[block->pool].simulated) return;
    bool whole = upto == block->filled;
    check_bytes(block->base, block->number, 0, upto < END || (whole && upto < 2 * END) ? upto : END);
    if (whole && upto >= 2 * END) check_bytes(block->base, block->number, upto - END, upto);
}

/* -------------------------------------------------------------- allocation */

static bool overlaps(const unsigned char *a, size_t a_size, const unsigned char *b, size_t b_size) {
    return (uintptr_t)a < (uintptr_t)b + (b_size ? b_size : 1) && (uintptr_t)b < (uintptr_t)a + (a_size ? a_size : 1);
}

/* Only later work of the very queue that still uses it, an in-order one, may get what has not passed. */
static void check_reuse(const model *m, const model_pending *old, const model_block *block, int queue) {
    for (unsigned q = 0; q < QUEUES; q++)
        FUZZ_CHECK(model_reached(m, q, old->until[q]) || (queue == (int)q && m->queues[q].in_order),
                   "%p (%zu bytes) lies in %p (%zu bytes), which queue %u still uses", (void *)block->base, block->size,
                   (void *)old->base, old->size, q);
}

void model_allocated(model *m, model_block *block, unsigned pool, void *base, size_t requested, size_t align,
                     int queue) {
    onuma_block_info info = ONUMA_BLOCK_INFO_INIT;
    model_pool *p = &m->pools[pool];
    FUZZ_CHECK(base != NULL && onuma_block_get_info(base, &info) == ONUMA_OK, "%s", onuma_last_error());
    FUZZ_CHECK(info.base == base && info.size >= requested && info.requested == requested && info.pool == p->pool,
               "%zu bytes at %p: %zu at %p, %zu requested", requested, base, info.size, info.base, info.requested);
    size_t wanted = align > p->alignment ? align : p->alignment;
    FUZZ_CHECK(((uintptr_t)base & (wanted - 1)) == 0, "%p is not aligned to %zu", base, wanted);
    *block = (model_block){.base = base, .size = info.size, .requested = requested, .pool = pool};
    if (queue >= 0) block->bound[queue] = true;
    for (size_t i = 0; i < BLOCKS; i++)
        FUZZ_CHECK(&m->blocks[i] == block || m->blocks[i].base == NULL ||
                       !overlaps(block->base, block->size, m->blocks[i].base, m->blocks[i].size),
                   "%p (%zu bytes) overlaps the live %p (%zu bytes)", base, info.size, (void *)m->blocks[i].base,
                   m->blocks[i].size);
    for (size_t i = 0; i < m->pending_count; i++) {
        model_pending *old = &m->pending[i];
        if (!overlaps(block->base, block->size, old->base, old->size)) continue;
        check_reuse(m, old, block, queue);
        if (queue >= 0) wait_until(&block->last_owner[queue], old->until[queue]);
        old->looked_at = 0;
    }
    p->in_use += info.size;
    p->requested += requested;
    p->blocks++;
    p->allocs++;
}

/* ------------------------------------------------------------------- frees */

static void note_pending(model *m, const model_block *block, const uint64_t *until) {
    bool passed = true;
    for (unsigned q = 0; q < QUEUES; q++)
        passed = passed && model_reached(m, q, until[q]);
    if (passed || m->pending_count == PENDING) return;
    model_pending *p = &m->pending[m->pending_count++];
    size_t looked_at = block->requested < END ? block->requested : END;
    *p = (model_pending){.base = block->base, .size = block->size, .number = block->number, .looked_at = looked_at};
    if (m->pools[block->pool].simulated) p->looked_at = 0;
    memcpy(p->until, until, sizeof p->until);
}

void model_freed(model *m, model_block *block, int queue) {
    model_pool *p = &m->pools[block->pool];
    uint64_t until[QUEUES];
    memcpy(until, block->until, sizeof until);
    if (queue >= 0) wait_until(&until[queue], submitted(m, (unsigned)queue));
    for (unsigned q = 0; q < QUEUES; q++)
        if (block->bound[q]) wait_until(&until[q], submitted(m, q));
    for (size_t i = 0; i < block->use_count; i++) {
        const model_use *use = &block->uses[i];
        /* An event may still say that open work on an unordered queue ended earlier than all that is submitted. */
        if (use->until == OPEN && m->queues[use->queue].in_order)
            wait_until(&until[use->queue], use->implied != OPEN ? use->implied : submitted(m, use->queue));
        if (use->until != OPEN) wait_until(&until[use->queue], use->until);
    }
    note_pending(m, block, until);
    p->in_use -= block->size;
    p->requested -= block->requested;
    p->blocks--;
    p->frees++;
    block->base = NULL;
}

void model_settle(model *m) {
    size_t kept = 0;
    for (size_t i = 0; i < m->pending_count; i++) {
        const model_pending *p = &m->pending[i];
        bool passed = true;
        for (unsigned q = 0; q < QUEUES; q++)
            passed = passed && model_reached(m, q, p->until[q]);
        if (passed) continue;
        check_bytes(p->base, p->number, 0, p->looked_at);
        m->pending[kept++] = *p;
    }
    m->pending_count = kept;
}

/* -------------------------------------------------------------- statistics */

void model_check_statistics(model *m) {
    for (size_t i = 0; i < POOLS; i++) {
        model_pool *p = &m->pools[i];
        onuma_pool_stats s = ONUMA_POOL_STATS_INIT;
        FUZZ_CHECK(onuma_pool_get_stats(p->pool, &s) == ONUMA_OK, "%s", onuma_last_error());
#define SAME(field, value)                                                                                             \
    FUZZ_CHECK(s.field == (value), "pool %zu: " #field " is %llu, should be %llu", i, (unsigned long long)s.field,     \
               (unsigned long long)(value))
        SAME(in_use_bytes, p->in_use);
        SAME(requested_bytes, p->requested);
        SAME(in_use_blocks, p->blocks);
        SAME(alloc_count, p->allocs);
        SAME(free_count, p->frees);
        SAME(alloc_failure_count, p->failures);
#undef SAME
        FUZZ_CHECK(s.in_use_bytes + s.pending_bytes <= s.reserved_bytes, "pool %zu: %llu and %llu in %llu reserved", i,
                   (unsigned long long)s.in_use_bytes, (unsigned long long)s.pending_bytes,
                   (unsigned long long)s.reserved_bytes);
        FUZZ_CHECK(s.reserved_bytes <= p->most_reserved, "pool %zu: %llu reserved, above the limit", i,
                   (unsigned long long)s.reserved_bytes);
        FUZZ_CHECK(s.in_use_bytes_peak >= s.in_use_bytes && s.reserved_bytes_peak >= s.reserved_bytes,
                   "pool %zu: a peak is below the present", i);
    }
}

/* ---------------------------------------------------------------- accesses */

static bool conflicts(onuma_access a, onuma_access b) {
    return ((a | b) & ONUMA_ACCESS_WRITE) != 0;
}

bool model_acquire_waits(model *m, model_block *block, onuma_access mode) {
    bool waits = false;
    for (size_t i = 0; i < block->use_count; i++) {
        model_use *use = &block->uses[i];
        if (!conflicts(use->mode, mode)) continue;
        if (use->until == OPEN && use->implied == OPEN) use->implied = submitted(m, use->queue);
        waits = waits || !model_reached(m, use->queue, use->until == OPEN ? use->implied : use->until);
    }
    /* The CPU waits for the last owner too, unless uses that were announced since say when the queue is done. */
    for (unsigned q = 0; q < QUEUES && !block->announced; q++)
        waits = waits || !model_reached(m, q, block->last_owner[q]);
    return waits;
}

void model_acquired(model_block *block, onuma_access mode) {
    size_t kept = 0;
    for (size_t i = 0; i < block->use_count; i++)
        if (!conflicts(block->uses[i].mode, mode)) block->uses[kept++] = block->uses[i];
    block->use_count = kept;
    block->holds[mode]++;
}

bool model_use_conflicts(const model_block *block, onuma_access mode) {
    for (onuma_access held = ONUMA_ACCESS_READ; held <= ONUMA_ACCESS_READ_WRITE; held++)
        if (block->holds[held] != 0 && conflicts(held, mode)) return true;
    return false;
}

void model_used(model *m, model_block *block, unsigned queue, onuma_access mode) {
    size_t kept = 0;
    for (size_t i = 0; i < block->use_count; i++) {
        model_use *use = &block->uses[i];
        uint64_t until = use->until == OPEN ? use->implied : use->until;
        if (until == OPEN || !model_reached(m, use->queue, until)) block->uses[kept++] = *use;
    }
    block->use_count = kept;
    block->announced = true;
    /* What one thread announces for one queue before it is submitted is one use: an acquire of the CPU seals all of it. */
    for (size_t i = 0; i < block->use_count; i++) {
        model_use *use = &block->uses[i];
        if (use->queue != queue || use->until != OPEN || use->implied != OPEN) continue;
        use->mode |= mode;
        return;
    }
    block->uses[block->use_count++] = (model_use){.queue = queue, .mode = mode, .until = OPEN, .implied = OPEN};
}

void model_submitted(model *m, unsigned queue, uint64_t until) {
    for (size_t i = 0; i < BLOCKS; i++)
        for (size_t u = 0; m->blocks[i].base != NULL && u < m->blocks[i].use_count; u++) {
            model_use *use = &m->blocks[i].uses[u];
            /* Once an acquire has taken it for submitted, nothing more is submitted under it. */
            if (use->queue == queue && use->until == OPEN) use->until = use->implied < until ? use->implied : until;
        }
}
