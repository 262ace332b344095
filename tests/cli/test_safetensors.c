/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of .safetensors: what it accepts, and that it refuses everything else without reading past the end. */
#include "demo/safetensors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A file of `header` and `data_size` bytes of data, in memory of exactly its size, so that checkers see overruns. */
static unsigned char *make_file(const char *header, size_t data_size, size_t *size) {
    size_t length = strlen(header);
    *size = 8 + length + data_size;
    unsigned char *bytes = malloc(*size);
    assert_non_null(bytes);
    for (size_t i = 0; i < 8; i++)
        bytes[i] = (unsigned char)((uint64_t)length >> 8 * i);
    memcpy(bytes + 8, header, length);
    for (size_t i = 0; i < data_size; i++)
        bytes[8 + length + i] = (unsigned char)i;
    return bytes;
}

static bool accepts(const char *header, size_t data_size) {
    size_t size;
    char error[160] = "";
    safetensors file;
    unsigned char *bytes = make_file(header, data_size, &size);
    bool good = safetensors_parse(bytes, size, &file, error, sizeof error);
    assert_int_equal(good, error[0] == '\0');
    if (!good) assert_true(file.count == 0 && !file.tensors && !file.header);
    safetensors_free(&file);
    free(bytes);
    return good;
}

#define TENSOR(name, shape, begin, end)                                                                                \
    "\"" name "\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end "]}"

static void reads_tensors(void **state) {
    (void)state;
    size_t size;
    safetensors file;
    unsigned char *bytes = make_file("{\"__metadata__\":{\"by\":\"us\"}," TENSOR("b", "[2,3]", 4, 28) "," TENSOR(
                                         "a", "[]", 0, 4) "," TENSOR("none", "[0,9]", 28, 28) "}   ",
                                     28, &size);
    assert_true(safetensors_parse(bytes, size, &file, NULL, 0));
    assert_int_equal(file.count, 3);
    const safetensors_tensor *b = safetensors_find(&file, "b");
    assert_non_null(b);
    assert_string_equal(b->dtype, "F32");
    assert_true(b->rank == 2 && b->shape[0] == 2 && b->shape[1] == 3 && b->size == 24);
    assert_int_equal(b->data[0], 4);
    assert_int_equal(safetensors_find(&file, "a")->rank, 0);
    assert_int_equal(safetensors_find(&file, "none")->size, 0);
    assert_null(safetensors_find(&file, "c"));
    assert_string_equal(safetensors_metadata(&file, "by"), "us");
    assert_null(safetensors_metadata(&file, "when"));
    safetensors_free(&file);
    free(bytes);
}

static void accepts_the_edges(void **state) {
    (void)state;
    assert_true(accepts("{}", 0));
    assert_true(accepts("{\"__metadata__\":{}}", 0));
    assert_true(accepts("{" TENSOR("a", "[1,1,1,1,1,1,1,1]", 0, 4) "}", 4));
}

static void refuses_what_does_not_fit(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",
        "[]",
        "{",
        "{} x",
        "null",
        " {}",
        "{\"a\":1}",
        "{\"a\":{}}",
        "{\"__metadata__\":[]}",
        "{\"__metadata__\":{\"a\":1}}",
        "{" TENSOR("a", "[2]", 0, 4) "}",                              /* shape against size */
        "{" TENSOR("a", "[1]", 4, 8) "}",                              /* a gap before, and past the end */
        "{" TENSOR("a", "[1]", 0, 4) "," TENSOR("b", "[1]", 0, 4) "}", /* an overlap */
        "{" TENSOR("a", "[1]", 0, 4) "," TENSOR("a", "[0]", 4, 4) "}", /* a name twice */
        "{" TENSOR("a", "[1]", 4, 0) "}",
        "{" TENSOR("a", "[1]", -4, 0) "}",
        "{" TENSOR("a", "[1.5]", 0, 4) "}",
        "{" TENSOR("a", "[-1]", 0, 4) "}",
        "{" TENSOR("a", "[1e300]", 0, 4) "}",
        "{" TENSOR("a", "[1]", 0, 1e99) "}",
        "{" TENSOR("a", "[4294967296,4294967296,1]", 0, 4) "}", /* a product beyond 64 bits */
        "{" TENSOR("a", "[9007199254740992,9007199254740992]", 0, 0) "}",
        "{" TENSOR("a", "[1,1,1,1,1,1,1,1,1]", 0, 4) "}", /* too many dimensions */
        "{" TENSOR("a", "\"1\"", 0, 4) "}",
        "{\"a\":{\"dtype\":\"F31\",\"shape\":[1],\"data_offsets\":[0,4]}}",
        "{\"a\":{\"dtype\":4,\"shape\":[1],\"data_offsets\":[0,4]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,4]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":4}}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (accepts(bad[i], 4)) fail_msg("accepted %s", bad[i]);
    assert_false(accepts("{}", 1)); /* data of no tensor */
}

static void refuses_every_shorter_file(void **state) {
    (void)state;
    size_t size;
    unsigned char *bytes = make_file("{" TENSOR("a", "[3]", 0, 12) "}", 12, &size);
    for (size_t length = 0; length < size; length++) {
        unsigned char *part = malloc(length ? length : 1);
        safetensors file;
        assert_non_null(part);
        memcpy(part, bytes, length);
        assert_false(safetensors_parse(part, length, &file, NULL, 0));
        free(part);
    }
    free(bytes);
}

static void refuses_a_wrong_header_length(void **state) {
    (void)state;
    size_t size;
    safetensors file;
    unsigned char *bytes = make_file("{}", 0, &size);
    bytes[0] = 3;
    assert_false(safetensors_parse(bytes, size, &file, NULL, 0));
    memset(bytes, 0xff, 8);
    assert_false(safetensors_parse(bytes, size, &file, NULL, 0));
    free(bytes);
    bytes = make_file("{}   \"a\"}", 0, &size);
    memset(bytes + 10, 0, 3);
    assert_false(safetensors_parse(bytes, size, &file, NULL, 0));
    free(bytes);
}

/* Any single changed byte gives an answer, not a crash; a checker watches the reads. */
static void survives_changed_bytes(void **state) {
    (void)state;
    size_t size;
    unsigned char *bytes = make_file("{\"__metadata__\":{\"a\":\"b\"}," TENSOR("a", "[3]", 0, 12) "}", 12, &size);
    for (size_t at = 0; at < size - 12; at++)
        for (unsigned change = 1; change < 256; change++) {
            safetensors file;
            bytes[at] = (unsigned char)(bytes[at] ^ change);
            if (safetensors_parse(bytes, size, &file, NULL, 0))
                for (size_t i = 0; i < file.count; i++)
                    assert_true(file.tensors[i].data + file.tensors[i].size <= bytes + size);
            safetensors_free(&file);
            bytes[at] = (unsigned char)(bytes[at] ^ change);
        }
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_tensors),
        cmocka_unit_test(accepts_the_edges),
        cmocka_unit_test(refuses_what_does_not_fit),
        cmocka_unit_test(refuses_every_shorter_file),
        cmocka_unit_test(refuses_a_wrong_header_length),
        cmocka_unit_test(survives_changed_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
