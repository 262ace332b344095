/* SPDX-License-Identifier: Apache-2.0 */
#include "model.h"

#include <string.h>

static bool conflicts(unsigned a, unsigned b) {
    return ((a | b) & WRITE) != 0;
}

static bool reached(const model *m, uint8_t q, uint32_t position) {
    return m->queues[q].completed >= position;
}

static bool idle(const model *m, uint8_t q) {
    return m->queues[q].completed == m->queues[q].submitted;
}

/* Where a use ends; OPEN while nobody can tell. */
static uint32_t end_of(const model_use *u) {
    return u->sealed != OPEN ? u->sealed : u->implied;
}

void model_begin(model *m, variant what, bool second_in_order) {
    memset(m, 0, sizeof *m);
    m->variant = what;
    m->queues[0].in_order = true;
    m->queues[1].in_order = second_in_order;
    for (size_t p = 0; p < PLACES; p++)
        m->places[p].own = m->places[p].behind = m->places[p].also = NONE;
}

static uint8_t other(uint8_t q) {
    return (uint8_t)(1 - q);
}

/* The queue's next piece of work waits for the other queue. */
static bool is_held_back(const model *m, uint8_t q) {
    const model_queue *queue = &m->queues[q];
    for (size_t i = 0; i < queue->wait_count; i++)
        if (queue->waits[i].position == queue->completed + 1 && !reached(m, other(q), queue->waits[i].wait_for))
            return true;
    return false;
}

/* ------------------------------------------------------------------- all the uses */

typedef bool use_visitor(model *m, model_use *u, void *argument);

/* Of live blocks and of freed ones. Stops when fn returns false. */
static bool each_use(model *m, use_visitor *fn, void *argument) {
    for (size_t b = 0; b < BLOCKS; b++)
        for (size_t i = 0; m->blocks[b].live && i < m->blocks[b].uses.count; i++)
            if (!fn(m, &m->blocks[b].uses.list[i], argument)) return false;
    for (size_t p = 0; p < PLACES; p++)
        for (size_t i = 0; !m->places[p].taken && i < m->places[p].parked.count; i++)
            if (!fn(m, &m->places[p].parked.list[i], argument)) return false;
    return true;
}

typedef struct sealing {
    uint8_t queue;
    uint32_t position, last, opened;
    size_t count;
} sealing;

static bool look_at_unsealed(model *m, model_use *u, void *argument) {
    sealing *s = argument;
    (void)m;
    if (u->queue != s->queue || u->sealed != OPEN) return true;
    s->count++;
    if (u->last > s->last) s->last = u->last;
    if (u->opened > s->opened) s->opened = u->opened;
    return true;
}

static bool seal(model *m, model_use *u, void *argument) {
    const sealing *s = argument;
    if (u->queue != s->queue || u->sealed != OPEN) return true;
    u->unsure = u->implied != OPEN && reached(m, u->queue, u->implied);
    u->sealed = s->position;
    return true;
}

static bool note_position(model *m, model_use *u, void *argument) {
    const model_work *w = argument;
    (void)m;
    if (u->id != w->use) return true;
    u->last = w->position;
    return false;
}

static sealing unsealed(const model *m, uint8_t q) {
    sealing s = {.queue = q};
    each_use((model *)(uintptr_t)m, look_at_unsealed, &s);
    return s;
}

uint32_t model_event(const model *m, uint8_t q) {
    return unsealed(m, q).last;
}

/* The opening thread goes on: what it has submitted so far counts, and it submits nothing more under the use. */
static void imply(model *m, model_use *u) {
    u->implied = m->queues[u->queue].submitted;
    for (size_t i = 0; i < WORKS; i++)
        if (m->works[i].here && !m->works[i].handed_in && m->works[i].use == u->id) m->works[i].here = false;
}

/* ------------------------------------------------------------------------- choices */

static bool has_announced(const model *m, uint8_t q, uint8_t thread) {
    for (size_t i = 0; i < WORKS; i++) {
        const model_work *w = &m->works[i];
        if (w->here && !w->handed_in && w->queue == q && (thread == NONE || w->thread == thread)) return true;
    }
    return false;
}

/* Threads differ only in which uses they have opened; a step for which that is no matter is the first one's. */
static bool thread_matters(const model *m, step s) {
    if (s.kind == STEP_USE) return true;
    if (s.kind == STEP_HAND_IN) return true;
    if (s.kind != STEP_ACQUIRE && s.kind != STEP_FREE) return false;
    const model_block *b = &m->blocks[s.block];
    for (size_t i = 0; i < b->uses.count; i++)
        if (end_of(&b->uses.list[i]) == OPEN) return true;
    return false;
}

