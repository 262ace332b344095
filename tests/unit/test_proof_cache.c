/* SPDX-License-Identifier: Apache-2.0 */
/* What the probe keeps between runs: nothing is believed that this version would not write, for another key, or from a
 * file that somebody else could have written. */
#define _GNU_SOURCE
#include "backend/proof_cache.h"
#include "os/os.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char home[] = "/tmp/onuma-test-XXXXXX"; /* a folder of this run alone */

static const onuma__proof_record good = {.way = "svm_fine",
                                         .mapped = true,
                                         .imports = true,
                                         .max_segment = UINT64_MAX,
                                         .notes = UINT32_MAX,
                                         .detail = "svm_fine proved; 100% of it = \"all\""};

static onuma__proof_key key_of(const char *driver) {
    onuma__proof_key key = {.length = 0};
    onuma__proof_key_add(&key, "driver", driver);
    onuma__proof_key_add_number(&key, "memory", 12345678901);
    return key;
}

static bool same(const onuma__proof_record *a, const onuma__proof_record *b) {
    return strcmp(a->way, b->way) == 0 && a->mapped == b->mapped && a->imports == b->imports &&
           a->import_zero_copy == b->import_zero_copy && a->max_segment == b->max_segment && a->notes == b->notes &&
           strcmp(a->detail, b->detail) == 0;
}

/* --------------------------------------------------------------------- text */

static void keys_hold_any_bytes_apart(void **state) {
    (void)state;
    onuma__proof_key plain = key_of("a"), other = key_of("a\nmemory=1"), escaped = key_of("a%0amemory=1");
    assert_string_equal(plain.text, "driver=a\nmemory=12345678901\n");
    assert_string_not_equal(other.text, escaped.text);
    assert_null(strstr(other.text, "\nmemory=1\n"));
    char longer[ONUMA__PROOF_KEY_BYTES + 1];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    onuma__proof_key_add(&plain, "longer", longer);
    assert_true(plain.overflowed);
    char text[ONUMA__PROOF_FILE_BYTES];
    assert_int_equal(onuma__proof_format(&plain, &good, text), 0);
}

static void what_is_written_is_read(void **state) {
    (void)state;
    const onuma__proof_key key = key_of("PoCL 3.1"), other = key_of("PoCL 3.2");
    char text[ONUMA__PROOF_FILE_BYTES];
    const size_t length = onuma__proof_format(&key, &good, text);
    assert_true(length > 0);
    onuma__proof_record record = {.way = ""};
    assert_true(onuma__proof_parse(text, length, &key, &record));
    assert_true(same(&record, &good));
    assert_false(onuma__proof_parse(text, length, &other, &record));
    onuma__proof_record bad = good;
    strcpy(bad.detail, "two\nlines");
    assert_int_equal(onuma__proof_format(&key, &bad, text), 0);
}

static void each_changed_byte_is_noticed(void **state) {
    (void)state;
    const onuma__proof_key key = key_of("PoCL 3.1");
    char text[ONUMA__PROOF_FILE_BYTES];
    const size_t length = onuma__proof_format(&key, &good, text);
    onuma__proof_record record = {.way = "untouched"};
    for (size_t i = 0; i < length; i++)
        for (int bit = 0; bit < 8; bit++) {
            text[i] = (char)(text[i] ^ 1 << bit);
            assert_false(onuma__proof_parse(text, length, &key, &record));
            text[i] = (char)(text[i] ^ 1 << bit);
        }
    for (size_t shorter = 0; shorter < length; shorter++)
        assert_false(onuma__proof_parse(text, shorter, &key, &record));
    text[length] = '\n';
    assert_false(onuma__proof_parse(text, length + 1, &key, &record));
    assert_string_equal(record.way, "untouched");
}

/* -------------------------------------------------------------------- file */

static char folder[PATH_MAX], file[PATH_MAX];
#define NAME "sharing-test"

static int fresh_home(void **state) {
    (void)state;
    strcpy(home, "/tmp/onuma-test-XXXXXX");
    if (mkdtemp(home) == NULL) return -1;
    setenv("XDG_CACHE_HOME", home, 1);
    snprintf(folder, sizeof folder, "%s/opennuma", home);
    snprintf(file, sizeof file, "%s/opennuma/%s", home, NAME);
    return 0;
}

static int remove_home(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "chmod -R u+rwx %s; rm -rf %s", home, home);
    return system(command);
}

static onuma_result read_it(char *bytes, size_t room) {
    size_t length = 0;
    memset(bytes, 0, room);
    return onuma__os_cache_read(NAME, bytes, room, &length);
}

static void check_trusted(const char *expected) {
    char bytes[64];
    struct stat s;
    if (read_it(bytes, sizeof bytes) != ONUMA_OK) fail_msg("%s", onuma_last_error());
    assert_string_equal(bytes, expected);
    assert_int_equal(lstat(file, &s), 0);
    assert_int_equal(s.st_mode, S_IFREG | 0600);
    assert_int_equal(lstat(folder, &s), 0);
    assert_int_equal(s.st_mode, S_IFDIR | 0700);
}

static void write_it(const char *text) {
    if (onuma__os_cache_write(NAME, text, strlen(text)) != ONUMA_OK) fail_msg("%s", onuma_last_error());
}

static void files_are_private_and_replaced_whole(void **state) {
    (void)state;
    char bytes[8];
    assert_int_equal(read_it(bytes, sizeof bytes), ONUMA_ERROR_NOT_FOUND);
    const mode_t mask = umask(0);
    write_it("first");
    umask(0777);
    write_it("second one");
    umask(mask);
    check_trusted("second one");
    assert_int_equal(read_it(bytes, 5), ONUMA_ERROR_INVALID_ARGUMENT); /* longer than anything of ours */
}

