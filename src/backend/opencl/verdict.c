/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who looks, when, and once. Each runtime remembers its verdicts by their key; the user's cache remembers them for
 * later runs. A device of ours and one in a context that the program made have the same key if the context is of the
 * same kind, and so the same verdict.
 *
 *     UNKNOWN --first user--> LOOKING --> KNOWN          LOOKING --failed--> UNKNOWN
 *
 * Who comes while somebody looks waits, holding no lock. The log may call the program, which may use this very device
 * on the same thread: that use is refused, since it would wait for itself.
 */
#include "backend/opencl/probe.h"
#include "os/os.h"

#include <stdlib.h>
#include <string.h>

enum { UNKNOWN, LOOKING, KNOWN };

struct onuma__cl_verdict_slot {
    struct onuma__cl_verdict_slot *next;
    onuma__proof_key key;
    _Atomic int state;         /* acquire-release: who sees KNOWN sees the verdict */
    _Atomic uint64_t looker;   /* number of the thread that is LOOKING; relaxed: a thread recognises only itself */
    onuma__cl_verdict verdict; /* constant once KNOWN */
};

/* ------------------------------------------------------------------ the cache */

static bool from_record(const onuma__proof_record *record, uint32_t allowed, onuma__cl_verdict *out) {
    onuma__cl_verdict v = {.proof = ONUMA_PROOF_CACHED,
                           .mapped = record->mapped,
                           .imports = record->imports,
                           .import_zero_copy = record->import_zero_copy,
                           .max_segment = record->max_segment,
                           .notes = record->notes};
    while (v.way < ONUMA__CL_WAYS && strcmp(record->way, onuma__cl_way_names[v.way]) != 0)
        v.way++;
    if (v.way == ONUMA__CL_WAYS || (v.way != ONUMA__CL_NONE && (allowed & 1u << v.way) == 0)) return false;
    if (v.way == ONUMA__CL_NONE) v.proof = ONUMA_PROOF_FAILED;
    memcpy(v.detail, record->detail, sizeof v.detail);
    *out = v;
    return true;
}

static void to_record(const onuma__cl_verdict *v, onuma__proof_record *out) {
    *out = (onuma__proof_record){.mapped = v->mapped,
                                 .imports = v->imports,
                                 .import_zero_copy = v->import_zero_copy,
                                 .max_segment = v->max_segment,
                                 .notes = v->notes};
    memcpy(out->way, onuma__cl_way_names[v->way], strlen(onuma__cl_way_names[v->way]) + 1);
    for (size_t i = 0; i + 1 < sizeof out->detail && v->detail[i] != '\0'; i++) {
        const char c = v->detail[i];
        out->detail[i] = c >= ' ' && c <= '~' ? c : '?'; /* a driver's name may hold anything */
    }
}

/* ------------------------------------------------------------------- the memo */

/* The slot of this device in this kind of context; NULL if memory is out. */
static onuma__cl_verdict_slot *slot_of(onuma_backend_instance *instance, const onuma__cl_facts *facts,
                                       cl_context context) {
    onuma__cl_verdict_slot *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL) return NULL;
    onuma__cl_probe_key(instance, facts, context, &fresh->key);
    onuma__os_lock_acquire(&instance->verdict_lock);
    onuma__cl_verdict_slot *found = fresh->key.overflowed ? NULL : instance->verdicts;
    while (found != NULL && strcmp(found->key.text, fresh->key.text) != 0)
        found = found->next;
    if (found == NULL) {
        fresh->next = instance->verdicts;
        instance->verdicts = fresh;
    }
    onuma__os_lock_release(&instance->verdict_lock);
    if (found == NULL) return fresh;
    free(fresh);
    return found;
}

static bool recall(const onuma_backend_instance *instance, const onuma__cl_facts *facts, onuma__cl_verdict_slot *slot) {
    onuma__proof_record record;
    if (!onuma__cl_probe_is(instance, "cached") || !onuma__proof_recall(instance->host, &slot->key, &record) ||
        !from_record(&record, facts->allowed, &slot->verdict))
        return false;
    atomic_store_explicit(&slot->state, KNOWN, memory_order_release);
    return true;
}

void onuma__cl_verdicts_recall(onuma_backend_instance *instance) {
    if (!onuma__cl_probe_is(instance, "cached")) return;
    for (size_t i = 0; i < instance->device_count; i++) {
        onuma__cl_facts *facts = &instance->devices[i];
        onuma__cl_verdict_slot *slot = slot_of(instance, facts, NULL);
        if (slot == NULL) return; /* the first use will say so */
        if (recall(instance, facts, slot)) onuma__cl_facts_decide(facts, &slot->verdict);
    }
}

void onuma__cl_verdicts_forget(onuma_backend_instance *instance) {
    for (onuma__cl_verdict_slot *slot = instance->verdicts, *next; slot != NULL; slot = next) {
        next = slot->next;
        free(slot);
    }
    instance->verdicts = NULL;
}

/* ---------------------------------------------------------------------- looking */

static onuma_result look(onuma_backend_device *device, onuma__cl_verdict_slot *slot) {
    onuma_backend_instance *instance = device->instance;
    if (recall(instance, &device->facts, slot)) return ONUMA_OK;
    bool lasting;
    onuma_result r = onuma__cl_probe(device, &slot->verdict, &lasting);
    if (r == ONUMA_OK && lasting) {
        onuma__proof_record record;
        to_record(&slot->verdict, &record);
        onuma__proof_keep(instance->host, &slot->key, &record);
    }
    /* Release, with the acquires below: the verdict was written before. */
    atomic_store_explicit(&slot->state, r == ONUMA_OK ? KNOWN : UNKNOWN, memory_order_release);
    return r;
}

onuma_result onuma__cl_verdict_settle(onuma_backend_device *device) {
    if (onuma__cl_probe_is(device->instance, "off")) return ONUMA_OK;
    onuma__cl_verdict_slot *slot = slot_of(device->instance, &device->facts, device->context);
    if (slot == NULL)
        return device->host->fail(ONUMA_ERROR_OUT_OF_MEMORY, "no memory for what is known of OpenCL device \"%s\"",
                                  device->facts.info.name);
    const uint64_t self = onuma__os_thread_get()->number;
    int state;
    while ((state = atomic_load_explicit(&slot->state, memory_order_acquire)) != KNOWN) {
        if (state == UNKNOWN && atomic_compare_exchange_strong_explicit(&slot->state, &state, LOOKING,
                                                                        memory_order_acquire, memory_order_relaxed)) {
            atomic_store_explicit(&slot->looker, self, memory_order_relaxed);
            const onuma_result r = look(device, slot);
            if (r != ONUMA_OK) return r;
        } else if (state == LOOKING && self != 0 && atomic_load_explicit(&slot->looker, memory_order_relaxed) == self) {
            return device->host->fail(ONUMA_ERROR_BUSY,
                                      "device \"%s\" is just being looked at by this very thread; use it after the log "
                                      "callback has returned",
                                      device->facts.info.name);
        } else {
            onuma__os_sleep(500000);
        }
    }
    onuma__cl_facts_decide(&device->facts, &slot->verdict);
    return ONUMA_OK;
}
