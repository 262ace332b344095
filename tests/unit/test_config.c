/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "base/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t read_value(const char *type, const char *text) {
    uint64_t value = 0;
    if (!onuma__config_value(type, text, strlen(text), &value)) fail_msg("\"%s\" is not a %s", text, type);
    return value;
}

static void refuse_value(const char *type, const char *text) {
    uint64_t value = 77;
    if (onuma__config_value(type, text, strlen(text), &value)) fail_msg("\"%s\" is taken for a %s", text, type);
    assert_int_equal(value, 77);
}

static void sizes(void **state) {
    (void)state;
    assert_int_equal(read_value("size", "0"), 0);
    assert_int_equal(read_value("size", "17"), 17);
    assert_int_equal(read_value("size", "4k"), 4096);
    assert_int_equal(read_value("size", "3m"), 3u << 20);
    assert_int_equal(read_value("size", "2g"), 2ull << 30);
    assert_true(read_value("size", "18446744073709551615") == UINT64_MAX);
    assert_true(read_value("size", "17179869183g") == (UINT64_MAX >> 30) << 30);
    const char *bad[] = {"",
                         "k",
                         "-1",
                         "+1",
                         "1.5g",
                         "4kb",
                         "4 k",
                         "0x10",
                         "18446744073709551616",
                         "17179869184g",
                         "99999999999999999999999999",
                         "4k ",
                         "1e3"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refuse_value("size", bad[i]);
}

static void times(void **state) {
    (void)state;
    assert_int_equal(read_value("time", "5"), 5);
    assert_int_equal(read_value("time", "5ns"), 5);
    assert_int_equal(read_value("time", "5us"), 5000);
    assert_int_equal(read_value("time", "50ms"), 50000000);
    assert_int_equal(read_value("time", "3s"), 3000000000);
    assert_true(read_value("time", "18446744073s") == 18446744073000000000u);
    const char *bad[] = {"", "s", "5m", "5sec", "-5s", "18446744074s"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refuse_value("time", bad[i]);
}

static void switches_and_choices(void **state) {
    (void)state;
    assert_int_equal(read_value("bool", "on"), 1);
    assert_int_equal(read_value("bool", "off"), 0);
    refuse_value("bool", "o");
    refuse_value("bool", "off|on");
    refuse_value("bool", "");
    assert_int_equal(read_value("a|bc|d", "a"), 0);
    assert_int_equal(read_value("a|bc|d", "bc"), 1);
    assert_int_equal(read_value("a|bc|d", "d"), 2);
    refuse_value("a|bc|d", "b");
    refuse_value("a|bc|d", "bcd");
    refuse_value("a|bc|d", "a|bc");
    refuse_value("a|bc|d", "A");
    refuse_value("a|bc|d", "");
}

static void every_key_is_registered_whole(void **state) {
    (void)state;
    size_t count = 0;
    onuma__config config;
    onuma__config_init(&config);
    for (const onuma_config_key *key; (key = onuma_config_key_at(count)) != NULL; count++) {
        uint64_t value;
        assert_true(strlen(key->name) > 0 && strlen(key->help) > 0);
        assert_null(strpbrk(key->name, ":, "));
        assert_true(onuma__config_value(key->type, key->fallback, strlen(key->fallback), &value));
        const char *text = onuma__config_text(&config, key->name);
        assert_true(onuma__config_value(key->type, text, strlen(text), &value));
        for (const char *word = key->type; word; word = strchr(word, '|'))
            assert_true(strcspn(word += *word == '|', "|") < ONUMA__CONFIG_TEXT_BYTES);
        for (size_t other = 0; other < count; other++)
            assert_string_not_equal(key->name, onuma_config_key_at(other)->name);
    }
    assert_int_equal(count, ONUMA__CONFIG_KEY_COUNT);
    assert_null(onuma_config_key_at(SIZE_MAX));
}

static void fallbacks_are_set(void **state) {
    (void)state;
    onuma__config config;
    memset(&config, 0xff, sizeof config);
    onuma__config_init(&config);
    assert_int_equal(config.log, ONUMA_LOG_NONE);
    assert_int_equal(config.opencl_share, ONUMA__SHARE_AUTO);
    assert_int_equal(config.pool_segment, 0);
    assert_int_equal(config.pool_cache, 16u << 20);
    assert_string_equal(onuma__config_text(&config, "pool.cache"), "16777216");
    assert_string_equal(onuma__config_text(&config, "log"), "none");
}

static void keys_are_set_and_the_last_wins(void **state) {
    (void)state;
    onuma__config config;
    onuma__config_init(&config);
    assert_int_equal(onuma__config_parse(&config, "log:info,track:full,,pool.segment:8m , log : warn,", "test"),
                     ONUMA_OK);
    assert_int_equal(config.log, ONUMA_LOG_WARN);
    assert_int_equal(config.track, ONUMA__TRACK_FULL);
    assert_int_equal(config.pool_segment, 8u << 20);
    assert_int_equal(config.pool_cache, 16u << 20);
    assert_int_equal(onuma__config_parse(&config, "opencl.share:import", "test"), ONUMA_OK);
    assert_int_equal(config.opencl_share, ONUMA__SHARE_IMPORT);
    assert_int_equal(config.track, ONUMA__TRACK_FULL);
    assert_string_equal(onuma__config_text(&config, "opencl.share"), "import");
    assert_string_equal(onuma__config_text(&config, "pool.segment"), "8388608");
    assert_null(onuma__config_text(&config, "opencl"));
    assert_null(onuma__config_text(&config, ""));
}

static void the_words_have_the_headers_order(void **state) {
    (void)state;
    static const char *const words[] = {"none", "error", "warn", "info", "debug"};
    onuma__config config;
    onuma__config_init(&config);
    for (onuma_log_level level = ONUMA_LOG_NONE; level <= ONUMA_LOG_DEBUG; level++) {
        char text[16] = "log:";
        strcat(text, words[level]);
        assert_int_equal(onuma__config_parse(&config, text, "test"), ONUMA_OK);
        assert_int_equal(config.log, level);
    }
    assert_int_equal(onuma__config_parse(&config, "check:hazards,backends:host,opencl.share:svm_fine", "test"),
                     ONUMA_OK);
    assert_int_equal(config.check, ONUMA__CHECK_HAZARDS);
    assert_int_equal(config.backends, ONUMA__BACKENDS_HOST);
    assert_int_equal(config.opencl_share, ONUMA__SHARE_SVM_FINE);
}

static void texts_read_back_as_the_same_config(void **state) {
    (void)state;
    onuma__config config, again;
    onuma__config_init(&config);
    onuma__config_init(&again);
    const char *text = "log:debug,track:full,check:hazards,opencl.share:svm_coarse,pool.segment:3g,pool.cache:7";
    assert_int_equal(onuma__config_parse(&config, text, "test"), ONUMA_OK);
    for (size_t i = 0; i < ONUMA__CONFIG_KEY_COUNT; i++) {
        char item[128];
        const char *name = onuma_config_key_at(i)->name;
        assert_true(snprintf(item, sizeof item, "%s:%s", name, onuma__config_text(&config, name)) < (int)sizeof item);
        assert_int_equal(onuma__config_parse(&again, item, "test"), ONUMA_OK);
    }
    assert_memory_equal(&again, &config, sizeof config);
}

static void nothing_changes_nothing(void **state) {
    (void)state;
    onuma__config config, before;
    onuma__config_init(&config);
    before = config;
    const char *texts[] = {NULL, "", ",", " , ,\t"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(onuma__config_parse(&config, texts[i], "test"), ONUMA_OK);
        assert_memory_equal(&config, &before, sizeof config);
    }
}

/* The text is refused, the detail contains each of the parts, and nothing has changed. */
static void refuse(const char *text, const char *part, const char *other_part) {
    onuma__config config, before;
    onuma__config_init(&config);
    before = config;
    assert_int_equal(onuma__config_parse(&config, text, "OPENNUMA_CONF"), ONUMA_ERROR_INVALID_ARGUMENT);
    assert_memory_equal(&config, &before, sizeof config);
    const char *detail = onuma_last_error();
    if (!strstr(detail, "OPENNUMA_CONF") || !strstr(detail, part) || !strstr(detail, other_part))
        fail_msg("\"%s\" or \"%s\" is not in \"%s\"", part, other_part, detail);
}

static void errors_say_what_there_is(void **state) {
    (void)state;
    for (size_t i = 0; i < ONUMA__CONFIG_KEY_COUNT; i++)
        refuse("nonsense:1", "\"nonsense\"", onuma_config_key_at(i)->name);
    refuse("Log:warn", "\"Log\"", "log, track");
    refuse("opencl:usm", "\"opencl\"", "opencl.share");
    refuse("log", "\"log\" has no value", "none|error|warn|info|debug");
    refuse("log:", "\"\"", "none|error|warn|info|debug");
    refuse("log:loud", "\"loud\"", "none|error|warn|info|debug");
    refuse("log:warn:info", "\"warn:info\"", "none|error|warn|info|debug");
    refuse("pool.cache:big", "\"big\"", "bytes");
    refuse("log:debug,track:full,pool.cache:99999999999999999999g", "pool.cache", "bytes");
    refuse(":", "\"\"", "the keys are");
    refuse("a\nb\x80:1", "\"a?b?\"", "the keys are");
    refuse("a-key-whose-name-is-much-longer-than-any-message-should-ever-quote:1", "...", "the keys are");
}

/* Random texts, rich in the parser's own characters: whatever comes, the config is whole. */
static void any_bytes_are_survived(void **state) {
    (void)state;
    static const char alphabet[] = "log:warn,pool.cache4kmg|\t \x01\xff";
    uint32_t random = 12345;
    onuma__config config;
    onuma__config_init(&config);
    for (int round = 0; round < 20000; round++) {
        size_t length = random % 40;
        char *text = malloc(length + 1); /* exactly as long, for the address sanitizer */
        assert_non_null(text);
        for (size_t i = 0; i < length; i++) {
            random = random * 1664525u + 1013904223u;
            text[i] = alphabet[(random >> 16) % (sizeof alphabet - 1)];
        }
        text[length] = '\0';
        random = random * 1664525u + 1013904223u;
        onuma_result r = onuma__config_parse(&config, text, "test");
        assert_true(r == ONUMA_OK || r == ONUMA_ERROR_INVALID_ARGUMENT);
        assert_true(config.log <= ONUMA_LOG_DEBUG);
        free(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),
        cmocka_unit_test(times),
        cmocka_unit_test(switches_and_choices),
        cmocka_unit_test(every_key_is_registered_whole),
        cmocka_unit_test(fallbacks_are_set),
        cmocka_unit_test(keys_are_set_and_the_last_wins),
        cmocka_unit_test(the_words_have_the_headers_order),
        cmocka_unit_test(texts_read_back_as_the_same_config),
        cmocka_unit_test(nothing_changes_nothing),
        cmocka_unit_test(errors_say_what_there_is),
        cmocka_unit_test(any_bytes_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
