/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes and times as text: three digits, the right unit, at every boundary. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "units.h"

static void test_bytes(void **state) {
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 B"},
        {1023, "1023 B"},
        {1024, "1.00 KiB"},
        {1536, "1.50 KiB"},
        {10240, "10.0 KiB"},
        {102400, "100 KiB"},
        {1048064, "1.00 MiB"}, /* 1023.5 KiB */
        {1047552, "1023 KiB"},
        {995375655, "949 MiB"},
        {(uint64_t)1 << 40, "1.00 TiB"},
        {UINT64_MAX, "16.0 EiB"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(cli_bytes(cases[i].bytes).text, cases[i].text);
}

static void test_nanoseconds(void **state) {
    (void)state;
    static const struct {
        double ns;
        const char *text;
    } cases[] = {
        {0, "0.00 ns"},     {9.996, "10.0 ns"}, {99.96, "100 ns"}, {999.4, "999 ns"},  {999.6, "1.00 us"},
        {12345, "12.3 us"}, {1e6, "1.00 ms"},   {1.5e9, "1.50 s"}, {7200e9, "7200 s"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(cli_nanoseconds(cases[i].ns).text, cases[i].text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_nanoseconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
