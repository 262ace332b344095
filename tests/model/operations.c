/* SPDX-License-Identifier: Apache-2.0 */
#include "model.h"

#include <stdio.h>

/* How often each kind is drawn. */
static const unsigned weights[KINDS] = {
    [KIND_alloc_small] = 26,
    [KIND_alloc_any] = 10,
    [KIND_alloc_large] = 4,
    [KIND_alloc_aligned] = 4,
    [KIND_free_own] = 22,
    [KIND_free_without_queue] = 6,
    [KIND_free_wrong_queue] = 3,
    [KIND_free_interior] = 2,
    [KIND_free_again] = 3,
    [KIND_send] = 8,
    [KIND_receive] = 8,
    [KIND_resize] = 5,
    [KIND_special] = 3,
    [KIND_release] = 6,
    [KIND_find] = 5,
    [KIND_close_tag] = 2,
    [KIND_pass_tag] = 2,
    [KIND_take_caches] = 1,
    [KIND_trim] = 1,
};

operation operation_draw(uint64_t *random) {
    unsigned total = 0;
    for (unsigned k = 0; k < KINDS; k++)
        total += weights[k];
    unsigned at = (unsigned)(model_random(random) % total);
    operation o = {.kind = KIND_alloc_small};
    for (unsigned k = 0; k < KINDS; k++) {
        if (at < weights[k]) {
            o.kind = (kind)k;
            break;
        }
        at -= weights[k];
    }
    o.a = (uint32_t)model_random(random);
    o.b = (uint32_t)model_random(random);
    o.c = (uint32_t)model_random(random);
    return o;
}

void operation_print(const operation *o) {
    static const char *const names[] = {
#define X(name) #name,
        MODEL_KINDS(X)
#undef X
    };
    printf("    %-18s a=%u b=%u c=%u\n", names[o->kind], o->a, o->b, o->c);
}

/* Sizes spread evenly over the doublings up to 2^bits; 0 and exact powers among them. */
static size_t size_of(uint32_t a, unsigned bits) {
    const size_t power = (size_t)1 << (a % (bits + 1));
    switch (a >> 28) {
    case 0:
        return 0;
    case 1:
        return power;
    case 2:
        return power + 1;
    default:
        return power / 2 + (a >> 5) % (power / 2 + 1);
    }
}

static onuma__tag tag_of(uint32_t b) {
    /* The CPU's half of the time, now and then an unordered queue's. */
    if (b % 16 == 1) return MODEL_TAGS | ONUMA__TAG_UNORDERED;
    return b % 2 == 0 ? 0 : b / 2 % MODEL_TAGS;
}

static const shadow *pick(const worker *w, uint32_t a, size_t *index) {
    if (w->live_count == 0) return NULL;
    *index = a % w->live_count;
    return &w->live[*index];
}

static bool expect(worker *w, const char *what, const void *ptr, onuma_result got, onuma_result wanted) {
    if (got == wanted) return true;
    model_fail(w->model, "%s of %p: result %d where %d was due: %s", what, ptr, got, wanted, onuma__thread_text());
    return false;
}

/* --------------------------------------------------------------- allocation */

static void allocate(worker *w, size_t size, size_t align, onuma__tag tag) {
    model *m = w->model;
    if (w->live_count == MODEL_BLOCKS) return;
    void *out;
    onuma_result r = m->calls->alloc(m->engine, size, align, tag, &out);
    if (r == ONUMA__MISS) r = m->calls->grow(m->engine, size, align, tag, &out);
    if (!expect(w, "allocation", out, r, ONUMA_OK)) return;
    onuma__block found;
    if (!expect(w, "find", out, m->calls->find(out, &found), ONUMA_OK)) return;
    if (found.base != out || found.requested != size || found.size < size || found.tag != tag || found.special ||
        found.owner != m || (unsigned char *)found.span->base + found.offset != out)
        model_fail(m, "block %p of %zu bytes is described wrongly", out, size);
    if ((uintptr_t)out % (align > 16 ? align : 16) != 0) model_fail(m, "block %p is not aligned to %zu", out, align);
    if (atomic_load(&m->failed)) return;
    reference_add(w, &(shadow){.base = out, .size = found.size, .requested = size, .tag = tag});
    reference_fill(&w->live[w->live_count - 1], 0);
}

/* -------------------------------------------------------------------- frees */

/* Free a block that is no longer in the reference. */
static void release_memory(worker *w, shadow *block, onuma__tag tag) {
    model *m = w->model;
    const bool holds = block->special || (tag != 0 && tag != block->tag) || (block->tag & ONUMA__TAG_UNORDERED) != 0;
    reference_check_content(w, block, block->requested);
    if (!holds) reference_will_free(w, block);
    onuma__engine *engine = NULL;
    const onuma_result r = m->calls->free(block->base, tag, &engine);
    if (!expect(w, "free", block->base, r, holds ? ONUMA__HELD : ONUMA_OK)) return;
    if (engine != m->engine) model_fail(m, "free of %p names another engine", (void *)block->base);
    if (holds) w->held[w->held_count++] = *block;
}

