/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_LIVE, BLOCK_FREED, BLOCK_RELEASED };
enum { BUFFER_SIZE = 1 << 16, MOST_FIELDS = 5 };

typedef struct reader {
    trace *out;
    size_t op_room, block_room;
    /* From id to its latest block: open addressing, block index + 1, 0 is empty. Never more than half full. */
    uint32_t *map;
    size_t map_size;
    uint64_t live_bytes;
    uint32_t line;
    bool begun; /* a line that is no comment was seen */
    char *error;
    size_t error_size;
} reader;

/* Always false, so that callers can return it. What the text quotes of the file may not reach a terminal as it is. */
static bool fail(reader *r, const char *format, ...) {
    int used = snprintf(r->error, r->error_size, "line %lu: ", (unsigned long)r->line);
    va_list arguments;
    va_start(arguments, format);
    if (used > 0 && (size_t)used < r->error_size)
        vsnprintf(r->error + used, r->error_size - (size_t)used, format, arguments);
    va_end(arguments);
    for (char *at = r->error; r->error_size && *at; at++)
        if (*at < ' ' || *at > '~') *at = '?';
    return false;
}

/* ------------------------------------------------------ blocks by their id */

static size_t map_start(const reader *r, uint64_t id) {
    uint64_t h = id * 0x9E3779B97F4A7C15u;
    return (size_t)(h ^ h >> 32) & (r->map_size - 1);
}

/* Where an id is, or the empty place where it would go. */
static uint32_t *map_place(const reader *r, uint64_t id) {
    size_t at = map_start(r, id);
    while (r->map[at] && r->out->blocks[r->map[at] - 1].id != id)
        at = (at + 1) & (r->map_size - 1);
    return &r->map[at];
}

static bool map_grow(reader *r) {
    size_t old_size = r->map_size;
    uint32_t *old = r->map;
    size_t size = old_size ? old_size * 2 : 1024;
    uint32_t *grown = calloc(size, sizeof *grown);
    if (!grown) return fail(r, "out of memory for %zu blocks", r->out->block_count);
    r->map = grown;
    r->map_size = size;
    for (size_t i = 0; i < old_size; i++)
        if (old[i]) *map_place(r, r->out->blocks[old[i] - 1].id) = old[i];
    free(old);
    return true;
}

/* Room for one more of `count` items. */
static bool make_room(reader *r, void **items, size_t *room, size_t count, size_t item_size) {
    if (count < *room) return true;
    size_t larger = *room ? *room * 2 : 1024;
    void *moved = realloc(*items, larger * item_size);
    if (!moved) return fail(r, "out of memory for %zu operations", count);
    *items = moved;
    *room = larger;
    return true;
}

/* ----------------------------------------------------------------- numbers */

