/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/ration.h"

/* Calls that reclaiming may bring a range to: so many at once, and one for so many operations. */
#define CALLS_FREE 256
#define OPERATIONS_A_CALL 128

/* Segments are kept whole while there was at most one call for so many operations. */
#define OPERATIONS_A_CALL_WHOLE 400

/* Then a thirty-second of what was ever in use may be left over of one, or this. */
#define BROKEN_SHARE 32
#define BROKEN_LEAST ((size_t)1 << 20)

static uint64_t counted(const _Atomic uint64_t *a, const _Atomic uint64_t *b) {
    return atomic_load_explicit(a, memory_order_relaxed) + atomic_load_explicit(b, memory_order_relaxed);
}

static uint64_t operations(const onuma__engine *engine) {
    return counted(&engine->totals.allocs, &engine->totals.frees);
}

bool onuma__ration_reclaim(const onuma__engine *engine) {
    return counted(&engine->commits, &engine->decommits) < CALLS_FREE + operations(engine) / OPERATIONS_A_CALL;
}

size_t onuma__ration_broken(const onuma__engine *engine) {
    if (engine->range) return SIZE_MAX;
    const uint64_t calls = counted(&engine->segment_allocs, &engine->segment_frees);
    if (calls >= operations(engine) / OPERATIONS_A_CALL_WHOLE) return SIZE_MAX;
    const size_t share = (size_t)atomic_load_explicit(&engine->totals.in_use.peak, memory_order_relaxed) / BROKEN_SHARE;
    return share > BROKEN_LEAST ? share : BROKEN_LEAST;
}
