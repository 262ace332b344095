/* SPDX-License-Identifier: Apache-2.0 */
#include "model.h"

#include <stdlib.h>
#include <string.h>

uint64_t model_random(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static bool overlap(const unsigned char *a, size_t a_size, const unsigned char *b, size_t b_size) {
    return a < b + b_size && b < a + a_size;
}

/* ---------------------------------------------------------------- live blocks */

void reference_add(worker *w, const shadow *block) {
    model *m = w->model;
    shadow *kept = &w->live[w->live_count++];
    *kept = *block;
    onuma__os_lock_acquire(&m->lock);
    kept->number = ++m->numbers;
    const shadow *other = NULL;
    for (size_t i = 0; i < m->all_count && other == NULL; i++)
        if (overlap(m->all[i]->base, m->all[i]->size, kept->base, kept->size)) other = m->all[i];
    onuma__tag early = 0;
    for (onuma__tag tag = 1; tag < MODEL_TAGS; tag++) {
        waiting_list *list = &m->tags[tag];
        for (size_t i = 0; i < list->count;) {
            if (!overlap(list->entries[i].base, list->entries[i].size, kept->base, kept->size)) {
                i++;
                continue;
            }
            if (tag != kept->tag) early = tag;
            /* From here on it is that block's memory. (What of it was not used may still wait: not looked after.) */
            list->entries[i] = list->entries[--list->count];
        }
    }
    m->all[m->all_count++] = kept;
    const shadow seen = other != NULL ? *other : (shadow){0};
    onuma__os_lock_release(&m->lock);
    if (other != NULL)
        model_fail(m, "block %p of %zu bytes overlaps live block %p of %zu", (void *)kept->base, kept->size,
                   (void *)seen.base, seen.size);
    if (early != 0)
        model_fail(m, "block %p of %zu bytes for tag %u lies in memory that waits for tag %u", (void *)kept->base,
                   kept->size, kept->tag, early);
}

shadow reference_remove(worker *w, size_t index) {
    model *m = w->model;
    const shadow block = w->live[index];
    onuma__os_lock_acquire(&m->lock);
    const size_t last = --w->live_count;
    for (size_t i = 0; i < m->all_count; i++) {
        if (m->all[i] != &w->live[index]) continue;
        m->all[i] = m->all[--m->all_count];
        break;
    }
    if (last != index) {
        for (size_t i = 0; i < m->all_count; i++)
            if (m->all[i] == &w->live[last]) m->all[i] = &w->live[index];
        w->live[index] = w->live[last];
    }
    onuma__os_lock_release(&m->lock);
    return block;
}

void reference_will_free(worker *w, const shadow *block) {
    model *m = w->model;
    if (block->tag == 0 || block->tag >= MODEL_TAGS) return;
    onuma__os_lock_acquire(&m->lock);
    waiting_list *list = &m->tags[block->tag];
    if (list->count == list->capacity) {
        list->capacity = list->capacity != 0 ? list->capacity * 2 : 64;
        list->entries = realloc(list->entries, list->capacity * sizeof *list->entries);
    }
    list->entries[list->count++] = (waiting){.base = block->base, .size = block->size, .since = ++m->sequence};
    onuma__os_lock_release(&m->lock);
}

/* ------------------------------------------------------------------- content */

/* Small blocks byte by byte; of large ones the ends and some bytes of every page. */
static bool is_looked_at(const shadow *block, size_t i) {
    return block->requested <= 2048 || i < 64 || i + 64 >= block->requested || i % 4096 < 8;
}

static size_t next_looked_at(const shadow *block, size_t i) {
    if (is_looked_at(block, i)) return i;
    const size_t page = i / 4096 * 4096 + 4096, tail = block->requested - 64;
    return page < tail ? page : tail;
}

static unsigned char content(const shadow *block, size_t i) {
    return (unsigned char)((block->number * 0x9e3779b97f4a7c15 + i * 0x100000001b3) >> 32);
}

void reference_fill(const shadow *block, size_t from) {
    for (size_t i = from; i < block->requested; i++) {
        i = next_looked_at(block, i);
        block->base[i] = content(block, i);
    }
}

void reference_check_content(worker *w, const shadow *block, size_t upto) {
    for (size_t i = 0; i < upto; i++) {
        i = next_looked_at(block, i);
        if (i >= upto) return;
        if (block->base[i] == content(block, i)) continue;
        model_fail(w->model, "byte %zu of block %p (%zu bytes) has changed", i, (void *)block->base, block->requested);
        return;
    }
}

/* -------------------------------------------------------- the whole, at rest */

typedef struct tour {
    model *model;
    size_t blocks;
} tour;

static bool is_known(void *user, const onuma__block *block) {
    tour *t = user;
    t->blocks++;
    for (size_t i = 0; i < t->model->all_count; i++) {
        const shadow *s = t->model->all[i];
        if (s->base != block->base) continue;
        if (s->size == block->size && s->requested == block->requested && s->tag == block->tag &&
            s->special == block->special)
            return true;
        model_fail(t->model, "block %p is not as it was given", block->base);
        return false;
    }
    model_fail(t->model, "the engine has a live block %p that nobody allocated", block->base);
    return false;
}

void reference_compare(model *m) {
    onuma__engine_take_caches(m->engine);
    if (onuma__engine_check(m->engine) != ONUMA_OK) model_fail(m, "%s", onuma__thread_text());
    uint64_t in_use = 0, requested = 0, held = 0;
    size_t blocks = 0;
    for (size_t i = 0; i < m->all_count; i++) {
        in_use += m->all[i]->size;
        requested += m->all[i]->requested;
        blocks++;
    }
    for (unsigned t = 0; t < m->threads; t++) {
        const worker *w = &m->workers[t];
        for (size_t i = 0; i < w->held_count; i++)
            held += w->held[i].size;
    }
    onuma_pool_stats s = ONUMA_POOL_STATS_INIT;
    m->calls->get_stats(m->engine, &s);
    if (s.in_use_bytes != in_use || s.in_use_blocks != blocks || s.requested_bytes != requested)
        model_fail(m, "in use: %llu bytes, %llu blocks, %llu requested; there are %llu, %zu, %llu",
                   (unsigned long long)s.in_use_bytes, (unsigned long long)s.in_use_blocks,
                   (unsigned long long)s.requested_bytes, (unsigned long long)in_use, blocks,
                   (unsigned long long)requested);
    if (s.pending_bytes < held)
        model_fail(m, "pending: %llu bytes, though %llu are held", (unsigned long long)s.pending_bytes,
                   (unsigned long long)held);
    if (s.reserved_bytes != m->source.held)
        model_fail(m, "reserved: %llu bytes, though the source handed out %zu", (unsigned long long)s.reserved_bytes,
                   m->source.held);
    if (m->source.broken) model_fail(m, "the source was asked for something wrong");
    tour t = {.model = m};
    onuma__engine_walk(m->engine, is_known, &t);
    if (t.blocks != blocks) model_fail(m, "the walk met %zu blocks of %zu", t.blocks, blocks);
}
