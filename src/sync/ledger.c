/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ledgers: what waits, by whom it is waited for.
 *
 * Each engine has one, made when something first needs to wait: the frees that
 * are parked, and a note of each in-order queue whose tag it serves. What such
 * a queue frees the engine counts by epochs; a poll closes the epoch, lets a
 * marker be recorded behind it, and tells the engine when that has passed. Two
 * epochs wait at most, so that polls in quick succession do not cost a marker
 * each. The imports of a device have a ledger too, with nothing but frees.
 *
 * One thread polls a ledger at a time. It takes the list of frees away, asks
 * the drivers, and puts back what must wait longer; what has passed it finishes
 * after it has stopped being the poller, because that calls drivers, deleters
 * and engines, which may come back here.
 */
#include <stdlib.h>

#include "sync/internal.h"

#define BUCKETS 64u
#define POLL_AFTER 32u               /* frees parked without anyone polling */
#define LEAVING_PATIENCE 1000000000u /* 1 s for threads that are at work on a ledger which is dropped */

static struct {
    onuma__os_lock lock; /* guards the buckets and the ledgers' next */
    onuma__ledger *buckets[BUCKETS];
} map;

static _Atomic uint32_t waiting_imports; /* relaxed: only spares tidy the map when there are none */
static _Atomic bool lost_track;          /* relaxed: never cleared */

void onuma__ledgers_lose_track(void) {
    atomic_store_explicit(&lost_track, true, memory_order_relaxed);
}

/* ------------------------------------------------------------------- finding them */

static onuma__ledger **bucket(const void *key) {
    uint64_t x = (uint64_t)(uintptr_t)key * 0x9e3779b97f4a7c15u;
    return &map.buckets[x >> 58];
}

onuma__ledger *onuma__ledger_get(const void *key, onuma__engine *engine, bool create) {
    onuma__ledger *fresh = NULL;
    for (;;) {
        onuma__os_lock_acquire(&map.lock);
        onuma__ledger *ledger = *bucket(key);
        while (ledger && ledger->key != key)
            ledger = ledger->next;
        if (!ledger && fresh) {
            fresh->next = *bucket(key);
            *bucket(key) = fresh;
            ledger = fresh;
            fresh = NULL;
        }
        if (ledger) atomic_fetch_add_explicit(&ledger->references, 1, memory_order_relaxed);
        onuma__os_lock_release(&map.lock);
        free(fresh);
        if (ledger || !create) return ledger;
        fresh = calloc(1, sizeof *fresh);
        if (!fresh) return NULL;
        atomic_init(&fresh->references, 1);
        fresh->key = key;
        fresh->engine = engine;
    }
}

void onuma__ledger_put(onuma__ledger *ledger) {
    /* Release: what this thread did on it comes before its end. It is freed by the dropping thread alone. */
    atomic_fetch_sub_explicit(&ledger->references, 1, memory_order_release);
}

/* The first ledger of imports with a key above `after`, counted. */
static onuma__ledger *next_imports(uintptr_t after) {
    onuma__ledger *best = NULL;
    onuma__os_lock_acquire(&map.lock);
    for (size_t i = 0; i < BUCKETS; i++)
        for (onuma__ledger *ledger = map.buckets[i]; ledger; ledger = ledger->next)
            if (!ledger->engine && (uintptr_t)ledger->key > after &&
                (!best || (uintptr_t)ledger->key < (uintptr_t)best->key))
                best = ledger;
    if (best) atomic_fetch_add_explicit(&best->references, 1, memory_order_relaxed);
    onuma__os_lock_release(&map.lock);
    return best;
}

void onuma__sync_tidy(void) {
    onuma__queues_tidy();
    if (atomic_load_explicit(&waiting_imports, memory_order_relaxed) == 0) return;
    uintptr_t after = 0;
    for (onuma__ledger *ledger; (ledger = next_imports(after)) != NULL;) {
        after = (uintptr_t)ledger->key;
        (void)onuma__ledger_poll(ledger);
        onuma__ledger_put(ledger);
    }
}

