/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of traces: what it accepts, what it refuses and how it says so, and that its pieces may come in any size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "replay/trace.h"

typedef struct text_source {
    const char *text;
    size_t length, piece; /* at most so many bytes a call */
    const char *failure;  /* at the end, instead of the end */
} text_source;

static long read_text(void *user, char *buffer, size_t size, char *why, size_t why_size) {
    text_source *s = user;
    size_t n = s->length < size ? s->length : size;
    if (n > s->piece) n = s->piece;
    memcpy(buffer, s->text, n);
    s->text += n;
    s->length -= n;
    if (n || !s->failure) return (long)n;
    snprintf(why, why_size, "%s", s->failure);
    return -1;
}

static char error[256];

static bool read_pieces(const char *text, size_t length, size_t piece, trace *out) {
    text_source bytes = {text, length, piece, NULL};
    const trace_source source = {read_text, &bytes};
    error[0] = '\0';
    return trace_read(out, &source, error, sizeof error);
}

static void accept_text(const char *text, trace *out) {
    if (!read_pieces(text, strlen(text), SIZE_MAX, out)) fail_msg("refused: %s", error);
}

static void refuse_bytes(const char *text, size_t length, const char *expected) {
    trace t;
    assert_false(read_pieces(text, length, SIZE_MAX, &t));
    assert_string_equal(error, expected);
    assert_null(t.ops);
    assert_null(t.blocks);
}

static void refuse(const char *text, const char *expected) {
    refuse_bytes(text, strlen(text), expected);
}

/* ---------------------------------------------------------------- accepted */

static void test_operations(void **state) {
    (void)state;
    trace t;
    accept_text("a,7,100,3,10\na,9,0,5,11\nf,7,100,3,12\nr,7,100,5,13\n", &t);
    assert_int_equal(t.op_count, 4);
    assert_int_equal(t.block_count, 2);
    assert_int_equal(t.stream_count, 2);
    assert_int_equal(t.streams[0], 3);
    assert_int_equal(t.streams[1], 5);
    assert_int_equal(t.ops[0].kind, TRACE_ALLOC);
    assert_int_equal(t.ops[2].kind, TRACE_FREE);
    assert_int_equal(t.ops[3].kind, TRACE_RELEASE);
    assert_int_equal(t.ops[3].stream, 1);
    assert_int_equal(t.ops[3].line, 4);
    assert_int_equal(t.ops[3].block, 0);
    assert_int_equal(t.ops[1].time_us, 11);
    assert_int_equal(t.blocks[0].size, 100);
    assert_int_equal(t.blocks[0].release, 1);
    assert_int_equal(t.blocks[1].size, 0);
    assert_int_equal(t.blocks[1].release, 0);
    trace_drop(&t);
}

static void test_lenient_text(void **state) {
    (void)state;
    static const char *const texts[] = {
        "op,id,bytes,stream,time_us\na,1,2,0,0\nf,1,2,0,0\n",
        "op,id,bytes,stream,time_us,thread\r\na,1,2,0,0\r\nf,1,2,0,0\r\n",
        "# a comment\n\n  \t\na,1,2,0,0,more,columns,\n#another\nf,1,,0,0",
        ("\xEF\xBB\xBF"
         "a,1,2,0,0\nf,1,2,0,0"),
        "\xEF\xBB\xBF# comment\nop,id,bytes,stream,time_us\na,1,2,0,0\nf,1,2,0,0\n\n\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        trace t;
        accept_text(texts[i], &t);
        assert_int_equal(t.op_count, 2);
        assert_int_equal(t.blocks[0].size, 2);
        trace_drop(&t);
    }
}

static void test_time_never_goes_back(void **state) {
    (void)state;
    trace t;
    accept_text("a,1,1,0,50\na,2,1,0,20\na,3,1,0,60\n", &t);
    assert_int_equal(t.ops[1].time_us, 50);
    assert_int_equal(t.ops[2].time_us, 60);
    trace_drop(&t);
}

