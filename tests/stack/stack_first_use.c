/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many come first at once: four processes with eight threads each use a device that nobody has looked at. Half of the
 * threads share a runtime, the others have one each. All are told the same, the cache folder holds the one finding,
 * whole and with nothing beside it, and who comes later believes it.
 *
 * The program starts itself again for each process, with the folder's name.
 */
#include "opennuma/opennuma.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { PROCESSES = 4, THREADS = 8, TEXT = 512 };

static const char *self;
static char home[] = "/tmp/onuma-test-XXXXXX"; /* the cache's, of this run alone */

/* What a thread was told of sharing, in words; or what went wrong. */
typedef struct told {
    onuma_runtime *shared; /* NULL: it makes one of its own */
    pthread_barrier_t *start;
    char text[TEXT];
    onuma_proof proof;
} told;

static void ask(onuma_runtime *rt, told *t) {
    onuma_device *device;
    onuma_device_info info = ONUMA_DEVICE_INFO_INIT;
    onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
    onuma_pool *pool = NULL;
    onuma_result r = onuma_device_find(rt, "opencl:0", &device);
    if (r == ONUMA_OK) r = onuma_pool_create(device, &desc, &pool);
    if (r == ONUMA_OK) r = onuma_device_get_info(device, &info);
    if (r != ONUMA_OK)
        snprintf(t->text, sizeof t->text, "%s: %s", onuma_result_name(r), onuma_last_error());
    else
        snprintf(t->text, sizeof t->text, "%s %d %d %u %u %llu %s", info.shared_via, info.coherent,
                 info.import_zero_copy, (unsigned)info.kinds, (unsigned)info.sharing_notes,
                 (unsigned long long)info.max_block, info.sharing_detail);
    t->proof = info.proof;
    (void)onuma_pool_destroy(pool);
}

static void *use_first(void *argument) {
    told *t = argument;
    onuma_runtime *rt = t->shared;
    pthread_barrier_wait(t->start);
    if (rt == NULL && onuma_runtime_create(NULL, &rt) != ONUMA_OK) {
        snprintf(t->text, sizeof t->text, "%s", onuma_last_error());
        return NULL;
    }
    ask(rt, t);
    if (t->shared == NULL) onuma_runtime_destroy(rt);
    return NULL;
}

/* A process: prints what its threads were told, if it is one thing. */
static int be_one_of_many(void) {
    static told all[THREADS];
    pthread_t threads[THREADS];
    pthread_barrier_t start;
    onuma_runtime *shared;
    if (onuma_runtime_create(NULL, &shared) != ONUMA_OK) return 2;
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        all[i].shared = i % 2 == 0 ? shared : NULL;
        all[i].start = &start;
        if (pthread_create(&threads[i], NULL, use_first, &all[i]) != 0) return 2;
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    int status = 0;
    for (int i = 0; i < THREADS; i++) {
        const bool proved = all[i].proof == ONUMA_PROOF_MEASURED || all[i].proof == ONUMA_PROOF_CACHED;
        if (proved && strcmp(all[i].text, all[0].text) == 0) continue;
        fprintf(stderr, "thread %d: \"%s\" (%u), thread 0: \"%s\"\n", i, all[i].text, (unsigned)all[i].proof,
                all[0].text);
        status = 1;
    }
    onuma_runtime_destroy(shared);
    pthread_barrier_destroy(&start);
    puts(all[0].text);
    return fflush(stdout) == 0 ? status : 2;
}

/* ------------------------------------------------------------------ the test */

static pid_t start_process(FILE *output) {
    char *arguments[] = {(char *)(uintptr_t)self, home, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&actions, fileno(output), STDOUT_FILENO), 0);
    assert_int_equal(posix_spawn(&pid, self, &actions, NULL, arguments, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

static void expect_success(pid_t pid) {
    int status;
    pid_t ended;
    do
        ended = waitpid(pid, &status, 0);
    while (ended < 0 && errno == EINTR);
    assert_int_equal(ended, pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void read_line(FILE *output, char line[TEXT]) {
    rewind(output);
    assert_non_null(fgets(line, TEXT, output));
    fclose(output);
}

/* The name of the one file in the cache folder. */
static void only_file(char name[256]) {
    char folder[64];
    unsigned count = 0;
    snprintf(folder, sizeof folder, "%s/opennuma", home);
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (const struct dirent *entry; (entry = readdir(d)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (count++ != 0) fail_msg("beside %s there is %s", name, entry->d_name);
        snprintf(name, 256, "%s/%.180s", folder, entry->d_name);
    }
    closedir(d);
    assert_int_equal(count, 1);
}

static void all_are_told_the_same(void **state) {
    (void)state;
    pid_t pids[PROCESSES];
    FILE *outputs[PROCESSES];
    char lines[PROCESSES][TEXT], name[256] = "";
    for (int i = 0; i < PROCESSES; i++) {
        outputs[i] = tmpfile();
        assert_non_null(outputs[i]);
        pids[i] = start_process(outputs[i]);
    }
    for (int i = 0; i < PROCESSES; i++)
        expect_success(pids[i]);
    for (int i = 0; i < PROCESSES; i++) {
        read_line(outputs[i], lines[i]);
        assert_string_equal(lines[i], lines[0]);
    }
    struct stat file;
    only_file(name);
    assert_int_equal(lstat(name, &file), 0);
    assert_int_equal(file.st_mode, S_IFREG | 0600);
    /* Who comes now believes what is kept, and it is the same. */
    told later = {.start = NULL};
    onuma_runtime *rt;
    assert_int_equal(onuma_runtime_create(NULL, &rt), ONUMA_OK);
    ask(rt, &later);
    onuma_runtime_destroy(rt);
    assert_int_equal(later.proof, ONUMA_PROOF_CACHED);
    lines[0][strcspn(lines[0], "\n")] = '\0';
    assert_string_equal(later.text, lines[0]);
}

static int make_home(void **state) {
    (void)state;
    return mkdtemp(home) != NULL && setenv("XDG_CACHE_HOME", home, 1) == 0 ? 0 : -1;
}

static int remove_home(void **state) {
    (void)state;
    char name[256] = "", folder[64];
    only_file(name);
    snprintf(folder, sizeof folder, "%s/opennuma", home);
    return unlink(name) == 0 && rmdir(folder) == 0 && rmdir(home) == 0 ? 0 : -1;
}

int main(int count, char **arguments) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_are_told_the_same)};
    self = arguments[0];
    if (count > 1) return be_one_of_many();
    return cmocka_run_group_tests(tests, make_home, remove_home);
}