/* ----------------------------------------------------------------------- the poller */

static uint64_t self(void) {
    uint64_t number = onuma__os_thread_get()->number;
    return number ? number : UINT64_MAX;
}

bool onuma__ledger_claim(onuma__ledger *ledger) {
    onuma__backoff backoff;
    onuma__backoff_start(&backoff, ONUMA_TIMEOUT_INFINITE);
    for (;;) {
        onuma__os_lock_acquire(&ledger->lock);
        uint64_t poller = ledger->poller;
        if (poller == 0) ledger->poller = self();
        onuma__os_lock_release(&ledger->lock);
        if (poller == 0) return true;
        if (poller == self()) return false;
        (void)onuma__backoff_pause(&backoff);
    }
}

void onuma__ledger_unclaim(onuma__ledger *ledger) {
    onuma__os_lock_acquire(&ledger->lock);
    ledger->poller = 0;
    onuma__os_lock_release(&ledger->lock);
}

/* The poller's: ask about one waiting epoch. Returns whether the engine got anything from it. */
static bool poll_epoch(onuma__ledger *ledger, onuma__note *note, size_t i, uint64_t pass, onuma__dead *dead) {
    onuma__join joined = ONUMA__JOINED;
    if (!note->epochs[i].marker) joined = onuma__marker_join(note->queue, &note->epochs[i].marker);
    if (joined == ONUMA__NO_MEMORY) return false;
    uint32_t state = joined == ONUMA__JOINED ? onuma__marker_poll(note->epochs[i].marker, pass) : ONUMA__MARKER_PASSED;
    if (state == ONUMA__MARKER_LOST && !note->epochs[i].lost) {
        note->epochs[i].lost = true;
        atomic_fetch_add_explicit(&ledger->lost_epochs, 1, memory_order_relaxed);
    }
    if (state != ONUMA__MARKER_PASSED) return false;
    onuma__marker_release(note->epochs[i].marker, dead);
    note->epochs[i].marker = NULL;
    note->epochs[i].waits = false;
    atomic_fetch_sub_explicit(&ledger->epochs, 1, memory_order_relaxed);
    return onuma__engine_tag_passed(ledger->engine, note->queue->shared.tag, note->epochs[i].number);
}

/* The poller's: what was freed under the tag so far waits in a place of its own. false: nothing does. */
static bool close_epoch(onuma__ledger *ledger, onuma__note *note, size_t i) {
    note->epochs[i].waits = onuma__engine_tag_close(ledger->engine, note->queue->shared.tag, &note->epochs[i].number);
    if (note->epochs[i].waits) atomic_fetch_add_explicit(&ledger->epochs, 1, memory_order_relaxed);
    return note->epochs[i].waits;
}

static bool poll_note(onuma__ledger *ledger, onuma__note *note, uint64_t pass, onuma__dead *dead) {
    bool progress = false, waits = false;
    bool gone =
        onuma__queue_is_gone(note->queue); /* before the epoch is closed: afterwards nothing can be freed under it */
    for (size_t i = 0; i < ONUMA__EPOCHS; i++)
        if (note->epochs[i].waits && poll_epoch(ledger, note, i, pass, dead)) progress = true;
    /* What was freed since is asked about at once, too: its queue may have come so far. */
    for (size_t i = 0; i < ONUMA__EPOCHS; i++)
        if (!note->epochs[i].waits) {
            if (close_epoch(ledger, note, i) && poll_epoch(ledger, note, i, pass, dead)) progress = true;
            break;
        }
    for (size_t i = 0; i < ONUMA__EPOCHS; i++)
        waits = waits || note->epochs[i].waits;
    /* Blocks and cached slabs of a queue that is gone may still come free under its tag, and only we can say then that it
     * has passed. */
    note->over = gone && !waits && !onuma__engine_tag_known(ledger->engine, note->queue->shared.tag);
    return progress;
}

