/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An allocation trace in memory, and the reader that makes one from bytes.
 *
 * The text is CSV, a line an operation: op,id,bytes,stream,time_us.
 *   a  the block is allocated: `bytes` long, bound to `stream`
 *   f  the program frees it
 *   r  a later queue that still used it at f is done with it (absent if none did)
 * Accepted: comments (#), blank lines, a header line, CRLF, a last line without an end, more columns than
 * five, size 0, empty bytes in f and r, times that go back (no time passes then), an id that is used again
 * after its f. Refused, with the number of the line: everything else; above all an id that is freed
 * twice or was never allocated.
 *
 * The reader is a pure function of the bytes it is given. What it may take is bounded (TRACE_MOST_*), because
 * a few megabytes of gzip can hold gigabytes of text.
 */
#ifndef CLI_REPLAY_TRACE_H
#define CLI_REPLAY_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TRACE_MOST_OPS = 1 << 23,     /* some 500 MB in memory */
    TRACE_MOST_TEXT = 1 << 30,    /* bytes, unpacked */
    TRACE_MOST_LINES = 1 << 24,   /* blank lines and comments too, which cost time and no memory */
    TRACE_MOST_STREAMS = 256,     /* each becomes a queue */
    TRACE_LONGEST_LINE = 1024,    /* bytes; comments may be longer */
    TRACE_LARGEST_BLOCK_LOG2 = 48 /* larger than any address space a block could lie in */
};

typedef enum { TRACE_ALLOC, TRACE_FREE, TRACE_RELEASE } trace_op_kind;

typedef struct trace_op {
    uint64_t time_us; /* never less than the one before */
    uint32_t block;   /* index in blocks */
    uint32_t line;    /* of the text */
    uint16_t stream;  /* index of the queue that the line names */
    uint8_t kind;
} trace_op;

typedef struct trace_block {
    uint64_t id, size;
    uint32_t release; /* 1 for the block of the trace's first r line, 2 for the second, ...; 0: it has none */
    uint16_t stream;
    uint8_t state; /* the reader's */
} trace_block;

typedef struct trace {
    trace_op *ops;
    trace_block *blocks; /* in the order of their allocation; an id used again is a new block */
    size_t op_count, block_count, release_count, stream_count;
    uint64_t streams[TRACE_MOST_STREAMS]; /* their numbers in the text */
} trace;

typedef struct trace_source {
    /* Fill `buffer` with up to `size` bytes. How many; 0 at the end; -1 with *why filled for a failure. */
    long (*read)(void *user, char *buffer, size_t size, char *why, size_t why_size);
    void *user;
} trace_source;

/* false: *out is empty and `error` says why in one line. */
bool trace_read(trace *out, const trace_source *source, char *error, size_t error_size);

/* Free what trace_read made. */
void trace_drop(trace *t);

/* A size times `scale`, rounded; what has bytes keeps at least one. */
uint64_t trace_scaled(uint64_t size, double scale);

/* The most bytes live at once and the largest block, at that scale. false: more than 64 bits can count. */
bool trace_peak(const trace *t, double scale, uint64_t *peak, uint64_t *largest);

#endif
