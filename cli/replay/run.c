/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/run.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "output.h"
#include "progress.h"
#include "replay/pattern.h"

enum { PROGRESS_EVERY = 4096 };

/* The CPU waits for nothing here that takes long; a wait that does is a defect, to be reported rather than hung in. */
static const uint64_t host_access_timeout = 10000000000u, trim_timeout = 5000000000u;

typedef struct run {
    const trace *trace;
    double scale;
    bool verify;
    replay_clock *now;
    onuma_pool *pool;
    streams *streams;
    void **pointers;    /* by block; NULL: not allocated, or freed */
    bool caught_up;     /* during the present allocation */
    uint64_t verifying; /* ns, also with what the series takes */
    series *series;
    uint64_t errors;
    char first_error[512];
} run;

/* ------------------------------------------------------------------ errors */

static void count_error(run *r, uint32_t line, const char *format, ...) CLI_FORMAT(3);

/* The first one is told, at the end and in one line: the others mostly follow from it. */
static void count_error(run *r, uint32_t line, const char *format, ...) {
    if (r->errors++) return;
    int used = snprintf(r->first_error, sizeof r->first_error, "line %lu of the trace: ", (unsigned long)line);
    va_list arguments;
    va_start(arguments, format);
    if (used > 0) vsnprintf(r->first_error + used, sizeof r->first_error - (size_t)used, format, arguments);
    va_end(arguments);
}

static void tell_errors(const run *r) {
    if (r->errors == 1) cli_error("%s", r->first_error);
    if (r->errors > 1) cli_error("%s (and %llu more errors)", r->first_error, (unsigned long long)(r->errors - 1));
}

static void count_failure(run *r, uint32_t line, const char *call, onuma_result code) {
    const char *detail = onuma_last_error();
    count_error(r, line, "%s: %s: %s", call, onuma_result_name(code), detail[0] ? detail : onuma_result_text(code));
}

/* --------------------------------------------------------------- verifying */

static size_t size_of(const run *r, uint32_t block) {
    return (size_t)trace_scaled(r->trace->blocks[block].size, r->scale);
}

/* The block's bytes belong to the CPU between begin and end. A stream's new block may be memory that the stream has
 * not done with, and a stream on the host is only done when told. */
static bool begin_access(run *r, uint32_t block, uint32_t line, onuma_access mode) {
    onuma_result code = onuma_host_acquire(r->pointers[block], size_of(r, block), mode, 0);
    if (code == ONUMA_ERROR_TIMEOUT) {
        r->streams->operations->catch_up(r->streams);
        code = onuma_host_acquire(r->pointers[block], size_of(r, block), mode, host_access_timeout);
    }
    if (code != ONUMA_OK) count_failure(r, line, "onuma_host_acquire", code);
    return code == ONUMA_OK;
}

static void end_access(run *r, uint32_t block, uint32_t line, onuma_access mode) {
    onuma_result code = onuma_host_release(r->pointers[block], size_of(r, block), mode);
    if (code != ONUMA_OK) count_failure(r, line, "onuma_host_release", code);
}

static void fill(run *r, uint32_t block, uint32_t line) {
    if (!r->verify || !size_of(r, block)) return;
    uint64_t from = r->now();
    if (begin_access(r, block, line, ONUMA_ACCESS_WRITE)) {
        pattern_fill(r->pointers[block], size_of(r, block), block);
        end_access(r, block, line, ONUMA_ACCESS_WRITE);
    }
    r->verifying += r->now() - from;
}

static void check(run *r, uint32_t block, uint32_t line) {
    if (!r->verify || !size_of(r, block)) return;
    uint64_t from = r->now();
    if (begin_access(r, block, line, ONUMA_ACCESS_READ)) {
        size_t at;
        if (!pattern_check(r->pointers[block], size_of(r, block), block, &at))
            count_error(r, line, "block %llu of %zu bytes was overwritten at byte %zu",
                        (unsigned long long)r->trace->blocks[block].id, size_of(r, block), at);
        end_access(r, block, line, ONUMA_ACCESS_READ);
    }
    r->verifying += r->now() - from;
}

/* -------------------------------------------------------------- operations */

/* What the program would wait for when memory is short: that its streams finish what they were given. Once per
 * allocation. */
static bool wait_for_streams(void *user, onuma_pool *pool, size_t size) {
    (void)pool;
    (void)size;
    run *r = user;
    if (r->caught_up) return false;
    r->caught_up = true;
    return r->streams->operations->catch_up(r->streams);
}

static void allocate(run *r, const trace_op *op) {
    r->caught_up = false;
    void **pointer = &r->pointers[op->block];
    onuma_result code = onuma_alloc(r->pool, size_of(r, op->block), 0, r->streams->queues[op->stream], pointer);
    if (code == ONUMA_OK)
        fill(r, op->block, op->line);
    else
        count_failure(r, op->line, "onuma_alloc", code);
}