static bool may_use(const model *m, const model_block *b) {
    size_t works = 0;
    for (size_t i = 0; i < WORKS; i++)
        works += m->works[i].here;
    return b->live && b->uses.count < USES && works < WORKS;
}

bool model_allows(const model *m, step s) {
    const model_block *b = &m->blocks[s.block];
    switch (s.kind) {
    case STEP_ALLOC:
        return !b->live;
    case STEP_FREE:
        return b->live;
    case STEP_USE:
        return may_use(m, b);
    case STEP_HAND_IN:
        return has_announced(m, s.queue, s.thread);
    case STEP_RUN:
        return b->queue != NONE && may_use(m, b) && b->holds[READ] + b->holds[WRITE] == 0;
    case STEP_UNRELATED:
        return m->queues[s.queue].submitted - m->queues[s.queue].completed < 3;
    case STEP_SEAL:
        return unsealed(m, s.queue).count != 0 && !has_announced(m, s.queue, NONE);
    case STEP_SEAL_EVENT:
        return unsealed(m, s.queue).last > unsealed(m, s.queue).opened && !has_announced(m, s.queue, NONE);
    case STEP_ACQUIRE:
        return b->live && !b->ran && b->holds[s.mode] == 0;
    case STEP_RELEASE:
        return b->live && b->holds[s.mode] != 0;
    case STEP_WAIT:
        return !idle(m, other(s.queue)) && m->queues[s.queue].wait_count < 3;
    default:
        return !idle(m, s.queue) && !is_held_back(m, s.queue);
    }
}

/* How many values each member of a step takes. */
static const struct {
    uint8_t threads, queues, blocks, modes;
} shapes[STEP_KINDS] = {
    [STEP_ALLOC] = {1, 3, 2, 1},   [STEP_FREE] = {2, 3, 2, 1},       [STEP_USE] = {2, 2, 2, 2},
    [STEP_HAND_IN] = {2, 2, 1, 1}, [STEP_RUN] = {1, 1, 2, 1},        [STEP_UNRELATED] = {1, 2, 1, 1},
    [STEP_SEAL] = {1, 2, 1, 1},    [STEP_SEAL_EVENT] = {1, 2, 1, 1}, [STEP_ACQUIRE] = {2, 1, 2, 2},
    [STEP_RELEASE] = {1, 1, 2, 2}, [STEP_WAIT] = {1, 2, 1, 2},       [STEP_COMPLETE] = {1, 2, 1, 1},
};

/* Accesses: who waits for whom, blocks live all the time. Memory: who gets what when; all accesses are for writing. */
static bool is_about(topic about, step s) {
    switch (s.kind) {
    case STEP_ALLOC:
    case STEP_FREE:
    case STEP_RUN:
        return about != TOPIC_ACCESSES;
    case STEP_SEAL_EVENT:
    case STEP_RELEASE:
    case STEP_UNRELATED:
    case STEP_WAIT:
        return about != TOPIC_MEMORY;
    case STEP_USE:
    case STEP_ACQUIRE:
        return about != TOPIC_MEMORY || s.mode == WRITE;
    default:
        return true;
    }
}

static bool is_of_block(step s) {
    return s.kind == STEP_ALLOC || s.kind == STEP_FREE || s.kind == STEP_USE || s.kind == STEP_RUN ||
           s.kind == STEP_ACQUIRE || s.kind == STEP_RELEASE;
}

/* Of two that are alike so far, one is enough. */
static bool is_mirrored(const model *m, step s) {
    const bool blocks_alike = !m->block_chosen && m->blocks[0].queue == m->blocks[1].queue;
    return (s.thread == 1 && !m->thread_chosen) || (is_of_block(s) && s.block == 1 && blocks_alike);
}

size_t model_choices(const model *m, topic about, step *out, size_t room) {
    size_t count = 0;
    for (uint8_t kind = 0; kind < STEP_KINDS; kind++)
        for (unsigned i = 0; i < 2u * 3u * 2u * 2u; i++) {
            const step s = {kind, (uint8_t)(i % 2), (uint8_t)(i / 2 % 3), (uint8_t)(i / 6 % 2), (uint8_t)(1 + i / 12)};
            if (s.thread >= shapes[kind].threads || s.queue >= shapes[kind].queues || s.block >= shapes[kind].blocks ||
                s.mode > shapes[kind].modes)
                continue;
            if (!is_about(about, s) || is_mirrored(m, s) || !model_allows(m, s)) continue;
            if ((s.thread == 0 || thread_matters(m, s)) && count < room) out[count++] = s;
        }
    return count;
}

