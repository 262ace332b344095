/* SPDX-License-Identifier: Apache-2.0 */
/* A trace's operations, one after the other, on a pool. */
#ifndef CLI_REPLAY_RUN_H
#define CLI_REPLAY_RUN_H

#include "opennuma/opennuma.h"
#include "replay/streams.h"
#include "replay/trace.h"

typedef struct replay_result {
    uint64_t peak_reserved, metadata_peak; /* bytes */
    uint64_t driver_calls;                 /* up to the trace's last operation */
    uint64_t live_at_end;                  /* blocks that the trace leaves alive */
    uint64_t end_reserved;                 /* bytes still held once they are freed and the pool is trimmed */
    uint64_t errors;                       /* calls that failed and blocks that did not hold their bytes */
    double ns_per_op;                      /* without the time that verifying takes */
} replay_result;

/* The first errors are told on standard error with the line of the trace. The pool has no live blocks afterwards. */
void replay_run(const trace *t, double scale, bool verify, onuma_pool *pool, streams *s, replay_result *out);

#endif