static void test_id_used_again(void **state) {
    (void)state;
    trace t;
    accept_text("a,1,10,0,0\nf,1,10,0,1\na,1,20,0,2\nf,1,20,0,3\nr,1,20,0,4\n", &t);
    assert_int_equal(t.block_count, 2);
    assert_int_equal(t.blocks[0].release, 0);
    assert_int_equal(t.blocks[1].size, 20);
    assert_int_equal(t.blocks[1].release, 1);
    assert_int_equal(t.ops[3].block, 1);
    trace_drop(&t);
}

/* The order of r lines numbers them, whatever the order of f lines. */
static void test_releases_are_numbered(void **state) {
    (void)state;
    trace t;
    accept_text("a,1,1,0,0\na,2,1,0,0\nf,1,1,0,1\nf,2,1,0,1\nr,2,1,1,2\nr,1,1,1,3\n", &t);
    assert_int_equal(t.release_count, 2);
    assert_int_equal(t.blocks[0].release, 2);
    assert_int_equal(t.blocks[1].release, 1);
    trace_drop(&t);
}

static void test_largest_numbers(void **state) {
    (void)state;
    trace t;
    accept_text("a,18446744073709551615,281474976710656,18446744073709551615,18446744073709551615\n", &t);
    assert_true(t.blocks[0].id == UINT64_MAX);
    assert_true(t.blocks[0].size == (uint64_t)1 << 48);
    assert_true(t.streams[0] == UINT64_MAX);
    trace_drop(&t);
}

/* Where the source cuts the text must not matter. */
static void test_any_pieces(void **state) {
    (void)state;
    static const char text[] = "# one\r\na,1,100,0,0\r\n\nf,1,100,0,5\r\na,2,7,1,6";
    for (size_t piece = 1; piece < sizeof text; piece++) {
        trace t;
        assert_true(read_pieces(text, sizeof text - 1, piece, &t));
        assert_int_equal(t.op_count, 3);
        assert_int_equal(t.blocks[1].size, 7);
        assert_int_equal(t.ops[2].line, 5);
        trace_drop(&t);
    }
}

/* Enough ids for the map of ids to grow several times. */
static void test_many_blocks(void **state) {
    (void)state;
    enum { MANY = 50000, LINE = 48 };
    char *text = malloc((size_t)MANY * 2 * LINE);
    assert_non_null(text);
    size_t length = 0;
    for (int i = 0; i < MANY; i++)
        length += (size_t)snprintf(text + length, LINE, "a,%d,%d,0,%d\n", i * 1024, i, i);
    for (int i = MANY - 1; i >= 0; i--)
        length += (size_t)snprintf(text + length, LINE, "f,%d,%d,0,%d\n", i * 1024, i, MANY);
    trace t;
    assert_true(read_pieces(text, length, 4096, &t));
    assert_int_equal(t.block_count, MANY);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(t.ops[MANY + i].block, MANY - 1 - i);
    uint64_t peak, largest;
    assert_true(trace_peak(&t, 1, &peak, &largest));
    assert_int_equal(peak, (uint64_t)MANY * (MANY - 1) / 2);
    assert_int_equal(largest, MANY - 1);
    trace_drop(&t);
    free(text);
}

/* ----------------------------------------------------------------- refused */

static void test_bad_ids(void **state) {
    (void)state;
    refuse("a,1,1,0,0\nf,1,1,0,1\nf,1,1,0,2\n", "line 3: id 1 is freed twice");
    refuse("f,4,1,0,1\n", "line 1: id 4 was never allocated");
    refuse("a,1,1,0,0\nf,2,1,0,1\n", "line 2: id 2 was never allocated");
    refuse("a,1,1,0,0\na,1,1,0,1\n", "line 2: id 1 is allocated twice");
    refuse("a,1,1,0,0\nr,1,1,0,1\n", "line 2: id 1 has its r before its f");
    refuse("r,1,1,0,1\n", "line 1: id 1 was never allocated");
    refuse("a,1,1,0,0\nf,1,1,0,0\nr,1,1,0,1\nr,1,1,0,1\n", "line 4: id 1 has its r twice");
}