/* --------------------------------------------------------------------------- memory */

/* All that can still be at a free place is over. */
static bool is_over(const model *m, const model_place *p) {
    for (uint8_t q = 0; q < QUEUES; q++)
        if (!reached(m, q, p->needs[q])) return false;
    /* The queue's own: whatever it was used for came before its free. */
    for (size_t i = 0; i < p->parked.count && p->own == NONE; i++) {
        const model_use *u = &p->parked.list[i];
        if (!u->unsure && (end_of(u) == OPEN || !reached(m, u->queue, end_of(u)))) return false;
    }
    return true;
}

/* It is over, and its queues have nothing more to do: markers that came late have passed, too. */
static bool is_surely_over(const model *m, const model_place *p) {
    for (uint8_t q = 0; q < QUEUES; q++)
        if (p->needed[q] && !idle(m, q)) return false;
    for (size_t i = 0; i < p->parked.count; i++)
        if (!idle(m, p->parked.list[i].queue)) return false;
    return is_over(m, p);
}

static const char *take_alloc(model *m, step s, answer seen) {
    bool possible = false, sure = false;
    for (size_t i = 0; i < PLACES; i++) {
        const model_place *p = &m->places[i];
        if (p->taken) continue;
        possible = possible || p->own == s.queue || is_over(m, p);
        sure = sure || (p->own == s.queue && s.queue != NONE && p->surely_own) || is_surely_over(m, p);
    }
    if (seen.kind == ANSWER_NO_MEMORY) return sure ? "there is memory that it may have, and it gets none" : NULL;
    if (seen.kind != ANSWER_OK) return "an allocation fails";
    model_place *p = &m->places[seen.place];
    if (p->taken) return "a block is handed out twice";
    const bool own = p->own == s.queue && s.queue != NONE, behind = !own && p->also == s.queue && s.queue != NONE;
    if (!behind && (!possible || (!own && !is_over(m, p)))) return "memory is handed out that is still in use";
    m->blocks[s.block] = (model_block){.live = true, .place = seen.place, .queue = s.queue};
    if (own || behind) {
        m->blocks[s.block].recycled = true;
        m->blocks[s.block].until = own ? p->needs[s.queue] : is_over(m, p) ? 0 : p->also_from;
    }
    if (behind)
        p->behind = p->own;
    else if (!own)
        p->behind = NONE;
    p->also = NONE;
    p->taken = true;
    p->taken_for = s.queue;
    p->owner++;
    p->parked.count = 0;
    return NULL;
}

/* All that can still be at the block is submitted work of the in-order queue that it was allocated for. */
static bool is_queues_own(const model *m, const model_block *b, uint8_t freed_on, bool *surely) {
    *surely = true;
    /* What is mapped is unmapped when nobody can be at it any more. */
    if (m->variant == VARIANT_MAPPED && b->holds[READ] + b->holds[WRITE] != 0) return false;
    if (b->queue == NONE || !m->queues[b->queue].in_order || (freed_on != NONE && freed_on != b->queue)) return false;
    for (size_t i = 0; i < b->uses.count; i++) {
        const model_use *u = &b->uses.list[i];
        if (u->queue == b->queue && end_of(u) != OPEN) continue;
        const bool over = end_of(u) != OPEN && (u->unsure || reached(m, u->queue, end_of(u)));
        if (!over) return false;
        *surely = false;
    }
    return true;
}

static const char *take_free(model *m, step s, answer seen) {
    model_block *b = &m->blocks[s.block];
    model_place *p = &m->places[b->place];
    if (seen.kind != ANSWER_OK) return "a free of a live block fails";
    for (size_t i = 0; i < b->uses.count; i++)
        if (b->uses.list[i].thread == s.thread && end_of(&b->uses.list[i]) == OPEN) imply(m, &b->uses.list[i]);
    bool surely;
    const bool own = is_queues_own(m, b, s.queue, &surely);
    p->taken = false;
    p->own = own ? b->queue : NONE;
    p->surely_own = surely;
    memset(p->needs, 0, sizeof p->needs);
    memset(p->needed, 0, sizeof p->needed);
    const uint8_t queues[] = {b->queue, s.queue};
    for (size_t i = 0; i < 2; i++)
        if (queues[i] != NONE) {
            p->needed[queues[i]] = true;
            p->needs[queues[i]] = m->queues[queues[i]].submitted;
        }
    p->parked = b->uses;
    if (own && surely) p->parked.count = 0;
    b->live = false;
    return NULL;
}

