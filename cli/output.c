/* SPDX-License-Identifier: Apache-2.0 */
#include "output.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>

#if defined(_WIN32)
#include <io.h>
#include <windows.h>
#else
#include <signal.h>
#include <unistd.h>
#endif

#include "character.h"

#if defined(_WIN32)
/*
 * Bytes go in and out as they are: gzip comes through standard input, and what is printed is the same on every
 * system. A console is told that they are UTF-8; it belongs to the shell too, and gets its own setting back.
 */
static UINT console_before;

static void restore_console(void) {
    SetConsoleOutputCP(console_before);
}

void cli_output_prepare(void) {
    (void)_setmode(_fileno(stdin), _O_BINARY);
    (void)_setmode(_fileno(stdout), _O_BINARY);
    (void)_setmode(_fileno(stderr), _O_BINARY);
    console_before = GetConsoleOutputCP(); /* 0 where there is no console */
    if (console_before != 0 && console_before != CP_UTF8 && SetConsoleOutputCP(CP_UTF8)) (void)atexit(restore_console);
}
#else
/*
 * A program started with a standard stream closed would have the next file that
 * it, or a driver, opens become that stream, and write its results into it. The
 * stand-in for standard output is opened for reading, so that writing it still fails.
 */
static void keep_stream_numbers(void) {
    static const int modes[] = {O_RDONLY, O_RDONLY, O_WRONLY};
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) == -1 && errno == EBADF) (void)open("/dev/null", modes[fd]);
}

void cli_output_prepare(void) {
    keep_stream_numbers();
    (void)signal(SIGPIPE, SIG_IGN);
}
#endif

static void print_error(const char *format, va_list arguments) {
    /* One write, so that lines of several threads do not mix. */
    char line[8192]; /* the longest path and what is wrong with it */
    int length = vsnprintf(line, sizeof line, format, arguments);
    if (length < 0) return;
    cli_make_printable(line); /* names of files may hold anything */
    fprintf(stderr, "opennuma: %s\n", line);
    fflush(stderr);
}

void cli_error(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_error(format, arguments);
    va_end(arguments);
}

int cli_bad_request(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_error(format, arguments);
    va_end(arguments);
    return CLI_BAD_REQUEST;
}

int cli_failed(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_error(format, arguments);
    va_end(arguments);
    return CLI_FAILED;
}

int cli_library_error(const char *what, onuma_result r) {
    const char *detail = onuma_last_error();
    cli_error("%s: %s", what, detail[0] ? detail : onuma_result_text(r));
    bool asked_wrongly =
        r == ONUMA_ERROR_INVALID_ARGUMENT || r == ONUMA_ERROR_NOT_FOUND || r == ONUMA_ERROR_NOT_SUPPORTED;
    return asked_wrongly ? CLI_BAD_REQUEST : CLI_FAILED;
}

int cli_output_finish(int status) {
    /* Closing too: some file systems report a full disk only then. But not every fclose tells of what it flushes. */
    bool failed_before = ferror(stdout) != 0;
    errno = 0;
    bool failed_now = fflush(stdout) != 0;
    /* Not every C library keeps what could not be written and so fails again, with the reason: make it fail. */
    if (failed_before && errno == 0) {
        (void)fputc('\n', stdout);
        (void)fflush(stdout);
    }
    failed_now = fclose(stdout) != 0 || failed_now;
    if (!failed_before && !failed_now) return status;
    return cli_bad_request("cannot write standard output: %s", errno ? strerror(errno) : "an earlier write failed");
}

static void *checked(void *p) {
    if (p) return p;
    cli_error("out of memory");
    exit(CLI_FAILED);
}

void *cli_allocate(size_t size) {
    return checked(malloc(size ? size : 1));
}

void *cli_reallocate(void *old, size_t size) {
    return checked(realloc(old, size ? size : 1));
}

char *cli_copy_text(const char *text) {
    size_t size = strlen(text) + 1;
    return memcpy(cli_allocate(size), text, size);
}