static void test_bad_numbers(void **state) {
    (void)state;
    refuse("a,1,-5,0,0\n", "line 1: bytes \"-5\" is not a whole number from 0 to 2^64-1");
    refuse("a,-1,5,0,0\n", "line 1: id \"-1\" is not a whole number from 0 to 2^64-1");
    refuse("a,1,5,-1,0\n", "line 1: stream \"-1\" is not a whole number from 0 to 2^64-1");
    refuse("a,1,5,0,\n", "line 1: time_us \"\" is not a whole number from 0 to 2^64-1");
    refuse("a,1,,0,0\n", "line 1: bytes \"\" is not a whole number from 0 to 2^64-1");
    refuse("a,1,1e3,0,0\n", "line 1: bytes \"1e3\" is not a whole number from 0 to 2^64-1");
    refuse("a,1,18446744073709551616,0,0\n",
           "line 1: bytes \"18446744073709551616\" is not a whole number from 0 to 2^64-1");
    refuse("a,1,281474976710657,0,0\n", "line 1: 281474976710657 bytes are more than any memory holds");
    refuse("a, 1,1,0,0\n", "line 1: id \" 1\" is not a whole number from 0 to 2^64-1");
}

static void test_bad_text(void **state) {
    (void)state;
    refuse("", "the file holds no operations");
    refuse("# only\n\n", "the file holds no operations");
    refuse("op,id,bytes,stream,time_us\n", "the file holds no operations");
    refuse("op,bytes,id,stream,time_us\n", "line 1: the header must begin op,id,bytes,stream,time_us");
    refuse("hello\n", "line 1: neither gzip nor CSV: a line is op,id,bytes,stream,time_us");
    refuse("a,1,1,0,0\na,2,1\n", "line 2: 3 columns where op,id,bytes,stream,time_us are 5");
    refuse("x,1,1,0,0\n", "line 1: operation \"x\" is none of a, f and r");
    refuse("\x1b[31m\xff\r,1,1,0,0\n", "line 1: operation \"?[31m??\" is none of a, f and r");
    refuse("a,1,1,0,0\nop,id,bytes,stream,time_us\n", "line 2: operation \"op\" is none of a, f and r");
    refuse("a,1,1,0,0\nalloc,2,1,0,0\n", "line 2: operation \"alloc\" is none of a, f and r");
    refuse_bytes("\x7f"
                 "ELF\0\0\n",
                 7, "line 1: neither gzip nor CSV: a line is op,id,bytes,stream,time_us");
    refuse_bytes("a,1,1,0,0\nf,1,1\0,0,0\n", 20, "line 2: a zero byte; the file is damaged");
}

static void test_long_lines(void **state) {
    (void)state;
    static char text[1 << 20];
    memset(text, 'x', sizeof text);
    refuse_bytes(text, sizeof text, "line 1: neither gzip nor CSV: longer than 1024 bytes");
    memcpy(text, "a,1,1,0,0\n", 10);
    refuse_bytes(text, sizeof text, "line 2: longer than 1024 bytes");
    memset(text, '#', sizeof text);
    memcpy(text + sizeof text - 11, "\na,1,1,0,0\n", 11);
    trace t;
    assert_true(read_pieces(text, sizeof text, 1000, &t));
    assert_int_equal(t.ops[0].line, 2);
    trace_drop(&t);
}

static void test_most_streams(void **state) {
    (void)state;
    enum { LINE = 32 };
    char text[(TRACE_MOST_STREAMS + 1) * LINE];
    size_t length = 0, allowed = 0;
    for (int i = 0; i <= TRACE_MOST_STREAMS; i++) {
        allowed = length;
        length += (size_t)snprintf(text + length, LINE, "a,%d,1,%d,0\n", i, i);
    }
    refuse_bytes(text, length, "line 257: more than 256 streams");
    trace t;
    assert_true(read_pieces(text, allowed, SIZE_MAX, &t));
    assert_int_equal(t.stream_count, TRACE_MOST_STREAMS);
    trace_drop(&t);
}

