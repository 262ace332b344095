/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "support.h"

#include "base/log.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "system.h"

typedef struct seen {
    int count;
    onuma_log_level level;
    char line[2048];
} seen;

static void collect(void *user, onuma_log_level level, const char *line) {
    seen *s = user;
    s->count++;
    s->level = level;
    snprintf(s->line, sizeof s->line, "%s", line);
}

static void lines_begin_with_the_librarys_name(void **state) {
    (void)state;
    seen s = {0};
    onuma__log log = {ONUMA_LOG_WARN, collect, &s};
    onuma__log_write(&log, ONUMA_LOG_WARN, "leak: %d blocks", 3);
    assert_string_equal(s.line, "opennuma: leak: 3 blocks");
    assert_int_equal(s.level, ONUMA_LOG_WARN);
}

static void levels_beyond_the_logs_are_silent(void **state) {
    (void)state;
    seen s = {0};
    onuma__log log = {ONUMA_LOG_WARN, collect, &s};
    onuma__log_write(&log, ONUMA_LOG_INFO, "no");
    onuma__log_write(&log, ONUMA_LOG_NONE, "no");
    onuma__log_write(NULL, ONUMA_LOG_ERROR, "no");
    assert_int_equal(s.count, 0);
    onuma__log_write(&log, ONUMA_LOG_ERROR, "yes");
    assert_int_equal(s.count, 1);
    log.level = ONUMA_LOG_NONE;
    onuma__log_write(&log, ONUMA_LOG_ERROR, "no");
    assert_int_equal(s.count, 1);
    assert_false(onuma__log_wants(&log, ONUMA_LOG_ERROR));
}

static void a_message_is_one_line(void **state) {
    (void)state;
    seen s = {0};
    onuma__log log = {ONUMA_LOG_DEBUG, collect, &s};
    onuma__log_write(&log, ONUMA_LOG_INFO, "two\nlines\r\tand more");
    assert_string_equal(s.line, "opennuma: two lines  and more");

    char text[4096];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    onuma__log_write(&log, ONUMA_LOG_INFO, "%s", text);
    size_t length = strlen(s.line);
    assert_true(length > 500 && length < 1100);
    assert_string_equal(s.line + length - 4, "x...");
}

static void without_a_callback_lines_go_to_standard_error(void **state) {
    (void)state;
    int ends[2], before = dup(STDERR_FILENO);
    assert_int_equal(system_pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    onuma__log log = {ONUMA_LOG_ERROR, NULL, NULL};
    onuma__log_write(&log, ONUMA_LOG_ERROR, "first");
    onuma__log_write(&log, ONUMA_LOG_WARN, "hidden");
    onuma__log_write(&log, ONUMA_LOG_ERROR, "second");
    dup2(before, STDERR_FILENO);
    close(before);
    close(ends[1]);
    char text[256] = {0};
    assert_true(read(ends[0], text, sizeof text - 1) > 0);
    close(ends[0]);
    assert_string_equal(text, "opennuma: first\nopennuma: second\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_begin_with_the_librarys_name),
        cmocka_unit_test(levels_beyond_the_logs_are_silent),
        cmocka_unit_test(a_message_is_one_line),
        cmocka_unit_test(without_a_callback_lines_go_to_standard_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