/* Frees sorted by what became of them. */
typedef struct outcome {
    onuma__record *ready, *waiting, *lost;
    uint64_t lost_count;
} outcome;

static void push(onuma__record **list, onuma__record *record) {
    record->next = *list;
    *list = record;
}

static outcome sort(onuma__record *records, uint64_t pass) {
    outcome out = {0};
    while (records) {
        onuma__record *record = records;
        records = record->next;
        switch (onuma__free_check(record, pass)) {
        case ONUMA__FREE_NOW:
            push(&out.ready, record);
            break;
        case ONUMA__FREE_WAITS:
            push(&out.waiting, record);
            break;
        default:
            push(&out.lost, record);
            out.lost_count++;
        }
    }
    return out;
}

static void append(onuma__record **list, onuma__record *records) {
    while (*list)
        list = &(*list)->next;
    *list = records;
}

static onuma__note *unlink_over(onuma__ledger *ledger) {
    onuma__note *over = NULL;
    for (onuma__note **at = &ledger->notes; *at;) {
        onuma__note *note = *at;
        if (note->over) {
            *at = note->next;
            note->next = over;
            over = note;
        } else {
            at = &note->next;
        }
    }
    return over;
}

static void destroy_notes(onuma__note *notes, onuma__dead *dead) {
    while (notes) {
        onuma__note *note = notes;
        notes = note->next;
        for (size_t i = 0; i < ONUMA__EPOCHS; i++)
            onuma__marker_release(note->epochs[i].marker, dead);
        onuma__marker_release(note->final, dead);
        onuma__queue_drop(note->queue, dead);
        free(note);
    }
}

static void finish(onuma__ledger *ledger, onuma__record *ready) {
    while (ready) {
        onuma__record *record = ready;
        ready = record->next;
        onuma__free_finish(record);
        if (!ledger->engine) atomic_fetch_sub_explicit(&waiting_imports, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&ledger->completions, 1, memory_order_relaxed);
        /* Release: whoever sees the count at zero sees all of it finished. */
        atomic_fetch_sub_explicit(&ledger->pending, 1, memory_order_release);
    }
}

/* Someone waits: let the program bring its queues on, where it said how. */
static void urge(onuma__ledger *ledger) {
    onuma__urge queues = {0};
    onuma__dead dead = {0};
    if (!onuma__ledger_claim(ledger)) return;
    onuma__os_lock_acquire(&ledger->lock);
    onuma__note *notes = ledger->notes;
    onuma__record *records = ledger->waiting;
    onuma__os_lock_release(&ledger->lock);
    for (onuma__note *note = notes; note; note = note->next)
        onuma__urge_add(&queues, note->queue);
    for (onuma__record *record = records; record; record = record->next) {
        for (size_t i = 0; i < 2; i++)
            if (record->need[i].queue) onuma__urge_add(&queues, record->need[i].queue);
        for (onuma__use *use = record->uses; use; use = use->next)
            onuma__urge_add(&queues, use->queue);
    }
    onuma__ledger_unclaim(ledger);
    onuma__urge_call(&queues, true, &dead);
    onuma__dead_bury(&dead);
}

bool onuma__ledger_poll(onuma__ledger *ledger) {
    uint64_t before = atomic_load_explicit(&ledger->completions, memory_order_relaxed);
    uint64_t pass = onuma__marker_new_pass();
    onuma__dead dead = {0};
    bool progress = false;
    if (!onuma__ledger_claim(ledger)) return false;
    onuma__ledger_recall(ledger, &dead);
    onuma__os_lock_acquire(&ledger->lock);
    onuma__record *records = ledger->waiting;
    ledger->waiting = NULL;
    onuma__note *notes = ledger->notes;
    ledger->parked_since_poll = 0;
    onuma__os_lock_release(&ledger->lock);

    for (onuma__note *note = notes; note; note = note->next)
        if (poll_note(ledger, note, pass, &dead)) progress = true;
    if (progress) atomic_fetch_add_explicit(&ledger->completions, 1, memory_order_relaxed);
    outcome sorted = sort(records, pass);

    onuma__os_lock_acquire(&ledger->lock);
    append(&sorted.waiting, ledger->waiting);
    ledger->waiting = sorted.waiting;
    append(&sorted.lost, ledger->quarantine);
    ledger->quarantine = sorted.lost;
    ledger->quarantined += sorted.lost_count;
    onuma__note *over = unlink_over(ledger);
    ledger->poller = 0;
    onuma__os_lock_release(&ledger->lock);

    finish(ledger, sorted.ready);
    destroy_notes(over, &dead);
    onuma__dead_bury(&dead);
    return atomic_load_explicit(&ledger->completions, memory_order_relaxed) != before;
}