/* Decimal digits alone, below 2^64: no sign, no space, no fraction. */
static bool parse_number(const char *text, uint64_t *out) {
    uint64_t value = 0;
    if (!*text) return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9') return false;
        uint64_t digit = (uint64_t)(*text - '0');
        if (value > (UINT64_MAX - digit) / 10) return false;
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

static bool field_number(reader *r, const char *name, const char *text, uint64_t *out) {
    if (parse_number(text, out)) return true;
    return fail(r, "%s \"%.40s\" is not a whole number from 0 to 2^64-1", name, text);
}

/* -------------------------------------------------------------- operations */

static bool find_stream(reader *r, uint64_t number, uint16_t *index) {
    trace *t = r->out;
    for (size_t i = 0; i < t->stream_count; i++) {
        if (t->streams[i] != number) continue;
        *index = (uint16_t)i;
        return true;
    }
    if (t->stream_count == TRACE_MOST_STREAMS) return fail(r, "more than %d streams", TRACE_MOST_STREAMS);
    *index = (uint16_t)t->stream_count;
    t->streams[t->stream_count++] = number;
    return true;
}

static bool take_alloc(reader *r, uint64_t id, uint64_t size, uint16_t stream, uint32_t *block) {
    trace *t = r->out;
    const uint64_t largest = (uint64_t)1 << TRACE_LARGEST_BLOCK_LOG2;
    if (size > largest) return fail(r, "%llu bytes are more than any memory holds", (unsigned long long)size);
    if (size > UINT64_MAX - r->live_bytes) return fail(r, "more than 2^64 bytes are live at once");
    if (!make_room(r, (void **)&t->blocks, &r->block_room, t->block_count, sizeof *t->blocks)) return false;
    if (t->block_count >= r->map_size / 2 && !map_grow(r)) return false;
    uint32_t *place = map_place(r, id);
    if (*place && t->blocks[*place - 1].state == BLOCK_LIVE)
        return fail(r, "id %llu is allocated twice", (unsigned long long)id);
    *block = (uint32_t)t->block_count;
    t->blocks[t->block_count++] = (trace_block){.id = id, .size = size, .stream = stream, .state = BLOCK_LIVE};
    *place = *block + 1;
    r->live_bytes += size;
    return true;
}

static bool take_end(reader *r, trace_op_kind kind, uint64_t id, uint32_t *block) {
    trace *t = r->out;
    uint32_t found = r->map_size ? *map_place(r, id) : 0;
    if (!found) return fail(r, "id %llu was never allocated", (unsigned long long)id);
    *block = found - 1;
    trace_block *b = &t->blocks[*block];
    if (kind == TRACE_FREE) {
        if (b->state != BLOCK_LIVE) return fail(r, "id %llu is freed twice", (unsigned long long)id);
        b->state = BLOCK_FREED;
        r->live_bytes -= b->size;
        return true;
    }
    if (b->state == BLOCK_LIVE) return fail(r, "id %llu has its r before its f", (unsigned long long)id);
    if (b->state == BLOCK_RELEASED) return fail(r, "id %llu has its r twice", (unsigned long long)id);
    b->state = BLOCK_RELEASED;
    b->release = (uint32_t)++t->release_count;
    return true;
}

static bool take_operation(reader *r, char *const *fields) {
    trace *t = r->out;
    if (t->op_count == TRACE_MOST_OPS)
        return fail(r, "more than %d operations, which is all that is read; cut the trace", TRACE_MOST_OPS);
    const char *op = fields[0];
    trace_op_kind kind;
    if (strcmp(op, "a") == 0)
        kind = TRACE_ALLOC;
    else if (strcmp(op, "f") == 0)
        kind = TRACE_FREE;
    else if (strcmp(op, "r") == 0)
        kind = TRACE_RELEASE;
    else
        return fail(r, "operation \"%.40s\" is none of a, f and r", op);
    uint64_t id, size = 0, stream_number, time_us;
    if (!field_number(r, "id", fields[1], &id)) return false;
    bool sized = kind == TRACE_ALLOC || fields[2][0];
    if (sized && !field_number(r, "bytes", fields[2], &size)) return false;
    if (!field_number(r, "stream", fields[3], &stream_number)) return false;
    if (!field_number(r, "time_us", fields[4], &time_us)) return false;
    if (t->op_count && time_us < t->ops[t->op_count - 1].time_us) time_us = t->ops[t->op_count - 1].time_us;

    uint16_t stream = 0;
    uint32_t block = 0;
    if (!make_room(r, (void **)&t->ops, &r->op_room, t->op_count, sizeof *t->ops)) return false;
    if (!find_stream(r, stream_number, &stream)) return false;
    if (!(kind == TRACE_ALLOC ? take_alloc(r, id, size, stream, &block) : take_end(r, kind, id, &block))) return false;
    t->ops[t->op_count++] =
        (trace_op){.time_us = time_us, .block = block, .line = r->line, .stream = stream, .kind = (uint8_t)kind};
    return true;
}

/* ------------------------------------------------------------------- lines */

/* Cut at commas. How many fields there are; only the first MOST_FIELDS are kept. */
static size_t split(char *line, char **fields) {
    size_t count = 0;
    for (char *at = line; at; count++) {
        char *comma = strchr(at, ',');
        if (comma) *comma = '\0';
        if (count < MOST_FIELDS) fields[count] = at;
        at = comma ? comma + 1 : NULL;
    }
    return count;
}

static bool take_header(reader *r, char *const *fields, size_t count) {
    static const char *const names[MOST_FIELDS] = {"op", "id", "bytes", "stream", "time_us"};
    for (size_t i = 0; i < MOST_FIELDS; i++)
        if (i >= count || strcmp(fields[i], names[i]) != 0)
            return fail(r, "the header must begin op,id,bytes,stream,time_us");
    return true;
}

/* A line without its end, `length` bytes and a zero. */
static bool take_line(reader *r, char *line, size_t length) {
    if (r->line++ == TRACE_MOST_LINES)
        return fail(r, "more than %d lines, which is all that is read; cut the trace", TRACE_MOST_LINES);
    bool first = !r->begun;
    if (first && r->line == 1 && length >= 3 && memcmp(line, "\xEF\xBB\xBF", 3) == 0) {
        line += 3; /* a byte order mark */
        length -= 3;
    }
    if (length && line[length - 1] == '\r') line[--length] = '\0';
    if (strspn(line, " \t") == length || line[0] == '#') return true;
    r->begun = true;
    char *fields[MOST_FIELDS];
    bool text = strlen(line) == length;
    size_t count = text ? split(line, fields) : 0;
    if (first && count && strcmp(fields[0], "op") == 0) return take_header(r, fields, count);
    if (count >= MOST_FIELDS) return take_operation(r, fields);
    if (first) return fail(r, "neither gzip nor CSV: a line is op,id,bytes,stream,time_us");
    if (!text) return fail(r, "a zero byte; the file is damaged");
    return fail(r, "%zu columns where op,id,bytes,stream,time_us are 5", count);
}

typedef struct line_buffer {
    char text[TRACE_LONGEST_LINE + 1];
    size_t length;
} line_buffer;

/* More of a line. Of a comment the rest beyond what a line may hold is dropped. */
static bool append(reader *r, line_buffer *line, const char *bytes, size_t size) {
    size_t room = TRACE_LONGEST_LINE - line->length;
    size_t kept = size < room ? size : room;
    memcpy(line->text + line->length, bytes, kept);
    line->length += kept;
    line->text[line->length] = '\0';
    if (size <= room || line->text[0] == '#') return true;
    r->line++;
    return fail(r, r->begun ? "longer than %d bytes" : "neither gzip nor CSV: longer than %d bytes",
                TRACE_LONGEST_LINE);
}

static bool take_bytes(reader *r, line_buffer *line, const char *bytes, size_t size) {
    while (size) {
        const char *end = memchr(bytes, '\n', size);
        size_t part = end ? (size_t)(end - bytes) : size;
        if (!append(r, line, bytes, part)) return false;
        if (!end) return true;
        if (!take_line(r, line->text, line->length)) return false;
        line->length = 0;
        bytes = end + 1;
        size -= part + 1;
    }
    return true;
}

static bool take_text(reader *r, const trace_source *source, char *buffer) {
    line_buffer line = {.length = 0};
    for (size_t total = 0;;) {
        char why[160] = "";
        long got = source->read(source->user, buffer, BUFFER_SIZE, why, sizeof why);
        if (got < 0) {
            r->line++;
            return fail(r, "%s", why);
        }
        if (got == 0) return !line.length || take_line(r, line.text, line.length);
        total += (size_t)got;
        if (total > TRACE_MOST_TEXT)
            return fail(r, "more than %d bytes of text, which is all that is read; cut the trace", TRACE_MOST_TEXT);
        if (!take_bytes(r, &line, buffer, (size_t)got)) return false;
    }
}

bool trace_read(trace *out, const trace_source *source, char *error, size_t error_size) {
    *out = (trace){0};
    reader r = {.out = out, .error = error, .error_size = error_size};
    char *buffer = malloc(BUFFER_SIZE);
    bool ok = buffer ? take_text(&r, source, buffer) : fail(&r, "out of memory");
    if (ok && out->op_count == 0) {
        snprintf(error, error_size, "the file holds no operations");
        ok = false;
    }
    free(buffer);
    free(r.map);
    if (!ok) trace_drop(out);
    return ok;
}

void trace_drop(trace *t) {
    free(t->ops);
    free(t->blocks);
    *t = (trace){0};
}

/* ------------------------------------------------------------------- sizes */

uint64_t trace_scaled(uint64_t size, double scale) {
    if (scale == 1 || size == 0) return size;
    double scaled = (double)size * scale + 0.5;
    if (scaled >= 0x1p64) return UINT64_MAX;
    uint64_t whole = (uint64_t)scaled;
    return whole ? whole : 1;
}

bool trace_peak(const trace *t, double scale, uint64_t *peak, uint64_t *largest) {
    uint64_t live = 0;
    *peak = *largest = 0;
    for (size_t i = 0; i < t->op_count; i++) {
        uint64_t size = trace_scaled(t->blocks[t->ops[i].block].size, scale);
        if (t->ops[i].kind == TRACE_FREE) live -= size;
        if (t->ops[i].kind != TRACE_ALLOC) continue;
        if (size > UINT64_MAX - live) return false;
        live += size;
        if (live > *peak) *peak = live;
        if (size > *largest) *largest = size;
    }
    return true;
}