/* ------------------------------------------------------------------------- accesses */

static void add_work(model *m, model_work w) {
    size_t i = 0;
    while (m->works[i].here)
        i++;
    w.here = true;
    w.owner = m->places[w.place].owner;
    w.time = ++m->time;
    m->works[i] = w;
}

static const char *take_use(model *m, step s, answer seen) {
    model_block *b = &m->blocks[s.block];
    const bool refused =
        (b->holds[WRITE] != 0 && conflicts(s.mode, WRITE)) || (b->holds[READ] != 0 && conflicts(s.mode, READ));
    if (refused) return seen.kind == ANSWER_CONFLICT ? NULL : "a use is let in while the CPU holds the block";
    if (seen.kind != ANSWER_OK) return "a use is refused that nothing is in the way of";
    model_use *u = NULL;
    for (size_t i = 0; i < b->uses.count; i++)
        if (b->uses.list[i].queue == s.queue && b->uses.list[i].thread == s.thread && end_of(&b->uses.list[i]) == OPEN)
            u = &b->uses.list[i];
    if (!u) {
        u = &b->uses.list[b->uses.count++];
        *u = (model_use){.queue = s.queue, .thread = s.thread, .sealed = OPEN, .implied = OPEN, .id = ++m->ids};
    }
    u->mode |= s.mode;
    u->opened = m->queues[s.queue].submitted;
    if (s.queue == b->queue && m->queues[s.queue].in_order) b->settled = true;
    add_work(
        m,
        (model_work){
            .queue = s.queue, .place = b->place, .mode = s.mode, .thread = s.thread, .block = s.block, .use = u->id});
    return NULL;
}

static const char *take_hand_in(model *m, step s) {
    for (size_t i = 0; i < WORKS; i++) {
        model_work *w = &m->works[i];
        if (!w->here || w->handed_in || w->queue != s.queue || w->thread != s.thread) continue;
        w->handed_in = true;
        w->position = ++m->queues[s.queue].submitted;
        each_use(m, note_position, w);
    }
    return NULL;
}

static const char *take_run(model *m, step s) {
    model_block *b = &m->blocks[s.block];
    b->ran = true;
    add_work(m, (model_work){.queue = b->queue,
                             .place = b->place,
                             .mode = WRITE,
                             .block = s.block,
                             .handed_in = true,
                             .position = ++m->queues[b->queue].submitted});
    return NULL;
}

static const char *take_acquire(model *m, step s, answer seen) {
    model_block *b = &m->blocks[s.block];
    bool waits = false, may_wait = false;
    if (b->recycled && !b->settled) {
        b->settled = true;
        b->settled_at = m->queues[b->queue].submitted;
    }
    for (size_t i = 0; i < b->uses.count; i++) {
        model_use *u = &b->uses.list[i];
        if (!conflicts(u->mode, s.mode)) continue;
        if (end_of(u) == OPEN && u->thread == s.thread) imply(m, u);
        const bool in_the_way = end_of(u) == OPEN || !reached(m, u->queue, end_of(u));
        waits = waits || (in_the_way && !u->unsure);
        may_wait = may_wait || in_the_way;
    }
    if (b->recycled && b->settled_at != 0) {
        waits = waits || !reached(m, b->queue, b->until);
        may_wait = may_wait || !reached(m, b->queue, b->settled_at);
    }
    if (waits) return seen.kind == ANSWER_WAIT ? NULL : "the CPU is let in too early";
    if (may_wait && seen.kind == ANSWER_WAIT) return NULL;
    if (seen.kind != ANSWER_OK) return "the CPU waits for nothing";
    b->holds[s.mode]++;
    m->places[b->place].acquired[s.mode] = ++m->time;
    return NULL;
}