static void release_held(worker *w, size_t index) {
    model *m = w->model;
    const shadow block = w->held[index];
    onuma__block found;
    expect(w, "find_held", block.base, onuma__engine_find_held(block.base, &found), ONUMA_OK);
    expect(w, "find of a held block", block.base, m->calls->find(block.base, &found), ONUMA_ERROR_INVALID_POINTER);
    reference_check_content(w, &block, block.requested); /* nobody else had it */
    m->calls->release(m->engine, block.base);
    w->held[index] = w->held[--w->held_count];
}

static void free_one(worker *w, size_t index, onuma__tag tag) {
    if (w->held_count == MODEL_BLOCKS) release_held(w, 0);
    shadow block = reference_remove(w, index);
    release_memory(w, &block, tag);
}

/* Of what is held, and on one thread of anything: elsewhere another thread may have it again by now. */
static void free_again(worker *w, uint32_t a) {
    model *m = w->model;
    onuma__engine *engine;
    if (w->held_count != 0) {
        void *base = w->held[a % w->held_count].base;
        expect(w, "second free of a held block", base, m->calls->free(base, 0, &engine), ONUMA_ERROR_DOUBLE_FREE);
        return;
    }
    size_t index;
    const shadow *block = pick(w, a, &index);
    if (block == NULL || block->special || (block->tag & ONUMA__TAG_UNORDERED) != 0 || m->threads != 1) return;
    unsigned char *base = block->base;
    free_one(w, index, 0);
    if (atomic_load(&m->failed)) return;
    const onuma_result r = m->calls->free(base, 0, &engine);
    if (r != ONUMA_ERROR_DOUBLE_FREE && r != ONUMA_ERROR_INVALID_POINTER)
        model_fail(m, "second free of %p: result %d", (void *)base, r);
}

static void free_interior(worker *w, uint32_t a, uint32_t b) {
    size_t index;
    const shadow *block = pick(w, a, &index);
    if (block == NULL || block->size < 2) return;
    void *inside = block->base + 1 + b % (block->size - 1);
    onuma__engine *engine;
    expect(w, "free inside a block", inside, w->model->calls->free(inside, 0, &engine), ONUMA_ERROR_INVALID_POINTER);
}

static void send(worker *w, uint32_t a, uint32_t b) {
    model *m = w->model;
    size_t index;
    if (pick(w, a, &index) == NULL) return;
    worker *to = &m->workers[b % m->threads];
    onuma__os_lock_acquire(&m->lock);
    const bool room = to->inbox_count < MODEL_BLOCKS / 4;
    onuma__os_lock_release(&m->lock);
    if (!room || w->live[index].special) return;
    const shadow block = reference_remove(w, index);
    onuma__os_lock_acquire(&m->lock);
    to->inbox[to->inbox_count++] = block;
    onuma__os_lock_release(&m->lock);
}

static bool receive(worker *w, uint32_t b) {
    model *m = w->model;
    onuma__os_lock_acquire(&m->lock);
    const bool any = w->inbox_count != 0;
    shadow block = any ? w->inbox[--w->inbox_count] : (shadow){0};
    onuma__os_lock_release(&m->lock);
    if (!any) return false;
    if (w->held_count == MODEL_BLOCKS) release_held(w, 0);
    release_memory(w, &block, b % 2 != 0 ? block.tag : 0);
    return true;
}

/* ----------------------------------------------------------- blocks in place */

/* The size of a live block that the common reference has. */
static void set_size(model *m, shadow *block, size_t size) {
    onuma__os_lock_acquire(&m->lock);
    block->size = size;
    onuma__os_lock_release(&m->lock);
}

static void resize(worker *w, uint32_t a, uint32_t b) {
    model *m = w->model;
    size_t index;
    if (pick(w, a, &index) == NULL) return;
    shadow *block = &w->live[index];
    const shadow whole = *block;
    const size_t size = size_of(b, 20);
    reference_check_content(w, &whole, whole.requested);
    /* The end that is cut off may be another thread's at once: the reference lets go of it first. */
    if (size < whole.size) set_size(m, block, size);
    const onuma_result r = m->calls->resize(block->base, size);
    if (r == ONUMA__MISS) {
        set_size(m, block, whole.size);
        return;
    }
    if (!expect(w, "resize", whole.base, r, ONUMA_OK)) return;
    onuma__block found;
    if (!expect(w, "find", whole.base, m->calls->find(whole.base, &found), ONUMA_OK)) return;
    if (found.requested != size || found.size < size) {
        model_fail(m, "block %p was resized to %zu bytes and has %zu", (void *)whole.base, size, found.requested);
        return;
    }
    set_size(m, block, found.size);
    reference_check_content(w, &whole, size < whole.requested ? size : whole.requested);
    block->requested = size; /* what of it is looked at is another part now */
    reference_fill(block, 0);
}

