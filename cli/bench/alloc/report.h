/* SPDX-License-Identifier: Apache-2.0 */
/* What was measured, as one JSON object or as a table. */
#ifndef CLI_BENCH_ALLOC_REPORT_H
#define CLI_BENCH_ALLOC_REPORT_H

#include "bench/alloc/measure.h"

typedef struct bench_report {
    const bench_plan *plan;
    bool by_cpu; /* CPU time counts, not the clock on the wall */
    size_t depth;
    const bench_allocator *allocators;
    size_t allocator_count;
    const char *lacking; /* peers that could not be there, "" if none */
    const bench_outcome *outcomes;
    size_t outcome_count;
} bench_report;

void bench_report_json(const bench_report *report);
void bench_report_text(const bench_report *report);

#endif