/* Each of these must be refused when read, and replaced when written. */
static void put_link(void) {
    assert_int_equal(symlink("/etc/passwd", file), 0);
}
static void put_fifo(void) {
    assert_int_equal(mkfifo(file, 0600), 0);
}
static void put_writable(void) {
    write_it("planted");
    assert_int_equal(chmod(file, 0620), 0);
}
static void put_hard_link(void) {
    char second[PATH_MAX];
    write_it("planted");
    snprintf(second, sizeof second, "%s/second-name", home);
    assert_int_equal(link(file, second), 0);
}
static void put_foreign(void) {
    write_it("planted");
    if (geteuid() == 0)
        assert_int_equal(chown(file, 12345, 12345), 0);
    else
        assert_int_equal(chmod(file, 0602), 0); /* only root can give files away */
}
static void open_folder_to_others(void) {
    write_it("planted");
    assert_int_equal(chmod(folder, 0777), 0);
}

static void what_others_could_have_written_is_refused(void **state) {
    (void)state;
    void (*const plants[])(void) = {put_link,      put_fifo,    put_writable,
                                    put_hard_link, put_foreign, open_folder_to_others};
    for (size_t i = 0; i < sizeof plants / sizeof plants[0]; i++) {
        char bytes[4096];
        assert_int_equal(mkdir(folder, 0700), 0);
        plants[i]();
        const onuma_result r = read_it(bytes, sizeof bytes);
        if (r == ONUMA_OK) fail_msg("plant %zu was read: %s", i, bytes);
        write_it("ours again");
        check_trusted("ours again");
        remove_home(NULL);
        fresh_home(NULL);
    }
    struct stat s;
    assert_int_equal(stat("/etc/passwd", &s), 0); /* the link's target was not written */
    assert_true(s.st_size > 12);
}

static void what_cannot_be_written_is_an_error(void **state) {
    (void)state;
    char elsewhere[PATH_MAX], bytes[64];
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", home);
    assert_int_equal(mkdir(elsewhere, 0700), 0);
    assert_int_equal(symlink(elsewhere, folder), 0); /* the folder itself a link */
    assert_int_not_equal(onuma__os_cache_write(NAME, "x", 1), ONUMA_OK);
    assert_int_not_equal(read_it(bytes, sizeof bytes), ONUMA_OK);
    assert_int_equal(rmdir(elsewhere), 0); /* and empty */
    assert_int_equal(unlink(folder), 0);

    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(mkdir(file, 0700), 0); /* a folder in the file's place */
    assert_int_equal(onuma__os_cache_write(NAME, "x", 1), ONUMA_ERROR_IO);
    assert_int_not_equal(read_it(bytes, sizeof bytes), ONUMA_OK);
    assert_int_equal(rmdir(file), 0);
    assert_int_equal(rmdir(folder), 0); /* nothing half written stays */

    int folder_as_file = open(folder, O_CREAT | O_WRONLY, 0600);
    assert_true(folder_as_file >= 0);
    close(folder_as_file);
    assert_int_not_equal(onuma__os_cache_write(NAME, "x", 1), ONUMA_OK);

    const char *const nowhere[] = {"", "relative", "/nonexistent/a/b", "/proc/self/none"};
    for (size_t i = 0; i < sizeof nowhere / sizeof nowhere[0]; i++) {
        setenv("XDG_CACHE_HOME", nowhere[i], 1);
        setenv("HOME", "", 1);
        assert_int_not_equal(onuma__os_cache_write(NAME, "x", 1), ONUMA_OK);
        assert_int_not_equal(read_it(bytes, sizeof bytes), ONUMA_OK);
    }
}

/* Where files may not grow, a write would end the process by a signal. */
static void file_size_limits_are_respected(void **state) {
    (void)state;
    struct rlimit before, none;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    none = before;
    none.rlim_cur = 2;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    assert_int_equal(onuma__os_cache_write(NAME, "longer", 6), ONUMA_ERROR_IO);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

static void *write_often(void *argument) {
    char text[4000];
    memset(text, *(char *)argument, sizeof text);
    for (int i = 0; i < 50; i++)
        if (onuma__os_cache_write(NAME, text, sizeof text) != ONUMA_OK) return argument;
    return NULL;
}

static void readers_see_one_writer_or_the_other(void **state) {
    (void)state;
    static char names[] = "ab";
    pthread_t writers[2];
    write_it("");
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&writers[i], NULL, write_often, &names[i]), 0);
    for (int i = 0; i < 200; i++) {
        char bytes[5000];
        size_t length = 0;
        if (onuma__os_cache_read(NAME, bytes, sizeof bytes, &length) != ONUMA_OK) fail_msg("%s", onuma_last_error());
        assert_true(length == 0 || length == 4000);
        for (size_t at = 1; at < length; at++)
            assert_int_equal(bytes[at], bytes[0]);
    }
    for (size_t i = 0; i < 2; i++) {
        void *failed;
        assert_int_equal(pthread_join(writers[i], &failed), 0);
        assert_null(failed);
    }
}

#define IN_HOME(test) cmocka_unit_test_setup_teardown(test, fresh_home, remove_home)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_hold_any_bytes_apart),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(each_changed_byte_is_noticed),
        IN_HOME(files_are_private_and_replaced_whole),
        IN_HOME(what_others_could_have_written_is_refused),
        IN_HOME(what_cannot_be_written_is_an_error),
        IN_HOME(file_size_limits_are_respected),
        IN_HOME(readers_see_one_writer_or_the_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
