/* SPDX-License-Identifier: Apache-2.0 */
/* A model's beginning and end, at which everything must have gone back. */
#include "model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void model_fail(model *m, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    onuma__os_lock_acquire(&m->lock);
    if (!atomic_load(&m->failed)) vsnprintf(m->failure, sizeof m->failure, format, arguments);
    atomic_store(&m->failed, true);
    onuma__os_lock_release(&m->lock);
    va_end(arguments);
}

bool model_open(model *m, const engine_calls *calls, onuma_source mode, unsigned threads, uint64_t seed) {
    *m = (model){.calls = calls, .threads = threads, .seed = seed};
    m->source.real = true;
    m->workers = calloc(threads, sizeof *m->workers);
    for (unsigned i = 0; i < threads; i++) {
        m->workers[i].model = m;
        m->workers[i].index = i;
        m->workers[i].random = seed * 0x2545f4914f6cdd1d + i;
    }
    const onuma__engine_desc desc = {.source = test_source_of(&m->source),
                                     .mode = mode,
                                     .alignment = 16,
                                     .cache_bytes = (size_t)1 << 20,
                                     .chunk_bytes = seed % 4 == 0 ? (size_t)128 * 1024 : 0,
                                     .exact_peaks = seed % 2 != 0,
                                     .owner = m};
    if (onuma__engine_create(&desc, &m->engine) != ONUMA_OK) model_fail(m, "%s", onuma__thread_text());
    return m->engine != NULL;
}

void model_close(model *m) {
    if (m->engine != NULL && !atomic_load(&m->failed)) {
        reference_compare(m);
        uint64_t epoch;
        for (onuma__tag tag = 1; tag < MODEL_TAGS; tag++)
            if (onuma__engine_tag_close(m->engine, tag, &epoch)) onuma__engine_tag_passed(m->engine, tag, epoch);
        m->calls->trim(m->engine, 0);
        onuma_pool_stats s = ONUMA_POOL_STATS_INIT;
        m->calls->get_stats(m->engine, &s);
        if (s.in_use_bytes != 0 || s.reserved_bytes != 0 || s.pending_bytes != 0 || m->source.held != 0)
            model_fail(m, "at the end %llu bytes are in use, %llu pending, %llu reserved",
                       (unsigned long long)s.in_use_bytes, (unsigned long long)s.pending_bytes,
                       (unsigned long long)s.reserved_bytes);
    }
    onuma__engine_destroy(m->engine);
    if (m->source.spans != 0 || m->source.held != 0) model_fail(m, "the source did not get everything back");
    for (unsigned tag = 0; tag < MODEL_TAGS; tag++)
        free(m->tags[tag].entries);
    free(m->workers);
}
