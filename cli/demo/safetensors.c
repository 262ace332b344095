/* SPDX-License-Identifier: Apache-2.0 */
#include "demo/safetensors.h"

#include <cjson/cJSON.h>

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX 8                     /* bytes of the header's length */
#define HEADER_MAX (100u << 20)      /* as the format's own reader has it */
#define EXACT_MAX 9007199254740992.0 /* 2^53: whole numbers up to here survive in JSON's doubles */

typedef struct complaint {
    char *text;
    size_t size;
} complaint;

static void complain(const complaint *to, const char *format, ...) {
    if (!to->text || !to->size) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(to->text, to->size, format, arguments);
    va_end(arguments);
}

/* A macro, so that compilers see that it is always false. */
#define refuse(to, ...) (complain(to, __VA_ARGS__), false)

static size_t dtype_bytes(const char *dtype) {
    static const struct {
        const char *name;
        size_t bytes;
    } known[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
                 {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
                 {"U32", 4},  {"F32", 4}, {"I64", 8}, {"U64", 8},     {"F64", 8}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(dtype, known[i].name)) return known[i].bytes;
    return 0;
}

static bool whole_number(const cJSON *item, size_t *out) {
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0) || item->valuedouble > EXACT_MAX) return false;
    uint64_t value = (uint64_t)item->valuedouble;
    if ((double)value != item->valuedouble || value > SIZE_MAX) return false;
    *out = (size_t)value;
    return true;
}

/* The bytes that shape and dtype ask for, into *bytes. */
static bool read_shape(const cJSON *entry, safetensors_tensor *tensor, size_t *bytes, const complaint *to) {
    const cJSON *dtype = cJSON_GetObjectItemCaseSensitive(entry, "dtype");
    const cJSON *shape = cJSON_GetObjectItemCaseSensitive(entry, "shape");
    if (!cJSON_IsString(dtype) || !cJSON_IsArray(shape)) return refuse(to, "\"%s\" lacks dtype or shape", tensor->name);
    tensor->dtype = dtype->valuestring;
    size_t total = dtype_bytes(tensor->dtype);
    if (total == 0) return refuse(to, "\"%s\" has an unknown dtype", tensor->name);
    const cJSON *item;
    bool empty = false;
    cJSON_ArrayForEach(item, shape) {
        size_t length;
        if (tensor->rank == SAFETENSORS_RANK_MAX) return refuse(to, "\"%s\" has too many dimensions", tensor->name);
        if (!whole_number(item, &length)) return refuse(to, "\"%s\" has a bad shape", tensor->name);
        tensor->shape[tensor->rank++] = length;
        if (length == 0)
            empty = true;
        else if (total > SIZE_MAX / length)
            return refuse(to, "\"%s\" has a size beyond any memory", tensor->name);
        else
            total *= length;
    }
    *bytes = empty ? 0 : total;
    return true;
}

static bool read_tensor(const cJSON *entry, const unsigned char *data, size_t data_size, safetensors_tensor *tensor,
                        const complaint *to) {
    size_t bytes, begin, end;
    tensor->name = entry->string;
    if (!cJSON_IsObject(entry)) return refuse(to, "\"%s\" is no object", tensor->name);
    if (!read_shape(entry, tensor, &bytes, to)) return false;
    const cJSON *place = cJSON_GetObjectItemCaseSensitive(entry, "data_offsets");
    if (!cJSON_IsArray(place) || cJSON_GetArraySize(place) != 2 ||
        !whole_number(cJSON_GetArrayItem(place, 0), &begin) || !whole_number(cJSON_GetArrayItem(place, 1), &end))
        return refuse(to, "\"%s\" has bad data_offsets", tensor->name);
    if (begin > end || end > data_size) return refuse(to, "\"%s\" lies outside the data", tensor->name);
    if (end - begin != bytes) return refuse(to, "\"%s\" has a size that its shape does not give", tensor->name);
    tensor->data = data + begin;
    tensor->size = bytes;
    return true;
}

static int by_place(const void *a, const void *b) {
    const safetensors_tensor *x = a, *y = b;
    if (x->data != y->data) return x->data < y->data ? -1 : 1;
    return x->size == y->size ? 0 : x->size < y->size ? -1 : 1;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const safetensors_tensor *)a)->name, ((const safetensors_tensor *)b)->name);
}