/* The device does a piece of work: what it finds in memory must be what it was meant for. */
static const char *take_complete(model *m, step s) {
    model_queue *queue = &m->queues[s.queue];
    const uint32_t position = ++queue->completed;
    if (queue->wait_count != 0 && queue->waits[0].position == position)
        memmove(queue->waits, queue->waits + 1, --queue->wait_count * sizeof queue->waits[0]);
    for (size_t i = 0; i < WORKS; i++) {
        model_work *w = &m->works[i];
        if (!w->here || !w->handed_in || w->queue != s.queue || w->position != position) continue;
        w->here = false;
        const model_place *p = &m->places[w->place];
        const bool later_of_queue = (m->queues[w->queue].in_order && p->taken_for == w->queue) || p->behind == w->queue;
        if (p->taken && p->owner != w->owner && !later_of_queue)
            return "work runs on memory that is another block's by now";
        if (p->acquired[WRITE] > w->time) return "work runs after the CPU has written";
        /* Of a former owner's work: what a block holds at first is undefined, so reading it early does no harm. */
        if (w->mode == WRITE && p->owner == w->owner && p->acquired[READ] > w->time)
            return "work writes after the CPU has read";
    }
    return NULL;
}

/* ----------------------------------------------------------------- what the driver was asked for */

/* What the other queue had freed until then this one may have, too, and others perhaps only when it has passed itself. */
static void take_over(model *m, uint8_t q, uint32_t position) {
    for (size_t i = 0; i < PLACES; i++) {
        model_place *p = &m->places[i];
        if (p->taken || p->own != other(q) || p->needs[p->own] > position || !m->queues[q].in_order) continue;
        p->also = q;
        p->also_from = m->queues[q].submitted;
        p->surely_own = false;
        p->needed[q] = true;
    }
}

static const char *note_wait(model *m, step s, answer seen) {
    const bool wanted = s.kind == STEP_WAIT && s.mode == READ;
    if (!seen.waits) return wanted ? "a queue is not made to wait" : NULL;
    model_queue *queue = &m->queues[seen.waiter];
    const bool by_alloc = s.kind == STEP_ALLOC && m->variant == VARIANT_BEHIND;
    if ((!wanted && !by_alloc) || seen.waiter != s.queue) return "a queue is made to wait that nobody asked to";
    if (wanted && seen.wait_for != m->queues[other(s.queue)].submitted) return "a queue waits for something else";
    if (queue->wait_count == WAITS) return "a queue is made to wait again and again";
    queue->waits[queue->wait_count++] = (model_wait){++queue->submitted, seen.wait_for};
    if (by_alloc) take_over(m, s.queue, seen.wait_for);
    return NULL;
}

/* While the CPU holds a block it is mapped so that the device gets what is written, and only then. */
static const char *note_mapping(model *m, answer seen) {
    for (size_t p = 0; p < PLACES; p++)
        m->places[p].mapped = seen.mapped[p];
    for (size_t i = 0; i < BLOCKS; i++) {
        const model_block *b = &m->blocks[i];
        if (!b->live) continue;
        const uint8_t mapped = seen.mapped[b->place];
        const bool held = m->variant == VARIANT_MAPPED && b->holds[READ] + b->holds[WRITE] != 0;
        if (!held && mapped != 0) return "a block is mapped that the CPU does not hold";
        if (held && b->holds[WRITE] != 0 && (mapped & WRITE) == 0) return "the CPU writes what is not mapped for that";
        if (held && b->holds[WRITE] == 0 && mapped != READ)
            return "what the CPU has written is kept from the device, or what it reads is not mapped";
    }
    return NULL;
}

static const char *take_step(model *m, step s, answer seen);

const char *model_take(model *m, step s, answer seen) {
    const char *complaint = note_wait(m, s, seen);
    if (!complaint) complaint = take_step(m, s, seen);
    return complaint ? complaint : note_mapping(m, seen);
}

static const char *take_step(model *m, step s, answer seen) {
    m->thread_chosen = m->thread_chosen || s.kind == STEP_USE;
    m->block_chosen = m->block_chosen || (m->begun && is_of_block(s));
    sealing how = {.queue = s.queue, .position = m->queues[s.queue == NONE ? 0 : s.queue].submitted};
    switch (s.kind) {
    case STEP_ALLOC:
        return take_alloc(m, s, seen);
    case STEP_FREE:
        return take_free(m, s, seen);
    case STEP_USE:
        return take_use(m, s, seen);
    case STEP_ACQUIRE:
        return take_acquire(m, s, seen);
    default:
        break;
    }
    if (seen.kind != ANSWER_OK) return "a step fails that always succeeds";
    switch (s.kind) {
    case STEP_HAND_IN:
        return take_hand_in(m, s);
    case STEP_RUN:
        return take_run(m, s);
    case STEP_UNRELATED:
        m->queues[s.queue].submitted++;
        return NULL;
    case STEP_SEAL_EVENT:
        how.position = model_event(m, s.queue);
        each_use(m, seal, &how);
        return NULL;
    case STEP_SEAL:
        each_use(m, seal, &how);
        return NULL;
    case STEP_RELEASE:
        m->blocks[s.block].holds[s.mode]--;
        return NULL;
    case STEP_WAIT:
        return NULL;
    default:
        return take_complete(m, s);
    }
}