/* ---------------------------------------------------------------------- what comes in */

void onuma__ledger_park(onuma__ledger *ledger, onuma__record *record) {
    atomic_fetch_add_explicit(&ledger->pending, 1, memory_order_relaxed);
    if (!ledger->engine) atomic_fetch_add_explicit(&waiting_imports, 1, memory_order_relaxed);
    onuma__os_lock_acquire(&ledger->lock);
    push(&ledger->waiting, record);
    bool due = ++ledger->parked_since_poll >= POLL_AFTER;
    onuma__os_lock_release(&ledger->lock);
    if (due) (void)onuma__ledger_poll(ledger);
}

static onuma_result note_slowly(onuma__engine *engine, onuma__queue_object *queue) {
    onuma__ledger *ledger = onuma__ledger_get(engine, engine, true);
    onuma__note *fresh = calloc(1, sizeof *fresh);
    if (!ledger || !fresh) {
        if (ledger) onuma__ledger_put(ledger);
        free(fresh);
        return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory to note that a pool serves queue 0x%llx",
                           (unsigned long long)queue->shared.native);
    }
    onuma__os_lock_acquire(&ledger->lock);
    onuma__note *note = ledger->notes;
    while (note && note->queue != queue)
        note = note->next;
    if (!note) {
        fresh->queue = onuma__queue_retain(queue);
        fresh->next = ledger->notes;
        ledger->notes = fresh;
        fresh = NULL;
    }
    onuma__os_lock_release(&ledger->lock);
    onuma__ledger_put(ledger);
    free(fresh);
    return ONUMA_OK;
}

onuma_result onuma__sync_note(onuma__engine *engine, onuma__queue *shared) {
    onuma__queue_object *queue = onuma__queue_of(shared);
    size_t i = ((uintptr_t)engine >> 6) % ONUMA__QUEUE_NOTED;
    /* Relaxed: the engine is alive, and hints to it are cleared before another can get its address. */
    if (ONUMA__LIKELY(atomic_load_explicit(&queue->noted[i], memory_order_relaxed) == engine)) return ONUMA_OK;
    onuma_result r = queue->in_order || !ONUMA__RULE(UNORDERED) ? note_slowly(engine, queue) : ONUMA_OK;
    if (r == ONUMA_OK) atomic_store_explicit(&queue->noted[i], engine, memory_order_relaxed);
    return r;
}

/* ------------------------------------------------------------------------- the engine's side */

static onuma_result begin(const void *key, onuma__engine *engine) {
    onuma__ledger *ledger = onuma__ledger_get(key, engine, true);
    if (!ledger) return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory to wait for queues with");
    onuma__ledger_put(ledger);
    return ONUMA_OK;
}

onuma_result onuma__sync_begin_engine(onuma__engine *engine) {
    return begin(engine, engine);
}

onuma_result onuma__sync_begin_import(onuma__owner *owner) {
    owner->reserve = calloc(1, sizeof(onuma__record));
    if (!owner->reserve) return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory to wait for queues with");
    return begin(owner->device, NULL);
}

void onuma__sync_end_import(onuma__owner *owner) {
    free(owner->reserve);
}

void onuma__sync_end_imports(onuma__device *device) {
    onuma__ledger *ledger = onuma__ledger_get(device, NULL, false);
    if (ledger) (void)onuma__ledger_drop(ledger, NULL, false, 0);
}

