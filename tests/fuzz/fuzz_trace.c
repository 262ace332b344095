/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace reader. The same bytes give the same trace in whatever pieces they
 * come (the first byte chooses them); a trace that is accepted can be replayed
 * without another check; one that is refused leaves nothing and one printable line.
 */
#include "replay/trace.h"

#include "fuzz.h"

typedef struct pieces {
    const uint8_t *next;
    size_t left, most;
} pieces;

static long read_piece(void *user, char *buffer, size_t size, char *why, size_t why_size) {
    pieces *from = user;
    size_t take = from->left < size ? from->left : size;
    (void)why;
    (void)why_size;
    if (take > from->most) take = from->most;
    if (take != 0) memcpy(buffer, from->next, take);
    from->next += take;
    from->left -= take;
    return (long)take;
}

static bool read_in_pieces(const uint8_t *data, size_t size, size_t most, trace *out, char *error, size_t error_size) {
    pieces from = {data, size, most};
    const trace_source source = {read_piece, &from};
    return trace_read(out, &source, error, error_size);
}

/* Each block is allocated once, freed at most once and later, and released at most once and after that. */
static void check_order(const trace *t) {
    unsigned char *seen = calloc(t->block_count, 1);
    FUZZ_CHECK(seen != NULL, "no memory");
    for (size_t i = 0; i < t->op_count; i++) {
        const trace_op *op = &t->ops[i];
        FUZZ_CHECK(op->block < t->block_count, "operation %zu: block %u", i, op->block);
        FUZZ_CHECK(op->stream < t->stream_count, "operation %zu: stream %u", i, op->stream);
        FUZZ_CHECK(i == 0 || op->time_us >= t->ops[i - 1].time_us, "operation %zu goes back in time", i);
        FUZZ_CHECK(seen[op->block] == op->kind, "operation %zu: kind %u after %u", i, op->kind, seen[op->block]);
        seen[op->block]++;
    }
    free(seen);
}

static void check_equal(const trace *a, const trace *b) {
    FUZZ_CHECK(a->op_count == b->op_count && a->block_count == b->block_count && a->stream_count == b->stream_count,
               "%zu, %zu operations", a->op_count, b->op_count);
    for (size_t i = 0; i < a->op_count; i++)
        FUZZ_CHECK(a->ops[i].time_us == b->ops[i].time_us && a->ops[i].block == b->ops[i].block &&
                       a->ops[i].kind == b->ops[i].kind && a->ops[i].line == b->ops[i].line,
                   "operation %zu differs", i);
    for (size_t i = 0; i < a->block_count; i++)
        FUZZ_CHECK(a->blocks[i].size == b->blocks[i].size && a->blocks[i].id == b->blocks[i].id, "block %zu differs",
                   i);
}

static void check_refusal(const trace *t, const char *error) {
    FUZZ_CHECK(t->ops == NULL && t->blocks == NULL && t->op_count == 0, "a refused trace is not empty");
    FUZZ_CHECK(error[0] != '\0', "refused without a word");
    for (const char *at = error; *at; at++)
        FUZZ_CHECK((unsigned char)*at >= ' ' && *at != 0x7f, "byte %d in \"%s\"", *at, error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char error[200] = "", error_in_pieces[200] = "";
    trace whole, pieced;
    if (size == 0) return 0;
    size_t most = (size_t)data[0] % 64 + 1;
    uint8_t *text = fuzz_copy(data + 1, size - 1);
    bool good = read_in_pieces(text, size - 1, SIZE_MAX, &whole, error, sizeof error);
    bool good_in_pieces = read_in_pieces(text, size - 1, most, &pieced, error_in_pieces, sizeof error_in_pieces);
    FUZZ_CHECK(good == good_in_pieces && strcmp(error, error_in_pieces) == 0, "\"%s\", in pieces of %zu \"%s\"", error,
               most, error_in_pieces);
    if (good) {
        uint64_t peak, largest;
        check_order(&whole);
        check_equal(&whole, &pieced);
        if (trace_peak(&whole, 1, &peak, &largest)) FUZZ_CHECK(largest <= peak, "the largest block is above the peak");
        if (trace_peak(&whole, 1e9, &peak, &largest)) FUZZ_CHECK(largest <= peak, "scaled, it is above the peak");
        if (whole.op_count != 0) fuzz_reached_the_end();
    } else {
        check_refusal(&whole, error);
    }
    trace_drop(&whole);
    trace_drop(&pieced);
    free(text);
    return 0;
}