/* Leaves the tensors sorted by name. */
static bool check_all(safetensors *file, const unsigned char *data, size_t data_size, const complaint *to) {
    const unsigned char *next = data;
    if (file->count) qsort(file->tensors, file->count, sizeof *file->tensors, by_place);
    for (size_t i = 0; i < file->count; i++) {
        if (file->tensors[i].data != next) return refuse(to, "gap or overlap before \"%s\"", file->tensors[i].name);
        next += file->tensors[i].size;
    }
    if (next != data + data_size) return refuse(to, "bytes that belong to no tensor at the end");
    if (file->count) qsort(file->tensors, file->count, sizeof *file->tensors, by_name);
    for (size_t i = 1; i < file->count; i++)
        if (!by_name(&file->tensors[i - 1], &file->tensors[i]))
            return refuse(to, "\"%s\" appears twice", file->tensors[i].name);
    return true;
}

static bool check_metadata(const cJSON *metadata, const complaint *to) {
    if (!metadata) return true;
    if (!cJSON_IsObject(metadata)) return refuse(to, "__metadata__ is no object");
    const cJSON *item;
    cJSON_ArrayForEach(item, metadata) if (!cJSON_IsString(item)) return refuse(to,
                                                                                "__metadata__ holds more than texts");
    return true;
}

static bool read_header(const unsigned char *bytes, size_t size, size_t *header_size, const complaint *to) {
    if (size < PREFIX) return refuse(to, "too short for a header");
    uint64_t length = 0;
    for (size_t i = PREFIX; i-- > 0;)
        length = length << 8 | bytes[i];
    if (length > HEADER_MAX || length > size - PREFIX) return refuse(to, "the header is longer than the file");
    *header_size = (size_t)length;
    if (length == 0 || bytes[PREFIX] != '{') return refuse(to, "the header does not begin with {");
    /* cJSON reads texts up to a zero byte: one inside would hide what follows it from the checks. */
    if (memchr(bytes + PREFIX, 0, *header_size)) return refuse(to, "a zero byte in the header");
    return true;
}

static cJSON *parse_json(const unsigned char *text, size_t length, const complaint *to) {
    const char *end = NULL;
    cJSON *root = cJSON_ParseWithLengthOpts((const char *)text, length, &end, false);
    bool good = cJSON_IsObject(root);
    for (const char *rest = end; good && rest < (const char *)text + length; rest++)
        good = *rest == ' ';
    if (good) return root;
    cJSON_Delete(root);
    complain(to, "the header is not one JSON object");
    return NULL;
}

bool safetensors_parse(const void *bytes, size_t size, safetensors *out, char *error, size_t error_size) {
    const complaint to = {error, error_size};
    safetensors file = {0};
    size_t header_size;
    *out = file;
    if (!read_header(bytes, size, &header_size, &to)) return false;
    const unsigned char *text = (const unsigned char *)bytes + PREFIX, *data = text + header_size;
    size_t data_size = size - PREFIX - header_size;

    cJSON *root = parse_json(text, header_size, &to);
    if (!root) return false;
    file.header = root;
    file.tensors = calloc((size_t)cJSON_GetArraySize(root) + 1, sizeof *file.tensors);
    bool good = file.tensors ? check_metadata(cJSON_GetObjectItemCaseSensitive(root, "__metadata__"), &to)
                             : refuse(&to, "out of memory");
    const cJSON *entry;
    if (good) cJSON_ArrayForEach(entry, root) {
            if (!strcmp(entry->string, "__metadata__")) continue;
            good = read_tensor(entry, data, data_size, &file.tensors[file.count], &to);
            if (!good) break;
            file.count++;
        }
    if (!good || !check_all(&file, data, data_size, &to)) {
        safetensors_free(&file);
        return false;
    }
    *out = file;
    return true;
}

void safetensors_free(safetensors *file) {
    free(file->tensors);
    cJSON_Delete(file->header);
    *file = (safetensors){0};
}

const safetensors_tensor *safetensors_find(const safetensors *file, const char *name) {
    for (size_t i = 0; i < file->count; i++)
        if (!strcmp(file->tensors[i].name, name)) return &file->tensors[i];
    return NULL;
}

const char *safetensors_metadata(const safetensors *file, const char *name) {
    const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(file->header, "__metadata__");
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(metadata, name);
    return cJSON_IsString(item) ? item->valuestring : NULL;
}
