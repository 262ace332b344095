/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes that --verify writes: any one changed byte, in a block of any size and alignment, is found at its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "replay/pattern.h"

static void test_every_byte_counts(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 7, 8, 9, 63, 4095, 4096, 4097, 9001};
    static unsigned char bytes[9100];
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        for (size_t shift = 0; shift < 3; shift++) {
            unsigned char *block = bytes + shift;
            memset(bytes, 0xEE, sizeof bytes);
            pattern_fill(block, sizes[s], 42);
            assert_int_equal(block[sizes[s]], 0xEE);
            size_t at;
            assert_true(pattern_check(block, sizes[s], 42, &at));
            for (size_t i = 0; i < sizes[s]; i++) {
                block[i] ^= 0x10;
                assert_false(pattern_check(block, sizes[s], 42, &at));
                assert_int_equal(at, i / 8 * 8);
                block[i] ^= 0x10;
            }
        }
    }
}

static void test_blocks_differ(void **state) {
    (void)state;
    uint64_t words[64], others[64];
    size_t at;
    pattern_fill(words, sizeof words, 7);
    assert_false(pattern_check(words, sizeof words, 8, &at));
    assert_int_equal(at, 0);
    /* The block's own bytes in another place. */
    memmove(words, words + 1, sizeof words - sizeof *words);
    assert_false(pattern_check(words, sizeof words, 7, &at));
    assert_int_equal(at, 0);
    pattern_fill(words, sizeof words, 1000);
    pattern_fill(others, sizeof others, 1001);
    for (size_t i = 0; i < 64; i++)
        for (size_t j = 0; j < 64; j++)
            assert_true(words[i] != others[j]);
}

static void test_empty(void **state) {
    (void)state;
    size_t at;
    pattern_fill(NULL, 0, 1);
    assert_true(pattern_check(NULL, 0, 1, &at));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_byte_counts),
        cmocka_unit_test(test_blocks_differ),
        cmocka_unit_test(test_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
