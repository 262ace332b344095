/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's callbacks for CUDA, on the public functions alone.
 *
 * Everything here is made when it is first needed and never destroyed: PyTorch frees tensors while the interpreter ends,
 * after all that could clean up has run. Threads that race to make the same thing each make one, and one of them wins;
 * so no lock is held while a driver is called.
 */
#include "opennuma/torch.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_DEVICES = 64, STREAM_SLOTS = 1024 /* a power of two */ };

/* A slot is taken by the stream that first sets `stream`; `queue` follows. Both release when set, acquire when read. */
typedef struct stream_slot {
    _Atomic uintptr_t stream; /* its handle + 1; 0: free */
    _Atomic(onuma_queue *) queue;
} stream_slot;

typedef struct device_state {
    onuma_device *device;
    onuma_pool *pool; /* of kind device */
    stream_slot streams[STREAM_SLOTS];
} device_state;

static _Atomic(onuma_runtime *) runtime; /* acquire and release, as the ones below */
static _Atomic(device_state *) devices[MOST_DEVICES];

/* ------------------------------------------------------- what is made once */

static onuma_runtime *get_runtime(void) {
    onuma_runtime *have = atomic_load_explicit(&runtime, memory_order_acquire), *made;
    if (have != NULL) return have;
    if (onuma_runtime_create(NULL, &made) != ONUMA_OK) return NULL;
    if (atomic_compare_exchange_strong_explicit(&runtime, &have, made, memory_order_acq_rel, memory_order_acquire))
        return made;
    onuma_runtime_destroy(made);
    return have;
}

static device_state *make_device(int ordinal) {
    onuma_runtime *rt = get_runtime();
    device_state *made = rt != NULL ? calloc(1, sizeof *made) : NULL;
    if (made == NULL) return NULL;
    char id[24];
    (void)snprintf(id, sizeof id, "cuda:%d", ordinal);
    onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
    desc.kind = ONUMA_KIND_DEVICE;
    desc.alignment = 512; /* as PyTorch's own, which its kernels may rely on */
    desc.name = "torch";
    if (onuma_device_find(rt, id, &made->device) == ONUMA_OK &&
        onuma_pool_create(made->device, &desc, &made->pool) == ONUMA_OK)
        return made;
    free(made);
    return NULL;
}

static device_state *get_device(int ordinal) {
    if (ordinal < 0 || ordinal >= MOST_DEVICES) return NULL;
    device_state *have = atomic_load_explicit(&devices[ordinal], memory_order_acquire);
    if (have != NULL) return have;
    device_state *made = make_device(ordinal);
    if (made == NULL) return NULL;
    if (atomic_compare_exchange_strong_explicit(&devices[ordinal], &have, made, memory_order_acq_rel,
                                                memory_order_acquire))
        return made;
    onuma_pool_destroy(made->pool);
    free(made);
    return have;
}

/* ------------------------------------------------------------------ streams */

/* Wrapping twice gives the same object, once more counted: who comes second gives it back. */
static onuma_queue *wrap_into(const device_state *state, stream_slot *slot, const void *stream) {
    onuma_queue *made, *have = NULL;
    if (onuma_queue_wrap(state->device, ONUMA_API_CUDA, (uint64_t)(uintptr_t)stream, NULL, &made) != ONUMA_OK)
        return NULL;
    if (atomic_compare_exchange_strong_explicit(&slot->queue, &have, made, memory_order_acq_rel, memory_order_acquire))
        return made;
    onuma_queue_release(made);
    return have;
}

/* PyTorch has some dozens of streams and destroys none. NULL if the stream cannot be wrapped, or there are too many. */
static onuma_queue *get_queue(device_state *state, const void *stream) {
    const uintptr_t key = (uintptr_t)stream + 1;
    size_t at = (size_t)((uint64_t)key * UINT64_C(0x9E3779B97F4A7C15) >> 32);
    for (size_t i = 0; i < STREAM_SLOTS; i++) {
        stream_slot *slot = &state->streams[(at + i) % STREAM_SLOTS];
        uintptr_t is = atomic_load_explicit(&slot->stream, memory_order_acquire);
        if (is == 0 && atomic_compare_exchange_strong_explicit(&slot->stream, &is, key, memory_order_acq_rel,
                                                               memory_order_acquire))
            is = key;
        if (is != key) continue;
        onuma_queue *queue = atomic_load_explicit(&slot->queue, memory_order_acquire);
        return queue != NULL ? queue : wrap_into(state, slot, stream);
    }
    return NULL;
}