static void test_failing_source(void **state) {
    (void)state;
    text_source bytes = {"a,1,1,0,0\na,2,", 14, 5, "the disk is gone"};
    const trace_source source = {read_text, &bytes};
    trace t;
    assert_false(trace_read(&t, &source, error, sizeof error));
    assert_string_equal(error, "line 2: the disk is gone");
    assert_null(t.ops);
}

/* Endless text, as a small gzip file can hold it, ends at the limit and not with the memory. */
static long read_endless(void *user, char *buffer, size_t size, char *why, size_t why_size) {
    (void)why;
    (void)why_size;
    uint64_t *given = user;
    *given += size;
    memset(buffer, '#', size);
    return (long)size;
}

static void test_endless_text(void **state) {
    (void)state;
    uint64_t given = 0;
    const trace_source source = {read_endless, &given};
    trace t;
    assert_false(trace_read(&t, &source, error, sizeof error));
    assert_non_null(strstr(error, "more than 1073741824 bytes of text"));
    assert_true(given <= (uint64_t)TRACE_MOST_TEXT + (1 << 20));
}

/* The same two lines for ever, which a gzip file holds in a thousandth of the space. */
static long read_endless_lines(void *user, char *buffer, size_t size, char *why, size_t why_size) {
    (void)user;
    (void)why;
    (void)why_size;
    static const char lines[] = "a,1,1,0,0\nf,1,1,0,0\n";
    size_t length = sizeof lines - 1, given = 0;
    for (; given + length <= size; given += length)
        memcpy(buffer + given, lines, length);
    return (long)given;
}

static void test_endless_operations(void **state) {
    (void)state;
    const trace_source source = {read_endless_lines, NULL};
    trace t;
    assert_false(trace_read(&t, &source, error, sizeof error));
    assert_string_equal(error, "line 8388609: more than 8388608 operations, which is all that is read; cut the trace");
    assert_null(t.ops);
}

/* ------------------------------------------------------------------- sizes */

static void test_scale(void **state) {
    (void)state;
    assert_int_equal(trace_scaled(0, 0.001), 0);
    assert_int_equal(trace_scaled(1, 0.001), 1);
    assert_int_equal(trace_scaled(1000, 0.25), 250);
    assert_int_equal(trace_scaled(3, 0.5), 2);
    assert_true(trace_scaled((uint64_t)1 << 48, 1e30) == UINT64_MAX);
    assert_true(trace_scaled(((uint64_t)1 << 48) - 1, 1) == ((uint64_t)1 << 48) - 1);
}

static void test_peak(void **state) {
    (void)state;
    trace t;
    accept_text("a,1,100,0,0\na,2,300,0,0\nf,1,100,0,0\nr,1,100,1,0\na,3,50,0,0\nf,2,300,0,0\n", &t);
    uint64_t peak, largest;
    assert_true(trace_peak(&t, 1, &peak, &largest));
    assert_int_equal(peak, 400);
    assert_int_equal(largest, 300);
    assert_true(trace_peak(&t, 0.5, &peak, &largest));
    assert_int_equal(peak, 200);
    assert_false(trace_peak(&t, 1e18, &peak, &largest));
    trace_drop(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operations),
        cmocka_unit_test(test_lenient_text),
        cmocka_unit_test(test_time_never_goes_back),
        cmocka_unit_test(test_id_used_again),
        cmocka_unit_test(test_releases_are_numbered),
        cmocka_unit_test(test_largest_numbers),
        cmocka_unit_test(test_any_pieces),
        cmocka_unit_test(test_many_blocks),
        cmocka_unit_test(test_bad_ids),
        cmocka_unit_test(test_bad_numbers),
        cmocka_unit_test(test_bad_text),
        cmocka_unit_test(test_long_lines),
        cmocka_unit_test(test_most_streams),
        cmocka_unit_test(test_failing_source),
        cmocka_unit_test(test_endless_text),
        cmocka_unit_test(test_endless_operations),
        cmocka_unit_test(test_scale),
        cmocka_unit_test(test_peak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