/* --------------------------------------------------------------------------- digest */

static void mix(uint64_t *digest, uint64_t value) {
    *digest = (*digest ^ value) * 0x100000001b3u;
    *digest ^= *digest >> 29;
}

/* Positions that are reached are all alike. */
static uint64_t ahead(const model *m, uint8_t q, uint32_t position) {
    if (position == OPEN) return 255;
    return q == NONE || reached(m, q, position) ? 0 : position - m->queues[q].completed;
}

static void mix_uses(const model *m, uint64_t *digest, const use_list *uses) {
    mix(digest, uses->count);
    for (size_t i = 0; i < uses->count; i++) {
        const model_use *u = &uses->list[i];
        mix(digest, (uint64_t)u->queue | (uint64_t)u->mode << 8 | (uint64_t)u->thread << 16 |
                        ahead(m, u->queue, u->sealed) << 24 | ahead(m, u->queue, u->implied) << 32 |
                        ahead(m, u->queue, u->last) << 40 | (uint64_t)(u->last != 0) << 48 | (uint64_t)u->unsure << 49 |
                        (uint64_t)((m->queues[u->queue].submitted - u->opened) & 127) << 50);
    }
}

uint64_t model_digest(const model *m) {
    uint64_t digest = 0xcbf29ce484222325u ^ (uint64_t)m->thread_chosen ^ (uint64_t)m->block_chosen << 1;
    for (uint8_t q = 0; q < QUEUES; q++)
        mix(&digest, m->queues[q].submitted - m->queues[q].completed);
    for (uint8_t q = 0; q < QUEUES; q++)
        for (size_t i = 0; i < m->queues[q].wait_count; i++)
            mix(&digest, (uint64_t)q << 16 | ahead(m, q, m->queues[q].waits[i].position) << 8 |
                             ahead(m, other(q), m->queues[q].waits[i].wait_for));
    for (size_t i = 0; i < PLACES; i++)
        mix(&digest, (uint64_t)m->places[i].mapped | (uint64_t)m->places[i].behind << 8 |
                         (uint64_t)m->places[i].also << 16 | ahead(m, m->places[i].also, m->places[i].also_from) << 24);
    for (size_t i = 0; i < BLOCKS; i++) {
        const model_block *b = &m->blocks[i];
        mix(&digest, b->live);
        if (!b->live) continue;
        mix(&digest, (uint64_t)b->ran | (uint64_t)b->place << 8 | (uint64_t)b->queue << 16 |
                         (uint64_t)b->holds[READ] << 24 | (uint64_t)b->holds[WRITE] << 32 |
                         (uint64_t)b->recycled << 40 | (uint64_t)b->settled << 48);
        mix(&digest, ahead(m, b->queue, b->until) | ahead(m, b->queue, b->settled_at) << 8);
        mix_uses(m, &digest, &b->uses);
    }
    for (size_t i = 0; i < PLACES; i++) {
        const model_place *p = &m->places[i];
        mix(&digest, p->taken);
        if (p->taken) continue;
        mix(&digest, (uint64_t)p->own | ahead(m, 0, p->needs[0]) << 8 | ahead(m, 1, p->needs[1]) << 16 |
                         (uint64_t)p->needed[0] << 24 | (uint64_t)p->needed[1] << 25 | (uint64_t)p->surely_own << 26);
        mix_uses(m, &digest, &p->parked);
    }
    for (size_t i = 0; i < WORKS; i++) {
        const model_work *w = &m->works[i];
        if (!w->here) continue;
        const model_place *p = &m->places[w->place];
        mix(&digest, (uint64_t)w->handed_in | (uint64_t)w->queue << 8 | (uint64_t)w->place << 16 |
                         (uint64_t)w->mode << 24 | (uint64_t)w->thread << 32 | (uint64_t)(p->owner == w->owner) << 40 |
                         (uint64_t)(p->acquired[WRITE] > w->time) << 41 |
                         (uint64_t)(p->acquired[READ] > w->time) << 42);
        mix(&digest, ahead(m, w->queue, w->handed_in ? w->position : OPEN));
    }
    return digest;
}
