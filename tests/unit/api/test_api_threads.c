/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads, processes and signals around the public functions. That 10,000 short threads leave nothing behind; that a
 * program of many threads may fork a thousand times and more while they allocate, free and acquire, and spawn others;
 * that handlers of fork() may allocate; that two runtimes know nothing of each other; and that signals cut no wait
 * short and break none.
 */
#define _GNU_SOURCE /* vfork */
#include "api.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHILD(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) _exit(__LINE__ % 255 + 1);                                                                   \
    } while (0)

/* Under a sanitizer a thread or a fork costs so much that a tenth has to do; and the thread sanitizer leaves a process
 * so few addresses that no more than a few runtimes can leave their pools' ranges behind. */
#if defined(__SANITIZE_THREAD__)
enum { VISITS = 1000, FORKS = 100, LIVES = 2 };
#elif defined(__SANITIZE_ADDRESS__)
enum { VISITS = 1000, FORKS = 100, LIVES = 30 };
#else
enum { VISITS = 10000, FORKS = 1000, LIVES = 30 };
#endif

static void join_child(pid_t child) {
    int status;
    while (waitpid(child, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    if (WIFSIGNALED(status)) fail_msg("the child died of signal %d", WTERMSIG(status));
    if (WEXITSTATUS(status) != 0) fail_msg("the child failed at line %d (modulo 255)", WEXITSTATUS(status) - 1);
}

/* ------------------------------------------------------------ short threads */

static void *visit(void *argument) {
    onuma_pool *pool = argument;
    void *blocks[8], *out;
    for (size_t i = 0; i < 8; i++)
        if (onuma_alloc(pool, i % 2 == 0 ? 100 * i : 20000 * i, 0, NULL, &blocks[i]) != ONUMA_OK) return NULL;
    (void)onuma_alloc(pool, 10, 3, NULL, &out); /* a text of its own */
    for (size_t i = 0; i < 8; i++)
        if (onuma_free(blocks[i], NULL) != ONUMA_OK) return NULL;
    return argument;
}

static size_t resident(void) {
    size_t all, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%zu %zu", &all, &pages), 2);
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void visits(onuma_pool *pool, unsigned count) {
    for (unsigned i = 0; i < count; i += 4) {
        pthread_t threads[4];
        for (size_t t = 0; t < 4; t++)
            assert_int_equal(pthread_create(&threads[t], NULL, visit, pool), 0);
        for (size_t t = 0; t < 4; t++) {
            void *result;
            pthread_join(threads[t], &result);
            assert_ptr_equal(result, pool);
        }
    }
}

static void ten_thousand_threads_leave_nothing(void **state) {
    (void)state;
    onuma_runtime *rt = api_runtime("backends:host", NULL);
    onuma_pool *pool = api_pool(api_host(rt), 0);
    visits(pool, 400);
    OK(onuma_pool_trim(pool, 0, NULL));
    const onuma_pool_stats before = api_stats(pool);
    const size_t resident_before = resident();
    visits(pool, VISITS);
    onuma_pool_stats after = api_stats(pool);
    assert_int_equal(after.in_use_blocks, 0);
    assert_int_equal(after.requested_bytes, 0);
    assert_int_equal(after.alloc_count - before.alloc_count, 8 * VISITS);
    OK(onuma_pool_trim(pool, 0, NULL));
    after = api_stats(pool);
    assert_int_equal(after.reserved_bytes, 0);
    /* As many heaps as threads were there at once, not as there have been. */
    assert_true(after.metadata_bytes <= before.metadata_bytes + 65536);
    /* A leaked text or table for each thread would come to 5 MB and more. The sanitizers keep some of every thread. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    assert_true(resident() < resident_before + (3 << 20));
#else
    (void)resident_before;
#endif
    OK(onuma_pool_destroy(pool));
    onuma_runtime_destroy(rt);
}

/* ----------------------------------------------------------------- processes */

static atomic_bool stop;
static onuma_host_timeline timeline;

typedef struct worker {
    onuma_pool *pool;
    onuma_queue *queue;
    atomic_uint rounds;
} worker;

static void *work(void *argument) {
    worker *w = argument;
    while (!stop) {
        void *small, *large;
        if (onuma_alloc(w->pool, 3000, 0, NULL, &small) == ONUMA_OK) {
            (void)onuma_use(w->queue, small, ONUMA_ACCESS_READ);
            (void)onuma_submitted(w->queue, NULL);
            if (onuma_host_acquire(small, 3000, ONUMA_ACCESS_READ_WRITE, 0) == ONUMA_OK)
                (void)onuma_host_release(small, 3000, ONUMA_ACCESS_READ_WRITE);
            (void)onuma_free(small, w->queue);
        }
        if (onuma_alloc(w->pool, 1 << 20, 0, w->queue, &large) == ONUMA_OK) (void)onuma_free(large, w->queue);
        (void)onuma_pool_trim(w->pool, 0, NULL);
        atomic_fetch_add(&w->rounds, 1);
    }
    return NULL;
}

typedef struct team {
    onuma_runtime *rt;
    worker workers[2];
    pthread_t threads[2];
} team;

static void start_team(team *t) {
    t->rt = api_runtime("backends:host", NULL);
    stop = false;
    for (size_t i = 0; i < 2; i++) {
        t->workers[i].pool = i == 0 ? api_pool(api_host(t->rt), 0) : t->workers[0].pool;
        t->workers[i].rounds = 0;
        OK(onuma_queue_wrap(api_host(t->rt), ONUMA_API_HOST, (uint64_t)(uintptr_t)&timeline, NULL,
                            &t->workers[i].queue));
        assert_int_equal(pthread_create(&t->threads[i], NULL, work, &t->workers[i]), 0);
    }
    while (t->workers[0].rounds == 0 || t->workers[1].rounds == 0)
        sched_yield();
}

static void end_team(team *t) {
    stop = true;
    for (size_t i = 0; i < 2; i++) {
        pthread_join(t->threads[i], NULL);
        OK(onuma_queue_release(t->workers[i].queue));
    }
    OK(onuma_pool_destroy(t->workers[0].pool));
    onuma_runtime_destroy(t->rt);
}

/* Everything of the parent's that is still there for a child, and one of its own. */
static void use_in_child(onuma_pool *pool, void *mine) {
    void *small, *large;
    alarm(50);
    CHILD(onuma_free(mine, NULL) == ONUMA_OK);
    CHILD(onuma_free(mine, NULL) == ONUMA_ERROR_DOUBLE_FREE);
    for (size_t i = 0; i < 20; i++) {
        CHILD(onuma_alloc(pool, 3000, 0, NULL, &small) == ONUMA_OK);
        CHILD(onuma_alloc(pool, 1 << 20, 0, NULL, &large) == ONUMA_OK);
        memset(small, 1, 3000);
        memset(large, 1, 1 << 20);
        CHILD(onuma_host_acquire(small, 3000, ONUMA_ACCESS_READ, 0) == ONUMA_OK);
        CHILD(onuma_host_release(small, 3000, ONUMA_ACCESS_READ) == ONUMA_OK);
        CHILD(onuma_free(small, NULL) == ONUMA_OK);
        CHILD(onuma_free(large, NULL) == ONUMA_OK);
    }
    CHILD(onuma_pool_trim(pool, 0, NULL) == ONUMA_OK);
}

/* The thread sanitizer wants none in the child of a process with several. */
#if defined(__SANITIZE_THREAD__)
enum { CHILD_THREADS = 0 };
#else
enum { CHILD_THREADS = 2 };
#endif

/* A thread of a child, whose state may lie where a thread of the parent's had its own. */
static void *visit_in_child(void *argument) {
    void *blocks[50];
    for (size_t i = 0; i < 50; i++)
        CHILD(onuma_alloc(argument, 3000, 0, NULL, &blocks[i]) == ONUMA_OK);
    for (size_t i = 0; i < 50; i++)
        for (size_t j = 0; j < i; j++)
            CHILD(blocks[i] != blocks[j]);
    for (size_t i = 0; i < 50; i++)
        CHILD(onuma_free(blocks[i], NULL) == ONUMA_OK);
    return NULL;
}

static void a_thousand_forks_amid_work(void **state) {
    (void)state;
    team t;
    start_team(&t);
    for (unsigned round = 0; round < FORKS; round++) {
        void *mine;
        OK(onuma_alloc(t.workers[0].pool, 500, 0, NULL, &mine));
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            use_in_child(t.workers[0].pool, mine);
            pthread_t threads[2];
            const int count = round % 10 == 0 ? CHILD_THREADS : 0;
            for (int i = 0; i < count; i++)
                CHILD(pthread_create(&threads[i], NULL, visit_in_child, t.workers[0].pool) == 0);
            for (int i = 0; i < count; i++)
                pthread_join(threads[i], NULL);
            _exit(0);
        }
        join_child(child);
        OK(onuma_free(mine, NULL));
    }
    end_team(&t);
}

extern char **environ;

static void spawning_harms_nothing(void **state) {
    (void)state;
    team t;
    start_team(&t);
    for (unsigned round = 0; round < 50; round++) {
        char *const arguments[] = {(char *)(uintptr_t) "true", NULL};
        pid_t child;
        assert_int_equal(posix_spawnp(&child, "true", NULL, NULL, arguments, environ), 0);
        join_child(child);
        child = vfork();
        if (child == 0) {
            execvp("true", arguments);
            _exit(1);
        }
        assert_true(child > 0);
        join_child(child);
        /* It is still our process, as far as the library is concerned. */
        void *block;
        OK(onuma_alloc(t.workers[0].pool, 3000, 0, t.workers[0].queue, &block));
        OK(onuma_free(block, t.workers[0].queue));
    }
    end_team(&t);
}

/* --------------------------------------------------- handlers of fork itself */

static onuma_pool *handlers_pool; /* NULL: they do nothing */
static atomic_uint handled;

static void allocate_in_handler(void) {
    void *small, *large;
    if (handlers_pool == NULL) return;
    CHILD(onuma_alloc(handlers_pool, 3000, 0, NULL, &small) == ONUMA_OK);
    CHILD(onuma_alloc(handlers_pool, 1 << 20, 0, NULL, &large) == ONUMA_OK);
    CHILD(onuma_free(small, NULL) == ONUMA_OK);
    CHILD(onuma_free(large, NULL) == ONUMA_OK);
    CHILD(onuma_pool_trim(handlers_pool, 0, NULL) == ONUMA_OK);
    atomic_fetch_add(&handled, 1);
}

static void handlers_of_fork_may_allocate(void **state) {
    (void)state;
    team t;
    start_team(&t);
    assert_int_equal(pthread_atfork(allocate_in_handler, allocate_in_handler, allocate_in_handler), 0);
    handlers_pool = t.workers[0].pool;
    for (unsigned round = 0; round < 50; round++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) _exit(handled == 2 * round + 2 ? 0 : 1); /* `before` of this one and `child` */
        join_child(child);
    }
    handlers_pool = NULL;
    assert_int_equal(handled, 100);
    end_team(&t);
}

/* ------------------------------------------------------------------- signals */

static atomic_uint alarms;

static void count_alarm(int number) {
    (void)number;
    atomic_fetch_add(&alarms, 1);
}

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void set_timer(long microseconds) {
    const struct itimerval every = {{0, microseconds}, {0, microseconds}};
    assert_int_equal(setitimer(ITIMER_REAL, &every, NULL), 0);
}

static void *complete_later(void *argument) {
    onuma_host_timeline *line = argument;
    struct timespec left = {0, 30000000};
    while (nanosleep(&left, &left) != 0) {
    }
    atomic_store(&line->completed, atomic_load(&line->submitted));
    return NULL;
}

static void signals_disturb_no_wait(void **state) {
    (void)state;
    struct sigaction action = {.sa_handler = count_alarm}, old; /* no SA_RESTART */
    onuma_runtime *rt = api_runtime("backends:host", NULL);
    onuma_device *host = api_host(rt);
    onuma_pool *pool = api_pool(host, 0);
    onuma_queue *queue;
    onuma_host_timeline line = {0, 0};
    pthread_t completer;
    void *block, *more;
    OK(onuma_queue_wrap(host, ONUMA_API_HOST, (uint64_t)(uintptr_t)&line, NULL, &queue));
    OK(onuma_alloc(pool, 5000, 0, NULL, &block));
    assert_int_equal(sigaction(SIGALRM, &action, &old), 0);
    set_timer(500);

    /* Times are kept: not a nanosecond less. */
    line.submitted = 1;
    OK(onuma_use(queue, block, ONUMA_ACCESS_WRITE));
    OK(onuma_submitted(queue, NULL));
    uint64_t begin = now();
    FAILS(TIMEOUT, "", onuma_host_acquire(block, 5000, ONUMA_ACCESS_READ, 50000000));
    assert_true(now() - begin >= 50000000);
    FAILS(TIMEOUT, "", onuma_host_acquire(block, 5000, ONUMA_ACCESS_READ, 0));

    /* A wait without end has one when the work is done. */
    assert_int_equal(pthread_create(&completer, NULL, complete_later, &line), 0);
    OK(onuma_host_acquire(block, 5000, ONUMA_ACCESS_READ, ONUMA_TIMEOUT_INFINITE));
    OK(onuma_host_release(block, 5000, ONUMA_ACCESS_READ));
    pthread_join(completer, NULL);

    /* A realloc that moves, a full pool, a trim and an end that wait for a queue. */
    line.submitted = 2;
    OK(onuma_use(queue, block, ONUMA_ACCESS_WRITE));
    OK(onuma_submitted(queue, NULL));
    assert_int_equal(pthread_create(&completer, NULL, complete_later, &line), 0);
    OK(onuma_realloc(block, 3 << 20, NULL, &more));
    pthread_join(completer, NULL);
    OK(onuma_free(more, NULL));
    OK(onuma_pool_trim(pool, 0, NULL));
    OK(onuma_alloc(pool, 1 << 20, 0, NULL, &block));
    OK(onuma_pool_set_limit(pool, api_stats(pool).reserved_bytes));
    line.submitted = 3;
    OK(onuma_free(block, queue));
    assert_int_equal(pthread_create(&completer, NULL, complete_later, &line), 0);
    OK(onuma_alloc(pool, 1 << 20, 0, NULL, &block));
    pthread_join(completer, NULL);
    line.submitted = 4;
    OK(onuma_free(block, queue));
    assert_int_equal(pthread_create(&completer, NULL, complete_later, &line), 0);
    (void)onuma_pool_trim(pool, 0, NULL);
    OK(onuma_pool_destroy(pool));
    pthread_join(completer, NULL);
    pool = api_pool(host, 0);
    OK(onuma_alloc(pool, 100, 0, queue, &block));
    line.submitted = 5;
    OK(onuma_free(block, queue));
    begin = now();
    OK(onuma_pool_destroy_forced(pool, 20000000));
    line.completed = 5;
    OK(onuma_queue_release(queue));
    onuma_runtime_destroy(rt);
    set_timer(0);
    assert_int_equal(sigaction(SIGALRM, &old, NULL), 0);
    assert_true(alarms > 20); /* they did come */
}

/* ------------------------------------------------------------------ runtimes */

typedef struct independent {
    unsigned char value;
    bool ok;
} independent;

static void *live_alone(void *argument) {
    independent *self = argument;
    for (unsigned round = 0; round < LIVES; round++) {
        onuma_runtime_desc desc = ONUMA_RUNTIME_DESC_INIT;
        onuma_runtime *rt;
        onuma_device *host;
        onuma_pool *pool;
        unsigned char *blocks[20];
        desc.config = "backends:host";
        if (onuma_runtime_create(&desc, &rt) != ONUMA_OK || onuma_device_find(rt, "host", &host) != ONUMA_OK ||
            onuma_pool_create(host, NULL, &pool) != ONUMA_OK)
            return NULL;
        for (size_t i = 0; i < 20; i++) {
            if (onuma_alloc(pool, 1000 * i + 1, 0, NULL, (void **)&blocks[i]) != ONUMA_OK) return NULL;
            memset(blocks[i], self->value, 1000 * i + 1);
        }
        for (size_t i = 0; i < 20; i++) {
            if (blocks[i][0] != self->value || blocks[i][1000 * i] != self->value) return NULL;
            if (i % 2 == 0 && onuma_free(blocks[i], NULL) != ONUMA_OK) return NULL;
        }
        onuma_runtime_destroy(rt); /* over blocks that live, which stay mapped */
        if (blocks[19][19000] != self->value) return NULL;
    }
    self->ok = true;
    return NULL;
}

static void runtimes_know_nothing_of_each_other(void **state) {
    (void)state;
    independent lives[4];
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++) {
        lives[i] = (independent){.value = (unsigned char)(i + 1)};
        assert_int_equal(pthread_create(&threads[i], NULL, live_alone, &lives[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_true(lives[i].ok);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_thousand_threads_leave_nothing),
        cmocka_unit_test(a_thousand_forks_amid_work),
        cmocka_unit_test(spawning_harms_nothing),
        cmocka_unit_test(handlers_of_fork_may_allocate),
        cmocka_unit_test(signals_disturb_no_wait),
        cmocka_unit_test(runtimes_know_nothing_of_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