/* ----------------------------------------------------- blocks of many streams */

/*
 * Which blocks other streams use, from record_stream until they are freed. Few ever are, so one list under one lock does;
 * a free looks there only while it has any.
 */
typedef struct record {
    void *ptr, *stream;
    struct record *next;
} record;

static atomic_flag records_lock = ATOMIC_FLAG_INIT;
static record *records; /* under the lock */
static _Atomic size_t
    records_count; /* relaxed: who frees a block comes after who recorded it, by PyTorch's own order */

static void lock_records(void) {
    while (atomic_flag_test_and_set_explicit(&records_lock, memory_order_acquire)) {
    }
}
static void unlock_records(void) {
    atomic_flag_clear_explicit(&records_lock, memory_order_release);
}

/* All of a block's, off the list. */
static record *take_records(const void *ptr) {
    record *taken = NULL;
    lock_records();
    for (record **at = &records; *at != NULL;) {
        record *one = *at;
        if (one->ptr != ptr) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        one->next = taken;
        taken = one;
        atomic_fetch_sub_explicit(&records_count, 1, memory_order_relaxed);
    }
    unlock_records();
    return taken;
}

/* Each stream's work so far counts as a use of the block. */
static void announce_records(device_state *state, void *ptr) {
    record *one = take_records(ptr);
    while (one != NULL) {
        record *next = one->next;
        onuma_queue *queue = get_queue(state, one->stream);
        if (queue != NULL && onuma_use(queue, ptr, ONUMA_ACCESS_READ_WRITE) == ONUMA_OK)
            (void)onuma_submitted(queue, NULL);
        free(one);
        one = next;
    }
}

/* --------------------------------------------------------------- callbacks */

void *onuma_torch_cuda_alloc(size_t size, int device, void *stream) {
    device_state *state = get_device(device);
    onuma_queue *queue = state != NULL ? get_queue(state, stream) : NULL;
    void *block = NULL;
    if (queue == NULL || onuma_alloc(state->pool, size, 0, queue, &block) != ONUMA_OK) return NULL;
    return block;
}

void onuma_torch_cuda_free(void *ptr, size_t size, int device, void *stream) {
    (void)size;
    device_state *state = get_device(device);
    if (ptr == NULL || state == NULL) return;
    if (atomic_load_explicit(&records_count, memory_order_relaxed) != 0) announce_records(state, ptr);
    (void)onuma_free(ptr, get_queue(state, stream));
}

void onuma_torch_cuda_record_stream(void *ptr, void *stream) {
    record *one = malloc(sizeof *one);
    if (one == NULL) return;
    *one = (record){.ptr = ptr, .stream = stream};
    lock_records();
    one->next = records;
    records = one;
    atomic_fetch_add_explicit(&records_count, 1, memory_order_relaxed);
    unlock_records();
}

void onuma_torch_cuda_init(int device_count) {
    for (int i = 0; i < device_count; i++)
        (void)get_device(i);
}

void onuma_torch_cuda_reset(void) {
    for (int i = 0; i < MOST_DEVICES; i++) {
        const device_state *state = atomic_load_explicit(&devices[i], memory_order_acquire);
        if (state != NULL) (void)onuma_pool_trim(state->pool, 0, NULL);
    }
}

void onuma_torch_cuda_memory_fraction(double fraction, int device) {
    const device_state *state = get_device(device);
    onuma_device_info info = ONUMA_DEVICE_INFO_INIT;
    if (state == NULL || onuma_device_get_info(state->device, &info) != ONUMA_OK) return;
    const bool bounded = fraction > 0 && fraction < 1;
    (void)onuma_pool_set_limit(state->pool, bounded ? (size_t)(fraction * (double)info.memory_total) : 0);
}

void *onuma_torch_cuda_base_alloc(void *ptr, size_t *size) {
    onuma_block_info info = ONUMA_BLOCK_INFO_INIT;
    const bool found = ptr != NULL && onuma_block_get_info(ptr, &info) == ONUMA_OK;
    if (size != NULL) *size = found ? info.size : 0;
    return found ? info.base : NULL;
}

onuma_pool *onuma_torch_cuda_pool(int device) {
    const device_state *state = get_device(device);
    return state != NULL ? state->pool : NULL;
}
