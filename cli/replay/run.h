/* SPDX-License-Identifier: Apache-2.0 */
/* A trace's operations, one after the other, on a pool. */
#ifndef CLI_REPLAY_RUN_H
#define CLI_REPLAY_RUN_H

#include "opennuma/opennuma.h"
#include "replay/series.h"
#include "replay/streams.h"
#include "replay/trace.h"

/* Simulated streams catch up as soon as the library waits for them. With this setting it waits with as much patience as it
 * ever needs, so that a slow moment of the machine does not show in what is measured. */
#define REPLAY_PATIENT "pool.wait:60s"

typedef uint64_t replay_clock(void); /* nanoseconds */

typedef struct replay_result {
    uint64_t peak_reserved, metadata_peak; /* bytes */
    uint64_t driver_calls;                 /* up to the trace's last operation */
    uint64_t live_at_end;                  /* blocks that the trace leaves alive */
    uint64_t freed_reserved;               /* bytes held once they are freed */
    uint64_t decayed_reserved;             /* and once the pool was left alone for as long as was asked for */
    uint64_t end_reserved;                 /* and once it is trimmed */
    uint64_t errors;                       /* calls that failed and blocks that did not hold their bytes */
    double ns_per_op;                      /* without the time that verifying takes */
} replay_result;

/* What is wanted besides. */
typedef struct replay_wishes {
    series *series; /* filled; NULL: not wanted */
    uint64_t alone; /* ns for which the pool is left alone at the end; 0: not at all */
} replay_wishes;

/* Times are taken with `now`. `wishes` NULL: none. The first errors are told on standard error with the line of the trace. The pool has no live blocks afterwards. */
void replay_run(const trace *t, double scale, bool verify, replay_clock *now, onuma_pool *pool, streams *s,
                const replay_wishes *wishes, replay_result *out);

#endif