/* A block whose allocation failed is not there to be freed: that error is counted already. */
static void release(run *r, uint32_t block, uint16_t stream, uint32_t line) {
    void *pointer = r->pointers[block];
    if (!pointer) return;
    check(r, block, line);
    uint32_t later = r->trace->blocks[block].release;
    if (later) {
        onuma_result code = r->streams->operations->later_use(r->streams, pointer, later);
        if (code != ONUMA_OK) count_failure(r, line, "announcing a later queue's use", code);
    }
    onuma_result code = onuma_free(pointer, r->streams->queues[stream]);
    if (code != ONUMA_OK) count_failure(r, line, "onuma_free", code);
    r->pointers[block] = NULL;
}

static void operate(run *r, size_t index) {
    const trace_op *op = &r->trace->ops[index];
    r->streams->operations->advance(r->streams, index);
    switch ((trace_op_kind)op->kind) {
    case TRACE_ALLOC:
        allocate(r, op);
        break;
    case TRACE_FREE:
        release(r, op->block, op->stream, op->line);
        break;
    case TRACE_RELEASE:
        r->streams->operations->release(r->streams, r->trace->blocks[op->block].release);
        break;
    }
}

/* ------------------------------------------------------------------ the end */

static void read_stats(run *r, onuma_pool_stats *stats) {
    *stats = (onuma_pool_stats)ONUMA_POOL_STATS_INIT;
    onuma_result code = onuma_pool_get_stats(r->pool, stats);
    if (code != ONUMA_OK) count_failure(r, 0, "onuma_pool_get_stats", code);
}

static uint64_t free_live_blocks(run *r) {
    const trace *t = r->trace;
    uint32_t last_line = t->ops[t->op_count - 1].line;
    uint64_t count = 0;
    for (uint32_t block = 0; block < t->block_count; block++) {
        count += r->pointers[block] != NULL;
        release(r, block, t->blocks[block].stream, last_line);
    }
    return count;
}

/*
 * What is held after a trim with nothing live. A driver's queue may need a moment to tell that it is through,
 * although all its work is done: hence several tries.
 */
static uint64_t trim(run *r) {
    uint64_t deadline = cli_now() + trim_timeout;
    for (;;) {
        onuma_pool_stats stats;
        onuma_result code = onuma_pool_trim(r->pool, 0, NULL);
        read_stats(r, &stats);
        if (code != ONUMA_OK) count_failure(r, 0, "onuma_pool_trim", code);
        if (stats.reserved_bytes == 0 || code != ONUMA_OK || cli_now() >= deadline) return stats.reserved_bytes;
        r->streams->operations->catch_up(r->streams);
        cli_sleep(1000000);
    }
}

static void note_point(run *r, size_t done) {
    if (r->series == NULL || !series_due(r->series, done, r->trace->op_count)) return;
    uint64_t from = r->now();
    onuma_pool_stats stats;
    read_stats(r, &stats);
    series_add(r->series, done, stats.requested_bytes, stats.reserved_bytes);
    r->verifying += r->now() - from;
}

static uint64_t reserved_now(run *r) {
    onuma_pool_stats stats;
    read_stats(r, &stats);
    return stats.reserved_bytes;
}

void replay_run(const trace *t, double scale, bool verify, replay_clock *now, onuma_pool *pool, streams *s,
                const replay_wishes *wishes, replay_result *out) {
    run r = {.trace = t, .scale = scale, .verify = verify, .now = now, .pool = pool, .streams = s};
    if (wishes != NULL) r.series = wishes->series;
    r.pointers = cli_allocate(t->block_count * sizeof *r.pointers);
    for (size_t i = 0; i < t->block_count; i++)
        r.pointers[i] = NULL;
    onuma_pool_set_oom_handler(pool, wait_for_streams, &r);

    uint64_t from = now();
    for (size_t i = 0; i < t->op_count; i++) {
        if (i % PROGRESS_EVERY == 0) cli_progress("replay", i, t->op_count);
        note_point(&r, i);
        operate(&r, i);
    }
    note_point(&r, t->op_count);
    uint64_t spent = now() - from - r.verifying;
    onuma_pool_stats stats;
    read_stats(&r, &stats);
    *out = (replay_result){
        .peak_reserved = stats.reserved_bytes_peak,
        .metadata_peak = stats.metadata_bytes_peak,
        .driver_calls =
            stats.segment_alloc_count + stats.segment_free_count + stats.commit_count + stats.decommit_count,
        .ns_per_op = (double)spent / (double)t->op_count,
    };
    out->live_at_end = free_live_blocks(&r);
    streams_finish(s);
    out->freed_reserved = out->decayed_reserved = reserved_now(&r);
    if (wishes != NULL && wishes->alone != 0) {
        cli_sleep(wishes->alone);
        out->decayed_reserved = reserved_now(&r);
    }
    out->end_reserved = trim(&r);
    out->errors = r.errors;
    cli_progress_end();
    tell_errors(&r);
    onuma_pool_set_oom_handler(pool, NULL, NULL);
    free(r.pointers);
}