static void make_special(worker *w, uint32_t a, uint32_t b) {
    size_t index;
    if (pick(w, a, &index) == NULL) return;
    shadow *block = &w->live[index];
    const bool special = b % 2 != 0;
    if (!expect(w, "set_special", block->base, onuma__engine_set_special(block->base, special), ONUMA_OK)) return;
    onuma__os_lock_acquire(&w->model->lock);
    block->special = special;
    onuma__os_lock_release(&w->model->lock);
}

static void find_inside(worker *w, uint32_t a, uint32_t b) {
    size_t index;
    const shadow *block = pick(w, a, &index);
    if (block == NULL) return;
    onuma__block found;
    void *inside = block->base + b % block->size;
    if (!expect(w, "find inside", inside, w->model->calls->find(inside, &found), ONUMA_OK)) return;
    if (found.base != block->base || found.size != block->size || found.requested != block->requested ||
        found.special != block->special)
        model_fail(w->model, "find of %p does not give block %p", inside, (void *)block->base);
}

/* --------------------------------------------------------------------- tags */

static void close_tag(worker *w, uint32_t a) {
    model *m = w->model;
    const onuma__tag tag = 1 + a % (MODEL_TAGS - 1);
    uint64_t epoch;
    if (!onuma__engine_tag_close(m->engine, tag, &epoch)) return;
    onuma__os_lock_acquire(&m->lock);
    if (epoch > m->tags[tag].epoch) {
        m->tags[tag].epoch = epoch;
        m->tags[tag].closed_at = ++m->sequence;
    }
    onuma__os_lock_release(&m->lock);
}

static void pass_tag(worker *w, uint32_t a) {
    model *m = w->model;
    const onuma__tag tag = 1 + a % (MODEL_TAGS - 1);
    onuma__os_lock_acquire(&m->lock);
    waiting_list *list = &m->tags[tag];
    const uint64_t epoch = list->epoch;
    /* What began to be freed before the close may be free for all from now on; what began later must not be. */
    for (size_t i = 0; i < list->count && epoch != 0;) {
        if (list->entries[i].since < list->closed_at)
            list->entries[i] = list->entries[--list->count];
        else
            i++;
    }
    onuma__os_lock_release(&m->lock);
    if (epoch != 0) onuma__engine_tag_passed(m->engine, tag, epoch);
}

/* ------------------------------------------------------------------ running */

void operation_run(worker *w, const operation *o) {
    model *m = w->model;
    size_t index;
    const shadow *block;
    switch (o->kind) {
    case KIND_alloc_small:
        allocate(w, size_of(o->a, 10), 0, tag_of(o->b));
        break;
    case KIND_alloc_any:
        allocate(w, size_of(o->a, 17), 0, tag_of(o->b));
        break;
    case KIND_alloc_large:
        allocate(w, size_of(o->a, 22), 0, tag_of(o->b));
        break;
    case KIND_alloc_aligned:
        allocate(w, size_of(o->a, 16), (size_t)1 << o->c % 18, tag_of(o->b));
        break;
    case KIND_free_own:
        block = pick(w, o->a, &index);
        if (block != NULL) free_one(w, index, block->tag);
        break;
    case KIND_free_without_queue:
        if (pick(w, o->a, &index) != NULL) free_one(w, index, 0);
        break;
    case KIND_free_wrong_queue:
        if (pick(w, o->a, &index) != NULL) free_one(w, index, o->b % 2 != 0 ? ONUMA__TAG_HOLD : MODEL_TAGS + 1);
        break;
    case KIND_free_interior:
        free_interior(w, o->a, o->b);
        break;
    case KIND_free_again:
        free_again(w, o->a);
        break;
    case KIND_send:
        send(w, o->a, o->b);
        break;
    case KIND_receive:
        receive(w, o->b);
        break;
    case KIND_resize:
        resize(w, o->a, o->b);
        break;
    case KIND_special:
        make_special(w, o->a, o->b);
        break;
    case KIND_release:
        if (w->held_count != 0) release_held(w, o->a % w->held_count);
        break;
    case KIND_find:
        find_inside(w, o->a, o->b);
        break;
    case KIND_close_tag:
        close_tag(w, o->a);
        break;
    case KIND_pass_tag:
        pass_tag(w, o->a);
        break;
    case KIND_take_caches:
        onuma__engine_take_caches(m->engine);
        break;
    case KIND_trim:
        m->calls->trim(m->engine, o->a % 4 == 0 ? 0 : size_of(o->a, 26));
        break;
    case KINDS:
        break;
    }
}

void worker_receive_all(worker *w) {
    while (receive(w, 0) && !atomic_load(&w->model->failed)) {
    }
}

void worker_finish(worker *w) {
    const model *m = w->model;
    worker_receive_all(w);
    while (w->live_count != 0 && !atomic_load(&m->failed))
        free_one(w, w->live_count - 1, 0);
    while (w->held_count != 0 && !atomic_load(&m->failed))
        release_held(w, w->held_count - 1);
}