bool onuma__sync_poll(onuma__engine *engine) {
    onuma__ledger *ledger = onuma__ledger_get(engine, engine, false);
    bool progress = false;
    if (ledger) {
        progress = onuma__ledger_poll(ledger);
        onuma__ledger_put(ledger);
    }
    onuma__sync_tidy();
    return progress;
}

/* Something waits that can still pass. What is stranded after a poll can only if there is memory again. */
static bool hopeful(onuma__ledger *ledger, bool for_memory) {
    onuma__os_lock_acquire(&ledger->lock);
    uint64_t lost = ledger->quarantined + (for_memory ? 0 : ledger->stranded);
    onuma__os_lock_release(&ledger->lock);
    return atomic_load_explicit(&ledger->pending, memory_order_relaxed) > lost ||
           atomic_load_explicit(&ledger->epochs, memory_order_relaxed) >
               atomic_load_explicit(&ledger->lost_epochs, memory_order_relaxed);
}

bool onuma__sync_wait(onuma__engine *engine, uint64_t timeout_ns) {
    onuma__ledger *ledger = onuma__ledger_get(engine, engine, false);
    onuma__backoff backoff;
    bool progress = false;
    if (!ledger) return false;
    onuma__backoff_start(&backoff, timeout_ns);
    do {
        progress = onuma__ledger_poll(ledger);
        if (progress) break;
        urge(ledger);
        progress = onuma__ledger_poll(ledger);
        /* All epochs may have passed with nothing left in them, and what was freed since is in none yet: close it. */
        if (!progress && !hopeful(ledger, false)) progress = onuma__ledger_poll(ledger);
    } while (!progress && hopeful(ledger, false) && onuma__backoff_pause(&backoff));
    onuma__ledger_put(ledger);
    return progress;
}

uint64_t onuma__sync_pending(onuma__engine *engine) {
    onuma__ledger *ledger = onuma__ledger_get(engine, engine, false);
    if (!ledger) return 0;
    (void)onuma__ledger_poll(ledger);
    uint64_t pending = atomic_load_explicit(&ledger->pending, memory_order_acquire) +
                       atomic_load_explicit(&ledger->epochs, memory_order_relaxed);
    onuma__ledger_put(ledger);
    return pending;
}

/* ------------------------------------------------------------------------------- the end */

/* Markers behind all work of the queues that the engine serves: blocks may still live that only their tags tell of. */
static bool join_finals(onuma__ledger *ledger) {
    bool all = true;
    if (!onuma__ledger_claim(ledger)) return false;
    for (onuma__note *note = ledger->notes; note; note = note->next)
        if (!note->final && onuma__marker_join(note->queue, &note->final) == ONUMA__NO_MEMORY) all = false;
    onuma__ledger_unclaim(ledger);
    return all;
}

/* The state that the worst of them is in. */
static onuma__free_state poll_finals(onuma__ledger *ledger) {
    onuma__free_state state = ONUMA__FREE_NOW;
    uint64_t pass = onuma__marker_new_pass();
    if (!onuma__ledger_claim(ledger)) return ONUMA__FREE_WAITS;
    for (onuma__note *note = ledger->notes; note; note = note->next) {
        uint32_t at = note->final ? onuma__marker_poll(note->final, pass) : ONUMA__MARKER_PASSED;
        if (at == ONUMA__MARKER_LOST)
            state = ONUMA__FREE_LOST;
        else if (at != ONUMA__MARKER_PASSED && state == ONUMA__FREE_NOW)
            state = ONUMA__FREE_WAITS;
    }
    onuma__ledger_unclaim(ledger);
    return state;
}

static void unlink_ledger(onuma__ledger *ledger) {
    onuma__os_lock_acquire(&map.lock);
    onuma__ledger **at = bucket(ledger->key);
    while (*at != ledger)
        at = &(*at)->next;
    *at = ledger->next;
    onuma__os_lock_release(&map.lock);
}

