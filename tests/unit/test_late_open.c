/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that knows nothing of the library opens it late, from a thread, as a plug-in of Python's does: its
 * thread-local storage must find room, threads that are older must be able to use it, and closing it must not pull
 * the exit hook from under them. Eight threads may open it at once, and a pointer to it is good after every close.
 */
#define _GNU_SOURCE
#include "support.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef const char *text_function(void);

static const char *path = ONUMA_TEST_LIBRARY; /* or the command's argument: a library from elsewhere */
static pthread_barrier_t opened, used, closed;
static text_function *last_error, *version; /* written before `opened` */

static void *older_thread(void *argument) {
    pthread_barrier_wait(&opened);
    const char *text = last_error ? last_error() : NULL;
    pthread_barrier_wait(&used);
    pthread_barrier_wait(&closed);
    return text && strcmp(text, "") == 0 ? argument : NULL;
}

static void *opening_thread(void *argument) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library) {
        *(void **)&last_error = dlsym(library, "onuma_last_error");
        *(void **)&version = dlsym(library, "onuma_version");
        if (last_error) last_error();
    }
    *(const char **)argument = library ? NULL : dlerror();
    pthread_barrier_wait(&opened);
    return library;
}

static void the_library_can_be_opened_late(void **state) {
    (void)state;
    pthread_barrier_init(&opened, NULL, 3);
    pthread_barrier_init(&used, NULL, 2);
    pthread_barrier_init(&closed, NULL, 2);
    pthread_t older, opening;
    int token;
    const char *complaint = NULL;
    void *library = NULL, *returned = NULL;
    assert_int_equal(pthread_create(&older, NULL, older_thread, &token), 0);
    assert_int_equal(pthread_create(&opening, NULL, opening_thread, &complaint), 0);
    pthread_barrier_wait(&opened);
    assert_int_equal(pthread_join(opening, &library), 0);
    if (!library) fail_msg("%s", complaint);
    assert_non_null(last_error);
    assert_non_null(version);
    assert_true(strlen(version()) >= 5);
    pthread_barrier_wait(&used);
    assert_int_equal(dlclose(library), 0);
    pthread_barrier_wait(&closed);
    assert_int_equal(pthread_join(older, &returned), 0);
    assert_ptr_equal(returned, &token);
}

/* ------------------------------------------------------------ all at once */

enum { OPENERS = 8 };
static pthread_barrier_t all_ready;

typedef struct opener {
    void *library;
    text_function *version;
} opener;

static void *open_at_once(void *argument) {
    opener *self = argument;
    pthread_barrier_wait(&all_ready);
    self->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!self->library) return NULL;
    int32_t (*create)(const void *, void **);
    void (*destroy)(void *);
    *(void **)&self->version = dlsym(self->library, "onuma_version");
    *(void **)&create = dlsym(self->library, "onuma_runtime_create");
    *(void **)&destroy = dlsym(self->library, "onuma_runtime_destroy");
    void *runtime = NULL;
    if (!self->version || !create || !destroy || create(NULL, &runtime) != 0) return NULL;
    destroy(runtime);
    return argument;
}

static void eight_threads_open_it_at_once(void **state) {
    (void)state;
    pthread_t threads[OPENERS];
    opener openers[OPENERS];
    setenv("OPENNUMA_CONF", "backends:host", 1);
    pthread_barrier_init(&all_ready, NULL, OPENERS);
    for (size_t i = 0; i < OPENERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_at_once, &openers[i]), 0);
    for (size_t i = 0; i < OPENERS; i++) {
        void *returned;
        pthread_join(threads[i], &returned);
        assert_ptr_equal(returned, &openers[i]);
        assert_ptr_equal(openers[i].library, openers[0].library);
    }
    text_function *kept = openers[0].version;
    for (size_t i = 0; i < OPENERS; i++)
        assert_int_equal(dlclose(openers[i].library), 0);
    assert_true(strlen(kept()) >= 5); /* it is never unloaded */
    void *again = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(again);
    dlclose(again);
}

int main(int argc, char **argv) {
    if (argc > 1) path = argv[1];
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_library_can_be_opened_late),
                                       cmocka_unit_test(eight_threads_open_it_at_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
