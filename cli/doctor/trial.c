/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "doctor/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include "clock.h"

enum { EXIT_OF_A_WHOLE_TRIAL = 113, LOOK_EVERY_MS = 20 };

/* How long a killed child may take to go. One that hangs inside a kernel driver never does, and is left behind. */
static const uint64_t patience_with_the_dead = 2000000000u;

/* ------------------------------------------------------------------- child */

/* A crash is to be a crash: no report of a sanitizer, no handler, no core file. */
static void take_down_handlers(void) {
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        (void)signal(signals[i], SIG_DFL);
    const struct rlimit none = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &none);
}

static void be_the_child(void (*body)(void *), void *shared, int errors) {
#if defined(__linux__)
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a hanging driver must not outlive an interrupted doctor */
#endif
    take_down_handlers();
    int nothing = open("/dev/null", O_RDWR);
    if (nothing >= 0) {
        (void)dup2(nothing, STDIN_FILENO);
        (void)dup2(nothing, STDOUT_FILENO);
    }
    (void)dup2(errors, STDERR_FILENO);
    body(shared);
    _exit(EXIT_OF_A_WHOLE_TRIAL);
}

/* ------------------------------------------------------------------ parent */

/* Keep the last line that has anything in it. `line` holds the present one, which may have no end yet. */
static void listen_to(int errors, trial *t, char *line, size_t *length) {
    char bytes[512];
    ssize_t got;
    while ((got = read(errors, bytes, sizeof bytes)) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            if (bytes[i] == '\n')
                *length = 0;
            else if (*length < sizeof t->said - 1) {
                line[(*length)++] = bytes[i];
                memcpy(t->said, line, *length);
                t->said[*length] = '\0';
            }
        }
    }
}

/* The status of the child once it has ended; false if it is still there at the deadline. */
static bool await(pid_t child, uint64_t deadline, int errors, trial *t, char *line, size_t *length, int *status) {
    for (;;) {
        pid_t ended = waitpid(child, status, WNOHANG);
        listen_to(errors, t, line, length);
        if (ended == child || (ended < 0 && errno != EINTR)) return true;
        if (cli_now() >= deadline) return false;
        struct pollfd until = {.fd = errors, .events = POLLIN};
        if (poll(&until, 1, LOOK_EVERY_MS) > 0 && (until.revents & POLLHUP)) cli_sleep(1000000u);
    }
}

static void judge(trial *t, int status) {
    if (WIFSIGNALED(status)) {
        t->outcome = TRIAL_CRASHED;
        t->code = WTERMSIG(status);
    } else if (WEXITSTATUS(status) != EXIT_OF_A_WHOLE_TRIAL) {
        t->outcome = TRIAL_ENDED;
        t->code = WEXITSTATUS(status);
    }
}

static void watch(pid_t child, int errors, double seconds, trial *t) {
    char line[sizeof t->said];
    size_t length = 0;
    int status = 0;
    if (await(child, cli_now() + (uint64_t)(seconds * 1e9), errors, t, line, &length, &status)) {
        judge(t, status);
        return;
    }
    t->outcome = TRIAL_HUNG;
    (void)kill(child, SIGKILL);
    (void)await(child, cli_now() + patience_with_the_dead, errors, t, line, &length, &status);
}

trial trial_run(void (*body)(void *report), void *report, size_t report_size, double seconds) {
    trial t = {.outcome = TRIAL_DONE};
    int errors[2] = {-1, -1};
    void *shared = mmap(NULL, report_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || pipe(errors) != 0) {
        t = (trial){.outcome = TRIAL_IMPOSSIBLE, .code = errno};
        goto cleanup;
    }
    (void)fcntl(errors[0], F_SETFL, O_NONBLOCK);
    (void)fcntl(errors[0], F_SETFD, FD_CLOEXEC);
    memcpy(shared, report, report_size);
    pid_t child = fork();
    if (child == 0) be_the_child(body, shared, errors[1]);
    int fork_error = errno;
    (void)close(errors[1]);
    if (child < 0)
        t = (trial){.outcome = TRIAL_IMPOSSIBLE, .code = fork_error};
    else
        watch(child, errors[0], seconds, &t);
    (void)close(errors[0]);
    memcpy(report, shared, report_size);
cleanup:
    if (shared != MAP_FAILED) (void)munmap(shared, report_size);
    return t;
}

void trial_describe(const trial *t, double seconds, char *text, size_t size) {
    switch (t->outcome) {
    case TRIAL_DONE:
        snprintf(text, size, "came back");
        break;
    case TRIAL_CRASHED: {
        const char *name = strsignal(t->code);
        snprintf(text, size, "crashed (signal %d, %s)", t->code, name ? name : "unknown");
        break;
    }
    case TRIAL_ENDED:
        snprintf(text, size, "ended the process with exit status %d", t->code);
        break;
    case TRIAL_HUNG:
        snprintf(text, size, "did not come back within %g s", seconds);
        break;
    case TRIAL_IMPOSSIBLE:
        snprintf(text, size, "could not be tried in a process of its own: %s", strerror(t->code));
        break;
    }
}