/* What can never be told to have passed: its driver's views are left alone, like the memory. */
static void forget(onuma__ledger *ledger, onuma__record *records, onuma__dead *dead) {
    while (records) {
        onuma__record *record = records;
        records = record->next;
        if (!ledger->engine) atomic_fetch_sub_explicit(&waiting_imports, 1, memory_order_relaxed);
        if (atomic_load_explicit(&record->pins, memory_order_acquire) == 0) onuma__record_destroy(record, dead);
    }
}

bool onuma__ledger_drop(onuma__ledger *ledger, onuma__record *orphans, bool live, uint64_t timeout_ns) {
    onuma__dead dead = {0};
    onuma__backoff backoff;
    onuma__free_state state = ONUMA__FREE_WAITS;
    while (orphans) {
        onuma__record *record = orphans;
        orphans = record->next;
        onuma__free_seal(record, &dead);
        onuma__ledger_park(ledger, record);
    }
    bool all = !live || join_finals(ledger);
    onuma__backoff_start(&backoff, timeout_ns);
    do {
        (void)onuma__ledger_poll(ledger);
        state = poll_finals(ledger);
        if (state == ONUMA__FREE_NOW && atomic_load_explicit(&ledger->pending, memory_order_acquire) != 0)
            state = hopeful(ledger, true) ? ONUMA__FREE_WAITS : ONUMA__FREE_LOST;
    } while (state == ONUMA__FREE_WAITS && onuma__backoff_pause(&backoff));

    if (ledger->engine) onuma__queues_forget_engine(ledger->engine);
    unlink_ledger(ledger);
    /* Others are on their way out: none can find it any more. The map's and ours remain. Acquire: see put. */
    bool alone;
    onuma__backoff_start(&backoff, LEAVING_PATIENCE);
    do
        alone = atomic_load_explicit(&ledger->references, memory_order_acquire) <= 2;
    while (!alone && onuma__backoff_pause(&backoff));
    forget(ledger, ledger->waiting, &dead);
    forget(ledger, ledger->quarantine, &dead);
    destroy_notes(ledger->notes, &dead);
    if (alone) free(ledger); /* else a thread that fork() left behind has it for ever */
    onuma__dead_bury(&dead);
    return all && state == ONUMA__FREE_NOW && !atomic_load_explicit(&lost_track, memory_order_relaxed);
}

static bool drop_engine(onuma__engine *engine, bool live, uint64_t timeout_ns) {
    onuma__record *orphans = onuma__records_detach(engine, NULL);
    onuma__ledger *ledger = onuma__ledger_get(engine, engine, orphans != NULL);
    if (!ledger && orphans) { /* no memory to wait with: nothing is known of them from here on */
        onuma__ledgers_lose_track();
        return false;
    }
    if (!ledger) return !atomic_load_explicit(&lost_track, memory_order_relaxed);
    return onuma__ledger_drop(ledger, orphans, live, timeout_ns);
}

bool onuma__sync_drop_engine(onuma__engine *engine, uint64_t timeout_ns) {
    return drop_engine(engine, true, timeout_ns);
}

bool onuma__sync_drop_idle_engine(onuma__engine *engine) {
    return drop_engine(engine, false, 0);
}

/* ---------------------------------------------------------------------------------- fork */

void onuma__ledgers_fork(onuma__fork_step step) {
    if (step == ONUMA__FORK_BEFORE) onuma__os_lock_acquire(&map.lock);
    for (size_t i = 0; i < BUCKETS; i++)
        for (onuma__ledger *ledger = map.buckets[i]; ledger; ledger = ledger->next) {
            if (step == ONUMA__FORK_BEFORE) onuma__os_lock_acquire(&ledger->lock);
            if (step == ONUMA__FORK_CHILD) ledger->poller = 0; /* that thread does not exist here */
            if (step != ONUMA__FORK_BEFORE) onuma__os_lock_release(&ledger->lock);
        }
    if (step != ONUMA__FORK_BEFORE) onuma__os_lock_release(&map.lock);
}
