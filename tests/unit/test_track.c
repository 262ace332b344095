/* SPDX-License-Identifier: Apache-2.0 */
/* The table of call sites against a plain array, and the text of the leak report. */
#define _GNU_SOURCE /* system.h */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "system.h"
#include "track/track.h"

static uint64_t seed = 0x853c49e6748fea9b;
static uint64_t random_number(void) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static void agrees_with_an_array(void **state) {
    (void)state;
    enum { BLOCKS = 3000 };
    static uint64_t known[BLOCKS]; /* 0: not in the table */
    onuma__sites *sites = onuma__sites_create();
    assert_non_null(sites);
    for (uint64_t step = 1; step < 200000; step++) {
        size_t i = random_number() % BLOCKS;
        const void *block = (const void *)(uintptr_t)(0x7f0000000000 + i * 64);
        onuma__site site;
        bool found = onuma__sites_find(sites, block, &site);
        assert_int_equal(found, known[i] != 0);
        if (found) {
            assert_int_equal(site.time, known[i]);
            onuma__sites_remove(sites, block);
            known[i] = 0;
        } else {
            onuma__sites_add(sites, block, &(onuma__site){.time = step});
            known[i] = step;
        }
    }
    onuma__sites_remove(sites, &seed); /* not known: nothing happens */
    for (size_t i = 0; i < BLOCKS; i++) {
        onuma__site site;
        assert_int_equal(onuma__sites_find(sites, (const void *)(uintptr_t)(0x7f0000000000 + i * 64), &site),
                         known[i] != 0);
    }
    assert_int_equal(onuma__sites_unknown(sites), 0);
    onuma__sites_destroy(sites);
    onuma__sites_destroy(NULL);
}

typedef struct lines {
    size_t count;
    char text[32][512];
} lines;

static void collect(void *user, onuma_log_level level, const char *line) {
    lines *to = user;
    assert_int_equal(level, ONUMA_LOG_WARN);
    assert_true(to->count < 32);
    snprintf(to->text[to->count++], sizeof to->text[0], "%s", line);
}

static void reports_count_bytes_and_first_blocks(void **state) {
    (void)state;
    lines got = {0};
    onuma__log log = {ONUMA_LOG_WARN, collect, &got};
    onuma__leaks leaks = {.pool = "weights", .log = &log};
    onuma__leaks_report(&leaks);
    assert_int_equal(got.count, 0);

    for (uintptr_t i = 1; i <= ONUMA__LEAKS_SHOWN + 5; i++)
        onuma__leaks_add(&leaks, (const void *)(i * 0x1000), i);
    onuma__leaks_report(&leaks);
    assert_int_equal(got.count, 1 + ONUMA__LEAKS_SHOWN + 1);
    assert_non_null(strstr(got.text[0], "opennuma: leak: pool \"weights\": 15 blocks, 120 bytes not freed"));
    char first[128]; /* addresses look different from system to system */
    snprintf(first, sizeof first, "opennuma: leak: pool \"weights\": block %p of 1 bytes", (void *)(uintptr_t)0x1000);
    assert_non_null(strstr(got.text[1], first));
    assert_non_null(strstr(got.text[ONUMA__LEAKS_SHOWN + 1], "and 5 more"));
}

static void reports_age_and_call_site(void **state) {
    (void)state;
    lines got = {0};
    onuma__log log = {ONUMA_LOG_WARN, collect, &got};
    onuma__sites *sites = onuma__sites_create();
    onuma__leaks leaks = {.pool = "p", .log = &log, .sites = sites};
    int block;
    onuma__site site = {.time = onuma__os_now() - 2500000000u, .thread = 7};
    void (*code)(onuma__sites *) = onuma__sites_destroy;
    memcpy(&site.caller, &code, sizeof code);
    onuma__sites_add(sites, &block, &site);
    onuma__leaks_add(&leaks, &block, 4);
    onuma__leaks_report(&leaks);
    assert_int_equal(got.count, 2);
    assert_non_null(strstr(got.text[1], "s ago by thread 7 at test_track" SYSTEM_PROGRAM_SUFFIX "+0x"));
    assert_non_null(strstr(got.text[1], "allocated 2."));
    onuma__sites_destroy(sites);
}

static void silent_below_warn(void **state) {
    (void)state;
    lines got = {0};
    onuma__log log = {ONUMA_LOG_ERROR, collect, &got};
    onuma__leaks leaks = {.pool = "p", .log = &log};
    onuma__leaks_add(&leaks, &got, 4);
    onuma__leaks_report(&leaks);
    assert_int_equal(got.count, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_an_array),
        cmocka_unit_test(reports_count_bytes_and_first_blocks),
        cmocka_unit_test(reports_age_and_call_site),
        cmocka_unit_test(silent_below_warn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
