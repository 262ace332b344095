/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#if defined(_WIN32)
#include <io.h>
#include <stdlib.h>

#include "windows_text.h"

static gzFile open_path(const char *path) {
    wchar_t *wide = cli_utf16(path);
    gzFile file = gzopen_w(wide, "rb");
    int error = errno;
    free(wide);
    errno = error;
    return file;
}

static gzFile open_standard_input(void) {
    return gzdopen(_fileno(stdin), "rb");
}
#else
#include <unistd.h>

static gzFile open_path(const char *path) {
    return gzopen(path, "rb");
}

static gzFile open_standard_input(void) {
    return gzdopen(STDIN_FILENO, "rb");
}
#endif

/* zlib passes plain text through. It gives the good beginning of a cut or damaged file first, and the error only then.
 */
static long read_file(void *user, char *buffer, size_t size, char *why, size_t why_size) {
    gzFile file = user;
    errno = 0;
    int got = gzread(file, buffer, (unsigned)size);
    int system_error = errno;
    if (got > 0) return got;
    int code;
    const char *text = gzerror(file, &code);
    if (got == 0 && code == Z_OK) return 0;
    if (code == Z_ERRNO)
        snprintf(why, why_size, "cannot read: %s", strerror(system_error));
    else if (code == Z_BUF_ERROR)
        snprintf(why, why_size, "the gzip file is cut short; get it again");
    else
        snprintf(why, why_size, "the gzip file is damaged (%s); get it again", text);
    return -1;
}

bool trace_read_file(trace *out, const char *path, char *error, size_t error_size) {
    *out = (trace){0};
    errno = 0;
    gzFile file = strcmp(path, "-") == 0 ? open_standard_input() : open_path(path);
    if (!file) {
        snprintf(error, error_size, "cannot open: %s", errno ? strerror(errno) : "out of memory");
        return false;
    }
    gzbuffer(file, 1 << 17);
    const trace_source source = {read_file, file};
    bool ok = trace_read(out, &source, error, error_size);
    gzclose(file);
    return ok;
}
