/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace, run through those who compete: this library's pool, with a range or with segments, and a pool made of a
 * std::map's sort and a mutex (bench/map_pool.h). No memory is behind any of them.
 */
#ifndef CLI_BENCH_REPLAY_CONTEST_H
#define CLI_BENCH_REPLAY_CONTEST_H

#include "bench/bench.h"
#include "replay/trace.h"

typedef uint64_t contest_clock(void); /* nanoseconds */

/* The outcome of one run. */
typedef struct contest_figures {
    uint64_t peak_reserved, metadata_peak; /* bytes */
    uint64_t calls;                        /* of the source, to the trace's last operation */
    double ns;                             /* for each operation, the harness's own part taken off */
} contest_figures;

/* Times of single allocations and frees. */
typedef struct contest_latencies {
    uint64_t count, longest;         /* ns; operations that did not call the source */
    uint64_t called, called_longest; /* those that did */
    uint64_t buckets[64];            /* of the first: 2^i to 2^(i+1) ns, i from 0 */
    double percentile; /* the 99.99th, ns: the end of the eighth of a doubling that it lies in, or the longest */
    uint64_t fine[64 * 8];
} contest_latencies;

/* A pool of the library with that source; false, and a line on standard error: it failed. */
bool contest_opennuma(const trace *t, onuma_source source, contest_clock *now, contest_figures *out);
/* Each operation timed by itself, into the sums. */
bool contest_latency(const trace *t, onuma_source source, contest_clock *now, contest_latencies *sums);
void contest_latency_end(contest_latencies *sums);

/* The pool of a map and a mutex. */
bool contest_map_load(void); /* false: its library is not there */
bool contest_map(const trace *t, contest_clock *now, contest_figures *out);

#endif
